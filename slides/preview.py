"""What do others show of a link to a page? A description, and one picture for the whole course.

Whoever makes a preview wants whole addresses: the owner of a copy of the site says its own once, as
`Documentation` under [project.urls] of pyproject.toml.
"""

import html
import re

from course import doctor, formula, owner
from slides import links, page
from slides.browser import Browser
from slides.launch import TOOLS

ABOUT = (
    "A course in notebooks on the value path of attention: build it by hand, then move one arrow."
)
SHORTEST = 40  # characters of a description
LONGEST = 200
PARAGRAPH = re.compile(r"<p(?:\s[^>]*)?>(.*?)</p>", flags=re.S)  # and no <pre> or <path>

# ---- the picture ---------------------------------------------------------------------------------

SHARE_PICTURE = "assets/share.png"
SIZE = (1200, 630)  # pixels, as chats and networks ask for
DRAWING = "systems.svg"
ALT = (
    "Five attention layers as boxes and arrows: from one to the next only the arrow of the value "
    "moves."
)
CARD = """<!doctype html>
<html lang="en" data-ready="yes"><meta charset="utf-8">
<link rel="stylesheet" href="fonts.css"><link rel="stylesheet" href="base.css">
<style>
body {{ margin: 0; padding: 60px 50px 0; height: 630px; box-sizing: border-box; }}
h1 {{ font-size: 76px; line-height: 1; margin: 0 0 24px; }}
p {{ font-size: 34px; line-height: 1.25; color: var(--soft); margin: 0 0 44px; max-width: 25em; }}
svg {{ width: 1100px; height: auto; }}
</style><h1>{title}</h1><p>{about}</p>{drawing}</html>
"""


def draw(out):
    """The drawing of the front page below the course's name, as the site's one picture to share."""
    drawing = (out / "figures" / DRAWING).read_text(encoding="utf-8")
    card = out / "assets" / "share.html"
    card.write_text(CARD.format(title=page.COURSE, about=ABOUT, drawing=drawing), encoding="utf-8")
    with Browser() as browser:
        sheet = browser.page(*SIZE)
        sheet.open(card)
        sheet.run("document.fonts.ready.then(() => true)")
        sheet.shot(out / SHARE_PICTURE)
    card.unlink()


# ---- the tags ------------------------------------------------------------------------------------


def tags(name, body, at):
    """What search engines and chats read in the head of a page."""
    told = html.escape(description(body), quote=True)
    title = html.escape(name, quote=True)
    width, height = SIZE
    lines = [
        f'<meta name="description" content="{told}">',
        f'<meta property="og:title" content="{title}">',
        f'<meta property="og:description" content="{told}">',
        '<meta property="og:type" content="article">',
        f'<meta property="og:site_name" content="{html.escape(page.COURSE)}">',
    ]
    if doctor.browser():  # which draws the picture
        lines += [
            f'<meta property="og:image" content="{whole_address(SHARE_PICTURE, at)}">',
            f'<meta property="og:image:width" content="{width}">',
            f'<meta property="og:image:height" content="{height}">',
            f'<meta property="og:image:alt" content="{html.escape(ALT, quote=True)}">',
            '<meta name="twitter:card" content="summary_large_image">',
        ]
    if owner.site_address():
        lines.append(f'<meta property="og:url" content="{whole_address(at, at)}">')
        lines.append(f'<link rel="canonical" href="{whole_address(at, at)}">')
    return "\n".join(lines)


def whole_address(target, at):
    """The address of a file of the site: whole where the owner has said it, else from the page."""
    home = owner.site_address()
    return f"{home.rstrip('/')}/{target}" if home else links.relative(target, at)


def description(body):
    """The first paragraph below the buttons that says something, cut at a word."""
    paragraphs = list(map(in_words, PARAGRAPH.findall(TOOLS.sub("", body))))
    long = [words for words in paragraphs if len(words) >= SHORTEST]
    told = sentences(paragraphs) or (long[0] if long else ABOUT)
    return told if len(told) <= LONGEST else told[:LONGEST].rsplit(" ", 1)[0] + " …"


def in_words(paragraph):
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", "", paragraph)).split())
    return re.sub(r"^The claim\. ", "", formula.readable(words))


def sentences(paragraphs):
    """The first that say something and end. One goes on behind its equation, and none begins
    with one."""
    said = ""
    for words in paragraphs:
        begins = len(words) >= SHORTEST and not words[0].islower()
        if said or begins:
            said = f"{said} {words}".strip()
        if said and page.ends_sentence(said):
            return said
    return ""
