"""Do the targets of the Makefile exist, set up once, and say in one sentence what is wrong?

Most tests here run the real Makefile in an empty folder, with a Python that only writes down how it
was called.
"""

import os
import pathlib
import re
import shutil
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CALLS = dict(  # target: what it calls, with these arguments
    course="notebooks/run.py --profile smoke",
    bench="-m evidence.bench --part race",
    gpu="-m evidence.bench.rented --minutes 10 --dry",
    evidence="-m evidence.lab.record",
    work="-m course.work",
    reset="-m homework.reset hw03",
    grade="-m homework.grade hw03 mine.py",
    gradescope="-m homework.gradescope hw03",
    slides="slides/site.py --decks",
    site="slides/site.py",
    pdf="-m slides.book",
    read="-m slides.read",
    figures="-m evidence.lab.marks",
)
BY_UV = "--python .venv/bin/python -c hashes.txt --build-constraints hashes.txt"
# what every set-up installs
BASE = [
    "--no-compile --no-deps -c constraints.txt torch",
    "--no-compile --require-hashes -r .venv/uv.txt",
    f"{BY_UV} -e .[course,test]",
]
ARGUMENTS = ["PROFILE=smoke", "PART=race", "MINUTES=10", "DRY=1", "HW=hw03", "FILE=mine.py"]
FAKE = """#!/bin/sh
# 3.12.1
echo "$@" >> calls
echo "$JUPYTER_CONFIG_PATH" > jupyter
echo "$PYTHONDONTWRITEBYTECODE" > no_bytecode
echo "$PYTHONPATH" > path
case "$*" in
  "-c import sys; print"*) sed -n 2p "$0";;
  "-c import sys"*) exit ${OLD:-0};;
  "-c import venv"*) exit ${BARE:-0};;
  *"doctor --torch") echo $CHOOSES;;
  *whl/cpu*) test -z "$CUT_OFF$OFFLINE";;
  "-m venv"*) rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
  *pip*) exit ${OFFLINE:-0};;
esac
"""


