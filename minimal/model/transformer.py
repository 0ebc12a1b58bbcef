"""What is a transformer once the value path is a dial? Blocks, the model, its init, and its counts."""

import torch
import torch.nn.functional as F
from torch import nn

from minimal.model.attention import Attention
from minimal.model.cache import Cache
from minimal.model.init import role_of
from minimal.model.layers import MLP, Coefficient, Embedding, Linear, Norm, norm, rope_tables
from minimal.model.loss import HeadLoss
from minimal.model.tape import Tape


class Block(nn.Module):
    """Two residual branches; a plan may drop either (modded's attention-free layer, DVA without a feed-forward net)."""

    def __init__(self, config, at, line):
        super().__init__()
        style = config.manners
        self.post, self.dropout = style.post, config.dropout
        self.attention = Attention(config, at, line) if line.value else None
        self.mlp = MLP(config, at) if line.mlp else None
        weighted = style.norm != "plain"
        for name, branch in (("norm1", self.attention), ("norm2", self.mlp)):
            setattr(
                self,
                name,
                Norm(config.width, style.norm, style.eps) if weighted and branch else None,
            )
        self.first = (self.norm1 or norm) if style.attention_norm else (lambda x: x)
        self.second = self.norm2 or norm

    def forward(self, x, at, tape):
        for branch, normed, more in (
            (self.attention, self.first, (at, tape)),
            (self.mlp, self.second, ()),
        ):
            if branch is not None:
                y = F.dropout(
                    branch(x if self.post else normed(x), *more), self.dropout, self.training
                )
                x = normed(x + y) if self.post else x + y
        return x


class Smear(nn.Module):
    """x_t += w sigmoid(g . x_t[:24]) x_{t-1}: each token sees a little of the one before (nanochat; off by default).
    With it x0 is no longer a function of the token alone, and a table by token is no longer exact."""

    def __init__(self, config):
        super().__init__()
        self.features = min(24, config.width)
        self.gate = Linear("smear", self.features, 1, "smear")
        self.weight = Coefficient("smear", 0.0)

    def forward(self, x, tape):
        rows = tape.keep("smear", x, last=1)
        before = F.pad(rows, (0, 0, 1, 0))[
            :, -x.shape[1] - 1 : -1
        ]  # (B, T, C): the previous token's own embedding
        return x + self.weight() * torch.sigmoid(self.gate(x[..., : self.features])) * before


