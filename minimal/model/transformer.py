"""What is a transformer once the value path is a dial? Blocks, and the model around them."""

import torch
import torch.nn.functional as F
from torch import nn

from minimal.model import checks
from minimal.model.attention import Attention
from minimal.model.cache import Cache
from minimal.model.init import role_of
from minimal.model.layers import (
    MLP,
    Coefficient,
    Embedding,
    Linear,
    Module,
    Part,
    norm,
    norm_of,
    rope_tables,
    whole_rows,
)
from minimal.model.loss import CAP, CAPPED, HeadLoss
from minimal.model.tape import Tape
from minimal.model.values import Source


class Block(Module):
    """Two residual branches; a plan may drop either (modded one attention, DVA every MLP)."""

    def __init__(self, config, at, line):
        super().__init__()
        self.style, self.post, self.dropout = config.style, config.style.post, config.dropout
        self.attention = Attention(config, at, line) if line.value else None
        self.mlp = MLP(config, at) if line.mlp else None
        self.norm1 = norm_of(config) if line.value else None
        self.norm2 = norm_of(config) if line.mlp else None

    def first(self, x):
        """What attention reads of the stream (and in BERT what follows the sum)."""
        return self.norm1(x) if self.style.attention_norm else x

    def second(self, x):
        """The same for the MLP."""
        return self.norm2(x)

    def forward(self, x, at, tape):
        attention, mlp = self.attention, self.mlp
        # attention
        if attention is not None:
            h = x if self.post else self.first(x)
            x = x + self.drop(attention(h, at, tape))
            x = self.first(x) if self.post else x
        # feed-forward
        if mlp is not None:
            h = x if self.post else self.second(x)
            x = x + self.drop(mlp(h))
            x = self.second(x) if self.post else x
        return x

    def drop(self, y):
        return F.dropout(y, self.dropout) if self.training and self.dropout else y


class Smear(Module):
    """x_t += w sigmoid(g . x_t[:24]) x_{t-1}: a little of the token before (nanochat; else off).

    With it x0 is no longer a function of the token alone, and a table by token no longer exact.
    """

    def __init__(self, config):
        super().__init__()
        self.features = min(24, config.width)
        self.gate = Linear("smear", self.features, 1, "smear")
        self.weight = Coefficient("smear", 0.0)

    def forward(self, x, tape):
        before = tape.before("smear", x)  # (B, T, C): the previous embedding
        opening = torch.sigmoid(self.gate(x[..., : self.features]))  # (B, T, 1)
        return x + self.weight() * opening * before


