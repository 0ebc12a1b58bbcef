"""Which of the sources' claims do our recorded runs decide? Verdicts from paired seeds.

    python -m minimal.lab.evidence.verdicts      write them into notebooks/evidence/claims.json

A claim is a few comparisons. Nobody chooses a verdict that is listed here: it follows from the
files, and a test fails when the two disagree.
"""

import json
import statistics

from minimal.command import command
from minimal.data.files import write_whole
from minimal.lab.evidence import intervals, records

# What we call little. In nats: half of ResFormer's lead on the novel (.021), the smallest of the
# leads that a source is named after; whoever misses a difference below that misses no main effect.
# In points of F1: about the spread of one plan's seeds.
LITTLE = dict(loss=0.01, f1=1.0)

SEEDS = 3  # pairs below which nothing is decided


def early(row):
    """The mean held-out loss over the first half of training."""
    losses = [loss for _, loss in row["valid"]]
    return statistics.fmean(losses[: len(losses) // 2])


FIELDS = dict(early=early)  # what a comparison may name besides the fields of a row

# one corpus, size and budget: runs of these files compare with each other
WAR = ("thirteen_rows", "residuals", "sharing")

# the file that a claim leans on comes first
UP, SHARED = ("residuals", "thirteen_rows"), ("sharing", "thirteen_rows")

# the same systems on another text: told beside a verdict, which rests on the novel
CODE = ("stdlib",)

# claim: (files, comparisons)
#     "a < b"         a ends lower
#     "a ~ b"         they differ by little
#     "a <~ b"        a is higher by little at most
#     "a wider b"     a's seeds lie further apart
# "a.entropy_deep" compares that field of the rows, not their loss. Where a file has several
# settings (lengths, depths), a comparison must hold in each, or in the one that stands behind "at".
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
    "res-spectrum": (("inside",), ["standard.log_largest_own < resformer.log_largest_own"]),
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
    "bov-largest-gain": (WAR, ["row9 < row13", "row9 < row8"]),
    "dva-loss": (("dva_factorial",), ["dva/one/noffn/nowo < standard/many/ffn/wo"]),
    "dva-no-ffn": (("dva_factorial",), ["dva/one/noffn/nowo <~ dva/one/ffn/nowo"]),
    "dva-learned": (("dva_factorial",), ["dva/one/noffn/nowo < dva-random/one/noffn/nowo"]),
    "lam-late": (("inside",), ["modded.table_early < modded.table_late"]),
    "byp-mean": (
        ("bypass",),
        ["standard.f1 < bypass.f1 at 2x32", "standard.f1 < bypass.f1 at 4x64"],
    ),
    "byp-spread": (("bypass",), ["bypass.f1 wider standard.f1"]),
    "byp-limited": (
        ("bypass_dials",),
        ["bypass.f1 wider bypass-first.f1", "bypass.f1 wider bypass-last.f1"],
    ),
    "byp-alpha": (
        ("bypass_dials",),
        [f"bypass-{which}.f1 ~ bypass.f1" for which in ("global", "layer", "head")],
    ),
}


# ---- one comparison ------------------------------------------------------------------------------


def settings(files):
    """{(size, what the runs were asked, as text): rows}: only runs of one setting are compared."""
    groups = {}
    for file in files:
        for row in records.rows_of(records.EVIDENCE / f"{file}.json"):
            asked = json.dumps(row.get("asked", {}), sort_keys=True)
            groups.setdefault((row["size"], asked), []).append(row)
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
    little = LITTLE.get(first.partition(".")[2] or "loss", 0.0)
    table = []
    for (size, asked), rows in settings(files).items():
        if at and size != at[1]:
            continue
        ours, theirs = by_seed(rows, first), by_seed(rows, second)
        both = sorted(ours.keys() & theirs.keys())
        if not both:
            continue
        row = dict(first=first, second=second, size=size, asked=json.loads(asked))
        row |= dict(n=len(both), enough=len(both) >= SEEDS, holds=None)
        if relation == "wider":
            row |= spread_apart(ours, theirs) if row["enough"] else dict(ratio=None)
        else:
            change, low, high = intervals.interval([ours[seed] - theirs[seed] for seed in both])
            row |= dict(difference=change, low=low, high=high)
            if row["enough"]:
                row["holds"] = holds(relation, low, high, little)
        table.append(row)
    return table


# ---- in words ------------------------------------------------------------------------------------


def sentence(found, several):
    """One comparison in words, the setting named only where there are several."""
    one, _, field = found["first"].partition(".")
    other, _, other_field = found["second"].partition(".")
    at = f" at {setting_of(found)}" if several else ""
    n = "one seed" if found["n"] == 1 else f"{found['n']} seeds"
    if "ratio" in found:
        spread = f"too few ({n})"
        if found["ratio"]:
            spread = f"{found['ratio']:.1f} times (F test p = {found['p']:.2f}, {n})"
        return f"spread of {one} against {other}{at}: {spread}"
    names = f"{found['first']} less {found['second']}"
    if field == other_field:
        names = f"{one} less {other}" + (f", {field}" if field else "")
    unit = "" if field else " nats"
    interval = "" if found["low"] is None else f"{found['low']:+.3f} to {found['high']:+.3f}, "
    return f"{names}{at}: {found['difference']:+.3f}{unit} ({interval}{n})"


def setting_of(found):
    """What a setting is beyond corpus and budget, or else its size."""
    asked = {k: v for k, v in found["asked"].items() if k not in ("corpus", "steps", "batch")}
    changes = asked.pop("changes", {})
    return (
        ", ".join(f"{name} {value}" for name, value in (changes | asked).items()) or found["size"]
    )


def judged(claim, files=None):
    """(verdict, evidence file or None, what was measured in words) of a claim that is listed above;
    from its own files, or from others."""
    own_files, comparisons = ASKED[claim]
    files = files or own_files
    parts = [compared(files, comparison) for comparison in comparisons]
    every = [found for part in parts for found in part]
    several = len({(found["size"], json.dumps(found["asked"])) for found in every}) > 1
    words = "; ".join(sentence(found, several) for found in every)
    if any(found["holds"] is False for found in every):
        verdict = "not reproduced"
    elif not all(parts) or not all(found["enough"] for found in every):
        verdict = "open"
    elif all(found["holds"] for found in every):
        verdict = "reproduced"
    else:
        verdict = "too close for our seeds"
    evidence = f"notebooks/evidence/{files[0]}.json" if every else None
    return verdict, evidence, words and words + "."


# ---- the file of claims --------------------------------------------------------------------------


def settled(book):
    """The claims of the file, those listed above with the verdict that the records give."""
    return [with_verdict(claim) if claim["id"] in ASKED else claim for claim in book]


def with_verdict(claim):
    verdict, evidence, measured = judged(claim["id"])
    evidence = evidence or claim["evidence"]
    claim = claim | dict(verdict=verdict, evidence=evidence, measured=measured)
    if ASKED[claim["id"]][0] == WAR:
        on_code, _, measured = judged(claim["id"], CODE)
        if on_code != "open":
            claim |= dict(verdict_on_code=on_code, on_code=measured)
    return claim


@command("minimal.lab.evidence.verdicts", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    path, book = records.EVIDENCE / "claims.json", records.claims()
    lost = ASKED.keys() - {claim["id"] for claim in book}
    if lost:
        raise ValueError(f"claims.json has no {', '.join(sorted(lost))}: add its row")
    after = settled(book)
    lines = ",\n ".join(json.dumps(claim, ensure_ascii=False) for claim in after)
    write_whole(path, f"[\n {lines}\n]\n")
    changed = [new for old, new in zip(book, after) if old != new]
    for claim in changed:
        print(f"{claim['id']:18}{claim['verdict']:28}{claim['measured']}")
    if not changed:
        print("verdicts: every claim already says what the records say")


if __name__ == "__main__":
    main()
