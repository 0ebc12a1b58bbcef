"""What does a reader of a notebook's page see, and what only after a click?

Answers to a prediction wait until they are asked for, also those that come after an exercise or in
a later section; parameters and imports, code of figures, of cells tagged hide-input and of sections
tagged deeper are folded; what is to be written is a box that says where.
"""

import ast
import collections
import html
import itertools
import re

from notebooks.run import tags
from slides import page
from slides.labels import say

PREDICT = "> **Predict.**"
GUESS = re.compile(r"^guess\w*(, *guess\w*)* *=.*\bNone\b.*$", flags=re.M)
GUESS_NAME = re.compile(r"\bguess\w*")
KEPT_AS = re.compile(r'data-(guess|said)="(\w+)"')
IMPORTS = re.compile(r"(import|from) \w")
CUT = re.compile(r"^(?=#+ |> \*\*Predict|> \*\*Your turn)", flags=re.M)  # what no fold may hide
SYSTEM_IS_DARK = "@media (prefers-color-scheme: dark)"  # what a piece to move asks
PAGE_IS_DARK = ':root[data-theme="dark"]'  # what it is asked here, where the reader may choose
PRINTED = re.compile(r'<pre class="output">(.*?)</pre>', flags=re.S)
FIGURE = re.compile(r"<figure\b([^>]*)>(.*?)</figure>", flags=re.S)
FITS, FITS_SMALL = 96, 104  # letters of a line in a fold: at 13 px, and at 12
FITS_TABLET = 80  # and on a tablet, in a fold within a fold
DRAWN = {"figures", "fig", "ax", "axes", "panel", "panels"}


def body(notebook, after_title=""):
    """All cells as HTML; `after_title` stands below the title."""
    cells = [cell for cell in notebook.cells if "injected-parameters" not in tags(cell)]
    parts = [lesson_cell(cells[0]).replace("</h1>", f"</h1>\n{after_title}", 1)]
    start = first_section(cells)
    parts += set_up(cells[1:start])
    waiting = ""  # a guess of the core whose answer comes after what goes deeper
    guesses = set()
    for deeper, some in runs(cells[start:]):
        shown, left = in_turn(some, "" if deeper else waiting, guesses)
        waiting = waiting if deeper else left
        inner = "\n".join(shown)
        if deeper:
            inner = fold(say("deeper", what=page_heading(some)), inner, "deeper")
        parts.append(inner)
    return figures_numbered(numbered("\n".join(parts)))


def figures_numbered(made):
    """Every figure has a number, and an address to send to somebody."""
    count = itertools.count(1)

    def turn(found):
        name = f"figure-{next(count)}"
        number = say("figure", number=name.partition("-")[2])
        caption = f'<figcaption><a href="#{name}">{number}</a></figcaption>'
        return f'<figure id="{name}"{found[1]}>{found[2]}{caption}</figure>'

    return FIGURE.sub(turn, made)


def first_section(cells):
    """Where the lesson begins, behind the title, a drawing, the parameters and the imports."""
    for at, cell in enumerate(cells[1:], 1):
        before = {"parameters", "remove-input"} & set(tags(cell)) or IMPORTS.match(cell.source)
        if cell.cell_type == "markdown" or not before:
            return at
    return len(cells)


def set_up(cells):
    """A drawing as it is, then what only a program needs in one fold, then what it printed."""
    drawn = [cell for cell in cells if "remove-input" in tags(cell)]
    rest = [cell for cell in cells if "remove-input" not in tags(cell)]
    code = "\n".join(lines_html(cell.source) for cell in rest)
    folded = [fold(say("set_up"), code, "code")] if rest else []
    return [*map(outputs_html, drawn), *folded, *filter(None, map(outputs_html, rest))]


def runs(cells):
    """Neighbours that are alike: [(tagged deeper?, cells)]."""
    found = []
    for cell in cells:
        deeper = "deeper" in tags(cell)
        if not found or found[-1][0] != deeper:
            found.append((deeper, []))
        found[-1][1].append(cell)
    return found