@pytest.fixture
def house(tmp_path):
    """An empty folder with the Makefile, the pins and a Python that only writes down its calls."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "hashes.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "fake").write_text(FAKE)
    (tmp_path / "fake").chmod(0o755)
    return tmp_path


@pytest.fixture
def ready(house, make):
    """The same, set up; its Python writes the words of the last call, one a line."""
    assert make(house, "setup", "PYTHON=./fake").returncode == 0
    python = house / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > words\n")
    return house


@pytest.fixture
def setup(house, make):
    """Run `make setup` there; return it with the pip calls that it made."""

    def run(*arguments, **environment):
        (house / "calls").write_text("")
        done = make(house, "setup", "PYTHON=./fake", *arguments, **environment)
        calls = (house / "calls").read_text().splitlines()
        return done, [call.partition(" install ")[2] for call in calls if " install " in call]

    return run


def test_make_alone_lists_every_target_in_a_line_each(make):
    listed = re.findall(r"^make (\w+) ", make(ROOT).stdout, re.M)
    wanted = ["setup", "lab", "test", "check", "doctor", "clean", *CALLS]
    assert sorted(listed) == sorted(wanted)


@pytest.mark.parametrize(
    "wish, words",
    [
        (["reset"], "make reset HW=hw03, or which notebook: make reset NOTEBOOK=04"),
        (["gradescope"], "make gradescope HW=hw03"),
        (["grade", "FILE=x.py"], "make grade HW=hw03"),
    ],
)
def test_a_target_that_wants_a_name_asks_before_any_set_up(house, make, wish, words):
    done = make(house, *wish)
    assert f"say which unit: {words}" in done.stdout
    assert done.returncode != 0 and not (house / ".venv").exists()


@pytest.mark.parametrize("target", CALLS)
def test_a_target_sets_up_and_calls_its_program(house, make, target):
    done = make(house, target, "PYTHON=./fake", *ARGUMENTS)
    assert done.returncode == 0, done.stdout
    calls = (house / "calls").read_text().splitlines()
    assert calls[-1].strip() == CALLS[target] and any("pip" in call for call in calls)


STRANGE = [
    "kv_cache (1).py",
    "x; touch pwned; :",
    "x' ; touch pwned ; '",
    'a"b',
    "`touch pwned`",
    "$(touch pwned)",
    "$(shell touch pwned)",
    "${HOME} $HOME $$",
    "a&touch pwned",
    "über#1.py",
    "-n a\\b",
]
ONE_WORD = dict(  # variable: (target, what stands before it in the call)
    FILE=("grade", "-m homework.grade hw03 "),
    HW=("reset", "-m homework.reset "),
    NOTEBOOK=("reset", "-m course.work --reset "),
    PROFILE=("course", "notebooks/run.py --profile "),
    PART=("bench", "-m evidence.bench --part "),
    MINUTES=("gpu", "-m evidence.bench.rented --minutes "),
)


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("variable", ONE_WORD)
def test_what_a_variable_holds_is_one_word_and_never_run(ready, make, variable, text):
    """A submission may be called anything, and a class is often graded in a loop over its files."""
    target, before = ONE_WORD[variable]
    rest = ["HW=hw03"] if variable == "FILE" else []
    done = make(ready, target, *rest, f"{variable}={text}")
    assert done.returncode == 0, done.stdout
    calls = (ready / "words").read_text().rstrip("\n").split("\n")
    assert " ".join(calls) == before + text and calls[-1] == text
    assert not (ready / "pwned").exists()


@pytest.mark.parametrize("text", STRANGE)
def test_a_python_that_is_no_python_is_told_and_never_run(house, make, text):
    for target in ("setup", "doctor"):
        done = make(house, target, f"PYTHON={text}")
        assert done.returncode != 0 and not (house / "pwned").exists()
        assert target == "doctor" or f"and {text} is not one: install one" in done.stdout


def test_a_python_in_a_folder_with_a_blank_is_found(house, make):
    (house / "my tools").mkdir()
    (house / "fake").rename(house / "my tools" / "fake")
    done = make(house, "setup", "PYTHON=my tools/fake")
    assert done.returncode == 0 and "with my tools/fake" in done.stdout


def test_without_a_file_the_learners_own_is_graded(ready, make):
    assert make(ready, "grade", "HW=hw03").returncode == 0
    assert (ready / "words").read_text().split() == ["-m", "homework.grade", "hw03"]


def test_only_args_is_a_list_of_words(ready, make):
    make(ready, "grade", "HW=hw03", "FILE=a b.py", "ARGS=--out 'my results' --jobs 2")
    calls = (ready / "words").read_text().splitlines()
    assert calls[2:] == ["hw03", "a b.py", "--out", "my results", "--jobs", "2"]


def test_every_variable_of_a_recipe_is_quoted_or_known_to_hold_words():
    recipes = "\n".join(line for line in MAKEFILE.splitlines() if line.startswith("\t"))
    asked = set(re.findall(r"\$\((\w+)\)", recipes))
    assert asked == {
        "PY",
        "VENV",
        "PIP",
        "UV",
        "ARGS",
        "LAB_ARGS",
        "first",
        "as_root",
        "fits",
        "chosen",
        "TORCH",  # cpu or cuda, or the Makefile has stopped
        "by_itself",
    }


@pytest.mark.parametrize(
    "target, call",
    [
        ("lab", "-m jupyterlab"),
        ("test", "-m pytest -n auto"),
        (
            "check",
            "-m pytest -n auto tests/model tests/training tests/data tests/kernels -m not slow",
        ),
    ],
)
def test_lab_test_and_check_set_up_first(house, make, target, call):
    assert make(house, target, "PYTHON=./fake").returncode == 0
    calls = (house / "calls").read_text().splitlines()
    before = ["-m course.work"]
    if target == "check":
        before = ["-m ruff check", "-m ruff format --check"]
    at = len(calls) - 1 - len(before)
    *install, beside, one, two = calls[:at]
    assert [line.strip() for line in calls[at:-1]] == before
    compiled = ["-c import sympy, scipy.stats, pandas", "-c import torch._dynamo"]
    assert sorted([one.strip(), two.strip()]) == compiled, "at the same time, in any order"
    assert beside.strip() == "notebooks/course/beside.py"
    assert "-e .[course,test]" in install[-1] and calls[-1].startswith(call)


def test_arguments_of_make_test_are_those_of_pytest_alone(house, make):
    assert make(house, "test", "PYTHON=./fake", "ARGS=-k one").returncode == 0
    *_, copies, tests = (house / "calls").read_text().splitlines()
    assert (copies.strip(), tests.strip()) == ("-m course.work", "-m pytest -n auto -k one")


def test_lab_lands_on_the_first_notebook_with_the_settings_of_the_course(house, make):
    assert make(house, "lab", "PYTHON=./fake", JUPYTER_CONFIG_PATH="mine").returncode == 0
    address = re.search(r"default_url=/lab/tree/(\S+)", (house / "calls").read_text())[1]
    assert address == "work/00_start_here.ipynb" and (ROOT / "notebooks" / address[5:]).exists()
    ours, theirs = (house / "jupyter").read_text().strip().split(":")
    assert ours == f"{house}/notebooks/lab" and theirs == "mine"
    assert (ROOT / "notebooks/lab/jupyter_lab_config.py").exists()


def test_set_up_happens_once_and_again_only_when_the_pins_change(house, setup):
    assert setup()[1] == BASE
    assert setup()[1] == []
    later = time.time() + 5
    os.utime(house / "constraints.txt", (later, later))
    assert setup()[1] == BASE


def test_bytecode_is_kept_where_the_environment_forbids_it(house, setup):
    """Containers often do. Each of our processes would compile what it imports, for seconds."""
    setup(PYTHONDONTWRITEBYTECODE="1")
    assert (house / "no_bytecode").read_text().strip() == ""


def test_without_a_card_the_cpu_build_is_taken_and_told_and_a_wish_counts_more(house, setup):
    done, calls = setup(CHOOSES="cpu")
    assert "whl/cpu torch" in calls[0] and "--no-deps" in calls[0] and calls[1:] == BASE
    assert "no NVIDIA card here: torch comes as its CPU build" in done.stdout
    assert setup(CHOOSES="cpu")[1] == []
    assert (house / ".venv" / "uv.txt").read_text().startswith("uv==")
    assert "whl/cpu" not in setup("TORCH=cuda", CHOOSES="cpu")[1][0]


def test_an_index_of_pytorch_that_cannot_be_reached_stops_no_set_up(setup):
    done, calls = setup(CHOOSES="cpu", CUT_OFF="1")
    assert done.returncode == 0 and calls[1:] == BASE
    assert "--retries 0 --timeout 10" in calls[0], "and costs seconds"
    assert "PyTorch's own index cannot be reached: torch comes as" in done.stdout


def test_a_pdf_without_a_chromium_ends_before_the_site_is_begun(ready, make):
    none = '#!/bin/sh\necho "$@" >> asked\ncase "$*" in *doctor.browser*) exit 1;; esac\n'
    (ready / ".venv" / "bin" / "python").write_text(none)
    assert make(ready, "pdf").returncode != 0
    asked = (ready / "asked").read_text()
    assert "doctor.browser()" in asked and "slides" not in asked


def test_the_cpu_build_of_torch_is_installed_first_and_remembered(setup):
    first, *rest = setup("TORCH=cpu")[1]
    assert "download.pytorch.org/whl/cpu torch" in first and "--no-deps" in first
    assert rest == BASE
    assert setup()[1] == setup("TORCH=cpu")[1] == []
    assert "download.pytorch.org" not in setup("TORCH=cuda")[1][0]
    assert setup()[1] == []


def test_extras_are_installed_when_asked_for_and_remembered(house, setup):
    setup()
    quietly = f"{BY_UV} --quiet -e .[course,test,"
    assert setup("EXTRAS=site,parity")[1] == [quietly + "parity]", quietly + "site]"]
    assert setup()[1] == []
    later = time.time() + 5
    os.utime(house / "pyproject.toml", (later, later))
    assert len(setup()[1]) == len(BASE) + 2


def test_a_python_that_is_gone_is_replaced_and_the_choices_stay(house, setup):
    """As after an upgrade of the Python that had made .venv: its link leads nowhere."""
    first = setup("TORCH=cpu", "EXTRAS=parity")[1]
    python = house / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("gone")
    done, again = setup()
    assert done.returncode == 0 and again == first and python.exists()
    assert "whl/cpu" in first[0] and "parity" in first[-1] and setup()[1] == []


def test_a_venv_whose_python_does_not_fit_is_made_anew(house, setup):
    """As an editor makes one: VS Code's on Ubuntu 22.04 has Python 3.10."""
    theirs = house / ".venv" / "bin" / "python"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\nexit 1\n")
    theirs.chmod(0o755)
    done, calls = setup()
    assert done.returncode == 0 and calls == BASE and "making .venv with ./fake" in done.stdout
    assert "-m venv --clear .venv" in (house / "calls").read_text()
    assert setup()[1] == []


