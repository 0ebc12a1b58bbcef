"""What do trained models look like inside? The recorded runs of a few plans, measured layer by
layer on held-out text.

    python -m evidence.measured.portraits              measure what inside.json lacks
    python -m evidence.measured.portraits --text code  the same on code: inside_code.json

Models come from the cache of runs. Numbers that sum a model up (`entropy_deep` and the like) stand
beside the layers, so that verdicts can compare them.
"""

import math
import statistics
from dataclasses import replace

import torch

from course import records
from evidence.lab.studies import across_study
from minimal import analysis
from minimal.command import command
from minimal.compare import ledger
from minimal.compare.runs import cached
from minimal.data import corpora, results
from minimal.model.values import Mix
from minimal.train import load
from minimal.training.run import Run

NOVEL = Run(size="tiny", corpus="war-and-peace", steps=500, evaluate=50, rows=371)
CODE = replace(NOVEL, corpus="stdlib")
EQUAL = dict.fromkeys(("alpha", "beta"), dict(lr=0.05, decay=0.0, betas=(0.9, 0.95)))

PORTRAYED = {
    "standard": dict(plan="standard"),
    "resformer": dict(plan="resformer"),
    "svformer": dict(plan="svformer"),
    "bov": dict(plan="bov"),
    "modded": dict(plan="modded"),
    "row13": dict(plan="row13"),
    "row13-equal": dict(plan="row13", overrides=EQUAL),  # both coefficients at one rate
}

SEEDS, HELD_TEXTS = (0, 1, 2), 64


def held_texts(corpus, tok, length):
    """(HELD_TEXTS, length) ids of the corpus's held-out side."""
    held = "".join(corpora.find(corpus).documents("valid"))
    ids = tok.encode(held)[: HELD_TEXTS * length]
    return torch.tensor(ids).view(HELD_TEXTS, length)


# ---- one model -----------------------------------------------------------------------------------


@torch.no_grad()
def portrait(model, ids):
    """By layer with attention: entropy of token importance, likeness of tokens; of the values as
    read, and of the layer's own (equal where nothing is mixed), the largest eigenvalue and the
    share that the token explains. And the sums that the sources speak of."""
    tape = analysis.observe(model, ids)
    layers, half = sorted(tape.queries), len(model.blocks) // 2
    maps = [analysis.attention_map(model, tape, at) for at in layers]
    read = [tape.values[at].dense() for at in layers]  # (B, T, G, D) each
    own = [tape.raw.get(at) for at in layers]
    found = dict(
        layers=layers,
        entropy=[analysis.token_entropy(weights).item() for weights in maps],
        similarity=[analysis.similarity(tape.streams[at + 1]).item() for at in layers],
        largest=[largest(v) for v in read],
        largest_own=[None if v is None else largest(v) for v in own],
        token=[token_share(v, ids) for v in read],
        token_own=[None if v is None else token_share(v, ids) for v in own],
    )
    shares = table_shares(model, tape, ids)
    if shares:
        found["table"] = shares

    # sums: means over the upper half, over all layers, over the tables below and in that half
    for name in ("entropy", "similarity"):
        upper = [x for at, x in zip(layers, found[name]) if at >= half]
        found[f"{name}_deep"] = statistics.fmean(upper)
    early = [share for at, share in shares.items() if at < half]
    late = [share for at, share in shares.items() if at >= half]
    for name, some in (("table_early", early), ("table_late", late)):
        if some:
            found[name] = statistics.fmean(some)
    found["log_largest"] = statistics.fmean(map(math.log, found["largest"]))
    if None not in found["largest_own"]:
        found["log_largest_own"] = statistics.fmean(map(math.log, found["largest_own"]))
    return found


def largest(v):
    """The largest eigenvalue of values v (B, T, G, D)."""
    return analysis.spectrum(v.flatten(2))[0].item()


def token_share(v, ids):
    """The share of values v (B, T, G, D) that the token explains."""
    return analysis.explained(v.flatten(2).flatten(0, 1), ids.flatten())


def table_shares(model, tape, ids):
    """By layer that mixes a v + b E[id]: the table's share by lengths, a and b the layer's own."""
    found = {}
    for at, block in enumerate(model.blocks):
        source = block.attention.value if block.attention else None
        if isinstance(source, Mix) and source.y.bank is not None:
            v = source.a() * tape.raw[at]  # (B, T, G, D)
            e = source.b() * model.banks[source.y.bank](ids)  # (B, T, G, D)
            v, e = v.norm(dim=-1), e.norm(dim=-1)
            found[at] = (e / (v + e)).mean().item()
    return found


# ---- the recorded models -------------------------------------------------------------------------


def measured_run(run, plan):
    """One row: a recorded run from the inside; a standard model also says what stands in for
    cross-layer attention."""
    result = cached(run, quiet=True)
    model, tok = load(result["folder"])
    ids = held_texts(run.corpus, tok, model.config.context)
    row = dict(plan=plan, size=run.size, seed=run.seed, steps=result["steps"])
    row |= dict(loss=result["valid"][-1]["loss"]) | portrait(model, ids)
    row |= dict(asked=dict(corpus=run.corpus, steps=run.steps), trained=result["commit"])
    if run.plan == "standard":
        study = across_study(model, ids)
        for name in ("eq3", "eq6"):
            row[name] = statistics.fmean(layer[name] for layer in study)
    return rounded(row), result["corpus"]


def rounded(value):
    """The same with five digits behind the point, in lists and dicts, too."""
    if isinstance(value, float):
        return round(value, 5)
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return value


@command("evidence.measured.portraits", __doc__)
def main(parser, argv):
    parser.add_argument("--text", choices=("novel", "code"), default="novel")
    asked = parser.parse_args(argv)
    name, base = ("inside", NOVEL) if asked.text == "novel" else ("inside_code", CODE)
    words = " ".join(["python -m evidence.measured.portraits", *argv])
    path = records.MEASURED / f"{name}.json"

    def recorded(row, cell):
        return (row["seed"], row["plan"]) == cell

    def make(cell):
        seed, plan = cell
        row, corpus = measured_run(replace(base, seed=seed, **PORTRAYED[plan]), plan)
        what = f"Recorded models from the inside: means over {HELD_TEXTS} held-out texts"
        entropy, likeness = row["entropy_deep"], row["similarity_deep"]
        said = f"entropy {entropy:.3f}, likeness {likeness:.3f} in the upper half"
        return row, results.header(what, words, corpus), said

    cells = [(seed, plan) for seed in SEEDS for plan in PORTRAYED]
    if not ledger.missing(path, cells, recorded):
        print(f"{name}: whole, {len(cells)} rows; nothing to do")
    ledger.fill(path, cells, recorded, make)


if __name__ == "__main__":
    main()
