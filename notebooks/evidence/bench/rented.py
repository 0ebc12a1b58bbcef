"""What should half an hour on a rented GPU be spent on? All that is not yet measured.

    make gpu MINUTES=30       check the kernels, measure, train three models; says its cost first
    make gpu DRY=1            the same on a CPU at toy scale: nothing is first met on rented time
    make gpu MINUTES=9 ARGS='--only token step generation attention --out DIR'     without runs
    python -m evidence.bench.rented --cost      what the paper's own runs would cost

It goes on where it was stopped: a stage whose rows are in the file is not measured again, and a
training run continues from its checkpoint. Each row is on file, in OUT, as soon as it is there.
"""

import math
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from course import records
from course.records import CHECKOUT
from evidence.bench import step_kernels
from evidence.bench.generation import generation
from evidence.bench.gpu_table import ASSUMED, FILE, PEAK, cost
from evidence.bench.token_profile import as_table, one_token
from minimal.bench.bench import training
from minimal.command import command, number
from minimal.compare import ledger
from minimal.data import corpora, results
from minimal.data.files import runs_folder
from minimal.kernels import dense
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import reference
from minimal.kernels.route import kernels_run
from minimal.model.count import count
from minimal.train import Trainer
from minimal.training.run import Run, TimeIsUp
from minimal.variants import skeleton

PLANS = ("standard", "resformer", "bov")

# texts, tokens of context: up to 55 GB of caches, and 19 more for the plain loop's
WRITTEN = ((1, 4096), (1, 16384), (4, 131072), (1, 131072), (64, 4096))

# where the compiler's step stands beside the recorded one, too: up to a minute a plan
COMPILED = {
    (1, 4096): ("standard",),
    (1, 16384): ("standard",),
    (4, 131072): ("standard", "bov", "bov-every"),
}

# where a token is told by kernel; compiled, too, at one of them
TOLD, TOLD_COMPILED = WRITTEN[:3], WRITTEN[1]

# attention's parts, in the order of what decides: what training takes, then decoding
ATTENTION = ("forward", "backward", "documents", "table", "decode", "wide")

# bf16, fp16 and fp32; atomics, graph, table, windows: see tests/kernels/on_gpu.py
KERNELS = (
    *(f"training-{kind}" for kind in ("float32", "bfloat16", "float16")),
    *(f"decoding-{kind}" for kind in ("float32", "bfloat16", "float16")),
    *("atomics", "graph", "table", "windows", "step"),
)


