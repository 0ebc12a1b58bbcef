"""How fast is a token made here? `generate` by plan, and gather attention beside values that are
stored."""

from functools import partial

import torch
import torch.nn.functional as F

from minimal.bench.timing import in_turn, medians, ratio, timer, zipf
from minimal.generate import generate
from minimal.kernels.dense import attention
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import TOLERANCE
from minimal.model.cache import laid_out
from minimal.training.device import compute_dtype
from minimal.variants import build

TIMED_PLANS = ("standard", "svformer", "bov")

LENGTHS = (4096, 32768)


def generating(plans=TIMED_PLANS, size="tiny", tokens=32, rounds=5, where="cpu"):
    """Tokens a second of `generate`, uncompiled, behind a prompt as long as the context, which is
    part of the time; and how many times the first plan's."""
    models = [build(plan, size, device=where, compute=compute_dtype(where)) for plan in plans]
    config = models[0].config
    ids = zipf(config.vocab, config.context, torch.Generator().manual_seed(0))
    how = dict(ids=ids[None].long().to(where), tokens=tokens, compiled=False)
    ways = {plan: partial(generate, model, **how) for plan, model in zip(plans, models)}
    taken = in_turn(ways, rounds, timer(where))
    rows = []
    for plan, ms in medians(taken).items():
        row = dict(plan=plan, size=size, prompt=config.context, tokens=tokens)
        row |= dict(tokens_per_second=1e3 * tokens / ms, times=ratio(taken, plans[0], plan))
        rows.append(row)
    return rows


@torch.no_grad()
def gathering(lengths=LENGTHS, H=6, D=128, V=32768, rounds=9, where="cpu"):
    """Milliseconds of one new query over a past, launches included: V stored, V looked up in the
    table first, and gather_attention; and how many times as fast as a stored V that one is."""
    rows, chance = [], torch.Generator(where).manual_seed(0)
    draw = partial(torch.randn, device=where, dtype=compute_dtype(where), generator=chance)
    table = draw(V, H, D)
    for S in lengths:
        q, k = F.rms_norm(draw(1, 1, H, D), (D,)), F.rms_norm(draw(1, H, S, D), (D,))
        k = k.transpose(1, 2)  # head by head, as a cache lays them
        ids = zipf(V, S, torch.Generator().manual_seed(0))[None].to(where)
        v = laid_out(table[ids], S)  # and so the rival, a stored V
        v[:] = table[ids]
        ways = dict(
            stored=lambda: attention(q, k, v),
            looked_up=lambda: attention(q, k, table[ids]),
            gathered=lambda: gather_attention(q, k, table, ids, bound=D**0.5),
        )
        off = (ways["gathered"]() - ways["stored"]()).abs().max().item()
        if not off <= TOLERANCE[q.dtype]:
            raise AssertionError(f"{S} keys: the ways differ by {off:.1e}: nothing to time")
        taken = in_turn(ways, rounds, timer(where))
        rows.append(dict(keys=S, **medians(taken), times=ratio(taken, "stored", "gathered")))
    return rows
