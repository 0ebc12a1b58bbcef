"""Which of my plans is better, at equal what? A comparison of your own: matched and paired.

python -m minimal.compare --plans standard bov --match flops --budget 3e13 --seeds 0 1 2
"""

import io
import json
import math
import re
import time
from dataclasses import replace
from pathlib import Path

from minimal.compare import intervals
from minimal.compare.budgets import MATCH
from minimal.compare.curves import relative
from minimal.compare.ledger import rows_of
from minimal.compare.runs import Grid, asked_of, defaults, lacking, record
from minimal.data import corpora, results
from minimal.data.files import digest, once, runs_folder, write_whole
from minimal.model.count import settings_of
from minimal.model.foreign import foreign_code
from minimal.training.run import Run
from minimal.variants import PLANS, skeleton

READ = ("plan", "size", "seed", "steps", "asked")  # of rows, before more are added
OF_ONE_RUN = {"plan", "seed", "steps", "changes"}  # in these the runs of a comparison may differ

DASHES = ("-", "--", "-.", ":")


def compare(
    plans: list,
    match: str = "tokens",
    budget: float = 512_000,
    seeds: list = (0, 1, 2),
    baseline: str = "standard",
    size: str = "tiny",
    corpus: str = "auto",
    batch: int = 16,
    vocab: int | None = None,
    minutes: float | None = None,
    out: str | None = None,
    command: str = "minimal.compare.compare",
) -> list:
    """Train plans (names, or a Plan of your own) with equal `match` of `budget`, print their leads
    over the baseline, seed by seed, and draw them; the table, a dict a plan. A lead is the
    baseline's loss minus the plan's: above zero the plan is better. Runs are kept: a second call
    goes on, or only looks."""
    intervals.functions()  # what is lacking is said before anything is trained
    if match not in MATCH:
        raise ValueError(f"match: wanted one of {', '.join(MATCH)}, got {match!r}: choose one")
    check_place(out)
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    named = by_name(baseline, plans)
    base = Run(size=size, corpus=corpus, batch=batch, vocab=vocab, evaluate=10**9)
    models = {name: skeleton(plan, size) for name, plan in named.items()}
    settings = [settings_of(model) for model in models.values()]
    code = [part for model in models.values() for part in foreign_code(model)]
    text = corpora.find(corpus)
    asked = match, budget, size, corpus, text.fingerprint, batch, vocab
    key = digest(list(named), settings, *asked, *code)
    path = Path(out or runs_folder() / "evidence" / f"{key}.json")
    what = f"{match}-matched at {budget:g}"
    own = {name: of_ones_own(plan, models[name]) for name, plan in named.items()}
    check_file(path, what, base, own)
    results.check_corpus(path, dict(name=text.name, fingerprint=text.fingerprint))

    # which runs spend the budget: kept, since a second measurement of time would find other steps
    def matched(part):
        runs = [MATCH[match](replace(base, plan=plan), budget) for plan in named.values()]
        cells = [dict(plan=str(run.plan), steps=run.steps, changes=run.changes) for run in runs]
        part.write_text(json.dumps(cells))

    cells = json.loads(once(path.with_suffix(f".{key}.cells"), matched).read_text())
    cells = [cell | dict(plan=named[cell["plan"]]) for cell in cells]

    # train them, and show what is there
    check_steps(path, base, cells)
    grid = Grid(what, cells, tuple(seeds), base, lambda result: own[result["run"]["plan"]])
    to_go, diverged = record(grid, path, command, until)
    if not path.exists():
        print(lacking(to_go, diverged))
        return []
    rows = results.read(path)["rows"]
    table = leads(rows, baseline, [str(run.plan) for run in diverged])
    print_table(table, baseline)
    figures = f"figures in {path.with_suffix('')}/"
    try:
        draw(rows, baseline, path.with_suffix(""))
    except ModuleNotFoundError:
        figures = "no figures without Matplotlib: pip install 'minimal[compare]'"
    print("; ".join(filter(None, [f"written: {path}", figures, lacking(to_go, diverged)])))
    return table


def by_name(baseline, plans):
    """{name: plan}, the baseline first. A baseline that is no plan of the package is one of these
    `plans`, by its name."""
    of_package = re.split("[/@]", baseline)[0] in PLANS
    named = {baseline: baseline if of_package else None}
    for plan in plans:
        if named.get(str(plan)) not in (None, plan):
            raise ValueError(
                f"wanted a name for each plan, got two plans named {str(plan)!r}: name yours as in "
                'Plan(…, name="mine")'
            )
        named[str(plan)] = plan
    return {name: plan or name for name, plan in named.items()}


# ---- a file goes on with the comparison that it holds --------------------------------------------


def check_place(out):
    """Say at once that nothing can be written there: a text takes a while to be read."""
    if out and Path(out).suffix != ".json":
        raise ValueError(f"wanted a file that ends in .json, got {out}: name another --out")
    results.check_evidence(out)


def of_ones_own(plan, model):
    """What a row says of a plan of one's own beside its name, which stays when the plan changes;
    nothing of a plan of the package."""
    code = foreign_code(model)
    return {} if isinstance(plan, str) and not code else dict(code=digest(settings_of(model), code))


