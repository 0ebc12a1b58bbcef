"""Does `gap` see a difference that outputs alone would hide?"""

import torch

from course.one_line import by_our_names, started
from course.proofs import (
    awake,
    gap,
    gap_by,
    kept_bytes,
    logits_apart,
    models_apart,
    pair_values,
    wake,
)
from minimal.analysis import observe
from minimal.gpt import GPT, Layer
from minimal.model.config import SIZES
from minimal.variants import build

x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def test_equal_functions_are_equal_in_outputs_and_gradients():
    assert gap(lambda x: x * x, lambda x: x.square(), x) < 1e-6


def test_a_difference_in_outputs_or_in_gradients_alone_is_seen():
    assert gap(lambda x: x, lambda x: x + 1, x) > 0.5
    assert gap(lambda x: x, lambda x: 2 * x - x.detach(), x) > 0.5  # outputs are equal


def test_every_input_counts():
    y = x.flip(0)
    assert gap(lambda x, y: x + y, lambda x, y: x + 2 * y - y.detach(), x, y) > 0.5


# ---- of whole models -----------------------------------------------------------------------------

NANO = SIZES["nano"].but(vocab=64, context=16)
ids = torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(0))  # (B, T)
targets = ids.roll(-1, 1)


def test_waking_fills_what_is_zero_and_nothing_else_the_same_for_all_plans():
    model, other = build("standard", NANO), wake(build("resformer", NANO))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    assert wake(model) is model and all(p.any() for p in model.parameters())
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) == bool(before[name].any()), name
    first = "blocks.0.attention.out.weight"
    assert not before[first].any()
    assert torch.equal(model.get_parameter(first), other.get_parameter(first))


def test_equal_models_are_equal_and_another_start_is_seen():
    one, same, other = (wake(build("standard", NANO, seed=seed), seed) for seed in (0, 0, 1))
    assert logits_apart(one, same, ids) == 0 < 0.1 < logits_apart(one, other, ids)
    assert models_apart(one, same, ids, targets) == (0, 0)
    assert min(models_apart(one, other, ids, targets)) > 0.01


def test_a_fresh_model_hides_in_its_logits_what_its_gradients_tell():
    mine, theirs = started(GPT(NANO)), build("standard", NANO)
    for layer in mine.layers:
        layer.attend = lambda q, k, v, scale: Layer.attend(q, k, v, causal=False, scale=scale)
    logits, gradients = models_apart(theirs, mine, ids, targets, by_our_names)
    assert logits < 1e-5 < 1e-4 < gradients


def test_tensors_that_both_functions_use_count_too():
    w = torch.nn.Parameter(x.clone())
    assert gap_by(lambda: 2 * w, lambda: w + w, [w]) < 1e-6
    assert gap_by(lambda: w, lambda: 2 * w - w.detach(), [w]) > 0.5


def test_an_awake_model_is_silent_nowhere():
    asleep, woken = build("resformer-learned", "smoke", seed=1), awake("resformer-learned", "smoke")
    assert any(not p.any() for p in asleep.parameters())
    assert all(p.any() and p.dtype == torch.float64 for p in woken.parameters())
    shares = [p.item() for name, p in woken.named_parameters() if name.endswith((".a", "a.value"))]
    assert shares and all(abs(share - 0.5) > 1e-6 for share in shares)
    again = awake("resformer-learned", "smoke")
    assert all(torch.equal(a, b) for a, b in zip(woken.parameters(), again.parameters()))


def test_what_the_backward_pass_needs_is_counted_once():
    assert kept_bytes(lambda x: x + 1, x) == 0
    assert kept_bytes(lambda x: x * x, x) == 0  # an input
    assert kept_bytes(lambda x: x.exp(), x) == 4 * x.numel()
    assert kept_bytes(lambda x: (y := x.exp()) * y, x) == 4 * x.numel()
    assert kept_bytes(lambda x: x.exp().exp(), x) == 2 * 4 * x.numel()


def test_values_by_pairs_are_what_a_model_with_dynamic_values_reads():
    model = awake("dva", NANO).float().eval()
    one = ids[:1, :12]
    for at in range(len(model.blocks)):
        a, pairs = pair_values(model, one, at)
        heard = (a[:, :, None] * pairs).sum(1)
        with torch.no_grad():
            read = observe(model, one).out[at].flatten(2)[0]
        assert (heard - read).abs().max() < 1e-4 < pairs.std()
