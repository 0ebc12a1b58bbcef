"""What is a transformer once the value path is a dial? Blocks, the model, its init, and its counts."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from minimal.base import Linear, Norm, generator, norm, rope_tables
from minimal.loss import HeadLoss
from minimal.sources import Coefficient
from minimal.tape import Cache, Tape


class Embedding(nn.Module):
    """Rows by id. `shape` is one row's shape: (C,) for tokens, (G, D) for a table of values."""

    def __init__(self, key, count, shape, role, start):
        super().__init__()
        self.key, self.role, self.start = key, role, start
        self.weight = nn.Parameter(torch.empty(count, *shape))

    def forward(self, ids):
        return F.embedding(ids, self.weight.flatten(1)).unflatten(-1, self.weight.shape[1:])

    def rows(self):
        return self.weight


class MLP(nn.Module):
    """relu(W1 h)^2 W2 (nanochat), SwiGLU (llama), or GELU (gpt2, bert)."""

    def __init__(self, config, at):
        super().__init__()
        style, width, hidden = config.manners, config.width, config.mlp_width
        self.kind = style.mlp
        self.up = Linear(f"{at}.up", width, hidden, "up", style.bias)
        self.gate = Linear(f"{at}.up2", width, hidden, "up", style.bias) if self.kind == "swiglu" else None
        self.down = Linear(f"{at}.down", hidden, width, "out", style.bias)

    def forward(self, h):
        u = self.up(h)  # (B, T, hidden)
        if self.kind == "swiglu":
            return self.down(F.silu(self.gate(h)) * u)
        if self.kind == "gelu":
            return self.down(F.gelu(u))
        u = F.relu(u)
        return self.down(u * u)  # a product's gradient is cheaper than a power's


class Attention(nn.Module):
    """Three doors (query, key, value), one way of reading, one way out: each an entry of the plan's line."""

    def __init__(self, config, at, line):
        super().__init__()
        where = dict(config=config, at=at)
        self.query, self.key, self.value = line.query("q", **where), line.key("k", **where), line.value(**where)
        self.read = line.read(**where)
        own = config.heads * config.head
        self.out = Linear(f"{at}.o", own, config.width, "out", config.manners.bias) if line.wo else nn.Identity()

    def forward(self, h, at, tape):
        q = tape.queries[at] = self.query(h, at, tape)  # (B, T, H, D)
        k = tape.keys[at] = self.key(h, at, tape)  # (B, S, G, D)
        value = tape.values[at] = self.value.values(h, at, tape)  # Rows or Bank over S
        y = tape.out[at] = self.read(q, k, value, h, at, tape)  # (B, T, H, D)
        return self.out(y.flatten(2))  # (B, T, C)


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
            setattr(self, name, Norm(config.width, style.norm, style.eps) if weighted and branch else None)
        self.first = (self.norm1 or norm) if style.attention_norm else (lambda x: x)
        self.second = self.norm2 or norm

    def forward(self, x, at, tape):
        for branch, normed, more in ((self.attention, self.first, (at, tape)), (self.mlp, self.second, ())):
            if branch is not None:
                y = F.dropout(branch(x if self.post else normed(x), *more), self.dropout, self.training)
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
        before = F.pad(rows, (0, 0, 1, 0))[:, -x.shape[1] - 1:-1]  # (B, T, C): the previous token's own embedding
        return x + self.weight() * torch.sigmoid(self.gate(x[..., :self.features])) * before


class GPT(nn.Module):
    """A decoder built from a size (Config) and a plan (where every layer's values come from)."""

    def __init__(self, config, plan):
        super().__init__()
        self.config, self.plan = config, plan
        style = config.manners
        if "rope" in style.positions and config.head % 2:
            raise ValueError(f"rotary positions turn pairs of features, and heads of {config.head} do not split into pairs: "
                             f"choose heads so that width {config.width} / heads is even")
        self.embed = Embedding("embed", config.padded(style.pad_embed), (config.width,), "embed", "embed")
        self.position = (Embedding("position", config.context, (config.width,), "position", "normal")
                         if style.positions == "learned" else None)
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
                    raise ValueError(f"layer {at} would read layer {j}, which does not come before it: "
                                     "place the plan in other layers")

    def sources(self):
        """The value sources by layer, nested ones included."""
        return {at: [m for m in block.attention.value.modules() if hasattr(m, "mark")]
                for at, block in enumerate(self.blocks) if block.attention}

    def make_banks(self):
        """The tables that this model's sources name; one that several layers name exists once."""
        banks = {}
        for at, sources in self.sources().items():
            for s in sources:
                if s.bank and s.bank not in banks:
                    slots = (s.slots,) if hasattr(s, "slots") else ()
                    shape, count = (*slots, self.config.kv, self.config.head), len(self.embed.weight)
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
        return [0 if any(windows[r] == 0 for r in rs) else max(windows[r] for r in rs) for rs in readers.values()]

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
                raise ValueError(f"position {tape.start + t} was asked of a model with {self.config.context} learned "
                                 f"positions: shorten the text or train with a longer context")
            x = x + self.position(positions).to(x.dtype)
        else:
            tables = rope_tables(positions, self.config.head, style.rope_base, style.positions == "half-rope")
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
        z = self.head(x / 15 if cap else x)[..., :self.config.vocab].float()  # (B, T, V); x is small, z is large
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
            head, cap = self.head.weight[:self.config.vocab], self.config.manners.softcap
            return HeadLoss.apply(x.flatten(0, 1), head, targets.flatten(), cap) / (targets >= 0).sum()
        z = self(ids, **how)
        return F.cross_entropy(z.flatten(0, 1), targets.flatten().clamp(min=-1), ignore_index=-1, reduction=reduction)

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
        return {name: roles[name] for name, _ in self.named_parameters()}  # a tied matrix appears once

    def coefficients(self):
        """Every learned coefficient by name: what the course draws over layers and over training."""
        return {name: m.value for name, m in self.named_modules() if isinstance(m, Coefficient)}


