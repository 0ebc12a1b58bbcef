"""Which of the sources' claims do our recorded runs decide? Verdicts from paired seeds.

    python -m evidence.research.verdicts      write them into notebooks/evidence/claims.json

A claim is a few comparisons. Nobody chooses a verdict that is listed here: it follows from the
files, and a test fails when the two disagree. `python -m evidence.research.page` writes them, too.
"""

import json

from course import records
from course.significance import benjamini_hochberg, holm
from evidence.research import notes
from evidence.research.grids import EXPLORATORY, GRIDS
from evidence.research.pairs import compared, comparison_in_words
from minimal.command import command
from minimal.data.files import write_whole

# one corpus, size and budget: runs of these files compare with each other
ON_NOVEL = ("thirteen_rows", "residuals", "sharing")

# the file that a claim leans on comes first
UP, SHARED = ("residuals", "thirteen_rows"), ("sharing", "thirteen_rows")

# gains at rates around what the paper's is at our batch: at the recipe's they silence layers
SLOW_GAINS, BUDGETS = ("gains_novel",), ("budgets_novels",)

# what came after the five sources
NEXT = ("frontier_novel",)

# the same on the other text: told beside a verdict, which rests on the novel
CODE_FILES = ("stdlib",)
ON_CODE = {
    ON_NOVEL: CODE_FILES,
    ("inside",): ("inside_code",),
    NEXT: ("frontier_code",),
    SLOW_GAINS: ("gains_code",),
    BUDGETS: ("budgets_code",),
}

