"""What does the course look like in a browser? One folder of static pages, and the decks.

python slides/site.py                     the whole site under build/site, notebooks at laptop scale
python slides/site.py --profile smoke     the same from the smallest runs
python slides/site.py --decks [NN …]      only the decks, as HTML and PDF, under build/slides
"""

import argparse
import html
import posixpath
import re
import shutil
import sys

import nbformat

from notebooks import run
from slides import api, deck, page, tables
from slides.links import ROOT, anchor, broken, relative, relink, units

BUILD = ROOT / "build"
TITLE = "Where do the values come from?"
NAV = (
    ("Course", "index.html"),
    ("Slides", "slides/index.html"),
    ("Homework", "homework/index.html"),
    ("Evidence", "evidence/index.html"),
    ("Package", "api/index.html"),
)


# ---- pages ---------------------------------------------------------------------------------------


def shell(name, body, at, before=None, after=None, broad=False):
    """A whole page around its body: navigation, light and dark, what stands before and after."""
    # which part of the course this page belongs to
    folder = posixpath.dirname(at)
    here = [to for _, to in NAV if posixpath.dirname(to) == folder] or ["index.html"]
    current = lambda to: " aria-current=page" if to == here[-1] else ""
    links = "".join(f'<a href="{relative(to, at)}"{current(to)}>{word}</a>' for word, to in NAV)

    # its neighbours
    steps = []
    for rel, near in (("prev", before), ("next", after)):
        if near:
            word, to = html.escape(page.plain(near[0])), relative(near[1], at)
            steps.append(f'<a href="{to}" rel="{rel}">{word}</a>')
        else:
            steps.append("<span></span>")
    pager = f'<nav class="pager" aria-label="Neighbours">{"".join(steps)}</nav>'

    home = relative("index.html", at)
    return f"""<!doctype html>
<html lang="en"><head>
{page.head(name, relative("assets", at), "site.css")}
</head><body>
<a class="skip" href="#main">Skip to the text</a>
<header><nav aria-label="Course"><a class="home" href="{home}">{TITLE}</a>{links}
<button id="theme" type="button">Light / dark</button></nav></header>
<main id="main"{' class="broad"' if broad else ""}>
{body}
{pager if before or after else ""}
</main>
<script src="{relative("assets/site.js", at)}" defer></script>
</body></html>
"""


