"""What is a piece to move? Sliders beside a picture, drawn by Python, moved by a script.

`compute` in Python says what every changing element of the picture is for given slider values, and
`script` says the same in JavaScript. A test in a browser moves the sliders and compares the two.
Without script (print, papermill, a reader) the picture stands as Python drew it.

Where a picture has no room, on a phone, each `part` of it has another place: what stood side by
side stands one below the other, bars are shorter, and no letter is smaller. Sentences stand below
the picture, as text that breaks its lines.
"""

import html
import json
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from course.drawings.canvas import STYLE, TIPS, Canvas, own_ids, tip_of

LEFT, WIDE = 120, 420  # where bars begin, and how long the longest is
PHONE = 306  # how wide a picture is on a phone
PHONE_LEFT = 64  # where its bars begin there
EDGE = 6  # of paper around a picture
RUNTIME = (Path(__file__).parent / "runtime.js").read_text(encoding="utf-8")
FRAME = """
.movable { max-width: 46rem; font: 14px/1.45 "DejaVu Sans", Verdana, sans-serif; }
.movable .controls { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; margin: .3rem 0 .6rem; }
.movable label { display: inline-flex; align-items: center; gap: .5rem; min-height: 44px; }
.movable input[type=range] { width: 11rem; height: 32px; }
.movable select { font: inherit; min-height: 32px; }
.movable button { font: inherit; min-width: 5em; min-height: 44px; }
.movable output { min-width: 5.5em; font-variant-numeric: tabular-nums; }
.movable .picture { overflow-x: auto; container-type: inline-size; }
.movable p { margin: .2rem 0; font-variant-numeric: tabular-nums; }
.movable :focus-visible { outline: 3px solid #b03a0a; outline-offset: 2px; }
"""
NARROW = """
#{name} svg {{ width: {width}px; height: {height}px; max-width: none; }}
@container (max-width: {room}px) {{
#{name} svg {{ width: {phone}px; height: {tall}px; }}
#{name} .part {{ transform: translate(var(--right), var(--down)) scaleX(var(--wide)); }}
#{name} .part * {{ vector-effect: non-scaling-stroke; }}
#{name} .round {{
  transform-box: fill-box; transform-origin: center; transform: scaleX(calc(1 / var(--wide)));
}}
#{name} .spare {{ display: none; }}
}}
"""

DARK_PAGES = (  # the course's site, JupyterLab; elsewhere what the system asks for
    '[data-theme="dark"] .movable',
    '[data-jp-theme-light="false"] .movable',
)
UNDECIDED = ":root:not([data-theme]) body:not([data-jp-theme-light]) .movable"


def scoped(style):
    """The drawing's rules, for elements inside a piece only, dark where the page is dark."""
    light, dark = re.fullmatch(r"(.*)@media[^{]*\{(.*)\}\s*", style, flags=re.S).groups()
    asked = inside(UNDECIDED, dark)
    themed = "".join(inside(page, dark) for page in DARK_PAGES)
    return f"{inside('.movable', light)}{themed}@media (prefers-color-scheme: dark) {{{asked}}}"


def inside(place, rules):
    """Every selector of these rules, below `place`."""

    def below(found):
        return ", ".join(f"\n{place} {one.strip()}" for one in found[0].split(",")) + " "

    return re.sub(r"[^{}]+(?=\{)", below, rules)


@dataclass(frozen=True)
class Control:
    """A slider over `stops`, or a list to choose from: values, and the words that show them."""

    name: str
    label: str
    stops: tuple  # (value, words)
    start: int = 0  # index of the stop at which it stands first
    choose: bool = False
    run: bool = False  # with a button that moves the slider on by itself

    def html(self, piece):
        name, label = html.escape(self.name), html.escape(self.label)
        if self.choose:
            options = "".join(
                f'<option value="{at}"{" selected" if at == self.start else ""}>'
                f"{html.escape(words)}</option>"
                for at, (_, words) in enumerate(self.stops)
            )
            return f'<label>{label} <select data-control="{name}">{options}</select></label>'
        words = html.escape(self.stops[self.start][1])
        run = f'<button type="button" data-run="{name}">Run</button>' if self.run else ""
        return (
            f'<label>{label} <input type="range" min="0" max="{len(self.stops) - 1}" '
            f'value="{self.start}" data-control="{name}" aria-valuetext="{words}">'
            f'<output data-shown="{name}">{words}</output></label>{run}'
        )


def powers(low, high, unit=""):
    """Stops at the powers of two from 2^low to 2^high."""
    return tuple((2**n, f"{2**n:,}{unit}") for n in range(low, high + 1))


def shares(low, high, step, digits=2):
    """Stops from low to high."""
    many = round((high - low) / step)
    stops = (round(low + at * step, 6) for at in range(many + 1))
    return tuple((stop, f"{stop:.{digits}f}") for stop in stops)


def whole_numbers(low, high, unit=""):
    """Stops at every whole number from low to high."""
    return tuple((n, f"{n}{unit}") for n in range(low, high + 1))


def fixed(number, digits=2):
    """A number as both languages print it."""
    return f"{number:.{digits}f}"


