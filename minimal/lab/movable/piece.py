"""What is a piece to move? Sliders beside a picture, drawn by Python, moved by a script.

`compute` in Python says what every changing element of the picture is for given slider values, and
`script` says the same in JavaScript. A test in a browser moves the sliders and compares the two.
Without script (print, papermill, a reader) the picture stands as Python drew it.
"""

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minimal.lab.drawings.canvas import STYLE, TIPS, Canvas

LEFT, WIDE = 120, 420  # where bars begin, and how long the longest is
RUNTIME = (Path(__file__).parent / "runtime.js").read_text(encoding="utf-8")
FRAME = """
.movable { max-width: 46rem; font: 14px/1.45 "DejaVu Sans", Verdana, sans-serif; }
.movable .controls { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; margin: .3rem 0 .6rem; }
.movable label { display: inline-flex; align-items: center; gap: .5rem; min-height: 44px; }
.movable input[type=range] { width: 11rem; height: 32px; }
.movable select { font: inherit; min-height: 32px; }
.movable button { font: inherit; min-width: 5em; min-height: 44px; }
.movable output { min-width: 5.5em; font-variant-numeric: tabular-nums; }
.movable .picture { overflow-x: auto; }
.movable svg { max-width: none; height: auto; }
.movable :focus-visible { outline: 3px solid #b03a0a; outline-offset: 2px; }
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


def counted(low, high, unit=""):
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
    alt: str  # what it shows at its start

    def start(self):
        return {control.name: control.stops[control.start][0] for control in self.controls}

    def picture(self, values=None):
        canvas = Canvas(*self.size)
        self.draw(canvas, self.compute(values or self.start()))
        return canvas

    def __repr__(self):
        return f"[to move: {self.title}] {self.alt}"  # where only text can be shown

    def _repr_html_(self):
        width, height = self.size
        picture = "\n".join(self.picture().parts)
        stops = {
            control.name: [dict(value=value, words=words) for value, words in control.stops]
            for control in self.controls
        }
        alt, identity = html.escape(self.alt, quote=True), f"movable-{self.name}"
        # one <style> a piece: a page may hold one of them alone
        return (
            f'<div class="movable" id="{identity}" role="group" '
            f'aria-label="{html.escape(self.title)}">'
            f"<style>{FRAME}{scoped(STYLE)}</style>"
            f'<div class="controls">{"".join(c.html(self.name) for c in self.controls)}</div>'
            f'<div class="picture"><svg viewBox="-6 -6 {width + 12} {height + 12}" '
            f'width="{width + 12}" role="img" aria-label="{alt}">{TIPS}'
            f'<rect x="-6" y="-6" width="{width + 12}" height="{height + 12}" class="paper"/>'
            f"{picture}</svg></div></div>"
            f"<script>(() => {{\n{RUNTIME}\n"
            f'movable("{identity}", {json.dumps(stops, ensure_ascii=False)}, '
            f"(v) => {{\n{self.script.strip()}\n}});\n}})();</script>"
        )


def moving_text(canvas, x, y, key, moving, size=12, anchor="middle", bold=False):
    """A text that follows the controls."""
    weight = ' font-weight="bold"' if bold else ""
    canvas.add(
        f'<text x="{x:g}" y="{y + size * 0.36:g}" font-size="{size}" '
        f'text-anchor="{anchor}"{weight} '
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
    marker = ""
    if tip:
        marker = f' marker-end="url(#{"valuetip" if kind == "value" else "tip"})"'
    canvas.add(
        f'<path d="{moving[key]}" class="{kind}" data-key="{key}" data-attribute="d"{marker}/>'
    )
