"""What does a recorded grid say of these plans?"""

from course import figures, records
from minimal.compare import intervals


def say_recorded(grid, base, *plans):
    """Print how far ahead of `base` a recorded grid has these plans, as they are (rows with changes
    aside); {plan: row of intervals.paired, ahead above zero}, {} where nothing is recorded."""
    rows = [row for row in records.rows(grid) if "changes" not in row["asked"]]
    table = intervals.paired(rows, "loss", base) if rows else []
    found = {row["plan"]: row for row in figures.ahead(table) if row["n"]}
    if not found:
        print(f"{grid}: not recorded yet")
    for plan in (plan for plan in plans if plan in found):
        row = found[plan]
        reach = "one seed, no interval"
        if row["low"] is not None:
            reach = f"{row['low']:+.3f} to {row['high']:+.3f}"
        words = f"{row['difference']:+.3f} nats ({reach}, n = {row['n']})"
        print(f"{grid:22} {plan:12} ahead of {base}: {words}")
    return found
