"""What does the course look like in a browser? One folder of static pages, and the decks.

python slides/site.py                     the whole site under build/site, notebooks at laptop scale
python slides/site.py --profile smoke     the same from the smallest runs
python slides/site.py --only 00 01        the same, executing only these and their decks
python slides/site.py --decks [NN …]      only the decks, as HTML and PDF, under build/slides
python slides/site.py --screenshots DIR [WORD …]    pictures of the site that is built: every page,
                                          or those whose address holds a word, at three widths,
                                          light as it opens and dark with every fold open

Notebooks and decks that were executed after the last change of what they are made from are kept, so
a build that was stopped goes on where it was.
"""

import html
import re
import shutil
import sys
from pathlib import Path

from minimal.command import command, wait_for_imports

if __name__ == "__main__":
    wait_for_imports()

import nbformat  # noqa: E402

from course import doctor, owner  # noqa: E402
from homework import marking  # noqa: E402
from minimal.data.files import remove_folder  # noqa: E402
from notebooks import run  # noqa: E402
from notebooks.run import ROOT  # noqa: E402
from slides import (  # noqa: E402
    api,
    claims,
    deck,
    front,
    labels,
    launch,
    lesson,
    letters,
    links,
    page,
    preview,
    screens,
    search,
    tables,
)
from slides.labels import say  # noqa: E402
from slides.links import anchor, broken, places, relink, units  # noqa: E402
from slides.shell import shell  # noqa: E402

BUILD = ROOT / "build"
FINDINGS = "ledger speed gpu claims published recorded".split()  # labels and pages of evidence
BESIDE = (  # pages as the repository has them: (file, page, label)
    ("notebooks/essay.md", "essay.html", "essay"),
    ("notebooks/README.md", "beside.html", "beside"),
    ("notebooks/notation.md", "notation.html", "notation"),
    ("CHANGELOG.md", "changes.html", "news"),
)


# ---- pages ---------------------------------------------------------------------------------------


def notebook_page(path, copies, profile, decks=(), printed=()):
    """Title, place and body of a notebook; of its source where no executed copy is at hand."""
    copy = copies.get(path)
    notebook = nbformat.read(copy or path, 4)
    source = path.relative_to(ROOT).as_posix()
    at = places()[source]
    homework = front.unit(path)["homework"]
    state = say("executed", profile=profile) if copy else say("not_executed")
    tools = launch.toolbar(path, at, decks, printed, homework)
    note = f'{tools}<p class="soft state">{state}</p>'
    notebook.cells[0].source = owner.on_its_page(notebook.cells[0].source)
    mark = "<!-- tools -->"
    body = relink(lesson.body(notebook, mark), source, at).replace(mark, note)
    return page.title(notebook, path.stem), at, body


def to_fill_in(folder):
    """A unit's stub, which no file of the repository holds; nothing of the open project."""
    if not (folder / "exercises.py").exists():
        return ""
    code = page.code_html(marking.find(folder.name).stub())
    told = f'<details class="code"><summary>{say("empty_functions")}</summary>'
    return f'<h2 id="{links.TO_FILL_IN}">{say("to_fill_in")}</h2>{told}{code}</details>'


def course_map(decks):
    """Every page for the sidebar: [(part of the course, [(title, place)])]."""
    lectures = []
    for path in run.chosen([]):
        name = page.title(nbformat.read(path, 4), path.stem)
        lectures.append((name, f"notebooks/{path.stem}.html"))
    exercises = [(say("all_units"), "homework/index.html")]
    for path in units():
        name = path.read_text(encoding="utf-8")[2:].partition("\n")[0]
        exercises.append((name, f"homework/{path.parent.name}.html"))
    exercises.append((say("instructors"), "homework/instructors.html"))
    talks = [(say("all_decks"), "slides/index.html")]
    talks += [(name, f"slides/{stem}.html") for stem, name in decks.items()]
    asked = []
    for path in run.questions():
        name = page.title(nbformat.read(path, 4), path.stem)
        asked.append((name, f"evidence/{path.stem}.html"))
    others = [(say(name), f"evidence/{name}.html") for name in FINDINGS]
    return [
        ("course", lectures),
        ("slides", talks),
        ("homework", exercises),
        ("evidence", [(say("findings"), "evidence/index.html"), *asked, *others]),
        ("package", api.rooms_and_files()),
    ]


# ---- building ------------------------------------------------------------------------------------


