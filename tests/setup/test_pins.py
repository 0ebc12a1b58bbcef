"""Do pyproject.toml, constraints.txt and environment.yml agree, and is that what is installed?"""

import hashlib
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(lines):
    return {canonicalize_name(need.name): need for need in map(Requirement, lines)}


PINS = requirements(
    line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"
)
HASHES = (ROOT / "hashes.txt").read_text(encoding="utf-8")
OURS = ("compare", "course", "test")  # what `make setup` installs
OPTIONAL = ("hub", "parity")  # what it installs where EXTRAS names it
DIRECT = requirements(
    [*PROJECT["dependencies"], *(line for extra in OURS for line in EXTRAS[extra])]
)
DIRECT.pop("minimal")  # the extra `course` names two others


def pinned(name):
    (specifier,) = PINS[name].specifier  # one ==version a line
    assert specifier.operator == "=="
    return specifier.version


def test_every_dependency_has_one_pin_and_it_lies_in_the_range():
    asked = [line for extra in OPTIONAL for line in EXTRAS[extra]]
    for name, need in (DIRECT | requirements(asked)).items():
        assert pinned(name) in need.specifier, f"{need} against {PINS[name]}"
        assert str(PINS[name].marker) == str(need.marker), name


def test_every_package_takes_every_python_that_set_up_takes():
    """From 3.11.0 on: Debian's is 3.11.2."""
    refused = {}
    for package in importlib.metadata.distributions():
        wanted = SpecifierSet(package.metadata["Requires-Python"] or "")
        for version in (f"3.{minor}.{micro}" for minor in range(11, 15) for micro in range(20)):
            if version not in wanted:
                refused.setdefault(version, []).append(package.name)
    fits = re.search(r"^fits +:= (.*)$", (ROOT / "Makefile").read_text(), re.M)[1]
    for version in ("3.10.9", "3.11.0", "3.14.0", "3.14.1", "3.14.2", "3.15.0", *refused):
        number = tuple(map(int, version.split(".")))
        with pytest.raises(SystemExit) as end:
            exec(fits.replace("sys.version_info", repr(number)), {})
        assert end.value.code == (number in [(3, 14, 1), (3, 10, 9), (3, 15, 0)]), version
    assert set(refused) <= {"3.14.1"}, refused


def test_every_pin_has_its_hashes_but_that_of_torch_which_comes_in_several_builds():
    """uv refuses a file with another one."""
    pin = re.compile(
        r"^(\S+==[^\\\n]*?)(?: \\)?\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)*)", re.M
    )
    found = {str(Requirement(line)): hashes for line, hashes in pin.findall(HASHES)}
    named = {canonicalize_name(Requirement(line).name): line for line in found}
    assert {name: Requirement(line) for name, line in named.items()} == PINS
    assert [line for line, hashes in found.items() if not hashes] == ["torch==2.13.0"]
    assert all(line.startswith("#") for line in pin.sub("", HASHES).splitlines()), "nothing else"


def test_a_file_with_another_hash_is_refused(tmp_path):
    """By the uv that set-up calls, as set-up calls it: of a wheel in a folder, without an index."""
    pytest.importorskip("uv")  # conda's way has none
    wheel = tmp_path / "nothing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        about = "Metadata-Version: 2.1\nName: nothing\nVersion: 1.0\n"
        made.writestr("nothing-1.0.dist-info/METADATA", about)
        kind = "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        made.writestr("nothing-1.0.dist-info/WHEEL", kind)
        made.writestr("nothing-1.0.dist-info/RECORD", "")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    uv = [sys.executable, "-m", "uv", "pip", "install", "--target", tmp_path / "made", "-q"]
    uv += ["--no-cache", "--no-index", "--find-links", tmp_path, "-c", tmp_path / "pins", "nothing"]
    for digest, code in ((right[::-1], 1), (right, 0)):
        (tmp_path / "pins").write_text(f"nothing==1.0 \\\n    --hash=sha256:{digest}\n")
        done = subprocess.run(uv, capture_output=True, text=True)
        assert done.returncode == code and ("Hash mismatch" in done.stderr) == bool(code)


def test_what_builds_the_package_is_pinned_too():
    """pip builds in an environment of its own, which no -c constraints.txt reaches."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert build == [str(PINS["setuptools"])]


def test_every_list_of_pins_is_watched():
    """An advisory about one of them reaches nobody who is not asked to look."""
    watched = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    lists = {"github-actions": ".github/workflows", "pip": "constraints.txt"}
    lists |= {"npm": "package-lock.json", "docker": "Dockerfile"}
    assert {one["package-ecosystem"] for one in watched} == lists.keys()
    assert all((ROOT / path).exists() for path in lists.values())
    assert {one["directory"] for one in watched} == {"/"}
    assert {one["schedule"]["interval"] for one in watched} == {"monthly"}


def test_environment_yml_has_the_same_pins_for_the_same_packages():
    text = (ROOT / "environment.yml").read_text()
    conda = yaml.safe_load(text)
    assert conda["channels"] == ["conda-forge", "nodefaults"]
    *from_conda, last = conda["dependencies"]
    assert any(line.startswith("python=3.") for line in from_conda) and list(last) == ["pip"], (
        "pip block last"
    )
    options = [line for line in last["pip"] if line.startswith("-")]
    assert options[0] == "-c constraints.txt" and options[-1] == last["pip"][-1] == "-e ."
    listed = requirements(line for line in last["pip"] if not line.startswith("-"))
    assert listed == {name: PINS[name] for name in DIRECT}
    bare = [
        line for line in text.splitlines() if line.lstrip().startswith("- ") and "#" not in line
    ]
    assert [line.strip() for line in bare] == ["- conda-forge", "- nodefaults", "- pip:"], (
        "each says who needs it"
    )


def test_all_that_the_package_brings_along_is_pinned_except_the_libraries_that_come_with_torch():
    here, seen, open_ = default_environment(), set(), [("minimal", extra) for extra in OURS]
    while open_:
        name, extra = open_.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for need in map(Requirement, importlib.metadata.requires(name) or []):
            if need.marker is None or need.marker.evaluate(here | {"extra": extra}):
                open_ += [(canonicalize_name(need.name), wanted) for wanted in need.extras | {""}]
    brought = {name for name, _ in seen} - {"minimal"}
    assert len(brought) > 100
    assert {name for name in brought if not name.startswith(("nvidia-", "cuda-"))} <= PINS.keys()
