"""What is told of two texts at three vocabularies whose leads are known?"""

import re

import pytest

from course import figures
from evidence.research import pairs, vocab_leads, why
from evidence.research.grids import GRIDS


def made(text):
    """Every run of the grid: tables lead by their vocabulary (ten thousandths), twice that on code;
    standard made wide gains a hundredth, tables made slim lose one, ResFormer is behind."""
    rows = []
    for run in GRIDS[vocab_leads.grid_at(text)].runs():
        vocab = getattr(run, "vocab", None) or 1024
        tables = vocab / 10_000 * (2 if text == "code" else 1)
        ahead = dict(standard=0, resformer=-0.5)
        ahead["bov-fixed"] = tables + run.seed / 1000
        ahead = ahead[run.plan]
        if run.changes:
            ahead += 0.01 if run.plan == "standard" else -0.01
        asked = {} if vocab == 1024 else dict(vocab=vocab)
        if run.changes:
            asked["changes"] = dict(run.changes)
        rows.append(dict(plan=run.plan, seed=run.seed, bpb=3.0 - ahead, asked=asked))
    return rows


@pytest.fixture
def recorded(monkeypatch):
    files = {vocab_leads.grid_at(text): made(text) for text in why.SEEN}
    monkeypatch.setattr(pairs, "whole_rows", lambda name: files.get(name, []))
    monkeypatch.setattr(pairs, "whole", files.__contains__)
    return files


@pytest.mark.parametrize(
    "compared, ahead",
    [
        ("tables, as they are", [0.0258, 0.1024, 0.4096]),
        ("tables, against a standard as large", [0.0158, 0.0924, 0.3996]),
        ("tables made as large as standard", [0.0158, 0.0924, None]),
        ("ResFormer", [-0.501, -0.501, -0.501]),
    ],
)
def test_a_lead_is_of_one_vocabulary_and_one_width(recorded, compared, ahead):
    for vocab, mean in zip(why.VOCABS, ahead, strict=True):
        found = vocab_leads.leads_at("novel", vocab, compared)
        assert len(found) == (3 if mean else 0)
        if mean:
            assert sum(found) / 3 == pytest.approx(mean + 0.001)


def test_the_table_has_what_was_foretold_and_a_line_a_comparison(recorded):
    head, _, foretold, rival, *lines = vocab_leads.by_vocabulary("code").splitlines()
    assert "258" in head and "1,024" in head and "4,096" in head
    assert [float(cell) for cell in re.findall(r"0\.\d+", foretold)] == list(why.BY_VOCAB["code"])
    assert [float(cell) for cell in re.findall(r"0\.\d+", rival)] == [0.215, 0.076, 0.049]
    assert [line.split("|")[1].strip() for line in lines] == [*vocab_leads.COMPARED]
    assert "no such plan" in lines[2] and "+0.206" in lines[0]


def test_texts_and_vocabularies_are_compared_seed_by_seed(recorded):
    assert vocab_leads.code_less_novel(1024).startswith("**+0.102**")
    assert vocab_leads.largest_less_smallest("novel").startswith("**+0.384**")


def test_the_picture_waits_for_both_texts_and_tells_their_leads(recorded, monkeypatch):
    fig, alt = vocab_leads.picture()
    figures.check_alt(alt)
    assert len(fig.axes) == 2 and "novel, ResFormer −0.500, −0.500, −0.500" in alt
    monkeypatch.setattr(pairs, "whole", lambda name: name != "why_vocab_code")
    assert vocab_leads.picture() is None
