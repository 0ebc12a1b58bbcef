"""What is left of the values if attention is counted by token before they are read? A histogram.

out = gain * sum_p a_p E[i_p] = gain * sum_w m_w E[w] with m_w = sum of a_p over the positions of
token w. On a CPU, where reading V is half of a decode step or more, that is the difference between
reading S rows and reading at most V:

    rows_decode       a weighted sum of S table rows, no V in memory: best while S < V
    histogram_decode  masses scattered into V bins a head, then every row that occurs, once

Plain PyTorch without gradients, equal to the reference within TOLERANCE. R = T * H/G query rows
share a key head. Keys are read fastest where each head's lie together: k as a transposed view of
(B, G, S, D).
"""

import torch
import torch.nn.functional as F

from minimal.kernels.fastest import fastest
from minimal.kernels.reference import visible

PIECES = 8  # bags a head: every thread gets one, and shorter sums round less

SAFE_LOGIT = 60.0  # exp(60) times a million keys is still a number in fp32


# ---- attention, before it meets a value ----------------------------------------------------------
def seen_part(T, k, ids, causal, window, lengths):
    """The keys that some query can see, and the mask where one is still needed."""
    S = k.shape[1]
    if (
        lengths is not None and torch.compiler.is_compiling()
    ):  # no number can be read: hide, not cut
        return k, ids, visible(T, S, causal, window, lengths, k.device)
    last = S if lengths is None else max(1, int(lengths.max()))
    earliest = (last if lengths is None else int(lengths.min())) - T
    first = max(0, earliest - window) if window and T < S else 0  # a window makes the past short
    mask = None
    if lengths is not None or (T > 1 and (causal or window)):
        mask = visible(T, S, causal, window, lengths, k.device)[..., first:last]
    return k[:, first:last], ids[:, first:last], mask


# The same products, one (G, R, D) with one (G, S, D) -> (G, R, S): a library may be twice as fast
# at the one as at the other, and which one depends on the machine.
PRODUCTS = dict(
    keys_first=lambda q, k: (k @ q.mT).mT,
    queries_first=lambda q, k: q @ k.mT,
)


def logits_of(q, k):
    """q (B, G, R, D), k (B, S, G, D) -> (B, G, R, S), by the product that is faster here.

    One sequence at a time: a product over a batch of them would copy keys that lie by position."""

    def by(product):
        return [product(q[b], k[b].transpose(0, 1)) for b in range(len(q))]

    ways = {name: lambda product=product: by(product) for name, product in PRODUCTS.items()}
    (B, S, G, D), R = k.shape, q.shape[2]
    by_head = k.stride(1) == D
    machine = (q.dtype, q.device.type)
    way = fastest(("logits", B, S.bit_length(), G, R, D, by_head, *machine), ways)
    found = ways[way]()  # (G, R, S) each
    return found[0][None] if B == 1 else torch.stack(found)


