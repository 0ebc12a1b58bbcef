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


def expected_sharing(last, count, rows, each, heads):
    _, which, names = last.unique(return_inverse=True, return_counts=True)
    rivals = torch.stack([torch.full_like(last, len(last) - 1), names[which] - 1]).double()
    tables = torch.tensor([[rows], [each]]).double()
    shares = (1 - (1 - 1 / tables) ** rivals) ** heads  # (2,N)
    hashed, owned = (shares * count).sum(1) / count.sum()
    return hashed.item(), owned.item()


def latent_step(q, q_turned, latent, turned, up_k, up_v, out):
    queries = torch.cat([torch.einsum("hd,hdc->hc", q, up_k), q_turned], 1)  # (H,C+R)
    keys = torch.cat([latent, turned], 1)  # (S,C+R): one for all heads
    width = q.shape[1] + q_turned.shape[1]
    weights = torch.softmax(torch.einsum("hx,sx->hs", queries, keys) / width**0.5, 1)
    mixed = torch.einsum("hs,sc->hc", weights, latent)
    way_out = torch.einsum("mhe,hec->mhc", out, up_v)  # W_UV has joined the way out
    return weights, mixed, torch.einsum("mhc,hc->m", way_out, mixed)


def mixed_values(streams, first, second, fixed, w):
    size = lambda x: torch.einsum("...c,...c->...", x, x).div(x.shape[-1]).sqrt()[..., None]
    newest = streams[-1] / size(streams[-1])
    hidden = torch.nn.functional.gelu(torch.einsum("nc,tc->tn", first, newest))
    a = torch.einsum("mn,tn->tm", second, hidden) + fixed
    mixed = torch.einsum("tn,ntc->tc", a, streams)
    return a, torch.einsum("ec,tc->te", w, mixed / size(mixed))


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
