"""What does a decode step hold, and what does it need at its peak? Memory, counted and measured.

    python -m course.memory [--length 131072]

gives a JSON line each for standard, SVFormer and Bank of Values. A cache is filled with random
rows, as `length` tokens would have left it, and one more token is decoded in a process of its own.
Held bytes are those of distinct storages; the peak is what the system says about the process. A
closed formula would have to be believed: here bytes are counted on the tensors that exist, and the
tests compare with the formula.
"""

import json
import subprocess
import sys

import torch

from minimal.bench.timing import zipf
from minimal.command import command, number
from minimal.model.cache import Cache, laid_out
from minimal.model.config import size as named
from minimal.model.count import of_one_token
from minimal.model.layers import Part

PLANS = ("standard", "svformer", "bov")


def distinct_bytes(tensors):
    """Bytes of these tensors, shared storages counted once."""
    storages = [t.untyped_storage() for t in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


class Probe(Cache):
    """Notes how many rows of each name are to be kept."""

    def __init__(self, **how):
        super().__init__(**how)
        self.last = {}

    def bring(self, name, new, last=None):
        self.last[name] = last
        return super().bring(name, new, last)


@torch.no_grad()
def kept(model, rings=False, batch=1, stored=False):
    """{name: (one row, how many rows stay or None for all)}: what one token leaves in the cache."""
    probe, found = Probe(rings=rings, stored=stored), {}
    of_one_token(model, probe)
    for name, rows in probe.kept.items():
        row = rows.new_empty(batch, *rows.shape[1:], device=model.device)
        found[name] = row, probe.last[name]
    return found


def names_by_parts(model):
    """What decoding keeps by token, as the parts say it: ("k", layer), ("v", layer), …, "ids"."""
    names = set()
    for at, block in enumerate(model.blocks):
        if block.attention:
            a = block.attention
            for name in (a.key.keeps, a.value.keeps, a.read.keeps):
                if name is not None:
                    names.add(name if name == "ids" else (name, at))
    if any(part.recalls for part in model.modules() if isinstance(part, Part)):
        names.add("ids")
    return names


def filled(model, length, rings=False, batch=1, capacity=None, stored=False):
    """The cache that `length` tokens leave behind, made of random rows.

    With `capacity` it is laid out once, for that many."""
    cache = Cache(capacity, rings, stored)
    cache.length = length
    for name, (row, last) in kept(model, rings, batch, stored).items():
        cache.filled[name] = stay = min(length, last or length)
        cache.stays |= {name: last} if last else {}
        room = cache.room(last) if capacity else stay
        rows = laid_out(row.expand(batch, *row.shape[1:]), room)
        if row.is_floating_point():
            cache.kept[name] = rows.normal_()
        else:  # ids, as frequent as in a text
            chance = torch.Generator().manual_seed(0)
            drawn = zipf(model.config.vocab, rows.numel(), chance)
            cache.kept[name] = rows.copy_(drawn.view(rows.shape))
    return cache


def counter(plan, size, rings=False, batch=1, element=2):
    """length -> bytes of cache and tables, from the sizes of rows on the meta device."""
    from minimal.variants import skeleton

    model = skeleton(plan, size)
    tables = sum(bank.weight.numel() for bank in model.banks.values()) * element
    rows = []  # (bytes of one row, how many stay)
    for row, last in kept(model, rings, batch).values():
        bytes_each = element if row.is_floating_point() else row.element_size()
        rows.append((row.numel() * bytes_each, last))
    return lambda length: tables + sum(row * min(length, last or length) for row, last in rows)


def break_even(size="d12", rings=False, batch=1):
    """The first length at which Bank of Values holds less than standard.

    Tables and ids are included, W_V is not credited."""
    bov, standard = (counter(plan, size, rings, batch) for plan in ("bov", "standard"))
    low, high = 1, 2**22  # not less at low, less at high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bov(middle) < standard(middle) else (middle, high)
    return high


def status(field):
    """A line of the system's account of this process, in bytes.

    VmRSS is what it holds, VmHWM the most that it ever held."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


@torch.inference_mode()
def one_step(plan, size="tiny", length=131072, rings=False, threads=2):
    """To be run in a process of its own; all in bytes.

    What the cache holds before and after the step, the weights, the process before and at its
    peak."""
    from minimal.variants import build

    torch.set_num_threads(threads)
    config = named(size, context=length) if rings else named(size, windows="L")
    model = build(plan, config).eval()
    new = torch.zeros(1, 1, dtype=torch.long)
    model(new, cache=filled(model, 64, rings))  # code and scratch space that any step needs
    before = status("VmRSS")
    # Grown by concatenation, a layer would stand there twice.
    cache = filled(model, length, rings, capacity=length + 1)
    held = cache.bytes()
    model(new, cache=cache)
    return dict(
        plan=plan,
        length=length,
        rings=rings,
        held=held,
        held_after=cache.bytes(),
        before=before,
        peak=status("VmHWM"),
        weights=distinct_bytes(model.parameters()),
    )


def in_a_child(plan, **how):
    """one_step in a fresh process, so that nobody else's memory is counted."""
    call = f"memory.one_step({plan!r}, **{how!r})"
    code = f"import json; from course import memory; print(json.dumps({call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the child that measured {plan} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


@command("course.memory", __doc__.splitlines()[0])
def main(parser, argv):
    parser.add_argument("--length", type=number(int, least=1), default=131072)
    parser.add_argument("--size", default="tiny")
    asked = parser.parse_args(argv)
    named(asked.size)  # a size that does not exist is refused here, not in a child
    for rings in (False, True):
        how = " with rings" if rings else ""
        tokens = break_even(rings=rings)
        print(f"d12, break-even of Bank of Values with standard: {tokens:,} tokens{how}")
        for plan in PLANS:
            print(json.dumps(in_a_child(plan, size=asked.size, length=asked.length, rings=rings)))


if __name__ == "__main__":
    main()