# claim: (files, comparisons)
#     "a < b"         a ends lower
#     "a ~ b"         they differ by little
#     "a <~ b"        a is higher by little at most
#     "a wider b"     a's seeds lie further apart
# "a.entropy_deep" compares that field of the rows, not their loss. Where a file has several
# settings (lengths, depths), a comparison must hold in each, or in the one that stands behind "at",
# a size or a number of steps.
CLAIMED = {
    "res-beats": (("sizes",), ["resformer < standard"]),
    "res-lengths": (("lengths",), ["resformer < standard"]),
    "res-rivals": (ON_NOVEL, ["resformer < denseformer", "resformer < neutreno"]),
    "res-combined": (UP, ["resformer-neutreno < resformer"]),
    "res-only-values": (
        UP,
        ["resformer < standard", "resformer < residual-q", "resformer < residual-k"],
    ),
    "res-gold": (UP, ["cross-mean < cross", "cross-mean < identity"]),
    "res-first": (UP, ["resformer < cross-mean", "resformer < cross-all"]),
    "res-spectrum": (("inside",), ["standard.log_largest_own < resformer.log_largest_own"]),
    "res-cosine": (("inside",), ["standard.eq6 < standard.eq3"]),
    "sv-faster": (ON_NOVEL, ["svformer.early < standard.early"]),
    "sv-surpassed": (BUDGETS, ["standard < svformer at 4000"]),
    "sv-gqa": (ON_NOVEL, ["svformer < gqa", "svformer < cla"]),
    "sv-with-gqa": (SHARED, ["svformer-gqa <~ gqa"]),
    "sv-keys": (SHARED, ["share-v2 < share-k2"]),
    "sv-q-k": (SHARED, ["svformer < share-q", "svformer < share-k"]),
    "sv-anchors": (SHARED, ["svformer-anchors < svformer"]),
    "bov-deep": (ON_NOVEL, ["row6 < standard", "row9 < standard", "bov < standard"]),
    "bov-row2": (ON_NOVEL, ["standard < row2"]),
    "bov-every": (ON_NOVEL, ["standard < row3", "row5 < standard"]),
    "bov-alternate": (SLOW_GAINS, ["row6 < row4", "row9 < row7"]),
    "bov-adding-v": (ON_NOVEL, ["row11 ~ row6", "row13 ~ row9"]),
    "bov-gains": (ON_NOVEL, ["row5 <~ row10", "row8 <~ row12", "bov-fixed <~ bov-keep"]),
    "bov-no-cost": (ON_NOVEL, ["row5 <~ standard", "row8 <~ standard", "bov-fixed <~ standard"]),
    "bov-specific": (ON_NOVEL, ["row8 < row5", "row9 < row6"]),
    "bov-uneven": (ON_NOVEL, ["row11 < row10", "row13 < row12"]),
    "bov-shared": (SLOW_GAINS, ["bov < bov-shared"]),
    "bov-fixed": (ON_NOVEL, ["bov < bov-fixed"]),
    "bov-every-layer": (SLOW_GAINS, ["bov < bov-every"]),
    "bov-keep": (ON_NOVEL, ["bov-fixed <~ bov-keep"]),
    "bov-largest-gain": (ON_NOVEL, ["row9 < row13", "row9 < row8"]),
    "dva-loss": (("dva_factorial",), ["dva/one/noffn/nowo < standard/many/ffn/wo"]),
    "dva-no-ffn": (("dva_factorial",), ["dva/one/noffn/nowo <~ dva/one/ffn/nowo"]),
    "dva-learned": (("dva_factorial",), ["dva/one/noffn/nowo < dva-random/one/noffn/nowo"]),
    "lam-late": (("inside",), ["modded.table_early < modded.table_late"]),
    "new-mla-mha": (NEXT, ["mla < standard"]),
    "new-gated-better": (NEXT, ["gated < standard"]),
    "new-mudd-better": (NEXT, ["mudd < standard"]),
    "new-ple-better": (NEXT, ["ple < standard"]),
    "new-ngram-second": (NEXT, ["ngram-small < bov"]),
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


# their comparisons were chosen after the records had been looked at
AFTER_A_LOOK = (
    "bov-keep",
    "bov-every-layer",
    "bov-alternate",
    "bov-shared",
    "sv-surpassed",
    "bov-gains",
    "bov-no-cost",
    "new-after-shared",
    "new-after-depth",
)


# ---- verdicts ------------------------------------------------------------------------------------


def judged(claim, files=None, most_seeds=True):
    """(verdict, evidence file or None, what was measured in words) of a claim that is listed above;
    from its own files, or from others, and from grids with more seeds where there are."""
    every, lacking = comparisons_of(claim, files, most_seeds)
    several = len({(found["size"], json.dumps(found["asked"])) for found in every}) > 1
    words = "; ".join(comparison_in_words(found, several) for found in every)
    verdict = verdict_of(found["holds"] for found in every)
    if verdict != REFUTED and (lacking or not all(found["enough"] for found in every)):
        verdict = "open"
    evidence = f"notebooks/evidence/{every[0]['file']}.json" if every else None
    return verdict, evidence, words and words + "."


REFUTED = "not reproduced"


def verdict_of(holding):
    """Of comparisons that hold (True), do not (False), or cannot be told (None)."""
    holding = list(holding)
    if False in holding:
        return REFUTED
    return "reproduced" if all(holding) else "too close for our seeds"


def comparisons_of(claim, files=None, most_seeds=True):
    """(everything compared for a claim, whether one of its comparisons has no runs)."""
    own_files, comparisons = CLAIMED[claim]
    parts = [compared(files or own_files, one, most_seeds) for one in comparisons]
    return [found for part in parts for found in part], not all(parts)


# ---- many comparisons ----------------------------------------------------------------------------


def corrected(on_code=False):
    """(how many comparisons lie behind the verdicts on a text, {claim: (by Benjamini and Hochberg,
    by Holm)}): does what decided it stay clear at 5 % among them all? Undecided claims: none."""
    asked = {c: ON_CODE.get(files) if on_code else files for c, (files, _) in CLAIMED.items()}
    found = {claim: comparisons_of(claim, files)[0] for claim, files in asked.items() if files}
    ps = {
        (claim, i): one["p"]
        for claim, every in found.items()
        for i, one in enumerate(every)
        if one["p"] is not None
    }
    adjusted = [correct(ps) for correct in (benjamini_hochberg, holm)]
    stays = {}
    for claim, every in found.items():
        false = [(claim, i) for i, one in enumerate(every) if one["holds"] is False]
        true = [(claim, i) for i, one in enumerate(every) if one["holds"]]
        if false:  # one that fails is enough
            stays[claim] = tuple(min(p[one] for one in false) < 0.05 for p in adjusted)
        elif every and len(true) == len(every):  # all must hold
            stays[claim] = tuple(max(p[one] for one in true) < 0.05 for p in adjusted)
    return len(ps), stays


STAYS = {
    (True, True): "clear by Benjamini-Hochberg and by Holm",
    (True, False): "clear by Benjamini-Hochberg, not by Holm",
    (False, False): "clear by neither Benjamini-Hochberg nor Holm",
}


# ---- the file of claims --------------------------------------------------------------------------


COMPUTED = ("measured", "verdict_on_code", "on_code")  # fields that this file writes


def without_verdict(claim):
    """A claim that is not listed above: what an earlier list computed of it is gone, and it is open
    until somebody decides it."""
    own = {name: value for name, value in claim.items() if name not in COMPUTED}
    return own if own == claim else own | dict(verdict="open")


def settled(book):
    """The claims of the file, those listed above with the verdict that the records give."""
    corrections = [corrected(), corrected(on_code=True)]
    decided = [
        with_verdict(one, *corrections) if one["id"] in CLAIMED else without_verdict(one)
        for one in book
    ]
    computed = [(one, notes.note(one["id"])) for one in decided]
    return [one if note is None else one | dict(note=note) for one, note in computed]


def with_verdict(claim, correction, correction_on_code):
    """A claim with what the records say of it, on the novel and on code."""
    name = claim["id"]
    verdict, evidence, measured = judged(name)
    measured += in_doubt(name, verdict, None, correction)
    evidence = evidence or claim["evidence"]
    claim = claim | dict(verdict=verdict, evidence=evidence, measured=measured)
    other = ON_CODE.get(CLAIMED[name][0])
    if other:
        on_code, _, measured = judged(name, other)
        if on_code != "open":
            measured += in_doubt(name, on_code, other, correction_on_code)
            claim |= dict(verdict_on_code=on_code, on_code=measured)
    return claim


def in_doubt(claim, verdict, files, correction):
    """What makes a verdict weaker than its interval says: many comparisons, a late question."""
    number, stays = correction
    decided = verdict in ("reproduced", "not reproduced")
    words = ""
    if decided and claim in stays:
        words = f" Among the {number} comparisons behind verdicts: {STAYS[stays[claim]]}."
    read = {found["file"] for found in comparisons_of(claim, files)[0]}
    late = sorted(name for name in read if name in GRIDS and GRIDS[name].kind == EXPLORATORY)
    words += f" Exploratory: {', '.join(late)}." * bool(late)
    return words + " The comparison was chosen after a look." * (claim in AFTER_A_LOOK)


def book():
    """The file of claims as the records have it now."""
    before = records.claims()
    lost = CLAIMED.keys() - {claim["id"] for claim in before}
    if lost:
        raise ValueError(f"claims.json has no {', '.join(sorted(lost))}: add its row")
    lines = ",\n ".join(json.dumps(claim, ensure_ascii=False) for claim in settled(before))
    return f"[\n {lines}\n]\n"


@command("evidence.research.verdicts", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    path, before, text = records.EVIDENCE / "claims.json", records.claims(), book()
    write_whole(path, text)
    after = json.loads(text)
    changed = [new for old, new in zip(before, after) if old != new]
    for claim in changed:
        print(f"{claim['id']:18}{claim['verdict']:28}{claim.get('measured') or claim['note']}")
    if not changed:
        print("verdicts: every claim already says what the records say")


if __name__ == "__main__":
    main()
