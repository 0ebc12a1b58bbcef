"""Sampling and decoding."""

import pytest
import torch

from minimal.generate import SCORED, Writer, generate, main, pick
from minimal.train import Trainer
from minimal.training.run import Run
from minimal.variants import build

IDS = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(1))


def awake(plan="bov", **more):
    model = build(plan, "nano", **(dict(layers=6, width=48, heads=2, vocab=97, context=64) | more))
    with torch.no_grad():
        for p in model.parameters():
            if p.abs().sum() == 0:
                p.normal_(0, 0.2, generator=torch.Generator().manual_seed(p.numel()))
    return model


def test_top_k_of_one_and_temperature_zero_are_argmax():
    z = torch.randn(5, 97, generator=torch.Generator().manual_seed(0))
    for how in (dict(top_k=1), dict(temperature=0), dict(top_p=1e-9)):
        assert torch.equal(pick(z, **how), z.argmax(-1, keepdim=True))


def test_top_k_and_top_p_keep_what_they_promise():
    z = torch.tensor([[3.0, 2.0, 1.0, 0.0, -9.0]])
    drawn = lambda **how: {
        pick(z, generator=torch.Generator().manual_seed(s), **how).item() for s in range(300)
    }
    assert drawn(top_k=2) == {0, 1}
    assert drawn(top_p=0.7) == {0, 1}, (
        ".64 alone is not enough, so the token that crosses .7 still counts"
    )
    assert drawn() >= {0, 1, 2, 3}


def test_greedy_decoding_equals_greedy_by_whole_passes():
    model = awake(windows=(5, 0, 9, 5, 9, 0))
    ids = IDS
    with torch.no_grad():
        for _ in range(20):
            ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(generate(model, IDS, 20, top_k=1), ids)


def test_a_seed_decides_the_text():
    model = awake()
    assert torch.equal(generate(model, IDS, 12, seed=3), generate(model, IDS, 12, seed=3))
    assert not torch.equal(generate(model, IDS, 12, seed=3), generate(model, IDS, 12, seed=4))


def test_a_bank_of_values_model_keeps_ids_instead_of_values():
    model, cache = awake("bov"), None
    cache = model.cache()
    generate(model, IDS, 10, cache=cache)
    values = {name for name in cache.kept if name[0] == "v"}
    assert (
        values == {("v", 0), ("v", 1), ("v", 2), ("v", 3)}
        and cache.kept["ids"].dtype == torch.int32
    )


def test_rings_bound_the_cache_whatever_the_length():
    model = awake("standard", windows=(8, 8, 8, 8, 8, 8))
    sizes = []
    for n in (20, 40):
        cache = model.cache(rings=True)
        generate(model, IDS, n, cache=cache)
        sizes.append(cache.bytes())
    assert sizes[0] == sizes[1] == 2 * 6 * 2 * 8 * 48 * 4


@torch.inference_mode()
def test_of_a_long_text_a_few_rows_are_scored_and_the_last_is_the_same():
    model, shapes, scores = awake(), [], []
    ids = torch.randint(97, (2, 60), generator=torch.Generator().manual_seed(3))
    right = model(ids)[:, -1]
    model.head.register_forward_pre_hook(lambda _, given: shapes.append(tuple(given[0].shape)))
    writer = Writer(model, model.cache(), None, (0, None, None))
    writer.choose = lambda logits, noise: scores.append(logits)
    writer.passes(ids, None)
    assert shapes == [(2, SCORED, 48)]
    torch.testing.assert_close(scores[0], right, atol=1e-6, rtol=0)


@pytest.mark.parametrize("plan", ["resformer", "row13", "modded", "cross-mean"])
def test_a_mixture_reads_new_rows_and_keeps_no_ring_longer(plan):
    windows = (8, 4, 4, 8, 4, 0)
    assert build(plan, "nano", layers=6).reach(windows) == build(
        "standard", "nano", layers=6
    ).reach(windows)


@pytest.mark.parametrize(
    "how", [dict(temperature=-1), dict(top_k=0), dict(top_p=0), dict(top_p=1.5)]
)
def test_wrong_dials_get_one_sentence(how):
    with pytest.raises(ValueError, match="sampling wants"):
        pick(torch.zeros(1, 5), **how)


