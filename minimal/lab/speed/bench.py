"""How fast is this machine, and how much of it do we use? `make bench`: the floor first, one JSON object last."""

import os
import platform
import statistics

import torch

from minimal.training.device import clock, matmul_rate


def machine():
    """What stands beside every number."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return dict(
        cpu=platform.machine(),
        capability=torch.backends.cpu.get_cpu_capability(),
        threads=torch.get_num_threads(),
        cores=os.cpu_count(),
        gpu=gpu,
        torch=torch.__version__,
        python=platform.python_version(),
    )


def stepper(plan, size, recipe, batch, compile, where="cpu"):
    """A model of this plan and a function that trains it by one step on random tokens."""
    from minimal.training import optim
    from minimal.training.device import compute_dtype, keep_memory
    from minimal.variants import build

    keep_memory()
    model = build(plan, size, device=where, compute=compute_dtype(where))
    context = model.config.context
    optimizer = optim.Optimizer(
        model, recipe, batch_tokens=batch * context, steps=1000, scale="laptop"
    )
    ids = torch.randint(
        model.config.vocab, (batch, context + 1), generator=torch.Generator().manual_seed(0)
    ).to(where)
    loss, done = torch.compile(model.loss, dynamic=False) if compile else model.loss, [0]

    def step():
        loss(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step(done[0])
        done[0] += 1

    return model, step


def training(size="wide", plan="standard", batch=16, compile=False, repeats=20, where="cpu"):
    """Warm training steps against the floor: counted FLOPs / best matmul rate, measured in the same run."""
    from minimal.model.count import count
    from minimal.variants import skeleton

    model, step = stepper(plan, size, "course", batch, compile, where)
    tokens = batch * model.config.context
    first = clock(step, 1, warm=0, where=where)[0]
    rates, seconds = [matmul_rate(where)], []
    for _ in range(4):  # floor and steps in turn: the machine's mood reaches both
        seconds += clock(step, max(1, repeats // 4), warm=1, where=where)
        rates.append(matmul_rate(where))
    work, median = (
        count(skeleton(plan, size))["flops_per_token"] * tokens,
        statistics.median(seconds),
    )
    floor = work / max(rates)
    return dict(
        plan=plan,
        size=size,
        compiled=compile,
        floor_ms=1e3 * floor,
        step_ms=1e3 * median,
        best_ms=1e3 * min(seconds),
        share=floor / median,
        first_step_s=first,
        tokens_per_second=round(tokens / median),
        tflops=work / median / 1e12,
    )


def corners(sizes=(("tiny", 16), ("gpt2", 2)), rounds=7):
    """What a training step of dynamic value attention's corners costs, as a share of the plain transformer's: one head
    and no network, without the modifier and with it. By size and batch, beside the share of the arithmetic."""
    from minimal.lab.evidence.grids import BARE, DVA, FULL
    from minimal.lab.timing import in_turn, ratio
    from minimal.model.count import count
    from minimal.variants import skeleton

    names, found = ("standard/many/ffn/wo", BARE, DVA, FULL), []
    for size, batch in sizes:
        taken = in_turn(
            {name: stepper(name, size, "gpt2", batch, False)[1] for name in names}, rounds
        )
        counted = {name: count(skeleton(name, size))["flops_per_token"] for name in names}
        found += [
            dict(
                plan=name,
                size=size,
                batch=batch,
                ms=statistics.median(taken[name]),
                time=ratio(taken, name, names[0]),
                arithmetic=counted[name] / counted[names[0]],
            )
            for name in names
        ]
    return found
