"""Do recorded runs agree with one another, to the last digit? What shows that a state is one."""

from course import records
from evidence.research import states
from evidence.research.grids import GRIDS
from evidence.research.statements import said

SAME_RUN = ("plan", "seed", "asked")


def begun():
    """The grids on file; a grid is registered in a commit before its first run."""
    return [name for name in GRIDS if (records.EVIDENCE / f"{name}.json").exists()]


def silent(grid):
    """Has a grid rows that name no commit?"""
    return not all(row.get("commit") for row in records.read(grid)["rows"])


def plain(asked):
    """What was asked, without what is so anyway."""
    changes = {k: v for k, v in asked.get("changes", {}).items() if (k, v) != ("layers", 12)}
    asked = asked | dict(changes=changes)
    return str(sorted((k, v) for k, v in asked.items() if v and (k, v) != ("context", 128)))


@said
def a_run_that_two_grids_of_one_state_share_ends_at_the_same_loss():
    """To the last digit that is recorded: nothing shows better that it is one state."""
    losses, twins, so = {}, 0, True
    for name in begun():
        content = records.read(name)
        state = states.state_of_file(content)
        for row in content["rows"]:
            plan = "svformer" if row["plan"] == "row3" else row["plan"]  # one under two names
            key = state, plan, row["size"], row["seed"], plain(row["asked"])
            twins += key in losses
            so &= losses.setdefault(key, row["loss"]) == row["loss"]
    return dict(so=so, twins=twins)


@said
def one_run_of_each_of_the_oldest_grids_comes_again_to_the_last_digit():
    """What names the processor's kernels in their heads. Of thirteen_rows the repetitions are in
    the file; the first recording has what they repeat."""
    grids, so = set(), True
    for row in records.read("oldest_again")["rows"]:
        first = "thirteen_older" if row["grid"] == "thirteen_rows" else row["grid"]
        same = [
            old for old in records.read(first)["rows"] if all(old[k] == row[k] for k in SAME_RUN)
        ]
        so &= [(old["loss"], old["valid"]) for old in same] == [(row["loss"], row["valid"])]
        so &= row["machine"] == records.read(row["grid"])["machine"]
        grids.add(row["grid"])
    return dict(so=so and grids == set(filter(silent, begun())), grids=len(grids))
