"""What is in the package? An API reference of its own docstrings and signatures.

They are read from the source: nothing is imported, nothing retyped.
"""

import ast
import html
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def modules():
    return [
        path
        for path in sorted((ROOT / "minimal").rglob("*.py"))
        if path.read_text(encoding="utf-8").strip()
    ]


def inside(path):
    """minimal/model/values.py -> model/values.py."""
    return path.relative_to(ROOT / "minimal").as_posix()


def page(path):
    """The name of its page: model.values.html; the package itself is minimal.html."""
    name = inside(path).removesuffix(".py").replace("/", ".")
    return f"{'minimal' if name == '__init__' else name}.html"


def question(path):
    """The first paragraph of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]


def public(nodes, kinds):
    return [node for node in nodes if isinstance(node, kinds) and not node.name.startswith("_")]


def signature(node):
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    return f"{node.name}({ast.unparse(node.args)})"


def words(text):
    """A docstring's text; what it sets in backticks is code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


def said(node):
    doc = ast.get_docstring(node)
    return f'<div class="doc">{words(doc)}</div>' if doc else ""


def entry(node, owner=""):
    level, name = ("h3", f"{owner}.{node.name}") if owner else ("h2", node.name)
    parts = [
        f'<{level} id="{name}"><code>{html.escape(signature(node))}</code></{level}>',
        said(node),
    ]
    if isinstance(node, ast.ClassDef):
        parts += [
            entry(method, node.name)
            for method in public(node.body, ast.FunctionDef)
            if ast.get_docstring(method)
        ]
    return "\n".join(parts)


def module(path):
    """One module as the body of a page."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    listed = public(tree.body, (ast.FunctionDef, ast.ClassDef))
    index = " · ".join(f'<a href="#{node.name}">{node.name}</a>' for node in listed)
    return "\n".join(
        [
            f"<h1>minimal/{inside(path)}</h1>",
            said(tree),
            f"<p>{index}</p>" if index else "",
            *map(entry, listed),
        ]
    )


def index():
    """All modules, each with the question it answers."""
    rows = ""
    for path in modules():
        link = f'<a href="{page(path)}">{inside(path)}</a>'
        lines = len(path.read_text(encoding="utf-8").splitlines())
        rows += f"<tr><td>{link}</td><td>{words(question(path))}</td><td>{lines}</td></tr>\n"
    return (
        "<h1>The package <code>minimal</code></h1>"
        "<p>Every file answers one question and is read from top to bottom. Start with "
        '<a href="model.values.html">model/values.py</a>, the seam, then '
        '<a href="variants.html">variants.py</a>, the table of plans.</p>'
        "<table><thead><tr><th>file</th><th>question</th><th>lines</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
