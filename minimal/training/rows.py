"""Which parameter is treated how, and by which process? A recipe's rows, dealt out to a model's
parameters."""

from minimal.training import recipes

# what is kept of a parameter, by the algorithm that moves it
KEPT = dict(adamw=("step", "exp_avg", "exp_avg_sq"), muon=("buffer", "second"))

# numbers in one stack: half a megabyte stays in a core's cache; elsewhere there is no limit
STACK = dict(cpu=2**17)


def carried(recipe, model, batch_tokens, scale="paper", lr=None):
    """The recipe in numbers for this model, by the size of the standard plan: plans learn alike."""
    recipe, config, roles = recipes.named(recipe), model.config, model.roles()
    head = sum(p.numel() for name, p in model.named_parameters() if roles[name] == "head")
    parameters = 12 * config.layers * config.width**2 + head
    recipe = recipes.scaled(recipes.SCALES[scale](recipe), config.width, batch_tokens, parameters)
    return recipe if lr is None else recipe.at(lr)


def rows_by_name(recipe, roles, named):
    """The row of every parameter.

    Matrices inside an MLP are a role of their own: modded-nanogpt decays them twice as fast.
    """
    rows = {}
    for name, p in named.items():
        role = "mlp" if roles[name] == "matrix" and ".mlp." in name else roles[name]
        if role not in recipe.rows:
            raise ValueError(
                f"{name} has the role {role!r}, for which this recipe has no row: "
                "add one to its table in recipes.py"
            )
        rows[name] = recipe.rows[role]
        if rows[name].algorithm == "muon" and p.ndim != 2:
            raise ValueError(
                f"Muon takes matrices, and {name} has shape {tuple(p.shape)}: "
                f"give {role!r} an AdamW row"
            )
    return rows


def owners(rows, named, world):
    """{name: the process that owns it}: the largest first, each to whoever has least so far. Muon's
    work and AdamW's memory are dealt out separately, so that both come out even."""
    found = {}
    for algorithm in KEPT:
        load = [0] * world
        some = [name for name, row in rows.items() if row.algorithm == algorithm]
        for name in sorted(some, key=lambda name: -named[name].numel()):
            found[name] = load.index(min(load))
            load[found[name]] += named[name].numel()
    return found


def groups(rows, named, algorithm):
    """(row, {name: parameter}) for every row of this algorithm.

    Muon's share a shape, too, and on a CPU a group of them fits its cache.
    """
    found = {}
    for name, row in rows.items():
        if row.algorithm == algorithm:
            shape = named[name].shape if algorithm == "muon" else None
            found.setdefault((row, shape), []).append(name)
    for (row, shape), names in found.items():
        limit = STACK.get(named[names[0]].device.type) if shape else None
        count = max(1, limit // shape.numel()) if limit else len(names)
        for first in range(0, len(names), count):
            yield row, {name: named[name] for name in names[first : first + count]}