KINDS = dict(matrix="matrix", up="matrix", out="matrix", zero="matrix", gate="gate", head="head", smear="smear")


def role_of(module, leaf):
    if isinstance(module, Linear):
        return "bias" if leaf == "bias" else KINDS[module.kind]
    if isinstance(module, (Coefficient, Embedding)):
        return module.role
    if isinstance(module, Norm):
        return "norm" if leaf == "weight" else "bias"
    raise TypeError(f"{type(module).__name__}.{leaf} has no role: give it one in role_of")


def uniform(std):
    return lambda t, g: t.uniform_(-math.sqrt(3) * std, math.sqrt(3) * std, generator=g)


def normal(std):
    return lambda t, g: t.normal_(0, std, generator=g)


def zero(t, g):
    return t.zero_()


# kind of tensor -> how it starts, by style family; `n` is the fan-in. Zero W_O makes every plan equal at step 0.
INITS = dict(
    nanochat=dict(embed=lambda n: normal(0.8), head=lambda n: normal(0.001), matrix=lambda n: uniform(n ** -0.5),
                  up=lambda n: uniform(0.4 * n ** -0.5), out=lambda n: zero),
    modded=dict(embed=lambda n: normal(1.0), head=lambda n: zero, matrix=lambda n: uniform(0.5 * n ** -0.5),
                up=lambda n: uniform(0.5 * n ** -0.5), out=lambda n: zero),
    normal=dict(embed=lambda n: normal(0.02), head=lambda n: normal(0.02), matrix=lambda n: normal(0.02),
                up=lambda n: normal(0.02), out=lambda n: normal(0.02)),
)
INITS["fan-in"] = INITS["normal"] | dict.fromkeys(("matrix", "up", "out"), lambda n: normal(n ** -0.5))
EVERYWHERE = dict(position=lambda n: normal(0.02), gate=lambda n: (lambda t, g: t.uniform_(0, 0.02, generator=g)),
                  smear=lambda n: (lambda t, g: t.uniform_(0, 0.02, generator=g)), zero=lambda n: zero,
                  uniform=lambda n: uniform(n ** -0.5), normal=lambda n: normal(1.0))


@torch.no_grad()
def init(model, seed=0):
    """Fill every parameter by its name's own random stream; raise on one that nobody filled.

    Because streams go by name, two plans with one seed share every matrix that both have, and an aligned table equals
    norm(x0) W_V with exactly the W_V that the x0 variant would hold."""
    table = INITS[model.config.manners.init] | EVERYWHERE
    for parameter in model.parameters():
        parameter.fill_(float("nan"))
    for module in model.modules():
        if isinstance(module, Linear):
            table[module.kind](module.weight.shape[1])(module.weight, generator(seed, module.key))
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, Norm):
            module.weight.fill_(1.0)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, Coefficient):
            module.value.copy_(torch.tensor(module.start).expand(module.value.shape))
        elif isinstance(module, Embedding) and module.start == "aligned":
            align(model, module, table, seed)
        elif isinstance(module, Embedding):
            kind = "position" if module.role == "position" else module.start
            key = module.key if module.role != "table" else f"table {module.key}"
            table[kind](model.config.width)(module.weight, generator(seed, key))
    unfilled = [name for name, p in model.named_parameters() if p.isnan().any()]
    if unfilled:
        raise RuntimeError(f"no init for {', '.join(unfilled)}: give the kind a row in INITS")
    return model


def align(model, bank, table, seed):
    """Bank of Values' start: row t = norm(embedding of t) W_V, so the first pass equals the x0 variant's."""
    g, d = bank.weight.shape[-2:]
    w_v = table["matrix"](model.config.width)(torch.empty(g * d, model.config.width), generator(seed, bank.key))
    embed = table["embed"](model.config.width)(torch.empty(model.embed.weight.shape), generator(seed, model.embed.key))
    rows = (norm(embed) @ w_v.T).unflatten(-1, (g, d))  # (V, G, D)
    bank.weight.copy_(norm(rows) if model.config.manners.value_norm else rows)
