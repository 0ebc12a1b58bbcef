"""How fast is this machine, and how much of it do we use? `make bench`: the floor first, one JSON object last."""

import argparse
import json
import os
import platform
import statistics
import time

import torch


def clock(work, repeats=10, warm=3, where="cpu"):
    """Seconds of each of some warm calls."""
    synchronize = torch.cuda.synchronize if torch.device(where).type == "cuda" else lambda: None
    for _ in range(warm):
        work()
    seconds = []
    for _ in range(repeats):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


def matmul_rate(where="cpu", n=1024):
    """The best rate of an n^3 product, in FLOP/s: what a training step made of nothing but products could reach.
    fp32 on a CPU; bf16 and 8192^3 on a GPU."""
    kind, n = (torch.bfloat16, 8192) if torch.device(where).type == "cuda" else (torch.float32, n)
    a, b = torch.full((2, n, n), 0.5, device=where, dtype=kind)  # no random numbers: a run's own must not move
    return 2 * n**3 / min(clock(lambda: a @ b, where=where))


def machine():
    """What stands beside every number."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return dict(cpu=platform.machine(), capability=torch.backends.cpu.get_cpu_capability(),
                threads=torch.get_num_threads(), cores=os.cpu_count(), gpu=gpu,
                torch=torch.__version__, python=platform.python_version())


def stepper(plan, size, recipe, batch, compile, where="cpu"):
    """A model of this plan and a function that trains it by one step on random tokens."""
    from minimal import optim
    from minimal.base import compute_dtype, keep_memory
    from minimal.variants import build

    keep_memory()
    model = build(plan, size).to(where)
    model.compute = compute_dtype(where)
    context = model.config.context
    optimizer = optim.Optimizer(model, recipe, batch_tokens=batch * context, steps=1000, scale="laptop")
    ids = torch.randint(model.config.vocab, (batch, context + 1), generator=torch.Generator().manual_seed(0)).to(where)
    loss, done = torch.compile(model.loss, dynamic=False) if compile else model.loss, [0]

    def step():
        loss(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step(done[0])
        done[0] += 1

    return model, step


def training(size="wide", plan="standard", batch=16, compile=False, repeats=20, where="cpu"):
    """Warm training steps against the floor: counted FLOPs / best matmul rate, measured in the same run."""
    from minimal.variants import count, skeleton

    model, step = stepper(plan, size, "course", batch, compile, where)
    tokens = batch * model.config.context
    first = clock(step, 1, warm=0, where=where)[0]
    rates, seconds = [matmul_rate(where)], []
    for _ in range(4):  # floor and steps in turn: the machine's mood reaches both
        seconds += clock(step, max(1, repeats // 4), warm=1, where=where)
        rates.append(matmul_rate(where))
    work, median = count(skeleton(plan, size))["flops_per_token"] * tokens, statistics.median(seconds)
    floor = work / max(rates)
    return dict(plan=plan, size=size, compiled=compile, floor_ms=1e3 * floor, step_ms=1e3 * median,
                best_ms=1e3 * min(seconds), share=floor / median, first_step_s=first,
                tokens_per_second=round(tokens / median), tflops=work / median / 1e12)


def corners(sizes=(("tiny", 16), ("gpt2", 2)), rounds=7):
    """What a training step of dynamic value attention's corners costs, as a share of the plain transformer's: one head
    and no network, without the modifier and with it. By size and batch, beside the share of the arithmetic."""
    from minimal.bench_decode import in_turn, ratio
    from minimal.grids import BARE, DVA, FULL
    from minimal.variants import count, skeleton

    names, found = ("standard/many/ffn/wo", BARE, DVA, FULL), []
    for size, batch in sizes:
        taken = in_turn({name: stepper(name, size, "gpt2", batch, False)[1] for name in names}, rounds)
        counted = {name: count(skeleton(name, size))["flops_per_token"] for name in names}
        found += [dict(plan=name, size=size, batch=batch, ms=statistics.median(taken[name]),
                       time=ratio(taken, name, names[0]), arithmetic=counted[name] / counted[names[0]]) for name in names]
    return found


def race(steps=1500, rates=(6e-4, 1e-3, 3e-3), size="wide", corpus="auto", compile=False):
    """The gpt2 plan with AdamW, best of three rates, against the course's recipe: time to the same held-out loss.

    How many steps each needs does not depend on the machine's mood, so those runs are cached; what a warm step takes is
    measured here, of both in turn. Time = steps x step: evaluation, preparation and compiling are not counted."""
    from minimal.evidence import cached
    from minimal.train import Run

    common = dict(size=size, corpus=corpus, rows=128, evaluate=10**6)
    base = [cached(Run(plan="gpt2", recipe="gpt2", lr=rate, steps=steps, **common)) for rate in rates]
    best = min(base, key=lambda r: r["valid"][-1]["loss"])
    goal, own, needed = best["valid"][-1]["loss"], None, None
    for share in (0.05, 0.075, 0.1, 0.11, 0.115, 0.12, 0.135, 0.15, 0.2, 0.3):  # a schedule must know its length
        own = cached(Run(plan="standard", recipe="course", steps=round(steps * share), **common))
        if own["valid"][-1]["loss"] <= goal:
            needed = own["steps"]
            break
    _, theirs = stepper("gpt2", size, "gpt2", 16, compile)
    _, ours = stepper("standard", size, "course", 16, compile)
    turns = [(clock(theirs, 5), clock(ours, 5)) for _ in range(5)]
    base_step, own_step = (statistics.median(s for turn in side for s in turn) for side in zip(*turns))
    return dict(
        goal=goal, base_lr=best["run"]["lr"], base_losses=[r["valid"][-1]["loss"] for r in base], base_steps=steps,
        base_step_ms=1e3 * base_step, course_steps=needed, course_loss=own["valid"][-1]["loss"],
        course_step_ms=1e3 * own_step, compiled=compile,
        share=needed * own_step / (steps * base_step) if needed else None,
    )


def main():
    parts = ("train", "race", "decode", "dva", "corners", "gpu")
    ask = argparse.ArgumentParser(prog="python -m minimal.measure", description=__doc__)
    ask.add_argument("--part", default="train,decode,dva", help=f"some of {', '.join(parts)}, with commas between")
    ask.add_argument("--threads", type=int, default=2)
    ask.add_argument("--compile", action="store_true", help="measure the compiled step too (a C++ compiler is needed)")
    ask.add_argument("--out", help="an evidence file that gets one row a part: notebooks/evidence/bench.json")
    asked = ask.parse_args()
    chosen = asked.part.split(",")
    if set(chosen) - set(parts):
        ask.error(f"unknown part {', '.join(set(chosen) - set(parts))}: choose from {', '.join(parts)}")
    torch.set_num_threads(asked.threads)
    found = dict(machine=machine(), train=None, race=None, decode_cpu=None, dva=None, corners=None, gpu=None)
    print(f"{found['machine']}\nfloor: {matmul_rate() / 1e9:.0f} GFLOP/s, fp32 1024^3, {asked.threads} threads")
    if "train" in chosen:
        ways = (False, True) if asked.compile else (False,)
        found["train"] = [training(size, compile=way) for size in ("wide", "tiny") for way in ways]
        for r in found["train"]:
            print(f"{r['size']:6}{'compiled' if r['compiled'] else 'eager':>9}: a step {r['step_ms']:.0f} ms, "
                  f"floor {r['floor_ms']:.0f} ms: {r['share']:.0%} of it; {r['tokens_per_second']:,} tokens/s; "
                  f"first step {r['first_step_s']:.1f} s")
    if "race" in chosen:
        found["race"] = race(compile=asked.compile)
        print(f"race: {found['race']}")
    if "decode" in chosen or "dva" in chosen:
        from minimal import bench_decode

        found["decode_cpu"] = bench_decode.decode() if "decode" in chosen else None
        found["dva"] = bench_decode.dva() if "dva" in chosen else None
    if "corners" in chosen:
        found["corners"] = corners()
        for r in found["corners"]:
            print(f"{r['size']:6}{r['plan']:>25}: a step {r['ms']:.0f} ms, {r['time']:.2f} of the plain one's time, "
                  f"{r['arithmetic']:.2f} of its arithmetic")
    if "gpu" in chosen:
        if not torch.cuda.is_available():
            print("gpu: not yet measured on a GPU: this machine has none that torch can use")
        else:
            from minimal import bench_gpu

            found["gpu"] = bench_gpu.everything()
    if asked.out:
        record(asked.out, found)
    print(json.dumps(found))


def record(path, found):
    """One row a part that was measured, beside the machine that measured it."""
    from minimal import records

    command = "make bench ARGS='--out notebooks/evidence/bench.json', once a part"
    none = dict(name="none", fingerprint="none", tokens=0)
    head = records.header("speed: ratios within one run, each beside its floor", command, none)
    for part, result in found.items():
        if part != "machine" and result:
            records.append(path, dict(part=part, machine=found["machine"], commit=head["commit"], result=result), head)


if __name__ == "__main__":
    main()