def test_another_python_that_is_named_makes_a_venv_anew_and_the_choices_stay(house, setup, make):
    first = setup("TORCH=cpu")[1]
    (house / "fake").write_text(FAKE.replace("3.12.1", "3.13.0"))
    assert "Nothing to be done" in make(house, "setup").stdout
    assert "Nothing to be done" in make(house, "setup", PYTHON="./fake").stdout, "for all programs"
    assert setup()[1] == first and "3.13.0" in (house / ".venv" / "bin" / "python").read_text()
    assert setup()[1] == []

    # one that cannot be leaves what is there
    done = make(house, "setup", "PYTHON=nowhere")
    assert done.returncode != 0 and "nowhere is not one" in done.stdout
    assert "Nothing to be done" in make(house, "setup").stdout


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "there never was one"])
def test_choices_outlive_a_set_up_that_did_not_finish(house, setup, gone):
    """Else the second try, without a word, would take the large build of torch."""
    python = house / ".venv" / "bin" / "python"
    first = setup("TORCH=cpu", "EXTRAS=parity")[1] if gone else []
    if gone:
        python.unlink()
    wish = [] if gone else ["TORCH=cpu", "EXTRAS=parity"]
    assert setup(*wish, OFFLINE="1")[0].returncode != 0
    again = setup()[1]
    assert "whl/cpu" in again[0] and "parity" in again[-1] and again == (first or again)


