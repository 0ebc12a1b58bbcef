"""How does a reader get from a page to what can be run? The buttons above every notebook.

The address of a copy of the course stands in one place: `Homepage` in pyproject.toml.
"""

import html
import re
from urllib.parse import quote, urlsplit

from course import owner
from slides import links
from slides.labels import say

# host -> what opens a notebook of it: (name, address)
HOSTS = {
    "github.com": (
        ("Colab", "https://colab.research.google.com/github/{repo}/blob/main/{file}"),
        ("Binder", "https://mybinder.org/v2/gh/{repo}/main?labpath={quoted}"),
    ),
    "gitlab.com": (("Binder", "https://mybinder.org/v2/gl/{quoted_repo}/main?labpath={quoted}"),),
}
# the buttons as they stand on a page, and the line of its state below them
TOOLS = re.compile(r'<div class="toolbar">.*?</div>(<p class="soft state">.*?</p>)?', flags=re.S)


def services(file):
    """[(name, address)] of what opens a file of the repository in a browser; empty without one."""
    home = owner.project()
    if not home:
        return []
    where = urlsplit(home)
    repo = where.path.strip("/").removesuffix(".git")
    told = dict(repo=repo, quoted_repo=quote(repo, safe=""), file=file, quoted=quote(file, safe=""))
    return [(name, form.format(**told)) for name, form in HOSTS.get(where.netloc, ())]


def run_box(file):
    """The ways to run a notebook, behind one button."""
    ways = [
        "<li>"
        + say(
            "on_your_machine",
            command="<code>make lab</code>",
            file=f"<code>{html.escape(file)}</code>",
        )
        + "</li>"
    ]
    for name, address in services(file):
        more = ""
        if name == "Colab":
            more = (
                f". {say('paste')}<pre><code>"
                f"!git clone --depth 1 {html.escape(owner.project())} course "
                "&amp;&amp; pip install --quiet ./course\n%cd course/notebooks</code></pre>"
            )
        ways.append(f'<li><a class="launch" href="{html.escape(address)}">{name}</a>{more}</li>')
    return f"<details><summary>{say('run_it')}</summary><ul>{''.join(ways)}</ul></details>"


def toolbar(path, at, decks=(), printed=(), homework=()):
    """What belongs to a notebook: deck, homework, source, and how to run it."""
    stem, file = path.stem, path.relative_to(links.ROOT).as_posix()
    there = lambda to, word: f'<a href="{links.relative(to, at)}">{word}</a>'
    found = []
    if stem in decks:
        found.append(there(f"slides/{stem}.html", say("slides")))
    if stem in printed:
        found.append(there(f"slides/{stem}.pdf", say("pdf")))
    for name in homework:
        found.append(there(f"homework/{name}.html", say("homework_number", number=name[2:4])))
    found.append(f'<a href="{path.name}" download>{say("download")}</a>')
    if owner.project():
        found.append(f'<a href="{owner.project()}/blob/main/{file}">{say("source")}</a>')
    return f'<div class="toolbar">{"".join(found)}{run_box(file)}</div>'
