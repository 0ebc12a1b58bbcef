"""What is a drawing made of? Boxes, arrows and words as SVG, with alt text, for light and dark."""

import hashlib
import html
import re
from dataclasses import dataclass

from course.figures import check_alt, on_page
from course.slim import FAMILIES

# A drawing carries its own colours and paper: a page may be light while the system is dark. Meaning
# never hangs on colour: the value's arrow is thick, tables are ruled, routing is hatched.
STYLE = """
.paper { fill: #ffffff; stroke: none; }
.ink { stroke: #1b1f24; fill: none; stroke-width: 1.3; }
.faint { stroke: #6b737c; fill: none; stroke-width: 1; stroke-dasharray: 3 3; }
.value { stroke: #b03a0a; fill: none; stroke-width: 3.4; }
.box { stroke: #1b1f24; fill: #ffffff; stroke-width: 1.3; }
.content { stroke: #1b1f24; fill: #f7d9c8; stroke-width: 1.3; }
.routing { stroke: #1b1f24; fill: #dce8f4; stroke-width: 1.3; }
.quiet { stroke: #9aa2ab; fill: #f1f3f5; stroke-width: 1; }
.dark { fill: #1b1f24; stroke: none; }
.tip { fill: #1b1f24; }
.valuetip { fill: #b03a0a; }
text { font-family: FAMILIES; fill: #1b1f24; }
.soft { fill: #4d555e; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #14171a; }
  .ink, .box, .content, .routing { stroke: #e6e9ec; }
  .faint { stroke: #9aa2ab; }
  .value { stroke: #ff9d6b; }
  .box { fill: #1d2126; } .content { fill: #5a3420; } .routing { fill: #233a52; }
  .quiet { stroke: #6b737c; fill: #2a2f35; }
  .dark, .tip { fill: #e6e9ec; } .valuetip { fill: #ff9d6b; }
  text { fill: #e6e9ec; } .soft { fill: #b4bbc2; }
}
""".replace("FAMILIES", FAMILIES)
TIPS = """<defs>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4"
 markerWidth="7" markerHeight="7" orient="auto-start-reverse">
<path d="M0 0 L8 4 L0 8 z" class="tip"/></marker>
<marker id="valuetip" viewBox="0 0 8 8" refX="6" refY="4"
 markerWidth="3.6" markerHeight="3.6" orient="auto-start-reverse">
<path d="M0 0 L8 4 L0 8 z" class="valuetip"/></marker>
</defs>"""


def own_ids(name, body):
    """The body of a drawing, its tips and what refers to them named after it: a page holds many."""
    return re.sub(r'(?<=id=")(?=(?:value)?tip")|(?<=url\(#)(?=(?:value)?tip\))', f"{name}-", body)


def tip_of(kind):
    """The attribute that ends a line of this kind in an arrow."""
    return f' marker-end="url(#{"valuetip" if kind == "value" else "tip"})"'


@dataclass(frozen=True, repr=False)
class Drawing:
    """A finished picture. In a notebook the last line of a cell shows it, with its alt text."""

    svg: str
    alt: str

    def __post_init__(self):
        check_alt(self.alt)

    def __repr__(self):
        return f"[drawing] {self.alt}"  # where only text can be shown

    def _repr_html_(self):
        return on_page(self.svg.encode(), "svg+xml", self.alt)

    def for_slide(self, width=660, height=500):
        """The same drawing as large as this many pixels allow, no word below a slide's 20."""
        size = r'viewBox="-6 -6 (\S+) (\S+)" width="\S+" height="\S+"'
        wide, high = (float(number) for number in re.search(size, self.svg).groups())
        scale = min(width / wide, height / high)

        def larger(found):
            y, letter = float(found[1]), float(found[2])
            grown = max(letter, 20 / scale)
            return f'y="{y + (grown - letter) * 0.36:g}" font-size="{grown:g}"'

        svg = re.sub(r'y="(\S+)" font-size="(\S+)"', larger, self.svg)
        viewed = f'viewBox="-6 -6 {wide:g} {high:g}"'
        pixels = f'width="{wide * scale:.0f}" height="{high * scale:.0f}"'
        return Drawing(re.sub(size, f"{viewed} {pixels}", svg, count=1), self.alt)


