"""Which of the sources' claims do recorded runs decide? Verdicts from paired seeds.

    python -m evidence.lab.claims            write verdicts.json and the tables of claims.md
    python -m evidence.lab.claims --check    say whether they are what the records say

People write claims.toml, a table a claim. One that recorded runs decide says in `compare` what is
to hold, and in `files` of which grids; nobody chooses its verdict, and nothing here reads
verdicts.json. All others have a verdict there, with the test that shows it.

    a < b        a ends lower
    a ~ b        they differ by little
    a <~ b       a is higher by little at most
    a wider b    a's seeds lie further apart

"a.entropy_deep" compares that field of the rows, not their loss. Where a grid has several settings
(lengths, depths), a comparison must hold in each, or in the one that stands behind "at", a size or
a number of steps. Of one setting that several whole grids hold, the one with the most seeds counts.
"""

import functools
import json
import math
import statistics

import pandas as pd

from course import records
from course.markdown import table
from course.significance import against
from evidence.lab.asked import grids
from evidence.lab.comparison import FEWEST, difference, lead, signed, stay_clear
from evidence.lab.foretold import judge
from evidence.lab.table import runs
from minimal.command import command
from minimal.data.files import write_whole

VERDICTS, PAGE = records.EVIDENCE / "verdicts.json", records.EVIDENCE / "claims.md"

# What we call little. In nats: half of ResFormer's lead on the novel (.021), the smallest of the
# leads that a source is named after; whoever misses a difference below that misses no main effect.
# In points of F1: about the spread of one plan's seeds.
LITTLE = dict(loss=0.01, f1=1.0)

# The same on the other text: told beside a verdict, which rests on the novel.
ON_CODE = dict(
    thirteen_rows="stdlib",
    inside="inside_code",
    frontier_novel="frontier_code",
    xsa_novel="xsa_code",
    xsa_more_novel="xsa_more_code",
    depth_novel="depth_code",
    gains_novel="gains_code",
    budgets_novels="budgets_code",
)


# ---- rows of one setting -------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def of_one_state(written):
    """Whole grids of one state of the numbers that ask for no machine."""
    states = runs().groupby("grid").state
    one = {grid for grid, some in states if some.notna().all() and some.nunique() == 1}
    return [name for name, grid in grids().items() if name in one and not grid.machine]


@functools.lru_cache(maxsize=256)
def settings(name, written):
    """{(size, what the runs were asked, as text): rows} of a whole grid or a file: only runs of one
    setting are compared."""
    rows, found = records.rows(name), {}
    if name in grids() and len(rows) != grids()[name].size():
        return found
    for row in rows:
        asked = row.get("asked", {}) | {key: row[key] for key in records.ASKED if key in row}
        found.setdefault((row["size"], json.dumps(asked, sort_keys=True)), []).append(row)
    return found


def values_by_seed(rows, name):
    """{seed: value} of "plan" (its loss) or of "plan.field", as far as rows have it; early is over
    half of training."""
    plan, _, field = name.partition(".")
    read = early if field == "early" else lambda row: row.get(field or "loss")
    found = {row["seed"]: read(row) for row in rows if row["plan"] == plan}
    return {seed: value for seed, value in found.items() if value is not None}


