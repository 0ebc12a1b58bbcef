"""What does it cost that a text does not see its neighbour? Attention within documents, by backend.

A row of training holds several documents, one behind the other, and here a query sees earlier
tokens of its own alone. To PyTorch's call that is a mask, with which it computes the whole square;
FlexAttention leaves out the tiles that no document fills. Which tiles these are is asked once a
batch, for all layers, and told beside. No plan of this course is trained so, and its packed rows
let a document see the one before: whoever wants it reads here what it would cost.
"""

import torch
from torch.nn.attention.flex_attention import create_block_mask

from evidence.bench.graphs import agree, backends, each_us, flex, gradients, sdpa
from minimal.kernels.dense import compiled_once

# fmt: off
PACKED = [  # B, T, query heads, key heads, D, and tokens of a document in the mean
    (32, 2048, 6, 6, 128, 500),
]
# fmt: on


def names(bench, B, T, mean):
    """The number of the document that a position belongs to, (B, T)."""
    drawn = torch.rand(B, T, generator=torch.Generator().manual_seed(2))
    return (drawn < 1 / mean).cumsum(1).int().to(bench.device)


def within(document):
    """Which keys a query sees, (B, 1, T, T): those before it in its document."""
    same = document[:, None, :, None] == document[:, None, None]
    return same & torch.ones_like(same[0, 0]).tril()


def tiles(document):
    """The tiles of FlexAttention in which a query sees a key."""
    B, T = document.shape

    def rule(b, h, query, key):
        return (key <= query) & (document[b, query] == document[b, key])

    make = compiled_once(create_block_mask) if document.is_cuda else create_block_mask
    return make(rule, B, None, T, T, device=document.device)


def ways_of(bench, document):
    """{(family, settings): attention(q, k, v)}, each backend by itself."""
    mask, made = within(document), tiles(document)
    ways = {
        ("sdpa", name): lambda q, k, v, by=name: sdpa(q, k, v, by, mask=mask)
        for name in backends(bench.device, masked=True)
    }
    return ways | {("flex", ""): lambda q, k, v: flex(q, k, v, made)}


def documents(bench, B, T, H, G, D, mean):
    """Microseconds of forward and backward by every way, and of the tiles that a batch needs."""
    document = names(bench, B, T, mean)
    q, k, v = (bench.randn(B, T, heads, D).requires_grad_() for heads in (H, G, G))
    push, forward, backward = bench.randn(B, T, H, D), {}, {}
    for name, way in ways_of(bench, document).items():
        forward[name] = lambda way=way: way(q, k, v)
        backward[name] = gradients(forward[name], (q, k, v), push)
    told = f"documents in {B} x {T}"
    forward, backward = (
        bench.seconds(agree(ways, bench.dtype, f"{told}, {part}"))
        for part, ways in dict(forward=forward, backward=backward).items()
    )
    made = bench.seconds({("tiles", ""): lambda: tiles(document)})
    return dict(
        part="documents",
        B=B,
        T=T,
        H=H,
        D=D,
        mean=mean,
        tiles_us=1e6 * made["tiles", ""],
        forward_us=each_us(forward),
        backward_us=each_us(backward),
    )
