"""Does a translated README follow README? In links, commands, numbers and minutes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRANSLATED = sorted(ROOT.glob("README.*.md"))
MARKED = re.compile(r"[*−\d.]+<!--= .*? -->")  # a number of the records, and what it names
MINUTES = re.compile(r"\| (\d+) \| (\d+) \| (\d+) \|")
COMMAND = re.compile(r"^    (git clone|make \w+)", flags=re.M)
TARGET = re.compile(r"\]\((.*?)\)|src(?:set)?=\"(.*?)\"", flags=re.S)
OWN = {"README.md", "README.md#a-value-source-of-your-own", "CONTRIBUTING.md#to-translate"}


def told(text):
    """What no language changes: {what: all of it, in the order of the page}. The example of code
    stands in README alone."""
    text = re.sub(r"```python.*?```", "", text, flags=re.S)
    return dict(
        numbers=[mark.replace("*", "") for mark in MARKED.findall(text)],
        minutes=MINUTES.findall(text),
        commands=COMMAND.findall(text),
        headings=re.findall(r"^#+(?= )", text, flags=re.M),
        targets={"".join(found) for found in TARGET.findall(text)},
    )


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: path.name)
def test_a_translation_holds_what_no_language_changes(path):
    english = (ROOT / "README.md").read_text(encoding="utf-8")
    whole, theirs = told(english), told(path.read_text(encoding="utf-8"))
    assert theirs.pop("targets") - OWN == whole.pop("targets") - {path.name}
    assert theirs == whole
    assert f"]({path.name})" in english, "a reader of README finds it"


def test_a_translation_that_fell_behind_is_seen():
    was = "# A\n\n    make lab\n\n1.5<!--= lead a --> of [b](c.md)\n| 1 | 2 | 3 |\n"
    for old, new in (("1.5", "1.6"), ("c.md", "d.md"), ("| 2 |", "| 4 |"), ("make lab", "make x")):
        assert told(was) != told(was.replace(old, new))
    assert told(was) != told(was + "## B\n") and told(was) == told(was.replace("of", "von"))


def test_there_is_one():
    assert TRANSLATED
