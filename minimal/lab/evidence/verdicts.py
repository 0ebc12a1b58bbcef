"""Which of the sources' claims do our recorded runs decide? A claim is a few comparisons, and paired seeds judge them.

    python -m minimal.lab.evidence.verdicts      write what the records say into notebooks/evidence/claims.json

Nobody chooses a verdict that is listed here: it follows from the files, and a test fails when the two disagree.
"""

import json
import statistics
import sys

from minimal.data.files import write_whole
from minimal.lab.evidence import intervals, records

LITTLE = dict(
    loss=0.02, f1=1.0
)  # what we call little, in nats and in points: about the spread of one plan's seeds

SEEDS = 3  # pairs below which nothing is decided

FIELDS = dict(
    early=lambda row: statistics.fmean(loss for _, loss in row["valid"][: len(row["valid"]) // 2])
)

WAR = (
    "thirteen_rows",
    "residuals",
    "sharing",
)  # one corpus, size and budget: their runs compare with each other

UP, SHARED = (
    ("residuals", "thirteen_rows"),
    ("sharing", "thirteen_rows"),
)  # the file that a claim leans on first

CODE = (
    "stdlib",
)  # the same systems on another text: told beside a verdict, which rests on the novel

# claim: (files, comparisons). "a < b": a ends lower; "a ~ b": they differ by little; "a <~ b": a is higher by little at
# most; "a wider b": a's seeds lie further apart. "a.entropy_deep" compares that field of the rows, not their loss;
# "a.early" the held-out loss over the first half of training. Where a file has several settings (lengths, depths), a
# comparison must hold in each, or in the one that stands behind "at".
ASKED = {
    "res-beats": (("sizes",), ["resformer < standard"]),
    "res-lengths": (("lengths",), ["resformer < standard"]),
    "res-rivals": (WAR, ["resformer < denseformer", "resformer < neutreno"]),
    "res-combined": (UP, ["resformer-neutreno < resformer"]),
    "res-only-values": (
        UP,
        ["resformer < standard", "resformer < residual-q", "resformer < residual-k"],
    ),
    "res-gold": (UP, ["cross-mean < cross", "cross-mean < identity"]),
    "res-first": (UP, ["resformer < cross-mean", "resformer < cross-all"]),
    "res-similarity": (("inside",), ["resformer.similarity_deep < standard.similarity_deep"]),
    "res-spectrum": (
        ("inside",),
        [
            "standard.log_largest_own < resformer.log_largest_own",
            "standard.log_largest < resformer.log_largest",
        ],
    ),
    "res-cosine": (("inside",), ["standard.eq6 < standard.eq3"]),
    "sv-faster": (WAR, ["svformer.early < standard.early"]),
    "sv-gqa": (WAR, ["svformer < gqa", "svformer < cla"]),
    "sv-with-gqa": (SHARED, ["svformer-gqa <~ gqa"]),
    "sv-keys": (SHARED, ["share-v2 < share-k2"]),
    "sv-q-k": (SHARED, ["svformer < share-q", "svformer < share-k"]),
    "sv-anchors": (SHARED, ["svformer-anchors < svformer"]),
    "bov-deep": (WAR, ["row6 < standard", "row9 < standard", "bov < standard"]),
    "bov-row2": (WAR, ["standard < row2"]),
    "bov-every": (WAR, ["standard < row3", "row5 < standard"]),
    "bov-alternate": (WAR, ["row6 < row4", "row9 < row7"]),
    "bov-adding-v": (WAR, ["row11 ~ row6", "row13 ~ row9"]),
    "bov-specific": (WAR, ["row8 < row5", "row9 < row6"]),
    "bov-uneven": (WAR, ["row11 < row10", "row13 < row12"]),
    "bov-shared": (WAR, ["bov < bov-shared"]),
    "bov-fixed": (WAR, ["bov < bov-fixed"]),
    "bov-every-layer": (WAR, ["bov < bov-every"]),
    "bov-keep": (WAR, ["bov-keep ~ bov"]),
    "bov-skipv1": (SHARED, ["standard < svformer", "standard < skipv1"]),
    "dva-loss": (("dva_factorial",), ["dva/one/noffn/nowo < standard/many/ffn/wo"]),
    "dva-no-ffn": (("dva_factorial",), ["dva/one/noffn/nowo <~ dva/one/ffn/nowo"]),
    "dva-one-head": (("dva_factorial",), ["dva/one/noffn/nowo <~ dva/many/noffn/nowo"]),
    "dva-learned": (("dva_factorial",), ["dva/one/noffn/nowo < dva-random/one/noffn/nowo"]),
    "lam-late": (("inside",), ["modded.table_early < modded.table_late"]),
    "byp-mean": (
        ("bypass",),
        ["standard.f1 < bypass.f1 at 2x32", "standard.f1 < bypass.f1 at 4x64"],
    ),
    "byp-spread": (("bypass",), ["bypass.f1 wider standard.f1"]),
    "byp-alpha": (
        ("bypass_dials",),
        [f"bypass-{which}.f1 ~ bypass.f1" for which in ("global", "layer", "head")],
    ),
}


def settings(files):
    """{(size, what the runs were asked, as text): their rows}: only runs of one setting are compared."""
    groups = {}
    for file in files:
        if (records.EVIDENCE / f"{file}.json").exists():
            for row in records.read(file)["rows"]:
                groups.setdefault(
                    (row["size"], json.dumps(row.get("asked", {}), sort_keys=True)), []
                ).append(row)
    return groups


def holds(relation, low, high, little):
    """Does the interval of a - b say so? True, False, or None where it cannot tell."""
    yes, no = {
        "<": (high < 0, low > 0),
        "<~": (high < little, low > little),
        "~": (-little < low and high < little, low > little or high < -little),
    }[relation]
    return None if yes == no else yes


def spread_apart(ours, theirs):
    """The ratio of two spreads between seeds, and what an F test at 5 % says of it."""
    one, two = (intervals.mean_spread(list(values.values()))[1] for values in (ours, theirs))
    p = intervals.f_test(one, len(ours), two, len(theirs))
    return dict(ratio=one / two, p=p, holds=one > two if p < 0.05 else None)


def by_seed(rows, name):
    """{seed: value} of "plan" (its loss) or of "plan.field"."""
    plan, _, field = name.partition(".")
    read = FIELDS.get(field, lambda row: row[field or "loss"])
    return {row["seed"]: read(row) for row in rows if row["plan"] == plan}


def compared(files, comparison):
    """One dict a setting: the comparison, the setting, n, what was found, and whether it holds."""
    first, relation, second, *at = comparison.split()
    little, found = LITTLE.get(first.partition(".")[2] or "loss", 0.0), []
    for (size, asked), rows in settings(files).items():
        ours, theirs = by_seed(rows, first), by_seed(rows, second)
        both = sorted(ours.keys() & theirs.keys())
        if not both or at and size != at[1]:
            continue
        row = dict(
            first=first,
            second=second,
            size=size,
            asked=json.loads(asked),
            n=len(both),
            enough=len(both) >= SEEDS,
        )
        if relation == "wider":
            row |= spread_apart(ours, theirs) if row["enough"] else dict(ratio=None, holds=None)
        else:
            change, low, high = intervals.interval([ours[seed] - theirs[seed] for seed in both])
            row |= dict(
                difference=change,
                low=low,
                high=high,
                holds=holds(relation, low, high, little) if row["enough"] else None,
            )
        found.append(row)
    return found


def sentence(found, several):
    """One comparison in words, the setting named only where there are several."""
    more = {k: v for k, v in found["asked"].items() if k not in ("corpus", "steps", "batch")}
    setting = (
        ", ".join(f"{k} {v}" for k, v in (more.pop("changes", {}) | more).items()) or found["size"]
    )
    (one, _, field), (other, _, same) = (
        found["first"].partition("."),
        found["second"].partition("."),
    )
    at, n = (
        f" at {setting}" if several else "",
        "one seed" if found["n"] == 1 else f"{found['n']} seeds",
    )
    if "ratio" in found:
        told = (
            f"{found['ratio']:.1f} times (F test p = {found['p']:.2f}, {n})"
            if found["ratio"]
            else f"too few ({n})"
        )
        return f"spread of {one} against {other}{at}: {told}"
    names = (
        f"{one} less {other}{f', {field}' if field else ''}"
        if field == same
        else f"{found['first']} less {found['second']}"
    )
    interval = "" if found["low"] is None else f"{found['low']:+.3f} to {found['high']:+.3f}, "
    return f"{names}{at}: {found['difference']:+.3f}{'' if field else ' nats'} ({interval}{n})"


def judged(claim, files=None):
    """-> (verdict, evidence file or None, what was measured in words) of a claim that is listed above; of its own files,
    or of others."""
    asked, comparisons = ASKED[claim]
    files = files or asked
    parts = [compared(files, comparison) for comparison in comparisons]
    every = [found for part in parts for found in part]
    several = len({(found["size"], json.dumps(found["asked"])) for found in every}) > 1
    said = "; ".join(sentence(found, several) for found in every)
    if any(found["holds"] is False for found in every):
        verdict = "not reproduced"
    elif not all(parts) or not all(found["enough"] for found in every):
        verdict = "open"
    else:
        verdict = (
            "reproduced" if all(found["holds"] for found in every) else "not testable at our scale"
        )
        said += "" if verdict == "reproduced" else ": too close for our seeds to tell"
    return verdict, f"notebooks/evidence/{files[0]}.json" if every else None, said and said + "."


def settled(book):
    """The claims as they stand in the file, those listed above with the verdict that the records give."""
    told = []
    for claim in book:
        if claim["id"] in ASKED:
            verdict, evidence, measured = judged(claim["id"])
            claim = claim | dict(
                verdict=verdict, evidence=evidence or claim["evidence"], measured=measured
            )
            if ASKED[claim["id"]][0] == WAR:
                elsewhere, _, measured = judged(claim["id"], CODE)
                claim |= (
                    dict(on_code=f"On code {elsewhere}: {measured}") if elsewhere != "open" else {}
                )
        told.append(claim)
    return told


def main():
    path, book = records.EVIDENCE / "claims.json", records.claims()
    if lost := ASKED.keys() - {claim["id"] for claim in book}:
        sys.exit(f"verdicts: claims.json has no {', '.join(sorted(lost))}: add its row")
    told = settled(book)
    lines = ",\n ".join(json.dumps(claim, ensure_ascii=False) for claim in told)
    write_whole(path, f"[\n {lines}\n]\n")
    for old, new in zip(book, told):
        if old != new:
            print(f"{new['id']:18}{new['verdict']:28}{new['measured']}")


if __name__ == "__main__":
    main()
