"""What is told of nine texts whose leads are known?"""

import re

import pytest

from course import figures
from evidence.research import pairs, text_leads, why


def rows(lead):
    """Three seeds of a grid in which tables lead by so much at equal parameters, and by twice as
    much as they are; ResFormer is behind."""
    made = []
    for seed in range(3):
        loss = 3.0 + seed / 10
        losses = [("standard", {}, 0), ("bov-fixed", foretold.SLIM_CHANGES, lead + seed / 100)]
        losses += [("bov-fixed", {}, 2 * lead), ("resformer", {}, -0.1)]
        for plan, changes, ahead in losses:
            asked = dict(changes=changes) if changes else {}
            made.append(dict(plan=plan, seed=seed, loss=loss - ahead, asked=asked))
    return made


@pytest.fixture
def recorded(monkeypatch):
    """Leads as what was foretold, in thousandths."""
    files = {text_leads.grid_of(name): rows(told[0] / 10) for name, told in why.FORETOLD.items()}
    monkeypatch.setattr(pairs, "whole_rows", lambda name: files.get(name, []))
    monkeypatch.setattr(pairs, "whole", files.__contains__)
    return files


def test_a_lead_is_at_equal_parameters_and_seed_by_seed(recorded):
    assert text_leads.leads_on("bare") == pytest.approx([0.2209, 0.2309, 0.2409])
    assert text_leads.leads_on("bare", changes={}) == pytest.approx([0.4418] * 3)
    assert text_leads.leads_on("bare", "resformer", {}) == pytest.approx([-0.1] * 3)
    assert (
        text_leads.mean_on("bare") == "0.231" and text_leads.mean_on("bare", changes={}) == "0.442"
    )


def test_the_table_has_a_line_for_every_text_in_the_order_that_was_foretold(recorded):
    head, _, *lines = text_leads.nine_texts().splitlines()
    assert [line.split("|")[1].strip().removesuffix(" (seen before)") for line in lines] == [
        text_leads.TEXT_TITLES[name] for name in why.FORETOLD
    ]
    assert sum("seen before" in line for line in lines) == 2
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[1:3] == ["2.21", "0.30"]
    assert cells[3].startswith("**+0.231**") and "−0.100" in cells[5]
    assert head.count("|") == lines[0].count("|") == 7


def test_agreement_is_over_the_seven_new_texts(recorded):
    assert text_leads.agreement() == "1.00"
    recorded["why_text_code"][:] = rows(9.0)  # it was seen: it counts for nothing
    assert text_leads.agreement() == "1.00"
    recorded["why_text_bare"][:] = rows(-1.0)  # from the first place to the last
    assert text_leads.agreement() == "0.25"
    assert text_leads.agreement(plan="resformer", changes={}) != "1.00"


def test_the_rival_guess_orders_and_sizes_the_same_leads(recorded):
    assert text_leads.agreement("farther") == "0.86", "Dombey, the shuffled library"
    assert float(text_leads.line("next")) == 1.0
    for name, (_, farther, _) in why.FORETOLD.items():
        recorded[text_leads.grid_of(name)][:] = rows(farther)
    assert text_leads.agreement("farther") == text_leads.line("farther") == "1.00"
    assert text_leads.agreement() == "0.86" and float(text_leads.line("next")) < 1


def test_texts_are_compared_seed_by_seed(recorded):
    assert text_leads.beyond("bare", "renamed") == "**+0.003** (+0.003 to +0.003)"
    assert text_leads.left_of("bare", of="bare") == "100"
    recorded["why_text_fresh"][:] = rows(0.0)  # one hundredth of noise in three seeds is .01
    assert text_leads.left_of("fresh", of="bare") == "4"


def test_the_picture_waits_for_all_nine_and_tells_their_leads(recorded, monkeypatch):
    fig, alt = text_leads.picture()
    assert "Held: rank correlation 1.000" in fig.texts[0].get_text()
    figures.check_alt(alt)
    assert [float(lead) for lead in re.findall(r" (\d\.\d{3})", alt)] == pytest.approx(
        [told[0] / 10 + 0.01 for told in why.FORETOLD.values()], abs=0.0006
    )
    monkeypatch.setattr(pairs, "whole", lambda name: name != "why_text_dombey")
    assert text_leads.picture() is None
