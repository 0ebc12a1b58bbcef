"""Every way of reading values through ids equals the reference, forward and backward."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from minimal.kernels import fused
from minimal.kernels.fused import fused as fused_way
from minimal.kernels.fused import sort_ids
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import TOLERANCE, reference
from tests.kernels.shapes import TRAINING, Shape

EXACT = TOLERANCE[torch.float32]


def close(a, b, tolerance=EXACT):
    assert a.shape == b.shape and a.dtype == b.dtype
    assert torch.isfinite(a).all(), "not a number, or not written"
    if a.numel():
        assert (a.double() - b.double()).abs().max() <= tolerance * max(1, b.double().abs().max())


def gradients(function, inputs, shape, **more):
    """Output, and the gradients of everything that has one."""
    out = function(*inputs, **shape.how, **more)
    push = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
    leaves = [x for x in inputs if x is not None and x.requires_grad]
    return [out.detach(), *torch.autograd.grad(out, leaves, push)]


# ---- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", TRAINING.values(), ids=TRAINING)
def test_the_dense_way_equals_the_reference_with_its_gradients(shape):
    inputs = shape.tensors(grad=True)
    for mine, right in zip(
        gradients(gather_attention, inputs, shape, way="dense"),
        gradients(reference, inputs, shape),
        strict=True,
    ):
        close(mine, right)


@pytest.mark.parametrize("shape", TRAINING.values(), ids=TRAINING)
def test_the_kernels_equal_the_reference_with_their_gradients(shape, interpreter):
    inputs = shape.tensors(grad=True)
    for mine, right in zip(
        gradients(gather_attention, inputs, shape, way="fused"),
        gradients(reference, inputs, shape),
        strict=True,
    ):
        close(mine, right)


@pytest.mark.parametrize("D", (32, 40, 64, 80, 96, 128))
def test_head_widths_from_32_to_128_need_not_be_powers_of_two(D, interpreter):
    shape = Shape(B=1, T=34, S=34, H=2, G=1, D=D)
    inputs = shape.tensors(grad=True)
    for mine, right in zip(
        gradients(gather_attention, inputs, shape, way="fused"),
        gradients(reference, inputs, shape),
        strict=True,
    ):
        close(mine, right)


def test_ids_that_do_not_repeat_give_ordinary_attention_over_a_stored_v(interpreter):
    shape = Shape(T=40, S=40, V=80)
    q, k, table, ids, gain = inputs = shape.tensors(unique=True, grad=True)
    stored = (
        torch.nn.functional.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, table[ids])), is_causal=True
        ).transpose(1, 2)
        * gain
    )
    close(gather_attention(*inputs, way="fused"), stored)
    for mine, right in zip(
        gradients(gather_attention, inputs, shape, way="fused"),
        gradients(reference, inputs, shape),
        strict=True,
    ):
        close(mine, right)


def test_the_table_of_a_kernel_that_is_given_no_ids_is_v_itself(interpreter):
    from minimal.kernels.forward import run_forward

    q, k, _, _, _ = Shape(S=70, T=70).tensors()
    v = torch.randn(2, 70, 2, 32)
    out, _, _ = run_forward(q, k, v, None, None, None, True, 0, 32**-0.5, keep=False)
    every = torch.arange(140, dtype=torch.int32).view(2, 70)
    close(out, reference(q, k, v.flatten(0, 1), every))


@pytest.mark.parametrize("name", ("grouped_window", "padded", "gain_negative", "one_word"))
def test_atomics_give_the_same_table_gradient_up_to_rounding(name, interpreter):
    shape = TRAINING[name]
    inputs = shape.tensors(grad=True)

    def atomic(*tensors, lengths, **how):
        return fused_way(*tensors, lengths=lengths, scale=32**-0.5, atomic=True, **how)

    for mine, right in zip(
        gradients(atomic, inputs, shape), gradients(reference, inputs, shape), strict=True
    ):
        close(mine, right)


def test_a_table_in_fp32_under_half_precision_stays_within_its_tolerance(interpreter):
    shape = Shape(T=50, S=50, H=4, G=2)
    q, k, table, ids, gain = shape.tensors()
    mixed = [
        q.half().requires_grad_(),
        k.half().requires_grad_(),
        table.requires_grad_(),
        ids,
        gain,
    ]
    exact = [x.detach().double().requires_grad_() if x.is_floating_point() else x for x in mixed]
    exact[4] = gain
    right = gradients(reference, exact, shape)
    for way in ("dense", "fused"):
        found = gradients(gather_attention, mixed, shape, way=way)
        assert found[3].dtype == torch.float32
        for mine, true in zip(found, right, strict=True):
            close(mine.double(), true, TOLERANCE[torch.float16])


def test_half_precision_stays_within_its_tolerance(interpreter):
    shape = Shape(T=50, S=50, H=4, G=2, window=20)
    inputs = [
        x.detach().half().requires_grad_() if x.is_floating_point() else x
        for x in shape.tensors()[:4]
    ] + [None]
    exact = [
        x.detach().double().requires_grad_() if x.is_floating_point() else x for x in inputs[:4]
    ] + [None]
    for mine, right in zip(
        gradients(gather_attention, inputs, shape, way="fused"),
        gradients(reference, exact, shape),
        strict=True,
    ):
        close(mine, right.half(), TOLERANCE[torch.float16])


def test_a_table_in_another_precision_is_read_at_the_queries_precision(interpreter):
    q, k, table, ids, gain = Shape().tensors()
    table = table.half()
    for way in ("dense", "fused", "split", "rows", "histogram"):
        q1 = q if way in ("dense", "fused") else q[:, -1:]
        close(
            gather_attention(q1, k, table, ids, gain, way=way),
            reference(q1, k, table, ids, gain),
            TOLERANCE[torch.float16],
        )


def test_the_gains_gradient_is_finite_and_right_at_gain_zero(interpreter):
    shape = TRAINING["gain_zero"]
    q, k, table, ids, gain = shape.tensors(grad=True)
    gather_attention(q, k, table, ids, gain, way="fused").sum().backward()
    unscaled = reference(q, k, table, ids)
    close(gain.grad, unscaled.sum().detach())
    assert not table.grad.any() and not q.grad.any()


def test_only_what_needs_a_gradient_gets_one(interpreter):
    q, k, table, ids, gain = Shape().tensors()
    table.requires_grad_()
    gather_attention(q, k, table, ids, gain, way="fused").sum().backward()
    assert table.grad is not None and q.grad is k.grad is gain.grad is None


def test_the_fused_way_keeps_no_values_for_its_backward(interpreter):
    shape = Shape(B=2, T=64, S=64, V=8)
    inputs = shape.tensors(grad=True)

    def kept(way):
        storages = {}

        def note(x):
            storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            out = gather_attention(*inputs, way=way)
        return sum(storages.values()), out

    value_bytes = inputs[1].numel() * 4
    given = sum(x.numel() * 4 for x in inputs)  # q, k, table, ids, gain are there anyway
    fused, _ = kept("fused")
    dense, _ = kept("dense")
    lse = 2 * 2 * 64 * 4
    assert fused == given + value_bytes + lse  # u in the place of the output, and nothing for V
    assert (
        dense >= fused + value_bytes - inputs[2].numel() * 4
    )  # the embedding's own backward needs no table


def test_who_asks_for_a_second_derivative_of_the_kernels_is_told_the_way_that_has_one(interpreter):
    inputs = Shape(T=5, S=5).tensors(grad=True)
    q, k, *_ = inputs

    def twice(attend, **how):
        """The gradient, for k, of the sum of the gradient for q."""
        (slope,) = torch.autograd.grad(attend(*inputs, **how).sum(), q, create_graph=True)
        return torch.autograd.grad(slope.sum(), k)[0]

    with pytest.raises(RuntimeError, match="no second derivative: .* way='dense' within sdpa_kern"):
        twice(gather_attention, way="fused")
    with sdpa_kernel(SDPBackend.MATH):
        found = twice(gather_attention, way="dense")
    close(found, twice(reference))
    assert found.any()


# ---- the shared sort -----------------------------------------------------------------------------


def test_all_layers_of_a_step_share_one_sort_and_a_write_to_the_ids_ends_it(
    interpreter, monkeypatch
):
    q, k, table, ids, gain = Shape().tensors(grad=True)
    monkeypatch.setattr(fused, "fastest", lambda question, ways: "segments")
    sorts = []
    sort = torch.Tensor.sort
    monkeypatch.setattr(torch.Tensor, "sort", lambda *a, **b: sorts.append(1) or sort(*a, **b))
    x = q
    for _ in range(3):
        x = gather_attention(x, k, table, ids, gain, way="fused")
    x.sum().backward()
    assert len(sorts) == 1
    ids[0, 0] = (ids[0, 0] + 1) % len(table)
    sort_ids(ids, len(table))
    assert len(sorts) == 2


def test_a_plan_for_all_ids_is_not_used_for_those_that_a_window_leaves(interpreter):
    shape = Shape(T=8, S=60, window=9)
    inputs = shape.tensors(grad=True)
    found = gradients(
        gather_attention, inputs, shape, way="fused", order=sort_ids(inputs[3], shape.V)
    )
    for mine, right in zip(found, gradients(reference, inputs, shape), strict=True):
        close(mine, right)


def test_the_plan_lists_each_tokens_positions_in_the_order_of_the_text():
    ids = torch.tensor([[3, 1, 3], [0, 1, 3]], dtype=torch.int32)
    order, starts = sort_ids(ids, 5)
    assert order.tolist() == [3, 1, 4, 0, 2, 5] and starts.tolist() == [0, 1, 3, 3, 6, 6]


def test_the_sum_by_token_equals_index_add_to_the_last_bit_of_that_order(interpreter):
    from minimal.kernels.backward import run_sum_by_token

    rows, ids = torch.randn(2, 150, 3, 40), torch.randint(7, (2, 150), dtype=torch.int32)
    table = torch.zeros(9, 3, 40)
    mine = run_sum_by_token(rows, sort_ids(ids, 9), table)
    close(mine, torch.zeros(9, 120).index_add_(0, ids.flatten(), rows.view(300, -1)).view(9, 3, 40))
    assert torch.equal(mine, run_sum_by_token(rows, sort_ids(ids.clone(), 9), table))
    assert not mine[7:].any()


def test_the_dense_ways_table_gradient_has_the_same_bits_in_every_run():
    shape = Shape(B=8, T=200, S=200, V=5)
    inputs = shape.tensors(grad=True)
    first = gradients(gather_attention, inputs, shape, way="dense")
    for _ in range(3):
        again = gradients(gather_attention, inputs, shape, way="dense")
        assert all(torch.equal(a, b) for a, b in zip(again, first, strict=True))


# ---- what is seen, without the reference ---------------------------------------------------------


def test_a_window_of_three_sees_four_keys(interpreter):
    S = 12
    q, k = (
        torch.zeros(1, S, 1, 32),
        torch.zeros(1, S, 1, 32),
    )  # all logits equal: the mean over what is seen
    table = torch.eye(32)[:S, None]  # position p's value is the unit vector p
    ids = torch.arange(S, dtype=torch.int32)[None]
    for way in ("dense", "fused"):
        out = gather_attention(q, k, table, ids, window=3, way=way)[0, :, 0, :S]
        assert (out > 0).sum(-1).tolist() == [1, 2, 3] + [4] * 9 and torch.allclose(
            out[5, 2:6], torch.full((4,), 0.25)
        )
    out = gather_attention(q[:, :1], k, table, ids, window=3, way="split")[0, 0, 0, :S]
    assert out.nonzero().flatten().tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("way", ("dense", "fused"))
def test_a_later_token_changes_nothing_before_it(way, interpreter):
    q, k, table, ids, gain = Shape(B=1, T=50, S=50).tensors()
    before = gather_attention(q, k, table, ids, gain, way=way)
    k[:, 30] += 1
    ids[:, 30] = (ids[:, 30] + 1) % len(table)
    after = gather_attention(q, k, table, ids, gain, way=way)
    assert torch.equal(before[:, :30], after[:, :30]) and not torch.equal(
        before[:, 30:], after[:, 30:]
    )


@pytest.mark.parametrize("way", ("dense", "fused", "split", "rows", "histogram"))
def test_what_lies_under_the_padding_never_reaches_an_output(way, interpreter):
    shape = (
        Shape(T=40, S=40, lengths=(31, 8))
        if way in ("dense", "fused")
        else Shape(T=1, S=40, lengths=(31, 8))
    )
    q, k, table, ids, gain = shape.tensors()
    right = reference(q, k, table, ids, gain, **shape.how)
    if way != "dense":  # PyTorch's attention multiplies what it hides by 0, and 0 * NaN is NaN
        k[0, 31:], k[1, 8:] = float("nan"), float("inf")
    close(gather_attention(q, k, table, ids, gain, way=way, **shape.how), right)


# ---- odd memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ("dense", "fused", "split", "rows", "histogram"))
def test_tensors_may_be_views_of_larger_ones(way, interpreter):
    shape = Shape(T=36, S=36) if way in ("dense", "fused") else Shape(T=1, S=36)
    q, k, table, ids, gain = shape.tensors()
    right = reference(q, k, table, ids, gain)
    cache = torch.full((2, 2, 50, 32), float("nan"))  # head-major, with room to grow
    cache[:, :, :36] = k.transpose(1, 2)
    history = torch.zeros(2, 50, dtype=torch.int32)
    history[:, :36] = ids
    views = (
        q.transpose(1, 2).contiguous().transpose(1, 2),
        cache[:, :, :36].transpose(1, 2),
        table.transpose(0, 1).contiguous().transpose(0, 1),
        history[:, :36],
    )
    assert not any(x.is_contiguous() for x in views[1:])
    close(gather_attention(*views, gain, way=way), right)


@pytest.mark.parametrize(
    "shape", (Shape(B=0), Shape(T=0), Shape(S=0, T=3)), ids=("no_batch", "no_queries", "no_keys")
)
@pytest.mark.parametrize("way", (None, "dense", "fused", "split", "rows", "histogram"))
def test_an_empty_batch_gives_an_empty_or_zero_answer_and_gradients(shape, way, interpreter):
    inputs = shape.tensors(grad=way in (None, "dense", "fused"))
    out = gather_attention(*inputs, way=way)
    assert out.shape == (shape.B, shape.T, shape.H, shape.D) and not out.any()
    if out.requires_grad:
        out.sum().backward()
        assert not inputs[2].grad.any()
