"""Who trains together? One process alone, or what torchrun started."""

import os

import torch
import torch.distributed as dist

from minimal.training.device import device


class Team:
    """The processes that train together: one alone, or what torchrun started."""

    def __init__(self, where):
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = device(where)
        if self.world > 1:
            if self.device.type == "cuda":
                self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
                torch.cuda.set_device(self.device)
            if not dist.is_initialized():
                dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")

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
            for t, mean in zip(same, (flat / self.world).split([t.numel() for t in same])):
                t.copy_(mean.view_as(t))
