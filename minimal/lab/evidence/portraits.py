"""What do trained models look like inside? The recorded runs of a few plans, measured layer by layer on held-out text.

    python -m minimal.lab.evidence.portraits            measure what notebooks/evidence/inside.json lacks; models come from the run cache

Numbers that sum a model up (`entropy_deep` and the like) stand beside the layers, so that verdicts can compare them.
"""

import math
import statistics
from dataclasses import replace

import torch

from minimal import analysis
from minimal.data import corpora, results
from minimal.lab.evidence import records
from minimal.lab.evidence.grids import EQUAL, WAR
from minimal.lab.evidence.runs import cached
from minimal.train import load

PLANS = {
    plan: dict(plan=plan)
    for plan in ("standard", "resformer", "svformer", "bov", "modded", "row13")
}

PLANS["row13-equal"] = dict(plan="row13", overrides=EQUAL)  # both coefficients at one rate

SEEDS, TEXTS = (0, 1, 2), 64


def texts(corpus, tok, length):
    """(TEXTS, length) of the corpus's held-out side."""
    ids = tok.encode("".join(corpora.find(corpus).documents("valid")))[: TEXTS * length]
    return torch.tensor(ids).view(TEXTS, length)


def tables(model, tape, ids):
    """By layer: the share of the table in a v + b E[id], by lengths (a, b: the layer's own), where a layer has both."""
    found = {}
    for at, block in enumerate(model.blocks):
        source = getattr(block.attention, "value", None)
        if hasattr(source, "a") and getattr(source.y, "bank", None) is not None:
            v, e = (
                source.a() * tape.raw[at],
                source.b() * model.banks[source.y.bank](ids),
            )  # (B, T, H, D) each
            v, e = v.norm(dim=-1), e.norm(dim=-1)
            found[at] = (e / (v + e)).mean().item()
    return found


@torch.no_grad()
def portrait(model, ids):
    """By layer: entropy of token importance, likeness of tokens; of the values as read, and of the layer's own (equal
    where nothing is mixed), the largest eigenvalue and the share that the token explains; and the sums that the sources
    speak of."""
    tape = analysis.observe(model, ids)
    layers, half = (
        sorted(tape.queries),
        len(model.blocks) // 2,
    )  # layers with attention; the upper half begins here
    largest = lambda v: analysis.spectrum(v.flatten(2))[0].item()
    token = lambda v: analysis.explained(v.flatten(2).flatten(0, 1), ids.flatten())
    own = lambda measure: [measure(tape.raw[n]) if n in tape.raw else None for n in layers]
    got = dict(
        layers=layers,
        entropy=[
            analysis.token_entropy(analysis.attention_map(model, tape, n)).item() for n in layers
        ],
        similarity=[analysis.similarity(tape.streams[n + 1]).item() for n in layers],
        largest=[largest(tape.values[n].dense()) for n in layers],
        largest_own=own(largest),
        token=[token(tape.values[n].dense()) for n in layers],
        token_own=own(token),
    )
    deep = {
        f"{name}_deep": statistics.fmean(x for n, x in zip(layers, got[name]) if n >= half)
        for name in ("entropy", "similarity")
    }
    logs = dict(log_largest=statistics.fmean(map(math.log, got["largest"])))
    if None not in got["largest_own"]:
        logs |= dict(log_largest_own=statistics.fmean(map(math.log, got["largest_own"])))
    mixed = tables(model, tape, ids)
    if mixed:
        early, late = (
            [share for at, share in mixed.items() if (at >= half) == late] for late in (False, True)
        )
        got |= dict(table=mixed)
        deep |= dict(table_early=statistics.fmean(early), table_late=statistics.fmean(late))
    return got | deep | logs


def rounded(value):
    if isinstance(value, float):
        return round(value, 5)
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def measured(run, plan):
    """One row: a recorded run from the inside; a standard model also says what stands in for cross-layer attention."""
    result = cached(run, quiet=True)
    model, tok = load(result["folder"])
    ids = texts(run.corpus, tok, model.config.context)
    row = dict(
        plan=plan,
        size=run.size,
        seed=run.seed,
        steps=result["steps"],
        loss=result["valid"][-1]["loss"],
    )
    row |= portrait(model, ids) | dict(asked=dict(corpus=run.corpus, steps=run.steps))
    if run.plan == "standard":
        study = analysis.across_study(model, ids)
        row |= {name: statistics.fmean(layer[name] for layer in study) for name in ("eq3", "eq6")}
    return rounded(row), result["corpus"]


def main():
    path = records.EVIDENCE / "inside.json"
    for seed in SEEDS:
        for plan, changes in PLANS.items():
            rows = records.read(path)["rows"] if path.exists() else []
            if not any((row["plan"], row["seed"]) == (plan, seed) for row in rows):
                row, corpus = measured(replace(WAR, seed=seed, **changes), plan)
                head = results.header(
                    f"Recorded models from the inside: means over {TEXTS} held-out texts",
                    "python -m minimal.lab.evidence.portraits",
                    corpus,
                )
                results.append(path, row, head)
                print(
                    f"{plan:11} seed {seed}: entropy {row['entropy_deep']:.3f}, likeness {row['similarity_deep']:.3f} in "
                    f"the upper half",
                    flush=True,
                )


if __name__ == "__main__":
    main()
