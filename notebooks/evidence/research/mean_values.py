"""What does a trained standard lose when its values forget their context? Without training: each
layer's value is replaced by the mean value of its token, layer by layer, then in many together.

    python -m evidence.research.mean_values     measure what mean_values_*.json lack

Means are counted on training rows, losses on held-out rows. As the control each value is replaced
by one mean for all tokens, which forgets the token, too. Models come from the cache of runs: they
are those of the dose at no layers, seeds 0 to 2.
"""

import copy
import statistics
from dataclasses import replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from course import records
from course.markdown import table
from evidence.research import title
from evidence.research.asked import so
from evidence.research.leads import Read, as_row_with_rows, row_in_words
from evidence.research.pairs import rows_once_whole
from evidence.research.title import TEXTS
from minimal.analysis import observe
from minimal.command import command
from minimal.compare import ledger
from minimal.compare.runs import cached
from minimal.data import corpora, packing, results
from minimal.model.values import Source
from minimal.train import load

# Written before the first run.
EXPECTED = """Layer 1 costs nothing at all, since its values are functions of the token by
construction. Every other layer alone costs less than .05 nats on both texts, and less than half of
what one mean for all tokens costs there. The last four together cost more than the sum of the four.
All twelve together cost .1 or more on both texts: a trained standard uses the context in its
values, though a model that is trained without it does not need it. All twelve by one mean for all
tokens cost at least three times as much. What would change our mind: all twelve for less than .02,
since then the context in the values of standard serves nothing."""

SEEDS = (0, 1, 2)
COUNTED, READ, AT_ONCE = 1024, 256, 16  # training rows, held-out rows, rows in a batch


# ---- the replacement -----------------------------------------------------------------------------


class MeanValue(Source):
    """The values of a layer, each of them a row of `means` by its token's id."""

    def __init__(self, means, **where):
        super().__init__(**where)
        self.means = means  # (V, G, D)

    def rows(self, h, at, tape):
        return self.means[tape.ids]


def with_means(net, means):
    """The same model, whose layers {at: means} have forgotten the context in their values."""
    net = copy.deepcopy(net)
    for at, rows in means.items():
        net.blocks[at].attention.value = MeanValue(rows, config=net.config, at=at)
    return net


@torch.no_grad()
def mean_values(net, batches):
    """(by token, for all): of every layer the mean value of each id (V, G, D), and the mean of all
    positions, the same for every id. An id that no row holds has the mean of all."""
    layers, vocab = len(net.blocks), net.config.vocab
    sums, times = None, torch.zeros(vocab)
    for ids in batches:
        tape = observe(net, ids)
        values = torch.stack([tape.raw[at].flatten(0, 1) for at in range(layers)])  # (L, N, G, D)
        if sums is None:
            sums = values.new_zeros(layers, vocab, *values.shape[2:])
        flat = ids.flatten()
        sums.index_add_(1, flat, values)
        times += torch.bincount(flat, minlength=vocab)
    everywhere = sums.sum(1, keepdim=True) / times.sum()  # (L, 1, G, D)
    by_token = torch.where(
        times[:, None, None] > 0, sums / times.clamp(min=1)[:, None, None], everywhere
    )
    return by_token, everywhere.expand_as(by_token)


@torch.no_grad()
def batch_losses(net, batches):
    """The loss of every batch of held-out rows."""
    found = []
    for ids, targets in batches:
        logits = net(ids).float()  # (B, T, V)
        found.append(round(F.cross_entropy(logits.mT, targets).item(), 4))
    return found


def study(net, training, held):
    """{what was replaced: a loss a batch of held-out rows}."""
    by_token, for_all = mean_values(net, training)
    layers = range(len(net.blocks))
    found = {"nothing": batch_losses(net, held)}
    for name, means in (("token", by_token), ("all", for_all)):
        for at in layers:
            found[f"{name}, layer {at + 1}"] = batch_losses(with_means(net, {at: means[at]}), held)
    for k, places in title.TOP.items():
        found[f"token, last {k}"] = batch_losses(
            with_means(net, {at: by_token[at] for at in places}), held
        )
    found["all, last 12"] = batch_losses(with_means(net, {at: for_all[at] for at in layers}), held)
    return found


# ---- the record ----------------------------------------------------------------------------------

COMMAND = "python -m evidence.research.mean_values"
WHAT = "A trained standard whose values are replaced by the mean of their token, without training"


def record_of(text):
    return records.EVIDENCE / f"mean_values_{text}.json"


def same_seed(row, seed):
    return row["seed"] == seed


