"""What does a text become when one thing about it is taken away? Corpora derived from others.

`stdlib:bare` is the standard library by the rule `bare`, `stdlib:bare:fresh` that text by one more;
where this file is imported, `corpora.find` knows these names.
Each rule reads one document and depends on nothing but its text, so the same text has the same
descendants everywhere:

bare      Python without comments and documentation strings
renamed   Python whose names change places: in a document a name stands for one thing, as before,
          but in the next one for another
fresh     Python whose uses of names change places: a name stands for nothing
shuffled  any text whose words change places; the space between them stays

`renamed` and `fresh` invent no name: a document keeps its names, `fresh` keeps also how often each
is used. (`renamed` text is longer by a tenth: names that are used much are short.) Keywords, and
all that is no name, stand where they stood. Names that f-strings hold are part of a string before
Python 3.12, and stay.
"""

import ast
import io
import keyword
import re
import sys
import tokenize

import numpy as np

from minimal.data import corpora
from minimal.data.documents import kept_corpus
from minimal.data.files import DataError, digest

FORMAT = 1  # raise it when a rule changes its text: old caches are then left alone

# words of the grammar in some places and names in others
SOFT = {"_", "case", "match", "type"}


def order(text, rule, size):
    """A permutation that the document decides, by the generator that never changes."""
    seed = int(digest(rule, text)[:8], 16)
    return np.random.RandomState(seed).permutation(size)


def replaced(text, spans, words):
    """The text with these words at these spans (start, end), which are in order."""
    pieces, at = [], 0
    for (start, end), word in zip(spans, words, strict=True):
        pieces += [text[at:start], word]
        at = end
    return "".join([*pieces, text[at:]])


# ---- Python --------------------------------------------------------------------------------------


def spans_of(text, wanted):
    """Where the tokens stand that are wanted(token): (start, end) in characters."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def place(row, column):
        return starts[row - 1] + column

    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(place(*token.start), place(*token.end)) for token in tokens if wanted(token)]


def is_name(token):
    free = not keyword.iskeyword(token.string) and token.string not in SOFT
    return token.type == tokenize.NAME and free


def renamed(text):
    spans = spans_of(text, is_name)
    uses = [text[start:end] for start, end in spans]
    names = sorted(set(uses))
    other = dict(zip(names, (names[i] for i in order(text, "renamed", len(names)))))
    return replaced(text, spans, [other[name] for name in uses])


def fresh(text):
    spans = spans_of(text, is_name)
    uses = [text[start:end] for start, end in spans]
    return replaced(text, spans, [uses[i] for i in order(text, "fresh", len(uses))])


def bare(text):
    text = without_docstrings(text)
    spans = spans_of(text, lambda token: token.type == tokenize.COMMENT)
    return without_lines(text, spans, [""] * len(spans))


def without_docstrings(text):
    """`pass` where nothing else is left of a body."""
    rows = text.split("\n")
    starts = np.cumsum([0] + [len(row) + 1 for row in rows])

    def place(row, column):  # ast counts columns in bytes
        return int(starts[row - 1]) + len(rows[row - 1].encode()[:column].decode())

    found = []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            start = place(first.lineno, first.col_offset)
            end = place(first.end_lineno, first.end_col_offset)
            before = text[text.rfind("\n", 0, start) + 1 : start]
            after = text[end:].split("\n", 1)[0].partition("#")[0]
            alone = not (before + after).strip()
            needless = isinstance(node, ast.Module) or len(node.body) > 1
            found.append((start, end, "" if alone and needless else "pass"))
    found.sort()
    return without_lines(text, [span[:2] for span in found], [word for *_, word in found])


def without_lines(text, spans, words):
    """`replaced`, less the lines that nothing is left of, and the space that ends a line."""
    mark = "\0"  # no text of ours holds it
    text = replaced(text, spans, [word or mark for word in words])
    text = re.sub(rf"^[ \t\f]*{mark}[ \t]*(\n|\Z)", "", text, flags=re.M)
    return re.sub(rf"[ \t]*{mark}", "", text)


# ---- any text ------------------------------------------------------------------------------------


def shuffled(text):
    spans = [found.span() for found in re.finditer(r"\S+", text)]
    words = [text[start:end] for start, end in spans]
    return replaced(text, spans, [words[i] for i in order(text, "shuffled", len(words))])


# ---- corpora -------------------------------------------------------------------------------------

PYTHON = dict(bare=bare, renamed=renamed, fresh=fresh)
RULES = dict(**PYTHON, shuffled=shuffled)


def derived(corpus, rule):
    """This corpus by this rule; made once. Documents that are no Python are left out."""
    errors = (SyntaxError, ValueError, tokenize.TokenError) if rule in PYTHON else ()

    def read():
        for text in corpus.read():
            try:
                new = RULES[rule](text)
            except errors:
                continue
            if new.strip():
                yield new

    key = digest(corpus.fingerprint, rule, sys.version_info[:2], FORMAT)
    return kept_corpus(f"{corpus.name}:{rule}", f"from-{key}", dict(train=read))


def by_name(name):
    """The corpus of a name such as stdlib:bare, of the texts on this machine; None of any other."""
    text, _, rule = name.rpartition(":")
    source = name.split(":")[0]
    if rule not in RULES or source not in ("stdlib", "books", "war-and-peace"):
        return None
    if rule in PYTHON and source != "stdlib":
        raise DataError(f"{rule} is a rule for Python, and {text} is prose: stdlib:{rule}")
    if source == "war-and-peace" and not corpora.war_and_peace().is_file():
        raise DataError(
            f"corpus {name} is derived from $MINIMAL_DATA/books/war-and-peace.txt: "
            "set MINIMAL_DATA to a folder that has it"
        )
    return derived(corpora.find(text), rule)


corpora.FINDERS.append(by_name)
