"""What does the course look like to somebody with only a browser? One folder of static pages, and the decks.

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
import tomllib
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # not slides/, whose site.py would stand before the standard library's

import nbformat  # noqa: E402

from minimal.lab.evidence import records  # noqa: E402
from notebooks import run  # noqa: E402
from slides import api, deck, page, tables  # noqa: E402

BUILD = ROOT / "build"
TITLE = "Where do the values come from?"
NAV = (
    ("Course", "index.html"),
    ("Slides", "slides/index.html"),
    ("Homework", "homework/index.html"),
    ("Evidence", "evidence/index.html"),
    ("Package", "api/index.html"),
)
PREPARED = re.compile(r"(notebooks|slides)/\d\d_\w+\.ipynb")  # may be linked to before it exists


# ---- where everything goes -------------------------------------------------------------------------------------------


def units():
    return sorted((ROOT / "homework").glob("hw[0-9][0-9]_*/README.md"))


def places():
    """File or folder of the repository -> its page on the site."""
    found = {
        "README.md": "index.html",
        "notebooks": "index.html",
        "slides": "slides/index.html",
        "minimal": "api/index.html",
        "homework": "homework/index.html",
        "homework/README.md": "homework/instructors.html",
        "notebooks/evidence": "evidence/index.html",
        "notebooks/evidence/README.md": "evidence/index.html",
        "notebooks/evidence/claims.json": "evidence/claims.html",
        "notebooks/evidence/published.json": "evidence/published.html",
    }
    found |= {f"notebooks/{path.name}": f"notebooks/{path.stem}.html" for path in run.chosen([])}
    found |= {f"slides/{path.name}": f"slides/{path.stem}.html" for path in deck.decks()}
    found |= {f"minimal/{api.inside(path)}": f"api/{api.page(path)}" for path in api.modules()}
    found |= {
        f"slides/figures/{path.name}": f"figures/{path.name}"
        for path in (ROOT / "slides" / "figures").iterdir()
    }
    for path in units():
        folder = f"homework/{path.parent.name}"
        found |= dict.fromkeys((folder, f"{folder}/README.md"), f"{folder}.html")
    for path in (ROOT / "notebooks" / "evidence").glob("*.json"):
        found.setdefault(f"notebooks/evidence/{path.name}", f"evidence/recorded.html#{path.stem}")
    return found


def relative(target, at):
    """The address of one page of the site as seen from another."""
    return posixpath.relpath(target, posixpath.dirname(at) or ".")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"][
        "Homepage"
    ]


def address(file, at):
    """Where a link to a file of the repository leads from the page `at`: to its page, else to the project's file."""
    known = places().get(file)
    if known:
        return relative(known, at)
    if (ROOT / file).exists():
        return f"{project()}/blob/main/{file}"
    return None


def relink(body, source, at):
    """Links as they stand in `source`, a file of the repository, turned into links between pages; none may lead nowhere."""

    def turn(match):
        link, _, part = html.unescape(match["link"]).partition("#")
        if not link or re.match(r"[a-z]+:", link):
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        to = address(file, at)
        if to is None and PREPARED.fullmatch(file):
            return f'{match["before"]}"#" title="in preparation"'
        if to is None:
            raise ValueError(f"{source}: the link {link} leads nowhere")
        return f'{match["before"]}"{to}{"#" + part if part else ""}"'

    body = re.sub(r'(?P<before><(?:a|img)\b[^>]*?\b(?:href|src)=)"(?P<link>[^"]*)"', turn, body)
    waiting = r'<a href="#" title="in preparation">(.*?)</a>'
    return re.sub(waiting, r'<span class="soft" title="in preparation">\1</span>', body)


# ---- pages -----------------------------------------------------------------------------------------------------------


def shell(name, body, at, before=None, after=None, broad=False):
    """A whole page around its body: navigation, the switch of light and dark, what comes before and after."""
    here = next(
        (to for _, to in reversed(NAV) if posixpath.dirname(to) == posixpath.dirname(at)),
        "index.html",
    )
    current = lambda to: " aria-current=page" if to == here else ""
    links = "".join(f'<a href="{relative(to, at)}"{current(to)}>{word}</a>' for word, to in NAV)
    near = (("prev", before or ("", "")), ("next", after or ("", "")))
    pager = "".join(
        f'<a href="{relative(to, at)}" rel="{rel}">{html.escape(page.plain(word))}</a>'
        if to
        else "<span></span>"
        for rel, (word, to) in near
    )
    return f"""<!doctype html>
<html lang="en"><head>
{page.head(name, relative("assets", at), "site.css")}
</head><body>
<a class="skip" href="#main">Skip to the text</a>
<header><nav aria-label="Course"><a class="home" href="{relative("index.html", at)}">{TITLE}</a>{links}
<button id="theme" type="button">Light / dark</button></nav></header>
<main id="main"{' class="broad"' if broad else ""}>
{body}
{f'<nav class="pager" aria-label="Neighbours">{pager}</nav>' if before or after else ""}
</main>
<script src="{relative("assets/site.js", at)}" defer></script>
</body></html>
"""


