"""Does the picture of the dose show what is recorded, and say what is not?"""

import pytest

from course import dose


def rows(plans, seeds=range(5), **more):
    """Recorded rows: a plan's loss is 3 less its lead, and a little of the seed."""
    return [
        dict(plan=plan, size="tiny", seed=s, steps=500, loss=3 - lead + s / 100 + s * lead / 50)
        | more
        for plan, lead in plans.items()
        for s in seeds
    ]


@pytest.fixture
def shown(monkeypatch):
    pictures = []
    monkeypatch.setattr(dose.figures, "show", lambda fig, alt: pictures.append(fig))
    return pictures


def test_which_layers_a_plan_changes_is_read_off_its_model():
    assert dose.changed("standard") == [] and dose.changed("row8") == [8, 9, 10, 11]
    assert dose.changed("x0-v") == list(range(12))
    # a gain, another source and an unknown name are no dose
    assert dose.changed("row9") is None is dose.changed("resformer") is dose.changed("nobody")
    assert dose.cell_of([8, 9, 10, 11]) == (dose.TOP, 4)
    assert dose.cell_of([0, 1]) == (dose.BOTTOM, 2) and dose.cell_of([1, 4]) is None
    assert dose.cell_of(list(range(1, 12, 2))) == (dose.SECOND, 6)


def test_what_is_there_is_drawn_and_what_is_missing_is_said(shown, capsys):
    some = rows(dict(standard=0, row8=0.06)) + rows({"x0-v": 0.1}, seeds=range(3))
    tables = dose.draw(dict(code=some), "title", "alt")
    found = tables["code"]
    assert set(found) == {(dose.NONE, 0), (dose.TOP, 4), (dose.ALL, 12)}
    assert found[dose.TOP, 4]["difference"] == pytest.approx(-0.06 + 0.04 * 0.06)
    told = capsys.readouterr().out
    assert "from the bottom 4" in told and "all 12 (3 of 5 seeds)" in told
    assert "from the top 4" not in told
    assert [line.get_label() for line in shown[0].axes[0].lines][0] == dose.TOP


def test_nothing_is_drawn_of_a_grid_that_is_not_there(shown, capsys):
    assert dose.draw(dict(code=[]), "title", "alt") == dict(code={}) and not shown
    assert capsys.readouterr().out.startswith("code: not recorded yet: none 0, from the top 2")


def test_a_whole_grid_lacks_nothing_and_other_budgets_stand_aside(shown, monkeypatch):
    names = {f"{place} {k}": (place, k) for place, k in dose.WANTED}
    at = {
        dose.NONE: lambda k: [],
        dose.ALL: lambda k: list(range(12)),
        dose.TOP: lambda k: list(range(12 - k, 12)),
        dose.BOTTOM: lambda k: list(range(k)),
        dose.SECOND: lambda k: list(range(1, 12, 2)),
    }
    layers = {name: at[place](k) for name, (place, k) in names.items()}
    monkeypatch.setattr(dose, "changed", lambda plan, size: layers[plan])
    whole = rows({name: k / 100 for name, (_, k) in names.items()})
    longer = rows({"none 0": 1.0}, steps=4000) + rows(
        {"none 0": 1.0}, asked=dict(changes=dict(a=1))
    )
    found = dose.draw(dict(code=whole + longer), "title", "alt")["code"]
    assert dose.missing(found) == [] and len(found) == len(dose.WANTED)
    drawn = [line for line in shown[0].axes[0].lines if line.get_label() in at]
    assert [list(line.get_xdata()) for line in drawn] == [
        [0, 2, 4, 8, 12],
        [0, 2, 4, 8, 12],
        [0, 6, 12],
    ]
