"""Is the loss whose gradient is made on the way the plain cross entropy, in value and in
gradients?"""

import weakref

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.utils._python_dispatch import TorchDispatchMode

from minimal.model import loss
from minimal.model.loss import HeadLoss
from minimal.variants import build

PLAIN = {
    "tanh": lambda z: 15 * torch.tanh(z / 15),
    "isru": lambda z: z / (1 + (z / 15) ** 2).sqrt(),
    None: lambda z: z,
}


def draw(positions, width, vocab, seed=0):
    g = torch.Generator().manual_seed(seed)
    x, w = torch.randn(positions, width, generator=g), torch.randn(vocab, width, generator=g)
    y = torch.randint(vocab, (positions,), generator=g)
    y[::5] = -1
    return x.requires_grad_(), w.requires_grad_(), y


@pytest.mark.parametrize("cap", PLAIN)
@pytest.mark.parametrize("positions", (1, 7, 8, 23))
def test_it_is_cross_entropy_in_value_and_in_both_gradients(cap, positions, monkeypatch):
    monkeypatch.setattr(loss, "ROWS", 8)
    x, w, y = draw(positions, 12, 50)
    got = HeadLoss.apply(x, w, y, cap) * 0.7
    want = F.cross_entropy(PLAIN[cap](x @ w.T), y, ignore_index=-1, reduction="sum") * 0.7
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(torch.autograd.grad(got, (x, w)), torch.autograd.grad(want, (x, w))):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cap", PLAIN)
def test_large_scores_stay_finite(cap):
    x, w, y = draw(9, 12, 50)
    got = HeadLoss.apply(1e3 * x, w, y, cap)
    assert got.isfinite() and all(g.isfinite().all() for g in torch.autograd.grad(got, (x, w)))


def test_in_bf16_it_differs_by_bf16_rounding_alone():
    x, w, y = draw(64, 32, 100)
    low = x.detach().bfloat16().requires_grad_()
    got, want = HeadLoss.apply(low, w, y, "tanh"), HeadLoss.apply(x, w, y, "tanh")
    torch.testing.assert_close(got, want, rtol=2e-2, atol=0)
    (gx, gw), (hx, hw) = torch.autograd.grad(got, (low, w)), torch.autograd.grad(want, (x, w))
    assert gx.dtype == torch.bfloat16 and gw.dtype == torch.float32
    assert (gx - hx).norm() < 0.03 * hx.norm() and (gw - hw).norm() < 0.03 * hw.norm()


@pytest.mark.parametrize("cap", PLAIN)
@pytest.mark.parametrize("compiled", (False, True))
def test_beside_float64_it_has_the_digits_of_its_type(cap, compiled):
    """As it runs, and as a compiler sees it, which takes another way to the target's gradient."""
    x, w, y = draw(40, 16, 90)
    exact = [t.detach().double().requires_grad_() for t in (x, w)]
    scores = PLAIN[cap](exact[0] @ exact[1].T)
    right = F.cross_entropy(scores, y, ignore_index=-1, reduction="sum")
    how = dict(backend="aot_eager", fullgraph=True)
    apply = torch.compile(HeadLoss.apply, **how) if compiled else HeadLoss.apply
    for leaves, digits in (((x, w), 1e-5), (exact, 1e-13)):
        got = apply(*leaves, y, cap)
        pairs = zip(torch.autograd.grad(got, leaves), gradients_of(right, exact), strict=True)
        for mine, theirs in ((got, right), *pairs):
            assert (mine - theirs).abs().max() <= digits * theirs.abs().max()


def gradients_of(right, leaves):
    return torch.autograd.grad(right, leaves, retain_graph=True)


def test_the_targets_gradient_is_one_whether_it_is_scattered_or_compared(monkeypatch):
    p, y = torch.rand(20, 50), torch.arange(20)[:, None]
    counts = y % 3 > 0
    scattered = loss.less_target(p.clone(), y, counts)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(loss.less_target(p, y, counts), scattered)
    assert (scattered - p).sum() == pytest.approx(-counts.sum().item(), abs=1e-4)


