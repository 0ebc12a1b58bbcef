"""What leads to the notebooks, decks and units? The front page and the lists."""

import base64
import html
import re

import nbformat

from minimal.data.files import write_whole
from notebooks import run
from notebooks.run import ROOT
from slides import claims, page, tables
from slides.labels import say
from slides.links import relink, units

FIRST, NEXT = "notebooks/00_start_here.html", "notebooks/01_attention.html"
ESSAY = "essay.html"


def sections(text):
    """{heading: Markdown} of a README; what stands before the first is under the empty heading."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return {"": parts[0].split("\n", 1)[1]} | dict(zip(parts[1::2], parts[2::2]))


def unit(path):
    """What a card says of a notebook: title, claim and minutes as it has them, its homework."""
    notebook = nbformat.read(path, 4)
    words = notebook.cells[0].source
    text = "\n".join(cell.source for cell in notebook.cells)

    def after(word):
        found = re.search(rf"\*\*{word}\.\*\*\s*(.*?)(?=\n\n|\*\*You need|\Z)", words, flags=re.S)
        return found[1].strip() if found else ""

    minutes = re.match(r"\d+ minutes", after("Time"))
    return dict(
        title=page.title(notebook, path.stem),
        claim=after("The claim"),
        time=minutes[0] if minutes else "",
        homework=sorted(set(re.findall(r"homework/(hw\d\d_\w+)", text))),
    )


FIRST_PICTURE = re.compile(r'<img[^>]*src="data:image/(svg\+xml|png);base64,([^"]+)"[^>]*>')


def thumbnail(copy, folder):
    """The first picture of an executed notebook as a file of its card; without one, nothing."""
    for cell in nbformat.read(copy, 4).cells if copy else ():
        for output in cell.get("outputs", ()):
            if found := FIRST_PICTURE.search(output.get("data", {}).get("text/html", "")):
                file = folder / f"{copy.stem}.{found[1].removesuffix('+xml')}"
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(file, base64.b64decode(found[2]))
                alt = re.search(r'alt="([^"]+)"', found[0])
                words = alt[1] if alt else f"the first picture of {copy.stem}"
                return f'<img class="thumb" src="{folder.name}/{file.name}" alt="{words}">'
    return ""


def card(path, decks, printed, picture=""):
    about, stem = unit(path), path.stem
    links = []
    if stem in decks:
        links.append(f'<a href="slides/{stem}.html">{say("card_slides")}</a>')
    if stem in printed:
        links.append(f'<a href="slides/{stem}.pdf">{say("pdf")}</a>')
    links += [f'<a href="homework/{name}.html">{name[:4]}</a>' for name in about["homework"]]
    at = f"notebooks/{path.name}"
    claim = relink(page.markdown_html(about["claim"]), at, "index.html")
    name = html.escape(page.plain(about["title"]))
    heading = f'<h3><a href="notebooks/{stem}.html">{name}</a></h3>'
    time = f'<span class="soft">{about["time"]}</span>' if about["time"] else ""
    told = " · ".join(filter(None, [time, *links]))
    return f'<li>{picture}{heading}{claim}<p class="links">{told}</p></li>'


def side_paths(readme):
    """The names of the notebooks that README lists as side paths."""
    _, _, below = readme.partition("**Side paths**")
    return set(re.findall(r"\(notebooks/(\S+\.ipynb)\)", below))


def front(decks, printed, copies, out):
    """The front page: what the course is, its notebooks, how to start."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = sections(readme)
    shown = ("What is found so far", "Two commands", "To ask, to cite, to reuse")
    lost = [name for name in shown if name not in told]
    if lost:
        raise ValueError(
            f"README.md lost its section {lost[0]!r}, which the front page shows: "
            "put it back, or name another in slides/front.py"
        )

    def words(name):
        picture = r'<figure class="map scroll" tabindex="0">\1</figure>'
        body = framed(re.sub(r"<p>(<img[^>]*>)</p>", picture, page.markdown_html(told[name])))
        return f"<h2>{name}</h2>{body}" if name else body

    beside = sections((ROOT / "notebooks" / "README.md").read_text(encoding="utf-8"))
    ways = page.markdown_html(beside["How long do you have?"])
    ways = relink(f"<h2>{say('how_long')}</h2>{ways}", "notebooks/README.md", "index.html")
    from_readme = lambda *names: relink("\n".join(map(words, names)), "README.md", "index.html")
    aside = side_paths(readme)
    cards = {True: [], False: []}
    for path in run.chosen([]):
        picture = thumbnail(copies.get(path), out / "thumbnails")
        cards[path.name in aside].append(card(path, decks, printed, picture))
    start = (
        f'<p class="start"><a class="button" href="{FIRST}">{say("start")}</a> '
        f'<a class="button" href="{ESSAY}">{say("ten_minutes")}</a> '
        f'<a href="{NEXT}">{say("straight")}</a></p>'
    )
    return (
        f"<h1>{page.COURSE}</h1>{after_first_paragraph(from_readme(''), start)}"
        f'<h2 id="notebooks">{say("notebooks")}</h2><ul class="units">{"".join(cards[False])}</ul>'
        f'<h2 id="side">{say("side_paths")}</h2><ul class="units aside">{"".join(cards[True])}</ul>'
        f"{ways}{from_readme(shown[0])}{claims.asked_about()}{from_readme(*shown[1:])}"
    )


def framed(body):
    """Each <picture>, which has another drawing for a phone, as a figure as wide as the window."""
    figure = r'<figure class="map">\g<0></figure>'
    return re.sub(r"<picture>.*?</picture>", figure, body, flags=re.S)


def after_first_paragraph(body, more):
    head, end, rest = body.partition("</p>")
    return f"{head}{end}\n{more}{rest}"


def homework_index():
    items = []
    for path in units():
        text = path.read_text(encoding="utf-8")
        heading, said = lead(text)
        link = f'<a href="{path.parent.name}.html">{html.escape(heading)}</a>'
        minutes = re.search(r"^About (\d+ minutes)", text, flags=re.M)
        time = f'<p class="links soft">{minutes[1]}</p>' if minutes else ""
        items.append(f"<li><h2>{link}</h2>{page.markdown_html(said)}{time}</li>")
    link = f'<a href="instructors.html">{say("homework_link")}</a>'
    return (
        f"<h1>{say('homework')}</h1><p>{say('homework_text', link=link)}</p>"
        f'<ul class="units">{"".join(items)}</ul>'
    )


def lead(text):
    """Title and first sentences of a statement, to the end of a sentence."""
    heading, *blocks = text.split("\n\n")
    said = []
    for block in blocks:
        said.append(block)
        if page.ends_sentence(block):
            break
    return heading[2:], "\n\n".join(said)


def deck_index(decks, printed):
    rows = []
    for stem, name in decks.items():
        row = [html.escape(page.plain(name)), f'<a href="{stem}.html">{say("card_slides")}</a>']
        if printed:
            row.append(f'<a href="{stem}.pdf">{say("pdf")}</a>' if stem in printed else "")
        rows.append(row)
    if not rows:
        return f"<h1>{say('slides')}</h1><p>{say('no_decks')}</p>"
    columns = [say(name) for name in ("lecture", "as_page", "to_print")][: 3 if printed else 2]
    keys = {key: f"<kbd>{key}</kbd>" for key in "sotf"}
    text = f"<h1>{say('slides')}</h1><p>{say('decks_text', **keys)}</p>"
    return text + tables.table(columns, rows)