def build(out, copies, profile, deck_copies, printing=True):
    """Every page from what is at hand: executed copies {source: copy} of notebooks and of decks."""
    remove_folder(out)
    deck.lay_out(out / "assets")
    shutil.copytree(ROOT / "slides" / "figures", out / "figures")
    if letters.packages_here():
        letters.into_drawings(out / "figures")
    if doctor.browser():
        preview.draw(out)
    decks, found = put_decks(out / "slides", deck_copies)
    if printing and decks and doctor.browser():
        deck.print_all(out / "slides")
    printed = {path.stem for path in (out / "slides").glob("*.pdf")}
    groups = course_map(decks)

    def put(at, name, body, **more):
        whole = shell(name, body, at, groups, **more)
        (out / at).parent.mkdir(parents=True, exist_ok=True)
        (out / at).write_text(whole, encoding="utf-8")
        found.extend(search.entries(at, page.plain(name), search.main_of(whole)))

    def row(pages, **more):
        """Pages that are read one after the other, each with its neighbours."""
        for i, (name, at, body) in enumerate(pages):
            before = pages[i - 1] if i else None
            after = pages[i + 1] if i + 1 < len(pages) else None
            put(at, name, body, before=before, after=after, **more)

    def markdown(source, at):
        body = page.markdown_html((ROOT / source).read_text(encoding="utf-8"))
        body = re.sub(r"<p>(<img[^>]*>)</p>", r"<figure>\1</figure>", body)  # moves on a phone
        body = front.framed(body)
        return tables.numbers_whole(relink(body, source, at))

    # notebooks and units of homework
    row([notebook_page(path, copies, profile, decks, printed) for path in run.chosen([])])
    for path in run.chosen([]):
        shutil.copy(path, out / "notebooks")
    exercises = []
    for path in units():
        at, source = f"homework/{path.parent.name}.html", f"homework/{path.parent.name}/README.md"
        name = path.read_text(encoding="utf-8")[2:].partition("\n")[0]
        exercises.append((name, at, markdown(source, at) + to_fill_in(path.parent)))
    row(exercises)

    # what leads to them
    put("index.html", page.COURSE, front.front(decks, printed, copies, out), broad=True)
    for source, at, name in BESIDE:
        put(at, say(name), markdown(source, at), broad=True)
    (out / "404.html").write_text(lost(groups), encoding="utf-8")
    put("slides/index.html", say("slides"), front.deck_index(decks, printed))
    put("homework/index.html", say("homework"), front.homework_index(), broad=True)
    at = "homework/instructors.html"
    put(at, say("instructors"), markdown("homework/README.md", at))

    # evidence
    row([notebook_page(path, copies, profile) for path in run.questions()])
    for path in run.questions():
        shutil.copy(path, out / "evidence")
    at = "evidence/index.html"
    put(at, say("findings"), markdown("notebooks/evidence/README.md", at), folded=True)
    for name in ("ledger", "speed", "gpu"):
        at = f"evidence/{name}.html"
        put(at, say(name), markdown(f"notebooks/evidence/{name}.md", at), folded=name == "ledger")
    at = "evidence/claims.html"
    link = lambda file, words: anchor(file, at, words)
    put(at, say("claims"), claims.claims(link), broad=True)
    put("evidence/published.html", say("published"), tables.published(), folded=True)
    put("evidence/recorded.html", say("recorded"), tables.recorded(), folded=True)

    # the package
    put("api/index.html", say("package"), api.index())
    pages = {path: f"api/{api.page_name(path)}" for path in api.modules()}
    row([(api.inside(path), at, api.module(path)) for path, at in pages.items()])

    if home := owner.site_address():
        (out / "sitemap.xml").write_text(sitemap(out, home), encoding="utf-8")
    (out / "assets" / "index.js").write_text(search.index_script(found), encoding="utf-8")


def sitemap(out, home):
    """Every page's whole address, for search engines; none without the address of the site."""
    places = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.html"))
    rows = [
        f"<url><loc>{html.escape(home.rstrip('/'))}/{at}</loc></url>"
        for at in places
        if at != "404.html"
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        + "\n".join(rows)
        + "\n</urlset>\n"
    )


def lost(groups):
    """What a host shows at an address without a page. It may stand in any folder, so its links
    start from the address of the site, where the owner has said it."""
    front = f'<a href="index.html">{say("front_page")}</a>'
    body = f"<h1>{say('lost')}</h1><p>{say('lost_text', front=front)}</p>"
    page = shell(say("lost"), body, "404.html", groups)
    home = owner.site_address()
    base = f'<head><base href="{home.rstrip("/")}/">' if home else "<head>"
    return page.replace("<head>", base, 1)


