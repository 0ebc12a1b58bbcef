"""How fast is this machine, and how much of it do we use? `make bench`: the floor first, one JSON object last."""

import argparse
import json

import torch

from minimal.lab.speed.bench import corners, machine, training
from minimal.lab.speed.race import race
from minimal.training.device import matmul_rate


def main():
    parts = ("train", "race", "decode", "dva", "corners", "gpu")
    ask = argparse.ArgumentParser(prog="python -m minimal.lab.speed", description=__doc__)
    ask.add_argument(
        "--part",
        default="train,decode,dva",
        help=f"some of {', '.join(parts)}, with commas between",
    )
    ask.add_argument("--threads", type=int, default=2)
    ask.add_argument(
        "--compile",
        action="store_true",
        help="measure the compiled step too (a C++ compiler is needed)",
    )
    ask.add_argument(
        "--out", help="an evidence file that gets one row a part: notebooks/evidence/bench.json"
    )
    asked = ask.parse_args()
    chosen = asked.part.split(",")
    if set(chosen) - set(parts):
        ask.error(
            f"unknown part {', '.join(set(chosen) - set(parts))}: choose from {', '.join(parts)}"
        )
    torch.set_num_threads(asked.threads)
    found = dict(
        machine=machine(), train=None, race=None, decode_cpu=None, dva=None, corners=None, gpu=None
    )
    print(
        f"{found['machine']}\nfloor: {matmul_rate() / 1e9:.0f} GFLOP/s, fp32 1024^3, {asked.threads} threads"
    )
    if "train" in chosen:
        ways = (False, True) if asked.compile else (False,)
        found["train"] = [training(size, compile=way) for size in ("wide", "tiny") for way in ways]
        for r in found["train"]:
            print(
                f"{r['size']:6}{'compiled' if r['compiled'] else 'eager':>9}: a step {r['step_ms']:.0f} ms, "
                f"floor {r['floor_ms']:.0f} ms: {r['share']:.0%} of it; {r['tokens_per_second']:,} tokens/s; "
                f"first step {r['first_step_s']:.1f} s"
            )
    if "race" in chosen:
        found["race"] = race(compile=asked.compile)
        print(f"race: {found['race']}")
    if "decode" in chosen or "dva" in chosen:
        from minimal.lab.speed import decode

        found["decode_cpu"] = decode.decode() if "decode" in chosen else None
        found["dva"] = decode.dva() if "dva" in chosen else None
    if "corners" in chosen:
        found["corners"] = corners()
        for r in found["corners"]:
            print(
                f"{r['size']:6}{r['plan']:>25}: a step {r['ms']:.0f} ms, {r['time']:.2f} of the plain one's time, "
                f"{r['arithmetic']:.2f} of its arithmetic"
            )
    if "gpu" in chosen:
        if not torch.cuda.is_available():
            print("gpu: not yet measured on a GPU: this machine has none that torch can use")
        else:
            from minimal.lab.speed.gpu import everything

            found["gpu"] = everything()
    if asked.out:
        record(asked.out, found)
    print(json.dumps(found))


def record(path, found):
    """One row a part that was measured, beside the machine that measured it."""
    from minimal.data import results

    command = "make bench ARGS='--out notebooks/evidence/bench.json', once a part"
    none = dict(name="none", fingerprint="none", tokens=0)
    head = results.header("speed: ratios within one run, each beside its floor", command, none)
    for part, result in found.items():
        if part != "machine" and result:
            results.append(
                path,
                dict(part=part, machine=found["machine"], commit=head["commit"], result=result),
                head,
            )


if __name__ == "__main__":
    main()
