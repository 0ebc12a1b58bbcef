"""What does a step cost elsewhere? Rivals of the same shape, to be timed in turn: two that decode.

`Transformers` is what everybody has: a Llama of that library, its cache, its `generate`. `Loop` is
what one writes in an afternoon: forty lines of plain PyTorch over a cache that is laid out, with
the norms of queries and keys that ours has. Both are standard transformers with random weights.

And one that trains, `Nanochat`: that design as one writes it in an afternoon, plain modules,
autocast to bf16, all scores of the vocabulary at once, and the loss as PyTorch has it. It computes
what our `standard` computes; windows are left out, since PyTorch's call would take them as masks.
"""

import copy
import importlib.util

import torch
import torch.nn.functional as F
from torch import nn

from minimal.kernels.recorded import Recorded, on_gpu
from minimal.model.config import size as named
from minimal.training.compiling import compiled
from minimal.training.device import compute_dtype

# on a GPU the plain loop's layers are compiled, and a token is one graph: there the second is the
# loop that Python calls, operation by operation
PLAIN_RIVAL, COMPILED_RIVAL, CALLED_RIVAL = "plain loop", "plain loop, compiled", "eager loop"


class Transformers:
    """Its cache is full of random rows; after each call they are what they were."""

    def __init__(self, size, length, tokens, texts=1, where="cpu"):
        from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
        from transformers.utils import logging

        logging.set_verbosity_error()
        c = named(size)
        config = LlamaConfig(
            vocab_size=c.vocab,
            hidden_size=c.width,
            intermediate_size=c.mlp_width,
            num_hidden_layers=c.layers,
            num_attention_heads=c.heads,
            num_key_value_heads=c.groups,
            max_position_embeddings=length + tokens + 1,
        )
        self.model = LlamaForCausalLM(config).to(where, compute_dtype(where)).eval()
        self.tokens, self.length = tokens, length
        self.cache = DynamicCache()
        kind = dict(device=where, dtype=compute_dtype(where))
        for at in range(c.layers):
            self.cache.update(*torch.randn(2, texts, c.groups, length, c.head, **kind), at)
        self.ids = torch.zeros(texts, length + 1, dtype=torch.long, device=where)

    @staticmethod
    def is_here(where="cpu"):
        """On a GPU its steps are launched one by one."""
        return where == "cpu" and importlib.util.find_spec("transformers") is not None

    @torch.inference_mode()
    def __call__(self):
        how = dict(max_new_tokens=self.tokens, min_new_tokens=self.tokens, do_sample=True)
        self.model.generate(self.ids, past_key_values=self.cache, pad_token_id=0, **how)
        self.cache.crop(self.length - self.cache.get_seq_length())  # that many fewer


