"""Is a value replaced by the mean of its token, and by nothing else?"""

import pytest
import torch

from evidence.measured import mean_values
from minimal.analysis import observe
from minimal.model.config import Config
from minimal.variants import build

VOCAB = 12


@pytest.fixture
def net():
    """An untrained standard whose layers write into the stream."""
    made = build("standard", Config(3, 32, 2, 16, VOCAB, windows="L"), 0)
    for block in made.blocks:
        block.attention.out.weight.data.normal_(std=0.5)
    return made.eval()


def some(count, seed):
    return torch.randint(VOCAB - 1, (count, 16), generator=torch.Generator().manual_seed(seed))


def test_means_are_those_of_brute_force(net):
    batches = [some(4, 1), some(3, 2)]
    by_token, for_all = mean_values.mean_values(net, batches)
    at, token, found = 2, 5, []
    for ids in batches:
        found.append((ids, observe(net, ids).raw[at]))
    rows = torch.cat([values[ids == token] for ids, values in found])
    assert torch.allclose(by_token[at, token], rows.mean(0), atol=1e-5)
    everywhere = torch.cat([values.flatten(0, 1) for _, values in found]).mean(0)
    assert torch.allclose(for_all[at, token], everywhere, atol=1e-5)
    assert torch.allclose(by_token[at, VOCAB - 1], everywhere, atol=1e-5)  # in no row


def test_the_first_layer_loses_nothing_and_the_others_do(net):
    training, held = [some(64, 1)], [(some(8, 2), some(8, 3))]
    by_token, _ = mean_values.mean_values(net, training)
    plain = mean_values.batch_losses(net, held)
    first = mean_values.batch_losses(mean_values.with_means(net, {0: by_token[0]}), held)
    third = mean_values.batch_losses(mean_values.with_means(net, {2: by_token[2]}), held)
    assert first == plain != third
    assert mean_values.batch_losses(net, held) == plain  # the model itself is as it was


def test_a_replaced_value_knows_the_token_alone(net):
    by_token, _ = mean_values.mean_values(net, [some(8, 1)])
    replaced = mean_values.with_means(net, dict(enumerate(by_token)))
    ids = some(2, 4)
    tape = observe(replaced, ids)
    for at in range(3):
        assert torch.equal(tape.values[at].dense(), by_token[at][ids])


def test_the_models_that_are_measured_are_those_of_the_dose(monkeypatch):
    asked = []

    def cached(run, quiet):
        asked.append(run)
        raise KeyError("trained elsewhere")

    monkeypatch.setattr(mean_values, "cached", cached)
    for text in mean_values.TEXTS:
        with pytest.raises(KeyError):
            mean_values.measured_model(text, 1)
    assert [(run.plan, run.seed, run.recipe, run.rows) for run in asked] == 2 * [
        ("standard", 1, "course", 4096)
    ]
    assert [run.corpus for run in asked] == ["stdlib", "war-and-peace"]
