"""Did it come as foretold? Every prediction of asked/*.toml, judged by one function.

    python -m evidence.lab.foretold        all of them: what was written, what came

A prediction is a table `[[GRID.foretold]]`:

    that    the sentence, as it was written before the first run
    of      the quantity that it is about, by its name (evidence.lab.quantities), or a list where
            it is said of several
    low, high    the range that was foretold; without one of them it is open on that side
    among   what may come in place of a range: rates by their names
    clear   the whole interval has to lie in the range, or the prediction failed
    mind    that is what would change our mind, and no prediction
"""

from dataclasses import dataclass
from fnmatch import filter as matching

import pandas as pd
from pandas.io.formats.style import Styler

from evidence.lab.asked import asked_before, grids
from evidence.lab.comparison import Lead, NotRecorded, signed
from evidence.lab.names import name, with_names
from evidence.lab.quantities import asked_for, quantity
from evidence.lab.table import runs
from minimal.command import command

INSIDE, ABOVE, BELOW, OUTSIDE, UNDECIDED = "inside", "above", "below", "outside", "undecided"


@dataclass(frozen=True)
class Outcome:
    """Where it came: inside, above or below the range, by its mean; and whether the interval, too,
    lies there whole. A number without an interval is sure."""

    where: str
    sure: bool = True
    found: object = None

    @property
    def holds(self):
        """True or False; None where the interval holds an end of the range."""
        return self.where == INSIDE if self.sure else None

    def __str__(self):
        if self.where in (INSIDE, UNDECIDED) and self.sure:
            return self.where
        beyond = "" if self.sure else ", and its interval reaches beyond"
        if self.where == INSIDE:
            return f"inside{beyond}"
        overlaps = "" if self.sure else "; its interval overlaps the range"
        return f"{self.where} the range{overlaps}"


def judge(found, low=None, high=None, among=None, clear=False):
    """The Outcome of a quantity against what was foretold of it."""
    if among is not None:
        return Outcome(INSIDE if found in among else OUTSIDE, True, found)
    low, high = (-float("inf") if low is None else low, float("inf") if high is None else high)
    interval = isinstance(found, Lead)
    mean, bottom, top = (found.mean, found.low, found.high) if interval else (found,) * 3
    where = INSIDE if low <= mean <= high else ABOVE if mean > high else BELOW
    sure = (low <= bottom and top <= high) if where == INSIDE else (top < low or high < bottom)
    if clear and not (where == INSIDE and sure):
        return Outcome(where if where != INSIDE else OUTSIDE, sure, found)
    return Outcome(where, sure, found)


def outcome_of(row):
    """The Outcome of a prediction; undecided while its runs are not all there."""
    limits = {name: row[name] for name in ("low", "high", "among", "clear") if name in row}
    names = [row["of"]] if isinstance(row["of"], str) else row["of"]
    try:
        came = [judge(quantity(name), **limits) for name in names]
    except NotRecorded:
        return Outcome(UNDECIDED)
    return next((one for one in came if one.where != INSIDE), came[0])


def named(*names):
    """The grids of these names; a name may be a pattern: `xsa_*` is every grid of XSA."""
    known = grids()
    return [known[found] for asked in names for found in matching(known, asked) or [asked]]


def predictions(*names):
    """(question, row, Outcome) of every prediction, or those of these grids; one of two texts
    stands once."""
    seen = set()
    for grid in named(*names or "*"):
        for row in grid.foretold:
            if (key := id(row)) not in seen:
                seen.add(key)
                yield grid, row, outcome_of(row)


def sentence(row):
    """A prediction as the page says it; of a tuned system some say only of whom it is ahead."""
    that = with_names(row["that"])
    of = row["of"]
    first, *words = (of if isinstance(of, str) else of[0]).split()
    if first not in ("lead", "low", "ahead-at-best"):
        return that
    (system, *_), over, _ = asked_for(words)
    second = "behind" in that and ("low" in row) != ("not " in that)  # who is behind: B of A over B
    subject = name(over if second else system)
    if that.startswith(("ahead", "behind", "between")):
        return f"{subject}, tuned: {that}"
    return that.replace("our mind changes: ", f"our mind changes about {subject}: ")


def told(row, came):
    """The cells of a table: what came of a prediction."""
    if came.where == UNDECIDED:
        return dict(came="not yet recorded", found="")
    mind = f"it {'did' if came.where == INSIDE else 'did not'}" if row.get("mind") else str(came)
    found = came.found
    if isinstance(row["of"], str) and row["of"].startswith("low "):  # the whole interval says more
        found = quantity(row["of"].replace("low ", "lead ", 1))
    number = signed(found) if isinstance(found, float) else found
    return dict(came=mind, found=f"{number} {row.get('unit', '')}".strip())


def judged(*names):
    """A table of these grids: what was foretold, what came, and what git says of when."""
    say_when(*names)
    return table(predictions(*names))


def surprises(*names):
    """The same in short: how many came, and a table of those that did not, or that changed our
    mind."""
    say_when(*names)
    found = list(predictions(*names))
    said = [came.where for _, row, came in found if not row.get("mind")]
    came = f"{said.count(INSIDE)} of {len(said)} predictions came"
    print(f"{came} inside their range, by the means of the seeds")
    return table((grid, row, came) for grid, row, came in found if surprising(row, came))


def surprising(row, came):
    """Did a prediction not come, or did what would change our mind?"""
    return (came.where == INSIDE) == bool(row.get("mind"))


def say_when(*names):
    """Whether each grid is recorded, and how many of the runs were asked for before."""
    whole = set(runs().grid)
    counts = {}
    for grid in [grid for grid in named(*names) if grid.cells]:
        if grid.name not in whole:
            print(f"{grid.name}: registered, not yet recorded")
        elif when := asked_before(grid):
            counts[grid.name] = when
    if counts:
        asked, every = map(sum, zip(*counts.values()))
        print(f"{asked} of {every} runs were asked for before they were trained")
    for name_, (asked, every) in counts.items():
        if asked < every:
            print(f"of the runs of {name_} {asked} of {every}")


def table(found):
    """Predictions as a table of sentences, which read from the left."""
    lines = [{"foretold": sentence(row)} | told(row, came) for _, row, came in found]
    if not lines:
        return None
    left = dict(selector="th, td", props="text-align: left")
    return Styler(pd.DataFrame(lines), cell_ids=False).hide().set_table_styles([left])


@command("evidence.lab.foretold", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    width = max(map(len, grids()))
    for grid, row, came in predictions():
        print(f"{grid.name:{width}}  {row['that']}: {came}")


if __name__ == "__main__":
    main()
