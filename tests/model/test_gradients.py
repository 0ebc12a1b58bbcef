"""Are the gradients written by hand, and what is arranged for speed, equal to their definitions?"""

import pytest
import torch
import torch.nn.functional as F

from minimal.model.gradients import RMSNorm, SquaredRelu
from minimal.model.layers import norm, rope_tables, rotate, squared_relu


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def value_and_gradient(work, x):
    """What `work` makes of x, and what it sends back for a gradient that differs everywhere."""
    x = x.clone().requires_grad_()
    y = work(x)
    return y.detach(), torch.autograd.grad(y, x, drawn(*y.shape, seed=1))[0]


def halves(x, cos, sin):
    """Rotary positions as they are defined: half by half."""
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat([x1 * cos + x2 * sin, x2 * cos - x1 * sin], dim=-1)


@pytest.mark.parametrize("half", (False, True))
@pytest.mark.parametrize("heads", (1, 2, 3))
@pytest.mark.parametrize("tokens", (1, 9))
def test_whole_rows_turn_as_their_halves_do_to_the_last_bit(tokens, heads, half):
    tables = rope_tables(torch.arange(5, 5 + tokens), 16, 1000.0, half)
    x = drawn(4, tokens, heads, 16)
    got = value_and_gradient(lambda x: rotate(x, *tables), x)
    want = value_and_gradient(lambda x: halves(x, *tables), x)
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])


def test_the_squared_relu_is_its_definition_to_the_last_bit():
    x = drawn(5, 7, 64)
    x[0, 0] = 0  # the corner
    got = value_and_gradient(squared_relu, x)
    want = value_and_gradient(lambda x: F.relu(x) * F.relu(x), x)
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])


def test_the_squared_relu_has_the_gradient_of_its_values():
    assert torch.autograd.gradcheck(SquaredRelu.apply, drawn(3, 8).double().requires_grad_())


@pytest.mark.parametrize("eps", (None, 1e-5))
@pytest.mark.parametrize("width", (1, 32, 65))
def test_the_norm_and_its_gradient_are_pytorchs(width, eps):
    for scale in (1e-4, 1.0, 1e4):
        x = scale * drawn(6, 3, width)
        x[0, 0] = 0
        got = value_and_gradient(lambda x: norm(x, eps), x)
        want = value_and_gradient(lambda x: F.rms_norm(x, (width,), eps=eps), x)
        for mine, theirs in zip(got, want):
            torch.testing.assert_close(
                mine, theirs, rtol=1e-5, atol=1e-6 * theirs.abs().max().item()
            )


def test_the_norm_has_the_gradient_of_its_values():
    assert torch.autograd.gradcheck(RMSNorm.apply, (drawn(3, 8).double().requires_grad_(), 1e-3))


@pytest.mark.parametrize("work", (norm, squared_relu))
def test_other_types_go_pytorchs_way(work):
    x = drawn(4, 8).double().requires_grad_()
    assert not type(work(x).grad_fn).__name__.startswith(("RMSNorm", "SquaredRelu"))
    assert type(work(x.float()).grad_fn).__name__.startswith(("RMSNorm", "SquaredRelu"))