def put_decks(folder, copies):
    """Every deck as a page of the site: {stem: title}, and its slides for the search."""
    folder.mkdir()
    decks, found = {}, []
    for path, copy in copies.items():
        talk = nbformat.read(copy, 4)
        decks[path.stem] = page.title(talk, path.stem)
        at = f"slides/{path.stem}.html"
        text = relink(deck.html(talk, "../assets"), f"slides/{path.name}", at)
        tags = preview.tags(page.plain(decks[path.stem]), text.partition("<body>")[2], at)
        back = f'<nav><a class="back" href="index.html">{say("back")}</a></nav>'
        text = text.replace("</head><body>", f"{tags}\n</head><body>{back}", 1)
        (folder / f"{path.stem}.html").write_text(text, encoding="utf-8")
        found += search.deck_entries(at, page.plain(decks[path.stem]), text)
    return decks, found


# ---- the command ---------------------------------------------------------------------------------


@command("slides/site.py", __doc__)
def main(parser, argv):
    add = parser.add_argument
    add("names", nargs="*", metavar="NN", help="with --decks or --screenshots: only these")
    add("--decks", action="store_true", help="only the decks, as HTML and PDF")
    add("--screenshots", metavar="DIR", help="only pictures of the site that is built")
    scale = "scale at which notebooks are executed; decks are always smoke"
    add("--profile", choices=run.SECONDS, default="laptop", help=scale)
    words = "another table of what the site says around its texts, such as a translation"
    add("--labels", metavar="FILE", type=Path, default=labels.ENGLISH, help=words)
    add("--no-pdf", action="store_true", help="HTML only")
    only = "execute only these notebooks and their decks; the others are shown as they are written"
    add("--only", nargs="+", metavar="NN", default=[], help=only)
    asked = parser.parse_args(argv)
    try:
        labels.use(asked.labels)
    except (OSError, ValueError) as error:
        parser.error(f"--labels: {error}")
    if asked.screenshots:
        return pictures(asked.screenshots, asked.names)
    if asked.names and not asked.decks:
        parser.error(f"{asked.names[0]} names a deck, and the site has all of them: add --decks")
    for name in asked.names:
        if not any(path.stem.startswith(name) for path in deck.decks()):
            stems = ", ".join(path.stem for path in deck.decks())
            parser.error(f"no deck {name}: there is {stems}")

    with letters.for_figures():
        out, faults = decks_alone(asked) if asked.decks else whole_site(asked)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    print("\n".join(faults + [f"built {out.relative_to(ROOT)}, {size:.1f} MB"]))
    return int(bool(faults))


def decks_alone(asked):
    """What --decks makes: its folder, and what went wrong."""
    out = BUILD / "slides"
    faults = deck.build_decks(out, BUILD / "decks" / "smoke", asked.names)
    if not asked.no_pdf:
        deck.print_all(out)
    return out, faults


def whole_site(asked):
    """All pages and decks: their folder, and what went wrong."""
    out, work = BUILD / "site", BUILD / "notebooks" / asked.profile
    chosen, decks = run.chosen(asked.only), deck.at_hand()
    for line in left_out(asked.no_pdf):
        run.say(line)
    given = [path for path in decks if path.name in {one.name for one in chosen}]
    questions = [] if asked.only else run.questions()
    copies, faults = deck.executed([*chosen, *questions], asked.profile, work)
    talks, more = deck.executed(given, "smoke", BUILD / "decks" / "smoke")
    if asked.only:
        talks = {path: talks.get(path, path) for path in decks}
    run.say(f"assembling {out.relative_to(ROOT)}" + ("" if asked.no_pdf else ", printing decks"))
    build(out, copies, asked.profile, talks, printing=not asked.no_pdf)
    return out, faults + more + broken(out)


def left_out(no_pdf=False):
    """What this machine leaves out of the site, and what would bring it; pages never fail of it."""
    lines = []
    if not deck.at_hand():
        lines.append(
            "site: no npm packages here, so no decks, and equations stand as typed: "
            "make setup EXTRAS=site"
        )
    if not doctor.browser():
        pdf = "" if no_pdf else " and no PDF"
        lines.append(f"site: no Chromium here, so no picture to share{pdf}: make doctor says more")
    return lines


def pictures(folder, names):
    """Screenshots of build/site, and what should not be on them."""
    site = BUILD / "site"
    if not (site / "index.html").exists():
        sys.exit(f"site: wanted a site under {site.relative_to(ROOT)}, found none: make site")
    faults = screens.take(site, folder, names)
    print("\n".join(faults + [f"pictures under {folder}, all of them on index.html"]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
