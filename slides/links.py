"""Where does a link lead on the site? Files of the repository and their pages; broken links."""

import functools
import html
import posixpath
import re
from html.parser import HTMLParser

from course import owner
from notebooks import run
from notebooks.run import ROOT
from slides import api, deck

PREPARED = re.compile(r"(notebooks|slides)/\d\d_\w+\.ipynb")  # may be linked to before it exists
HOME = {  # file or folder of the repository -> its page on the site
    "README.md": "index.html",
    "CHANGELOG.md": "changes.html",
    "notebooks/README.md": "beside.html",
    "notebooks/essay.md": "essay.html",
    "notebooks/notation.md": "notation.html",
    "notebooks": "index.html",
    "notebooks/read/README.md": "index.html",
    "slides": "slides/index.html",
    "minimal": "api/index.html",
    "homework": "homework/index.html",
    "homework/README.md": "homework/instructors.html",
    "notebooks/evidence": "evidence/index.html",
    "notebooks/evidence/README.md": "evidence/index.html",
    "notebooks/evidence/ledger.md": "evidence/ledger.html",
    "notebooks/evidence/speed.md": "evidence/speed.html",
    "notebooks/evidence/gpu.md": "evidence/gpu.html",
    "notebooks/evidence/claims.md": "evidence/claims.html",
    "notebooks/evidence/claims.toml": "evidence/claims.html",
    "notebooks/evidence/verdicts.json": "evidence/claims.html",
    "notebooks/evidence/published.json": "evidence/published.html",
}


# ---- from files to pages -------------------------------------------------------------------------


def units():
    """The statements of the homework."""
    return sorted((ROOT / "homework").glob("hw[0-9][0-9]_*/README.md"))


LABORATORY = "notebooks/evidence"
TO_FILL_IN = "the-file-to-fill-in"  # where a unit's page shows its stub


@functools.cache  # asked for every link of the site
def places():
    """HOME, with every notebook, deck, module, figure, unit and file of evidence."""
    found = dict(HOME)
    for path in run.chosen([]):
        found[f"notebooks/{path.name}"] = f"notebooks/{path.stem}.html"
        found[f"notebooks/read/{path.stem}.md"] = f"notebooks/{path.stem}.html"
    for path in run.questions():
        found[f"{LABORATORY}/questions/{path.name}"] = f"evidence/{path.stem}.html"
    for path in deck.at_hand():
        found[f"slides/{path.name}"] = f"slides/{path.stem}.html"
    for path in api.modules():
        found[f"minimal/{api.inside(path)}"] = f"api/{api.page_name(path)}"
    for path in (ROOT / "slides" / "figures").iterdir():
        found[f"slides/figures/{path.name}"] = f"figures/{path.name}"
    for path in units():
        folder = f"homework/{path.parent.name}"
        found[folder] = found[f"{folder}/README.md"] = f"{folder}.html"
        found[f"{folder}/exercises.py"] = f"{folder}.html#{TO_FILL_IN}"
    for path in (ROOT / LABORATORY / "measured").glob("*.json"):
        found[path.relative_to(ROOT).as_posix()] = f"evidence/recorded.html#{path.stem}"
    for path in (*(ROOT / LABORATORY / "runs").iterdir(), *(ROOT / LABORATORY / "asked").iterdir()):
        found[path.relative_to(ROOT).as_posix()] = "evidence/recorded.html"
    return found


def relative(target, at):
    """The address of one page of the site as seen from another."""
    return posixpath.relpath(target, posixpath.dirname(at) or ".")


def address(file, at):
    """Where a link to a file of the repository leads from the page `at`; None: nowhere.

    To its page on the site; without one, to the file itself under the project's address.
    """
    known = places().get(file)
    if known:
        return relative(known, at)
    if owner.project() and (ROOT / file).exists():
        return f"{owner.project()}/blob/main/{file}"
    return None


def anchor(file, at, words):
    """A link to a file of the repository; only its words where no page and no address is known."""
    to = address(file, at)
    return f'<a href="{to}">{words}</a>' if to else words


def heading(file, part):
    """The name that a heading of a Markdown file has on its page, by the one that links to it have:
    forges write it small and without signs."""
    if file.endswith(".md"):
        for told in re.findall(r"^#+ (.*)$", (ROOT / file).read_text(encoding="utf-8"), re.M):
            if re.sub(r"[^\w -]", "", told).lower().replace(" ", "-") == part:
                return html.escape(told.replace(" ", "-"))
    return part


def relink(body, source, at):
    """Links as `source`, a file of the repository, has them, turned into links between pages.

    One that leads nowhere is refused. One to a file that has no page stays as its words.
    """

    def turn(match):
        link, _, part = html.unescape(match["link"]).partition("#")
        if re.match(r"[a-z]+:", link):
            return match[0]
        if not link:  # a part of the same page
            return f'{match["before"]}"#{heading(source, part)}"' if part else match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        to = address(file, at)
        if to:
            return f'{match["before"]}"{to}{"#" + heading(file, part) if part else ""}"'
        if PREPARED.fullmatch(file):
            return f'{match["before"]}"#" title="in preparation"'
        if (ROOT / file).exists():
            return f'{match["before"]}"#" title="in the repository: {html.escape(file)}"'
        raise ValueError(f"{source}: the link {link} leads nowhere")

    body = re.sub(
        r'(?P<before><(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=)"(?P<link>[^"]*)"', turn, body
    )
    waiting = r'<a href="#" (title="in (?:preparation|the repository: [^"]*)")>(.*?)</a>'
    return re.sub(waiting, r'<span class="soft" \1>\2</span>', body)


# ---- of a site that is built ---------------------------------------------------------------------


COLOUR = re.compile(r'<span class="[^"]*">|</span>')  # nine tags in ten: no link and no name


class Links(HTMLParser):
    """The links of a page, and the names that links to it may end in."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names, self.outside = [], {""}, []
        self.feed(COLOUR.sub("", text))

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.names |= {told.get("id"), told.get("name")}
        if tag == "base" or told.get("rel") == "canonical":
            return  # the page's own address: named, not loaded
        link = told.get("href") or told.get("src") or told.get("srcset")
        if not link or link.startswith("data:"):
            return
        if not re.match(r"[a-z]+:|//", link):
            self.links.append(link)
        elif tag != "a":
            self.outside.append(link)


def broken(out):
    """Links that lead nowhere, and things that a page would load from elsewhere."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(out.rglob("*.html"))}
    faults = []
    for path, found in pages.items():
        faults += [f"{path.relative_to(out)} loads {link}" for link in found.outside]
    for path, found in pages.items():
        for link in found.links:
            file, _, part = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            named = part and not part.startswith("/") and target in pages
            lost = named and part not in pages[target].names
            if not target.is_file() or lost:
                faults.append(f"{path.relative_to(out)}: {link} leads nowhere")
    return faults