def sections(text):
    """{heading: Markdown} of a README; what stands before the first is under the empty heading."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return {"": parts[0].split("\n", 1)[1]} | dict(zip(parts[1::2], parts[2::2]))


def unit(path):
    """What a card says of a notebook: its title, claim and time, as the notebook has them, and what belongs to it."""
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
    links += [f'<a href="slides/{stem}.html">slides</a>'] * (stem in decks)
    links += [f'<a href="slides/{stem}.pdf">PDF</a>'] * (stem in printed)
    links += [f'<a href="homework/{name}.html">{name[:4]}</a>' for name in about["homework"]]
    told = (
        page.markdown_html(about["claim"])
        + f'<div class="soft">{page.markdown_html(about["time"])}</div>'
    )
    return (
        f"<li><h3>{html.escape(page.plain(about['title']))}</h3>{relink(told, f'notebooks/{path.name}', 'index.html')}"
        f"<p>{' · '.join(links)}</p></li>"
    )


def front(decks, printed):
    """The front page: what the course is, the map, how to start, how long it takes; from README and notebooks."""
    told = sections((ROOT / "README.md").read_text(encoding="utf-8"))
    before, after = ("Two commands", "How long do you have?"), ("What is found so far",)
    lost = [name for name in before + after if name not in told]
    if lost:
        raise ValueError(
            f"README.md lost its section {lost[0]!r}, which the front page shows: "
            "put it back, or name another in slides/site.py"
        )
    picture = r'<figure class="map scroll" tabindex="0">\1</figure>'
    words = lambda name: re.sub(r"<p>(<img[^>]*>)</p>", picture, page.markdown_html(told[name]))
    part = lambda name: f"<h2>{name}</h2>" + words(name)
    from_readme = lambda *parts: relink("\n".join(parts), "README.md", "index.html")
    cards = "".join(card(path, decks, printed) for path in run.chosen([]))
    return (
        f"<h1>{TITLE}</h1>{from_readme(words(''), *map(part, before))}"
        f'<h2 id="notebooks">The course</h2><ul class="units">{cards}</ul>{from_readme(*map(part, after))}'
    )


def notebook_body(path, copies, profile):
    """An executed notebook as the body of a page, or its source where no executed copy is at hand."""
    copy = copies.get(path)
    notebook = nbformat.read(copy or path, 4)
    state = f"executed at the scale {profile}" if copy else "not executed on this page"
    note = f'<p class="soft">{state} · <a href="{project()}/blob/main/notebooks/{path.name}">the notebook itself</a></p>'
    first, *rest = notebook.cells
    return page.title(notebook, path.stem), "\n".join(
        [page.cell_html(first), note, *map(folded, rest)]
    )


def folded(cell):
    """A cell; the one that is the same in every notebook stands behind its first line."""
    told = page.cell_html(cell)
    return (
        f"<details><summary>Set-up: finds the course</summary>{told}</details>"
        if cell.id == "find-minimal"
        else told
    )


def homework_index():
    items = []
    for path in units():
        heading, first = path.read_text(encoding="utf-8").split("\n\n")[:2]
        items.append(
            f'<li><h3><a href="{path.parent.name}.html">{html.escape(heading[2:])}</a></h3>{page.markdown_html(first)}</li>'
        )
    return (
        "<h1>Homework</h1><p>Fill in one file, run one command, read why. Instructors: "
        f'<a href="instructors.html">how to assign and grade</a>.</p><ul class="units">{"".join(items)}</ul>'
    )


def deck_index(decks, printed):
    pdf = lambda stem: f'<a href="{stem}.pdf">PDF</a>' if stem in printed else ""
    rows = [
        (html.escape(page.plain(name)), f'<a href="{stem}.html">slides</a>', pdf(stem))
        for stem, name in decks.items()
    ]
    return (
        "<h1>Slides</h1><p>One deck a lecture. Arrow keys or space move on, <kbd>s</kbd> opens the speaker's notes, "
        "<kbd>o</kbd> all slides, <kbd>t</kbd> light and dark, <kbd>f</kbd> the whole screen. They work without a "
        "network.</p>" + tables.table(("lecture", "", ""), rows)
    )


# ---- building --------------------------------------------------------------------------------------------------------


def build(out, copies, profile, deck_copies, printing=True):
    """Every page from what is at hand: executed copies of notebooks {source: copy} and of decks."""
    shutil.rmtree(out, ignore_errors=True)
    deck.lay_out(out / "assets")
    shutil.copytree(ROOT / "slides" / "figures", out / "figures")

    def put(at, name, body, **more):
        (out / at).parent.mkdir(parents=True, exist_ok=True)
        (out / at).write_text(shell(name, body, at, **more), encoding="utf-8")

    (out / "slides").mkdir()
    decks = {}
    for path, copy in deck_copies.items():
        talk = nbformat.read(copy, 4)
        decks[path.stem] = page.title(talk, path.stem)
        text = relink(
            deck.html(talk, "../assets"), f"slides/{path.name}", f"slides/{path.stem}.html"
        )
        back = '<a class="back" href="index.html">course</a>'
        (out / "slides" / f"{path.stem}.html").write_text(
            text.replace("<body>", f"<body>{back}", 1), encoding="utf-8"
        )
    if printing:
        deck.print_all(out / "slides")
    printed = {path.stem for path in (out / "slides").glob("*.pdf")}

    made = [
        (
            f"notebooks/{path.stem}.html",
            *notebook_body(path, copies, profile),
            f"notebooks/{path.name}",
        )
        for path in run.chosen([])
    ]
    for path in units():
        text, folder = path.read_text(encoding="utf-8"), f"homework/{path.parent.name}"
        made.append(
            (
                f"{folder}.html",
                text[2:].partition("\n")[0],
                page.markdown_html(text),
                f"{folder}/README.md",
            )
        )
    for i, (at, name, body, source) in enumerate(made):
        near = [
            made[j][1::-1] if 0 <= j < len(made) and made[j][0][0] == at[0] else None
            for j in (i - 1, i + 1)
        ]
        put(
            at,
            name,
            relink(body, source, at),
            before=near[0],
            after=near[1],
            broad=at.startswith("notebooks"),
        )
    put("index.html", TITLE, front(decks, printed), broad=True)
    put("slides/index.html", "Slides", deck_index(decks, printed))
    put("homework/index.html", "Homework", homework_index(), broad=True)
    guide = page.markdown_html((ROOT / "homework" / "README.md").read_text(encoding="utf-8"))
    put(
        "homework/instructors.html",
        "For instructors",
        relink(guide, "homework/README.md", "homework/instructors.html"),
    )
    findings = page.markdown_html((records.EVIDENCE / "README.md").read_text(encoding="utf-8"))
    put(
        "evidence/index.html",
        "Findings",
        relink(findings, "notebooks/evidence/README.md", "evidence/index.html"),
        broad=True,
    )
    put(
        "evidence/claims.html",
        "Claims",
        tables.claims(lambda file: address(file, "evidence/claims.html")),
        broad=True,
    )
    put("evidence/published.html", "Published tables", tables.published(), broad=True)
    put("evidence/recorded.html", "Recorded runs", tables.recorded(), broad=True)
    put("api/index.html", "The package", api.index())
    for path in api.modules():
        put(f"api/{api.page(path)}", api.inside(path), api.module(path))


class Links(HTMLParser):
    """The links of a page, and the names that links to it may end in."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names, self.outside = [], {""}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.names |= {told.get("id"), told.get("name")}
        link = told.get("href") or told.get("src")
        if link and not link.startswith("data:"):
            far = re.match(r"[a-z]+:|//", link)
            (self.outside if far and tag != "a" else [] if far else self.links).append(link)