class Loop:
    """Embedding, norms, products, attention, head, a draw: nothing else. Every call writes its row
    at the same place, so that on a GPU all of it is one graph, of layers that are compiled.
    `compile`: on a CPU the whole step is."""

    @staticmethod
    def is_here(where):
        return True

    def __init__(self, size, length, tokens, texts=1, where="cpu", compile=False):
        c = self.config = named(size)
        kind = dict(device=where, dtype=compute_dtype(where))
        make = lambda *shape: torch.randn(*shape, **kind) * shape[-1] ** -0.5
        self.embed, self.head = make(c.vocab, c.width), make(c.vocab, c.width)
        one = lambda: [
            *(make(c.width, c.width) for _ in range(4)),  # q, k, v, o
            make(c.mlp_width, c.width),
            make(c.width, c.mlp_width),
            *torch.randn(2, texts, c.heads, length + 1, c.head, **kind),  # the cache
        ]
        self.layers, self.tokens = [one() for _ in range(c.layers)], tokens
        self.place = torch.tensor([length], device=where)
        angle = length * 1e5 ** -torch.linspace(0, 1, c.head // 2)
        turns = torch.cat([angle.cos()] * 2), torch.cat([angle.sin(), -angle.sin()])
        self.cos, self.sin = (x.to(**kind) for x in turns)
        self.first = torch.zeros(texts, dtype=torch.long, device=where)
        self.through, self.take = self.layer, compiled(self.step) if compile else self.step
        if on_gpu(where):
            self.through = compiled(self.layer)
            recorded = Recorded(lambda what, ids: (self.step(ids),), where)
            self.take = lambda ids: recorded("a token", ids)[0]

    def called(self):
        """The same weights and cache, where Python calls every operation."""
        eager = copy.copy(self)
        eager.through, eager.take = eager.layer, eager.step
        return eager

    @torch.inference_mode()
    def __call__(self):
        ids = self.first
        for _ in range(self.tokens):
            ids = self.take(ids)

    def step(self, ids):
        x = norm(self.embed[ids])  # (B, C)
        for weights_and_cache in self.layers:
            x = self.through(x, *weights_and_cache)
        p = F.linear(norm(x), self.head).float().softmax(-1)
        return (p / torch.empty_like(p).exponential_()).argmax(-1)  # multinomial asks the CPU

    def layer(self, x, wq, wk, wv, wo, up, down, keys, values):
        c, h = self.config, norm(x)
        turn = lambda x: norm(x * self.cos + x.roll(c.head // 2, -1) * self.sin)
        q, k, v = (F.linear(h, w).view(len(x), c.heads, 1, c.head) for w in (wq, wk, wv))
        keys[:, :, self.place], values[:, :, self.place] = turn(k), v
        y = F.scaled_dot_product_attention(turn(q), keys, values)  # (B, H, 1, D)
        x = x + F.linear(y.flatten(1), wo)
        return x + F.linear(F.linear(norm(x), up).relu().square(), down)


def norm(x):
    return F.rms_norm(x, x.shape[-1:])


# ---- a training step -----------------------------------------------------------------------------

BASE = 100_000.0  # of the rotary positions
SHARPER = 1.2  # the gain of queries and keys, behind their norm
CAP = 15.0  # no score is larger


def turned(x, cos, sin):
    """Rotary positions of x (B, T, H, D), in halves."""
    a, b = x.chunk(2, -1)  # (B, T, H, D/2) each
    return torch.cat([a * cos + b * sin, b * cos - a * sin], -1)


def matrix(n_in, n_out):
    return nn.Linear(n_in, n_out, bias=False)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden, self.heads = config.width, config.mlp_width, config.heads
        self.q, self.k, self.v, self.out = (matrix(width, width) for _ in range(4))
        self.mlp = nn.ModuleDict(dict(up=matrix(width, hidden), down=matrix(hidden, width)))

    def forward(self, x, cos, sin):
        # attention
        h = norm(x)
        q, k, v = (w(h).unflatten(-1, (self.heads, -1)) for w in (self.q, self.k, self.v))
        q, k = (norm(turned(z, cos, sin)) * SHARPER for z in (q, k))
        q, k, v = (z.transpose(1, 2) for z in (q, k, v))  # (B, H, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        # feed-forward
        return x + self.mlp["down"](F.relu(self.mlp["up"](norm(x))).square())


class Nanochat(nn.Module):
    """A size's layers, width, heads and vocabulary; weights as PyTorch starts them."""

    def __init__(self, size, where="cpu"):
        super().__init__()
        c = self.config = named(size)
        self.embed = nn.Embedding(c.vocab, c.width)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.head = matrix(c.width, c.vocab)
        self.kind = compute_dtype(where)
        self.to(where)

    def roles(self):
        """What our optimizer asks of a model: the same rows move both."""
        kinds = {"embed.weight": "embed", "head.weight": "head"}
        return {name: kinds.get(name, "matrix") for name, _ in self.named_parameters()}

    def loss(self, ids, targets):
        """Cross entropy in nats, ids and targets (B, T)."""
        half = self.kind == torch.bfloat16
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=half):
            x = norm(self.embed(ids).to(self.kind))  # (B, T, C)
            cos, sin = self.angles(x)
            for layer in self.layers:
                x = layer(x, cos, sin)
            scores = self.head(norm(x)).float()  # (B, T, V)
            scores = CAP * torch.tanh(scores / CAP)
            return F.cross_entropy(scores.flatten(0, 1), targets.flatten())

    def angles(self, x):
        """cos and sin of every position, (T, 1, D/2) each."""
        head, places = self.config.head, torch.arange(x.shape[1], device=x.device)
        rates = BASE ** -(torch.arange(0, head, 2, device=x.device) / head)
        angle = (places[:, None] * rates)[:, None]  # (T, 1, D/2)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)
