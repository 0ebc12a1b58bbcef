"""Is everything that the package needs in its wheel? It is built, and used far from here."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest


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
    (home / "empty").mkdir()
    return home


def run(away, *words):
    """What this command prints, from an empty folder and without a PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["MINIMAL_RUNS"] = str(away / "runs")
    done = subprocess.run(
        [away / "venv" / "bin" / "python", *words],
        cwd=away / "empty",
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
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
def test_ten_steps_are_trained_and_text_is_written_far_from_the_checkout(away):
    what = ["--plan", "bov", "--size", "nano", "--corpus", "stdlib", "--vocab", "512"]
    how = ["--steps", "10", "--batch", "4", "--quiet", "--out", str(away / "bov")]
    run(away, "-m", "minimal.train", *what, *how)
    assert "def main" in run(away, "-m", "minimal.generate", str(away / "bov"), "def main")