class GPT(nn.Module):
    """A decoder built from a size (Config) and a plan (where every layer's values come from)."""

    def __init__(self, config, plan):
        super().__init__()
        self.config, self.plan = config, plan
        style = config.manners
        if "rope" in style.positions and config.head % 2:
            raise ValueError(
                f"rotary positions turn pairs of features, and heads of {config.head} do not split into pairs: "
                f"choose heads so that width {config.width} / heads is even"
            )
        self.embed = Embedding(
            "embed", config.padded(style.pad_embed), (config.width,), "embed", "embed"
        )
        self.position = (
            Embedding("position", config.context, (config.width,), "position", "normal")
            if style.positions == "learned"
            else None
        )
        self.smear = Smear(config) if config.smear else None
        lines = plan.lines(config)
        self.blocks = nn.ModuleList(Block(config, at, line) for at, line in enumerate(lines))
        self.check_order()
        self.streams = nn.ModuleList(make(config=config) for make in plan.streams)
        self.banks = nn.ModuleDict(self.make_banks())
        self.norm = Norm(config.width, style.norm, style.eps) if style.norm != "plain" else None
        self.head = Linear("head", config.width, config.padded(style.pad_head), "head")
        self.windows = config.window_sizes()

    def check_order(self):
        for at, block in enumerate(self.blocks):
            for j in (part.j for part in block.modules() if hasattr(part, "j")):
                if not 0 <= j < at:
                    raise ValueError(
                        f"layer {at} would read layer {j}, which does not come before it: "
                        "place the plan in other layers"
                    )

    def sources(self):
        """The value sources by layer, nested ones included."""
        return {
            at: [m for m in block.attention.value.modules() if hasattr(m, "mark")]
            for at, block in enumerate(self.blocks)
            if block.attention
        }

    def make_banks(self):
        """The tables that this model's sources name; one that several layers name exists once."""
        banks = {}
        for at, sources in self.sources().items():
            for s in sources:
                if s.bank and s.bank not in banks:
                    slots = (s.slots,) if hasattr(s, "slots") else ()
                    shape, count = (
                        (*slots, self.config.kv, self.config.head),
                        len(self.embed.weight),
                    )
                    banks[s.bank] = Embedding(f"{at}.v", count, shape, "table", s.start)
        return banks

    def reach(self, windows):
        """How far back layer j's kept rows are read: the widest window among the layers that read them (0 = all)."""
        readers = {at: [at] for at in range(self.config.layers)}
        for at, block in enumerate(self.blocks):
            if block.attention:
                a = block.attention
                for j in (*a.value.reads, *a.key.reads, *a.read.reads):
                    readers[j].append(at)
        return [
            0 if any(windows[r] == 0 for r in rs) else max(windows[r] for r in rs)
            for rs in readers.values()
        ]

    def tape(self, ids, cache=None, windows=None, lengths=None):
        """A blank tape for one pass; hand it to forward to read afterwards what every layer saw."""
        windows = list(windows) if windows is not None else self.windows
        return Tape(ids, self.banks, cache, windows, lengths, self.reach(windows))

    def hidden(self, ids, tape):
        """The stream before the head (B, T, C)."""
        style, t = self.config.manners, ids.shape[1]
        positions = torch.arange(tape.start, tape.start + t, device=ids.device)
        x = self.embed(ids).to(self.dtype)  # (B, T, C)
        if self.position is not None:
            if tape.start + t > self.config.context:
                raise ValueError(
                    f"position {tape.start + t} was asked of a model with {self.config.context} learned "
                    f"positions: shorten the text or train with a longer context"
                )
            x = x + self.position(positions).to(x.dtype)
        else:
            tables = rope_tables(
                positions, self.config.head, style.rope_base, style.positions == "half-rope"
            )
            tape.rotation = [table.to(x.dtype) for table in tables]
        if style.embed_norm:
            x = norm(x)
        if self.smear is not None:
            x = self.smear(x, tape)
        for at in range(self.config.layers + 1):
            tape.streams.append(x)
            for stream in self.streams:
                x = stream.enter(x, at, tape)
            if at < self.config.layers:
                x = self.blocks[at](x, at, tape)
        if tape.cache is not None:
            tape.cache.length += t
        return self.norm(x) if self.norm is not None else norm(x)

    def logits(self, x):
        """Scores over the vocabulary in fp32, softly capped at 15 where the style does so."""
        cap = self.config.manners.softcap
        z = self.head(x / 15 if cap else x)[
            ..., : self.config.vocab
        ].float()  # (B, T, V); x is small, z is large
        if cap == "tanh":
            return 15 * torch.tanh(z)
        return 15 * z * torch.rsqrt(z * z + 1) if cap == "isru" else z

    def forward(self, ids, *, cache=None, tape=None, windows=None, lengths=None):
        """ids (B, T) -> logits (B, T, V). With a cache, ids continue what it holds."""
        tape = tape or self.tape(ids, cache, windows, lengths)
        return self.logits(self.hidden(ids, tape))

    def loss(self, ids, targets, reduction="mean", **how):
        """Cross entropy in nats; targets below 0 do not count. Where it is to be trained, by loss.py's shorter way."""
        if reduction == "mean" and torch.is_grad_enabled():
            x = self.hidden(ids, how.pop("tape", None) or self.tape(ids, **how))  # (B, T, C)
            head, cap = self.head.weight[: self.config.vocab], self.config.manners.softcap
            return (
                HeadLoss.apply(x.flatten(0, 1), head, targets.flatten(), cap) / (targets >= 0).sum()
            )
        z = self(ids, **how)
        return F.cross_entropy(
            z.flatten(0, 1), targets.flatten().clamp(min=-1), ignore_index=-1, reduction=reduction
        )

    def cache(self, capacity=None, rings=False):
        return Cache(capacity, rings)

    @property
    def device(self):
        return self.embed.weight.device

    @property
    def dtype(self):
        """The activations' type: the model casts weights to it, so master weights may stay fp32."""
        return getattr(self, "compute", self.embed.weight.dtype)

    def roles(self):
        """Every parameter's role, from which its optimizer and its rate follow. The set is closed: none is missing."""
        roles = {}
        for name, module in self.named_modules():
            for leaf, _ in module.named_parameters(recurse=False):
                roles[f"{name}.{leaf}" if name else leaf] = role_of(module, leaf)
        return {
            name: roles[name] for name, _ in self.named_parameters()
        }  # a tied matrix appears once

    def coefficients(self):
        """Every learned coefficient by name: what the course draws over layers and over training."""
        return {name: m.value for name, m in self.named_modules() if isinstance(m, Coefficient)}
