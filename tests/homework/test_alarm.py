"""Is a right answer right on a slow and busy machine, and does an endless one still end?"""

import signal
import sys
import time

import pytest

from homework import turn
from homework.alarm import PATIENCE, alarm
from tests import warm
from tests.homework.classroom import CHECKOUT

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")

FRESH = """
import sys
from homework import turn
turn.SECONDS = 1.5
right = turn.solution("{unit}", "{name}")
before = "torch._dynamo" in sys.modules
kept = turn.attempt(turn.exercise_of("{unit}", "{name}"), right)
print(before, kept.state, "torch._dynamo" in sys.modules)
"""
SLOW = """
import time

def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""


def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize("unit, name", [("nb00", "softmax"), ("nb02", "training")])
def test_what_a_fresh_kernel_loads_once_is_not_the_answers(unit, name):
    """torch._dynamo takes longer than an answer may: an optimizer loads it, and so does the watch
    on how an answer is made."""
    code = FRESH.format(unit=unit, name=name)
    done = warm.run(["-c", code], cwd=CHECKOUT)
    before, state, after = (done.stdout or pytest.fail(done.stderr)).split()
    assert (before, state) == ("False", "ok")


@pytest.fixture
def slow_package(tmp_path, monkeypatch):
    """A package that takes .8 seconds to load, in two modules that need each other."""
    (tmp_path / "slowly").mkdir()
    first = f"{SLOW}\nfrom slowly import second\nburn(.4)\nanswer = second.answer\n"
    (tmp_path / "slowly" / "__init__.py").write_text(first)
    second = "import slowly\nslowly.burn(.4)\nanswer = 42\n"
    (tmp_path / "slowly" / "second.py").write_text(second)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("slowly", "slowly.second"):
        sys.modules.pop(name, None)


def test_an_import_is_never_cut_and_is_not_the_answers_time(slow_package):
    with alarm(0.3) as rung:
        import slowly
    assert not rung and slowly.answer == 42


def test_time_in_which_others_compute_is_not_the_answers():
    """Whoever waits for a processor looks like whoever sleeps."""
    with alarm(0.3) as rung:
        burn(0.1)
        time.sleep(0.6)
    assert not rung


@pytest.mark.parametrize("endless, seconds", [(burn, 0.3), (time.sleep, 0.3 * PATIENCE)])
def test_who_computes_or_sleeps_for_ever_is_stopped(endless, seconds):
    start = time.monotonic()
    with alarm(0.3) as rung:
        endless(30)
    assert rung and seconds <= time.monotonic() - start < seconds + 10


def test_an_alarm_inside_another_leaves_it_set():
    before = signal.getsignal(signal.SIGALRM)
    with alarm(0.5) as outer:
        with alarm(0.2) as inner:
            burn(20)
        burn(20)
    assert inner and outer
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_each_case_of_a_part_may_be_endless():
    """What is raised in one is caught there, as any error of an answer is."""
    caught = 0
    with alarm(0.2) as rung:
        for _ in range(3):
            try:
                burn(20)
            except BaseException:
                caught += 1
    assert caught == 3 == len(rung)


def test_an_answer_that_sleeps_is_told_so(monkeypatch, capsys):
    monkeypatch.setattr(turn, "SECONDS", 0.1)

    def causal_mask(T, S):
        time.sleep(30)

    turn.your_turn("nb01", causal_mask)
    assert "did not finish in time: it was still in line" in capsys.readouterr().out
