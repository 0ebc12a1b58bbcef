"""What do a notebook's own runs say? Trained once, and read against `standard` of the same seed.

live = Live(size="tiny", steps=250, corpus="auto")
live.train("standard", "resformer", seeds=2)
live.say("resformer")  # by seed, its interval, and whether that is clear of zero
live.draw({"resformer": ("resformer", 0)}, "ResFormer against standard", alt="…")
"""

from dataclasses import dataclass, field

from course import records
from minimal.compare import intervals
from minimal.compare.curves import relative
from minimal.compare.runs import cached
from minimal.data import corpora
from minimal.training.run import Run


@dataclass
class Live:
    """The runs of one notebook: `results` {(plan, seed): result}."""

    size: str
    steps: int
    corpus: str = "auto"
    results: dict = field(default_factory=dict)

    @property
    def window(self):
        """Steps of the moving average over a training curve."""
        return max(2, self.steps // 5)

    @property
    def book(self):
        return corpora.find(self.corpus).name

    def train(self, *plans, seeds=1):
        """Train what is not there yet, or read it from the cache."""
        for seed in range(seeds):
            for plan in plans:
                run = Run(
                    plan=plan, size=self.size, steps=self.steps, corpus=self.corpus, seed=seed
                )
                self.results[plan, seed] = cached(run)

    def loss(self, plan, seed=0):
        """Held-out nats a token."""
        return self.results[plan, seed]["valid"][-1]["loss"]

    def ahead(self, plan, seed=0, baseline="standard"):
        """Held-out nats a token by which it ends below the baseline of the same seed."""
        return self.loss(baseline, seed) - self.loss(plan, seed)

    def by_seed(self, plan):
        """The same for every seed that was trained."""
        seeds = sorted(seed for name, seed in self.results if name == plan)
        return [self.ahead(plan, seed) for seed in seeds]

    def apart(self, plan):
        """What chance does to a difference: how far the seeds of one plan lie apart."""
        differences = self.by_seed(plan)
        return max(differences) - min(differences)

    def say(self, plan):
        """A plan against standard: by seed, and its interval where there are two seeds or more."""
        differences = self.by_seed(plan)
        _, low, high = intervals.interval(differences)
        by_seed = [round(x, 4) for x in differences]
        told = f"{plan} ahead of standard on {self.book}, by seed {by_seed}"
        if low is None:
            print(f"{told}: one seed, no interval")
            return
        clear = intervals.clear(low, high, len(differences))
        verdict = "clear of zero" if clear else "not distinguishable here"
        if not clear and not low <= 0 <= high:
            verdict += ": so few may agree by luck"
        print(
            f"{told}: 95 % interval {low:+.3f} to {high:+.3f} (n = {len(differences)}), {verdict}"
        )

    def lead(self, plan, seed=0):
        """How far ahead of standard of the same seed in training loss, smoothed, step by step."""
        losses = [self.results[name, seed]["losses"] for name in ("standard", plan)]
        return relative(*losses, self.window)

    def draw(self, runs, title, alt):
        """The leads of several runs {label: (plan, seed)}, beside zero, which is standard."""
        from course import figures

        at = list(range(self.window, self.steps + 1))  # an average is named by its last step
        series = {label: self.lead(*run) for label, run in runs.items()}
        series["standard"] = [0.0] * len(at)
        xlabel = f"step (average of {self.window}), {self.book}"
        figures.show(figures.lines(series, title, xlabel, "nats ahead of standard", x=at), alt)


# ---- recorded rows -------------------------------------------------------------------------------


def recorded(*names):
    """The rows of evidence files; a plan that stands in several is taken from the first."""
    rows = []
    for name in names:
        known = {row["plan"] for row in rows}
        rows += [row for row in records.rows(name) if row["plan"] not in known]
    return rows


def tell(rows, plans, alt, title="", baseline="standard", words=lambda plan: ""):
    """Print and draw how far recorded plans are ahead of a baseline, seed by seed; the table, ahead
    above zero. `words` says more of a plan."""
    from course import figures

    found = intervals.paired(rows, "loss", baseline, plans=plans) if rows else []
    table = figures.ahead(row for row in found if row["n"])
    if not table:
        print("None of these plans is recorded yet: `make evidence` says what is missing.")
    longest = max((len(row["plan"]) for row in table), default=0)
    for row in table:
        interval = "one seed, no interval"
        if row["low"] is not None:
            interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
        told = f"{row['plan']:{longest}}  n = {row['n']}   {row['difference']:+.4f}   {interval}"
        print(f"{told}   {words(row['plan'])}".rstrip())
    if table:
        clear = ", ".join(row["plan"] for row in table if row["clear"]) or "none yet"
        xlabel = f"held-out nats ahead of {baseline} (recorded)"
        title = title or f"Clear of zero: {clear}"
        figures.show(figures.intervals(table, title, xlabel), alt)
    return table
