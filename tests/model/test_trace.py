"""Is a step that was watched right for all that follow it, and is one that is not refused?"""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from minimal.generate import Writer, generate
from minimal.model import cache as caches
from minimal.model import still
from minimal.model.plan import Plan, place
from minimal.model.trace import StepTrace
from minimal.model.values import Own
from tests.model.test_cut_off import awake
from tests.model.test_plans import EVERY_QUICKLY

IDS = torch.randint(97, (3, 9), generator=torch.Generator().manual_seed(1))


def by_passes(model, ids, tokens, **how):
    """What generate writes where every token is a pass through the model."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(Writer, "chosen", lambda writer, compiled: writer.passes)
        return generate(model, ids, tokens, **how)


@pytest.fixture
def taken(monkeypatch):
    """How every plain step was taken: "watching", "asked", or "step", the function made of it."""
    names, call = [], still.PlainStep.__call__

    def noted(self, *given):
        names.append(self.take.__name__)
        return call(self, *given)

    monkeypatch.setattr(still.PlainStep, "__call__", noted)
    return names


@EVERY_QUICKLY
def test_every_plan_writes_the_text_of_its_passes(plan, taken, monkeypatch):
    """Rings that are not full yet when the steps are watched and then turn over at every other
    token, layers that reach back differently, smear."""
    monkeypatch.setattr(caches, "SLACK", 3)
    model = awake(plan, smear=True)
    how = dict(seed=3, top_k=40)
    two = IDS[:, :2]
    assert torch.equal(generate(model, two, 14, **how), by_passes(model, two, 14, **how))
    assert taken == ["watching"] * 2 + ["step"] * 11


@pytest.mark.parametrize(
    "how",
    [dict(temperature=0), dict(top_p=0.8), dict(rings=False), dict(slide=True), dict(grows=True)],
    ids=str,
)
@pytest.mark.parametrize("texts", (1, 3))
@pytest.mark.parametrize("plan", ("bov", "ngram", "cross", "skipv1", "mla"))
def test_so_it_does_at_every_dial_and_over_every_cache(plan, texts, how, taken):
    model = awake(plan, windows=(5, 3, 0, 12), context=16)
    grows, said = how.pop("grows", False), []
    for write in (generate, by_passes):
        more = dict(cache=model.cache(rings=True)) if grows else {}
        said.append(write(model, IDS[:texts], 30, **how, **more))
    how |= dict(grows=True) if grows else {}
    assert torch.equal(*said) and taken[2:] == ["step"] * 27


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_weights_are_cast_once(dtype, taken):
    """Master weights in fp32 under activations of bf16: their copies are constants of the step."""
    model = awake("bov").to(compute=dtype)
    assert torch.equal(generate(model, IDS, 9, top_k=1), by_passes(model, IDS, 9, top_k=1))
    with torch.inference_mode():
        cache = model.cache(20)
        model(IDS, cache=cache)
        step = still.PlainStep(model, cache, None, lambda logits, noise: logits.argmax(-1, True))
        one = IDS[:, :1]
        for _ in range(3):
            one = step(one, None)
    kinds = {c.dtype for c in step.take.__globals__.values() if isinstance(c, torch.Tensor)}
    assert step.take.__name__ == "step" and (dtype == torch.float32 or torch.bfloat16 in kinds)


# ---- what must not be written down ---------------------------------------------------------------
def model_of(rows, **more):
    """A model whose layers make their values by rows(source, v, tape), v being the usual ones."""

    class Mine(Own):
        def rows(self, h, at, tape):
            return rows(self, super().rows(h, at, tape), tape)

    return awake(Plan(place(value=partial(Mine, **more))), windows="L")


def by_length(source, v, tape):
    """A number that differs with the place in the text, and that no tensor carries."""
    return v * (1 + tape.start)


def by_row_count(source, v, tape):
    return v / tape.token_ids().shape[1]


def by_a_look(source, v, tape):
    return v if v.sum() > 0 else -v


def by_a_number(source, v, tape):
    return v * v.sum().item()


def by_what_it_keeps(source, v, tape):
    """A counter of its own, written into at every step."""
    if not hasattr(source, "count"):
        source.count = torch.zeros(())
    source.count.add_(1)
    return v * source.count


def by_what_it_collects(source, v, tape):
    if not hasattr(source, "sums"):
        source.sums = torch.zeros(v.shape[0])
    source.sums[:] = v.sum((1, 2, 3))
    return v + source.sums[:, None, None, None]


def by_numpy(source, v, tape):
    return torch.from_numpy(v.numpy() * 2)


NOT_PLAIN = (
    by_length, by_row_count, by_a_look, by_a_number, by_numpy, by_what_it_keeps,
    by_what_it_collects,
)  # fmt: skip


@pytest.mark.parametrize("rows", NOT_PLAIN)
def test_what_a_function_of_arrays_cannot_say_is_asked_at_every_step(rows, taken):
    said = [write(model_of(rows), IDS, 12, top_k=1) for write in (generate, by_passes)]
    assert torch.equal(*said)
    assert taken == ["watching"] * 2 + ["asked"] * 9


def as_usual(source, v, tape):
    """Attributes, pieces, products with weights, and a place to write that is new at every step."""
    w = source.project.weight.T.contiguous()[:16, :16]  # of weights alone
    out = torch.empty_like(v)
    out[:] = v.mT.mT
    first, second = out.flatten(2).chunk(2, dim=-1)
    return torch.cat([second, first.relu()], -1).matmul(w).view(v.shape).add_(v)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return 2 * v


def by_a_function_of_its_own(source, v, tape):
    return Doubled.apply(v)


@pytest.mark.parametrize("rows", (as_usual, by_a_function_of_its_own))
def test_what_it_can_say_is_written_down(rows, taken):
    said = [write(model_of(rows), IDS, 12, top_k=1) for write in (generate, by_passes)]
    assert torch.equal(*said)
    assert taken[2:] == ["step"] * 9


def test_who_hooks_in_is_called_at_every_step(taken):
    model, calls = awake("bov"), []
    model.blocks[1].register_forward_hook(lambda block, given, out: calls.append(1) or 0 * out)
    assert torch.equal(generate(model, IDS, 12, top_k=1), by_passes(model, IDS, 12, top_k=1))
    assert taken == ["asked"] * 11 and len(calls) == 24


def test_the_function_holds_no_more_than_it_needs():
    """What was read for the last time is let go; what comes of constants is a constant."""
    x, w = torch.randn(4), torch.randn(4)
    with StepTrace(x=x) as trace:
        y = F.relu(x * w.exp().neg())
        z = y + y.sum()
    step = trace.function(z)
    assert torch.equal(step(x), z) and torch.equal(step(2 * x), 2 * z)
    lines = [line for line, *_ in zip(trace.lines)]
    assert len(lines) == 4, "the product, relu, the sum, and what is added"
    assert step.__code__.co_nlocals <= 5 and not trace.refused


def test_an_error_ends_the_watching():
    with pytest.raises(RuntimeError), StepTrace() as trace:
        torch.zeros(2) + torch.zeros(3)
    assert StepTrace.now is None and trace.lines == []
