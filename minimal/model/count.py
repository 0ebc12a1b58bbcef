"""How large is a model, and what does a token cost? Parameters, FLOPs and cache bytes, counted.

And what it is, in words and in numbers: what every layer reads, and the settings of every part.
"""

import itertools

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from minimal.model.layers import Linear


def count(model):
    """Parameters, FLOPs per token and cache bytes, counted on its structure.

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

    From two tokens in a row: the first meets the matrices as in training; what the second adds to
    the cache is per token, the rest is fixed.
    """
    calls, cache = [], model.cache()
    matrices = [m for m in model.modules() if isinstance(m, Linear) and m.kind != "smear"]
    note = lambda module, *_: calls.append(module.weight.numel())
    hooks = [matrix.register_forward_hook(note) for matrix in matrices]
    of_one_token(model, cache)
    for hook in hooks:
        hook.remove()
    first = sum(map(bytes_of, cache.kept.values()))
    of_one_token(model, cache)
    per_token = sum(map(bytes_of, cache.kept.values())) - first
    return sum(calls), per_token, first - per_token


@torch.no_grad()
def of_one_token(model, cache):
    """A token of one text, with weights that are one zero each: all shapes come out, and no matrix
    is stored. A part of somebody's own may loop over texts, so there has to be one.

    A matrix may belong to two parts, and torch.func.functional_call would put one of both back."""
    own = [(part, dict(part._parameters)) for part in model.modules()]
    try:
        for part, weights in own:
            for name, p in weights.items():
                zero = None if p is None else torch.zeros((), dtype=p.dtype).expand(p.shape)
                part._parameters[name] = zero
        with NoProducts():
            model(torch.zeros(1, 1, dtype=torch.long), cache=cache)
    finally:
        for part, weights in own:
            part._parameters.update(weights)


class NoProducts(TorchFunctionMode):
    """Zeros for x W^T: PyTorch would lay a matrix of one zero out in full to multiply by it."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.linear and len(args) > 1:
            x, weight, *_ = args
            return x.new_zeros(*x.shape[:-1], len(weight))
        return function(*args, **(kwargs or {}))


def bytes_of(rows):
    """Of one text's rows: 2 an element, 4 an id."""
    return rows.shape[1:].numel() * (2 if rows.is_floating_point() else 4)


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
    """Every part with its plain settings: one name with other numbers is another plan. A class that
    was renamed keeps the name under which runs were kept."""
    plain = (int, float, str, list, tuple, dict)
    found = []
    for name, part in model.named_modules():
        settings = {
            key: value
            for key, value in vars(part).items()
            if isinstance(value, plain) and key[0] != "_" and key != "training"
        }
        kind = vars(type(part)).get("stored_as", type(part).__name__)
        found.append([name, kind, settings])
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
