"""The page of findings: its words stand in page.md, its numbers and tables in the records.

    python -m evidence.research.page           write notebooks/evidence/README.md
    python -m evidence.research.page --check   say whether it is what the records say

In the template, `{{lead("bov", "novel")}}` becomes what that function returns: of `numbers` or
`measured` beside this file; with `table_` before its name, of `tables`, `gains` or `text_leads`;
with `gain_`, of `gains`; with `text_`, of `text_leads`; with `vocab_`, of `vocab_leads`; with
`slope_`, of `slopes`; with `gpu_`, of `evidence.research.gpu_table`. What stands between
`{{when GRID …}}` and `{{otherwise}}` or `{{end}}`, each on a line of its own, is told once these
grids are whole: nothing is told from a part of a grid.
"""

import ast
import re
import sys
import textwrap

from course import records
from evidence.research import (
    gains,
    gpu_table,
    measured,
    numbers,
    pairs,
    slopes,
    tables,
    text_leads,
    vocab_leads,
)
from evidence.research.grids import GRIDS
from minimal.command import command
from minimal.data.files import write_whole

WIDTH = 118  # columns of a paragraph
MARK = re.compile(r"\{\{(.*?)\}\}", re.S)
WHOLE = re.compile(r"`[^`]+`|\[[^\]]+\]\([^)]+\)")  # code and links stay on one line
TIE = "\N{NO-BREAK SPACE}"
# what a name begins with -> where it is looked for
ROOMS = {
    "table_": [tables, gains, text_leads],
    "gain_": [gains],
    "text_": [text_leads],
    "vocab_": [vocab_leads],
    "slope_": [slopes],
    "gpu_": [gpu_table],
    "": [numbers, measured],
}
TOLD = "written by `python -m evidence.research.page` from page.md and the records; edit those"


# ---- what is told --------------------------------------------------------------------------------


def chosen(template):
    """The template without what waits for grids that are not whole."""
    kept, telling, inside = [], True, False
    for at, line in enumerate(template.splitlines(), 1):
        words = line.strip().removeprefix("{{").removesuffix("}}").split()
        if line.startswith("{{when "):
            if inside:
                raise ValueError(f"page.md, line {at}: wanted an end before another when")
            unknown = [name for name in words[1:] if name not in GRIDS]
            if unknown:
                raise ValueError(f"page.md, line {at}: there is no grid {', '.join(unknown)}")
            telling, inside = all(map(pairs.whole, words[1:])), True
        elif line.strip() == "{{otherwise}}":
            telling = not telling
        elif line.strip() == "{{end}}":
            telling, inside = True, False
        elif telling:
            kept.append(line)
    if inside:
        raise ValueError("page.md: wanted an end for every when")
    return "\n".join(kept) + "\n"


def filled(text):
    """With every mark replaced by what it names."""
    return MARK.sub(lambda match: value_of(match[1]), text)


def value_of(words):
    """What a call such as lead("bov", "novel") returns: a function by name, and plain values."""
    try:
        call = ast.parse(words.strip(), mode="eval").body
        given = [ast.literal_eval(value) for value in call.args]
        named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        name = call.func.id
    except (SyntaxError, ValueError, AttributeError):
        raise ValueError(f'page.md: wanted a call such as lead("bov"), got {words}') from None
    found = [prefix for prefix in ROOMS if name.startswith(prefix)][0]
    inner = name.removeprefix(found)
    for room in ROOMS[found]:
        if hasattr(room, inner):
            return getattr(room, inner)(*given, **named)
    files = ", ".join(f"{room.__name__.rpartition('.')[2]}.py" for room in ROOMS[found])
    raise ValueError(f"page.md: there is no {name}: look into {files}")


def wrapped(text):
    """Paragraphs and lists in lines of one width; tables, headings and code as they are."""
    blocks = re.split(r"\n{2,}", text.strip("\n"))
    return "\n\n".join(map(one_block, blocks)) + "\n"


def one_block(block):
    if re.match(r"[#|`<]|```", block) or "\n|" in block or block.startswith("    "):
        return block
    how = dict(width=WIDTH, break_long_words=False, break_on_hyphens=False)
    parts = re.split(r"\n(?=- )", block)
    indent = "  " if parts[0].startswith("- ") else ""
    joined = (WHOLE.sub(tied, " ".join(part.split())) for part in parts)
    lines = "\n".join(textwrap.fill(part, subsequent_indent=indent, **how) for part in joined)
    return lines.replace(TIE, " ")


def tied(match):
    return match[0].replace(" ", TIE)


def page():
    """The page as the records have it now."""
    template = (records.EVIDENCE / "page.md").read_text(encoding="utf-8")
    return wrapped(filled(chosen(template))) + f"\n<!-- {TOLD} -->\n"


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.research.page", __doc__)
def main(parser, argv):
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args(argv)
    path = records.EVIDENCE / "README.md"
    new, old = page(), path.read_text(encoding="utf-8")
    if new == old:
        print("page: README.md is what the records say")
    elif asked.check:
        raise ValueError(
            "README.md is not what page.md and the records say: "
            "python -m evidence.research.page writes it"
        )
    else:
        write_whole(path, new)
        print("page: README.md written")


if __name__ == "__main__":
    sys.exit(main())
