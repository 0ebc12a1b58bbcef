"""Which English does every machine with Python have? Python's own manual.

`manual` is what Python says of itself in prose: the chapters of its reference that `help()` shows
(pydoc_data.topics), and the documentation strings of its library, a document a module. It is the
second text of the course, for whoever has no books: English about Python, beside `stdlib`, Python.
"""

import ast
import importlib.util
import inspect
import sys

from minimal.data.documents import kept_corpus, stdlib
from minimal.data.files import digest

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TOPICS = "pydoc_data.topics"
TEXT_FORMAT = 1  # raise it when the same Python would give another text


def docstrings(source):
    """The documentation strings of a module in the order of its lines, as `help()` indents them."""
    try:
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED)]
    except (SyntaxError, ValueError):  # templates and the like, that are no Python
        return []
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    found = (ast.get_docstring(node) for node in nodes)
    return [text for text in found if text]


def topics():
    """The chapters of the reference, {name: text}; none where a Python comes without them."""
    if importlib.util.find_spec(TOPICS) is None:
        return {}
    return dict(importlib.import_module(TOPICS).topics)


def manual():
    """Chapters and modules, a document each, mixed in an order that is the same everywhere."""
    library, chapters = stdlib(), topics()

    def read():
        told = ["\n\n".join(docstrings(source)) for source in library.read()]
        told += [inspect.cleandoc(text) for text in chapters.values()]
        return sorted((text for text in told if text.strip()), key=digest)

    made_of = library.fingerprint, sorted(chapters.items()), sys.version_info[:2], TEXT_FORMAT
    return kept_corpus("manual", f"from-{digest(*made_of)}", dict(train=read))
