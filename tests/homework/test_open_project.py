"""The open project: does its template run, is its control one, and are its pages whole?"""

import importlib.util
import os
import re

import pytest
import torch

from homework import marking
from minimal.model.count import count
from minimal.variants import PLANS, build, skeleton
from tests import warm

FOLDER = marking.HERE / "hw09_open_project"


@pytest.fixture
def project():
    before = dict(PLANS)
    spec = importlib.util.spec_from_file_location("project", FOLDER / "project.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    PLANS.clear()
    PLANS.update(before)


def test_the_template_runs_as_it_stands(own_runs):
    words = [FOLDER / "project.py", "--smoke", "--corpus", "stdlib"]
    environment = os.environ | dict(MINIMAL_RUNS=str(own_runs))
    done = warm.run(words, cwd=marking.HERE.parent, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "nothing was predicted" in done.stdout and "own·(1+E)" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("mine")]
    assert any("…" in row for row in rows), "an interval of three paired seeds"


def test_the_control_has_all_of_it_but_the_token(project):
    """Equal parameters and FLOPs, and all rows are trained; a token has no row of its own."""
    counted = [count(skeleton(plan, "smoke")) for plan in ("mine", "mine-control")]
    assert counted[0] == counted[1]
    ids = torch.tensor([[3, 4, 4, 5]])
    for plan, moves in (("mine", [False, True, True, False]), ("mine-control", [False] * 4)):
        model = build(plan, "smoke").eval()
        before, after = model.tape(ids), model.tape(ids)
        model(ids, tape=before)
        with torch.no_grad():
            (bank,) = model.banks.values()
            bank.weight[4] += 1  # one token's row: 4 stands at positions 1 and 2, not at 0
        model(ids, tape=after)
        at = int(next(iter(model.banks)))
        moved = (before.rows[at] - after.rows[at]).abs().amax((0, 2, 3)) > 0
        assert moved.tolist() == moves


def test_the_control_trains_as_many_rows_and_gives_a_token_many(project):
    text = torch.randint(200, (4, 64), generator=torch.Generator().manual_seed(0))
    trained = {}
    for plan in ("mine", "mine-control"):
        model = build(plan, "smoke")
        model(text).float().square().mean().backward()
        (bank,) = model.banks.values()
        grad = bank.weight.grad
        trained[plan] = int((grad.flatten(1) != 0).any(1).sum()) if grad is not None else 0
    assert trained["mine-control"] >= 0.8 * trained["mine"]
    control = project.Control
    tape = type("Tape", (), dict(ids=torch.full((1, 50), 7), start=0))
    rows = control.names(None, tape, 300)
    assert len(rows.unique()) == 50
    later = type("Tape", (), dict(ids=torch.full((1, 1), 7), start=49))
    assert control.names(None, later, 300).item() == rows[0, 49], "decoding reads the same row"


def test_when_its_new_part_is_zero_the_template_is_its_rival(project):
    ids = torch.randint(200, (2, 9))
    mine, rival = (build(plan, "smoke", seed=1).eval() for plan in ("mine", project.RIVAL))
    weights = {name: p for name, p in rival.named_parameters()}
    with torch.no_grad():
        for name, p in mine.named_parameters():
            same = name if name in weights else name.replace("value.x.", "value.")
            p.copy_(weights[same]) if same in weights else p.zero_()
    assert torch.equal(mine(ids), rival(ids))


def test_the_rubric_adds_up_and_the_report_asks_for_all_of_it():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rubric = re.findall(r"^\| \*\*(\w+)\*\* \|", text, re.M)
    assert rubric == ["Question", "Control", "Account", "Statistics", "Honesty"]
    assert "Five questions of 20 points" in text and len(rubric) * 20 == 100
    report = (FOLDER / "report.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)", report, re.M)
    sample = (FOLDER / "sample_report.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", sample, re.M) == headings and "sample_report.md" in text
    assert [heading.split()[-1] for heading in headings] == [
        *("question", "predicted", "account", "out", "believe", "mind"),
    ]