def masses(q, k, mask, scale, bound, kind):
    """(attention weights times their total, the total): (B, G, R, S) and (B, G, R, 1).

    With a bound on the logits nothing can overflow: no maximum is looked for, and one division at
    the end is enough. Tables in half precision cannot take unnormalised sums: where `kind`, the
    table's type, is not that of the masses, the division comes first."""
    (B, T, H, D), (_, S, G, _) = q.shape, k.shape
    q = (q * scale).view(B, T, G, H // G, D).transpose(1, 2)  # (B, G, T, H/G, D)
    logits = logits_of(q.reshape(B, G, -1, D), k)  # (B, G, R, S)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if mask is not None:
        hidden = ~mask.expand(B, 1, T, S)[:, :, :, None]  # (B, 1, T, 1, S)
        logits.view(B, G, T, H // G, S).masked_fill_(hidden, float("-inf"))
    if bound is None or bound > SAFE_LOGIT:
        top = logits.amax(-1, keepdim=True)
        logits -= top.masked_fill(top == float("-inf"), 0)
    mass = logits.exp_()
    total = mass.sum(-1, keepdim=True)
    if mask is not None:
        total.masked_fill_(total == 0, 1)  # queries that see no key: 0 / 1
    if kind == mass.dtype:
        return mass, total
    return mass.div_(total), torch.ones_like(total)


# ---- the values ----------------------------------------------------------------------------------
def weighted_rows(table, tokens, mass):
    """sum_n mass[..., n] * table[tokens[..., n], g]: tokens (B, N), mass (B, G, R, N), R = T * H/G.

    embedding_bag is the one operation in PyTorch that gathers and adds without writing what it
    gathered. It wants a flat table, which token-major and head-major ones are without a copy."""
    (B, G, R, N), (V, _, D) = mass.shape, table.shape
    if table.stride() not in ((G * D, D, 1), (D, V * D, 1)):
        table = table.contiguous()
    flat = table.as_strided((V * G, D), (D, 1))
    count = lambda *of: torch.arange(*of, dtype=torch.int32, device=tokens.device)

    # Row of a token and a head in the flat table.
    head = count(G)[:, None, None] * (table.stride(1) // D)  # (G, 1, 1)
    token = tokens[:, None, None] * (table.stride(0) // D)  # (B, 1, 1, N)
    row = (token + head).expand(B, G, R, N).flatten()

    # Bags: each sum of N in some pieces.
    line = count(B * G * R)[:, None] * N
    starts = line + count(0, N, -(-N // PIECES))  # (B*G*R, pieces)
    weight = mass.reshape(-1).to(table.dtype)
    bags = F.embedding_bag(row, flat, starts.flatten(), mode="sum", per_sample_weights=weight)
    return bags.view(B, G, R, -1, D).sum(3)


def finish(sums, total, gain, q):
    """(B, G, R, D) unnormalised -> (B, T, H, D): divided once, times the gain once."""
    (B, T, H, D), G = q.shape, sums.shape[1]
    mean = (sums / total).view(B, G, T, H // G, D)
    mean = mean.transpose(1, 2).reshape(B, T, H, D).to(q.dtype)
    return mean if gain is None else mean * gain.to(mean.dtype)


def by_position(q, k, table, ids, *, causal, window, lengths, scale, bound):
    """What rows and the histogram begin with: the ids of the keys that are seen, masses, totals."""
    k, ids, mask = seen_part(q.shape[1], k, ids, causal, window, lengths)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return ids, *masses(q, k, mask, scale, bound, table.dtype)


@torch.no_grad()
def rows_decode(
    q, k, table, ids, gain=None, *, causal=True, window=0, lengths=None, scale=None, bound=None
):
    """The gather, fused for a CPU."""
    how = dict(causal=causal, window=window, lengths=lengths, scale=scale, bound=bound)
    ids, mass, total = by_position(q, k, table, ids, **how)
    return finish(weighted_rows(table, ids, mass), total, gain, q)


@torch.no_grad()
def histogram_decode(
    q, k, table, ids, gain=None, *, causal=True, window=0, lengths=None, scale=None, bound=None
):
    """Masses into bins by scatter_add, which PyTorch does faster than index_add; then the rows."""
    how = dict(causal=causal, window=window, lengths=lengths, scale=scale, bound=bound)
    ids, mass, total = by_position(q, k, table, ids, **how)
    (B, G, R, S), V = mass.shape, len(table)
    bins = torch.zeros(B, G, R, V, dtype=mass.dtype, device=q.device)
    bins.scatter_add_(3, ids.long()[:, None, None].expand(B, G, R, S), mass)
    return finish(binned_rows(table, bins, ids), total, gain, q)


def binned_rows(table, bins, ids):
    """sum_w bins[..., w] * table[w, g]: bins (B, G, R, V) -> (B, G, R, D).

    Where several rows of bins can share the reading, one product with the whole table. For one row
    a head on a CPU whatever is fastest here: the rows of tokens that occur, every row streamed, or
    the product."""
    B, G, R, V = bins.shape

    def occurring():
        tokens = tokens_in(ids, V)  # (N,)
        return weighted_rows(table, tokens[None], bins[..., tokens])

    def streamed():
        every = torch.arange(V, dtype=torch.int32, device=bins.device)
        return weighted_rows(table, every[None], bins)

    def product():
        by_head = bins.transpose(0, 1).reshape(G, B * R, V).to(table.dtype)
        sums = torch.bmm(by_head, table.transpose(0, 1))  # (G, B R, D)
        return sums.view(G, B, R, -1).transpose(0, 1)

    if B * R > 1 or bins.is_cuda:
        return product()
    ways = dict(product=product, occurring=occurring, streamed=streamed)
    sizes = (ids.shape[1].bit_length(), G, V, table.shape[2], table.stride())
    where = (table.dtype, table.device.type)
    return ways[fastest(("bins", *sizes, *where), ways)]()


def tokens_in(ids, V):
    """Which of V tokens occur, ascending (N,): by marks, which takes no sort."""
    occurs = torch.zeros(V, dtype=torch.bool, device=ids.device)
    occurs[ids.flatten()] = True
    return occurs.nonzero()[:, 0].int()


def shrink(table, ids):
    """(rows of the tokens that occur, ids into them): as many bins as distinct tokens.

    Its copy pays where the vocabulary is far larger than the text, or where the small table serves
    many steps."""
    tokens, local = ids.unique(return_inverse=True)
    return table[tokens], local.int()
