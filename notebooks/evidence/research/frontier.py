"""What came after the five sources: which runs would tell what it is worth? Cells for grids.

A grid is recorded on both texts: `frontier_code` and `frontier_novel`, and so on.
"""

import torch

from evidence.research.studies import trained
from minimal.analysis import observe
from minimal.model.depth import Mixture


def plan_cells(*names, **changes):
    """A cell a plan; `changes` are of its size."""
    return [dict(plan=name) | (dict(changes=changes) if changes else {}) for name in names]


# One of each kind, beside its nearest relatives. A bank of bigrams at eight rows a token, at bov's
# own rows (-small: equal parameters), and at two rows a token with the MLPs narrowed to bov's
# parameters; a test counts.
KINDS = [
    *plan_cells("standard", "bov", "bov-fixed", "vplus", "resformer", "dva"),
    *plan_cells("ngram", "ngram-fixed", "ngram-small"),
    *plan_cells("ngram-two", hidden=85),
    *plan_cells("mla", "gated", "mudd", "ple", "engram"),
]

# The same lookup into the stream, into V, into both; then tables at the parameters of standard.
PLACES = [
    *plan_cells("standard", "ple", "ple-v", "ple-both", "engram", "engram-v", "engram-both"),
    *plan_cells("bov", hidden=96),
    *plan_cells("ngram-small", hidden=96),
    *plan_cells("ple", hidden=103),
    *plan_cells("engram", hidden=75),
]

# Other forms: all ids hashed, three ids, beside V; half the cache in four ways; gates at DVA's
# parameters; a mixture of layers that no token chooses, and one by attention over the layers.
FORMS = [
    *plan_cells("standard", "bov", "vplus", "ngram", "ngram-hash", "ngram-3", "ngram-plus"),
    *plan_cells("gqa", "mla-half", "svformer", "bov-every"),
    *plan_cells("dva", "gated-bare", "gated-head", "mudd", "mudd-fixed", "attnres"),
]

# Asked after FORMS had shown that attention over depth takes the values of layers 3 to 7 from the
# embedding: is the last third the right place for values by token?
EARLY = plan_cells("standard", "row9", "row9-early", "bov", "bov-early")

QUESTIONS = dict(
    frontier=("What came next: one of each kind beside its relatives", KINDS),
    frontier_places=("One lookup into the stream, into V, into both; at equal parameters", PLACES),
    frontier_forms=("Hashes, orders, half a cache in four ways, gates, other mixtures", FORMS),
    frontier_early=("Values by token in layers 3 to 6 or in the last third", EARLY),
)
AFTER_LOOKING = ("frontier_early", "frontier_forms")  # asked, or grown, after looking at the others


def depth_study(result):
    """Which layers does a dynamic mixture take its values from? By layer, the share of every part
    in what it adds up: |a_j| times the part's size, over 16 held-out texts. Other plans: {}."""
    model, ids = trained(result)
    values = {at: block.attention.value for at, block in enumerate(model.blocks) if block.attention}
    mixtures = {at: source for at, source in values.items() if isinstance(source, Mixture)}
    if not mixtures:
        return {}
    shares = {}
    with torch.no_grad():
        tape = observe(model, ids)
        for at, source in mixtures.items():
            sizes = source.parts(tape).norm(dim=2)  # (B, T, at + 1)
            added = source.shares(tape).abs() * sizes
            mean = (added / added.sum(-1, keepdim=True)).mean((0, 1))
            shares[at] = [round(share, 4) for share in mean.tolist()]
    return dict(depth=shares)