def test_a_compiler_is_given_no_scatter():
    """It would write all scores of a part out for it, in fp32, and read them again."""
    seen = []

    def listing(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    x, w, y = draw(9, 12, 50)
    backend = aot_autograd(fw_compiler=listing, bw_compiler=listing)
    apply = torch.compile(HeadLoss.apply, backend=backend, fullgraph=True)
    torch.autograd.grad(apply(x, w, y, "tanh"), (x, w))
    assert any("aten.mm" in name for name in seen) and any("aten.where" in name for name in seen)
    assert not any("scatter_add" in name or "index_put" in name for name in seen)


class Largest(TorchDispatchMode):
    """The most numbers that one new tensor has held, and the most that were alive together."""

    def __init__(self):
        super().__init__()
        self.largest, self.alive, self.most = 0, 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(x, torch.Tensor) and not x._is_view():
                self.note(x)
        return out

    def note(self, x):
        self.largest = max(self.largest, x.numel())
        if not hasattr(x, "_noted"):
            x._noted = weakref.finalize(x, self.gone, x.numel())
            self.alive += x.numel()
            self.most = max(self.most, self.alive)

    def gone(self, numbers):
        self.alive -= numbers


def test_all_scores_are_never_held_at_once(monkeypatch):
    """Forward and backward: beside weights and their gradients some rows' scores, a few times."""
    monkeypatch.setattr(loss, "ROWS", 32)
    x, w, y = draw(640, 8, 1000)
    with Largest() as ours:
        torch.autograd.grad(HeadLoss.apply(x, w, y, "tanh"), (x, w))
    with Largest() as plain:
        scores = PLAIN["tanh"](x @ w.T)
        torch.autograd.grad(F.cross_entropy(scores, y, ignore_index=-1), (x, w))
    assert ours.largest == 32 * 1000, "the scores of one part"
    assert plain.largest == 640 * 1000 <= plain.most / 2
    assert ours.most < 4 * 32 * 1000 + 3 * w.numel() + 2 * x.numel(), ours.most


def test_targets_that_do_not_count_send_nothing_back():
    x, w, y = draw(6, 12, 50)
    got = HeadLoss.apply(x, w, torch.full_like(y, -1), "tanh")
    assert got == 0 and all((g == 0).all() for g in torch.autograd.grad(got, (x, w)))


def test_pytorchs_own_mark_for_ignored_targets_is_ignored_too():
    model, ids = build("standard", "nano", vocab=97), torch.arange(8).view(1, 8)
    targets = torch.tensor([[5, -1, 7, -100, 9, 3, -100, 2]])
    trained = model.loss(ids, targets)
    with torch.no_grad():
        torch.testing.assert_close(model.loss(ids, targets), trained)


@pytest.mark.parametrize("style", ("nanochat", "modded", "gpt2"))
def test_what_is_trained_is_the_cross_entropy_of_the_logits(style):
    model = build("standard", "nano", style=style, vocab=97)
    with torch.no_grad():
        model.head.weight.normal_(
            std=2.0, generator=torch.Generator().manual_seed(1)
        )  # far into the caps
    ids, y = (
        torch.randint(97, (2, 20), generator=torch.Generator().manual_seed(s)) for s in (2, 3)
    )
    trained, plain = model.loss(ids, y), F.cross_entropy(model(ids).flatten(0, 1), y.flatten())
    torch.testing.assert_close(trained, plain, rtol=1e-5, atol=1e-5)
    weights = (model.embed.weight, model.head.weight)
    for mine, theirs in zip(
        torch.autograd.grad(trained, weights), torch.autograd.grad(plain, weights)
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_many_parts_lose_no_digits_in_bf16(monkeypatch):
    x, w, y = draw(512, 32, 100)
    low = x.detach().bfloat16()
    (right,) = torch.autograd.grad(HeadLoss.apply(low.float(), w, y, "tanh"), w)
    off = {}
    for rows in (512, 2):
        monkeypatch.setattr(loss, "ROWS", rows)
        (g,) = torch.autograd.grad(HeadLoss.apply(low, w, y, "tanh"), w)
        off[rows] = (g - right).norm().item()
    assert off[2] < 1.3 * off[512]


@pytest.mark.parametrize("on_gpu, parts", ((False, 33), (True, 3)))
def test_a_gpu_takes_few_parts_because_each_is_launched_and_compiled(on_gpu, parts, monkeypatch):
    """16,500 positions: 33 parts of 512, or 3 of 8,192. A tensor that only says where it lies."""

    class Placed(torch.Tensor):
        is_cuda = on_gpu

    seen = []
    cap = lambda z: seen.append(len(z)) or (z, None)
    monkeypatch.setitem(loss.CAPS, None, cap)
    x, w = torch.zeros(16500, 4).as_subclass(Placed), torch.zeros(5, 4)
    HeadLoss.apply(x, w, torch.zeros(16500, dtype=torch.long), None)
    assert len(seen) == parts and sum(seen) == 16500
