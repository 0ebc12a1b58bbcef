"""What did the weights of a mixture do? Read from runs that recorded them at every step.

A run's `coefficients` hold every weight at every step. `looked_at` adds the `sums` of its trained
model: for each a x + b y, y's share by weights and by lengths.
"""

import statistics

import torch
import torch.nn.functional as F

from minimal.analysis import observe
from minimal.data.packing import pack
from minimal.train import load

# ---- one model -----------------------------------------------------------------------------------


def looked_at(result, book, by_lengths):
    """A finished run and the sums of its model, on eight rows that it has not seen."""
    model, tokenizer = load(result["folder"])
    ids, _ = next(pack(book, tokenizer, model.config.context).valid(8, 8))  # (8, T)
    *before, last = result["valid"]
    return result | dict(valid=[*before, last | dict(sums=sums(model, ids, by_lengths))])


@torch.no_grad()
def sums(model, ids, by_lengths):
    """Every weighted sum of one pass of `modded`: skips, x0, tables, and attention's own."""
    tape, (unet, mixin), found = observe(model, ids), model.streams, []
    for at, block in enumerate(model.blocks):
        x, source = tape.streams[at], getattr(block.attention, "value", None)

        # the skip: x + w early
        if at in unet.skips:
            w, early = unet.weight[str(at)](), tape.streams[unet.skips[at] + 1]
            found.append(of_one("skip", at, 1, x, w, early, by_lengths))
            x = x + w * early

        # the mixin: r x + z x0
        r, z = mixin.residual[at](), mixin.x0[at]()
        found.append(of_one("x0", at, r, x, z, tape.x0, by_lengths))

        # a value and its table's row: a v + b e
        if hasattr(source, "a"):
            row = model.banks[source.y.bank](ids)
            found.append(of_one("table", at, source.a(), tape.raw[at], source.b(), row, by_lengths))

        # what attention adds to the stream
        if source is not None:
            added = block.attention.out(tape.out[at].flatten(2))
            found.append(of_one("attention", at, 1, r * x + z * tape.x0, 1, added, by_lengths))
    return found


def of_one(kind, layer, a, x, b, y, by_lengths):
    """What weights and vectors say of a x + b y: y's share by both, its weight, x's length over
    y's, and their cosine."""
    a, b = float(a), float(b)
    return dict(
        kind=kind,
        layer=layer,
        weights=abs(b) / (abs(a) + abs(b)),
        b=b,
        lengths=float(by_lengths(a, x, b, y)),
        longer=(x.norm() / y.norm()).item(),
        cosine=F.cosine_similarity(x, y, dim=-1).mean().item(),
    )


# ---- several runs --------------------------------------------------------------------------------


def curves(results, name):
    """One coefficient over training, a curve a run: [(steps,)]."""
    found = [result["coefficients"] for result in results]
    return [[row[c["names"].index(name)] for row in c["steps"]] for c in found]


def share(ours, theirs):
    """|ours| / (|ours| + |theirs|), curve by curve."""
    pairs = zip(theirs, ours, strict=True)
    return [[abs(y) / (abs(x) + abs(y)) for x, y in zip(*pair, strict=True)] for pair in pairs]


def measured(results, kind, field, at=-1):
    """{layer: a value for each run} of one kind of sum, at an evaluation (default: the last)."""
    found = {}
    for result in results:
        for row in result["valid"][at]["sums"]:
            if row["kind"] == kind:
                found.setdefault(row["layer"], []).append(row[field])
    return found


def mean_and_range(values, form="{:.2f}"):
    """Mean, least and most of several runs; of one run its value alone."""
    mean = form.format(statistics.fmean(values))
    if len(values) == 1:
        return mean
    return f"{mean} ({form.format(min(values))} to {form.format(max(values))})"
