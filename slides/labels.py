"""In which words does the site speak around its texts? In those of one table, slides/labels.toml.

A page asks for a word by its name; scripts find theirs in assets/labels.js. Another table, with the
same names, makes the site speak another language.
"""

import json
import re
import tomllib

from notebooks.run import ROOT

ENGLISH = ROOT / "slides" / "labels.toml"
BLANK = re.compile(r"\{(\w+)\}")
SAY = """window.say = (name, filled = {}) =>
  window.labels[name].replace(/\\{(\\w+)\\}/g, (blank, word) => filled[word] ?? blank);
"""


def read(path):
    """{name: words} of a table, and {name: words} of what scripts say."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: said for name, said in table.items() if name != "scripts"}, table.get(
        "scripts", {}
    )


PAGES, IN_SCRIPTS = read(ENGLISH)


def use(path):
    """From here on the words of this table, which has all names of the English one and no other."""
    for ours, theirs in zip((PAGES, IN_SCRIPTS), read(path), strict=True):
        if odd := misfit(ours, theirs):
            raise ValueError(f"{path.name}: {odd}")
        ours.update(theirs)


def misfit(ours, theirs):
    """The first thing in which two tables do not fit, as a sentence; empty where they do."""
    for name in sorted({*ours, *theirs}):
        if name not in theirs:
            return f"wanted {name!r}, found none: copy its line from {ENGLISH.name}"
        if name not in ours:
            return f"wanted the names of {ENGLISH.name}, found {name!r} too: take it out"
        wanted, got = (set(BLANK.findall(table[name])) for table in (ours, theirs))
        if wanted != got:
            blanks = ", ".join(sorted(wanted)) or "none"
            return f"{name!r}: wanted in braces {blanks}, got {', '.join(sorted(got)) or 'none'}"
    return ""


def say(name, **filled):
    return PAGES[name].format(**filled)


def script():
    """What scripts say, as assets/labels.js."""
    return f"window.labels = {json.dumps(IN_SCRIPTS, ensure_ascii=False, indent=1)};\n{SAY}"
