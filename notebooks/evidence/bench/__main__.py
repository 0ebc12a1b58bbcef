"""How fast is the course's own work? `make bench`: the parts of minimal.bench, and what our records
show besides: generation beside its rivals, two busy cores, a step's profile, a GPU's kernels."""

from pathlib import Path

import torch

from evidence.bench import decode, generation, step_profile, token_profile
from evidence.bench.busy import busy
from evidence.bench.busy import report as report_busy
from evidence.bench.race import corners, race
from minimal.bench import __main__ as bench
from minimal.command import command
from minimal.data.files import runs_folder
from minimal.training.device import device


def measure_race(asked):
    found = race(compile=asked.compile)
    print(f"race: {found}")
    return found


def measure_corners(asked):
    rows = corners()
    for row in rows:
        print(
            "{size:6}{plan:>25}: a step {ms:.0f} ms, {time:.2f} of the plain one's time, "
            "{arithmetic:.2f} of its arithmetic".format(**row)
        )
    return rows


def measure_profile(asked):
    """One thread, whatever was asked: processor seconds of waiting threads say nothing."""
    torch.set_num_threads(1)
    rows = [step_profile.profile(plan) for plan in ("standard", "bov")]
    torch.set_num_threads(asked.threads)
    print(*map(step_profile.report, rows), sep="\n")
    return rows


def measure_price(asked):
    """One thread, whatever was asked: the seconds are the processor's."""
    torch.set_num_threads(1)
    rows = generation.price()
    torch.set_num_threads(asked.threads)
    return rows


def measure_token(asked):
    """On a GPU the step that is recorded, at d12; else one thread, whatever was asked."""
    where = device()
    large = dict(size="d12", length=16384, where="cuda", way="recorded")
    torch.set_num_threads(1)
    found = token_profile.one_token(**large if where.type == "cuda" else {})
    torch.set_num_threads(asked.threads)
    print(token_profile.as_table(found))
    return found


def measure_busy(asked):
    """Two threads a run, whatever was asked: that is what a busy laptop's two cores are about."""
    found = busy()
    print(report_busy(found))
    return found


def measure_gpu(asked):
    if not torch.cuda.is_available():
        print("gpu: not measured here: this machine has none that torch can use")
        return None
    from evidence.bench import gpu

    return gpu.everything(Path(asked.out).parent if asked.out else runs_folder() / "gpu")


PARTS = dict(
    train=bench.PARTS["train"],
    decode=("decode_cpu", lambda asked: decode.decode()),
    dva=("dva", lambda asked: decode.dva()),
    corners=("corners", measure_corners),
    race=("race", measure_race),
    profile=("profile", measure_profile),
    generate=("generate_cpu", lambda asked: generation.everything()),
    price=("price_cpu", measure_price),
    token=("token", measure_token),
    busy=("busy", measure_busy),
    gpu=("gpu", measure_gpu),
)


@command("evidence.bench", __doc__)
def main(parser, argv):
    bench.measure(parser, argv, PARTS, "train,decode,dva")


if __name__ == "__main__":
    main()
