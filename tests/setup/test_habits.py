"""Does what a stranger's machine reads hold? The container, the citation, the forms for issues."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
import yaml

import minimal
from tests.setup.conftest import ROOT
from tests.setup.test_make import FAKE

CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def steps():
    """[(word, rest)] of the Dockerfile."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


STEPS = {  # as a stranger's machine takes them: what builds it, then what starts it
    "the image": [
        *(shlex.split(rest) for word, rest in steps() if word == "RUN"),
        *(json.loads(rest) for word, rest in steps() if word == "CMD"),
    ],
    "the dev container": [
        shlex.split(CONTAINER[name]) for name in ("postCreateCommand", "postAttachCommand")
    ],
}


@pytest.fixture
def workdir(published, tmp_path):
    """What `COPY . .` leaves of a checkout in which somebody has worked already, and beside it a
    Python that only writes down how it was called."""
    context, inside = tmp_path / "checkout", tmp_path / "values"
    shutil.copytree(published, context)
    for path in (".venv/.ready", ".venv/bin/python", "work/00_start_here.ipynb"):
        (context / path).parent.mkdir(parents=True, exist_ok=True)
        (context / path).touch()
    lines = (context / ".dockerignore").read_text().splitlines()
    left_out = [line.removeprefix("**/") for line in lines if line and line[0] != "#"]
    shutil.copytree(context, inside, ignore=shutil.ignore_patterns(*left_out))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(FAKE)
    (tmp_path / "bin" / "python3").chmod(0o755)
    return inside


@pytest.mark.parametrize("where", STEPS)
def test_a_container_is_set_up_and_started_step_by_step(where, workdir, outside):
    """Each command runs, in order: the first installs the CPU build, the second installs nothing
    and opens JupyterLab where a browser outside can reach it."""
    path = f"{workdir.parent / 'bin'}{os.pathsep}{outside['PATH']}"
    calls = []
    for words in STEPS[where]:
        (workdir / "calls").write_text("")
        done = subprocess.run(
            words, cwd=workdir, env=outside | dict(PATH=path), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        calls.append((workdir / "calls").read_text().splitlines())
    create, start = calls
    installed = [call for call in create if " install " in call]
    assert "whl/cpu torch" in installed[0] and "-e .[course,test]" in installed[-1]
    assert not [call for call in start if " install " in call]
    assert start[-1].startswith("-m jupyterlab") and "--no-browser" in start[-1]
    assert where != "the image" or "--ip=0.0.0.0" in start[-1]


def test_the_image_has_a_python_that_the_set_up_takes_and_nothing_of_this_checkout():
    (image,) = [rest for word, rest in steps() if word == "FROM"]
    assert image == CONTAINER["image"]
    (tag,) = re.fullmatch(r"python:(\d+\.\d+\.\d+)@sha256:[0-9a-f]{64}", image).groups()
    low, high = re.search(
        r"\((3, 11)\) <= sys.version_info\[:2\] <= \((3, 14)\)", makefile()
    ).groups()
    as_pair = lambda text: tuple(map(int, re.split(r"\D+", text)))
    assert as_pair(low) <= as_pair(tag) <= as_pair(high)
    left_out = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "runs", "build", "node_modules"} <= set(left_out)


def test_which_python_it_takes_is_said_alike_everywhere():
    low, high = re.search(r"not \((3, 11)\) <= .* <= \((3, 14)\)", makefile()).groups()
    versions = [f"3.{minor}" for minor in range(int(low.split()[1]), int(high.split()[1]) + 1)]
    told = re.compile(r"Python\s+(3\.\d+)\s+to\s+(3\.\d+)")
    for name in ("README.md", "Makefile", "constraints.txt"):
        said = set(told.findall((ROOT / name).read_text()))
        assert said == {(versions[0], versions[-1])}, name
    kinds = [kind.rpartition(" ")[2] for kind in project()["classifiers"] if "Python :: 3." in kind]
    assert kinds == versions and project()["requires-python"] == f">={versions[0]}"


def makefile():
    return (ROOT / "Makefile").read_text()


KEYS = set(  # of a CITATION.cff of version 1.2.0
    "abstract authors cff-version commit contact date-released doi identifiers keywords license "
    "license-url message preferred-citation references repository repository-artifact "
    "repository-code title type url version".split()
)


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_is_valid_and_names_what_the_course_reads():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited) <= KEYS
    assert all({"authors", "title", "type"} <= set(one) for one in cited["references"])
    assert {one["type"] for one in cited["references"]} <= {"article", "blog", "report"}
    # a list of licences would be a choice between them
    assert project()["license"].split(" AND ")[0] == cited["license"]
    sources = json.loads((ROOT / "notebooks" / "evidence" / "published.json").read_text())[
        "sources"
    ]
    read = [about["title"] for name, about in sources.items() if name != "frontier"]
    assert sorted(one["title"] for one in cited["references"]) == sorted(read)


def test_version_and_date_are_the_same_wherever_they_are_told():
    """While changes wait for a release, the changelog begins with them."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    news = re.findall(r"^## \[(.*?)\](?: - (.*))?", (ROOT / "CHANGELOG.md").read_text(), re.M)
    version, date = next(row for row in news if row[0] != "Unreleased")
    assert version == project()["version"] == cited["version"] == minimal.__version__
    assert date == str(cited["date-released"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_asks_for_something(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"] and form["description"]
    kinds = {"input", "textarea"}
    assert form["body"] and all(one["type"] in kinds for one in form["body"])
    assert all(one["attributes"]["label"] for one in form["body"])


def test_there_is_a_form_for_each_thing_that_readme_names():
    assert [path.stem for path in FORMS] == ["fault", "question", "text"]