@dataclass(frozen=True, repr=False)
class Piece:
    """Controls, a picture, and what moves in it."""

    name: str  # its id in the page, so one word
    title: str
    controls: tuple
    draw: Callable  # (canvas, moving): draws everything, moving holds compute's answer
    compute: Callable  # values by control -> {key: text or attribute}
    script: str  # the body of compute(v) in JavaScript
    size: tuple
    tall: int  # how high it is on a phone, where it is PHONE wide
    alt: str  # what it shows at its start
    says: tuple = ()  # keys of the sentences below the picture, the weightiest first
    caption: str = ""  # a sentence above it
    stressed: int = 1  # how many of the sentences are bold

    def start(self):
        return {control.name: control.stops[control.start][0] for control in self.controls}

    def picture(self, values=None):
        canvas = Canvas(*self.size)
        self.draw(canvas, self.compute(values or self.start()))
        return canvas

    def __repr__(self):
        return f"[to move: {self.title}] {self.alt}"  # where only text can be shown

    def _repr_html_(self):
        width, height = (side + 2 * EDGE for side in self.size)
        picture = own_ids(self.name, TIPS + "\n".join(self.picture().parts))
        moving = self.compute(self.start())
        caption = f"<p>{html.escape(self.caption)}</p>" if self.caption else ""
        sentences = "".join(
            text_line(key, moving, bold=at < self.stressed) for at, key in enumerate(self.says)
        )
        stops = {
            control.name: [dict(value=value, words=words) for value, words in control.stops]
            for control in self.controls
        }
        alt, identity = html.escape(self.alt, quote=True), f"movable-{self.name}"
        narrow = NARROW.format(
            name=identity,
            width=width,
            height=height,
            room=width - 1,
            phone=PHONE + 2 * EDGE,
            tall=self.tall + 2 * EDGE,
        )
        # one <style> a piece: a page may hold one of them alone
        return (
            f'<div class="movable" id="{identity}" role="group" '
            f'aria-label="{html.escape(self.title)}">'
            f"<style>{FRAME}{narrow}{scoped(STYLE)}</style>"
            f'<div class="controls">{"".join(c.html(self.name) for c in self.controls)}</div>'
            f"{caption}"
            f'<div class="picture"><svg width="{width}" height="{height}" '
            f'role="img" aria-label="{alt}">'
            f'<rect width="100%" height="100%" class="paper"/>'
            f'<g transform="translate({EDGE} {EDGE})">{picture}</g></svg></div>{sentences}</div>'
            f"<script>(() => {{\n{RUNTIME}\n"
            f'movable("{identity}", {json.dumps(stops, ensure_ascii=False)}, '
            f"(v) => {{\n{self.script.strip()}\n}});\n}})();</script>"
        )


@contextmanager
def part(canvas, right=0, down=0, wide=1):
    """What is drawn within stands elsewhere on a phone: moved, its width multiplied by `wide`."""
    place = f"--right:{right:g}px;--down:{down:g}px;--wide:{wide:.4g}"
    canvas.add(f'<g class="part" style="{place}">')
    yield
    canvas.add("</g>")


def text_line(key, moving, bold=False):
    """A line of text below the picture that follows the controls."""
    words = f'<span data-key="{key}">{html.escape(str(moving[key]))}</span>'
    return f"<p><strong>{words}</strong></p>" if bold else f"<p>{words}</p>"


def bar_row(canvas, y, words, key, moving, kind="content", number=""):
    """A name, a bar, and a number that stands after it: on a phone, below it."""
    with part(canvas, right=PHONE_LEFT - LEFT):
        canvas.text(LEFT - 10, y + 10, words, 13, "end")
    shorter = (PHONE - PHONE_LEFT) / WIDE
    with part(canvas, right=PHONE_LEFT - shorter * LEFT, wide=shorter):
        moving_bar(canvas, LEFT, y, 20, key, moving, kind)
    if number:
        with part(canvas, right=PHONE_LEFT - (LEFT + WIDE + 10), down=19):
            moving_text(canvas, LEFT + WIDE + 10, y + 10, number, moving, 12, "start")


def moving_text(canvas, x, y, key, moving, size=12, anchor="middle"):
    """A text that follows the controls."""
    canvas.add(
        f'<text x="{x:g}" y="{y + size * 0.36:g}" font-size="{size}" text-anchor="{anchor}" '
        f'data-key="{key}">{html.escape(str(moving[key]))}</text>'
    )


def moving_bar(canvas, x, y, height, key, moving, kind="content"):
    """A bar whose width follows the controls."""
    canvas.add(
        f'<rect x="{x:g}" y="{y:g}" height="{height:g}" rx="2" class="{kind}" '
        f'width="{moving[key]}" data-key="{key}" data-attribute="width"/>'
    )


def moving_path(canvas, key, moving, kind="ink", tip=True):
    """A line whose way follows the controls."""
    marker = tip_of(kind) if tip else ""
    canvas.add(
        f'<path d="{moving[key]}" class="{kind}" data-key="{key}" data-attribute="d"{marker}/>'
    )
