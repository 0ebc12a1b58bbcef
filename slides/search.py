"""Where in the course is a word? An index of all pages, which a script reads on the first search.

It is a script and not a JSON file, since a page that is opened from a folder may not fetch one.
"""

import html
import json
import re

from course import formula
from slides import page
from slides.launch import TOOLS
from slides.shell import ANCHOR

SPLIT = re.compile(r'<h[1-3] id="([^"]*)"[^>]*>(.*?)</h[1-3]>', flags=re.S)
SLIDE = re.compile(r'<section id="([^"]*)">(.*?)</section>', flags=re.S)
SECTION_HEADING = re.compile(r"<h([1-6])[^>]*>(.*?)</h\1>", flags=re.S)
UNREAD = re.compile(r"<(script|style|svg|button)\b.*?</\1>|<img[^>]*>", flags=re.S)
FOLDED = re.compile(r'<details class="(code|rows)">.*?</details>', flags=re.S)  # source, raw rows
LOWERED = re.compile(r"<sub>(.*?)</sub>")
INLINE = re.compile(r"</?(span|em|strong|code|a|wbr)\b[^>]*>")


def words(markup):
    """What a reader sees of it, in one line. A mark within a line parts no words, and an index is
    written as in equations, W_V, which theme/find.js knows for a symbol."""
    markup = formula.undrawn(markup)
    seen = ((ANCHOR, ""), (TOOLS, " "), (FOLDED, " "), (UNREAD, " "), (LOWERED, r"_\1"))
    for pattern, instead in seen:
        markup = pattern.sub(instead, markup)
    parts = page.CODE.split(markup)  # text, code or tag, text, …
    parts[::2] = map(equations, parts[::2])
    markup = INLINE.sub("", "".join(parts))
    text = re.sub(r"<[^>]+>", " ", markup)
    return " ".join(html.unescape(text).split())


def equations(text):
    """Text of a page whose equations can be read where none is drawn."""
    return html.escape(formula.readable(html.unescape(text)), quote=False)


def main_of(whole):
    """The text of a page without what stands around it."""
    inner = re.search(r"<main[^>]*>(.*)</main>", whole, flags=re.S)[1]
    return inner.partition('<nav class="pager"')[0]


def entries(at, name, body):
    """A page as rows of the index: (address, page, heading, text), one for each heading."""
    parts = SPLIT.split(body)
    rows = [(at, name, "", words(parts[0]))]
    for anchor, heading, text in zip(parts[1::3], parts[2::3], parts[3::3]):
        name_of_code = anchor.partition("-")[0]  # without arguments, and main-2 is a main
        told = name_of_code if at.startswith("api/") else words(heading)
        rows.append((f"{at}#{anchor}", name, told, words(text)))
    return [row for row in rows if row[3] or row[2]]


def deck_entries(at, name, whole):
    """A deck as rows of the index, one for each slide: what stands on it, and its notes."""
    rows = []
    for anchor, body in SLIDE.findall(whole):
        found = SECTION_HEADING.search(body)
        heading = words(found[2]) if found else ""  # a slide may begin with a sentence
        rest = SECTION_HEADING.sub(" ", body, count=1)
        rows.append((f"{at}#/{anchor}", f"Slides: {name}", heading, words(rest)))
    return rows


def index_script(rows):
    """All rows as the script that assets/search.js loads."""
    return f"window.searchIndex = {json.dumps(rows, ensure_ascii=False, separators=(',', ':'))};\n"
