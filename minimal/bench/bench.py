"""How fast is a training step on this machine, and how much of its floor is that? Warm steps."""

import os
import platform
import statistics

import torch

from minimal.bench.timing import clock, zipf
from minimal.data.results import cpu_model
from minimal.training.device import matmul_rate


def machine():
    """What stands beside every number."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return dict(
        cpu=platform.machine(),
        model=cpu_model(),
        capability=torch.backends.cpu.get_cpu_capability(),
        threads=torch.get_num_threads(),
        cores=os.cpu_count(),
        gpu=gpu,
        torch=torch.__version__,
        python=platform.python_version(),
    )


def stepper(plan, size, recipe, batch, compile, where="cpu"):
    """A model of this plan, and a function that trains it by one step on ids drawn as in text."""
    from minimal.training import optim
    from minimal.training.compiling import compiled
    from minimal.training.device import compute_dtype, keep_memory
    from minimal.variants import build

    keep_memory()
    model = build(plan, size, device=where, compute=compute_dtype(where))
    context, vocab = model.config.context, model.config.vocab
    tokens = batch * context
    optimizer = optim.Optimizer(model, recipe, batch_tokens=tokens, steps=1000, scale="laptop")
    ids = zipf(vocab, batch * (context + 1), torch.Generator().manual_seed(0))
    ids = ids.view(batch, context + 1).long().to(where)
    loss, done = compiled(model.loss) if compile else model.loss, 0

    def step():
        nonlocal done
        loss(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step(done)
        done += 1

    return model, step


def training(size="wide", plan="standard", batch=16, compile=False, repeats=20, where="cpu"):
    """Warm training steps against the floor: counted FLOPs / best matmul rate, in the same run."""
    from minimal.model.count import count
    from minimal.variants import skeleton

    model, step = stepper(plan, size, "course", batch, compile, where)
    tokens = batch * model.config.context
    first = clock(step, 1, warm=0, where=where)[0]

    # Floor and steps in turn: whatever else the machine does reaches both.
    rates, seconds = [matmul_rate(where)], []
    for _ in range(4):
        seconds += clock(step, max(1, repeats // 4), warm=1, where=where)
        rates.append(matmul_rate(where))

    work = count(skeleton(plan, size))["flops_per_token"] * tokens
    median = statistics.median(seconds)
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
