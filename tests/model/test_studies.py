"""What is read off a trained model, against models whose answers are known."""

import pytest
import torch

from evidence.lab import studies
from minimal import analysis
from minimal.train import Trainer
from minimal.training.run import Run
from tests.model.test_analysis import IDS, awake


def test_the_cosine_study_finds_equation_3_exact_where_layers_agree():
    """Let layer n's keys equal layer m's: then Eq 2 and Eq 3 are the same and Eq 6 is not."""
    model = awake("share-k")
    study = studies.across_study(model, IDS)
    assert [r["layer"] for r in study] == [1, 2, 3]
    assert all(r["eq3"] == pytest.approx(1, abs=1e-4) and r["eq6"] < 0.999 for r in study)
    other = studies.across_study(awake(), IDS)
    assert all(r["eq3"] < 0.9999 for r in other)


def test_what_a_mixin_did_is_read_off_its_paths():
    steps = 40
    flat, up = [0.5] * steps, [i / steps for i in range(steps)]
    tent = [min(i, steps - i) / steps for i in range(steps)]
    down = [
        0.5 - i / steps for i in range(steps)
    ]  # positive at a tenth of the run, negative at its end
    paths = {f"streams.1.residual.{i}": [1.0] * steps for i in range(4)}
    paths |= {f"streams.1.x0.{i}": path for i, path in enumerate((flat, up, tent, down))}
    result = dict(
        coefficients=dict(names=list(paths), steps=[list(row) for row in zip(*paths.values())]),
        valid=[dict(loss=x) for x in (4.0, 3.5, 3.7, 3.4)],
    )
    told = studies.mixin_study(result)
    assert told["x0_share"] == pytest.approx([1 / 3, 39 / 79, 1 / 41, 19 / 59], abs=1e-3)
    assert told["fell"] == 2 and told["crossed"] == [3] and told["rise"] == pytest.approx(0.2)
    assert 0.4 < told["turn"] < 0.6, "at the end, in the middle, at the start"


def test_what_is_left_of_the_token_is_all_of_it_until_the_blocks_write(corpus, tmp_path):
    for name, lr in dict(still=1e-12, moved=None).items():
        run = Run(size="smoke", corpus=corpus, vocab=280, steps=20, lr=lr, out=str(tmp_path / name))
        left = studies.token_left(Trainer(run, quiet=True).fit() | dict(folder=run.out))[
            "token_left"
        ]
        assert len(left) == 3 and left[0] == 1
        assert left[2] == 1 if name == "still" else left[2] < 0.99


def test_a_layers_share_closes_with_its_gain_and_scales_with_its_table(
    corpus, tmp_path, monkeypatch
):
    run = Run("bov", size="smoke", corpus=corpus, vocab=280, steps=3, out=str(tmp_path / "bov"))
    result = Trainer(run, quiet=True).fit() | dict(folder=run.out)
    model, ids = studies.trained(result)
    assert len(model.coefficients()) == 1, "bov at this size has one layer with a gain"

    def shares(change):
        copy, _ = studies.trained(result)
        with torch.no_grad():
            change(copy)
        with monkeypatch.context() as patch:
            patch.setattr(studies, "trained", lambda result: (copy, ids))
            return studies.layer_shares(result)

    def scaled(factor):
        return shares(lambda model: [x.mul_(factor) for x in model.coefficients().values()])

    plain = scaled(1.0)
    # the last layer reads the table; the first has values of its own
    last = len(model.blocks) - 1
    assert 0 < plain["share"][last] < 1 and set(plain["share"]) == set(range(last + 1))
    # a gain of zero closes the layer that has it, and no layer below it
    closed = scaled(0.0)
    assert closed["value"][last] == closed["share"][last] == 0
    assert closed["share"][0] == plain["share"][0]
    # twice the gain: twice the values, twice the branch beside the same stream
    double = scaled(2.0)
    assert double["value"][last] == pytest.approx(2 * plain["value"][last], rel=1e-2)
    odds = [found["share"][last] / (1 - found["share"][last]) for found in (plain, double)]
    assert odds[1] == pytest.approx(2 * odds[0], rel=1e-2)
    # the stream is the one that attention's output is added to, not the one behind the block
    loud = shares(loud_outputs)
    with torch.no_grad():
        loud_outputs(model)
        tape = analysis.observe(model, ids)
        for at, block in enumerate(model.blocks):
            x = tape.streams[at]
            added = block.attention(block.first(x), at, tape)
            right = added.norm() / (added.norm() + x.norm())
            assert loud["share"][at] == pytest.approx(right.item(), abs=1e-3), at
            assert loud["share"][at] > 0.3, "large enough to tell the two streams apart"


def loud_outputs(model):
    """W_O as a trained model has it; after three steps it is almost zero."""
    chance = torch.Generator().manual_seed(0)
    for block in model.blocks:
        block.attention.out.weight.normal_(generator=chance)
