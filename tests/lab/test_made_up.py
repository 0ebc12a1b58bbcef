"""The made-up text: answers by brute force, no shallower way to them, and its grids: is every cell
asked once, recorded, and trained as it says?"""

import itertools

import pytest
import torch

from course import records
from evidence.lab.quantities import depths_in_need, exact_of
from evidence.measured import fetch, made_up

TEXTS = dict(still=made_up.STILL, moving=made_up.MOVING)
EVERY_TEXT = pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(kind, text, id=f"{kind}, {name}")
        for kind, (name, text) in itertools.product(made_up.KINDS, TEXTS.items())
    ],
)


def some(kind, text, count=400):
    return made_up.made_texts(kind, count, torch.Generator().manual_seed(1), text)


@EVERY_TEXT
def test_answers_by_brute_force(kind, text):
    table = made_up.square(text).tolist()
    for ids, targets in zip(*(part.tolist() for part in some(kind, text, 50))):
        told = [token for token in ids[: ids.index(text.ask)] if token <= text.ask]
        assert len(told) == 3 * text.records
        known = {}
        for at in range(0, len(told), 3):
            record = told[at : at + 3]
            a, b, key = record if kind == "closed" else record[1:] + record[:1]
            known[key] = b if kind == "raw" else table[a][b]
        asked = [(ids[at], y) for at, y in enumerate(targets) if y >= 0]
        assert len(known) == len(asked) == text.records
        assert asked == [(key, known[key]) for key, _ in asked]


def test_blanks_lie_between_records_and_move_them():
    """Every way to lay three blanks among three records is about as frequent."""
    text = made_up.MOVING
    ids, _ = some("closed", text, 8000)
    blank = ids[:, : text.told] == text.ask + 1
    found = {}
    for row in blank.tolist():
        runs = [(is_blank, len(list(part))) for is_blank, part in itertools.groupby(row)]
        assert all(length % 3 == 0 for is_blank, length in runs if not is_blank)
        found[tuple(row)] = found.get(tuple(row), 0) + 1
    assert len(found) == 20 and sum(blank[0]) == text.blanks
    assert max(found.values()) < 1.3 * min(found.values())


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_one_symbol_says_nothing_of_the_answer(text):
    table = made_up.square(text)
    for line in (*table, *table.T):
        assert sorted(line.tolist()) == list(range(text.symbols))
    assert torch.equal(table, table.T) == text.symmetric


@EVERY_TEXT
def test_neither_key_nor_order_says_anything_of_the_answer(kind, text):
    ids, targets = some(kind, text, 8000)
    asked = targets >= 0
    for key in range(text.symbols, text.ask):
        found = torch.bincount(targets[asked & (ids == key)], minlength=text.symbols)
        assert found.max() < 1.4 * found.float().mean()
    for at in asked[0].nonzero().flatten():
        found = torch.bincount(targets[:, at], minlength=text.symbols)
        assert found.max() < 1.25 * found.float().mean()


@EVERY_TEXT
def test_an_earlier_answer_says_nothing_of_the_next(kind, text):
    _, targets = some(kind, text, 8000)
    first, second = targets[targets >= 0].view(-1, text.records)[:, :2].T
    together = torch.bincount(first * text.symbols + second, minlength=text.symbols**2)
    assert together.max() < 1.6 * together.float().mean()


def test_values_of_the_token_are_so_and_those_of_the_stream_change_with_another_text():
    ids, _ = some("closed", made_up.STILL, 2)
    changed = ids.clone()
    changed[:, 0] = (ids[:, 0] + 1) % made_up.STILL.symbols  # another a, before the first key
    for system in made_up.VALUE_OF:
        net = made_up.model(system, 2, 0)
        # fresh output matrices are zero: awake, what a layer hears reaches the stream
        for block in net.blocks:
            block.attention.out.weight.data.normal_()
        tapes = [net.tape(x) for x in (ids, changed)]
        outputs = [net(x, tape=tape) for x, tape in zip((ids, changed), tapes)]
        one, two = (tape.values[1].dense()[:, 2] for tape in tapes)  # of the first key
        assert torch.equal(one, two) == (system in made_up.OF_THE_TOKEN), system
        assert not torch.equal(*(out[:, 2] for out in outputs)), system


# ---- the grids -----------------------------------------------------------------------------------

EACH = pytest.mark.parametrize("name", fetch.GRIDS)


@EACH
def test_every_cell_is_asked_once_and_seed_by_seed_and_is_recorded(name):
    question, cells, steps = fetch.GRIDS[name]
    cells, recorded = list(cells()), records.read(name)
    assert len({str(cell) for cell in cells}) == len(cells) == len(recorded["rows"])
    assert all(any(fetch.same(row, cell) for row in recorded["rows"]) for cell in cells)
    assert {row["steps"] for row in recorded["rows"]} == {steps} and recorded["what"] == question
    before = cells[:96] if name == "compute_then_fetch" else cells  # the others were asked later
    assert [cell["seed"] for cell in before] == sorted(cell["seed"] for cell in before)


@EACH
def test_a_row_names_its_shape_and_its_file_the_function_of_its_texts(name):
    question, cells, _ = fetch.GRIDS[name]
    for cell in list(cells())[:2]:
        row, head, words = fetch.made(question, "a test", 1, cell)
        assert cell.items() <= row.items() and row["steps"] == 1 and 0 <= row["exact"] <= 1
        assert head["corpus"]["fingerprint"] == records.read(name)["corpus"]["fingerprint"]
        assert f"depth {cell['depth']}" in words


def test_the_command_goes_on_with_the_grid_that_is_named(monkeypatch, capsys):
    filled = []
    monkeypatch.setattr(fetch.ledger, "fill", lambda path, cells, *_: filled.append(path.name))
    fetch.main([])
    fetch.main(["many_answers", "--minutes", "1"])
    assert filled == ["compute_then_fetch.json", "many_answers.json"]
    with pytest.raises(SystemExit):
        fetch.main(["fetch_nothing"])
    assert "invalid choice: 'fetch_nothing'" in capsys.readouterr().err


def test_a_need_shows_where_every_model_of_the_stream_answers_more(monkeypatch):
    shares = {("standard", 2): (0.9, 1.0), ("standard", 3): (1.0, 1.0)}
    shares |= {("x0", 2): (0.5, 0.6), ("x0", 3): (0.8, 0.97)}
    rows = [
        dict(plan=plan, depth=depth, last_mlp=True, seed=seed, exact=share)
        for (plan, depth), some in shares.items()
        for seed, share in enumerate(some)
    ]
    monkeypatch.setattr(records, "read", lambda name: dict(rows=rows))
    assert exact_of("made plan=x0 depth=2".split()) == pytest.approx(0.55)
    assert depths_in_need(["made"]) == 1, "in three layers one model of x0 W_V is as good"
