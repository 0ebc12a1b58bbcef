"""Which numbers of claims, grids, encoders and speed may the page of findings name? As words; see
evidence.research.numbers for those of losses."""

import functools
from collections import Counter

from course import records
from course.crossings import critical_point
from course.markdown import table
from evidence.bench.costs import ASSUMED, PAPERS, PEAK, each_of, hours, reached
from evidence.research import factorial, numbers, pairs, verdicts
from evidence.research.grids import EXPLORATORY, GRIDS
from evidence.research.numbers import number, signed
from minimal.compare import intervals

# ---- one layer, lambdas, encoders ----------------------------------------------------------------


def one_layer_covering():
    """Of the twelve layers in which x0 W_V alone was tried, how many intervals cover zero."""
    names = sorted({row["plan"] for row in pairs.whole_rows("one_layer")})
    over = "standard in thirteen_rows"
    return str(sum(numbers.clear(name, "one_layer", over) == "not clear" for name in names))


def asked_steps(grid):
    """How many steps the runs of a grid have: "5,960"."""
    (steps,) = {row["steps"] for row in pairs.whole_rows(grid)}
    return f"{steps:,}"


def sign_changes(grid):
    """How many layers' weights of x0 changed sign after the first tenth, in all runs of a grid."""
    return str(sum(len(row["crossed"]) for row in pairs.whole_rows(grid)) or "no")


def first_stream(grid, plan="mudd"):
    """In how many mixtures the first stream has the largest share but for the newest: "25 of 30";
    layer 1 has no other and is left out."""
    largest = []
    for row in pairs.whole_rows(grid):
        mixtures = row["depth"].values() if row["plan"] == plan else ()
        largest += [shares[0] == max(shares[:-1]) for shares in mixtures if len(shares) > 2]
    return f"{sum(largest)} of {len(largest)}"


def first_shares(grid, plan):
    """The share of the first stream in the mixtures of layers 2, 3, …: a curve a run."""
    rows = [row for row in pairs.whole_rows(grid) if row["plan"] == plan]
    return [[shares[0] for shares in row["depth"].values()] for row in rows]


def factor_gain(part, fixed=""):
    """How much one factor of dva_factorial gains, over the corners whose name holds `fixed`."""
    change = next(one for one in factorial.CHANGES if one[2] == part)
    if part == "dva":  # against no modifier, where the notebook has it against a random one
        change = (0, "standard", "dva")
    rows = [
        row for row in pairs.whole_rows("dva_factorial") if fixed in ("", *row["plan"].split("/"))
    ]
    return signed(-factorial.effect_row(rows, *change)["difference"])


def overtaken(style):
    """In how many pairs of runs of a style, above the smallest rate, SVFormer led and was overtaken
    for good, by training losses over a tenth of the run: "15 of 27"."""
    rows = [row for row in pairs.whole_rows("critical_point") if row["asked"]["style"] == style]
    least = min(row["asked"]["lr"] for row in rows)
    runs = {
        (row["plan"], row["seed"], str(row["asked"])): row["train"]
        for row in rows
        if row["asked"]["lr"] > least
    }
    both = [(runs["standard", *key[1:]], x) for key, x in runs.items() if key[0] == "svformer"]
    points = [critical_point(ours, base, window=5) for base, ours in both]
    return f"{sum(point is not None for point in points)} of {len(points)}"


def critical_leads(style):
    """SVFormer's lead by learning rate and warm-up, in one style."""
    warmups = ("0.01", "0.1", "0.4")
    lines = []
    for rate in ("0.0003", "0.001", "0.003", "0.01"):
        places = [f"critical_point lr={rate} warmup={part} style={style}" for part in warmups]
        lines.append([rate, *(numbers.told("svformer", place) for place in places)])
    columns = ["learning rate", *(f"warm-up {100 * float(part):.0f} %" for part in warmups)]
    return table(columns, lines)


def f1_table():
    """F1 with the bypass less F1 without, by size of the encoder."""
    lines = []
    for size in sorted({row["size"] for row in pairs.whole_rows("bypass")}):
        place = f"bypass size={size}"
        found = numbers.told("standard.f1", place, "bypass.f1", digits=1)
        one, two = (
            intervals.mean_spread(list(numbers.named_cell_by_seed(f"{plan}.f1", place).values()))[1]
            for plan in ("bypass", "standard")
        )
        layers, _, width = size.partition("x")
        lines.append([f"{layers} layers of {width}", found, number(one / two, 1)])
    columns = ["encoder", "F1 with the bypass less F1 without", "spread, with over without"]
    return table(columns, lines)


# ---- claims and grids ----------------------------------------------------------------------------


def kinds(kind):
    wrong = Counter(row.get("kind") for row in records.claims())
    return str(wrong[kind])


def verdict_count(verdict):
    return str(sum(row["verdict"] == verdict for row in records.claims()))


def correction(text):
    return correction_of(text, records.stamp())


@functools.cache
def correction_of(text, stamp):
    return verdicts.corrected(text == "code")


def comparisons(text="novel"):
    """How many comparisons lie behind the verdicts on a text."""
    return str(correction(text)[0])


def staying_clear(by, text="novel"):
    """How many decided verdicts stay clear among all comparisons; by "rate" or "holm"."""
    stays = correction(text)[1].values()
    return str(sum(one[by == "holm"] for one in stays))


def decided(text="novel"):
    """How many verdicts recorded runs decide on a text."""
    return str(len(correction(text)[1]))


def settled_by_seeds(text):
    """Of the claims that three seeds left too close, how many are decided by grids with more."""
    count = 0
    for claim, (files, _) in verdicts.CLAIMED.items():
        files = verdicts.ON_CODE.get(files) if text == "code" else files
        if not files:
            continue
        few, many = (verdicts.judged(claim, files, most)[0] for most in (False, True))
        count += few == "too close for our seeds" and many in ("reproduced", "not reproduced")
    return str(count)


def exploratory():
    """The grids that were chosen after looking, with links to those that are recorded."""
    late = [name for name, grid in GRIDS.items() if grid.kind == EXPLORATORY]
    there = {path.stem for path in records.EVIDENCE.glob("*.json")}
    return ", ".join(f"[{n}]({n}.json)" if n in there else f"`{n}`" for n in late)


def when_whole(grid):
    """ ", and NAME.json with its ten seeds" once that grid is whole."""
    if not pairs.whole(grid):
        return ""
    return f"; the systems with more seeds from [{grid}.json]({grid}.json)"


# ---- speed ---------------------------------------------------------------------------------------


def costs():
    """H100-hours of the paper's own runs, at the share of the peak that is known or assumed."""
    share, lines = reached(), []
    for name, runs in PAPERS.items():
        lines.append([name, each_of(runs), f"{hours(sum(runs), share):,.1f}"])
    return table(["runs of Bank of Values", "FLOPs", "H100-hours in all"], lines)


def peak():
    return f"{PEAK / 1e12:.0f}"


def share_of_peak():
    """The share of an H100's peak that the costs count on, in words that say where it is from."""
    found = reached()
    if found is None:
        return f"an assumed share of {100 * ASSUMED:.0f} % of it"
    return f"the {100 * found:.0f} % of it that d12's slowest plan reached"
