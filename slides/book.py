"""The whole course on paper: one PDF with contents, page numbers and every fold open.

python -m slides.book          build/course.pdf from the site under build/site: make pdf does both

Chapters are the site's own pages, so nothing is told twice: notebooks, homework, findings.
"""

import html
import posixpath
import re
import sys

from minimal.command import command, wait_for_imports

if __name__ == "__main__":
    wait_for_imports()

from course import doctor  # noqa: E402
from minimal.data.files import write_whole  # noqa: E402
from notebooks import run  # noqa: E402
from slides import links, page, search  # noqa: E402
from slides.browser import Browser  # noqa: E402
from slides.launch import TOOLS  # noqa: E402
from slides.shell import ANCHOR  # noqa: E402

SITE = run.ROOT / "build" / "site"
PDF = run.ROOT / "build" / "course.pdf"
MINUTES = 20  # to draw all equations and to print
UNPRINTED = re.compile(r"<(script|button)\b.*?</\1>|<input[^>]*>", flags=re.S)
NAMED = re.compile(r'(<h([1-3]) id=")([^"]*)("[^>]*>)(.*?)(</h\2>)', flags=re.S)
LINK = re.compile(r'<a\b([^>]*?)\bhref="([^"]*)"([^>]*)>(.*?)</a>', flags=re.S)
IMAGE = re.compile(r'(<(?:img|source)\b[^>]*?\b(?:src|srcset)=")(?!data:)([^"]*)(")')
STYLE = """
@page { size: A4; margin: 18mm 16mm 20mm; }
html { font-size: 15px; }
body { background: #fff; }
.chapter, .listed { break-before: page; }
h1, h2, h3 { break-after: avoid; }
.chapter :is(h1, h2, h3) { max-width: none; }
figure, tr, .guess { break-inside: avoid; }
figure img { min-width: 0 !important; max-width: 100% !important; max-height: 230mm; }
pre { white-space: pre-wrap; }
.scroll, figure { overflow: visible !important; }
.listed ol { list-style: none; padding-left: 1.2em; }
.first { padding-top: 70mm; text-align: center; }
.anchor-link { display: none !important; }
"""
FOOT = (
    '<div style="width:100%;text-align:center;font-size:9px;color:#555">'
    '<span class="pageNumber"></span></div>'
)
READY = """<script>
addEventListener("load", () => document.fonts.ready.then(() => {
  document.documentElement.dataset.ready = "yes";
}));
</script>"""


def chapters():
    """[(part, [addresses of its chapters])], in the order in which they are read."""
    homework = [f"homework/{path.parent.name}.html" for path in links.units()]
    return [
        ("Notebooks", [f"notebooks/{path.stem}.html" for path in run.chosen([])]),
        ("Homework", homework),
        ("Findings", ["evidence/index.html"]),
    ]


def short(at):
    """What the names within a chapter begin with."""
    return at.removesuffix(".html").replace("/", "-")


def whole(site):
    """The book as one page, to stand in the site's folder."""
    parts = [(part, [(at, *chapter(site, at)) for at in some]) for part, some in chapters()]
    names = {name for _, some in parts for _, _, headings in some for _, name, _ in headings}
    listed, bodies = [], []
    for part, some in parts:
        listed.append(f"<h3>{part}</h3>" + contents(some))
        for at, body, _ in some:
            text = linked(body, at, names)
            bodies.append(f'<section class="chapter" id="{short(at)}">{text}</section>')
    return f"""<!doctype html>
<html lang="en" data-theme="light"><head>
{page.head(page.COURSE, "assets", "site.css", "parts.css")}
<style>{STYLE}</style></head><body><main>
<div class="first"><h1>{page.COURSE}</h1><p>Notebooks, homework and findings.</p></div>
<nav class="listed"><h2>Contents</h2>{"".join(listed)}</nav>
{"".join(bodies)}
</main>{READY}</body></html>
"""


def chapter(site, at):
    """The text of a page, as paper takes it, and its headings: [(level, name, words)]."""
    path = site / at
    if not path.is_file():
        raise FileNotFoundError(f"book: wanted {at} under {site.name}/, found none: make site")
    body = search.main_of(path.read_text(encoding="utf-8"))
    for pattern in (TOOLS, ANCHOR, UNPRINTED):
        body = pattern.sub("", body)
    body = body.replace("<details", "<details open")
    headings = []

    def named(found):
        name = f"{short(at)}--{found[3]}"
        headings.append((found[2], name, re.sub(r"<[^>]+>", "", found[5]).strip()))
        return f"{found[1]}{name}{found[4]}{found[5]}{found[6]}"

    return NAMED.sub(named, body), headings


def contents(some):
    """A part's chapters and their sections, each a link."""
    rows = []
    for at, _, headings in some:
        title = next((words for level, _, words in headings if level == "1"), short(at))
        inner = "".join(
            f'<li><a href="#{name}">{words}</a></li>'
            for level, name, words in headings
            if level == "2"
        )
        rows.append(f'<li><a href="#{short(at)}"><strong>{title}</strong></a><ol>{inner}</ol></li>')
    return f"<ol>{''.join(rows)}</ol>"


def linked(body, at, names):
    """Links to other chapters lead there; what is not in the book stays as its words."""
    inside = {other for _, some in chapters() for other in some}

    def turn(found):
        before, link, after, words = found.groups()
        if re.match(r"[a-z]+:", link):
            return found[0]
        file, _, part = html.unescape(link).partition("#")
        to = posixpath.normpath(posixpath.join(posixpath.dirname(at), file)) if file else at
        if to not in inside:
            return words
        name = f"{short(to)}--{html.escape(part)}"
        goal = name if part and name in names else short(to)
        return f'<a{before}href="#{goal}"{after}>{words}</a>'

    place = lambda link: posixpath.normpath(posixpath.join(posixpath.dirname(at), link))
    body = LINK.sub(turn, body)
    return IMAGE.sub(lambda found: found[1] + place(found[2]) + found[3], body)


def write(site, pdf):
    """The PDF of a site; its page lies beside the others while it is printed."""
    paper = site / "book.html"
    write_whole(paper, whole(site))
    try:
        with Browser(seconds=60 * MINUTES) as browser:
            sheet = browser.page()
            sheet.open(paper)
            footer = dict(displayHeaderFooter=True, headerTemplate="<span></span>")
            footer |= dict(footerTemplate=FOOT, generateDocumentOutline=True)
            sheet.pdf(pdf, **footer)
    finally:
        paper.unlink()


@command("slides.book", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    if not doctor.browser():
        sys.exit("book: wanted a Chromium, found none: make doctor says more")
    write(SITE, PDF)
    print(f"printed {PDF.relative_to(run.ROOT)}, {PDF.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
