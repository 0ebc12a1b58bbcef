"""Does a derived text lose the one thing that its rule takes away, and nothing else?"""

import ast
import io
import re
import tokenize
from collections import Counter

import pytest

from evidence.measured import derived
from minimal.data import corpora
from minimal.data.files import DataError

CODE = '''#!/usr/bin/env python
"""What this module
is for."""
import os  # the system

class Thing(object):
    "A thing."

    size = "#1"

    def grow(self, by=1):
        """Grow."""  # and how
        # first this
        self.size += by; return self.size

    def empty(self):
        """Nothing
        but é words."""

    def one(self): "said"

match = [_ for _ in ("ä", Thing.size)]
if match:
    text = """kept
# no comment
"""
'''

BARE = '''import os

class Thing(object):

    size = "#1"

    def grow(self, by=1):
        self.size += by; return self.size

    def empty(self):
        pass

    def one(self): pass

match = [_ for _ in ("ä", Thing.size)]
if match:
    text = """kept
# no comment
"""
'''


def tokens(text):
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def names(text):
    return [token.string for token in tokens(text) if derived.is_name(token)]


@pytest.fixture(scope="module")
def sources():
    """Some of the standard library, and the text above."""
    return [CODE, *list(corpora.find("stdlib").read())[::40]]


def test_bare_python_has_no_comments_and_no_docstrings_and_keeps_everything_else(sources):
    assert derived.bare(CODE) == BARE
    for text in sources:
        new = derived.bare(text)
        assert not [t for t in tokens(new) if t.type == tokenize.COMMENT]
        before, after = (ast.walk(ast.parse(source)) for source in (text, new))
        kinds = (ast.Call, ast.BinOp, ast.FunctionDef, ast.ClassDef, ast.Import, ast.Return)
        count = [
            Counter(type(n) for n in nodes if isinstance(n, kinds)) for nodes in (before, after)
        ]
        assert count[0] == count[1]


@pytest.mark.parametrize("rule", ["renamed", "fresh"])
def test_a_renamed_file_still_parses_and_differs_in_names_alone(rule, sources):
    changed = 0
    for text in sources:
        new = derived.RULES[rule](text)
        ast.parse(new)
        before, after = tokens(text), tokens(new)
        assert [t.type for t in before] == [t.type for t in after]
        for old, own in zip(before, after):
            assert derived.is_name(old) == derived.is_name(own)
            if old.type in (tokenize.STRING, tokenize.COMMENT, tokenize.OP, tokenize.NUMBER):
                assert old.string == own.string
        assert set(names(new)) == set(names(text))
        changed += sum(a != b for a, b in zip(names(text), names(new))) / max(len(names(text)), 1)
    assert changed / len(sources) > 0.8


def stands_for(text, new):
    """{name: what it became}, all of them."""
    found = {}
    for old, own in zip(names(text), names(new), strict=True):
        found.setdefault(old, set()).add(own)
    return found


def test_consistently_renamed_a_name_stands_for_one_thing_in_a_document_but_not_in_the_next():
    first, second = "a, b, c, d, e, f = a + b, c, d, e, f, a\n", "f, e, d, c, b, a = 1\n"
    became = [stands_for(text, derived.renamed(text)) for text in (first, second)]
    for names_of in became:
        assert all(len(others) == 1 for others in names_of.values())
        assert len(set.union(*names_of.values())) == 6  # no two names become one
    assert became[0] != became[1]


def test_renamed_anew_at_each_use_a_name_stands_for_nothing_but_is_used_as_often(sources):
    for text in sources:
        new = derived.fresh(text)
        assert Counter(names(new)) == Counter(names(text))
    text = "value = other(value, thing)\n" * 50
    assert all(len(others) == 3 for others in stands_for(text, derived.fresh(text)).values())


def test_shuffled_words_are_the_same_words_in_the_same_space():
    text = "  One two\n\nthree, four-five.\tSix   seven eight nine\n"
    new = derived.shuffled(text)
    assert new != text and sorted(new.split()) == sorted(text.split())
    assert re.findall(r"\s+", new) == re.findall(r"\s+", text)


@pytest.mark.parametrize("rule", derived.RULES)
def test_a_rule_gives_the_same_text_at_every_call(rule):
    assert derived.RULES[rule](CODE) == derived.RULES[rule](CODE)


def test_the_permutation_of_a_document_is_the_same_everywhere():
    assert derived.order("a text", "fresh", 8).tolist() == [6, 7, 5, 4, 1, 0, 3, 2]
    assert derived.order("a text", "renamed", 8).tolist() == [4, 2, 3, 6, 0, 7, 5, 1]


# ---- as corpora by name --------------------------------------------------------------------------


def test_a_derived_corpus_is_made_once_and_cut_like_any_other(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "b.py").write_text("print 'no Python of today'\n")
    (tmp_path / "c.py").write_text("# nothing but this\n")
    monkeypatch.setitem(corpora.LOCAL, "stdlib", lambda: corpora.python_tree("stdlib", tmp_path))
    bare = corpora.find("stdlib:bare")
    assert (bare.name, bare.texts, list(bare.documents("train"))) == ("stdlib:bare", 1, [BARE])
    twice = corpora.find("stdlib:bare:renamed")
    assert list(twice.documents("train")) == [derived.renamed(BARE)]
    fingerprints = {corpora.find(f"stdlib{rule}").fingerprint for rule in ("", ":bare", ":fresh")}
    assert len(fingerprints | {twice.fingerprint}) == 4

    def never(text):
        raise AssertionError("made before")

    monkeypatch.setitem(derived.RULES, "bare", never)
    assert corpora.find("stdlib:bare").fingerprint == bare.fingerprint
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(AssertionError, match="made before"):  # another text is derived anew
        corpora.find("stdlib:bare")


def test_one_book_of_the_folder_has_a_name_and_rules_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIMAL_DATA", str(tmp_path))
    (tmp_path / "books").mkdir()
    for name in ("dombey", "war-and-peace"):
        (tmp_path / "books" / f"{name}.txt").write_text(f"Well, {name} of old and new.\n")
    assert list(corpora.find("books:dombey").documents("train")) == [
        "Well, dombey of old and new.\n"
    ]
    for name in ("books:dombey", "war-and-peace", "books"):
        plain, mixed = corpora.find(name), corpora.find(f"{name}:shuffled")
        assert mixed.name == f"{name}:shuffled" and mixed.texts == plain.texts
        assert sorted("".join(mixed.read()).split()) == sorted("".join(plain.read()).split())


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("books:nobody", "no nobody.txt in .MINIMAL_DATA/books .none.: name a book it has"),
        ("war-and-peace:shuffled", "derived from .MINIMAL_DATA/books/war-and-peace.txt: set"),
        ("books:dombey:bare", "bare is a rule for Python, and books:dombey is prose"),
        ("stdlib:rhymed", "unknown corpus 'stdlib:rhymed'"),
        ("tinystories:shuffled", "unknown corpus 'tinystories:shuffled'"),  # nothing is fetched
    ],
)
def test_a_rule_that_cannot_be_had_says_so(name, sentence, monkeypatch, tmp_path):
    monkeypatch.setenv("MINIMAL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=sentence):
        corpora.find(name)


def test_the_corpora_that_the_recorded_runs_read_are_untouched():
    for name in ("stdlib", "war-and-peace", "python:shuffled", "hub:name:bare"):
        assert derived.by_name(name) is None
