"""What does a trained standard lose when its values forget their context? Without training: each
layer's value is replaced by the mean value of its token, layer by layer, then in many together.

    python -m evidence.measured.mean_values     measure what mean_values_*.json lack

Means are counted on training rows, losses on held-out rows. As the control each value is replaced
by one mean for all tokens, which forgets the token, too. Models come from the cache of runs: they
are those of the grid `dose` at no layers, seeds 0 to 2. What was foretold: asked/means.toml.
"""

import copy
import statistics
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from course import records
from evidence.lab.asked import grids
from minimal.analysis import observe
from minimal.command import command
from minimal.compare import ledger
from minimal.compare.runs import cached
from minimal.data import corpora, packing, results
from minimal.model.values import Source
from minimal.train import load

TEXTS, SEEDS = ("code", "novel"), (0, 1, 2)
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
    for k in (2, 4, 8, 12):
        forgotten = {at: by_token[at] for at in layers[-k:]}
        found[f"token, last {k}"] = batch_losses(with_means(net, forgotten), held)
    found["all, last 12"] = batch_losses(with_means(net, {at: for_all[at] for at in layers}), held)
    return found


# ---- the record ----------------------------------------------------------------------------------

COMMAND = "python -m evidence.measured.mean_values"
WHAT = "A trained standard whose values are replaced by the mean of their token, without training"


def record_of(text):
    return records.MEASURED / f"mean_values_{text}.json"


def same_seed(row, seed):
    return row["seed"] == seed


def measured_model(text, seed):
    """(row, head of a new file, words) of one trained model."""
    asked = grids()[f"dose_{text}"].runs()
    run = next(run for run in asked if (run.plan, run.seed) == ("standard", seed))
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


@command("evidence.measured.mean_values", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    for text in TEXTS:
        ledger.fill(record_of(text), SEEDS, same_seed, partial(measured_model, text))


if __name__ == "__main__":
    main()
