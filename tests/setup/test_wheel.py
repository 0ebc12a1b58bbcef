"""Is everything that the package needs in its wheel, and nothing else? It is built, and used far
from here: from an empty folder, with its hard needs alone."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What an extra would bring is not there for the package, but SciPy, which the intervals of a
# comparison need; nor is what stands beside it in a checkout. Torch looks for some by itself.
ALONE = """
import builtins
ABSENT = {"datasets", "matplotlib", "pandas", "jinja2", "jupyterlab", "nbconvert",
          "papermill", "IPython", "homework", "course", "evidence", "slides"}
real = builtins.__import__
def alone(name, globals=None, locals=None, fromlist=(), level=0):
    ours = (globals or {}).get("__name__", "").split(".")[0] in ("minimal", "__main__")
    if ours and name.split(".")[0] in ABSENT:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = alone
"""


@pytest.fixture(scope="module")
def away(published, tmp_path_factory):
    """A Python that has the wheel, and of everything else what this Python has; its folder."""
    home = tmp_path_factory.mktemp("away")

    # the wheel, of what git would publish, without an index; building leaves traces in its source
    source = shutil.copytree(published, home / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-index"]
    wheel = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", home, source]
    subprocess.run(wheel, check=True, timeout=120)

    # an environment of its own; the folder of shared packages adds no checkout to its path
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "venv"], check=True)
    (site,) = (home / "venv" / "lib").glob("python*/site-packages")
    (built,) = home.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", site, built], check=True, timeout=120)
    (site / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "alone.py").write_text(ALONE)  # Debian's Python has a sitecustomize of its own
    (site / "alone.pth").write_text("import alone\n")
    (home / "empty").mkdir()
    (home / "own").mkdir()
    (home / "installed").write_text(json.dumps(installed(home)))

    # runs of its own over the texts that other tests have prepared
    texts = pathlib.Path(os.environ["MINIMAL_RUNS"], "data")
    texts.mkdir(exist_ok=True)
    (home / "runs").mkdir()
    (home / "runs" / "data").symlink_to(texts, target_is_directory=True)
    return home


def installed(home):
    """The files of the environment, but what Python compiles."""
    files = (path for path in (home / "venv").rglob("*") if path.suffix != ".pyc")
    return sorted(str(path.relative_to(home)) for path in files if path.name != "__pycache__")


def nothing_is_left_behind(away):
    """Neither where the command was given, nor in its home, nor beside the package."""
    assert list((away / "empty").iterdir()) == list((away / "own").iterdir()) == []
    assert installed(away) == json.loads((away / "installed").read_text())


def run(away, *words, folder="empty", code=0):
    """What this command prints, from an empty folder and without a PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= dict(MINIMAL_RUNS=str(away / "runs"), HOME=str(away / "own"))
    done = subprocess.run(
        [away / "venv" / "bin" / "python", *words],
        cwd=away / folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_package_of_the_wheel_is_the_one_that_runs(away):
    where = run(away, "-c", "import minimal; print(minimal.__path__[0])").strip()
    assert pathlib.Path(where).is_relative_to(away / "venv")


@pytest.mark.slow
def test_the_plans_are_counted_far_from_the_checkout(away):
    plans = json.loads(run(away, "-m", "minimal.variants", "--size", "d12", "--json"))
    standard = next(row for row in plans if row["plan"] == "standard")
    assert len(plans) > 50 and standard["cache_bytes_per_token"] == 36_864


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_asks_for_little(away):
    (built,) = away.glob("*.whl")
    with zipfile.ZipFile(built) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
        (about,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        told = wheel.read(about).decode()
    assert [name for name in names if not name.startswith("minimal/")] == []
    needs = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", told, flags=re.M)
    hard = {"torch", "triton", "numpy", "tokenizers", "safetensors", "tqdm", "filelock"}
    assert set(needs) == hard
    assert "Description-Content-Type: text/markdown" in told and "Classifier: " in told


@pytest.mark.slow
def test_a_model_is_trained_resumed_and_writes_text_far_from_the_checkout(away):
    out = str(away / "runs" / "bov")
    what = ["--plan", "bov", "--size", "nano", "--corpus", "stdlib", "--vocab", "512"]
    how = ["--steps", "10", "--batch", "4", "--quiet", "--save", "2", "--out", out]
    run(away, "-m", "minimal.train", *what, *how, "--minutes", "0", code=1)  # time is up
    assert "after 5,120 tokens" in run(away, "-m", "minimal.train", *what, *how)
    assert "def main" in run(away, "-m", "minimal.generate", out, "def main", "--tokens", "5")
    nothing_is_left_behind(away)


@pytest.mark.slow
def test_two_plans_are_compared_far_from_the_checkout(away):
    what = "--plans gqa --size nano --vocab 512 --batch 4 --match steps --budget 2 --seeds 0 1"
    told = run(away, "-m", "minimal.compare", *what.split())
    assert "gqa" in told and "lead over standard" in told
    assert "no figures without Matplotlib" in told
    nothing_is_left_behind(away)


def example():
    """README's system of one's own: the block of code that makes a Source."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    (found,) = [block for block in blocks if "(Source)" in block]
    return found


@pytest.mark.slow
def test_a_value_source_of_ones_own_is_a_file_of_25_lines(away):
    """From the class to a trained model, to text, to a paired comparison with standard."""
    code = example()
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    (away / "mine").mkdir()
    (away / "mine" / "mine.py").write_text(code)
    told = run(away, "mine.py", folder="mine")
    assert "lead over standard" in told and "mine  " in told
    assert {path.name for path in (away / "mine").iterdir()} == {"mine.py", "runs"}
    nothing_is_left_behind(away)
