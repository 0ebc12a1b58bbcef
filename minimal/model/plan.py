"""What is a plan? Where every layer's queries, keys and values come from, and how it reads them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from minimal.model import attention
from minimal.model.values import Own


class LayerPlan(NamedTuple):
    """One layer of a plan. Each door is a class, or a partial of one, that takes config and at."""

    value: Any = Own  # a values.Source; None: a layer without attention
    query: Any = attention.Projection
    key: Any = attention.Projection
    read: Any = attention.Plain
    mlp: bool = True
    output: bool = True  # W_O


# ---- which layers? Each selector is (i, L) -> bool --------------------------------------------
def everywhere(i, n):
    return True


def after_first(i, n):
    return i > 0


def last_third(i, n):
    """i >= (2L)//3, so ceil(L/3) layers (Bank of Values)."""
    return i >= 2 * n // 3


def early_third(i, n):
    """As many layers as last_third has, a sixth from the bottom: layers 3 to 6 of twelve."""
    return n // 6 <= i < n // 6 + n - 2 * n // 3


def alternate(i, n):
    """Every second layer, the last among them."""
    return i % 2 == (n - 1) % 2


def second_half(i, n):
    return i >= n // 2


def second_and_middle(i, n):
    """Two early layers: Engram's 1 and 15 of 30, scaled to n."""
    return i in (1, n // 2)


def odd(i, n):
    return i % 2 == 1


def skipping_first(where):
    """The same layers without layer 0, which cannot point at itself."""
    return lambda i, n: i > 0 and where(i, n)


# ---- how many key/value heads? ----------------------------------------------------------------
def half_heads(heads):
    """About half the key/value heads: the largest divisor of H that is at most H / 2."""
    return max(g for g in range(1, max(1, heads // 2) + 1) if heads % g == 0)


# ---- a plan's layers --------------------------------------------------------------------------
class by_layer(NamedTuple):
    """A door that depends on the layer: by_layer(function of i and L)."""

    make: Any


def place(
    where: Callable[[int, int], bool] = everywhere, **doors: Any
) -> Callable[[int, int], LayerPlan]:
    """A plan's line: `doors` (value=…, key=…, read=…) where `where` says so, else a standard layer.

    A door may be a function of the layer index, marked by `by_layer`.
    """

    def line(i, n):
        if not where(i, n):
            return LayerPlan()
        made = {}
        for name, door in doors.items():
            made[name] = door.make(i, n) if isinstance(door, by_layer) else door
        return LayerPlan(**made)

    return line


# ---- the plan ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Plan:
    """A row of the course's table: a function (i, L) -> LayerPlan, and its wishes of the size.

    A plan of your own has a `name` by which its runs are written down."""

    line: Callable[[int, int], LayerPlan] = place()
    streams: tuple = ()  # of model/residual.py
    heads: int | None = None  # DVA has one head
    groups: Callable[[int], int] | None = None  # heads -> key/value heads
    style: str | None = None
    smear: bool = False
    name: str = "own"

    def __str__(self):
        return self.name

    def adapt(self, config):
        """The size as this plan wants it."""
        if self.heads is not None:
            config = config.but(heads=self.heads, groups=None)
        if self.style is not None:
            config = config.but(style=self.style)
        if self.smear:
            config = config.but(smear=True)
        if self.groups is not None:
            config = config.but(groups=self.groups(config.heads))
        return config

    def lines(self, config):
        """The LayerPlan of every layer."""
        return [self.line(i, config.layers) for i in range(config.layers)]

    def but(self, every=None, **changes):
        """The same plan with changes; `every=dict(mlp=True)` changes a field of every line."""
        if every:
            old = self.line
            changes["line"] = lambda i, n: old(i, n)._replace(**every)
        return replace(self, **changes)
