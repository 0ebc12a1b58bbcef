"""What does one change do, in all company? Effects of a recorded factorial of dynamic values.

Its plans are written by four factors, modifier/heads/network/W_O: dva/one/noffn/nowo. A run's twin
differs from it in one factor alone. An effect is the mean difference over all pairs of twins, seed
by seed, and its interval is that of the seeds' means.
"""

from evidence.research.leads import as_row

WORDS = {
    "standard": "no modifier",
    "dva-random": "random modifier",
    "dva": "learned modifier",
    "many": "many heads",
    "one": "one head",
    "ffn": "network",
    "noffn": "no network",
    "wo": "W_O",
    "nowo": "no W_O",
}
CHANGES = [  # the factor's place in the name, before, after
    (0, "standard", "dva-random"),
    (0, "dva-random", "dva"),
    (1, "many", "one"),
    (2, "ffn", "noffn"),
    (3, "wo", "nowo"),
]


def factor_gains(rows, factor, before, after):
    """How far the loss falls with one change, by seed: the mean over all pairs of twins."""
    loss = {(row["plan"], row["seed"]): row["loss"] for row in rows}
    by_seed = {}
    for plan, seed in loss:
        parts = plan.split("/")
        twin = "/".join([*parts[:factor], after, *parts[factor + 1 :]]), seed
        if parts[factor] == before and twin in loss:
            by_seed.setdefault(seed, []).append(loss[plan, seed] - loss[twin])
    return [sum(changes) / len(changes) for changes in by_seed.values()]


def effect_row(rows, factor, before, after):
    """The mean change of the loss over all pairs that differ in one factor alone."""
    means = [-gain for gain in factor_gains(rows, factor, before, after)]
    return as_row(f"{WORDS[before]} → {WORDS[after]}", means)


def whole_seeds(rows, runs=24):
    """The rows of the seeds of which every run is there."""
    seeds = [row["seed"] for row in rows]
    return [row for row in rows if seeds.count(row["seed"]) == runs]


def effects(rows):
    """All single changes, then what the network's removal costs without a modifier and with one."""
    table = [effect_row(rows, *change) for change in CHANGES]
    for modifier in ("standard", "dva"):
        some = [row for row in rows if row["plan"].split("/")[0] == modifier]
        found = effect_row(some, 2, "ffn", "noffn")
        table.append(found | dict(plan=f"network → no network, {WORDS[modifier]}"))
    return table
