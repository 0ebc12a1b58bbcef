"""What is left of the values if attention is counted by token before they are read?

out = gain * sum_p a_p E[i_p] = gain * sum_w m_w E[w] with m_w = sum of a_p over the positions of token w. On a CPU,
where reading V is half of a decode step or more, that is the difference between reading S rows and reading at most V:

    rows_decode       a weighted sum of S table rows, no V in memory: best while S < V
    histogram_decode  masses scattered into V bins a head, then the whole table once, in order: best for S > V
    SortedCache       keys permuted by token once after prefill: equal tokens are neighbours, one row a run is read

Plain PyTorch without gradients, equal to gather.reference within gather.TOLERANCE; the bytes that each must move stand
at the end. Keys are read fastest where each head's lie together: k as a transposed view of (B, G, S, D).
"""

import torch
import torch.nn.functional as F

from minimal.kernels.reference import visible, want

PIECES = 8  # bags a head: every thread gets one, and shorter sums round less

SAFE_LOGIT = 60.0  # exp(60) times a million keys is still a number in fp32


def seen_part(T, k, ids, causal, window, lengths):
    """The keys that some query can see, and the mask where one is still needed: a window makes the past short."""
    last = k.shape[1] if lengths is None else max(1, int(lengths.max()))
    earliest = (last if lengths is None else int(lengths.min())) - T
    first = max(0, earliest - window) if window and T < k.shape[1] else 0
    whole = lengths is None and (T == 1 or not (causal or window))
    see = (
        None
        if whole
        else visible(T, k.shape[1], causal, window, lengths, k.device)[..., first:last]
    )
    return k[:, first:last], ids[:, first:last], see


