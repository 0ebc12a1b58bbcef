"""Notes of claims that hold numbers of ours: computed from the records, never typed.

A note is a template: {a lead} stands where LEADS has its name, as "by .019 nats (.003 to .034, 3
seeds, clear)".
"""

from evidence.research import pairs
from evidence.research.leads import between, by_seed, number
from minimal.compare import intervals
from minimal.compare.curves import critical_point

WINDOW = 5  # recorded values over which a curve is smoothed


# {a lead}: (grid and cell of ours, grid and cell of theirs, what is compared)
LEADS = dict(
    skipv1=(("sharing", "skipv1"), ("thirteen_rows", "standard")),
    sv_gqa=(("thirteen_rows", "svformer"), ("thirteen_rows", "gqa")),
    sv_gqa_code=(("stdlib", "svformer"), ("stdlib", "gqa")),
    slow_bov=(("confound", "bov"), ("thirteen_rows", "standard")),
    slim_bov=(("parameters", "bov-fixed, hidden 96"), ("thirteen_rows", "standard")),
    slow_row13=(("confound", "row13"), ("thirteen_rows", "row13")),
    entropy=(("inside", "standard"), ("inside", "resformer"), "entropy_deep"),
)

AT_SLOW_GAINS = (
    "At gains' rates of .05 and .005, beside the .031 that the paper's rule of batch sizes gives "
    "for ours."
)
NOTES = {
    "bov-skipv1": "SkipV1Former's abstract (2510.16807) reports better perplexity than standard "
    "attention. Ours: {skipv1} over standard (grid sharing).",
    "sv-gqa-2048": "At 128 tokens SVFormer's lead over GQA is {sv_gqa} on the novel and "
    "{sv_gqa_code} on code (claim sv-gqa).",
    "bov-deep": "BoV also has more parameters, which the paper does not match. With the gain at a "
    "tenth of the recipe's rate its lead over standard is {slow_bov} (grid confound); with the "
    "gain fixed and slimmer MLPs, at equal parameters, {slim_bov} (grid parameters).",
    "bov-uneven": "alpha was trained at .005 with decay, beta and gamma at .5 without. With one "
    "slow rate for both, row 13's lead over itself is {slow_row13}; its signs stay: the weight on "
    "x0 W_V is about -1 in every layer and seed.",
    "res-mitigates": "ResFormer's entropy in the upper half exceeds the standard model's: "
    "{entropy}. But the standard model does not concentrate at this size: it lies above the even "
    "map's entropy there, and above that line a higher entropy means nearness (notebook 03).",
    "sv-surpassed": "Smoothed over 5 recorded values, SVFormer's training loss is overtaken for "
    "good in {crossed_novels} runs of 1,000 to 4,000 steps on novels and in {crossed_code} of "
    "500 to 4,000 on code.",
    "bov-keep": "Both with tables in the last third: the gain fixed at 1 and V dropped, against V "
    "kept beside the table with learned weights. The paper's own form, a learned gain at the "
    "recipe's rate, silences layers on the novel and is no fair rival there.",
    "bov-every-layer": AT_SLOW_GAINS,
    "bov-alternate": AT_SLOW_GAINS,
    "bov-shared": AT_SLOW_GAINS,
}


def note(claim):
    """The note of a claim from the records, or None where it holds no numbers of ours."""
    if claim not in NOTES:
        return None
    return NOTES[claim].format_map(Computed())


class Computed(dict):
    """What stands in braces, computed when it is asked for."""

    def __missing__(self, name):
        if name.startswith("crossed_"):
            text = name.partition("_")[2]
            return crossed(f"budgets_{text}", 1000 if text == "novels" else 500)
        return lead(*LEADS[name])


def lead(ours, theirs, value="loss"):
    """A mean difference in words, with its interval, its seeds, and whether it is clear."""
    tables = [(pairs.runs_of(grid), cell) for grid, cell in (ours, theirs)]
    if any(table.empty for table, _ in tables):
        return "not recorded"
    differences = list(between(*(by_seed(table, cell, value) for table, cell in tables)))
    if not differences:
        return "not recorded"
    mean, low, high = intervals.interval(differences)
    unit = " nats" if value == "loss" else ""
    seeds = f"{len(differences)} seeds"
    if low is None:
        return f"{number(mean)}{unit} ({seeds})"
    clear = "clear" if intervals.clear(low, high, len(differences)) else "not clear"
    return f"{number(mean)}{unit} ({number(low)} to {number(high)}, {seeds}, {clear})"


def crossed(grid, least):
    """In how many runs of at least so many steps was SVFormer overtaken: "6 of 9"."""
    curves = {}
    for row in pairs.rows_of(grid):
        if row["plan"] in ("standard", "svformer") and row["asked"]["steps"] >= least:
            curves.setdefault((row["asked"]["steps"], row["seed"]), {})[row["plan"]] = row["train"]
    points = [critical_point(c["svformer"], c["standard"], WINDOW) for c in curves.values()]
    return f"{sum(point is not None for point in points)} of {len(points)}"
