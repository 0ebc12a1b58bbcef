"""Does the step whose shapes stay the same write the text that passes write, token by token?"""

from itertools import accumulate, count

import pytest
import torch

import minimal.generate as generating
from minimal.generate import Writer, generate
from minimal.kernels.recorded import WARM
from minimal.model import cache as caches
from minimal.model import still
from tests.model.test_cut_off import CutOff, awake, cut_off
from tests.model.test_plans import EVERY_QUICKLY, fewest
from tests.model.test_trace import by_passes

IDS = torch.randint(97, (3, 9), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def as_it_is(monkeypatch):
    """Buckets of 8 rows and more, rings that turn over often, and no compiler: the step itself."""
    monkeypatch.setattr(caches, "SLACK", 3)
    monkeypatch.setattr(still, "SHORTEST", 8)
    monkeypatch.setattr(still, "Made", lambda: lambda work, *tensors: work())


@pytest.fixture
def long_texts(monkeypatch):
    """As if they were long: a table's rows are named, not stored."""
    monkeypatch.setattr(generating, "worth_storing", lambda *sizes: False)


@EVERY_QUICKLY
def test_every_plan_writes_the_same_text(plan, as_it_is, long_texts):
    model = awake(plan, smear=True)
    how = dict(seed=3, top_k=40)
    passes = by_passes(model, IDS, 12, **how)
    assert torch.equal(generate(model, IDS, 12, compiled=True, **how), passes)


@pytest.mark.parametrize(
    "how",
    [
        dict(temperature=0),
        dict(temperature=0.7, seed=5),
        dict(top_p=0.8),
        dict(rings=False),
        dict(slide=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("texts", (1, 3))
def test_so_it_does_at_every_dial(texts, how, as_it_is):
    model = awake("bov", windows=(5, 3, 0, 0), context=16)
    passes = by_passes(model, IDS[:texts], 40, **how)  # buckets 16, 32 and 49
    assert torch.equal(generate(model, IDS[:texts], 40, compiled=True, **how), passes)


@pytest.mark.parametrize("plan", ("bov", "bov-every", "ngram"))
@pytest.mark.parametrize("compiled", (False, True))
def test_whether_rows_of_a_table_are_stored_changes_no_token(plan, compiled, as_it_is, monkeypatch):
    model, said, kept = awake(plan, windows=(5, 3, 0, 0)), [], []
    for stored in (True, False):
        monkeypatch.setattr(generating, "worth_storing", lambda *sizes, stored=stored: stored)
        cache = model.cache(64, rings=True, stored=generating.stores(model, 3, 64))
        said.append(generate(model, IDS, 18, temperature=0, cache=cache, compiled=compiled))
        kept.append(cache.bytes())
    assert torch.equal(*said) and kept[0] > kept[1]


def test_a_short_text_stores_them_and_a_long_one_names_them():
    model = awake("bov")
    assert generating.stores(model, 1, 1024) and not generating.stores(model, 1, 2**20)
    assert not generating.stores(model, 2**10, 2**10)


def test_rings_alone_outlast_the_capacity(as_it_is):
    model = awake("standard", windows=(5, 3, 6, 4))
    texts = [
        generate(model, IDS, 40, cache=model.cache(16, rings=True), compiled=compiled)
        for compiled in (False, True)
    ]
    assert torch.equal(*texts)


def test_where_they_have_no_place_to_turn_over_in_it_is_told_so(as_it_is):
    model = awake("standard", windows=(5, 3, 6, 4))
    with pytest.raises(ValueError, match="room for 10 tokens, wanted 11"):
        generate(model, IDS, 40, cache=model.cache(10, rings=True), compiled=True)
    cache = model.cache(10, rings=True)
    generate(model, IDS, 5, cache=cache)  # passes turn them over, each by itself
    with pytest.raises(ValueError, match="room for 10 tokens, wanted"):
        generate(model, IDS[:, :1], 9, cache=cache, compiled=True)


def test_a_full_cache_is_told_so_and_keeps_what_it_has(as_it_is):
    model = awake("bov")
    cache = model.cache(capacity=14, rings=True)
    with pytest.raises(ValueError, match="room for 14 tokens, wanted 15"):
        generate(model, IDS, 9, cache=cache, compiled=True)
    assert cache.length == 14


def test_positions_that_are_learned_end_with_the_context(as_it_is):
    model = awake("gpt2", context=12)
    with pytest.raises(ValueError, match="wanted position 13 of a model with 12 learned positions"):
        generate(model, IDS, 9, compiled=True)


def test_a_cache_that_grows_is_refused(as_it_is):
    model = awake("bov")
    with pytest.raises(ValueError, match="compiled: wanted a cache that is laid out, got one that"):
        generate(model, IDS, 9, cache=model.cache(), compiled=True)


@pytest.mark.parametrize("layer", range(4))
@torch.inference_mode()
def test_a_step_that_is_cut_off_is_taken_again(layer, as_it_is):
    """At every place of a ring, whoever goes on with it."""
    model = awake("resformer", smear=True)
    right = by_passes(model, IDS, 20, temperature=0)
    cache, said = model.cache(40, rings=True), [IDS]
    for n in range(20):
        if n:
            handle = model.blocks[layer].register_forward_hook(cut_off)
            step = still.StillStep(model, cache, None, lambda logits, noise: logits)
            with pytest.raises(CutOff):
                step(said[-1], None)
            handle.remove()
        # the next token by a step and by a pass in turn
        if n and n % 2:
            new = still.StillStep(model, cache, None, lambda z, noise: z.argmax(-1, True))(
                said[-1], None
            )
        else:
            new = model(said[-1], cache=cache)[:, -1].argmax(-1, True)
        said.append(new)
    assert torch.equal(torch.cat(said, 1), right)


def test_unasked_a_gpu_keeps_the_way_that_was_faster():
    now, taken = [0.0], []

    def way(name, seconds):
        def step(ids, noise):
            taken.append(name)
            now[0] += seconds
            return ids

        return step

    for first, second in ((1.0, 2.0), (2.0, 1.0)):
        tried = still.Tried(way("still", first), way("passes", second), clock=lambda: now[0])
        for _ in range(2 * still.TRIES + 3):
            tried(IDS, None)
    one, other = taken[: len(taken) // 2], taken[len(taken) // 2 :]
    assert one == ["still"] * still.TRIES + ["passes"] * still.TRIES + ["still"] * 3
    assert other[-3:] == ["passes"] * 3


class Replayed:
    """What a CUDA graph does with addresses, on a CPU: after the warm calls of a bucket, all of its
    calls read and write the buffers of the first one."""

    def __init__(self, step, device):
        self.step, self.cache = step, step.__self__.stand.cache
        self.calls, self.buffers = {}, {}

    def __call__(self, bucket, *given):
        self.calls[bucket] = self.calls.get(bucket, 0) + 1
        if self.calls[bucket] <= WARM:
            return self.step(bucket, *given)
        now = self.cache.kept
        self.cache.kept = self.buffers.setdefault(bucket, now)
        chosen = self.step(bucket, *given)
        self.cache.kept = now
        return chosen


def test_a_ring_that_passes_turn_over_is_recorded_anew(as_it_is, monkeypatch):
    """A GPU tries steps, then passes; a ring that is full in these gets a new buffer."""
    monkeypatch.setattr(still, "Recorded", Replayed)
    monkeypatch.setattr(still, "on_gpu", lambda device: True)
    model = awake("standard", windows=(5, 3, 0, 7))

    def chosen(writer, compiled):
        step = still.StillStep(model, writer.cache, None, writer.choose)
        longer = accumulate(count())  # each try takes longer than the last: the first way is kept
        return still.Tried(step, writer.passes, clock=longer.__next__)

    for tokens in range(1, 12):
        text = IDS[:, :1].repeat(1, tokens)
        passes = by_passes(model, text, 30, temperature=0)
        with monkeypatch.context() as tried:
            tried.setattr(Writer, "chosen", chosen)
            assert torch.equal(generate(model, text, 30, temperature=0), passes), tokens


def with_few_layers(plan):
    """As few as hold every sort of the plan, with windows; the last one sees all."""
    layers = fewest(plan)
    return awake(plan, layers=layers, windows=(5, 3, 7, 0)[-layers:])


@pytest.mark.slow
@pytest.mark.parametrize("few", (1, 2**19), ids=("by_token", "by_position"))
@pytest.mark.parametrize("plan", ("bov", "cross", "mla", "engram", "dva", "skipv1"))
def test_the_step_is_one_graph(plan, few, as_it_is, monkeypatch):
    """Whatever way the values are read, nothing in it asks for a number."""
    from minimal.kernels import dense, route

    def one_graph():
        def call(work, *tensors):
            torch._dynamo.reset()
            return torch.compile(work, backend="eager", fullgraph=True)()

        return call

    monkeypatch.setattr(route, "FEW_VALUES", few)
    monkeypatch.setattr(dense, "FEW_VALUES", few)
    monkeypatch.setattr(still, "Made", one_graph)
    model = with_few_layers(plan)
    passes = by_passes(model, IDS, 2, temperature=0)  # a prefill and one step
    assert torch.equal(generate(model, IDS, 2, temperature=0, compiled=True), passes)


@pytest.mark.slow
@pytest.mark.parametrize("plan", ("bov", "nanochat"))
def test_the_compilers_step_writes_it_too(plan):
    model = with_few_layers(plan)
    passes = by_passes(model, IDS, 5, seed=3)
    assert torch.equal(generate(model, IDS, 5, seed=3, compiled=True), passes)