def test_a_torch_that_could_not_be_exchanged_is_still_the_one_that_was_chosen(setup):
    setup("TORCH=cpu")
    assert setup("TORCH=cuda", OFFLINE="1")[0].returncode != 0
    assert "whl/cpu" not in setup("TORCH=cuda")[1][0]
    assert setup()[1] == []


@pytest.mark.parametrize("name", ["renamed", "my course, in 'May' $HOME"])
def test_a_folder_that_was_renamed_or_copied_is_set_up_once_more(house, setup, make, name):
    setup("TORCH=cpu")
    moved = house.with_name(f"{house.name} {name}")
    shutil.copytree(house, moved, symlinks=True)
    assert setup()[1] == [], "what was copied stays as it is"
    (moved / "calls").write_text("")
    assert make(moved, "work").returncode == 0
    calls = (moved / "calls").read_text().splitlines()
    assert [call.partition(" install ")[2] for call in calls if " install " in call] == BASE
    assert "notebooks/course/beside.py" in calls, "which tells the environment where it is"
    assert "Nothing to be done" in make(moved, "setup").stdout


def test_a_set_up_from_before_it_named_its_folder_stands(house, setup):
    setup()
    (house / ".venv" / ".ready").write_text("")
    assert setup()[1] == []


@pytest.mark.parametrize("target", [*CALLS, "lab", "test", "check", "doctor"])
def test_a_target_finds_the_course_that_it_is_called_in(house, make, target):
    """Whatever course the environment was made for."""
    given = dict(PYTHONPATH="mine", HW="hw03")
    assert make(house, target, "PYTHON=./fake", *ARGUMENTS, **given).returncode == 0
    assert (house / "path").read_text() == f"{house}:{house}/notebooks:mine\n"


def test_npm_packages_are_installed_as_the_lock_file_has_them(house, setup):
    """`npm ci` takes the locked versions and checks their hashes; `npm install` may move on."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / name, house)
    tools = house / "tools"
    tools.mkdir()
    (tools / "npm").write_text('#!/bin/sh\necho "npm $@" >> calls\n')
    (tools / "npm").chmod(0o755)
    setup("EXTRAS=site", PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    calls = (house / "calls").read_text().splitlines()
    assert [line.split()[:2] for line in calls if line.startswith("npm")] == [["npm", "ci"]]


@pytest.mark.parametrize(
    "arguments, environment, sentence",
    [
        (
            [],
            dict(OLD="1"),
            "set-up needs Python 3.11 to 3.14 (not 3.14.1) and ./fake is not one: install one",
        ),
        ([], dict(BARE="1"), "./fake cannot make virtual environments"),
        ([], dict(OFFLINE="1"), "set-up did not finish: the lines above say why"),
        (["TORCH=gpu"], {}, "TORCH is cpu or cuda, not 'gpu'"),
        (["EXTRAS=slides"], {}, "EXTRAS may name hub, site and parity, not 'slides'"),
    ],
)
def test_a_set_up_that_cannot_be_says_why_in_one_sentence_and_can_be_repeated(
    setup, arguments, environment, sentence
):
    done, _ = setup(*arguments, **environment)
    assert done.returncode != 0 and sentence in done.stdout
    assert setup()[0].returncode == 0, "the second try, with the cause removed"


def test_the_real_set_up_does_nothing_the_second_time(make):
    if not (ROOT / ".venv").exists():
        pytest.skip("no .venv: this Python was not set up by make")
    spent = lambda: sum(os.times()[2:4])  # seconds of a processor, in processes that have ended
    before = spent()
    done = make(ROOT, "--question", "setup")  # a test sets nothing up
    assert done.returncode == 0, f"set-up is out of date, run make setup: {done.stdout}"
    assert spent() - before < 3