def sections(text):
    """{heading: Markdown} of a README; what stands before the first is under the empty heading."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return {"": parts[0].split("\n", 1)[1]} | dict(zip(parts[1::2], parts[2::2]))


def unit(path):
    """What a card says of a notebook: title, claim and time as it has them, and its homework."""
    notebook = nbformat.read(path, 4)
    words = notebook.cells[0].source
    text = "\n".join(cell.source for cell in notebook.cells)

    def after(word):
        found = re.search(rf"\*\*{word}\.\*\*\s*(.*?)(?=\n\n|\*\*You need|\Z)", words, flags=re.S)
        return found[1].strip() if found else ""

    return dict(
        title=page.title(notebook, path.stem),
        claim=after("The claim"),
        time=after("Time"),
        homework=sorted(set(re.findall(r"homework/(hw\d\d_\w+)", text))),
    )


def card(path, decks, printed):
    about, stem = unit(path), path.stem
    links = [f'<a href="notebooks/{stem}.html">notebook</a>']
    if stem in decks:
        links.append(f'<a href="slides/{stem}.html">slides</a>')
    if stem in printed:
        links.append(f'<a href="slides/{stem}.pdf">PDF</a>')
    links += [f'<a href="homework/{name}.html">{name[:4]}</a>' for name in about["homework"]]
    claim, time = (page.markdown_html(about[name]) for name in ("claim", "time"))
    told = relink(f'{claim}<div class="soft">{time}</div>', f"notebooks/{path.name}", "index.html")
    heading = html.escape(page.plain(about["title"]))
    return f"<li><h3>{heading}</h3>{told}<p>{' · '.join(links)}</p></li>"


def front(decks, printed):
    """The front page: what the course is, the map, how to start; from README and notebooks."""
    told = sections((ROOT / "README.md").read_text(encoding="utf-8"))
    before, after = ("Two commands", "How long do you have?"), ("What is found so far",)
    lost = [name for name in before + after if name not in told]
    if lost:
        raise ValueError(
            f"README.md lost its section {lost[0]!r}, which the front page shows: "
            "put it back, or name another in slides/build.py"
        )

    def words(name):
        picture = r'<figure class="map scroll" tabindex="0">\1</figure>'
        body = re.sub(r"<p>(<img[^>]*>)</p>", picture, page.markdown_html(told[name]))
        return f"<h2>{name}</h2>{body}" if name else body

    from_readme = lambda *names: relink("\n".join(map(words, names)), "README.md", "index.html")
    cards = "".join(card(path, decks, printed) for path in run.chosen([]))
    return (
        f'<h1>{TITLE}</h1>{from_readme("", *before)}<h2 id="notebooks">The course</h2>'
        f'<ul class="units">{cards}</ul>{from_readme(*after)}'
    )


def notebook_page(path, copies, profile):
    """Title, place and body of a notebook; of its source where no executed copy is at hand."""
    copy = copies.get(path)
    notebook = nbformat.read(copy or path, 4)
    state = f"executed at the scale {profile}" if copy else "not executed on this page"
    itself = f'<a href="{path.name}" download>the notebook itself</a>'
    at, source = f"notebooks/{path.stem}.html", f"notebooks/{path.name}"
    first, *rest = (relink(page.cell_html(cell), source, at) for cell in notebook.cells)
    note = f'<p class="soft">{state} · {itself}</p>'
    return page.title(notebook, path.stem), at, "\n".join([first, note, *rest])


def homework_index():
    items = []
    for path in units():
        heading, first = path.read_text(encoding="utf-8").split("\n\n")[:2]
        link = f'<a href="{path.parent.name}.html">{html.escape(heading[2:])}</a>'
        items.append(f"<li><h3>{link}</h3>{page.markdown_html(first)}</li>")
    return (
        "<h1>Homework</h1><p>Fill in one file, run one command, read why. Instructors: "
        '<a href="instructors.html">how to assign and grade</a>.</p>'
        f'<ul class="units">{"".join(items)}</ul>'
    )


def deck_index(decks, printed):
    rows = []
    for stem, name in decks.items():
        pdf = f'<a href="{stem}.pdf">PDF</a>' if stem in printed else ""
        rows.append((html.escape(page.plain(name)), f'<a href="{stem}.html">slides</a>', pdf))
    return (
        "<h1>Slides</h1><p>One deck a lecture. Arrow keys or space move on, <kbd>s</kbd> opens "
        "the speaker's notes, <kbd>o</kbd> all slides, <kbd>t</kbd> light and dark, <kbd>f</kbd> "
        "the whole screen. They work without a network.</p>"
        + tables.table(("lecture", "", ""), rows)
    )


# ---- building ------------------------------------------------------------------------------------


def build(out, copies, profile, deck_copies, printing=True):
    """Every page from what is at hand: executed copies {source: copy} of notebooks and of decks."""
    shutil.rmtree(out, ignore_errors=True)
    deck.lay_out(out / "assets")
    shutil.copytree(ROOT / "slides" / "figures", out / "figures")
    decks = put_decks(out / "slides", deck_copies)
    if printing:
        deck.print_all(out / "slides")
    printed = {path.stem for path in (out / "slides").glob("*.pdf")}

    def put(at, name, body, **more):
        (out / at).parent.mkdir(parents=True, exist_ok=True)
        (out / at).write_text(shell(name, body, at, **more), encoding="utf-8")

    def markdown(source, at):
        text = (ROOT / source).read_text(encoding="utf-8")
        return relink(page.markdown_html(text), source, at)

    # notebooks and units of homework, each row with its neighbours
    lectures, exercises = [], []
    for path in run.chosen([]):
        lectures.append(notebook_page(path, copies, profile))
    for path in units():
        at, source = f"homework/{path.parent.name}.html", f"homework/{path.parent.name}/README.md"
        name = path.read_text(encoding="utf-8")[2:].partition("\n")[0]
        exercises.append((name, at, markdown(source, at)))
    for row in (lectures, exercises):
        for i, (name, at, body) in enumerate(row):
            before = row[i - 1] if i else None
            after = row[i + 1] if i + 1 < len(row) else None
            put(at, name, body, before=before, after=after, broad=row is lectures)
    for path in run.chosen([]):
        shutil.copy(path, out / "notebooks")

    # what leads to them
    put("index.html", TITLE, front(decks, printed), broad=True)
    put("slides/index.html", "Slides", deck_index(decks, printed))
    put("homework/index.html", "Homework", homework_index(), broad=True)
    at = "homework/instructors.html"
    put(at, "For instructors", markdown("homework/README.md", at))

    # evidence
    at = "evidence/index.html"
    put(at, "Findings", markdown("notebooks/evidence/README.md", at), broad=True)
    at = "evidence/claims.html"
    link = lambda file, words: anchor(file, at, words)
    put(at, "Claims", tables.claims(link), broad=True)
    put("evidence/published.html", "Published tables", tables.published(), broad=True)
    put("evidence/recorded.html", "Recorded runs", tables.recorded(), broad=True)

    # the package
    put("api/index.html", "The package", api.index())
    for path in api.modules():
        put(f"api/{api.page(path)}", api.inside(path), api.module(path))


def put_decks(folder, copies):
    """Every deck as a page of the site; {stem: title}."""
    folder.mkdir()
    decks = {}
    for path, copy in copies.items():
        talk = nbformat.read(copy, 4)
        decks[path.stem] = page.title(talk, path.stem)
        at = f"slides/{path.stem}.html"
        text = relink(deck.html(talk, "../assets"), f"slides/{path.name}", at)
        back = '<body><a class="back" href="index.html">course</a>'
        text = text.replace("<body>", back, 1)
        (folder / f"{path.stem}.html").write_text(text, encoding="utf-8")
    return decks


# ---- the command ---------------------------------------------------------------------------------


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python slides/site.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = ask.add_argument
    add("names", nargs="*", metavar="NN", help="with --decks: only these")
    add("--decks", action="store_true", help="only the decks, as HTML and PDF")
    scale = "scale at which notebooks are executed; decks are always smoke"
    add("--profile", choices=run.SECONDS, default="laptop", help=scale)
    add("--no-pdf", action="store_true", help="HTML only")
    asked = ask.parse_args(argv)
    if asked.names and not asked.decks:
        ask.error(f"{asked.names[0]} names a deck, and the site has all of them: add --decks")
    for name in asked.names:
        if not any(path.stem.startswith(name) for path in deck.decks()):
            stems = ", ".join(path.stem for path in deck.decks())
            ask.error(f"no deck {name}: there is {stems}")

    if asked.decks:
        out = BUILD / "slides"
        faults = deck.build(out, BUILD / "decks" / "smoke", asked.names)
        if not asked.no_pdf:
            deck.print_all(out)
    else:
        out, work = BUILD / "site", BUILD / "notebooks" / asked.profile
        copies, faults = deck.executed(run.chosen([]), asked.profile, work)
        talks, more = deck.executed(deck.decks(), "smoke", BUILD / "decks" / "smoke")
        build(out, copies, asked.profile, talks, printing=not asked.no_pdf)
        faults += more + broken(out)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    print("\n".join(faults + [f"built {out.relative_to(ROOT)}, {size:.1f} MB"]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
