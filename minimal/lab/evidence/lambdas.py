"""What did the weights of a mixture do? Read from runs that recorded them at every step.

A run's `coefficients` hold every weight at every step; where it was watched, every evaluation holds
its `sums`: for each a x + b y of the model, y's share by weights and by lengths.
"""


def curves(results, name):
    """One coefficient over training, a curve a run: [(steps,)]."""
    found = [result["coefficients"] for result in results]
    return [[row[c["names"].index(name)] for row in c["steps"]] for c in found]


def share(ours, theirs):
    """|ours| / (|ours| + |theirs|), curve by curve."""
    pairs = zip(theirs, ours, strict=True)
    return [[abs(y) / (abs(x) + abs(y)) for x, y in zip(*pair, strict=True)] for pair in pairs]


def measured(results, kind, field, at=-1):
    """{layer: a value for each run} of one kind of sum, at an evaluation (default: the last)."""
    found = {}
    for result in results:
        for row in result["valid"][at]["sums"]:
            if row["kind"] == kind:
                found.setdefault(row["layer"], []).append(row[field])
    return found


def told(values, form="{:.2f}"):
    """Mean and range over the runs."""
    mean = form.format(sum(values) / len(values))
    if len(values) == 1:
        return mean
    return f"{mean} ({form.format(min(values))} to {form.format(max(values))})"