def broken(out):
    """Links that lead nowhere, and things that a page would load from elsewhere."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(out.rglob("*.html"))}
    faults = [
        f"{path.relative_to(out)} loads {link}"
        for path, found in pages.items()
        for link in found.outside
    ]
    for path, found in pages.items():
        for link in found.links:
            file, _, part = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            lost = (
                target in pages
                and part
                and not part.startswith("/")
                and part not in pages[target].names
            )
            if not target.is_file() or lost:
                faults.append(f"{path.relative_to(out)}: {link} leads nowhere")
    return faults


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python slides/site.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask.add_argument("names", nargs="*", metavar="NN", help="with --decks: only these")
    ask.add_argument("--decks", action="store_true", help="only the decks, as HTML and PDF")
    ask.add_argument(
        "--profile",
        choices=run.SECONDS,
        default="laptop",
        help="scale at which notebooks are executed; decks are always smoke",
    )
    ask.add_argument("--no-pdf", action="store_true", help="HTML only")
    asked = ask.parse_args(argv)
    if asked.decks:
        faults = deck.build(BUILD / "slides", BUILD / "decks" / "smoke", asked.names)
        if not asked.no_pdf:
            deck.print_all(BUILD / "slides")
        where = BUILD / "slides"
    else:
        copies, faults = deck.executed(
            run.chosen([]), asked.profile, BUILD / "notebooks" / asked.profile
        )
        talks, more = deck.executed(deck.decks(), "smoke", BUILD / "decks" / "smoke")
        where = BUILD / "site"
        build(where, copies, asked.profile, talks, printing=not asked.no_pdf)
        faults += more + broken(where)
    size = sum(path.stat().st_size for path in where.rglob("*") if path.is_file()) / 1e6
    print("\n".join(faults + [f"built {where.relative_to(ROOT)}, {size:.1f} MB"]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
