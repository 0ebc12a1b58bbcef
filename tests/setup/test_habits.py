"""Does what a stranger's machine reads hold? The container, the citation, the forms for issues."""

import json
import re
import shlex
import tomllib

import pytest
import yaml

from tests.setup.conftest import ROOT

CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def steps():
    """[(word, rest)] of the Dockerfile."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


def asked():
    """Every call of make in the Dockerfile and in the dev container, as words."""
    found = [shlex.split(rest) for word, rest in steps() if word == "RUN"]
    found += [json.loads(rest) for word, rest in steps() if word == "CMD"]
    found += [shlex.split(CONTAINER[name]) for name in ("postCreateCommand", "postAttachCommand")]
    return found


def test_the_containers_commands_are_those_of_the_course(make, published, tmp_path):
    """make says what it would do in a clean copy, and the last command opens JupyterLab."""
    said = []
    for program, *words in asked():
        assert program == "make"
        done = make(published, "-n", *words)
        assert done.returncode == 0, done.stdout
        said.append(done.stdout)
    assert len(said) == 4
    for create, start in (said[:2], said[2:]):
        assert "whl/cpu" in create, "TORCH=cpu: no CUDA in the image"
        assert "jupyterlab" in start and "--no-browser" in start
    assert "--ip=0.0.0.0" in said[1], "a port of a container is reached from outside of it"


def test_the_image_has_a_python_that_the_set_up_takes_and_nothing_of_this_checkout():
    (image,) = [rest for word, rest in steps() if word == "FROM"]
    assert image == CONTAINER["image"]
    low, high = re.search(
        r"\((3, 11)\) <= sys.version_info\[:2\] <= \((3, 14)\)", makefile()
    ).groups()
    as_pair = lambda text: tuple(map(int, re.split(r"\D+", text)))
    assert as_pair(low) <= as_pair(image.removeprefix("python:")) <= as_pair(high)
    left_out = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "runs", "build", "node_modules"} <= set(left_out)


def makefile():
    return (ROOT / "Makefile").read_text()


def test_the_citation_is_of_this_version_and_names_what_the_course_reads():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors", "date-released"} <= set(cited)
    assert cited["version"] == project["version"]
    assert " AND ".join(cited["license"]) == project["license"]
    sources = json.loads((ROOT / "notebooks" / "evidence" / "published.json").read_text())[
        "sources"
    ]
    read = [about["title"] for name, about in sources.items() if name != "frontier"]
    assert sorted(one["title"] for one in cited["references"]) == sorted(read)


def test_the_changelog_begins_with_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    assert first in ("Unreleased", project["version"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_asks_for_something(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"] and form["description"]
    kinds = {"input", "textarea"}
    assert form["body"] and all(one["type"] in kinds for one in form["body"])
    assert all(one["attributes"]["label"] for one in form["body"])


def test_there_is_a_form_for_each_thing_that_readme_names():
    assert [path.stem for path in FORMS] == ["fault", "question", "text"]
