"""What happens to the residual stream between blocks? Lambdas, U-Net skips, weighted averages.

`enter(x, at, tape)` runs before block at = 0 … L-1 and once more (at = L) before the final norm.
The tape has already recorded x, so tape.streams[j] is the raw output of block j - 1, and
tape.streams[0] is x0.
"""

import torch
from torch import nn

from minimal.model.layers import Coefficient


def falling(start, by):
    """A start that falls by so much from the first layer to the last."""
    return lambda i, n: start - by * i / max(1, n - 1)


class Lambdas(nn.Module):
    """x <- r_i x + z_i x0 before each block: modded-nanogpt's x0 mixin, nanochat's two lambdas."""

    def __init__(self, residual, x0, roles=("residual", "x0"), *, config):
        super().__init__()
        n = config.layers
        self.residual = nn.ModuleList(Coefficient(roles[0], residual(i, n)) for i in range(n))
        self.x0 = nn.ModuleList(Coefficient(roles[1], x0(i, n)) for i in range(n))

    def enter(self, x, at, tape):
        if at == len(self.residual):
            return x
        return self.residual[at]() * x + self.x0[at]() * tape.x0


class UNet(nn.Module):
    """x += w out_i before block j, for each skip i -> j (modded-nanogpt)."""

    def __init__(self, skips, *, config):
        super().__init__()
        self.skips = {j: i for i, j in skips(config.layers)}  # target -> source
        self.weight = nn.ModuleDict({str(j): Coefficient("skip", 1.0) for j in self.skips})

    def enter(self, x, at, tape):
        if at not in self.skips:
            return x
        source = tape.streams[self.skips[at] + 1]  # (B, T, C)
        return x + self.weight[str(at)]() * source


class DenseFormer(nn.Module):
    """x <- sum_j a_j X_j over the outputs of all blocks so far; starts as the identity."""

    def __init__(self, *, config):
        super().__init__()
        starts = ([0.0] * at + [1.0] for at in range(1, config.layers + 1))
        self.mix = nn.ModuleList(Coefficient("dense", start, (len(start),)) for start in starts)

    def enter(self, x, at, tape):
        if at == 0:
            return x
        shares = self.mix[at - 1]().to(x.dtype)  # (at+1,)
        return torch.stack(tape.streams, -1) @ shares  # (B, T, C, at+1) @ (at+1,)


class Backout(nn.Module):
    """Before the final norm, take back a share of the middle: x - w X_mid (nanochat)."""

    def __init__(self, *, config):
        super().__init__()
        self.middle, self.last = config.layers // 2 + 1, config.layers
        self.weight = Coefficient("smear", 0.2)

    def enter(self, x, at, tape):
        return x - self.weight() * tape.streams[self.middle] if at == self.last else x
