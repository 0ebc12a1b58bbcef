"""What is in the package, and in which order is it read? Its docstrings, signatures and source.

They are read from the files: nothing is imported, nothing retyped.
"""

import ast
import functools
import html
import re
import textwrap

from notebooks.run import ROOT
from slides import page as cells
from slides.labels import say

HANG = 18  # letters by which a long line is set in at most: a phone has some 38

# room -> what is read first in it; the rest follows by name, and a room's own map comes before all
READ_FIRST = {
    "": "__init__ gpt variants train generate evaluate analysis command",
    "model": "values tape attention attend cache residual transformer layers plan config init",
    "kernels": "reference gather dense forward backward decode histogram",
    "training": "run loop recipes optim",
    "data": "corpora tokenizer packing",
    "encoder": "bert bypass pretrain finetune",
    "compare": "comparison runs",
    "bench": "bench",
}


@functools.cache
def rooms():
    """[(room, what its line in the package's map says, its files)], as the package tells them."""
    told = ast.get_docstring(ast.parse(text_of(ROOT / "minimal" / "__init__.py")))
    found = [("", "Commands, and what every room shares", files_of(""))]
    for name, words in re.findall(r"^ {4}(\w+)/ +(.*)$", told, flags=re.M):
        found.append((name, words, files_of(name)))
    return found


def files_of(room):
    """The files of a room in reading order; of the package itself only those in no room."""
    folder = ROOT / "minimal" / room
    paths = folder.rglob("*.py") if room else folder.glob("*.py")
    first = READ_FIRST.get(room, "").split()

    def place(path):
        rank = first.index(path.stem) if path.stem in first else len(first)
        return (path.parent != folder, rank if path.parent == folder else 0, path.as_posix())

    return sorted((path for path in paths if text_of(path).strip()), key=place)


def modules():
    """Every file with something in it, in the order in which the package is read."""
    return [path for _, _, files in rooms() for path in files]


def rooms_and_files():
    """The package for the sidebar: its rooms, and below each its files."""
    found = [(say("all_rooms"), "api/index.html")]
    for _, _, files in rooms():
        found += [(inside(path), f"api/{page_name(path)}") for path in files]
    return found


def text_of(path):
    return path.read_text(encoding="utf-8")


def inside(path):
    """minimal/model/values.py -> model/values.py."""
    return path.relative_to(ROOT / "minimal").as_posix()


def page_name(path):
    """The name of its page: model.values.html; the package itself is minimal.html."""
    name = inside(path).removesuffix(".py").replace("/", ".")
    return f"{'minimal' if name == '__init__' else name}.html"


@functools.cache
def question(path):
    """The first paragraph of a module's docstring."""
    return (ast.get_docstring(ast.parse(text_of(path))) or "").split("\n\n")[0]


# ---- words ---------------------------------------------------------------------------------------


def with_code(text):
    """A docstring's text; what it sets in backticks is code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


def said(node):
    """A docstring as paragraphs: its line breaks are the editor's, except where things line up."""
    doc = ast.get_docstring(node)
    if not doc:
        return ""
    blocks = [block_html(block) for block in doc.split("\n\n") if block.strip()]
    return f'<div class="doc">{"".join(blocks)}</div>'


def block_html(block):
    if re.search(r"^ {2,}|\S {3,}\S|^[-*] |^(python -m|torchrun|make) ", block, flags=re.M):
        lines = textwrap.dedent(block).splitlines()
        return f"<pre>{''.join(map(aligned, lines))}</pre>"
    return f"<p>{with_code(' '.join(block.split()))}</p>"


def aligned(line):
    """A line of what lines up; where it is too long it goes on below its last column."""
    column = re.match(r" *\S.*? {3,}(?=\S)|[-* ]*", line).end()
    return f'<span class="line" style="--in:{min(column, HANG)}ch">{html.escape(line)}\n</span>'


# ---- one module ----------------------------------------------------------------------------------


def public(nodes, kinds):
    return [node for node in nodes if isinstance(node, kinds) and not node.name.startswith("_")]


def signature(node):
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    return f"{node.name}({ast.unparse(node.args)})"


def source(node, lines):
    """The code of a function or class, decorators included, behind a click."""
    start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    code = "\n".join(lines[start - 1 : node.end_lineno])
    where = f"lines {start} to {node.end_lineno}"
    return (
        f'<details class="code"><summary>Source, {where}</summary>{cells.code_html(code)}</details>'
    )


def entry(node, lines, owner=""):
    level, name = ("h3", f"{owner}.{node.name}") if owner else ("h2", node.name)
    told = html.escape(signature(node))
    parts = [
        f'<{level} id="{name}" data-label="{name}"><code>{told}</code></{level}>',
        said(node),
    ]
    if not owner:
        parts.append(source(node, lines))
    if isinstance(node, ast.ClassDef):
        parts += [
            entry(method, lines, node.name)
            for method in public(node.body, ast.FunctionDef)
            if ast.get_docstring(method)
        ]
    return "\n".join(parts)


def module(path):
    """One module as the body of a page."""
    tree, lines = ast.parse(text_of(path)), text_of(path).splitlines()
    listed = public(tree.body, (ast.FunctionDef, ast.ClassDef))
    whole = (
        f'<details class="code"><summary>The whole file, {len(lines)} lines</summary>'
        f"{cells.code_html(text_of(path))}</details>"
    )
    return "\n".join(
        [
            f"<h1>minimal/{inside(path)}</h1>",
            said(tree),
            whole,
            *(entry(node, lines) for node in listed),
        ]
    )


def index():
    """All rooms in reading order, each file with the question it answers."""
    parts = [
        "<h1>The package <code>minimal</code></h1>"
        "<p>Every file answers one question and is read from top to bottom. Start with "
        '<a href="model.values.html">model/values.py</a>, where every source of values stands, '
        'then <a href="variants.html">variants.py</a>, the table of all systems. Below, folders '
        "and files stand in the order in which they are read.</p>"
    ]
    for room, about, files in rooms():
        rows = ""
        for path in files:
            name = re.sub("([/_])", r"\1<wbr>", inside(path))  # may be parted on a phone
            link = f'<a href="{page_name(path)}">{name}</a>'
            lines = len(text_of(path).splitlines())
            asked = f'<td class="words">{with_code(question(path))}</td>'
            rows += f"<tr><td>{link}</td>{asked}<td>{lines}</td></tr>\n"
        title = f"{room}/" if room else "The package itself"
        parts.append(
            f'<h2 id="{room or "package"}">{title}</h2><p>{with_code(about)}</p><table><thead><tr>'
            '<th scope="col">file</th><th scope="col">question</th><th scope="col">lines</th></tr>'
            f"</thead><tbody>{rows}</tbody></table>"
        )
    return "\n".join(parts)
