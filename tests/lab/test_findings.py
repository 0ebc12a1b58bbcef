"""Do the small tables of the first page say what the files say?"""

from statistics import fmean

from course import records
from evidence.research import at_best, findings


def cells(told):
    """{words of a line: its cells} of a table in Markdown."""
    lines = (line.strip("| ").split(" | ") for line in told.splitlines()[2:])
    return {words: by_text for words, *by_text in lines}


def test_a_part_of_v1_is_counted_from_the_model_in_which_nothing_passes():
    """By hand from the file."""
    losses = {
        (row["plan"], row["seed"]): row["loss"]
        for row in records.read("content_gradient_novel")["rows"]
    }
    gained = fmean(
        losses["standard/v1-neither", seed] - losses["standard/v1-forward", seed]
        for seed in range(5)
    )
    code, novel = cells(findings.of_number_and_gradient())["the number alone"]
    assert abs(float(novel.strip("*").split("*")[0].replace("−", "-")) - gained) < 6e-4
    assert code != novel


def test_one_system_over_another_is_told_where_both_have_rates_of_their_own(monkeypatch):
    whole = cells(findings.one_over_another())
    assert len(whole) == len(findings.ONE_OVER_ANOTHER)
    monkeypatch.setattr(at_best, "told_systems", lambda: ["x0-v", "row8", "resformer"])
    assert list(cells(findings.one_over_another())) == [findings.ONE_OVER_ANOTHER["x0-v", "row8"]]


def test_every_small_table_has_both_texts():
    tables = (
        findings.at_which_rates,
        findings.of_values_of_the_token,
        findings.of_number_and_gradient,
        findings.of_keeping_v,
        findings.of_more_tokens,
        findings.of_the_ranking,
        findings.of_query_key_value,
    )
    for told in tables:
        rows = cells(told())
        assert 3 <= len(rows) <= 4 and {len(by_text) for by_text in rows.values()} == {2}
