"""How many tokens a second does `generate` give, by plan and by length of the text? End to end.

    make bench PART=generate          on this machine's processor; `make gpu` asks a GPU

To prefill 131,072 tokens would take longer than everything else, and a step does not ask where the
rows of its cache come from: they are random (memory.filled), in the shapes that a prefill leaves.
Then `generate` continues, with all that belongs to it: embedding, every layer, head, the choice of
a token. The plans take turns, so whatever else the machine does reaches all of them.

Each number stands beside its floor by bytes: what a step must read, at the rate at which this
machine reads memory. A token reads every weight, every key, and the values of every layer: all
positions where values are stored, and the rows of tokens that occur where a table names them. So
tables in the last third of the layers can spare a sixth of what is read, and tables in all of them
half.

Beside the plans stand the same step compiled, two rivals (rivals.py), and passes over a prompt. The
rounds begin when two of them agree; ratios are those of one round, and an interval holds the median
ratio with 95 percent or more. With one thread the clock is the processor's, which a busy machine
disturbs less; with several it is the one on the wall.
"""

import copy
import math
import time

import torch

from course.memory import distinct_bytes, filled
from evidence.bench.rivals import CALLED_RIVAL, COMPILED_RIVAL, PLAIN_RIVAL, Loop, Transformers
from minimal.bench.timing import in_turn, medians, ratio, timer
from minimal.generate import Writer, stores
from minimal.kernels.recorded import on_gpu
from minimal.model.config import size as named
from minimal.model.still import PlainStep, StillStep
from minimal.model.tape import Bank
from minimal.training.device import compute_dtype
from minimal.variants import build

PLANS = ("standard", "svformer", "bov", "bov-every")

# texts, tokens of context
SHAPES = ((1, 1024), (1, 16384), (1, 131072), (4, 1024), (4, 16384), (64, 1024))

PROMPTS = ((1, 1024), (4, 1024))

RIVALS = {PLAIN_RIVAL: Loop, "transformers": Transformers}

BUFFER = 2**26  # fp32 numbers, 256 MB: what the rate of memory is measured on


class Text:
    """A model and a cache that some texts of one length have filled; every call continues them.

    `way`: "plain" steps as generate takes them on a CPU, or "recorded" ones that stay still."""

    def __init__(self, plan, size, length, tokens, texts=1, where="cpu", way="plain"):
        self.tokens, self.way = tokens, way
        config = named(size, windows="L")
        # weights as they are computed with: nothing is trained here
        self.model = build(plan, config, device=where).to(compute_dtype(where)).eval()
        room = length + tokens + 1
        stored = stores(self.model, texts, room)
        self.cache = filled(self.model, length, batch=texts, capacity=room, stored=stored)
        self.start = self.cache.length, dict(self.cache.filled)
        self.last = torch.zeros(texts, 1, dtype=torch.long, device=where)
        # what is made of a step serves every call
        self.writer, self.step = Writer(self.model, self.cache, None, (1.0, None, None)), None
        self.chance = torch.Generator(where).manual_seed(0)

    def compiled(self):
        """The same model and cache, continued by the compiler's step."""
        other = copy.copy(self)
        other.way, other.step = "compiled", None
        return other

    def rewind(self):
        """As if nothing had been generated: the rows stay, and are written over."""
        self.cache.length, self.cache.filled = self.start[0], dict(self.start[1])

    @torch.inference_mode()
    def __call__(self):
        self.rewind()
        if self.step is None:
            given = self.model, self.cache, None, self.writer.choose
            dials = self.writer.dials if self.way == "compiled" else ()
            self.step = PlainStep(*given) if self.way == "plain" else StillStep(*given, dials)
        said = [self.last]
        for _ in range(self.tokens):
            said.append(self.step(said[-1], self.writer.noise(len(self.last), self.chance)))
        return torch.cat(said, 1)

    @torch.inference_mode()
    def read_bytes(self):
        """What the next token must read: weights, keys, and values or the rows that are named."""
        self.rewind()
        tape = self.model.tape(self.last, self.cache)
        self.model(self.last, tape=tape)
        self.rewind()
        tables = distinct_bytes(bank.weight for bank in self.model.banks.values())
        count = distinct_bytes(self.model.parameters()) - tables
        keys = tape.keys.values()
        return count + sum(k.nbytes for k in keys) + sum(map(value_bytes, tape.values.values()))


