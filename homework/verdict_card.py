"""How does a verdict look in a notebook? A card with a sign and a word, and the case that failed.

Right, not yet and an error of one's own differ in sign and word, so nobody needs colours to tell
them apart. Without a kernel, as in a terminal, the same sentences are printed, and nothing else.
"""

import html
from dataclasses import dataclass

import numpy as np

from homework.compare import dtype_of, name_of, spread, stacked, too_far
from minimal.training.progress import in_notebook

# word: (sign, colour). White on it, and it on either theme's ground, are told apart (tested).
LOOKS = {
    "right": ("✓", "#2e7d32"),
    "not yet": ("○", "#b45309"),
    "your own error": ("✗", "#c62828"),
}
ERRORS = ("raised", "time")  # of what may become of an answer, those that its own lines made
SIDE = 8  # rows and columns that a table of a case may have: 520 px of real numbers
KINDS = "biuf"  # of dtypes that a table shows
DIGITS = range(4, 10)
WHOSE = ("yours", "wanted")
CELL = "text-align:right;white-space:nowrap;padding:.1em .4em"
THIN = f"{CELL};font-weight:normal;font-style:italic"
FRAME = ";outline:2px solid currentColor;outline-offset:-2px;font-weight:bold"


def show(state, lines, table=""):
    """Say these sentences: on a card where a kernel shows HTML, else as text."""
    text = "\n".join(lines)
    if not in_notebook():
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": card(state, lines, table)}, raw=True)


def card(state, lines, table=""):
    word = "right" if state == "ok" else "your own error" if state in ERRORS else "not yet"
    sign, colour = LOOKS[word]
    first, *more = map(html.escape, lines)
    head = (
        f'<strong style="background:{colour};color:#fff;padding:.1em .5em;border-radius:3px">'
        f'<span aria-hidden="true">{sign}</span> {word}</strong> {first}'
    )
    told = "\n".join(
        f'<p style="margin:.3em 0;white-space:pre-wrap">{line}</p>' for line in (head, *more)
    )
    return (
        f'<div role="status" style="border-left:6px solid {colour};padding:.2em .8em;'
        "background:var(--jp-layout-color0,transparent);"
        f'color:var(--jp-content-font-color1,inherit)">\n{told}{table}\n</div>'
    )


# ---- the case that failed ------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """What is shown of an array: a matrix, a vector in rows, or a number; which of them differ, and
    where in the whole they stand."""

    array: np.ndarray
    far: np.ndarray
    place: tuple = ()

    def fits(self):
        if self.array.ndim < 2:
            return 0 < self.array.size <= SIDE * SIDE
        return self.array.ndim == 2 and self.array.size > 0 and max(self.array.shape) <= SIDE

    def rows(self):
        """[(what stands before a row, its numbers as (number, does it differ, is it the first)]."""
        first = np.flatnonzero(self.far)[:1]
        cells = [
            (number, far, at in first)
            for at, (number, far) in enumerate(zip(self.array.flat, self.far.flat, strict=True))
        ]
        matrix = self.array.ndim == 2
        width = self.array.shape[1] if matrix else SIDE
        starts = range(0, len(cells), width)
        return [(at // width if matrix else at, cells[at : at + width]) for at in starts]


def failing_case(exercise, part, seed, case, answer):
    """The first result that differs, beside the wanted one, as HTML; '' where it is too large, and
    where the inputs do not decide what is wanted. Only for cases that a learner may see."""
    if part.accept or part.make is None:
        return ""
    wanted = exercise.expected(part, seed, case)
    answer = spread(answer, len(wanted))
    answer = stacked(answer, wanted) if len(wanted) == 1 else answer
    dtype = dtype_of(exercise.cases(part, seed)[case])
    if len(answer) != len(wanted):
        return ""
    for at, pair in enumerate(zip(answer, wanted, strict=True)):
        if any(array.dtype.kind not in KINDS for array in pair):
            return ""
        if found := grids(*pair, dtype):
            which = f"result {at + 1}" if len(wanted) > 1 else ""
            asked = exercise.asked(part, seed, case).removeprefix("; ")
            shapes = [array.shape for array in pair]
            return tables(found, shapes, which, asked) if all(g.fits() for g in found) else ""
    return ""


def grids(got, wanted, dtype):
    """The two as grids, or the first matrix of them that differs; () where they agree."""
    if got.shape != wanted.shape:
        return tuple(Grid(x, np.zeros(x.shape, bool)) for x in (got, wanted))
    far = np.asarray(too_far(got, wanted, [name_of(got.dtype), dtype]))
    if not far.any():
        return ()
    place = tuple(int(x) for x in np.argwhere(far)[0][:-2])
    return tuple(Grid(np.asarray(x[place]), np.asarray(far[place]), place) for x in (got, wanted))


def tables(pair, shapes, which, asked):
    """Yours and wanted, with digits enough to tell the first numbers that differ apart."""
    apart = [grid.array[grid.far][0] for grid in pair if grid.far.any()]
    told = (n for n in DIGITS if len({in_digits(x, n) for x in apart}) > 1)
    digits = next(told, DIGITS[0])
    place = f"at {list(pair[0].place)}" if pair[0].place else ""
    yours, wanted = (
        grid_html(grid, ", ".join(filter(None, [whose, f"shape {shape}", which, place])), digits)
        for grid, whose, shape in zip(pair, WHOSE, shapes, strict=True)
    )
    sign = " ≠ differs, and the frame is around the first." if apart else ""
    about = html.escape(f"{asked[:1].upper()}{asked[1:]}{'.' if asked else ''}{sign}".strip())
    return (
        f'\n<p style="margin:.5em 0 .2em">{about}</p>\n<div style="display:flex;flex-wrap:wrap;'
        f'align-items:flex-start;gap:.5em 2em;overflow-x:auto">{yours}\n{wanted}</div>'
    )


def grid_html(grid, caption, digits):
    head, body = "", ""
    for start, cells in grid.rows():
        before = f'<th scope="row" style="{THIN}">{start}</th>' if grid.array.ndim else ""
        body += f"<tr>{before}{''.join(cell_html(*cell, digits) for cell in cells)}</tr>"
    if grid.array.ndim:
        columns = range(min(grid.array.shape[-1], SIDE))
        names = "".join(f'<th scope="col" style="{THIN}">{i}</th>' for i in columns)
        head = f"<thead><tr><td></td>{names}</tr></thead>"
    return (
        '<table style="margin:0;width:auto;border-collapse:collapse;'
        'font-variant-numeric:tabular-nums"><caption style="text-align:left;padding:0 .4em">'
        f"{html.escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"
    )


def cell_html(number, far, first, digits):
    """One number; the sign before it is read aloud as "not equal"."""
    sign, frame = "≠ " if far else "", FRAME if first else ""
    return f'<td style="{CELL}{frame}">{sign}{html.escape(in_digits(number, digits))}</td>'


def in_digits(number, digits):
    return f"{number:.{digits}g}" if number.dtype.kind == "f" else str(number)
