"""What happens inside the stack? Entropy of maps, similarity of streams, spectra of values."""

import math

import torch
import torch.nn.functional as F

from minimal.kernels.reference import weights


@torch.no_grad()
def observe(model, ids):
    """Run once and hand back the tape: everything that every layer saw."""
    tape = model.tape(ids)
    model.eval()(ids, tape=tape)
    return tape


def attention_map(model, tape, at):
    """A (B, H, T, S) of layer `at`, formed again from the queries and keys on the tape."""
    read = model.blocks[at].attention.read
    if read.reads:
        others = ", ".join(str(j) for j in read.reads)
        raise ValueError(
            f"layer {at}: wanted a map over its own keys, got one softmax over those of layer "
            f"{others}, too: join the keys on the tape and give them to kernels.reference.weights"
        )
    how = read.how(at, tape)
    return weights(tape.queries[at], tape.keys[at], **how)


# ---- entropy of token importance (ResFormer, Eq 11) -------------------------------------------
def entropy(p):
    """In nats, along the last dimension; 0 log 0 = 0."""
    return -torch.special.xlogy(p, p).sum(-1)


def importance(a):
    """How much attention each token RECEIVES: column sums, as a distribution (…, S).

    The paper prints row sums, which are 1 whatever the map, so its entropy would always be log l;
    its code sums columns.
    """
    received = a.sum(-2)  # (…, S)
    return received / received.sum(-1, keepdim=True)


def token_entropy(a, heads="mean"):
    """Entropy of token importance of a map (B, H, T, S): of the heads' mean, or "each" (…, H)."""
    a = a.mean(1) if heads == "mean" else a
    return entropy(importance(a)).mean(0)


# ---- similarity and spectra (Eq 12, 13) -------------------------------------------------------
def similarity(h):
    """Mean cosine between different tokens of a text, h (B, T, C): 1 when all are alike (Eq 13)."""
    unit = F.normalize(h.float(), dim=-1)  # (B, T, C)
    t = h.shape[1]
    if t < 2:
        raise ValueError("similarity compares different tokens: give at least two")
    total = unit.sum(1).square().sum(-1)  # (B,): all pairs, each token with itself included
    return ((total - t) / (t * (t - 1))).mean()


def spectrum(v):
    """Eigenvalues of (1/l) sum_i v_i v_i^T, largest first, averaged over texts (Eq 12).

    v (B, T, C) -> (C,). Not centred.
    """
    moment = v.float().mT @ v.float() / v.shape[1]  # (B, C, C)
    return torch.linalg.eigvalsh(moment).flip(-1).mean(0)


def explained(y, ids):
    """The share of y's variance that lies between tokens, corrected for chance: y (N, F), ids (N,).

    1: y is a function of the token; 0: the token says nothing of it.
    """
    _, group, times = ids.unique(return_inverse=True, return_counts=True)
    y = y.float() - y.float().mean(0)
    sums = y.new_zeros(len(times), y.shape[1]).index_add_(0, group, y)  # (tokens, F)
    means = sums / times[:, None]
    within = (y - means[group]).square().sum() / (len(y) - len(times))
    whole = y.square().sum() / (len(y) - 1)
    return 1 - (within / whole).item()


# ---- other people's models --------------------------------------------------------------------
@torch.no_grad()
def observe_hf(model, ids):
    """A Hugging Face causal LM: entropy by layer, similarity by hidden state (L + 1 of them)."""
    out = model(ids, output_attentions=True, output_hidden_states=True)
    if not out.attentions or any(a is None for a in out.attentions):
        raise ValueError(
            f"{type(model).__name__} returned no attentions: "
            'load it with attn_implementation="eager"'
        )
    return dict(
        entropy=[token_entropy(a.float()).item() for a in out.attentions],
        similarity=[similarity(h).item() for h in out.hidden_states],
    )


def uniform_causal_entropy(length):
    """(entropy of importance under causality alone, log l): 7.2025, 7.6246 at 2,048 tokens."""
    rows = torch.tensor([1 / i for i in range(1, length + 1)], dtype=torch.float64)
    columns = rows.flip(0).cumsum(0).flip(0)  # key s is seen by queries s, s + 1, …
    return entropy(columns / columns.sum()).item(), math.log(length)