def value_bytes(value):
    """Bytes that a new token reads of a layer's values."""
    if isinstance(value, Bank):
        rows = value.table[0].nbytes * value.ids.unique().numel()
        return rows + value.ids.nbytes
    return value.v.nbytes


# ---- in turn -------------------------------------------------------------------------------------
def generation(shapes=SHAPES, plans=PLANS, size="tiny", tokens=8, rounds=9, prompts=(), **how):
    """A row for each shape and plan: tokens a second, its floor, times standard's and allowed."""
    rows = [row for shape in shapes for row in at(*shape, plans, size, tokens, rounds, **how)]
    return rows + [row for shape in prompts for row in prefill(*shape, plans, size, rounds)]


def measure(where):
    """A way to clock one call in milliseconds, and its name."""
    own = torch.device(where).type == "cpu" and torch.get_num_threads() == 1
    by = dict(now=time.process_time) if own else {}
    return timer(where, **by), "processor" if own else "wall"


def warm_up(ways, measure, most=6, agreement=0.1):
    """Rounds until two agree: until no way's time differs by more than a tenth."""
    before = {}
    for _ in range(most):
        taken = {name: measure(way) for name, way in ways.items()}
        near = [abs(ms / before[name] - 1) < agreement for name, ms in taken.items() if before]
        if near and all(near):
            return
        before = taken


