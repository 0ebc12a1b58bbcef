"""hw10, solved in whole tensors: no loop over places."""

import torch

PRIME = 2**31 - 1


def windows_to_slots(windows, factors, total, rows):
    """Slots of windows (B,T,n), newest first."""
    products = windows * factors % PRIME
    return (products.sum(-1) + total) % PRIME % rows


def document_slots(ids, starts, factors, total, rows):
    B, n = len(ids), len(factors)
    nothing = ids.new_zeros(B, n - 1)
    x = torch.cat([nothing, ids + 1], 1).unfold(1, n, 1).flip(2)  # (B,T,n)
    number = starts.long().cumsum(1)
    owner = torch.cat([nothing - 1, number], 1).unfold(1, n, 1).flip(2)
    return windows_to_slots(x * (owner == number[..., None]), factors, total, rows)


def latent_step(q, q_turned, latent, turned, up_k, up_v, out):
    queries = torch.cat([torch.einsum("hd,hdc->hc", q, up_k), q_turned], 1)  # (H,C+R)
    keys = torch.cat([latent, turned], 1)  # (S,C+R): one for all heads
    width = q.shape[1] + q_turned.shape[1]
    weights = torch.softmax(torch.einsum("hx,sx->hs", queries, keys) / width**0.5, 1)
    mixed = torch.einsum("hs,sc->hc", weights, latent)
    way_out = torch.einsum("mhe,hec->mhc", out, up_v)  # W_UV has joined the way out
    return weights, mixed, torch.einsum("mhc,hc->m", way_out, mixed)


def place(cos, sin):
    """The matrix (D,D) that turns a row by one place."""
    return torch.cat(
        [torch.cat([cos.diag(), sin.diag()], 1), torch.cat([-sin.diag(), cos.diag()], 1)]
    )


def turned_step(h, w_q, w_k, kept, cos, sin):
    B, S, G, D = kept.shape
    turn = place(cos, sin)
    size = lambda x: torch.einsum("...d,...d->...", x, x).div(D).sqrt()[..., None]
    q = torch.einsum("bm,ghdm,ed->bghe", h, w_q.reshape(G, -1, D, h.shape[1]), turn)
    k = torch.einsum("bm,gdm,ed->bge", h, w_k.reshape(G, D, -1), turn)
    kept = torch.cat([kept, (k / size(k))[:, None]], 1)
    scores = torch.einsum("bghd,bsgd->bghs", q / size(q), kept) / D**0.5
    y = torch.einsum("bghs,bsgd,de->bghe", scores.softmax(-1), kept, turn)  # back: the transpose
    return y.reshape(B, -1, D), kept


def shares_taken(y, v, a):
    own = v[:, -y.shape[1] :]  # (B,T,G,D)
    grouped = y.unflatten(2, (v.shape[2], -1))  # (B,T,G,H/G,D)
    along = torch.einsum("btghd,btgd->btgh", grouped, own)
    along = along / torch.einsum("btgd,btgd->btg", own, own)[..., None]
    share = a.tanh().view(v.shape[2], -1)
    return (grouped - torch.einsum("gh,btgh,btgd->btghd", share, along, own)).flatten(2, 3)


def predict_two_hashes():
    return 0.1, 0.035


def false_counter_example():
    """A token that looks only at the one before it."""
    A = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    return 3, A, torch.tensor([2.0, 5.0]), torch.tensor([0.25, 0.75])


def slots_go_on(kept, ids, starts, factors, total, rows):
    n = len(factors)
    x = torch.cat([kept, ids + 1], 1)  # (B,n-1+T)
    before = torch.zeros_like(kept)
    number = torch.cat([before, starts.long().cumsum(1)], 1)
    windows = x.unfold(1, n, 1).flip(2)  # (B,T,n), newest first
    owners = number.unfold(1, n, 1).flip(2)
    slots = windows_to_slots(windows * (owners == owners[..., :1]), factors, total, rows)
    last = slice(x.shape[1] - n + 1, None)
    return slots, x[:, last] * (number[:, last] == number[:, -1:])