def early(row):
    """The mean held-out loss over the first half of training."""
    losses = [loss for _, loss in row["valid"]]
    return statistics.fmean(losses[: len(losses) // 2])


# ---- one comparison ------------------------------------------------------------------------------


def compared(files, comparison):
    """A dict a setting of these files: the comparison, the setting, n, what was found, whether it
    holds, its p, and the grid in which it was read: another whole one if that has more seeds."""
    now, rows, found = records.written(), {}, {}
    for name in files:
        for setting, some in settings(name, now).items():
            rows[setting] = rows.get(setting, []) + some
    for setting, some in rows.items():
        if row := of_setting(some, comparison, *setting):
            found[setting] = row | dict(grid=files[0])
    for name in (one for one in of_one_state(now) if one not in files):
        more = settings(name, now)
        for setting in found.keys() & more.keys():
            row = of_setting(more[setting], comparison, *setting)
            if row and row["n"] > found[setting]["n"]:
                found[setting] = row | dict(grid=name)
    return list(found.values())


def of_setting(rows, comparison, size, asked):
    """What the rows of one setting say; None where they have no pair, or it is another setting."""
    asked = json.loads(asked)
    first, relation, second, *at = comparison.split()
    if at and at[1] not in (size, str(asked.get("steps"))):
        return None
    ours, theirs = values_by_seed(rows, first), values_by_seed(rows, second)
    n = len(ours.keys() & theirs.keys())
    if not n:
        return None
    row = dict(first=first, second=second, size=size, asked=asked, n=n, holds=None, p=None)
    row |= dict(enough=n >= FEWEST)
    if relation == "wider":
        return row | wider(ours, theirs, row["enough"])
    row |= dict(apart=difference(pd.Series(ours), pd.Series(theirs)))
    if row["enough"]:
        limits = range_of(relation, LITTLE.get(first.partition(".")[2] or "loss", 0.0))
        row |= dict(holds=judge(row["apart"], **limits).holds, p=row["apart"].p_of(**limits))
    return row


def range_of(relation, little):
    """Where a - b has to lie."""
    return {
        "<": dict(high=-math.ulp(0.0)),  # two that end alike are not one below the other
        "<~": dict(high=little),
        "~": dict(low=-little, high=little),
    }[relation]


def wider(ours, theirs, enough):
    """The ratio of two spreads between seeds, and what an F test at 5 % says of it."""
    if not enough:
        return dict(ratio=None)
    found = against([*theirs.values()], [*ours.values()])
    ratio, p = found["ratio"], found["ratio_p"]
    return dict(ratio=ratio, p=p, holds=ratio > 1 if p < 0.05 else None)


# ---- in words ------------------------------------------------------------------------------------


def comparison_in_words(found, several):
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
    apart = found["apart"]
    names = f"{found['first']} less {found['second']}"
    if field == other_field:
        which = "ahead of" if field in ("", "early", "f1") else "less"
        names = f"{one} {which} {other}" + (f", {field}" if field else "")
    if field in ("", "early"):  # losses: what ends lower is ahead; of points what ends higher
        apart = -apart
    unit = " nats" if field in ("", "early") else ""
    interval = f"{signed(apart.low)} to {signed(apart.high)}, " if apart.n > 1 else ""
    return f"{names}{at}: {signed(apart.mean)}{unit} ({interval}{n})"


def setting_of(found):
    """What a setting is beyond corpus and budget, or else its size."""
    told = ("corpus", "steps", "batch", "overrides")
    asked = {name: value for name, value in found["asked"].items() if name not in told}
    rates = {row["lr"] for row in found["asked"].get("overrides", {}).values()}
    if len(rates) == 1:
        asked["rate"] = rates.pop()
    changes = asked.pop("changes", {})
    words = (f"{name} {value}" for name, value in (changes | asked).items())
    return ", ".join(words) or found["size"]


# ---- verdicts ------------------------------------------------------------------------------------

REFUTED = "not reproduced"


def verdict_of(holding):
    """Of comparisons that hold (True), do not (False), or cannot be told (None)."""
    holding = list(holding)
    if False in holding:
        return REFUTED
    return "reproduced" if all(holding) else "too close for our seeds"


def comparisons_of(claim, on_code=False):
    """(everything compared for a claim, whether one of its comparisons has no runs)."""
    files = claim["files"]
    if on_code:
        files = [ON_CODE[files[0]]] if files[0] in ON_CODE else []
    parts = [compared(files, one) for one in claim["compare"]] if files else []
    return [found for part in parts for found in part], not all(parts)


def verdict_on(claim, on_code=False):
    """(verdict, what was measured in words) of a claim, from its own grids or those of code."""
    every, lacking = comparisons_of(claim, on_code)
    several = len({(found["size"], json.dumps(found["asked"])) for found in every}) > 1
    words = "; ".join(comparison_in_words(found, several) for found in every)
    verdict = verdict_of(found["holds"] for found in every)
    enough = every and not lacking and all(found["enough"] for found in every)
    verdict = verdict if enough or verdict == REFUTED else "open"
    return verdict, words and words + "."


STAYS = {
    (True, True): "clear by Benjamini-Hochberg and by Holm",
    (True, False): "clear by Benjamini-Hochberg, not by Holm",
    (False, False): "clear by neither Benjamini-Hochberg nor Holm",
}


def corrected(claims, on_code=False):
    """(how many comparisons lie behind the verdicts on a text, {claim: (by Benjamini and Hochberg,
    by Holm)}): does what decided it stay clear at 5 % among them all? Undecided claims: none."""
    found = {claim["id"]: comparisons_of(claim, on_code)[0] for claim in claims}
    ps = {
        (name, i): one["p"]
        for name, every in found.items()
        for i, one in enumerate(every)
        if one["p"] is not None
    }
    clear, stays = stay_clear(ps), {}
    for name, every in found.items():
        false = [clear[name, i] for i, one in enumerate(every) if one["holds"] is False]
        true = [clear[name, i] for i, one in enumerate(every) if one["holds"]]
        if false:  # one that fails is enough
            stays[name] = tuple(map(any, zip(*false)))
        elif every and len(true) == len(every):  # all must hold
            stays[name] = tuple(map(all, zip(*true)))
    return len(ps), stays


def in_doubt(claim, verdict, correction, on_code=False):
    """What makes a verdict weaker than its interval says: many comparisons, a late question."""
    number, stays = correction
    decided = verdict in ("reproduced", REFUTED)
    words = ""
    if decided and claim["id"] in stays:
        words = f" Among the {number} comparisons behind verdicts: {STAYS[stays[claim['id']]]}."
    read = {found["grid"] for found in comparisons_of(claim, on_code)[0]}
    late = sorted(name for name in read if name in grids() and grids()[name].exploratory)
    words += f" Exploratory: {', '.join(late)}." * bool(late)
    return words + " The comparison was chosen after a look." * claim.get("after_a_look", False)


def place_of(name):
    """Where what was compared is recorded."""
    about = records.recordings().get(name)
    place = f"runs/{about['topic']}.jsonl::{name}" if about else f"measured/{name}.json"
    return f"notebooks/evidence/{place}"


def verdicts():
    """{claim: its verdict, what was measured, and the same on code} of all that runs decide."""
    claims = [claim for claim in records.written_claims() if "compare" in claim]
    corrections = [corrected(claims, on_code) for on_code in (False, True)]
    found = {}
    for claim in claims:
        verdict, measured = verdict_on(claim)
        every, _ = comparisons_of(claim)
        place = place_of(every[0]["grid"]) if every else None
        measured += in_doubt(claim, verdict, corrections[0])
        one = dict(verdict=verdict, evidence=place, measured=measured)
        on_code, measured = verdict_on(claim, on_code=True)
        if on_code != "open":
            measured += in_doubt(claim, on_code, corrections[1], on_code=True)
            one |= dict(verdict_on_code=on_code, on_code=measured)
        found[claim["id"]] = one
    return found


# ---- the page ------------------------------------------------------------------------------------

WRITTEN = "<!-- written by `python -m evidence.lab.claims`, from here on -->"

# Grids of one size and length, as is the comparison of systems at their best rates.
OF_ONE_SIZE = ("thirteen_rows", "gains_novel", "residuals")
ALSO_CALLED = dict(row3="svformer")


def by(claim):
    """What decided a claim: recorded runs, or algebra and the sources themselves."""
    evidence = claim["evidence"] or ""
    by_runs = ".json" in evidence or "test_claims_runs" in evidence
    return "runs" if by_runs or "compare" in claim else "algebra"


def at_best_rates(claims):
    """Claims whose systems all have rates of their own: the verdict with one recipe, and what fresh
    seeds at best rates say, text by text."""
    tuned, lines = {*runs().query("rates == 'tuned'").cell}, []
    for claim in claims:
        asked = [systems_of(one) for one in claim.get("compare", ())]
        if claim.get("files", [""])[0] in OF_ONE_SIZE and {*sum(asked, [])} <= tuned:
            told = (said_at_best(claim, text) for text in ("code", "novel"))
            lines.append([f"`{claim['id']}`", claim["verdict"], *told])
    head = ["claim", "one recipe, the novel", "best rates, code", "best rates, the novel"]
    return table(head, lines)


def systems_of(comparison):
    """The two systems of "a < b"."""
    first, _, second, *_ = comparison.split()
    return [ALSO_CALLED.get(system, system) for system in (first, second)]


def said_at_best(claim, text):
    """A verdict as runs with one recipe give it, of fresh seeds at best rates; and the leads."""
    holding, told = [], []
    for comparison in claim["compare"]:
        (ours, theirs), relation = systems_of(comparison), comparison.split()[1]
        found = lead(runs(), ours, theirs, text=text, rates="tuned")
        holding.append(judge(-found, **range_of(relation, LITTLE["loss"])).holds)
        mean, rest = str(found).split(" ", 1)
        told.append(f"{ours} ahead of {theirs}: {f'**{mean}**' if found.clear else mean} {rest}")
    return f"{verdict_of(holding)}; {'; '.join(told)}"


def counts(claims):
    """How many claims have each verdict, by what decided it."""
    lines = []
    for verdict in records.VERDICTS:
        decided = [by(claim) for claim in claims if claim["verdict"] == verdict]
        lines.append([verdict, *(decided.count(how) for how in ("algebra", "runs"))])
    return table(["verdict", "by algebra", "by runs"], lines)


def claim_rows(claims):
    lines = []
    for claim in claims:
        kind = f" ({claim['kind']})" if "kind" in claim else ""
        said = claim["claim"].replace("|", "\\|")
        lines.append([f"`{claim['id']}`", said, claim["verdict"] + kind, by(claim)])
    return table(["id", "claim", "verdict", "by"], lines)


def page(claims):
    """claims.md: what people wrote, then the tables."""
    prose = PAGE.read_text(encoding="utf-8").partition(WRITTEN)[0]
    by_id = {claim["id"]: claim for claim in claims}
    parts = [
        prose + WRITTEN,
        "## Twelve that readers ask about",
        claim_rows([by_id[name] for name in records.asked_about()]),
        "## How many of each verdict",
        counts(claims),
        "## The same at each system's own best rates",
        at_best_rates(claims),
    ]
    for source, about in records.published().items():
        some = [claim for claim in claims if claim["source"] == source]
        parts += [f"## {about['short']}", claim_rows(some)]
    return "\n\n".join(parts) + "\n"


@command("evidence.lab.claims", __doc__)
def main(parser, argv):
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args(argv)
    found = verdicts()
    lines = (f" {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in found.items())
    changed = rewritten(VERDICTS, "{\n" + ",\n".join(lines) + "\n}\n", asked.check)
    changed += rewritten(PAGE, page(records.claims(found)), asked.check)
    if changed and asked.check:
        raise ValueError(
            f"{', '.join(changed)} is not what the records say: python -m evidence.lab.claims "
            "writes it"
        )
    print(f"claims: {', '.join(changed) or 'nothing'} written")


def rewritten(path, text, check):
    """The name of a file that is not as it should be, in a list; written unless only checked."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return []
    if not check:
        write_whole(path, text)
    return [path.name]


if __name__ == "__main__":
    main()
