"""Which pieces do the lines of PLANS share? Sources half filled in, under the names of a paper."""

from functools import partial

from minimal.model import latent
from minimal.model.attention import Shared
from minimal.model.lookup import Looked
from minimal.model.plan import by_layer
from minimal.model.residual import Backout, Lambdas, UNet, falling
from minimal.model.values import Anchored, Gate, Input, Layer, Mix, Own, Table


def first(**more):
    """V_1, the values of the first layer."""
    return partial(Layer, 0, **more)


def mixed_with(y, a, b, **more):
    """a V + b Y, where V is the layer's own."""
    return partial(Mix, Own, y, a, b, **more)


def below(i, n):
    """The values of the layer below."""
    return partial(Layer, i - 1)


def half_below(i, n):
    """Half the layer's own values, half those of the layer below."""
    return mixed_with(below(i, n), 0.5, 0.5)


def keys_below(i, n):
    """The keys of the layer below."""
    return partial(Shared, j=i - 1)


def into_values(look):
    """The layer's own values, and beside them what is looked up."""
    return mixed_with(partial(Looked, look), 1.0, 1.0)


def multi_latent(size):
    """The four doors of multi-head latent attention, with a latent of size(config)."""
    return dict(
        query=latent.Query,
        key=partial(latent.Key, size=size),
        value=partial(latent.FromLatent, size),
        read=partial(latent.Read, size),
    )


# an anchor every ceil(n / 3) layers, from which those behind it have their values: three of 12
# layers, two of 4; of 3 and fewer every layer is one
def behind_anchor(i, n):
    return i % -(-n // 3) > 0


def anchor(i, n):
    return partial(Layer, i - i % -(-n // 3))


# modded-nanogpt, defined at 16 layers and scaled to L
def modded_value(i, n, gap=7):
    """Tables on the first and last k = 3L/16 layers, the same ones in both places.

    Layer `gap` of 16 has no attention (None: every layer has it).
    """
    if gap is not None and i == gap * n // 16:
        return None
    k = max(1, 3 * n // 16)
    if k <= i < n - k:
        return partial(Own, gain=("lambda", 0.5))
    table = i if i < k else i - (n - k)
    return mixed_with(partial(Table, f"ve{table}", "normal"), 0.5, 0.5, roles=LAMBDAS)


def modded_skips(n):
    """(source, target) of the U-Net: 2->11, 4->10 and 6->9 of 16 layers."""
    pairs = {(i * n // 16, j * n // 16) for i, j in ((6, 9), (4, 10), (2, 11))}
    return sorted((i, j) for i, j in pairs if i < j)


# who learns: the role decides the rate, as in training/recipes.py
LAMBDAS = ("lambda", "lambda")
LEARNED = dict(gain=("beta", 1.0))
OPEN = dict(roles=("alpha", "beta"))  # a starts at 1 and learns slowly, b at 0 and learns fast

V1, X0 = first(), partial(Input)
V1_HALF = mixed_with(V1, 0.5, 0.5)
V1_LEARNED = first(**LEARNED)
X0_LEARNED = partial(Input, **LEARNED)
TABLE = partial(Table, **LEARNED)
ANCHORED = mixed_with(Anchored, 0.5, 0.5, roles=LAMBDAS)
GATED = partial(Gate, Own, partial(Table, start="uniform"))

MODDED_PIECES = (
    partial(UNet, modded_skips),
    partial(Lambdas, falling(1.0, by=0.0), falling(0.0, by=0.0), LAMBDAS),
)
MOVED = by_layer(partial(modded_value, gap=5))
WHOLE = by_layer(partial(modded_value, gap=None))
NANOCHAT_PIECES = (partial(Lambdas, falling(1.15, by=0.10), falling(0.20, by=0.15)), Backout)
BARE = dict(mlp=False, output=False)  # DVA has neither a feed-forward net nor W_O
