"""Do the kernels of notebooks 11a and 11b equal the reference at odd sizes, empty splits included?

On tiles of PyTorch, where every address is checked, and in Triton's interpreter where it is."""

import pytest
import torch

from homework.in_notebooks import kernels, nb11a, nb11b
from homework.in_notebooks.solutions import nb11a as a
from homework.in_notebooks.solutions import nb11b as b
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import reference

PAIRS = {name: (nb11a.unit, getattr(a, name)) for name in nb11a.unit.exercises}
PAIRS |= {name: (nb11b.unit, getattr(b, name)) for name in nb11b.unit.exercises}


def normal(*shapes, seed=0):
    chance = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=chance) for shape in shapes]


def ran(name, *inputs):
    """What the programs of an exercise's solution stored."""
    unit, kernel = PAIRS[name]
    return kernels.launched(unit.exercises[name].launch, kernel, *inputs)


def close(found, *wanted):
    for x, y in zip(found, wanted, strict=True):
        torch.testing.assert_close(x, y, atol=2e-5, rtol=2e-4)


@pytest.mark.parametrize("n, block", [(1, 4), (7, 8), (33, 16), (64, 16)])
def test_addition(n, block):
    x, y = normal((n,), (n,))
    close(ran("add", x, y, block), x + y)


@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 9), (16, 8), (17, 31)])
def test_a_tile_with_strides(rows, columns):
    (x,) = normal((rows, columns))
    close(ran("transpose", x, 8, 4), x.T)


@pytest.mark.parametrize("columns, block", [(1, 1), (5, 8), (31, 32), (32, 32)])
def test_softmax_and_online_softmax(columns, block):
    (x,) = normal((3, columns))
    close(ran("softmax", x * 9, block), (x * 9).softmax(-1))
    close(ran("online", x * 9, min(block, 8)), (x * 9).logsumexp(-1))


@pytest.mark.parametrize("rows, inner, columns", [(1, 1, 1), (17, 33, 5), (32, 16, 48)])
def test_matrix_product(rows, inner, columns):
    x, y = normal((rows, inner), (inner, columns))
    close(ran("matmul", x, y, 16, 16, 16), x @ y)


def attention(q, k, v):
    seen = torch.ones(len(q), len(k)).tril().bool()
    score = (q @ k.T * q.shape[-1] ** -0.5).masked_fill(~seen, float("-inf"))
    return score.softmax(-1) @ v, score.logsumexp(-1)


@pytest.mark.parametrize("T, M, N", [(1, 16, 16), (15, 16, 16), (40, 16, 32), (50, 32, 16)])
def test_flash_gather_and_the_gradients(T, M, N):
    q, k, v, above, table = normal((T, 16), (T, 16), (T, 16), (T, 16), (11, 16))
    close(ran("flash", q, k, v, M, N), *attention(q, k, v))

    ids = torch.arange(T) * 7 % 11
    out, lse = attention(q, k, table[ids])
    close(ran("gather", q, k, table, ids, -0.5, M, N), -0.5 * out, lse)
    theirs = gather_attention(
        q[None, :, None], k[None, :, None], table[:, None], ids[None].int(), torch.tensor(-0.5)
    )
    close([theirs[0, :, 0]], -0.5 * out)

    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    attention(*leaves)[0].backward(above)
    close(ran("grad_keys", q, k, v, above, M, N), leaves[1].grad, leaves[2].grad)


@pytest.mark.parametrize("S, vocabulary", [(1, 1), (9, 20), (40, 3)])
def test_the_tables_gradient(S, vocabulary):
    (rows,) = normal((S, 8))
    ids = torch.arange(S) ** 2 % vocabulary
    wanted = torch.zeros(vocabulary, 8).index_add_(0, ids, rows)
    close(ran("token_sums", rows, ids, vocabulary, 4), wanted)


SPLITS = [(1, 1), (1, 3), (7, 7), (9, 4), (33, 32), (64, 8), (100, 64)]


@pytest.mark.parametrize("S, splits", SPLITS)
def test_split_decode_joins_any_number_of_splits_empty_ones_too(S, splits):
    q, k, table = normal((2, 16), (S, 2, 16), (9, 2, 16))
    ids = torch.arange(S) * 5 % 9
    part, lse = ran("split", q, k, table, ids, splits, 8)
    each = -(-S // splits)
    empty = splits - -(-S // each)
    assert int(lse.isneginf().all(1).sum()) == empty
    assert torch.isfinite(part).all() and part[splits - empty :].abs().sum() == 0

    out = kernels.empty(2, 16)
    padded = 1 << (splits - 1).bit_length()
    kernels.tiles.run(
        b.combine, (2,), part, lse, torch.tensor([0.7]), out, 2, splits, PADDED=padded, D=16
    )
    wanted = reference(q[None, None], k[None], table, ids[None].int(), torch.tensor(0.7))[0, 0]
    close([out], wanted)


@pytest.mark.parametrize("S, N", [(1, 8), (13, 8), (64, 16)])
def test_masses_by_atomics_and_by_runs(S, N):
    q, k = normal((2, 16), (S, 2, 16))
    ids = torch.arange(S) ** 2 % 7
    score = torch.einsum("hd,shd->hs", q, k) * 16**-0.5
    mass = (score - 5.0).exp()
    bins = torch.zeros(2, 7).index_add_(1, ids, mass)
    close(ran("scatter", q, k, ids, 7, 5.0, N), bins)
    close(ran("mass_of_runs", q, k, ids, 5.0, N), bins[:, ids.unique()].T)


def test_these_tests_also_ran_in_tritons_interpreter(interpreter):
    assert kernels.INTERPRETED
