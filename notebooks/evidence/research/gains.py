"""Do learned gains stay open? The tables of that section of the page of findings."""

import statistics

from course import records
from course.markdown import table
from evidence.research import numbers, pairs
from evidence.research.cells import GAINED, WRITING
from evidence.research.leads import COUNTS, between, with_interval
from evidence.research.names import NAMES
from evidence.research.numbers import number

NEAR = 0.2  # a gain that ends nearer to zero is called closed
SLOWER = ("0.05", "0.005")  # the recipe's rate is 0.5
SILENT = 0.05  # attention's share of the output; no layer of standard has so little
DEEP = ("8", "9", "10", "11")  # the last third, as rows name layers


# ---- gains of runs -------------------------------------------------------------------------------


def gains_of(row):
    """{layer: gain} of a run, as it ended."""
    named = {}
    for name, value in row["coefficients"].items():
        if name.endswith(".gain"):
            named[int(name.split(".")[1])] = value
    return named


def final_gains(place, plan):
    """[{layer: gain}] of the runs of a plan at the rate 0.5."""
    rows = pairs.whole_rows(numbers.FILES_OF[place][0])
    return [gains_of(row) for row in rows if row["plan"] == plan]


def slowed(text, plan, rate):
    """The runs of a plan at a slower rate; none until all of that grid are there."""
    rows = [row for row in pairs.whole_rows(f"gains_{text}") if row["plan"] == plan]
    return [row for row in rows if rate_of(row) == rate]


def rate_of(row):
    return str(next(iter(row["asked"]["overrides"].values()))["lr"])


def closed(runs):
    """Of the gains of [{layer: gain}], how many ended near zero: "3 of 12"."""
    ends = [value for run in runs for value in run.values()]
    return f"{sum(abs(value) < NEAR for value in ends)} of {len(ends)}"


def written_share(rows):
    """Attention's share of the output, mean over the layers with a gain and over runs."""
    shares = [row["share"][str(layer)] for row in rows for layer in gains_of(row)]
    return number(statistics.fmean(shares), 2)


def slow_lead(text, plan, rate, over="standard"):
    """Over a plan at the rate 0.5, which may be itself, on the seeds that both have."""
    ours = pairs.by_seed(slowed(text, plan, rate), plan)
    theirs = at_the_papers_rate(text, over)
    if not ours.keys() & theirs.keys():
        return "not recorded"
    return with_interval(between(ours, theirs))


def at_the_papers_rate(text, plan):
    """{seed: loss} of a plan: of the whole grid with most seeds that trained it in the same state
    of the numbers as the slower runs."""
    slower, least = f"gains_{text}", f"shares_{text}"
    more = [grid for grid in (f"ten_seeds_{text}", f"noise_{text}") if pairs.whole(grid)]
    same = [grid for grid in (*more, least) if numbers.state_in(grid) == numbers.state_in(slower)]
    numbers.check_states(slower, (same or more)[0])
    found = (pairs.by_seed(pairs.whole_rows(grid), plan) for grid in same)
    return next(filter(None, found), {})


def seeds(text):
    """On how many seeds the leads of a text stand, in words."""
    ours = pairs.by_seed(slowed(text, "bov", SLOWER[0]), "bov")
    return COUNTS[len(ours.keys() & at_the_papers_rate(text, "standard").keys())]


def one_layer():
    """Of all runs with x0 W_V in one layer, in how many the gain ends near zero: "32 of 36"."""
    return closed(map(gains_of, pairs.whole_rows("one_layer")))


# ---- tables --------------------------------------------------------------------------------------


def gains_table():
    """How many learned gains end near zero, and their mean, by plan and text."""
    lines = []
    for plan in GAINED:
        line = [NAMES[plan]]
        for place in ("code", "novel"):
            runs = final_gains(place, plan)
            ends = [value for run in runs for value in run.values()]
            line += [closed(runs), number(statistics.fmean(ends), 2)]
        lines.append(line)
    columns = ["learned gain", "closed on code", "mean", "closed on the novel", "mean"]
    return table(columns, lines)


def gains_by_layer():
    """The last gains of rows 6 and 9 by layer, beside the paper's Figure 2a."""
    drawn = {row["layer"]: row for row in records.published("bov", "Figure 2a")["rows"]}
    lines = []
    for layer, paper in drawn.items():
        line = [layer]
        for plan, column in (("row6", "V1"), ("row9", "x0 W_V")):
            line.append(f"≈ {paper[column]:g}")
            for place in ("code", "novel"):
                line.append(number(statistics.fmean(r[layer] for r in final_gains(place, plan)), 2))
        lines.append(line)
    one = ["the first layer's V: paper", "code", "novel"]
    two = ["x0 W_V: paper", "code", "novel"]
    return table(["layer", *one, *two], lines)


def gains_slowed(text):
    """At slower rates on one text: how many close, what attention still writes, and the lead."""
    lines = []
    for plan in GAINED:
        found = [slowed(text, plan, rate) for rate in SLOWER]
        line = [NAMES[plan], closed(final_gains(text, plan))]
        line += [closed([gains_of(row) for row in rows]) for rows in found]
        line += [written_share(rows) for rows in found]
        line += [slow_lead(text, plan, rate) for rate in SLOWER]
        lines.append(line)
    columns = ["learned gain", *(f"closed at {rate}" for rate in ("0.5", *SLOWER))]
    columns += [f"attention's share at {rate}" for rate in SLOWER]
    columns += [f"lead at {rate}" for rate in SLOWER]
    return table(columns, lines)


def shares_table():
    """At the rate 0.5: of the last third of layers, how many hardly write, and what they do."""
    lines = []
    for plan in WRITING:
        line = [NAMES.get(plan, plan)]
        for text in ("code", "novel"):
            rows = [row for row in pairs.whole_rows(f"shares_{text}") if row["plan"] == plan]
            found = [row["share"][layer] for row in rows for layer in DEEP]
            silent = sum(one < SILENT for one in found)
            line += [f"{silent} of {len(found)}", number(statistics.fmean(found), 2)]
        lines.append(line)
    columns = ["system"]
    columns += [
        f"{text}: {name}" for text in ("code", "novel") for name in ("silent", "mean share")
    ]
    return table(columns, lines)
