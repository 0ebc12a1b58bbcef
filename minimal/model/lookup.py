"""What if a table by ids fed the stream and not the values? Per-layer embeddings, and Engram.

Both look a row up by ids, open or close it by what the token has become, and add it to the residual
stream. A lookup gives one vector a token (B, T, C); what becomes of it is a second question, so
that one table can be put into the stream, into V, or into both.
"""

import torch
import torch.nn.functional as F
from torch import nn

from minimal.model.layers import Embedding, Linear, Norm, Part, norm
from minimal.model.ngram import slots
from minimal.model.values import Source, as_heads, check_width


# ---- what is looked up --------------------------------------------------------------------------
class PerLayer(Part):
    """norm(W_P (gelu(W_G h) * e)), e = (E[id] + norm(W_E x0)) / sqrt 2: Gemma 3n's and Gemma 4's
    per-layer embedding, a quarter as wide as the stream, a table a layer."""

    mark = "opened"

    def __init__(self, *, config, at):
        super().__init__()
        width = self.width = max(2, config.width // 4)
        count = config.padded(config.style.pad_embed)
        self.table = Embedding(f"{at}.ple", count, (width,), "table", "normal")
        self.context = Linear(f"{at}.ple_context", config.width, width)
        self.gate = Linear(f"{at}.ple_gate", config.width, width)
        self.project = Linear(f"{at}.ple_project", width, config.width)
        self.norms = nn.ModuleList(Norm(n, "rms", 1e-6) for n in (width, config.width))

    def forward(self, h, tape):
        context = self.norms[0](self.context(tape.x0))  # (B, T, P)
        e = (self.table(tape.ids).to(h.dtype) + context) * 2**-0.5  # (B, T, P)
        opening = F.gelu(self.gate(h), approximate="tanh")  # (B, T, P)
        return self.norms[1](self.project(opening * e))  # (B, T, C)

    def label(self):
        return "per-layer E"


class Engram(Part):
    """sigmoid(norm(h) . norm(W_K e) / sqrt C) W_V e, where e joins the rows that `heads` hashes of
    the last two and of the last three ids choose (2601.07372).

    Left out: its tokenizer compression; its short convolution, which starts at zero; its biases;
    the weights of its norms; and the branches of its hyper-connections."""

    recalls = True
    mark = "slots"

    def __init__(self, heads=4, times=2, orders=(2, 3), *, config, at):
        super().__init__()
        self.heads, self.times, self.orders = heads, times, orders
        # half of the stream's width for every order, shared among its heads
        each = max(1, config.width // 2 // heads)
        self.rows = times * config.padded(config.style.pad_embed)
        count, joined = self.rows * heads * len(orders), each * heads * len(orders)
        self.table = Embedding(f"{at}.engram", count, (each,), "table", "normal")
        self.key = Linear(f"{at}.engram_k", joined, config.width)
        self.value = Linear(f"{at}.engram_v", joined, config.width)

    def names(self, tape):
        """Rows of the one table that holds all heads' (B, T, heads of all orders)."""
        ids, found = tape.token_ids(), []
        for n in self.orders:
            for head in range(self.heads):
                start = self.rows * len(found)
                found.append(start + tape.new(slots(ids, n, self.rows, head)))
        return torch.stack(found, -1)

    def forward(self, h, tape):
        e = self.table(self.names(tape)).flatten(2).to(h.dtype)  # (B, T, joined)
        match = (norm(h) * norm(self.key(e))).sum(-1, keepdim=True)  # (B, T, 1)
        return torch.sigmoid(match * h.shape[-1] ** -0.5) * self.value(e)  # (B, T, C)

    def label(self):
        return "engram"


# ---- where it goes ------------------------------------------------------------------------------
class Looked(Source):
    """Values out of a lookup, to be mixed with the own; tape.looked remembers the vector."""

    def __init__(self, look, **where):
        super().__init__(**where)
        check_width(self.config, "a lookup")
        self.look = look(**where)
        self.mark = self.look.mark

    def rows(self, h, at, tape):
        tape.looked[at] = self.look(h, tape)
        return as_heads(tape.looked[at], self.config)

    def word(self):
        return self.look.label()


class IntoStream(nn.Module):
    """x + lookup(x): before the blocks that `where` chooses (Engram), or behind them (`behind`,
    per-layer embeddings)."""

    def __init__(self, look, where, behind=False, *, config):
        super().__init__()
        chosen = [at for at in range(config.layers) if where(at, config.layers)]
        self.behind = behind
        self.looks = nn.ModuleDict({str(at): look(config=config, at=at) for at in chosen})

    def enter(self, x, at, tape):
        at = str(at - 1 if self.behind else at)
        return x + self.looks[at](x, tape) if at in self.looks else x


class AlsoIntoStream(nn.Module):
    """What a layer looked up for its values joins the stream behind that layer, too."""

    def __init__(self, *, config):
        super().__init__()

    def enter(self, x, at, tape):
        return x + tape.looked[at - 1] if at - 1 in tape.looked else x
