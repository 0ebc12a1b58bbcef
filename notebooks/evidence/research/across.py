"""What stands in for cross-layer attention? How near two cheap formulas come to the true one
(ResFormer, Fig 3), in a trained baseline."""

import torch
import torch.nn.functional as F

from minimal.analysis import observe
from minimal.kernels.reference import by_definition, visible


@torch.no_grad()
def across_study(model, ids):
    """How near do Eq 3 and Eq 6 come to Eq 2? Cosines by layer n >= 1 of a trained baseline.

    Eq 2 is true cross-layer attention on layer n-1, Eq 3 replaces its keys by this layer's, and
    Eq 6 adds the mean of earlier values at the same position.
    """
    tape, rows = observe(model, ids), []
    layers = sorted(tape.raw)
    for below, n in zip(layers, layers[1:]):
        how = model.blocks[n].attention.read.how(n, tape)
        q, k, v = tape.queries[n], tape.keys[n], tape.values[n].dense()
        # Eq 2: one softmax over both layers' keys
        k2, v2 = tape.keys[below], tape.values[below].dense()
        seen = visible(q.shape[1], k.shape[1], how["causal"], how["window"], device=q.device)
        mask = torch.cat([seen, seen], -1)  # (T, 2S)
        keys, values = torch.cat([k, k2], 1), torch.cat([v, v2], 1)
        eq2 = by_definition(q, keys, values, scale=how["scale"], mask=mask)
        # Eq 3: the mean of both values, through this layer's map
        eq3 = by_definition(q, k, (v + v2) / 2, **how)
        # Eq 6: all earlier values, without a map
        earlier = torch.stack([tape.raw[j] for j in layers if j < n]).mean(0)  # (B, T, G, D)
        earlier = earlier.repeat_interleave(q.shape[2] // k.shape[2], 2)
        eq6 = by_definition(q, k, v, **how) + earlier
        rows.append(dict(layer=n, eq3=cosine(eq2, eq3), eq6=cosine(eq2, eq6)))
    return rows


def cosine(a, b):
    """Mean over positions, all heads together, of a and b (B, T, H, D)."""
    return F.cosine_similarity(a.flatten(2), b.flatten(2), dim=-1).mean().item()
