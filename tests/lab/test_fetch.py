"""The text of compute_then_fetch: answers by brute force, and no shallower way to them."""

import pytest
import torch

from evidence.research import fetch

KINDS = pytest.mark.parametrize("kind", fetch.TEXTS)


def some(kind, count=400):
    return fetch.texts(kind, count, torch.Generator().manual_seed(1))


@KINDS
def test_answers_by_brute_force(kind):
    table = fetch.square().tolist()
    for ids, targets in zip(*(part.tolist() for part in some(kind, 50))):
        told = ids[: ids.index(fetch.ASK)]
        known = {}
        for at in range(0, len(told), 3):
            record = told[at : at + 3]
            a, b, key = record if kind == "closed" else record[1:] + record[:1]
            known[key] = b if kind == "raw" else table[a][b]
        asked = [(ids[at], y) for at, y in enumerate(targets) if y >= 0]
        assert len(known) == len(asked) == fetch.RECORDS
        assert asked == [(key, known[key]) for key, _ in asked]


def test_one_symbol_says_nothing_of_the_answer():
    table, all_symbols = fetch.square(), list(range(fetch.SYMBOLS))
    for line in (*table, *table.T):
        assert sorted(line.tolist()) == all_symbols


@KINDS
def test_neither_key_nor_order_says_anything_of_the_answer(kind):
    ids, targets = some(kind, 4000)
    asked = targets >= 0
    for key in range(fetch.SYMBOLS, fetch.ASK):
        found = torch.bincount(targets[asked & (ids == key)], minlength=fetch.SYMBOLS)
        assert found.max() < 1.4 * found.float().mean()
    for at in asked[0].nonzero().flatten():
        found = torch.bincount(targets[:, at], minlength=fetch.SYMBOLS)
        assert found.max() < 1.25 * found.float().mean()


@KINDS
def test_an_earlier_answer_says_nothing_of_the_next(kind):
    _, targets = some(kind, 4000)
    first, second = targets[targets >= 0].view(-1, fetch.RECORDS)[:, :2].T
    together = torch.bincount(first * fetch.SYMBOLS + second, minlength=fetch.SYMBOLS**2)
    assert together.max() < 1.6 * together.float().mean()


def test_values_of_the_token_are_so_and_those_of_the_stream_change_with_another_text():
    ids, _ = some("closed", 2)
    changed = ids.clone()
    changed[:, 0] = (ids[:, 0] + 1) % fetch.SYMBOLS  # another a, before the first key
    for system in fetch.DOORS:
        net = fetch.model(system, 2, 0)
        # fresh output matrices are zero: awake, what a layer hears reaches the stream
        for block in net.blocks:
            block.attention.out.weight.data.normal_()
        tapes = [net.tape(x) for x in (ids, changed)]
        outputs = [net(x, tape=tape) for x, tape in zip((ids, changed), tapes)]
        one, two = (tape.values[1].dense()[:, 2] for tape in tapes)  # of the first key
        of_the_token = system not in ("standard", "last")
        assert torch.equal(one, two) == of_the_token, system
        assert not torch.equal(*(out[:, 2] for out in outputs)), system


def test_the_grid_asks_every_cell_once_and_seed_by_seed():
    cells = list(fetch.cells())
    assert len({str(cell) for cell in cells}) == len(cells) == 3 * 38
    assert [cell["seed"] for cell in cells] == sorted(cell["seed"] for cell in cells)