def test_the_command_continues_a_text_with_a_trained_model(tmp_path, capsys):
    corpus = tmp_path / "text.txt"
    corpus.write_text("the cat sees the moon. a dog hears the rain.\n" * 3000)
    run = Run(
        plan="bov",
        size="smoke",
        vocab=280,
        context=32,
        batch=4,
        steps=4,
        evaluate=4,
        corpus=str(corpus),
        out=str(tmp_path / "run"),
    )
    Trainer(run, quiet=True).fit()
    main([str(tmp_path / "run"), "the cat", "--tokens", "5", "--temperature", "0"])
    said = capsys.readouterr().out
    assert said.startswith("the cat") and len(said) > len("the cat\n")
    main([str(tmp_path / "run"), "the cat " * 20, "--tokens", "5", "--slide"])
    assert capsys.readouterr().out.startswith("the cat the cat")
    for wrong, words in (
        ([str(tmp_path / "none"), "x"], "no checkpoint at"),
        ([str(tmp_path / "run"), "x", "--temperature", "-1"], "--temperature: wanted a number"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert words in f"{ended.value.code} {capsys.readouterr().err}"


def test_nothing_cannot_be_continued():
    with pytest.raises(ValueError, match="at least one token"):
        generate(awake(), IDS[:, :0], 3)


# ---- past the trained context -----------------------------------------------------------------
LONG = torch.randint(97, (2, 40), generator=torch.Generator().manual_seed(2))
MIXED = (5, 0, 9, 5, 9, 0)  # windows; the two full layers slide


def test_without_sliding_a_full_layer_sees_every_token_past_the_context():
    model = awake("bov", windows=MIXED, context=16)
    changed = LONG.clone()
    changed[:, 0] = (changed[:, 0] + 1) % 97
    with torch.no_grad():
        assert not torch.equal(model(LONG)[:, -1], model(changed)[:, -1])


@pytest.mark.parametrize("plan", ["standard", "bov", "svformer", "cross", "dva", "row13"])
def test_sliding_is_a_window_of_the_context_in_the_layers_that_have_none(plan):
    model = awake(plan, windows=MIXED, context=16)
    windows = [5, 16, 9, 5, 9, 16]
    ids = LONG
    with torch.no_grad():
        for _ in range(20):
            new = model(ids, windows=windows)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, new], 1)
    for rings in (False, True):
        assert torch.equal(generate(model, LONG, 20, top_k=1, rings=rings, slide=True), ids)
    assert not torch.equal(generate(model, LONG, 20, top_k=1), ids)


def test_who_slides_sees_no_farther_than_the_context_however_wide_a_trained_window_is():
    """A schedule at paper scale ends at 3,456 keys, also where the context is shorter."""
    model = awake("standard", windows="L", context=16)
    wanted = generate(model, LONG, 20, top_k=1, slide=True)
    model.windows = [3456] * len(model.windows)
    assert torch.equal(generate(model, LONG, 20, top_k=1, slide=True), wanted)


def test_sliding_changes_nothing_within_the_context_and_bounds_the_cache_beyond():
    model = awake("standard", windows="L", context=16)
    plain, slid = (generate(model, IDS, 7, top_k=1, slide=slide) for slide in (False, True))
    assert torch.equal(plain, slid)
    sizes = []
    for n in (30, 60):
        cache = model.cache(rings=True)
        generate(model, IDS, n, cache=cache, slide=True)
        sizes.append(cache.bytes())
    assert sizes[0] == sizes[1] == 2 * 6 * 2 * 16 * 48 * 4


def test_no_step_copies_what_the_cache_keeps(monkeypatch):
    """Rows stay where they were laid out, whatever is appended behind them."""
    model = build("bov", "smoke").eval()
    ids = torch.randint(model.config.vocab, (1, 5))
    places = []
    made = model.cache

    def watched(*how, **more):
        cache = made(*how, **more)
        bring = cache.bring

        def noted(name, *rows):
            visible = bring(name, *rows)
            places.append((name, cache.coming[name][0].data_ptr()))
            return visible

        cache.bring = noted
        return cache

    monkeypatch.setattr(model, "cache", watched)
    generate(model, ids, 12)
    names = {name for name, _ in places}
    assert len(names) >= 3 and len(places) == 12 * len(names)
    assert len(set(places)) == len(names), "every name keeps its place"
