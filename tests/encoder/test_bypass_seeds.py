"""Are the bypasses' seeds paired, and does their command go on where it stopped?"""

import pytest
import torch

from course import records
from evidence.measured import bypass_seeds
from minimal.data import results
from tests.encoder.test_training import equal, weights

SMALL = dict(level=1, paragraphs=12, test=4, vocab=400, masked=2, spans=2, batch=4)


def test_plans_of_one_seed_start_from_the_same_weights_and_seeds_differ():
    task, _ = bypass_seeds.village_task(level=1, paragraphs=12, test=4, vocab=400)
    base = weights(bypass_seeds.model_of("standard", 2, 32, task))
    for plan in bypass_seeds.PLANS:
        other = {
            name.replace(".x.", "."): p
            for name, p in weights(bypass_seeds.model_of(plan, 2, 32, task)).items()
        }
        assert all(torch.equal(base[name], other[name]) for name in base), plan
    assert not equal(base, weights(bypass_seeds.model_of("standard", 2, 32, task, seed=1)))


def test_the_grid_fills_what_is_missing_and_nothing_twice(tmp_path, capsys):
    path = tmp_path / "bypass.json"
    call = lambda **how: bypass_seeds.grid(
        path, ["standard", "bypass-head"], [(2, 32)], range(2), **SMALL | how
    )
    call(minutes=1e-9)
    assert "time is up" in capsys.readouterr().out and not path.exists()
    call()
    content = records.read(path)
    assert [(r["plan"], r["seed"]) for r in content["rows"]] == [
        ("standard", 0),
        ("bypass-head", 0),
        ("standard", 1),
        ("bypass-head", 1),
    ]
    assert [len(r["variances"]) for r in content["rows"]] == [2] * 4 and content["settings"][
        "spans"
    ] == 2
    assert content["rows"][1]["alpha"] and content["rows"][0]["alpha"] is None
    results.write(path, content | dict(rows=content["rows"][:1] + content["rows"][2:]))
    call()
    call()
    again = records.read(path)["rows"]
    first, last = content["rows"][1], again[-1]
    assert len(again) == 4 and (last["f1"], last["span_loss"]) == (first["f1"], first["span_loss"])
    with pytest.raises(ValueError, match="give it a file of its own"):
        call(paragraphs=13, spans=3)
    groups, compared = bypass_seeds.table(again)
    (axis,) = bypass_seeds.draw_variances(again, "Wide values, narrow scores").axes
    marks = [line for line in axis.lines if line.get_marker() not in ("None", "", None)]
    assert sum(len(line.get_xdata()) for line in marks) == 4 and len(axis.get_legend().texts) == 2
    assert {
        round(x, 6) for line in marks if line.get_label() == "standard" for x in line.get_xdata()
    } == {1.0}
    assert set(groups["2x32"]) == {"standard", "bypass-head"} and compared["2x32"][1]["n"] == 2


def test_the_recorded_grid_is_paired_and_of_the_set_that_we_generate():
    content = records.read("bypass")
    cells = {(r["size"], r["plan"], r["seed"]) for r in content["rows"]}
    assert len(cells) == len(content["rows"]), "no cell twice"
    for size, plan, seed in cells:
        assert (size, "standard", seed) in cells, f"{plan} has no base of seed {seed} at {size}"
    assert all(0 <= r["f1"] <= 100 for r in content["rows"])
    settings = content["settings"]
    *_, fingerprint = bypass_seeds.sized_set(**{name: settings[name] for name in bypass_seeds.SET})
    assert content["corpus"]["fingerprint"] == fingerprint, (
        "the generated set changed: record the grid anew"
    )


def test_the_bypass_is_paired_by_seed_in_every_size_that_has_it():
    def row(size, plan, seed, f1):
        return dict(size=size, plan=plan, seed=seed, f1=f1)

    first, second, *_ = bypass_seeds.SIZES
    rows = [row(first, "standard", seed, 70.0 + seed) for seed in range(3)]
    rows += [row(first, "bypass", seed, 71.0 + seed) for seed in range(3)]
    rows += [row(second, "standard", 0, 70.0)]
    (found,) = [row for row in bypass_seeds.by_size(rows) if row["difference"] is not None]
    assert found["plan"] == f"{first}, bypass" and found["n"] == 3
    assert found["difference"] == pytest.approx(1.0)


def test_a_grid_that_had_no_time_for_a_single_run_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bypass_seeds, "header_of", lambda settings: {})
    bypass_seeds.main(["--minutes", "1e-9", "--out", str(tmp_path / "new.json")])
    assert capsys.readouterr().out == "time is up; the same command goes on from here\n"


# fmt: off
WRONG = [  # the command's words, what it says
    ("--sizes zzz", "--sizes: wanted LAYERSxWIDTH as in 2x32,4x64, got 'zzz'"),
    ("--sizes 2x", "--sizes: wanted LAYERSxWIDTH"),
    ("--sizes ", "--sizes: "),
    ("--plans", "--plans: expected at least one argument"),
    ("--seeds 0", "--seeds: wanted a whole number from 1"),
    ("--seeds -1", "--seeds: wanted a whole number from 1"),
    ("--threads 0", "--threads: wanted a whole number from 1"),
    ("--out file", "--out: wanted a file that ends in .json, got 'file'"),
    ("--out noise.txt/x.json", "bypass_seeds: cannot write noise.txt/x.json"),
    ("--out noise.json", "noise.json holds something that this command did not"),
]
# fmt: on


@pytest.mark.parametrize("words, sentence", WRONG)
def test_a_wrong_command_is_answered_by_one_sentence(
    words, sentence, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.json").write_text("no tree")
    (tmp_path / "noise.txt").write_text("no folder")
    with pytest.raises(SystemExit) as stopped:
        bypass_seeds.main(words.split(" "))
    said = f"{stopped.value} {capsys.readouterr().err}".strip()
    assert sentence in said and "\n" not in said and stopped.value.code != 0
