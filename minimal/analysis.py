"""What happens inside the stack? Numbers about attention maps, values and streams, read off a tape."""

import math

import torch
import torch.nn.functional as F

from minimal.kernels.reference import visible, weights
from minimal.model.attend import reference
from minimal.model.tape import Rows


@torch.no_grad()
def observe(model, ids):
    """Run once and hand back the tape: everything that every layer saw."""
    tape = model.tape(ids)
    model.eval()(ids, tape=tape)
    return tape


def attention_map(model, tape, at):
    """A (B, H, T, S) of layer `at`, formed again from the queries and keys on the tape."""
    how = model.blocks[at].attention.read.how(at, tape)
    return weights(tape.queries[at], tape.keys[at], **how)


# ---- entropy of token importance (ResFormer, Eq 11) ------------------------------------------------------------------
def entropy(p):
    """In nats, along the last dimension; 0 log 0 = 0."""
    return -torch.special.xlogy(p, p).sum(-1)


def importance(a):
    """How much attention each token RECEIVES: column sums, as a distribution (…, S). The paper prints row sums, which are
    1 whatever the map, so its entropy would always be log l; its code sums columns."""
    received = a.sum(-2)  # (…, S)
    return received / received.sum(-1, keepdim=True)


def token_entropy(a, heads="mean"):
    """Entropy of token importance of a map (B, H, T, S): of the heads' mean map, or "each" head's own (…, H)."""
    return entropy(importance(a.mean(1) if heads == "mean" else a)).mean(0)


# ---- similarity and spectra (Eq 12, 13) ------------------------------------------------------------------------------
def similarity(h):
    """Mean cosine between different tokens of one text, h (B, T, C): 1 when all have become the same (Eq 13)."""
    unit = F.normalize(h.float(), dim=-1)  # (B, T, C)
    t = h.shape[1]
    if t < 2:
        raise ValueError("similarity compares different tokens: give at least two")
    total = unit.sum(1).square().sum(-1)  # (B,): all pairs, each token with itself included
    return ((total - t) / (t * (t - 1))).mean()


def spectrum(v):
    """Eigenvalues of (1/l) sum_i v_i v_i^T, largest first, averaged over texts: v (B, T, C) -> (C,). Not centred (Eq 12)."""
    moment = v.float().mT @ v.float() / v.shape[1]  # (B, C, C)
    return torch.linalg.eigvalsh(moment).flip(-1).mean(0)


def explained(y, ids):
    """The share of y's variance that lies between tokens, corrected for chance: y (N, F), ids (N,). 1: y is a function
    of the token; 0: the token says nothing of it."""
    _, group, times = ids.unique(return_inverse=True, return_counts=True)
    y = y.float() - y.float().mean(0)
    means = (
        y.new_zeros(len(times), y.shape[1]).index_add_(0, group, y) / times[:, None]
    )  # (tokens, F)
    within = (y - means[group]).square().sum() / (len(y) - len(times))
    return 1 - (within / (y.square().sum() / (len(y) - 1))).item()


# ---- what stands in for cross-layer attention? (Fig 3) ---------------------------------------------------------------
@torch.no_grad()
def across_study(model, ids):
    """By layer n >= 1 of a trained baseline: cosine of Eq 2 (true cross-layer attention on layer n-1) with Eq 3 (its keys
    replaced by this layer's) and with Eq 6 (the mean of earlier values added at the same position)."""
    tape, rows = observe(model, ids), []
    layers = sorted(tape.raw)
    for n, m in zip(layers[1:], layers):
        how = model.blocks[n].attention.read.how(n, tape)
        q, k, k2 = tape.queries[n], tape.keys[n], tape.keys[m]
        v, v2 = tape.values[n].dense(), tape.values[m].dense()
        seen = visible(q.shape[1], k.shape[1], how["causal"], how["window"], device=q.device)
        both = torch.cat([seen, seen], -1)
        eq2 = reference(
            q, torch.cat([k, k2], 1), Rows(torch.cat([v, v2], 1)), scale=how["scale"], mask=both
        )
        eq3 = reference(q, k, Rows((v + v2) / 2), **how)
        earlier = torch.stack([tape.raw[j] for j in layers if j < n]).mean(0)
        eq6 = reference(q, k, Rows(v), **how) + earlier.repeat_interleave(
            q.shape[2] // k.shape[2], 2
        )
        cosine = lambda x: F.cosine_similarity(eq2.flatten(2), x.flatten(2), dim=-1).mean().item()
        rows.append(dict(layer=n, eq3=cosine(eq3), eq6=cosine(eq6)))
    return rows


# ---- values, their size and their direction --------------------------------------------------------------------------
def value_study(model, tape):
    """By layer: root mean square of v (as read, gain included) and mean cosines v-y, v0-v and v0-y over heads and tokens;
    y is attention's output before W_O."""
    rows = []
    first = None
    for at in sorted(tape.queries):
        value = tape.values[at]
        v = value.dense()
        v = v if value.gain is None else v * value.gain
        v = v.repeat_interleave(tape.out[at].shape[2] // v.shape[2], 2).float()  # (B, T, H, D)
        y = tape.out[at].float()  # (B, T, H, D)
        first = v if first is None else first
        cosine = lambda a, b: F.cosine_similarity(a, b, dim=-1).mean().item()
        size = v.square().mean().sqrt().item()
        rows.append(
            dict(
                layer=at, size=size, v_y=cosine(v, y), v0_v=cosine(first, v), v0_y=cosine(first, y)
            )
        )
    return rows


# ---- other people's models -------------------------------------------------------------------------------------------
@torch.no_grad()
def observe_hf(model, ids):
    """Any Hugging Face causal LM that returns attentions: entropy by layer, similarity by hidden state (L + 1 of them)."""
    out = model(ids, output_attentions=True, output_hidden_states=True)
    if not out.attentions or any(a is None for a in out.attentions):
        raise ValueError(
            f'{type(model).__name__} returned no attentions: load it with attn_implementation="eager"'
        )
    return dict(
        entropy=[token_entropy(a.float()).item() for a in out.attentions],
        similarity=[similarity(h).item() for h in out.hidden_states],
    )


def uniform_causal_entropy(length):
    """What causality alone does to the entropy of importance: 7.2025 at 2,048 tokens, where log l is 7.6246."""
    columns = (
        torch.tensor([1 / i for i in range(1, length + 1)], dtype=torch.float64)
        .flip(0)
        .cumsum(0)
        .flip(0)
    )
    return entropy(columns / columns.sum()).item(), math.log(length)
