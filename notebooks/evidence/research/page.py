"""What is written from the records: verdicts, pages, statements, pictures. One command renews all.

    python -m evidence.research.page           write what is stale
    python -m evidence.research.page --check   say whether all is what the records say

Words of the pages stand in notebooks/evidence/pages/*.j2, numbers in the records.

The templates are Jinja2's. A module of this folder is a name in them, `numbers.told("bov", "code")`
is what that function returns, and `{% if whole("dose_code") %}` tells what waits for a grid:
nothing is told from a part of one.
"""

import re
import sys
import textwrap

import jinja2

from course import records
from evidence.research import (
    answer,
    at_best,
    at_d12,
    claims,
    content,
    dose,
    fair_start,
    fetch,
    fetch_first,
    findings,
    gains,
    gpu_table,
    leads,
    many_answers,
    mean_values,
    measured,
    noted,
    numbers,
    own_mixtures,
    own_rates,
    pairs,
    pictures,
    slopes,
    statements,
    tables,
    text_leads,
    verdicts,
    vocab_leads,
    who,
)
from evidence.research.grids import GRIDS
from minimal.command import command
from minimal.data.files import write_whole

WIDTH = 118  # columns of a paragraph
WHOLE = re.compile(r"`[^`]+`|\[[^\]]+\]\([^)]+\)")  # code and links stay on one line
RECORDED = re.compile(r"\]\((\w+)\.json\)")
TIE = "\N{NO-BREAK SPACE}"
TOLD = "written by `python -m evidence.research.page` from pages/{}.j2 and the records; edit those"


def all_whole(*grids):
    """Are these grids whole? What is told of them waits until they are."""
    unknown = [name for name in grids if name not in GRIDS]
    if unknown:
        raise ValueError(f"wanted a grid of GRIDS, got {', '.join(unknown)}: name one of them")
    return all(map(pairs.whole, grids))


IN_TEMPLATES = dict(
    answer=answer,
    claims=claims,
    content=content,
    dose=dose,
    fair_start=fair_start,
    at_best=at_best,
    at_d12=at_d12,
    fetch_first=fetch_first,
    fetch=fetch,
    findings=findings,
    leads=leads,
    many_answers=many_answers,
    mean_values=mean_values,
    pictures=pictures,
    numbers=numbers,
    own_mixtures=own_mixtures,
    own_rates=own_rates,
    measured=measured,
    noted=noted,
    tables=tables,
    gains=gains,
    texts=text_leads,
    vocab=vocab_leads,
    slopes=slopes,
    gpu=gpu_table,
    who=who,
    whole=all_whole,
)


def templates():
    """{name of a page: path of its template}."""
    found = sorted((records.EVIDENCE / "pages").glob("*.j2"))
    return {path.stem: path for path in found}


def filled(text):
    """A template with what its marks name."""
    how = dict(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return jinja2.Environment(**how).from_string(text, IN_TEMPLATES).render()


def wrapped(text):
    """Paragraphs and lists in lines of one width; tables, headings and code as they are."""
    blocks = re.split(r"\n{2,}", text.strip("\n"))
    return "\n\n".join(map(one_block, blocks)) + "\n"


def one_block(block):
    if re.match(r"[#|<!]|```", block) or "\n|" in block or block.startswith("    "):
        return block
    how = dict(width=WIDTH, break_long_words=False, break_on_hyphens=False)
    parts = re.split(r"\n(?=- )", block)
    indent = "  " if parts[0].startswith("- ") else ""
    joined = (WHOLE.sub(tied, " ".join(part.split())) for part in parts)
    lines = "\n".join(textwrap.fill(part, subsequent_indent=indent, **how) for part in joined)
    return lines.replace(TIE, " ")


def tied(match):
    return match[0].replace(" ", TIE)


def to_the_table(match):
    """A link to what is recorded of a grid leads to the file of the table that has its runs."""
    about = records.recordings().get(match[1])
    return f"](runs/{about['topic']}.jsonl)" if about else match[0]


def page(name="README.md"):
    """A page as the records have it now."""
    text = filled(templates()[name].read_text(encoding="utf-8"))
    return wrapped(RECORDED.sub(to_the_table, text)) + f"\n<!-- {TOLD.format(name)} -->\n"


# ---- all that is written from the records --------------------------------------------------------


def written():
    """(file, its text as the records have it now) of each, in the order in which they lean on one
    another: pages count the verdicts. A picture that is of today has the text of its file."""
    yield records.EVIDENCE / "claims.json", verdicts.book()
    for name in templates():
        yield records.EVIDENCE / name, page(name)
    yield records.EVIDENCE / "statements.md", statements.statements_page()
    for name in pictures.FROM_RECORDS:
        path = pictures.FIGURES / name
        today = pictures.is_of_today(name)
        yield path, path.read_text(encoding="utf-8") if today else pictures.drawn(name).decode()


def stale(write=False):
    """The names of the files that are not what the records say; written, if asked."""
    found = []
    for path, new in written():
        if path.exists() and path.read_text(encoding="utf-8") == new:
            continue
        found.append(path.name)
        if write:
            write_whole(path, new)
    return found


@command("evidence.research.page", __doc__)
def main(parser, argv):
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args(argv)
    changed = stale(write=not asked.check)
    if changed and asked.check:
        raise ValueError(
            f"{', '.join(changed)} is not what templates and records say: "
            "python -m evidence.research.page writes it"
        )
    words = f"{', '.join(changed)} written" if changed else "all pages are what the records say"
    print(f"page: {words}")
    for name in statements.untrue():
        print(f"no longer so: {name.replace('_', ' ')}; change what says it, or the sentence")


if __name__ == "__main__":
    sys.exit(main())
