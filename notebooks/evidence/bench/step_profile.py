"""Where does a small training step's time go? A profile by parts, in processor seconds.

Processor seconds of one thread: what other programs do does not count.
"""

import statistics
import time
from collections import Counter

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from minimal.bench.timing import clock
from minimal.data.packing import Dataset
from minimal.model import gradients
from minimal.model.count import count
from minimal.training import optim
from minimal.training.device import keep_memory, matmul_rate
from minimal.variants import build, skeleton

# ---- the floor of its products -------------------------------------------------------------------

# How fast could a step be at best? Its matrix products alone, each at its own shape.
#
# The floor of a profile is the rate of one large product. A small model has thin products, which no
# library does at that rate. So every product of a step is written down with its shapes and strides,
# and is called again by itself, on numbers that lie in the cache: what a step of the same products
# cannot get below, however little the rest of it takes. Attention's own kernels count as products.

aten = torch.ops.aten
KINDS = {
    aten.mm,
    aten.addmm,
    aten.bmm,
    aten.baddbmm,
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
}
CALLS = 7  # of which the fastest counts


class Written(TorchDispatchMode):
    """Counts the products that are called inside, by operation and the layout of what it is
    given."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function.overloadpacket in KINDS:
            given, tree = tree_flatten((args, kwargs))
            self.seen[function, tuple(map(layout, given)), tree] += 1
        return function(*args, **kwargs)


def layout(value):
    """A tensor as (shape, strides, type); anything else as it is."""
    if isinstance(value, torch.Tensor):
        return "tensor", tuple(value.shape), value.stride(), value.dtype
    return tuple(value) if isinstance(value, list) else value


def random_alike(told):
    """A tensor of that layout, of random numbers."""
    if not isinstance(told, tuple) or told[:1] != ("tensor",):
        return told
    _, shape, strides, dtype = told
    own = [size if stride else 1 for size, stride in zip(shape, strides, strict=True)]
    return torch.empty_strided(own, strides, dtype=dtype).normal_().expand(shape)


def products_of(step):
    """{(operation, layouts, tree): how often} of one call of `step`."""
    with Written() as written:
        step()
    return written.seen


def seconds_alone(products, **how):
    """Seconds of all these products, one after the other: the fastest of a few calls of each, by
    what `clock` takes."""
    total = 0.0
    for (function, layouts, tree), often in products.items():
        args, kwargs = tree_unflatten([random_alike(told) for told in layouts], tree)
        total += often * min(clock(lambda: function(*args, **kwargs), CALLS, warm=1, **how))
    return total


PARTS = ("data", "forward", "loss", "backward", "Muon", "AdamW", "rest")
WARM = 3  # steps that are not counted


class Timed:
    """Processor seconds of named parts of a step; a part inside another counts as the inner one."""

    def __init__(self):
        self.seconds, self.inner = dict.fromkeys(PARTS, 0.0), 0.0

    def part(self, name, work):
        """The same function, timed."""

        def timed(*args, **kwargs):
            before, self.inner = self.inner, 0.0
            start = time.process_time()
            result = work(*args, **kwargs)
            taken = time.process_time() - start
            self.seconds[name] += taken - self.inner
            self.inner = before + taken
            return result

        return timed


def parts_of_a_step(plan, size, recipe, batch):
    """(model, a function that trains it by a step and returns each part's seconds)."""
    # a model, its optimizer, and random tokens
    keep_memory()
    model = build(plan, size)
    context, vocab = model.config.context, model.config.vocab
    tokens = batch * context
    optimizer = optim.Optimizer(model, recipe, batch_tokens=tokens, steps=1000, scale="laptop")
    rows = np.random.RandomState(0).randint(vocab, size=(4 * batch, context + 1))
    data = Dataset(rows, rows, context, 0.0, {}, "random tokens")

    # every part under its name
    timed, done = Timed(), [0]
    fetch = timed.part("data", data.batch)
    backward = timed.part("backward", torch.Tensor.backward)
    model.hidden = timed.part("forward", model.hidden)
    model.loss = timed.part("loss", model.loss)
    optimizer.muon_step = timed.part("Muon", optimizer.muon_step)
    for dense in optimizer.dense:
        dense.step = timed.part("AdamW", dense.step)

    def work():
        ids, targets = fetch(done[0], batch)
        backward(model.loss(ids, targets))
        optimizer.step(done[0])
        done[0] += 1

    whole = timed.part("rest", work)

    def step():
        timed.seconds = dict.fromkeys(PARTS, 0.0)
        whole()
        return timed.seconds

    return model, step


def with_autograds_gradients(step):
    """The same step without the gradients that we write by hand."""
    by_hand = gradients.by_hand
    gradients.by_hand = lambda x: False
    try:
        return step()
    finally:
        gradients.by_hand = by_hand


def profile(plan="standard", size="tiny", recipe="bov", batch=16, rounds=20):
    """A step's parts in ms, its share of the floor, what its products take alone, and what
    autograd's gradients would take."""
    if torch.get_num_threads() > 1:
        raise ValueError(
            "wanted one thread, whose processor seconds are counted, got more: "
            "call torch.set_num_threads(1)"
        )

    # ours, autograd's and the floor in turn
    model, step = parts_of_a_step(plan, size, recipe, batch)
    _, reference_step = parts_of_a_step(plan, size, recipe, batch)
    ours, reference, rates = [], [], []
    for turn in range(rounds + WARM):
        taken, theirs = step(), with_autograds_gradients(reference_step)
        if turn >= WARM:
            ours.append(taken)
            reference.append(theirs)
            rates.append(matmul_rate(n=512, now=time.process_time))

    # what no step of these products gets below
    alone = seconds_alone(products_of(step), now=time.process_time)

    # medians
    totals = [sum(row.values()) for row in ours]
    pairs = zip(reference, totals, strict=True)
    ratios = [sum(row.values()) / own for row, own in pairs]
    tokens, median = batch * model.config.context, statistics.median(totals)
    floor = count(skeleton(plan, size))["flops_per_token"] * tokens / max(rates)
    return dict(
        plan=plan,
        size=size,
        recipe=recipe,
        parts_ms={name: 1e3 * statistics.median(row[name] for row in ours) for name in PARTS},
        step_ms=1e3 * median,
        floor_ms=1e3 * floor,
        products_ms=1e3 * alone,
        share=floor / median,
        autograd_over_ours=statistics.median(ratios),
    )


def report(row):
    """One profile in lines."""
    lines = [
        f"{row['size']} {row['plan']}, recipe {row['recipe']}: a step {row['step_ms']:.0f} ms, "
        f"{row['share']:.0%} of the floor; with autograd's own gradients "
        f"{row['autograd_over_ours']:.2f} times as long"
    ]
    alone = row["products_ms"]
    lines.append(
        f"  its matrix products alone, each at its own shape: {alone:.0f} ms, "
        f"{alone / row['step_ms']:.0%} of the step"
    )
    for name, ms in row["parts_ms"].items():
        lines.append(f"  {name:10}{ms:7.1f} ms  {ms / row['step_ms']:4.0%}")
    return "\n".join(lines)
