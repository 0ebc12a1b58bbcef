"""Do the recorded FLOPs follow from the count as it is today? Where not, they are counted again.

    python -m evidence.research.recount           rewrite `flops` of the rows that differ
    python -m evidence.research.recount --check   only name them

A row says what was trained and on how many tokens, so its FLOPs can be counted after the run. All
else in the row was measured, and stays. A file that is changed names its plans under `recounted`.
"""

import functools
import json
import sys

from course import records
from minimal.command import command
from minimal.data import results
from minimal.model.count import count
from minimal.training.run import Run
from minimal.variants import skeleton

COMMAND = "python -m evidence.research.recount"


def flops_of(row):
    """FLOPs a token of what this row trained, times its tokens."""
    run = Run(plan=row["plan"], size=row["size"], **row["asked"])
    return row["tokens"] * per_token(run.plan, run.size, json.dumps(run.config()))


@functools.cache
def per_token(plan, size, changes):
    return count(skeleton(plan, size, **json.loads(changes)))["flops_per_token"]


def outdated(rows):
    """The rows of training runs whose FLOPs are not what is counted today."""
    runs = [row for row in rows if {"flops", "asked"} <= row.keys()]
    return [row for row in runs if row["flops"] != flops_of(row)]


def recount(path, write=True):
    """Count the outdated rows of one file again; returns their plans."""
    content = results.load(path)
    rows = content.get("rows", []) if isinstance(content, dict) else []
    old = outdated(rows)
    plans = ", ".join(sorted({row["plan"] for row in old}))
    if old and write:
        for row in old:
            row["flops"] = flops_of(row)
        told = f"{COMMAND}: flops of {plans}; losses are as recorded"
        results.write(path, {**content, "recounted": told})
    return plans


@command("evidence.research.recount", __doc__)
def main(parser, argv):
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args(argv)
    paths = sorted(records.EVIDENCE.rglob("*.json"))
    found = {path.name: plans for path in paths if (plans := recount(path, not asked.check))}
    told = "; ".join(f"{name} ({plans})" for name, plans in found.items())
    if not found:
        print("recount: every recorded row has the FLOPs that are counted today")
    elif asked.check:
        raise ValueError(f"recorded FLOPs are not what is counted today: {told}; {COMMAND}")
    else:
        print(f"recount: FLOPs counted again, all else as recorded: {told}")


if __name__ == "__main__":
    sys.exit(main())
