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
"""

import torch

from minimal.bench.memory import distinct_bytes, filled
from minimal.bench.timing import clock, in_turn, medians, ratio
from minimal.generate import generate
from minimal.model.config import size as named
from minimal.model.tape import Bank
from minimal.training.device import compute_dtype
from minimal.variants import build

PLANS = ("standard", "svformer", "bov", "bov-every")

LENGTHS = (1024, 16384, 131072)

BUFFER = 2**26  # fp32 numbers, 256 MB: what the rate of memory is measured on


class Text:
    """A model and a cache that some texts of one length have filled; every call continues them."""

    def __init__(self, plan, size, length, tokens, texts=1, where="cpu"):
        self.tokens = tokens
        config = named(size, windows="L")
        # weights as they are computed with: nothing is trained here
        self.model = build(plan, config, device=where).to(compute_dtype(where)).eval()
        self.cache = filled(self.model, length, batch=texts, capacity=length + tokens + 1)
        self.start = self.cache.length, dict(self.cache.filled)
        self.last = torch.zeros(texts, 1, dtype=torch.long, device=where)

    def rewind(self):
        """As if nothing had been generated: the rows stay, and are written over."""
        self.cache.length, self.cache.filled = self.start[0], dict(self.start[1])

    def __call__(self):
        self.rewind()
        return generate(self.model, self.last, self.tokens, cache=self.cache)

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


def generation(lengths=LENGTHS, plans=PLANS, size="tiny", tokens=8, rounds=7, **where):
    """A row for each length and plan: tokens a second, its floor, times standard's and allowed."""
    return [row for length in lengths for row in at(length, plans, size, tokens, rounds, **where)]


def at(length, plans, size, tokens, rounds, buffer=BUFFER, texts=1, where="cpu"):
    """The rows of one length. A step continues all texts, so it gives as many tokens as there are
    texts; a GPU's clock stops when its work is done."""
    memory = torch.ones(buffer, device=where)
    made = {plan: Text(plan, size, length, tokens, texts, where) for plan in plans}
    read = {plan: text.read_bytes() for plan, text in made.items()}
    milliseconds = lambda way: 1e3 * clock(way, 1, warm=0, where=where)[0]
    taken = in_turn(made | dict(memory=memory.sum), rounds, milliseconds)
    rate = memory.nbytes / min(taken["memory"])  # bytes a millisecond
    rows = []
    for plan in plans:
        step = medians(taken)[plan] / tokens
        rows.append(
            dict(
                plan=plan,
                size=size,
                length=length,
                texts=texts,
                tokens_per_second=1e3 * texts / step,
                floor_tokens_per_second=1e3 * texts * rate / read[plan],
                read_bytes=read[plan],
                held_bytes=made[plan].cache.bytes(),
                times_standard=ratio(taken, plans[0], plan),
                bytes_allow=read[plans[0]] / read[plan],
            )
        )
        print(report(rows[-1]), flush=True)
    return rows


def report(row):
    """One row in a line."""
    return (
        "generate, {texts} x {length:7,} tokens of context, {plan:10}: "
        "{tokens_per_second:7.1f} tokens/s, {times_standard:5.2f} times standard (bytes allow "
        "{bytes_allow:.2f}); floor {floor_tokens_per_second:.0f} tokens/s".format(**row)
    )