def check_file(path, what, base, own):
    """Refuse a file of other runs before anything is trained: they would pass for these, or be
    pooled with them."""
    rows = rows_of(path)
    if rows and (held := results.read(path)["what"]) != what:
        raise ValueError(
            f"{path} holds runs that are {held}, and these are {what}: name another --out"
        )
    for row in rows:
        if lacks := [name for name in READ if name not in row]:
            raise ValueError(
                f"{path} holds rows without {', '.join(lacks)}, which are no runs of a comparison: "
                "name another --out"
            )
        refuse_another(path, shared(row["size"], row["asked"]), shared(base.size, asked_of(base)))
        if row["plan"] in own:
            name = f"code of {row['plan']}"
            theirs, ours = row.get("code"), own[row["plan"]].get("code")
            refuse_another(path, {name: theirs}, {name: ours})


def shared(size, asked):
    """What all runs of a comparison are asked alike."""
    whole = defaults() | asked | dict(size=size)
    return {name: value for name, value in whole.items() if name not in OF_ONE_RUN}


def check_steps(path, base, cells):
    """Refuse a file in which a plan spent the budget otherwise: a second measurement of time finds
    other steps, and two runs of one plan and seed cannot be paired."""
    by_plan = {str(cell["plan"]): cell for cell in cells}
    for row in rows_of(path):
        if row["plan"] in by_plan:
            cell = by_plan[row["plan"]]
            ours = {name: cell[name] for name in ("steps", "changes")}
            theirs = dict(steps=row["steps"], changes=row["asked"].get("changes", {}))
            refuse_another(path, theirs, ours)


def refuse_another(path, theirs, ours):
    differ = [name for name in ours if theirs[name] != ours[name]]
    if differ:
        told = ", ".join(f"{name}: {theirs[name]} there, {ours[name]} here" for name in differ)
        raise ValueError(f"{path} holds another comparison ({told}): name another --out")


# ---- what a comparison says ----------------------------------------------------------------------


def leads(rows, baseline, also=()):
    """How far each plan's loss ends below the baseline's: rows of `intervals.paired`, turned.
    `also`: plans that may have no row, since their runs diverged."""
    plans = dict.fromkeys([*(row["plan"] for row in rows), *also])
    return intervals.ahead(intervals.paired(rows, "loss", baseline, plans=plans))


def print_table(table, baseline):
    print(
        f"{'plan':20}{'n':>3}{'nats':>9}{'spread':>9}{'lead over ' + baseline:>22}   "
        "95 % interval of the lead; above zero is better"
    )
    for row in table:
        mean = "" if row["mean"] is None else f"{row['mean']:.4f}"
        spread = "" if row["mean"] is None else f"{row['spread'] or 0:.4f}"
        lead = "" if row["difference"] is None else f"{row['difference']:+.4f}"
        known = f"{row['plan']:20}{row['n']:3}{mean:>9}{spread:>9}"
        print(f"{known}{lead:>22}   {verdict(row, baseline)}")


def verdict(row, baseline):
    """The interval of a lead in words."""
    if row["mean"] is None:
        return "diverged"
    if row["difference"] is None:
        return f"no {baseline} to pair it with yet"
    if row["low"] is None:
        return "one seed: no interval"
    unclear = not row["clear"] and row["plan"] != baseline
    return f"{row['low']:+.4f} … {row['high']:+.4f}" + "   not distinguishable here" * unclear


def draw(rows, baseline, folder):
    """Losses against steps, tokens and FLOPs, and leads against steps, as pictures in `folder`."""
    import matplotlib  # noqa: F401 before a folder is made

    folder.mkdir(parents=True, exist_ok=True)
    seed = min(row["seed"] for row in rows)
    first = {row["plan"]: row for row in rows if row["seed"] == seed}

    # every plan's loss, against what it was given
    for axis in ("steps", "tokens", "flops"):
        series = {plan: (along(row, axis), row["train"]) for plan, row in first.items()}
        plot = line_plot(series, "Training loss", axis, "nats a token")
        write_picture(plot, folder / f"loss-{axis}.svg")

    # the baseline's less every plan's, where all curves are of one length
    base = first.pop(baseline, None)
    lengths = {len(row["train"]) for row in first.values()}
    if base is None or lengths != {len(base["train"])}:
        return
    window = min(5, len(base["train"]))
    series = {}
    for plan, row in first.items():
        lead = relative(base["train"], row["train"], window)
        series[plan] = range(len(lead)), lead
    title = f"Above zero: a lower loss than {baseline}'s"
    plot = line_plot(series, title, f"{base['every']} steps", "nats")
    write_picture(plot, folder / "lead.svg")


def along(row, axis):
    """Where the points of a row's thinned curve lie on an axis: in the middle of what each sums."""
    a_point = row[axis] * row["every"] / row["steps"]
    return [a_point * (i + 0.5) for i in range(len(row["train"]))]


def line_plot(series, title, xlabel, ylabel):
    """{name: (x, y)} as lines that differ in dash as in colour."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 4), layout="constrained")
    ax = fig.subplots()
    for i, (name, (x, y)) in enumerate(series.items()):
        ax.plot(x, y, label=name, linestyle=DASHES[i % len(DASHES)])
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, loc="left", fontweight="bold")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return fig


def write_picture(fig, path):
    """A picture, equal for equal numbers."""
    import matplotlib

    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "minimal"}):
        fig.savefig(drawn, format="svg", metadata={"Date": None})
    write_whole(path, drawn.getvalue(), is_picture)


def is_picture(path):
    return b"<svg" in path.read_bytes()[:2000]