class GPT(nn.Module):
    """A decoder built from a size (Config) and a plan (where every layer's values come from)."""

    both_ways = False  # BERT's layers see what comes later, too

    def __init__(self, config, plan):
        super().__init__()
        self.config, self.plan = config, plan
        self.compute = None  # the activations' type; None: the weights'. See to()
        style, width = config.style, config.width
        checks.direction(style, self.both_ways)
        checks.heads(style, config.head, width)
        # embeddings
        self.embed = Embedding("embed", config.padded(style.pad_embed), (width,), "embed", "embed")
        self.position = None
        if style.positions == "learned":
            self.position = Embedding("position", config.context, (width,), "position", "normal")
        self.smear = Smear(config) if config.smear else None
        # blocks, what happens between them, and the tables that their sources name
        lines = plan.lines(config)
        self.blocks = nn.ModuleList(Block(config, at, line) for at, line in enumerate(lines))
        self.check_order()
        self.readers = self.find_readers()
        self.streams = nn.ModuleList(make(config=config) for make in plan.streams)
        self.banks = nn.ModuleDict(self.make_banks())
        # the way out
        self.norm = norm_of(config)
        self.head = Linear("head", width, config.padded(style.pad_head), "head")
        self.windows = config.window_sizes()

    # ---- what the parts ask for ---------------------------------------------------------------
    def check_order(self):
        """A part may read earlier layers only."""
        for at, block in enumerate(self.blocks):
            parts = [part for part in block.modules() if isinstance(part, Part)]
            for j in (part.j for part in parts if part.j is not None):
                if not 0 <= j < at:
                    raise ValueError(
                        f"layer {at} would read layer {j}, which does not come before it: "
                        "place the plan in other layers"
                    )

    def sources(self):
        """The value sources by layer, nested ones included."""
        found = {}
        for at, block in enumerate(self.blocks):
            if block.attention:
                parts = block.attention.value.modules()
                found[at] = [part for part in parts if isinstance(part, Source)]
        return found

    def make_banks(self):
        """The tables that this model's sources name; one that several layers name exists once."""
        banks, vector = {}, (self.config.groups, self.config.head)
        for at, sources in self.sources().items():
            for source in sources:
                if source.bank and source.bank not in banks:
                    shape = vector if source.slots is None else (source.slots, *vector)
                    count = source.size or len(self.embed.weight)
                    table = Embedding(f"{at}.v", count, shape, "table", source.start)
                    banks[source.bank] = table
        return banks

    def find_readers(self):
        """The layers that read layer j's kept rows, itself among them, for every j."""
        found = [[at] for at in range(self.config.layers)]
        for at, block in enumerate(self.blocks):
            if block.attention:
                a = block.attention
                owners = [self.owners("value", j) for j in (*a.value.reads, *a.read.reads)]
                owners += [self.owners("key", j) for j in (*a.key.reads, *a.read.reads)]
                for j in sum(owners, []):
                    found[j].append(at)
        return found

    def owners(self, door, j):
        """The layers whose kept rows are layer j's values or keys: j, or those that it has them
        from. So a chain is followed to its end."""
        attention = self.blocks[j].attention
        if attention is None:
            return [j]
        part = getattr(attention, door)
        earlier = [self.owners(door, i) for i in part.reads]
        own = [j] if part.keeps or not part.reads else []
        return sum(earlier, own)

    def reach(self, windows):
        """How far back layer j's kept rows are read: its readers' widest window (0 = all)."""
        seen = [[windows[at] for at in readers] for readers in self.readers]
        return [0 if 0 in widths else max(widths) for widths in seen]

    # ---- one pass -----------------------------------------------------------------------------
    def tape(self, ids, cache=None, windows=None, lengths=None):
        """A blank tape for one pass; hand it to forward to read afterwards what every layer saw."""
        windows = self.windows if windows is None else list(windows)
        checks.one_pass(self, ids, cache, windows, lengths)
        start = 0 if cache is None else cache.begin(self)
        return Tape(ids, self.banks, cache, windows, lengths, self.reach(windows), start)

    def tape_for(self, ids, tape, cache=None, windows=None, lengths=None):
        """The tape that was handed over, which knows all the rest already; else one of these."""
        if tape is None:
            return self.tape(ids, cache, windows, lengths)
        checks.on_tape(cache, windows, lengths)
        return tape

    def hidden(self, ids, tape):
        """The stream before the head (B, T, C)."""
        style, positions = self.config.style, tape.positions()
        # embedding and positions
        x = self.embed(ids).to(self.dtype)  # (B, T, C)
        if self.position is not None:
            x = x + self.position(positions).to(x.dtype)
        else:
            half = style.positions == "half-rope"
            tables = rope_tables(positions, self.config.head, style.rope_base, half)
            cos, sin = (table.to(x.dtype) for table in tables)  # (T, 1, D/2) each
            kinds = {self.config.heads, self.config.groups}
            tape.rotation = {heads: whole_rows(cos, sin, heads) for heads in kinds}
        if style.embed_norm:
            x = norm(x)
        if self.smear is not None:
            x = self.smear(x, tape)
        # blocks
        x = self.through(x, tape)
        tape.end()
        return self.norm(x)

    def through(self, x, tape):
        """The stream through all blocks, recorded before each and after the last (B, T, C)."""
        checks.blank(tape)
        streams = list(self.streams)
        for at, block in enumerate((*self.blocks, None)):
            tape.streams.append(x)
            for stream in streams:
                x = stream.enter(x, at, tape)
            if block is not None:
                x = block(x, at, tape)
        return x

    def logits(self, x):
        """Scores over the vocabulary in fp32, softly capped at 15 where the style does so."""
        cap, vocab = self.config.style.softcap, self.config.vocab
        if cap is None:
            return self.head(x)[..., :vocab].float()  # (B, T, V)
        # divided here, where the tensor is small
        z = self.head(x / CAP)[..., :vocab].float()  # (B, T, V)
        return CAPPED[cap](z)

    def forward(self, ids, *, cache=None, tape=None, windows=None, lengths=None):
        """ids (B, T) -> logits (B, T, V). With a cache, ids continue what it holds.

        `windows`: keys to the left by layer, 0 = all, instead of the config's. `lengths` (B,):
        positions from there on are padding, which a cache does not know.
        """
        tape = self.tape_for(ids, tape, cache, windows, lengths)
        return self.logits(self.hidden(ids, tape))

    def loss(self, ids, targets, reduction="mean", tape=None, **how):
        """Cross entropy in nats; targets below 0 do not count. `reduction`: mean, sum or none."""
        tape = self.tape_for(ids, tape, **how)
        checks.targets(targets, ids, self.config.vocab, reduction)
        # to be trained: the gradient of the scores is made on the way, see loss.py
        if reduction == "mean" and torch.is_grad_enabled():
            x = self.hidden(ids, tape).flatten(0, 1)  # (B T, C)
            head = self.head.weight[: self.config.vocab]
            total = HeadLoss.apply(x, head, targets.flatten(), self.config.style.softcap)
            return total / (targets >= 0).sum()
        # to be measured
        z = self(ids, tape=tape).flatten(0, 1)  # (B T, V)
        y = targets.flatten().clamp(min=-1)
        return F.cross_entropy(z, y, ignore_index=-1, reduction=reduction)

    def cache(self, capacity=None, rings=False, stored=False):
        return Cache(capacity, rings, stored)

    # ---- what it is ---------------------------------------------------------------------------
    def to(self, *where, compute=None, **how):
        """nn.Module.to; `compute` is the activations' type, while master weights may stay fp32."""
        self.compute = compute or self.compute
        return super().to(*where, **how)

    @property
    def device(self):
        return self.embed.weight.device

    @property
    def dtype(self):
        """The activations' type, to which the model casts its weights as it uses them."""
        return self.compute or self.embed.weight.dtype

    def roles(self):
        """Every parameter's role, from which its optimizer and its rate follow. None is missing."""
        roles = {}
        for name, module in self.named_modules():
            for leaf, _ in module.named_parameters(recurse=False):
                roles[f"{name}.{leaf}" if name else leaf] = role_of(module, leaf)
        # a tied matrix appears once
        return {name: roles[name] for name, _ in self.named_parameters()}

    def coefficients(self):
        """Every learned coefficient by name: what the course draws over layers and training."""
        return {name: m.value for name, m in self.named_modules() if isinstance(m, Coefficient)}
