"""Are the gradients written by hand, and what is arranged for speed, equal to their definitions?"""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from minimal.model.gradients import RMSNorm, SquaredRelu
from minimal.model.layers import norm, rope_tables, rotate, squared_relu
from minimal.variants import build


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


@pytest.mark.parametrize("work", (norm, squared_relu))
def test_who_asks_for_a_second_derivative_by_hand_is_told_that_there_is_none(work):
    x = drawn(3, 8).requires_grad_()
    for y in (work(x).sum(), (work(x) ** 3).sum()):
        with pytest.raises(RuntimeError, match="no second derivative: wanted create_graph=False"):
            torch.autograd.grad(y, x, create_graph=True)


@pytest.mark.parametrize("style", ("nanochat", "llama"))
def test_a_models_loss_has_one_where_its_gradients_are_not_by_hand(style):
    """By the way that the message names, against the difference of two gradients."""
    model = build("standard", "smoke", vocab=97, style=style)
    ids = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(0))
    p = model.embed.weight
    with pytest.raises(RuntimeError, match="no second derivative: wanted create_graph=False"):
        torch.autograd.grad(model.loss(ids, ids), p, create_graph=True)
    model.double()
    v = drawn(*p.shape).double()

    def gradient(step=0.0, **how):
        with torch.no_grad():
            p.add_(step * v)
        loss = model.loss(ids, ids.roll(-1, 1), reduction="sum")
        return torch.autograd.grad(loss, p, **how)[0]

    with sdpa_kernel(SDPBackend.MATH):
        (along,) = torch.autograd.grad((gradient(create_graph=True) * v).sum(), p)
        ahead, behind = gradient(1e-4), gradient(-2e-4)
    assert (along - (ahead - behind) / 2e-4).norm() < 1e-3 * along.norm()