class Canvas:
    """Collects SVG elements. Coordinates are pixels, y points down, later things lie above."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.parts = []

    def add(self, element):
        self.parts.append(element)

    def box(self, x, y, width, height, words="", kind="box", size=12, corner=4):
        """A labelled rectangle; returns its middle."""
        self.add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="{corner}" class="{kind}"/>'
        )
        middle = (x + width / 2, y + height / 2)
        if words:
            self.text(middle[0], middle[1], words, size)
        return middle

    def table(self, x, y, width, height, words="", rows=4):
        """A ruled box: rows by token id."""
        self.box(x, y, width, height, kind="content", corner=1)
        for row in range(1, rows):
            at = y + height * row / rows
            self.add(f'<path d="M{x:g} {at:g} h{width:g}" class="ink" stroke-width="0.8"/>')
        if words:
            self.text(x + width / 2, y - 7, words, 11)

    def text(self, x, y, words, size=12, anchor="middle", kind="", bold=False):
        """Words around (x, y), which is the middle of their height."""
        weight = ' font-weight="bold"' if bold else ""
        kind = f' class="{kind}"' if kind else ""
        self.add(
            f'<text x="{x:g}" y="{y + size * 0.36:g}" font-size="{size:g}" '
            f'text-anchor="{anchor}"{weight}{kind}>{html.escape(words)}</text>'
        )

    def path(self, points, kind="ink", tip=True):
        """A line through points, with an arrow tip at its end."""
        way = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        marker = tip_of(kind) if tip else ""
        self.add(f'<path d="{way}" class="{kind}" stroke-linejoin="round"{marker}/>')

    def curve(self, start, bend, end, kind="ink", tip=True):
        """An arc from start to end, pulled towards bend."""
        (x0, y0), (x1, y1), (x2, y2) = start, bend, end
        marker = tip_of(kind) if tip else ""
        self.add(f'<path d="M{x0:g} {y0:g} Q{x1:g} {y1:g} {x2:g} {y2:g}" class="{kind}"{marker}/>')

    def plus(self, x, y, radius=8, sign="+"):
        """A small circle in which things meet."""
        self.add(f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" class="box"/>')
        self.text(x, y, sign, 12)

    def drawing(self, alt, title=""):
        """All of it as one SVG document."""
        words = html.escape(alt)
        width, height = self.width + 12, self.height + 12
        paper = f'<rect x="-6" y="-6" width="{width:g}" height="{height:g}" class="paper"/>'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-6 -6 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img">'
        )
        title = f"<title>{html.escape(title)}</title>" if title else ""
        body = "\n".join([paper, *self.parts])
        body = f"{title}<desc>{words}</desc><style>{STYLE}</style>{TIPS}\n{body}"
        name = "d" + hashlib.sha256((head + body).encode()).hexdigest()[:8]  # after its content
        return Drawing(f"{head}{own_ids(name, body)}\n</svg>\n", alt)


def side_by_side(canvases, gap=14, columns=None):
    """Several canvases as one, in rows of `columns`."""
    columns = columns or len(canvases)
    rows = [canvases[at : at + columns] for at in range(0, len(canvases), columns)]
    width = max(sum(one.width + gap for one in row) - gap for row in rows)
    height = sum(max(one.height for one in row) + gap for row in rows) - gap
    whole, y = Canvas(width, height), 0
    for row in rows:
        x = 0
        for one in row:
            inside = "\n".join(one.parts)
            whole.add(f'<g transform="translate({x:g} {y:g})">\n{inside}\n</g>')
            x += one.width + gap
        y += max(one.height for one in row) + gap
    return whole