def interval(ratios):
    """The least and the greatest of the middle ratios: they hold the median 95 times in 100."""
    ratios, n = sorted(ratios), len(ratios)
    outside = lambda k: 2 * sum(math.comb(n, i) for i in range(k)) / 2**n  # without k at each end
    k = max([0] + [k for k in range(1, n // 2 + 1) if outside(k) <= 0.05])
    return [ratios[max(0, k - 1)], ratios[min(n - 1, n - k)]] if k else [ratios[0], ratios[-1]]


def at(
    texts, length, plans, size, tokens, rounds, buffer=BUFFER, where="cpu", way="plain",
    compiled=(), rivals=(),
):  # fmt: skip
    """The rows of one shape. A step continues all texts, so it gives as many tokens as there are
    texts; a GPU's clock stops when its work is done. `compiled`: plans that are compiled, too, and
    the loop with them. `rivals`: some of RIVALS, or True for all."""
    memory = torch.ones(buffer, device=where)
    shape = dict(length=length, tokens=tokens, texts=texts, where=where)
    made = {plan: Text(plan, size, way=way, **shape) for plan in plans}
    read = {plan: text.read_bytes() for plan, text in made.items()}
    held = {plan: text.cache.bytes() for plan, text in made.items()}
    for plan in compiled:
        text = made[plan].compiled()
        try:
            text()
        except Exception as why:  # a compiler that cannot: the other rows are still wanted
            print(f"{plan}, compiled: {why}", flush=True)
            continue
        made[f"{plan}, compiled"], read[f"{plan}, compiled"] = text, read[plan]
    for name in RIVALS if rivals is True else rivals:
        if RIVALS[name].is_here(where):
            made[name] = RIVALS[name](size, **shape)
    if PLAIN_RIVAL in made and on_gpu(where):
        made[CALLED_RIVAL] = made[PLAIN_RIVAL].called()
    elif compiled and PLAIN_RIVAL in made:
        made[COMPILED_RIVAL] = Loop(size, compile=True, **shape)
    one, clock_name = measure(where)
    ways = made | dict(memory=memory.sum)
    warm_up(ways, one)
    taken = in_turn(ways, rounds, one)
    rate = memory.nbytes / min(taken["memory"])  # bytes a millisecond
    first, rows = plans[0], []
    for name in made:
        step = medians(taken)[name] / tokens
        bytes_read = read.get(name, read[first])
        ratios = [a / b for a, b in zip(taken[first], taken[name], strict=True)]
        rows.append(
            dict(
                plan=name,
                size=size,
                length=length,
                texts=texts,
                tokens_per_second=1e3 * texts / step,
                floor_tokens_per_second=1e3 * texts * rate / bytes_read,
                share=bytes_read / rate / step,
                read_bytes=bytes_read,
                held_bytes=held.get(name),
                times_standard=ratio(taken, first, name),
                times_loop=times_loop(taken, name, where),
                interval=interval(ratios),
                bytes_allow=read[first] / bytes_read,
                clock=clock_name,
            )
        )
        print(report(rows[-1]), flush=True)
    return rows


def times_loop(taken, name, where="cpu"):
    """How many times the plain loop's tokens a second; what is compiled, the compiled loop's, which
    on a GPU the plain loop is. None where there is no loop."""
    loop = COMPILED_RIVAL if "compiled" in name and not on_gpu(where) else PLAIN_RIVAL
    return ratio(taken, loop, name) if loop in taken else None


def prefill(texts, length, plans, size, rounds, where="cpu"):
    """Tokens a second of a prompt: one pass over all of it, into a cache."""
    models = {plan: build(plan, named(size, windows="L"), device=where).eval() for plan in plans}
    ids = torch.randint(named(size).vocab, (texts, length), device=where)

    @torch.inference_mode()
    def passing(model):
        model(ids, cache=model.cache(length))

    ways = {plan: lambda model=model: passing(model) for plan, model in models.items()}
    one, clock_name = measure(where)
    warm_up(ways, one)
    taken, first, rows = in_turn(ways, rounds, one), plans[0], []
    for plan in plans:
        ratios = [a / b for a, b in zip(taken[first], taken[plan], strict=True)]
        row = dict(plan=plan, size=size, length=length, texts=texts, prefill=True)
        row |= dict(tokens_per_second=1e3 * texts * length / medians(taken)[plan])
        row |= dict(times_standard=ratio(taken, first, plan), interval=interval(ratios))
        rows.append(row | dict(clock=clock_name))
        print(
            "prefill, {texts} x {length:7,} tokens, {plan:18}: {tokens_per_second:8.0f} tokens/s, "
            "{times_standard:5.2f} times standard [{interval[0]:.2f}, {interval[1]:.2f}]"
            "".format(**row),
            flush=True,
        )
    return rows


def report(row):
    """One row in a line."""
    line = (
        "generate, {texts:2} x {length:7,} tokens of context, {plan:18}: {tokens_per_second:8.1f} "
        "tokens/s, {share:4.0%} of the floor; {times_standard:5.2f} times standard "
        "[{interval[0]:.2f}, {interval[1]:.2f}] (bytes allow {bytes_allow:.2f})"
    )
    if row["times_loop"] is not None:
        line += ", {times_loop:5.2f} times the plain loop"
    return line.format(**row)


# texts, tokens of context, rounds
PRICED = ((1, 64, 41), (1, 1024, 41), (1, 16384, 13), (4, 1024, 21))


def price(plans=("standard", "bov"), size="tiny", shapes=PRICED, **how):
    """What the seam costs: a step of ours beside the plain loop's, in a minute. One thread, whose
    seconds are the processor's."""
    rows = []
    for texts, length, rounds in shapes:
        how |= dict(plans=plans, size=size, tokens=8, rounds=rounds, rivals=(PLAIN_RIVAL,))
        rows += generation(((texts, length),), **how)
    return rows


def everything(**how):
    """What `make bench PART=generate` prints: rivals everywhere, the compiled step where the past
    is short and its overhead is all there is."""
    rows = []
    for shape in SHAPES:
        compiled = ("standard", "bov") if shape == SHAPES[0] else ()
        long = shape[0] * shape[1] >= 65536
        much = dict(rounds=7, tokens=4) if long else dict(rounds=9, tokens=8)
        rows += generation((shape,), compiled=compiled, rivals=True, **much, **how)
    return rows + generation((), prompts=PROMPTS, rounds=7, **how)
