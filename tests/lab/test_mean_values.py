"""Is a value replaced by the mean of its token, and by nothing else?"""

import pytest
import torch

from course import records
from evidence.research import mean_values
from minimal.analysis import observe
from minimal.data import results
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


# ---- the page ------------------------------------------------------------------------------------


@pytest.fixture
def record(tmp_path, monkeypatch):
    """record(cost) writes both texts: a layer costs a tenth of it, the last k so many tenths."""
    head = records.read("mean_values_code")
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)

    def held(more, seed):
        return [round(3 + at / 50 + (1 + seed / 50) * more, 4) for at in range(16)]

    def written(cost):
        rows = []
        for seed in mean_values.SEEDS:
            found = {"nothing": held(0, seed), "all, last 12": held(8 * cost, seed)}
            for at in range(1, 13):
                found[f"token, layer {at}"] = held(0 if at == 1 else cost / 10, seed)
                found[f"all, layer {at}"] = held(cost / 2, seed)
            found |= {f"token, last {k}": held(k * cost / 12, seed) for k in (2, 4, 8, 12)}
            rows.append(dict(plan="standard", size="tiny", seed=seed, steps=500, held_out=found))
        for text in mean_values.TEXTS:
            results.write(mean_values.record_of(text), head | dict(rows=rows))

    return written


def test_what_is_lost_is_below_zero_and_told_by_layers(record):
    record(0.12)
    assert mean_values.both_recorded()
    lines = [line.strip("| ").split(" | ") for line in mean_values.losses_by_layers().splitlines()]
    told = {line[0]: line[1] for line in lines[2:]}
    assert told["by the token's mean: all twelve layers"].startswith("**−0.122**")
    assert told["by the token's mean: the last 4 layers"].startswith("**−0.041**")
    assert told["by the token's mean: the layer that loses most"].startswith("layer 2: **−0.012**")
    assert mean_values.sentence() == (
        "So a trained `standard` uses the context in its values, on both texts"
    )
    came = dict(line.strip("| ").split(" | ") for line in mean_values.foretold().splitlines())
    assert came["layer 1 costs nothing"] == "so" == came["all twelve cost .1 or more"]
    assert came["the last four together cost more than the sum of the four"] == "not so"
    alone = came["every other layer alone costs less than .05"]
    assert alone == "11 of 11 on code and 11 of 11 on novel"


def test_no_loss_is_no_use_of_the_context(record):
    record(0.001)
    assert mean_values.sentence().startswith("That it uses the context in its values is not shown")


def test_nothing_is_told_before_all_seeds_are_there(record):
    record(0.1)
    path = mean_values.record_of("code")
    content = results.read(path)
    results.write(path, content | dict(rows=content["rows"][:2]))
    assert mean_values.recorded_rows("code") == [] and not mean_values.both_recorded()