def masses(q, k, see, scale, bound, table):
    """Attention weights times their total, and the total: (B, G, S, R) and (B, G, 1, R); R = T * H/G rows share a head.

    With a bound on the logits nothing can overflow: no maximum is looked for, and one division at the end is enough.
    Tables in half precision cannot take unnormalised sums, so for them the division comes first."""
    (B, T, H, D), (_, S, G, _) = q.shape, k.shape
    rows = (
        (q * scale).view(B, T, G, H // G, D).permute(0, 2, 4, 1, 3).reshape(B, G, D, -1)
    )  # (B, G, D, R)
    logits = torch.matmul(k.transpose(1, 2), rows)  # (B, G, S, R)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if see is not None:
        hidden = ~see[:, 0].transpose(1, 2)[:, None, :, :, None]  # (B, 1, S, T, 1)
        logits.view(B, G, S, T, H // G).masked_fill_(hidden, float("-inf"))
    if bound is None or bound > SAFE_LOGIT:
        top = logits.amax(2, keepdim=True)
        logits -= top.masked_fill(top == float("-inf"), 0)
    mass = logits.exp_()
    total = mass.sum(2, keepdim=True)
    total.masked_fill_(total == 0, 1)  # queries that see no key: 0 / 1
    return (
        (mass, total) if table.dtype == mass.dtype else (mass.div_(total), torch.ones_like(total))
    )


def weighted_rows(table, tokens, mass):
    """sum_n mass[..., n] * table[tokens[..., n], g]: tokens (B, N), mass (B, G, R, N) -> (B, G, R, D).

    embedding_bag is the one operation in PyTorch that gathers and adds without writing what it gathered. It wants a
    flat table, which both layouts are, token-major and head-major, without a copy."""
    (B, G, R, N), (V, _, D) = mass.shape, table.shape
    if table.stride() not in ((G * D, D, 1), (D, V * D, 1)):
        table = table.contiguous()
    heads = torch.arange(G, dtype=torch.int32, device=tokens.device)[:, None, None] * (
        table.stride(1) // D
    )
    index = (
        (tokens[:, None, None] * (table.stride(0) // D) + heads).expand(B, G, R, N).reshape(-1)
    )  # (B*G*R*N,)
    starts = torch.arange(B * G * R, dtype=torch.int32, device=tokens.device)[:, None] * N
    starts = starts + torch.arange(
        0, N, -(-N // PIECES), dtype=torch.int32, device=tokens.device
    )  # (B*G*R, pieces)
    bags = F.embedding_bag(
        index,
        table.as_strided((V * G, D), (D, 1)),
        starts.flatten(),
        mode="sum",
        per_sample_weights=mass.reshape(-1).to(table.dtype),
    )
    return bags.view(B, G, R, -1, D).sum(3)


def finish(sums, total, gain, q):
    """(B, G, R, D) unnormalised -> (B, T, H, D): divided once, times the gain once."""
    (B, T, H, D), G = q.shape, sums.shape[1]
    mean = (
        (sums / total.transpose(2, 3))
        .view(B, G, T, H // G, D)
        .transpose(1, 2)
        .reshape(B, T, H, D)
        .to(q.dtype)
    )
    return mean if gain is None else mean * gain.to(mean.dtype)


@torch.no_grad()
def rows_decode(
    q, k, table, ids, gain=None, *, causal=True, window=0, lengths=None, scale=None, bound=None
):
    """The gather, fused for a CPU."""
    k, ids, see = seen_part(q.shape[1], k, ids, causal, window, lengths)
    mass, total = masses(q, k, see, q.shape[-1] ** -0.5 if scale is None else scale, bound, table)
    return finish(weighted_rows(table, ids, mass.transpose(2, 3)), total, gain, q)


@torch.no_grad()
def histogram_decode(
    q, k, table, ids, gain=None, *, causal=True, window=0, lengths=None, scale=None, bound=None
):
    """scatter_add into bins (index_add is ten times slower), then the whole table in order: streamed where there is one
    row of bins a head, one product where several rows can share the reading."""
    k, ids, see = seen_part(q.shape[1], k, ids, causal, window, lengths)
    mass, total = masses(q, k, see, q.shape[-1] ** -0.5 if scale is None else scale, bound, table)
    (B, G, S, R), V = mass.shape, len(table)
    bins = torch.zeros(B, G, R, V, dtype=mass.dtype, device=q.device)
    bins.scatter_add_(3, ids.long()[:, None, None].expand(B, G, R, S), mass.transpose(2, 3))
    if B * R == 1:
        sums = weighted_rows(table, torch.arange(V, dtype=torch.int32, device=q.device)[None], bins)
    else:
        by_head = bins.transpose(0, 1).reshape(G, B * R, V).to(table.dtype)
        sums = (
            torch.bmm(by_head, table.transpose(0, 1)).view(G, B, R, -1).transpose(0, 1)
        )  # (B, G, R, D)
    return finish(sums, total, gain, q)


def shrink(table, ids):
    """(rows of the tokens that occur, ids into them): as many bins as distinct tokens. Its copy pays where the
    vocabulary is far larger than the text, or where the small table serves many steps."""
    tokens, local = ids.unique(return_inverse=True)
    return table[tokens], local.int()


class SortedCache:
    """A finished prefix, permuted by token id: attention does not care about the order of keys that carry their
    positions inside. New tokens follow in the order they come, each a run of its own. No window can be applied."""

    def __init__(self, k, ids, room=256):
        (B, S, G, D) = k.shape
        ids, order = ids.sort(dim=1, stable=True)
        self.keys = k.new_empty(B, G, S + room, D)  # head-major: a head's keys lie together
        for b in range(B):
            self.keys[b, :, :S] = k[b, order[b]].transpose(0, 1)
        runs = [ids[b].unique_consecutive(return_counts=True) for b in range(B)]
        self.filled, self.runs = S, max(len(tokens) for tokens, _ in runs)
        self.tokens = ids.new_zeros(B, self.runs + room)
        self.counts = ids.new_zeros(
            B, G, self.runs + room, dtype=torch.int64
        )  # keys a run; unused runs have none
        for b, (tokens, counts) in enumerate(runs):
            self.tokens[b, : len(tokens)], self.counts[b, :, : len(tokens)] = tokens, counts

    def append(self, k, ids):
        """k (B, T, G, D), ids (B, T) of new tokens."""
        T, room = k.shape[1], self.keys.shape[2] - self.filled
        want(
            T <= room,
            "the sorted cache has room for {} more tokens, {} came: make it with more room",
            room,
            T,
        )
        self.keys[:, :, self.filled : self.filled + T] = k.transpose(1, 2)
        self.tokens[:, self.runs : self.runs + T], self.counts[:, :, self.runs : self.runs + T] = (
            ids,
            1,
        )
        self.filled, self.runs = self.filled + T, self.runs + T

    @torch.no_grad()
    def attend(self, q, table, gain=None, *, scale=None, bound=None):
        """q (B, 1, H, D), which sees everything in the cache."""
        want(q.shape[1] == 1, "sorted decode wants one query a sequence, got {}", q.shape[1])
        keys = self.keys[:, :, : self.filled].transpose(1, 2)
        mass, total = masses(
            q, keys, None, q.shape[-1] ** -0.5 if scale is None else scale, bound, table
        )
        counts = self.counts[:, :, : self.runs].contiguous()
        by_run = torch.segment_reduce(
            mass, "sum", lengths=counts, axis=2, unsafe=True, initial=0
        )  # (B, G, runs, R)
        return finish(
            weighted_rows(table, self.tokens[:, : self.runs], by_run.transpose(2, 3)),
            total,
            gain,
            q,
        )


# ---- bytes ---------------------------------------------------------------------------------------
def rows_bytes(B, T, S, H, G, D, V, b=4, distinct=None):
    """Keys and ids once, and rows: from memory at least the distinct ones, through the caches one a key and query."""
    keys = B * S * G * D * b + B * S * 4
    return keys + min(distinct or V, B * S) * G * D * b, keys + B * T * H * S * D * b


def histogram_bytes(B, T, S, H, G, D, V, b=4):
    """Keys and ids once, bins cleared, filled and read, the table once (once a batch if several rows share it)."""
    return B * S * G * D * b + B * S * 4 + 4 * B * T * H * V * 4 + V * G * D * b


def sorted_bytes(B, T, S, H, G, D, runs, b=4):
    """Keys once, one row a run and query head, run lengths and tokens."""
    return B * S * G * D * b + B * T * H * runs * D * b + B * runs * 12
