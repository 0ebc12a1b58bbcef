"""Does the portrait of a model say what the analyses say, in the words that verdicts compare?"""
import math

import pytest
import torch

from minimal import analysis, inside
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
    got, tape = inside.portrait(model, IDS), analysis.observe(model, IDS)
    layers, half = len(model.blocks), len(model.blocks) // 2
    assert {len(got[name]) for name in ("entropy", "similarity", "largest", "largest_own")} == {layers}
    last = layers - 1
    assert got["entropy"][last] == pytest.approx(analysis.token_entropy(analysis.attention_map(model, tape, last)).item())
    assert got["similarity"][last] == pytest.approx(analysis.similarity(tape.streams[last + 1]).item())
    assert got["largest"] == got["largest_own"]
    assert got["entropy_deep"] == pytest.approx(sum(got["entropy"][half:]) / (layers - half))
    assert got["log_largest"] == pytest.approx(sum(map(math.log, got["largest"])) / layers)
    assert "table" not in got and "table_late" not in got


def test_mixed_values_are_told_from_a_layers_own():
    got = inside.portrait(awake("resformer"), IDS)
    assert got["largest"][0] == got["largest_own"][0] and got["largest"][1] != got["largest_own"][1]
    assert got["log_largest"] != got["log_largest_own"]


def test_a_model_whose_layers_lack_own_values_has_no_sum_over_them():
    got = inside.portrait(awake("svformer"), IDS)
    assert got["largest_own"][1:] == [None] * (len(got["largest"]) - 1) and "log_largest_own" not in got


def test_a_tables_share_is_by_lengths_and_falls_to_nothing_with_its_weight():
    model = awake("modded", layers=8)
    got = inside.portrait(model, IDS)
    assert got["table"] and all(0 < share < 1 for share in got["table"].values())
    half = len(model.blocks) // 2
    late = [share for at, share in got["table"].items() if at >= half]
    assert got["table_late"] == pytest.approx(sum(late) / len(late))
    at = max(got["table"])
    with torch.no_grad():
        model.blocks[at].attention.value.b.value.zero_()
    assert inside.portrait(model, IDS)["table"][at] == 0


def test_texts_are_held_out_and_fill_whole_rows(tmp_path):
    class Letters:
        encode = staticmethod(lambda text: list(text.encode()))
    (tmp_path / "book.txt").write_text("\n\n".join(f"Paragraph {i} of a book that is long enough." for i in range(4000)))
    ids = inside.texts(str(tmp_path / "book.txt"), Letters, 16)
    assert ids.shape == (inside.TEXTS, 16)
    held = "".join(inside.corpora.find(str(tmp_path / "book.txt")).documents("valid"))
    assert held.startswith(bytes(ids.flatten().tolist()).decode())
