"""Dynamic values: 24 corners, and two other kinds of equal."""

from course.records import quoted
from evidence.research import factorial
from evidence.research.cells import BARE, DVA, FULL
from evidence.research.leads import with_interval
from evidence.research.pairs import rows_asked
from evidence.research.statements import ahead, lead_by_seed, of, runs_by_seed, said

# factor's place in a plan's name, before, after, modifier held still, which way the loss moves
EFFECTS = {
    "a learned modifier": (0, "standard", "dva", None, 1),
    "a random modifier": (0, "standard", "dva-random", None, -1),
    "no network, no modifier": (2, "ffn", "noffn", "standard", -1),
    "no network, a learned modifier": (2, "ffn", "noffn", "dva", -1),
    "one head": (1, "many", "one", None, 1),
    "one head, no modifier": (1, "many", "one", "standard", 1),
    "no W_O": (3, "wo", "nowo", None, -1),
}


@said
def each_factor_of_dva_has_its_own_clear_effect():
    so, about = True, {}
    for name, (factor, before, after, held, side) in EFFECTS.items():
        some = rows_asked("dva_factorial")
        if held:
            some = [row for row in some if row["plan"].startswith(f"{held}/")]
        gains = factorial.factor_gains(some, factor, before, after)
        so &= ahead(gains) == side
        about[name] = with_interval(gains)
    return dict(so=so) | about


def matched(plan, equal):
    """Runs of dva_matched: equal in "parameters" (of another width) or in "time" (more steps)."""
    some = rows_asked("dva_matched", plan)
    kept = [row for row in some if ("changes" in row["asked"]) == (equal == "parameters")]
    return {row["seed"]: row for row in kept}


@said
def equal_parameters_and_equal_time_tell_different_stories_of_dva():
    base = runs_by_seed("thirteen_rows", "standard")
    over = {
        (at, p): lead_by_seed(matched(p, at), base)
        for at in ("parameters", "time")
        for p in (DVA, BARE)
    }
    so = [ahead(gains) for gains in over.values()] == [1, 0, 0, 0]
    return dict(so=so) | {
        f"{plan} at equal {at}": with_interval(g) for (at, plan), g in over.items()
    }


@said
def at_equal_parameters_dva_without_its_network_is_ahead_of_dva_with_it():
    gains = lead_by_seed(matched(DVA, "parameters"), matched(FULL, "parameters"))
    return dict(so=ahead(gains) == 1, ahead=with_interval(gains))


@said
def a_step_of_dva_is_shorter_because_its_network_is_gone():
    """The article says by how much; without a network and without a modifier it is shorter yet."""
    (times,) = (row["result"] for row in rows_asked("bench") if row["part"] == "corners")
    share = {row["plan"]: row["time"] for row in times if row["size"] == "gpt2"}
    article = quoted("dva", "training time saved")["value"] / 100
    so = share[BARE] < share[DVA] < 1 < share[FULL]
    saved = 1 - share[DVA]
    return dict(
        so=so, saved=saved, article=article, times=of([share[p] for p in (BARE, DVA, FULL)])
    )