def page_heading(cells):
    """What a fold is about: its first section, and how many follow; without one what it makes."""
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    headings = re.findall(r"^#+ (.*?)(?: \(deeper\))?$", text, flags=re.M)
    if headings:
        more = say("more_sections", many=len(headings) - 1) if len(headings) > 2 else ""
        more = say("one_more") if len(headings) == 2 else more
        what = inline(headings[0]) + (more and f'<span class="soft"> {more}</span>')
        return say("more_checks", what=what) if "all_hold(" in cells[0].source else what
    made = re.findall(r"^(?:def|class) (\w+)", cells[0].source, flags=re.M)
    if "figures.show" in cells[0].source:
        return say("a_figure")
    if made:
        names = f" {say('and')} ".join(f"<code>{name}</code>" for name in made)
        return say("the_code_of", names=names)
    return say("a_cell")


def inline(markdown):
    """One line of Markdown as HTML: its signs and equations as they are."""
    return page.markdown_html(markdown).strip().removeprefix("<p>").removesuffix("</p>")


# ---- predictions ---------------------------------------------------------------------------------


def in_turn(cells, state="", guesses=None):
    """Cells in order. From the first output after a guess to the text that reads it, all waits.
    An exercise between the two is seen. `guesses`: names that were asked for before.

    Returns the parts and the state: "" -> asked -> guessed -> held -> ""."""
    parts, held = [], []
    guesses = set() if guesses is None else guesses
    for cell in cells:
        if cell.cell_type == "markdown":
            first, rest = cut(cell.source) if state == "held" else ("", cell.source)
            if first.strip():
                held.append(page.markdown_html(first))
            if state == "held":
                parts.append(fold(say("answer"), "\n".join(held), "held"))
                held, state = [], ""
            if rest.strip():
                parts.append(page.markdown_html(rest))
            if PREDICT in cell.source:
                state = "asked"
        elif state == "asked" and GUESS.search(cell.source):
            parts.append(guess_box(cell))
            guesses |= set(asked_names(cell))
            state = "guessed"
        elif state == "guessed" and exercise(cell):
            parts.append(lesson_cell(cell))
        elif state == "guessed" or state != "held" and says(cell, guesses):
            parts.append(source_html(cell))
            held, state = [outputs_html(cell)], "held"
        else:
            (held if state == "held" else parts).append(lesson_cell(cell))
    if held:
        parts.append(fold(say("answer"), "\n".join(held), "held"))
        state = ""
    return parts, state


def cut(text):
    """A text before and from the first thing that must be seen: a heading, the next question."""
    found = CUT.search(text)
    return (text[: found.start()], text[found.start() :]) if found else (text, "")


def asked_names(cell):
    """The guesses that a cell leaves open."""
    lines = (found[0] for found in GUESS.finditer(cell.source))
    return [name for line in lines for name in GUESS_NAME.findall(line.partition("=")[0])]


def exercise(cell):
    """Is it written by the reader, or does it judge what was?"""
    return "your-turn" in tags(cell) or checks_turn(cell)


def says(cell, guesses):
    """Does a cell print how far off an earlier guess was?"""
    compared = set(GUESS_NAME.findall(cell.source)) & guesses
    return bool(compared) and "all_hold(" not in cell.source and outputs_html(cell) != ""


def guess_box(cell):
    """A line to write a guess on, beside the cell's own words; it stays on the reader's machine."""
    lines = [found[0] for found in GUESS.finditer(cell.source)]
    rows = []
    for line in lines:
        code, _, hint = line.partition("#")
        for name in GUESS_NAME.findall(code.partition("=")[0]):
            label = say("your_guess", what=name.replace("guess_", "").replace("_", " "))
            rows.append(
                f'<label>{label} <input type="text" autocomplete="off" data-guess="{name}"></label>'
            )
        if hint.strip():
            rows.append(f'<span class="soft">{html.escape(hint.strip())}</span>')
    return f'<div class="guess">{"".join(rows)}<span class="soft" role="status"></span></div>'


def numbered(made):
    """A name that is asked for again is another guess: the browser keeps it as name-2, and what
    comes out after it answers that one."""
    asked = collections.Counter()

    def turn(found):
        what, name = found.groups()
        asked[name] += what == "guess"
        named = name if asked[name] < 2 else f"{name}-{asked[name]}"
        return f'data-{what}="{named}"'

    return KEPT_AS.sub(turn, made)


def answers(cell):
    """[(question, name of the guess)] of what a cell answers by course.diary.answer."""
    calls = (node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call))
    found = []
    for call in calls:
        if getattr(call.func, "id", "") != "answer" or len(call.args) < 3:
            continue
        question, _, guess = call.args[:3]
        if isinstance(question, ast.Constant) and isinstance(guess, ast.Name):
            found.append((question.value, guess.id))
    return found