@dataclass
class Session:
    """What was asked, and what the stages share."""

    minutes: float = 30.0
    dry: bool = False
    seeds: int = 1  # runs of each of the three models
    corpus: str = "auto"
    out: Path = records.MEASURED
    only: tuple = ()  # names of stages; empty: all of them
    end: float = math.inf  # by time.monotonic

    def left(self):
        """Minutes."""
        return max(0.0, (self.end - time.monotonic()) / 60)

    @property
    def path(self):
        return Path(self.out) / f"{FILE}.json"

    def time_for(self, minutes, what):
        """A stage goes on only where its next part has time: what is cut off is lost."""
        if self.left() < minutes:
            raise TimeIsUp(f"{what} would take {minutes:g} minutes, {self.left():.1f} are left")

    def rows(self, part):
        return [row for row in ledger.rows_of(self.path) if row["part"] == part]

    def has(self, part, **what):
        """Is such a row on file?"""
        return any(what.items() <= row.items() for row in self.rows(part))

    @cached_property
    def text(self):
        return corpora.find(self.corpus, self.run("standard").tokens)

    def keep(self, row):
        """On file at once, under a head that says where it was measured."""
        about = dict(name=self.text.name, fingerprint=self.text.fingerprint, tokens=0)
        words = "make gpu DRY=1" if self.dry else f"make gpu MINUTES={self.minutes:g}"
        if self.corpus != "auto":
            words += f" ARGS='--corpus {self.text.name}'"
        head = results.header("one session on a GPU: kernels, speed, three models", words, about)
        results.append(self.path, row | ledger.numerical_state(), head)

    def stages(self):
        """{name: stage} of what was asked for."""
        return {name: stage for name, stage in STAGES.items() if name in (self.only or STAGES)}

    # ---- the three models ---------------------------------------------------------------------
    def run(self, plan, flops=None, seed=0):
        """d12 with a quarter of the paper's batch, so that some minutes are several hundred steps;
        at toy scale a model of two layers."""
        folder = runs_folder() / "gpu" / ("dry" if self.dry else "d12") / f"{plan}-{seed}"
        common = dict(plan=plan, corpus=self.corpus, flops=flops, seed=seed, out=str(folder))
        if self.dry:
            small = dict(size="smoke", vocab=280, context=32, batch=4, rows=4)
            return Run(**common, **small, evaluate=10, save=10)
        large = dict(size="d12", batch=64, accumulate=4, scale="paper", compile=True, rows=128)
        return Run(**common, **large, evaluate=100, save=100)

    def shape(self, plan):
        run = self.run(plan)
        return count(skeleton(plan, run.size, **run.config()))

    def rate(self):
        """FLOP/s of training that a budget may count on: the slowest plan's, or what we assume."""
        found = [row["tflops"] * 1e12 for row in self.rows("training")]
        return min(found) if len(found) == len(PLANS) else PEAK * ASSUMED

    def asked_runs(self):
        """(plan, seed) of all runs, seed by seed: cut off early, the plans have equally many."""
        return [(plan, seed) for seed in range(self.seeds) for plan in PLANS]

    def written(self):
        """(texts, tokens of context) of the generations."""
        return ((1, 64), (2, 64)) if self.dry else WRITTEN

    def compiled(self, texts, length):
        """The plans whose step is compiled, too, at this shape."""
        shapes = {self.written()[0]: ("standard",)} if self.dry else COMPILED
        return shapes.get((texts, length), ())

    def told(self):
        """(texts, tokens of context) where a token is told by kernel."""
        return self.written() if self.dry else TOLD

    def for_runs(self):
        """Minutes that the stages before leave for the runs: one each at least."""
        before = sum(
            minutes
            for name, (_, minutes, _) in self.stages().items()
            if not session_whole(self, name)
        )
        return max(self.minutes - before, len(self.asked_runs()))

    def budget(self):
        """FLOPs of each run: decided once, so that they can go on another day."""
        decided = self.rows("budget")
        if decided:
            return decided[0]["flops"]
        if self.dry:
            run, shape = self.run("standard"), self.shape("standard")
            return 3 * shape["flops_per_token"] * run.batch * 32
        minutes = self.for_runs() / len(self.asked_runs())
        seconds = 60 * max(minutes - COMPILING, minutes / 2)
        return float(f"{seconds * self.rate():.1e}")


# ---- the stages ----------------------------------------------------------------------------------


