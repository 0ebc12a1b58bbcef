"""What does the section on learned gains say of runs whose numbers are known?"""

import pytest

from evidence.research import gains, numbers, pairs

LAYERS = {8: 0.1, 9: -0.19, 10: 0.2, 11: 1.5}  # two of four are nearer to zero than 0.2


def run(plan, seed, rate=None, loss=3.0):
    """A row with gains in four layers, and shares in all of twelve."""
    asked = dict(overrides=dict(alpha=dict(lr=rate), beta=dict(lr=rate))) if rate else {}
    coefficients = {f"blocks.{at}.attention.value.gain": value for at, value in LAYERS.items()}
    share = {str(at): 0.9 if at < 8 else 0.04 * at for at in range(12)}
    coefficients["blocks.8.attention.value.weight"] = 7.0  # no gain
    return dict(
        plan=plan, seed=seed, loss=loss, asked=asked, coefficients=coefficients, share=share
    )


@pytest.fixture
def recorded(monkeypatch):
    """Two seeds of bov at both slower rates, with standard beside them."""
    slow = [run("bov", seed, rate, 2.9) for seed in (0, 1) for rate in (0.05, 0.005)]
    base = [run("standard", seed, loss=3.0 + seed / 100) for seed in range(3)]
    base += [run("bov", seed, loss=2.95 - seed / 100) for seed in range(3)]  # at the paper's rate
    files = dict(gains_code=slow, ten_seeds_code=base, stdlib=[run("bov", 0)])
    monkeypatch.setattr(pairs, "whole_rows", lambda name: files.get(name, []))
    monkeypatch.setattr(pairs, "whole", files.__contains__)
    monkeypatch.setattr(gains, "GAINED", ("bov",))


def test_gains_nearer_to_zero_than_a_fifth_are_closed():
    assert gains.gains_of(run("bov", 0)) == LAYERS
    assert gains.closed([LAYERS, LAYERS]) == "4 of 8"


def test_runs_are_told_apart_by_their_rate(recorded):
    assert [row["seed"] for row in gains.slowed("code", "bov", "0.05")] == [0, 1]
    assert gains.slowed("code", "bov", "0.5") == gains.slowed("novel", "bov", "0.05") == []


def test_a_share_is_the_mean_over_layers_that_have_a_gain(recorded):
    """0.04 times 8, 9, 10 and 11; the layers below have 0.9 and no gain."""
    assert gains.written_share(gains.slowed("code", "bov", "0.05")) == "0.38"


def test_a_lead_is_over_standard_on_the_same_seeds(recorded):
    """0.100 and 0.110 of two seeds; the third seed of standard has no partner."""
    assert gains.slow_lead("code", "bov", "0.05").startswith("+0.105 (")
    assert gains.slow_lead("code", "row6", "0.05") == "not recorded"


def test_where_ten_seeds_are_not_recorded_the_lead_is_over_three_of_the_same_state(
    recorded, monkeypatch
):
    """Of the novel; one seed of standard is there and two of bov."""
    one, slow = [run("standard", 0)], gains.slowed("code", "bov", "0.05")
    files = dict(gains_novel=slow, shares_novel=one)
    monkeypatch.setattr(pairs, "whole_rows", lambda name: files.get(name, []))
    asked = []
    monkeypatch.setattr(gains, "between", lambda ours, theirs: asked.append((theirs, ours)))
    monkeypatch.setattr(gains, "with_interval", lambda found: "")
    gains.slow_lead("novel", "bov", "0.05")
    assert asked == [({0: 3.0}, {0: 2.9, 1: 2.9})]


def test_a_slow_gain_is_held_against_its_fast_self_on_the_same_seeds(recorded):
    """0.05 and 0.04 of two seeds."""
    assert gains.slow_lead("code", "bov", "0.05", "bov").startswith("+0.045 (")


def test_the_table_has_a_cell_for_every_rate(recorded):
    head, _, line = gains.gains_slowed("code").splitlines()
    assert head.count("|") == line.count("|") == 9
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:6] == ["2 of 4", "4 of 8", "4 of 8", "0.38", "0.38"]


def test_layers_of_the_last_third_that_hardly_write_are_counted(monkeypatch):
    """Shares of 0.32 to 0.44 in layers 8 to 11, one silent; the layers below do not count."""
    loud, low = run("bov", 0), run("bov", 1)
    low["share"]["9"], low["share"]["3"] = 0.04, 0.0
    monkeypatch.setattr(pairs, "whole_rows", lambda name: [loud, low])
    monkeypatch.setattr(gains, "WRITING", ("bov",))
    cells = [cell.strip() for cell in gains.shares_table().splitlines()[-1].strip("|").split("|")]
    assert cells[1:] == ["1 of 8", "0.34", "1 of 8", "0.34"]


def test_gains_are_not_held_against_a_file_of_another_state(recorded, monkeypatch):
    monkeypatch.setattr(numbers, "state_in", lambda file: "a" if file == "gains_code" else "b")
    with pytest.raises(ValueError, match="gains_code is of a, ten_seeds_code is of b"):
        gains.slow_lead("code", "bov", "0.05")


def test_a_lead_is_over_the_twins_of_another_machine_where_those_are_of_the_same_state(
    recorded, monkeypatch
):
    """The grid with ten seeds is whole and of another state: its twins are taken."""
    slow = gains.slowed("code", "bov", "0.05")
    files = dict(gains_novel=slow, ten_seeds_novel=[run("standard", 0, loss=9.0)])
    files["noise_novel"] = [run("standard", seed, loss=3.0) for seed in range(5)]
    monkeypatch.setattr(pairs, "whole_rows", lambda name: files.get(name, []))
    monkeypatch.setattr(pairs, "whole", files.__contains__)
    monkeypatch.setattr(numbers, "state_in", lambda file: "b" if file == "ten_seeds_novel" else "a")
    assert gains.slow_lead("novel", "bov", "0.05").startswith("+0.100 (")


def test_the_seeds_of_a_lead_are_told_in_words(recorded):
    """Slow runs of two seeds; standard has three."""
    assert gains.seeds("code") == "two" and gains.seeds("novel") == "no"