def beside_guesses(cell, made):
    """What a cell printed; behind each answer there is room for what the reader guessed."""
    if "answer(" not in cell.source:
        return made
    for question, name in answers(cell):
        line = re.compile(rf"({re.escape(html.escape(question, quote=False))}: )([^<\n]*)")
        room = lambda found, name=name: (
            f'{found[1]}{found[2]}<span data-said="{name}" data-truth="{found[2].strip()}"></span>'
        )
        made = line.sub(room, made, count=1)
    return made


# ---- one cell ------------------------------------------------------------------------------------


def fold(summary, inner, kind):
    return f'<details class="{kind}"><summary>{summary}</summary>\n{inner}\n</details>'


def lesson_cell(cell):
    if cell.cell_type == "markdown":
        return page.markdown_html(cell.source)
    return "\n".join(filter(None, [source_html(cell), outputs_html(cell)]))


def source_html(cell):
    """The code of a cell, what only draws of it folded; an exercise as a box of its own."""
    if "your-turn" in tags(cell):
        note = say("write_it", command="<code>make lab</code>")
        return f'<div class="your-turn"><p>{note}</p>{lines_html(cell.source)}</div>'
    if "remove-input" in tags(cell) or not cell.source.strip() or checks_turn(cell):
        return ""
    if "hide-input" in tags(cell):
        return fold(say("code"), lines_html(cell.source), "code")
    parts = []
    for drawing, text in pieces(cell.source):
        made = lines_html(text)
        parts.append(fold(say("code_of_figure"), made, "code") if drawing else made)
    return "\n".join(parts)


def outputs_html(cell):
    """What a cell left behind."""
    if "remove-output" in tags(cell) or checks_turn(cell):
        return ""
    made = "\n".join(map(page.output_html, cell.get("outputs", [])))
    made = made.replace(SYSTEM_IS_DARK, PAGE_IS_DARK)
    return beside_guesses(cell, PRINTED.sub(lambda found: printed_html(found[1]), made))


def printed_html(text):
    """What was printed. A table that is a little too wide has smaller letters; what is wider than
    the window goes on below, further in. A phone moves a table sideways instead."""
    longest = max(len(html.unescape(line)) for line in text.split("\n"))
    if "<" in text or longest <= FITS_TABLET:
        return f'<pre class="output">{text}</pre>'
    kind = " table"
    if longest > FITS_SMALL:
        kind = ""
    elif longest > FITS:
        kind = " table small"
    return f'<pre class="output lines{kind}"><code>{rows_html(text)}</code></pre>'


def checks_turn(cell):
    """Does it judge what the reader wrote? Here nobody can write."""
    return re.fullmatch(r"\w+ = your_turn\(.*\)", cell.source.strip())


def pieces(source):
    """A cell's code as [(only draws?, lines)]: neighbours that build a figure and show it."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return [(False, source)]
    lines, found, start = source.splitlines(), [], 0
    groups = [list(some) for _, some in itertools.groupby(statements, key=draws)]
    for some in groups:
        end = some[-1].end_lineno
        drawing = draws(some[0]) and any(map(shows, some))
        text = "\n".join(lines[start:end]).strip("\n")
        if found and found[-1][0] == drawing:
            text = f"{found.pop()[1]}\n{text}"
        found.append((drawing, text))
        start = end
    return found or [(False, source)]


def draws(statement):
    """Does it name a figure or its axes?"""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return bool(names & DRAWN)


def shows(statement):
    called = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return "figures.show" in map(ast.unparse, called)


def lines_html(source):
    """Code whose long lines go on below, further in: nobody has to scroll sideways."""
    made = page.code_html(source).removeprefix("<pre><code>").removesuffix("</code></pre>")
    return f'<pre class="lines"><code>{rows_html(made)}</code></pre>'


def rows_html(made):
    """Every line says how far in it goes on."""
    rows = []
    for line in made.split("\n"):
        plain = html.unescape(re.sub(r"<[^>]+>", "", line))
        inset = len(plain) - len(plain.lstrip()) + 4
        rows.append(f'<span class="line" style="--in:{inset}ch">{line}\n</span>')
    return "".join(rows)
