"""How large is a model, and what does a token cost? Parameters, FLOPs and cache bytes, counted on the structure."""

import torch

from minimal.model.layers import Linear
from minimal.model.values import Table


def count(model):
    """Parameters, FLOPs per token and cache bytes, counted on the structure that exists (meta tensors, no storage).

    FLOPs: 6 for every weight of a matrix that one token meets, 6 H D for each of q k^T and A V per visible position,
    the window counted whole, without causality's half (the rule of the Bank of Values code)."""
    calls = []
    hooks = [
        m.register_forward_hook(lambda m, *_: calls.append(m.weight.numel()))
        for m in model.modules()
        if isinstance(m, Linear) and m.kind != "smear"
    ]
    ids, cache, held = torch.zeros(1, 1, dtype=torch.long, device="meta"), model.cache(), []
    for _ in range(2):  # two tokens: what the second adds is per token, the rest is fixed
        calls.clear()
        model(ids, cache=cache)
        held.append(
            sum(t.numel() * (2 if t.is_floating_point() else 4) for t in cache.kept.values())
        )
    flops = 6 * sum(calls)
    for hook in hooks:
        hook.remove()
    config, banks = model.config, 0
    named = set()
    for at, block in enumerate(model.blocks):
        if block.attention:
            a, window = block.attention, model.windows[at] or config.context
            flops += (
                6
                * config.heads
                * config.head
                * (a.read.scores + a.read.mixes)
                * min(window, config.context)
            )
            if (
                isinstance(a.value, Table) and a.value.bank not in named
            ):  # read straight from the table: no V is kept
                named.add(a.value.bank)
                banks += 2 * model.banks[a.value.bank].weight.numel()
    return dict(
        parameters=sum(p.numel() for p in model.parameters()),
        flops_per_token=flops,
        cache_bytes_per_token=held[1] - held[0],
        cache_bytes_fixed=2 * held[0] - held[1] + banks,
    )


def settings_of(model):
    """Every part of a model with its plain settings: plans of one name and other numbers are not one plan."""
    plain = (int, float, str, list, tuple, dict)
    return [
        [
            name,
            type(part).__name__,
            {
                key: value
                for key, value in vars(part).items()
                if isinstance(value, plain) and key[0] != "_" and key != "training"
            },
        ]
        for name, part in model.named_modules()
    ]
