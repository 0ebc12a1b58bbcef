"""Does the portrait of a model say what the analyses say, in the words that verdicts compare?"""

import math

import pytest
import torch

from course import records
from evidence.measured import portraits
from minimal import analysis
from minimal.training.run import Run
from minimal.variants import build

IDS = torch.randint(512, (3, 24), generator=torch.Generator().manual_seed(0))


def awake(plan, **changes):
    """A small model in which every matrix is at work."""
    model, chance = build(plan, "smoke", **changes), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.2, generator=chance)
    return model.eval()


def test_by_layer_and_in_sum_it_is_what_the_analyses_say():
    model = awake("standard")
    got, tape = portraits.portrait(model, IDS), analysis.observe(model, IDS)
    layers, half = len(model.blocks), len(model.blocks) // 2
    by_layer = ("entropy", "similarity", "largest", "largest_own")
    assert all(len(got[name]) == layers for name in by_layer)
    last = layers - 1
    entropy = analysis.token_entropy(analysis.attention_map(model, tape, last)).item()
    assert got["entropy"][last] == pytest.approx(entropy)
    similarity = analysis.similarity(tape.streams[layers]).item()
    assert got["similarity"][last] == pytest.approx(similarity)
    assert got["largest"] == got["largest_own"]
    assert got["entropy_deep"] == pytest.approx(sum(got["entropy"][half:]) / (layers - half))
    assert got["log_largest"] == pytest.approx(sum(map(math.log, got["largest"])) / layers)
    assert "table" not in got and "table_late" not in got


def test_what_a_token_explains_is_all_or_nothing_where_it_should_be():
    """A function of the token alone, the same plus noise of its size, and noise with or without as
    many groups."""
    chance = torch.Generator().manual_seed(0)
    ids = torch.randint(64, (4096,), generator=chance)
    table, noise = torch.randn(64, 8, generator=chance), torch.randn(4096, 8, generator=chance)
    assert analysis.explained(table[ids], ids) == pytest.approx(1)
    assert analysis.explained(table[ids] + noise, ids) == pytest.approx(0.5, abs=0.05)
    assert abs(analysis.explained(noise, ids)) < 0.02
    # neither sign nor size nor an offset matters
    assert analysis.explained(-3 * table[ids] + 1, ids) == pytest.approx(1)


def test_a_mixture_that_overshoots_is_more_the_tokens_than_the_value_that_it_corrects():
    """Row 13: h - x0 leaves what the context added; h - 9 x0 is the token again, with its sign
    turned."""
    model = awake("row13")
    at = len(model.blocks) - 1
    ids = torch.randint(8, (16, 32), generator=torch.Generator().manual_seed(0))
    for b, low, high in ((0.0, 0.0, 0.0), (-9.0, 0.01, 1.0)):
        with torch.no_grad():
            model.blocks[at].attention.value.a.value.fill_(1.0)
            model.blocks[at].attention.value.b.value.fill_(b)
        got = portraits.portrait(model, ids)
        assert low <= got["token"][at] - got["token_own"][at] <= high


def test_mixed_values_are_told_from_a_layers_own():
    got = portraits.portrait(awake("resformer"), IDS)
    assert got["largest"][0] == got["largest_own"][0] and got["largest"][1] != got["largest_own"][1]
    assert got["log_largest"] != got["log_largest_own"]


def test_a_model_whose_layers_lack_own_values_has_no_sum_over_them():
    got = portraits.portrait(awake("svformer"), IDS)
    assert got["largest_own"][1:] == [None] * (len(got["largest"]) - 1)
    assert "log_largest_own" not in got


def test_a_tables_share_is_by_lengths_and_falls_to_nothing_with_its_weight():
    model = awake("modded", layers=8)
    got = portraits.portrait(model, IDS)
    assert got["table"] and all(0 < share < 1 for share in got["table"].values())
    half = len(model.blocks) // 2
    late = [share for at, share in got["table"].items() if at >= half]
    assert got["table_late"] == pytest.approx(sum(late) / len(late))
    at = max(got["table"])
    with torch.no_grad():
        model.blocks[at].attention.value.b.value.zero_()
    assert portraits.portrait(model, IDS)["table"][at] == 0


def test_tables_in_the_upper_half_alone_have_no_sum_over_the_lower():
    got = portraits.portrait(awake("bov-keep", layers=6), IDS)
    assert "table_late" in got and "table_early" not in got


def test_texts_are_held_out_and_fill_whole_rows(tmp_path):
    class Letters:
        encode = staticmethod(lambda text: list(text.encode()))

    (tmp_path / "book.txt").write_text(
        "\n\n".join(f"Paragraph {i} of a book that is long enough." for i in range(4000))
    )
    ids = portraits.held_texts(str(tmp_path / "book.txt"), Letters, 16)
    assert ids.shape == (portraits.HELD_TEXTS, 16)
    held = "".join(portraits.corpora.find(str(tmp_path / "book.txt")).documents("valid"))
    assert held.startswith(bytes(ids.flatten().tolist()).decode())


@pytest.mark.parametrize("text, name", [([], "inside"), (["--text", "code"], "inside_code")])
def test_the_command_measures_what_the_file_lacks_and_says_when_it_lacks_nothing(
    text, name, tmp_path, monkeypatch, capsys
):
    (tmp_path / "book.txt").write_text("the cat sat on the mat, and the dog lay down.\n" * 3000)
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(records, "MEASURED", tmp_path)
    monkeypatch.setattr(portraits, "HELD_TEXTS", 4)
    plans = {"standard": dict(), "ours": dict(plan="bov")}
    monkeypatch.setattr(portraits, "PORTRAYED", plans)
    run = Run(corpus=str(tmp_path / "book.txt"), steps=2, rows=8, size="smoke", vocab=280)
    monkeypatch.setattr(portraits, "CODE" if text else "NOVEL", run)
    portraits.main(text)
    rows = records.rows(name)
    found = [(row["seed"], row["plan"]) for row in rows]
    assert found[:3] == [(0, "standard"), (0, "ours"), (1, "standard")]
    assert len(rows) == 6 and {row["trained"] for row in rows} == {rows[0]["commit"]}
    capsys.readouterr()
    monkeypatch.setattr(portraits, "cached", None)  # measuring again would fail
    portraits.main(text)
    assert capsys.readouterr().out == f"{name}: whole, 6 rows; nothing to do\n"
