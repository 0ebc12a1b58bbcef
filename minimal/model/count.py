"""How large is a model, and what does a token cost? Parameters, FLOPs and cache bytes, counted.

And what it is, in words and in numbers: what every layer reads, and the settings of every part.
"""

import itertools

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from minimal.model.layers import Linear


def count(model):
    """Parameters, FLOPs per token and cache bytes, counted on the structure (meta tensors).

    FLOPs: 6 for every weight of a matrix that one token meets, 6 H D for each of q k^T and A V per
    visible position, the window counted whole, without causality's half (the rule of the Bank of
    Values code). Bytes: 2 an element, 4 an id.
    """
    matrices, per_token, fixed = passes(model)
    return dict(
        parameters=sum(p.numel() for p in model.parameters()),
        flops_per_token=6 * matrices + attention_flops(model),
        cache_bytes_per_token=per_token,
        cache_bytes_fixed=fixed + table_bytes(model),
    )


def passes(model):
    """(weights of matrices that a token meets, cache bytes a token, cache bytes once).

    From two tokens in a row: what the second adds to the cache is per token, the rest is fixed.
    """
    calls, held = [], []
    matrices = [m for m in model.modules() if isinstance(m, Linear) and m.kind != "smear"]
    note = lambda module, *_: calls.append(module.weight.numel())
    hooks = [matrix.register_forward_hook(note) for matrix in matrices]
    ids = torch.zeros(1, 1, dtype=torch.long, device="meta")
    cache = model.cache()
    for _ in range(2):
        calls.clear()
        with Shapes():
            model(ids, cache=cache)
        held.append(sum(map(bytes_of, cache.kept.values())))
    for hook in hooks:
        hook.remove()
    per_token = held[1] - held[0]
    return sum(calls), per_token, held[0] - per_token


tensor = torch.Tensor
ALIKE = {F.rms_norm, F.layer_norm, F.silu, F.gelu, F.relu, torch.tanh}  # as their first argument
ALIKE |= {tensor.roll, tensor.neg, tensor.cos, tensor.sin}
PAIRS = {tensor.mul, tensor.add, tensor.sub, tensor.__mul__, tensor.__add__, tensor.__sub__}
PAIRS |= {tensor.__rmul__, tensor.__radd__, tensor.__rpow__}


class Shapes(TorchFunctionMode):
    """Answers for the commonest operations of meta tensors: PyTorch works out each of their shapes
    in a fifth of a millisecond of Python, and a pass through twelve layers has hundreds. The first
    time it imports its compiler for that, which takes longer than all of them."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        x, *rest = args or (None,)
        if isinstance(x, tensor) and x.is_meta:
            if function in ALIKE:
                return empty(x.shape, x.dtype)
            if function in PAIRS:
                return pair(x, *rest)
            if function is tensor.div and not isinstance(rest[0], tensor):
                return empty(x.shape, torch.result_type(x, 1.0))
            if function is F.linear:
                return empty((*x.shape[:-1], len(rest[0])), x.dtype)
            if function is F.scaled_dot_product_attention:
                return empty((*x.shape[:-1], rest[1].shape[-1]), x.dtype)
        if function is torch.cat and x[0].is_meta:
            return joined(x, *rest, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def empty(shape, dtype):
    return torch.empty(shape, dtype=dtype, device="meta")


def pair(x, y):
    """Of the shape that both are stretched to."""
    if not isinstance(y, tensor) or x.shape == y.shape:
        return empty(x.shape, torch.result_type(x, y))
    return empty(torch.broadcast_shapes(x.shape, y.shape), torch.result_type(x, y))


def joined(parts, dim=0):
    shape = list(parts[0].shape)
    shape[dim] = sum(part.shape[dim] for part in parts)
    return empty(shape, parts[0].dtype)


def bytes_of(rows):
    return rows.numel() * (2 if rows.is_floating_point() else 4)


def attention_flops(model):
    """Of q k^T and A V, which are no matrices of the model."""
    config, total = model.config, 0
    for at, block in enumerate(model.blocks):
        if block.attention:
            read = block.attention.read
            seen = min(model.windows[at] or config.context, config.context)
            total += 6 * config.heads * config.head * (read.scores + read.mixes) * seen
    return round(total)


def table_bytes(model):
    """Of tables that attention reads itself, in place of kept values; each once."""
    sources = [block.attention.value for block in model.blocks if block.attention]
    read = {source.bank for source in sources if source.keeps == "ids"}
    return sum(2 * model.banks[bank].weight.numel() for bank in read)


def settings_of(model):
    """Every part with its plain settings: one name with other numbers is another plan."""
    plain = (int, float, str, list, tuple, dict)
    found = []
    for name, part in model.named_modules():
        settings = {
            key: value
            for key, value in vars(part).items()
            if isinstance(value, plain) and key[0] != "_" and key != "training"
        }
        found.append([name, type(part).__name__, settings])
    return found


def describe(model):
    """What each layer attends with, in words: its values, then whatever is unusual besides."""
    return [words_of(block.attention) for block in model.blocks]


def words_of(attention):
    if attention is None:
        return "no attention"
    doors = (attention.value, attention.query, attention.key, attention.read)
    return "".join(door.label() for door in doors)


def run_lengths(words):
    """own own own E E -> 'own ×3, E ×2'."""
    runs = [(word, len(list(same))) for word, same in itertools.groupby(words)]
    return ", ".join(word if n == 1 else f"{word} ×{n}" for word, n in runs)
