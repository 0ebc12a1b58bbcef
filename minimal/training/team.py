"""Who trains together? One process alone, or what torchrun started."""

import os
import sys

import torch
import torch.distributed as dist

from minimal.training.device import device


class Team:
    """The processes that train together: one alone, or what torchrun started."""

    def __init__(self, where):
        self.world = environment_number("WORLD_SIZE", 1, least=1)
        self.rank = environment_number("RANK", 0, most=self.world - 1)
        self.device = device(where)
        if self.world > 1:
            if self.device.type == "cuda":
                self.device = torch.device("cuda", environment_number("LOCAL_RANK", self.rank))
                torch.cuda.set_device(self.device)
            if not dist.is_initialized():
                dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")

    def check_batch(self, batch, accumulate):
        """A step's batch falls into equal parts: one a process and accumulation."""
        parts = accumulate * self.world
        if batch % parts:
            raise ValueError(
                f"a batch of {batch} does not split into {accumulate} parts on {self.world} "
                f"processes: choose a multiple of {parts}"
            )

    def alone(self, what):
        """Refuse what several processes cannot do together."""
        if self.world > 1:
            raise ValueError(f"{what} is for one process: wanted that, got {self.world}")

    def to_device(self, tensor):
        """Here from the CPU; to a GPU through pinned memory, so that nobody waits for the copy."""
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)

    def leave(self):
        """End a process of several at once, when all is written, and not by Python's own end.

        A thread of gloo may hold the last tensor a little longer. If Python takes itself apart
        meanwhile, that thread aborts the process, and torchrun takes the run for a failed one."""
        if self.world > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def any(self, yes):
        """Does any process say so? All hear the same, so that they stop at the same step."""
        if self.world == 1:
            return yes
        said = torch.tensor(float(yes), device=self.device)
        dist.all_reduce(said)
        return said.item() > 0

    def average(self, tensors):
        """Replace every tensor by its mean over all processes, one message a type."""
        if self.world == 1:
            return
        for kind in {t.dtype for t in tensors}:
            same = [t for t in tensors if t.dtype == kind]
            flat = torch.cat([t.reshape(-1) for t in same])
            dist.all_reduce(flat)
            flat.div_(self.world)
            for t, mean in zip(same, flat.split([t.numel() for t in same])):
                t.copy_(mean.view_as(t))

    def from_one(self, rank, tensors):
        """Replace every tensor by that process's, one message a type."""
        for kind in {t.dtype for t in tensors}:
            same = [t for t in tensors if t.dtype == kind]
            flat = torch.cat([t.reshape(-1) for t in same])
            dist.broadcast(flat, rank)
            for t, theirs in zip(same, flat.split([t.numel() for t in same])):
                t.copy_(theirs.view_as(t))

    def union(self, tensors):
        """The tensors of all processes by name, on the CPU of the first; nothing on the others."""
        shapes = [None] * self.world
        own = {name: (t.shape, t.dtype) for name, t in tensors.items()}
        dist.all_gather_object(shapes, own)
        whole = {}
        for rank, theirs in enumerate(shapes):
            for name, (shape, kind) in theirs.items():
                if rank == self.rank:
                    tensor = tensors[name].contiguous()
                else:
                    tensor = torch.empty(shape, dtype=kind, device=self.device)
                dist.broadcast(tensor, rank)
                if self.rank == 0:
                    whole[name] = tensor.cpu()
        return whole


def disband():
    """The processes part; nothing where there is one alone."""
    if dist.is_initialized():
        dist.destroy_process_group()


def environment_number(name, default, least=0, most=None):
    """A number that torchrun puts into the environment."""
    text = os.environ.get(name, str(default))
    number = int(text) if text.isdecimal() else -1
    if number < least or (most is not None and number > most):
        wanted = f"from {least}" if most is None else f"from {least} to {most}"
        raise ValueError(
            f"the environment's {name}: wanted a whole number {wanted}, got {text!r}; "
            "unset it, or start several processes with torchrun"
        )
    return number