def measured_model(text, seed):
    """(row, head of a new file, words) of one trained model."""
    run = replace(title.BASE_OF[text], plan="standard", seed=seed)
    result = cached(run, quiet=True)
    net, tok = load(result["folder"])
    data = packing.pack(corpora.find(run.corpus), tok, net.config.context)
    chosen = data.train[np.arange(COUNTED) * len(data.train) // COUNTED]  # spread evenly
    parts = [chosen[at : at + AT_ONCE] for at in range(0, COUNTED, AT_ONCE)]
    training = [packing.inputs_and_targets(part)[0] for part in parts]
    found = study(net, training, list(data.valid(AT_ONCE, READ)))
    row = dict(plan="standard", size=run.size, seed=seed, steps=result["steps"])
    row |= dict(held_out=found, counted=COUNTED, read=READ, trained=result["commit"])
    cost = statistics.fmean(found["token, last 12"]) - statistics.fmean(found["nothing"])
    head = results.header(f"{WHAT}; {text}", COMMAND, result["corpus"])
    return row, head, f"{text}, all twelve cost {cost:.3f}"


# ---- for the page --------------------------------------------------------------------------------


def asked_seeds():
    return SEEDS


def recorded_rows(text):
    return rows_once_whole(record_of(text), asked_seeds, same_seed)


def both_recorded():
    return all(map(recorded_rows, TEXTS))


def lead_after(text, what, over="nothing"):
    """How far the model with one replacement is ahead of that with another: below zero, it lost."""
    held = {row["seed"]: row["held_out"] for row in recorded_rows(text)}
    ours, theirs = (
        {seed: Read(statistics.fmean(by[name]), by[name]) for seed, by in held.items()}
        for name in (what, over)
    )
    return as_row_with_rows(what, ours, theirs)


def single(text, name="token"):
    """{layer: the lead} where one layer alone is replaced."""
    return {at: lead_after(text, f"{name}, layer {at}") for at in range(1, title.LAYERS + 1)}


def most(text):
    """(layer, lead) of the layer that loses most alone."""
    return min(single(text).items(), key=lambda item: item[1]["difference"])


def losses_by_layers():
    """What is lost with one layer and with many, and by the control."""
    lines = [["by the token's mean: the layer that loses most"]]
    for text in TEXTS:
        at, row = most(text)
        lines[0].append(f"layer {at}: {row_in_words(row)}")
    for k in title.TOP:
        which = "all twelve layers" if k == title.LAYERS else f"the last {k} layers"
        words = (row_in_words(lead_after(text, f"token, last {k}")) for text in TEXTS)
        lines.append([f"by the token's mean: {which}", *words])
    words = (row_in_words(lead_after(text, "all, last 12")) for text in TEXTS)
    lines.append(["control, one mean for all tokens: all twelve layers", *words])
    return table(["values replaced, without training", *TEXTS], lines)


def sentence():
    """Does a trained standard use the context in its values?"""
    loses = []
    for text in TEXTS:
        row = lead_after(text, "token, last 12")
        loses.append(row["clear"] and row["high"] < -title.MARGIN)
    if all(loses):
        return "So a trained `standard` uses the context in its values, on both texts"
    if not any(loses):
        return "That it uses the context in its values is not shown on either text"
    return (
        f"So it uses the context in its values on {TEXTS[loses.index(True)]} alone, as far as shown"
    )


def foretold():
    """What was written before the first run, and what came."""
    ones, control = {}, {}
    for text in TEXTS:
        ones[text], control[text] = single(text), single(text, "all")
    later = range(2, title.LAYERS + 1)
    costs = {text: {at: -ones[text][at]["difference"] for at in later} for text in TEXTS}
    whole = {text: -lead_after(text, "token, last 12")["difference"] for text in TEXTS}
    for_all = {text: -lead_after(text, "all, last 12")["difference"] for text in TEXTS}
    # losses are rounded to four digits
    first = [abs(ones[text][1]["difference"]) < 5e-5 for text in TEXTS]
    lines = [["layer 1 costs nothing", came(first)]]
    lines.append(
        ["every other layer alone costs less than .05", on_each_text(costs, lambda c: c < 0.05)]
    )
    less = [
        sum(costs[text][at] < -control[text][at]["difference"] / 2 for at in later)
        for text in TEXTS
    ]
    told = " and ".join(f"{n} of {len(later)} on {text}" for n, text in zip(less, TEXTS))
    lines.append(["and less than half of what one mean for all tokens costs there", told])
    last = [
        -lead_after(text, "token, last 4")["difference"]
        > sum(costs[text][at] for at in range(9, 13))
        for text in TEXTS
    ]
    lines.append(["the last four together cost more than the sum of the four", came(last)])
    lines.append(["all twelve cost .1 or more", came([whole[text] >= 0.1 for text in TEXTS])])
    thrice = [for_all[text] >= 3 * whole[text] for text in TEXTS]
    lines.append(["one mean for all tokens costs three times as much", came(thrice)])
    return table(["foretold", "came"], lines)


def came(by_text):
    """ "so", "not so", or on which text it came."""
    some = any(by_text) and not all(by_text)
    return f"so on {TEXTS[by_text.index(True)]} alone" if some else so(any(by_text))


def on_each_text(costs, holds):
    """On each text: of how many layers it holds."""
    counted = {text: sum(map(holds, by.values())) for text, by in costs.items()}
    return " and ".join(f"{n} of {len(costs[text])} on {text}" for text, n in counted.items())


@command("evidence.research.mean_values", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    for text in TEXTS:
        ledger.fill(record_of(text), SEEDS, same_seed, partial(measured_model, text))


if __name__ == "__main__":
    main()
