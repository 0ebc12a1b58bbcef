"""How fast is this machine, and how much of it do we use? The floor first, JSON last.

python -m minimal.bench                 a training step on the CPU; generation and gather
                                        attention, on a GPU where there is one
"""

import argparse
import json
from pathlib import Path

import torch

from minimal.bench.bench import machine, training
from minimal.bench.decoding import gathering, generating
from minimal.command import command, number
from minimal.data import results
from minimal.training.device import device, matmul_rate


def measure_training(asked):
    rows = []
    for size in ("wide", "tiny"):
        for compiled in (False, True) if asked.compile else (False,):
            rows.append(training(size, compile=compiled))
            printed(
                [dict(rows[-1], how="compiled" if compiled else "eager")],
                "{size:6}{how:>9}: a step {step_ms:.0f} ms, floor {floor_ms:.0f} ms: {share:.0%} "
                "of it; {tokens_per_second:,} tokens/s; first step {first_step_s:.1f} s",
            )
    return rows


def measure_generating(asked):
    return printed(
        generating(where=device()),
        "generate, {plan:9}: {tokens_per_second:7.0f} tokens/s behind a prompt of {prompt}, "
        "{times:.2f} times standard",
    )


def measure_gathering(asked):
    return printed(
        gathering(where=device()),
        "one query, {keys:7,} keys: V stored {stored:.2f} ms, looked up {looked_up:.2f}, "
        "gathered {gathered:.2f}: {times:.2f} times as fast as stored",
    )


def printed(rows, line):
    for row in rows:
        print(line.format(**row))
    return rows


# what --part names: (its field in the JSON and in the evidence file, what measures it)
PARTS = dict(
    train=("train", measure_training),
    generate=("generate", measure_generating),
    gather=("gather", measure_gathering),
)


def some_of(parts):
    """The type of --part: names with commas between."""

    def chosen(text):
        names = text.split(",")
        unknown = [name for name in names if name not in parts]
        if unknown:
            got = ", ".join(unknown)
            raise argparse.ArgumentTypeError(f"wanted some of {', '.join(parts)}, got {got}")
        return names

    return chosen


def evidence_file(text):
    """The type of --out."""
    if not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"wanted a file that ends in .json, got {text}")
    return text


def measure(parser, argv, parts, usual):
    """The command over a table of parts, such as PARTS; unasked it measures the `usual` ones."""
    parser.add_argument(
        "--part",
        type=some_of(parts),
        default=usual,
        help=f"some of {', '.join(parts)}, with commas between",
    )
    parser.add_argument("--threads", type=number(int, least=1, most=1024), default=2)
    parser.add_argument(
        "--compile",
        action="store_true",
        help="measure the compiled step too (a C++ compiler is needed)",
    )
    parser.add_argument(
        "--out",
        type=evidence_file,
        help="an evidence file (JSON) that gets a row a part",
    )
    asked = parser.parse_args(argv)
    results.check_evidence(asked.out)
    torch.set_num_threads(asked.threads)
    found = dict(machine=machine()) | {field: None for field, _ in parts.values()}
    rate = matmul_rate() / 1e9
    print(f"{found['machine']}\nfloor: {rate:.0f} GFLOP/s, fp32 1024^3, {asked.threads} threads")
    for name in parts:
        if name in asked.part:
            field, part = parts[name]
            found[field] = part(asked)
            if asked.out and found[field]:
                record_part(asked.out, field, found)
    print(json.dumps(found))


def record_part(path, field, found):
    """A row for a part, written as soon as it is measured, beside the machine that measured it."""
    command = f"python -m minimal.bench --out {Path(path).name} --part {field}"
    none = dict(name="none", fingerprint="none", tokens=0)
    head = results.header("speed: ratios within one run, each beside its floor", command, none)
    row = dict(part=field, machine=found["machine"], commit=head["commit"], result=found[field])
    results.append(path, row, head)


@command("minimal.bench", __doc__)
def main(parser, argv):
    measure(parser, argv, PARTS, ",".join(PARTS))


if __name__ == "__main__":
    main()
