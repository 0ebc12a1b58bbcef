"""How do the cells of an executed notebook become HTML? On pages and on slides alike."""

import base64
import functools
import html
import io
import re

from nbconvert.filters import ansi2html, markdown2html
from PIL import Image
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from notebooks.run import tags
from slides import letters


@functools.cache
def code_html(source):
    coloured = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f"<pre><code>{coloured.rstrip()}</code></pre>"


def markdown_html(source):
    """Markdown as notebooks write it: tables, fences, details, equations as typed."""
    made = (
        markdown2html(source)
        .replace('<div class="highlight">', "")
        .replace("</pre></div>", "</pre>")
        .replace("<th></th>", "<td></td>")  # a heading that says nothing is none
    )
    return equations_whole(options_whole(made))


CODE = re.compile(r"(<pre\b.*?</pre>|<code\b.*?</code>|<[^>]*>)", flags=re.S)
ENDED = re.compile(r"(?<![\\$])\$(?!\$)[^$\n]+\$[.,;:!?)]+|\((?=\$[^$])\$[^$\n]+\$[.,;:!?)]*")


def equations_whole(markup):
    """No full stop or comma begins a line since an equation stands before it."""
    kept = lambda found: f'<span class="whole">{found[0]}</span>'
    parts = CODE.split(markup)  # text, code or tag, text, …
    parts[::2] = [ENDED.sub(kept, text) for text in parts[::2]]
    return "".join(parts)


INLINE_CODE = re.compile(r"(?<!<pre>)<code>([^<]+)</code>")
HYPHENED = re.compile(r"(?<!\S)(?=\S*-)\S{1,24}(?!\S)")  # short enough for a phone


def options_whole(markup):
    """Inline code whose names and options, --like-this, are not parted at their hyphens."""
    kept = lambda name: f'<span class="whole">{name[0]}</span>'
    return INLINE_CODE.sub(lambda found: f"<code>{HYPHENED.sub(kept, found[1])}</code>", markup)


def output_html(output):
    """What a cell left behind: text, an error, or a figure with its alt text."""
    if output.output_type == "stream":
        return f'<pre class="output">{ansi2html(output.text.rstrip())}</pre>'
    if output.output_type == "error":
        told = html.escape(f"{output.ename}: {output.evalue}")
        return f'<pre class="output">{told}</pre>'
    if "text/html" in output.data:
        return letters.into_images(lighter(output.data["text/html"]))
    if "text/markdown" in output.data:
        return markdown_html(output.data["text/markdown"])
    if "image/png" in output.data:
        raise ValueError("a picture without alt text: show figures through figures.show(fig, alt)")
    return f'<pre class="output">{ansi2html(output.data.get("text/plain", ""))}</pre>'


PNG = re.compile(r'(?<=src="data:image/png;base64,)[^"]*')
COLOURS = 256  # a figure has a few, and the shades between them


def lighter(markup):
    """Figures with a palette: a third of the bytes, and the same to look at."""

    def turn(match):
        whole, made = base64.b64decode(match[0]), io.BytesIO()
        picture = Image.open(io.BytesIO(whole)).convert("RGB").quantize(COLOURS)
        picture.save(made, "PNG")
        smaller = min(whole, made.getvalue(), key=len)
        return base64.b64encode(smaller).decode()

    return PNG.sub(turn, markup)


def cell_html(cell):
    """A cell as a reader sees it; remove-input and remove-output are tags that nbconvert knows."""
    if "injected-parameters" in tags(cell):
        return ""
    if cell.cell_type == "markdown":
        return markdown_html(cell.source)
    parts = []
    if "remove-input" not in tags(cell) and cell.source.strip():
        parts.append(code_html(cell.source))
    if "remove-output" not in tags(cell):
        parts += map(output_html, cell.get("outputs", []))
    return "\n".join(parts)


def title(notebook, other):
    """The first heading of a notebook."""
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return next((line[2:] for line in words.splitlines() if line.startswith("# ")), other)


def plain(text):
    """Markdown without its marks: for titles and for what is read aloud."""
    return re.sub(r"[*`$]|\[([^\]]*)\]\([^)]*\)", r"\1", text)


def ends_sentence(text):
    """An equation may stand between two halves of one, and then the first ends in a word."""
    return text.rstrip("*_ \n").endswith((".", "?", "!", ":"))


COURSE = "Where do the values come from?"
MARK = (  # the thick arrow of the value, beside the course's name
    '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 15V4M3 8l5-6 5 6" fill="none" '
    'stroke="var(--mark)" stroke-width="3"/></svg>'
)
ICON = (  # the same on a tab
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M8 15V4M3 8l5-6 5 6' fill='none' stroke='%23c1440e' stroke-width='3'/%3E%3C/svg%3E"
)


def titled(name):
    """A page's name with the course's, as a tab and a list of results show it."""
    return COURSE if plain(name) == COURSE else f"{plain(name)} · {COURSE}"


def head(name, assets, *styles):
    """The head that every page shares: nothing in it comes from another machine."""
    sheets = ("fonts.css", "base.css", *styles)
    links = "\n".join(f'<link rel="stylesheet" href="{assets}/{sheet}">' for sheet in sheets)
    return f"""<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(titled(name))}</title>
<link rel="icon" href="{ICON}">
{links}
<script src="{assets}/light.js"></script><script src="{assets}/labels.js"></script>"""
