"""How do the cells of an executed notebook become HTML, on a page of the site and on a slide alike?"""

import html
import re

from nbconvert.filters import ansi2html, markdown2html
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from notebooks.run import tags


def code_html(source):
    return f"<pre><code>{highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()}</code></pre>"


def markdown_html(source):
    """Markdown as notebooks write it: tables, fences, details, equations left for MathJax."""
    return (
        markdown2html(source)
        .replace('<div class="highlight">', "")
        .replace("</pre></div>", "</pre>")
    )


def output_html(output):
    """What a cell left behind: text, an error, or a figure with its alt text."""
    if output.output_type == "stream":
        return f'<pre class="output">{ansi2html(output.text.rstrip())}</pre>'
    if output.output_type == "error":
        return (
            f'<pre class="output">{html.escape(output.ename)}: {html.escape(output.evalue)}</pre>'
        )
    if "text/html" in output.data:
        return output.data["text/html"]
    if "text/markdown" in output.data:
        return markdown_html(output.data["text/markdown"])
    if "image/png" in output.data:
        raise ValueError("a picture without alt text: show figures through look.show(fig, alt)")
    return f'<pre class="output">{ansi2html(output.data.get("text/plain", ""))}</pre>'


def cell_html(cell):
    """A cell as a reader should see it; tags remove-input and remove-output mean what they mean to nbconvert."""
    if "injected-parameters" in tags(cell):
        return ""
    if cell.cell_type == "markdown":
        return markdown_html(cell.source)
    source = (
        code_html(cell.source) if "remove-input" not in tags(cell) and cell.source.strip() else ""
    )
    outputs = [] if "remove-output" in tags(cell) else map(output_html, cell.get("outputs", []))
    return "\n".join([source, *outputs])


def title(notebook, other):
    """The first heading of a notebook."""
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return next((line[2:] for line in words.splitlines() if line.startswith("# ")), other)


def plain(text):
    """Markdown without its marks: for titles and for what is read aloud."""
    return re.sub(r"[*`$]|\[([^\]]*)\]\([^)]*\)", r"\1", text)


def head(name, assets, *styles):
    """The head that every page shares: nothing in it comes from another machine."""
    links = "\n".join(
        f'<link rel="stylesheet" href="{assets}/{style}">'
        for style in ("fonts.css", "base.css", *styles)
    )
    return f"""<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(plain(name))}</title>
<link rel="icon" href="data:,">
{links}
<script src="{assets}/math.js"></script>
<script src="{assets}/tex-svg-full.js" defer></script>"""
