"""Where does a training step's time go on a GPU? By kernel, beside nanochat's of the same shape.

    make gpu ARGS='--only step'      d12 on a GPU; DRY=1 by operator, a toy on a CPU

Three ways: our step as it trains, with its windows; the same without windows; and nanochat's
design (rivals.py), which has none. All are compiled, and one optimizer moves them. A step has two
parts: the passes over a micro-batch, which a larger batch repeats, and the optimizer's move, which
it does not. The passes are told by kernel, and kernels by what they are for.

Shares are of the step. Beside them stands what share of the peak the step would reach without this
kind of kernel: so the list says what is worth mending, and what only sounds as if it were.
"""

import torch

from course.markdown import table
from evidence.bench.gpu_table import PEAK
from evidence.bench.rivals import Nanochat
from evidence.bench.token_profile import by_operator
from minimal.bench.timing import in_turn, medians, timer, zipf
from minimal.model.config import size as named
from minimal.model.count import count
from minimal.training import optim
from minimal.training.compiling import compiled
from minimal.training.device import compute_dtype
from minimal.variants import build, skeleton

WAYS = OURS, WHOLE, THEIRS = "ours", "ours, no windows", "nanochat's"

# what a kernel is for, by a word of its name: the first that holds. The compiler names its kernels
# after the operations that it joined.
KINDS = (
    ("attention", ("flash", "fmha", "sdpa", "flex_attention", "scaled_dot_product", "cudnn_gen")),
    (
        "products",
        ("gemm", "nvjet", "cutlass", "cublas", "xmma", "tem_fused", "::mm", "::addmm", "::bmm"),
    ),
    ("scores and loss", ("tanh", "_exp_", "::exp", "softmax", "nll_loss", "scatter", "gather")),
    ("norms and positions", ("norm", "rsqrt", "roll", "_cat_", "_cos_", "_sin_")),
    ("relu squared", ("relu",)),
    ("embedding", ("embedding", "index", "sort")),
    ("copies", ("memcpy", "memset", "copy", "::cat", "::clone", "::contiguous")),
)
NO_KIND = "all others"
BETWEEN, MOVE = "between kernels", "optimizer"

MOST_KERNELS = 25  # kernels by name
LARGE_BATCH = 2**19  # tokens of nanochat's batch, in which the optimizer's move hardly counts


class Step:
    """A model that is trained on one batch: the passes, and with the optimizer's move the step."""

    def __init__(self, way, size, batch, where, compile):
        config = named(size) if way == OURS else named(size, windows="L")
        if way == THEIRS:
            self.model = Nanochat(config, where)
        else:
            kind = compute_dtype(where)
            self.model = build("standard", config, device=where, compute=kind)
        self.tokens = batch * config.context
        how = dict(batch_tokens=self.tokens, steps=1000, scale="paper")
        self.optimizer = optim.Optimizer(self.model, "course", **how)
        self.loss = compiled(self.model.loss) if compile else self.model.loss
        ids = zipf(config.vocab, self.tokens + batch, torch.Generator().manual_seed(0))
        ids = ids.view(batch, config.context + 1).long().to(where)
        self.batch = ids[:, :-1], ids[:, 1:]
        self.flops = self.tokens * count(skeleton("standard", config))["flops_per_token"]

    def passes(self):
        """Forward and backward; gradients add up, as over the micro-batches of a large batch."""
        self.loss(*self.batch).backward()

    def __call__(self):
        self.passes()
        self.optimizer.step(100)


def steps(size="d12", batch=16, where="cuda", compile=True, rounds=10, ways=WAYS):
    """A row a way: milliseconds of the step and of its passes, in turn, and its kernels."""
    made = {way: Step(way, size, batch, where, compile) for way in ways}
    calls = {(way, "step"): step for way, step in made.items()}
    calls |= {(way, "passes"): step.passes for way, step in made.items()}
    taken = medians(in_turn(calls, rounds, timer(where)))
    for way, step in made.items():
        whole, passes = taken[way, "step"], taken[way, "passes"]
        yield row_of(way, step, whole, passes, by_operator(step.passes, 1, where)) | dict(size=size)


def row_of(way, step, whole, passes, kernels):
    """`whole` and `passes` in milliseconds, `kernels` as by_operator tells them."""
    kinds = by_kind(kernels, 1e3 * passes)
    kinds[MOVE] = 0, 1e3 * max(0.0, whole - passes)
    longest = sorted(kernels, key=lambda name: -kernels[name][1])[:MOST_KERNELS]
    many = max(1, LARGE_BATCH // step.tokens)  # micro-batches
    large = many * passes + max(0.0, whole - passes)
    return dict(
        way=way,
        tokens=step.tokens,
        step_ms=whole,
        passes_ms=passes,
        tflops=step.flops / whole / 1e9,
        share_of_peak=1e3 * step.flops / whole / PEAK,
        share_of_peak_large_batch=1e3 * many * step.flops / large / PEAK,
        kinds={kind: list(told) for kind, told in kinds.items()},
        kernels={name[:120]: list(kernels[name]) for name in longest},
    )


def by_kind(kernels, passes):
    """{kind: (calls, microseconds)} of kernels, and what of the passes is none of them."""
    found = {}
    for name, (calls, us) in kernels.items():
        if name != "outside":
            before = found.get(kind_of(name), (0, 0))
            found[kind_of(name)] = before[0] + calls, before[1] + us
    spent = sum(us for _, us in found.values())
    return found | {BETWEEN: (0, max(0.0, passes - spent))}


def kind_of(kernel):
    name = kernel.lower()
    return next((kind for kind, words in KINDS if any(word in name for word in words)), NO_KIND)


def report(row):
    """One way in Markdown: a sentence, its kinds, and the kernels that take longest."""
    whole, peak = row["step_ms"], row["share_of_peak"]
    said = (
        "{way} {size}: a step of {tokens:,} tokens {step_ms:.1f} ms, {tflops:.0f} TFLOP/s, "
        "{share_of_peak:.0%} of the peak; {share_of_peak_large_batch:.0%} in batches of 524,288"
    ).format(**row)
    lines = []
    for kind, (calls, us) in sorted(row["kinds"].items(), key=lambda item: -item[1][1]):
        share = us / 1e3 / whole
        without = f"{peak / (1 - share):.0%}" if kind != "products" and share < 1 else ""
        lines.append([kind, f"{calls:.0f}", f"{us / 1e3:.2f}", f"{share:.0%}", without])
    kinds = table(["kind", "calls", "ms", "of the step", "of the peak without it"], lines)
    names = row["kernels"].items()
    lines = [[f"`{name}`", f"{calls:.0f}", f"{us:,.0f}"] for name, (calls, us) in names]
    return "\n\n".join([said, kinds, table(["kernel", "calls", "µs"], lines)])