def check_kernels(session):
    """Every kernel against the definition in float64, one process a type, side by side."""
    if session.dry:
        q, k = torch.randn(2, 2, 9, 2, 16)
        table, ids = torch.randn(50, 2, 16), torch.randint(50, (2, 9), dtype=torch.int32)
        mine = gather_attention(q, k, table, ids)
        apart = (mine - reference(q, k, table, ids)).abs().max().item()
        yield dict(part="kernels", kernels=["gather"], equal=[apart < 1e-5])
        return
    start = [sys.executable, "-m", "tests.kernels.on_gpu"]
    how = dict(cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    running = {name: subprocess.Popen([*start, name], **how) for name in KERNELS}
    said = {name: process.communicate()[0] for name, process in running.items()}
    equal = [running[name].returncode == 0 for name in KERNELS]
    for name, good in zip(KERNELS, equal):
        print(f"    {name}: {'equal' if good else said[name][-400:]}", flush=True)
    yield dict(part="kernels", kernels=list(KERNELS), equal=equal)


def profile_token(session):
    """A token by kernel: our recorded step beside the plain loop's."""
    large = dict(size="d12", where="cuda", way="recorded")
    how = dict(size="smoke", tokens=2) if session.dry else large
    for texts, length in session.told():
        if session.has("token", texts=texts, length=length):
            continue
        session.time_for(0.7, f"a token of {texts} x {length}")
        compiled = (texts, length) == TOLD_COMPILED and not session.dry
        found = one_token(texts=texts, length=length, compiled=compiled, **how)
        print(as_table(found), flush=True)
        yield dict(part="token", texts=texts, length=length, kernels=found)


def profile_step(session):
    """A training step by kernel, beside nanochat's of the same shape."""
    run = session.run("standard")
    how = dict(size=run.size, batch=run.batch // run.accumulate)
    how |= dict(where="cpu", compile=False, rounds=1) if session.dry else {}
    ways = [way for way in step_kernels.WAYS if not session.has("step", way=way)]
    session.time_for(2, "a step by kernel")
    for row in step_kernels.steps(ways=ways, **how):
        print(step_kernels.report(row), flush=True)
        yield dict(part="step") | row


def measure_attention(session):
    """Attention by every backend, forward and backward, a table's gradient, then decode."""
    from evidence.bench import gpu, graphs

    how = {}
    if session.dry:
        shape = (1, 24, 2, 2, 32)
        how = dict.fromkeys(("cached", "wide"), [(1, 40, 2, 2, 32)])
        how |= dict(trained=[shape, (*shape, 9)], texts=[(*shape, 12)], hottest=(0.0, 1.0))
        how |= dict(buffers=dict(small=1 << 13, large=1 << 13, programs=2))
        once = dict(rounds=1, layers=1, backwards=1)
        how |= dict(bench=graphs.Bench("cpu", torch.float32, V=8, **once))
    for what in ATTENTION:
        if session.has("attention", what=what):
            continue
        if session.dry and not kernels_run("cpu"):
            why = "Triton's interpreter is not here"
            yield dict(part="attention", what=what, rows=0, file=None, why=why)
            continue
        session.time_for(1, what)
        rows = gpu.everything(session.out, (what,), **how)
        yield dict(part="attention", what=what, rows=len(rows), file="gather_gpu.json")


def measure_training(session):
    """Whole steps of each plan: tokens a second, and the share of the best product."""
    run = session.run("standard")
    batch = run.batch // run.accumulate
    for plan in PLANS:
        if session.has("training", plan=plan):
            continue
        device = "cpu" if session.dry else "cuda"
        repeats = 1 if session.dry else 20
        yield dict(part="training") | training(
            run.size, plan, batch, not session.dry, repeats, device
        )


def measure_generation(session):
    """Tokens a second of a whole generation, by plan, each token one replayed CUDA graph."""
    large = dict(size="d12", rounds=9, buffer=1 << 28, where="cuda")
    how = dict(size="smoke", tokens=2, rounds=2) if session.dry else large
    for texts, length in session.written():
        if session.has("generation", texts=texts, length=length):
            continue
        compiled = session.compiled(texts, length)
        session.time_for(0.5 + 0.5 * len(compiled), f"{texts} x {length}")
        shape = ((texts, length),)
        how |= dict(way="recorded", compiled=compiled)
        try:
            rows = generation(shape, rivals=True, **how)
        except torch.OutOfMemoryError:  # behind this line, what did not fit is let go of
            rows = None
        if rows is None:  # the plans go before the loop
            print(f"{texts} x {length}: no room for the plain loop's cache", flush=True)
            rows = generation(shape, **how)
        for row in rows:
            yield dict(part="generation") | row


def train_models(session):
    """Three models at one FLOP budget; each goes on from its checkpoint."""
    flops = session.budget()
    if not session.rows("budget"):
        yield dict(part="budget", flops=flops, rate=session.rate())
    for plan, seed in session.asked_runs():
        if session.has("run", plan=plan, seed=seed):
            continue
        result = Trainer(session.run(plan, flops, seed), quiet=session.dry).fit(session.left())
        final, spent = result["valid"][-1], result["flops_per_token"] * result["tokens"]
        run = result["run"]
        row = dict(part="run", plan=plan, size=run["size"], seed=run["seed"], steps=result["steps"])
        row |= dict(tokens=result["tokens"], epochs=round(result["epochs"], 2), flops=spent)
        row |= dict(loss=round(final["loss"], 5), bpb=round(final["bpb"], 5))
        yield row | dict(seconds=round(result["seconds"], 1))


def keep_masks_if_needed(session):
    """Windows that were not computed right tile by tile stay masks: slower, and right."""
    for row in session.rows("kernels"):
        found = dict(zip(row["kernels"], row["equal"], strict=True))
        if not found.get("windows", True):
            print("windows are not equal: they stay masks", flush=True)
            dense.LONG = math.inf


# stage: (its part in the file, its minutes on an H100 with 16 cores, what it does); the runs take
# what is left, and each of them compiles for COMPILING minutes before its second step
STAGES = dict(
    kernels=("kernels", 2, check_kernels),
    token=("token", 2, profile_token),
    step=("step", 2.5, profile_step),
    generation=("generation", 6, measure_generation),
    attention=("attention", 7, measure_attention),
    training=("training", 3.5, measure_training),
    runs=("run", 0, train_models),
)
COMPILING = 0.8


def session_whole(session, name):
    """Are all rows of a stage on file?"""
    shapes = dict(token=session.told(), generation=session.written())
    if name in shapes:
        written = (dict(texts=texts, length=length) for texts, length in shapes[name])
        return all(session.has(name, **shape) for shape in written)
    wanted = dict(attention=len(ATTENTION), training=len(PLANS), runs=len(session.asked_runs()))
    wanted |= dict(step=len(step_kernels.WAYS))
    return len(session.rows(STAGES[name][0])) >= wanted.get(name, 1)


def plan_in_words(session):
    """What will be done and what it costs, in words, before anything starts."""
    lines = [f"about {session.minutes:g} minutes; rows go to {FILE}.json as they are measured"]
    for name, (_, fixed, work) in session.stages().items():
        minutes = f"{fixed or session.for_runs():.1f} min"
        if session_whole(session, name):
            minutes = "done"
        lines.append(f"  {name:10}{minutes:>9}  {work.__doc__}")
    if "runs" not in session.stages():
        return "\n".join(lines)
    tokens = session.budget() / session.shape("standard")["flops_per_token"]
    source = "assumed" if len(session.rows("training")) < len(PLANS) else "measured"
    lines.append(
        f"  each run: {session.budget():.1e} FLOPs, {tokens / 1e6:,.0f}M tokens of standard, at "
        f"{session.rate() / 1e12:.2g} TFLOP/s ({source}); text: {session.corpus}"
    )
    return "\n".join(lines)


def carry_out(session):
    """All stages that are not on file yet. -> are they now?"""
    session.end = time.monotonic() + 60 * session.minutes
    for name, (_, _, work) in session.stages().items():
        if session_whole(session, name):
            print(f"{name}: on file", flush=True)
            continue
        print(f"{name}: {session.left():.1f} minutes left", flush=True)
        keep_masks_if_needed(session)
        try:
            for row in work(session):
                session.keep(row)
        except TimeIsUp as why:
            print(f"{name}: {why}; the same command goes on", flush=True)
            return False
    return all(session_whole(session, name) for name in session.stages())


@command("evidence.bench.rented", __doc__.splitlines()[0])
def main(parser, argv):
    parser.add_argument("--minutes", type=number(float, above=0), default=30.0)
    parser.add_argument("--dry", action="store_true", help="on a CPU, at toy scale")
    parser.add_argument("--seeds", type=number(int, least=1), default=1, help="runs of each model")
    parser.add_argument("--corpus", default="auto", help="auto, stdlib, a folder, python:DIR …")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=(), help="these stages alone")
    parser.add_argument("--out", type=Path, help="the folder of the JSON files")
    parser.add_argument("--cost", action="store_true", help="what the paper's runs would cost")
    asked = parser.parse_args(argv)
    if asked.cost:
        print(cost())
        return
    if not (asked.dry or torch.cuda.is_available()):
        parser.error("wanted a GPU that torch can use, got none: rent one, or try DRY=1 here")
    out = asked.out or (runs_folder() / "gpu" / "dry" if asked.dry else records.MEASURED)
    out.mkdir(parents=True, exist_ok=True)
    session = Session(asked.minutes, asked.dry, asked.seeds, asked.corpus, out, tuple(asked.only))
    results.check_evidence(session.path)
    print(plan_in_words(session), flush=True)
    print("all stages are on file" if carry_out(session) else "not whole yet")


if __name__ == "__main__":
    sys.exit(main())
