"""What stands around the text of a page? Header, chapters, contents, neighbours, and its head."""

import html
import posixpath
import re

from course import formula
from slides import dark, page, preview
from slides.labels import say
from slides.links import relative

NAV = dict(  # part of the course -> where it begins
    course="index.html",
    slides="slides/index.html",
    homework="homework/index.html",
    evidence="evidence/index.html",
    package="api/index.html",
)
OWN = ("main", "chapters", "menu", "find", "theme")  # ids of what stands around every text
FOLDERS = dict(notebooks="course", slides="slides", homework="homework", evidence="evidence")


def shell(name, body, at, groups=(), before=None, after=None, broad=False, folded=False):
    """A whole page around its body. `groups`: (part of the course, [(name, address)]). `folded`: a
    phone shows the sections below their headings when it is asked to."""
    body, headings = anchored(boxed(dark.turned(body)))
    here = part(at)
    front = at == "index.html"
    chapters = sidebar(groups, at, here)
    kind = " ".join(["broad"] * broad + ["folded"] * folded + ["front"] * front)
    # the front page lists the chapters itself: there they wait behind the button of a phone
    return f"""<!doctype html>
<html lang="{say("language")}"><head>
{page.head(name, relative("assets", at), "site.css", "parts.css")}
{preview.tags(page.plain(name), body, at)}
</head><body class="{kind}">
<a class="skip" href="#main">{say("skip")}</a>
{header(at, here)}
<div class="page">
{"" if front else chapters}
{formula.drawn(on_this_page(headings))}
<main id="main" lang="en">
{formula.drawn(body)}
{pager(before, after, at)}
</main>
{chapters if front else ""}
</div>
<script src="{relative("assets/site.js", at)}" defer></script>
<script src="{relative("assets/find.js", at)}" defer></script>
<script src="{relative("assets/search.js", at)}" data-root="{relative(".", at)}" defer></script>
</body></html>
"""


def boxed(body):
    """A table that is wider than the window moves in a box of its own."""
    return re.sub(r"<table\b.*?</table>", r'<div class="scroll">\g<0></div>', body, flags=re.S)


def part(at):
    """The part of the course that a page belongs to."""
    return FOLDERS.get(posixpath.dirname(at), "package" if at.startswith("api/") else "course")


def header(at, here):
    links = ""
    for name, to in NAV.items():
        current = " aria-current=page" if name == here else ""
        links += f'<a class="part" href="{relative(to, at)}"{current}>{say(name)}</a>'
    return f"""<header><nav aria-label="{say("course")}">
<button id="menu" type="button" aria-controls="chapters"
 aria-expanded="false">{say("menu")}</button>
<a class="home" href="{relative("index.html", at)}">{page.MARK}{page.COURSE}</a>{links}
<button id="find" type="button" aria-label="{say("search_key")}"><span class="wide">{say("search")}
<kbd>/</kbd></span><svg class="narrow" viewBox="0 0 20 20" width="20" aria-hidden="true"><path
fill="none" stroke="currentColor" stroke-width="2"
d="M13 13l5 5M8.5 14.5a6 6 0 1 1 0-12 6 6 0 0 1 0 12z"/>
</svg></button><button id="theme" type="button" aria-label="{say("theme")}"><span
 class="wide">{say("theme")}</span><span class="narrow" aria-hidden="true">◐</span></button>
</nav></header>"""


def sidebar(groups, at, here):
    """The chapters of the whole course; the part that the reader is in stands open."""
    parts = []
    for name, chapters in groups:
        items = ""
        for word, to in chapters:
            current = ' aria-current="page"' if to == at else ""
            items += f'<li><a href="{relative(to, at)}"{current}>{escaped(word)}</a></li>'
        opened = " open" if name == here else ""
        parts.append(f"<details{opened}><summary>{say(name)}</summary><ul>{items}</ul></details>")
    return f'<nav id="chapters" aria-label="{say("chapters")}">{"".join(parts)}</nav>'


def escaped(text):
    return html.escape(page.plain(text))


def pager(before, after, at):
    """The neighbours of a page in its row."""
    if not before and not after:
        return ""
    steps = []
    for rel, near in (("prev", before), ("next", after)):
        if near:
            word, to = escaped(near[0]), relative(near[1], at)
            steps.append(f'<a href="{to}" rel="{rel}">{word}</a>')
        else:
            steps.append("<span></span>")
    return f'<nav class="pager" aria-label="{say("neighbours")}">{"".join(steps)}</nav>'


# ---- contents ------------------------------------------------------------------------------------

HEADING = re.compile(r"<h([23])([^>]*)>(.*?)</h\1>", flags=re.S)
ANCHOR = re.compile(r'<a class="anchor-link".*?</a>', flags=re.S)
ID = re.compile(r'\sid="([^"]*)"')


def anchored(body):
    """The body with a name and a link to itself on every heading; [(level, name, words)]."""
    headings, named = [], {}
    elsewhere = ID.findall(HEADING.sub("", body))
    taken = {*OWN, *elsewhere}
    # the links of a README are in small letters without marks, whatever the heading's name is
    plain = lambda name: name.lower().rstrip("?!.:")

    def turn(match):
        level, attributes, words = match[1], match[2], ANCHOR.sub("", match[3])
        found = ID.search(attributes)
        label = re.search(r'data-label="([^"]*)"', attributes)
        told = re.sub(r"<[^>]+>", "", words).strip()
        wish = found[1] if found else re.sub(r"\W+", "-", told.lower()).strip("-")
        name = free(wish, taken)
        taken.add(name)
        named.setdefault(plain(wish), name)  # of two headings the first
        if "<a " not in words:  # headings of cards are links to elsewhere
            headings.append((level, name, label[1] if label else told))
        rest = re.sub(r'\s*\b(id|data-label)="[^"]*"', "", attributes)
        # a word joiner: the mark of the link does not stand alone on a line
        sign = "&#8288;#"
        link = f'<a class="anchor-link" href="#{name}" aria-label="{say("link_here")}">{sign}</a>'
        return f'<h{level} id="{name}"{rest}>{words}{link}</h{level}>'

    def there(match):
        name = match[1]
        if name not in taken or name in OWN:
            name = named.get(plain(name), name)
        return f'href="#{name}"'

    body = HEADING.sub(turn, body)
    return re.sub(r'href="#([^"]+)"', there, body), headings


def free(name, taken):
    """An id is given once: the name, or the first of name-2, name-3, …"""
    tried, count = name, 1
    while tried in taken:
        count += 1
        tried = f"{name}-{count}"
    return tried


def on_this_page(headings):
    """What is on this page, for the margin; not worth the room where there is one heading."""
    if len(headings) < 2:
        return ""
    items = "".join(
        f'<li class="level{level}"><a href="#{name}">{words}</a></li>'
        for level, name, words in headings
    )
    return (
        f'<nav class="contents" aria-label="{say("contents")}"><details>'
        f"<summary>{say('contents')}</summary><ol>{items}</ol></details></nav>"
    )
