"""Where has the owner of a copy published it? The addresses in pyproject.toml, if there are any."""

import re
import tomllib

from course import CHECKOUT

BESIDE = "**Beside it.** "  # in the head of a notebook, before its links
EXECUTED = "[the notebooks with their pictures](notebooks/read/README.md)"  # in README
SITE = re.compile(r", or \[the whole course as pages\]\([^)]*\)")
TO_READ = re.compile(r"\[executed, to read\]\([^)]*\) · ")  # in a notebook's head, where it is
RENDERED = re.compile(r"\[Page\]\([^)]*\) · ")


def project():
    """The address of this repository, if the owner of a fork has told pyproject.toml; else None."""
    return address("Homepage")


def site_address():
    """The address at which the owner shows the site; None: it is read from a folder."""
    return address("Documentation")


def address(name):
    about = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return about.get("urls", {}).get(name)


def with_page(source, name):
    """The head of a notebook, with links to where it can be read with its pictures: to the file
    that `make read` writes, and to its page where the owner publishes the site.

    `python notebooks/run.py --clean` writes them, and takes out what is gone.
    """
    source, home, links = on_its_page(source), site_address(), ""
    if home:
        links += f"[Page]({home.rstrip('/')}/notebooks/{name}.html) · "
    if (CHECKOUT / "notebooks" / "read" / f"{name}.md").exists():
        links += f"[executed, to read](../notebooks/read/{name}.md) · "
    return source.replace(BESIDE, BESIDE + links, 1)


def without_page(source):
    return RENDERED.sub("", source, count=1)


def on_its_page(source):
    """The head as a page shows it, which needs no link to where the reader is."""
    return TO_READ.sub("", without_page(source), count=1)


def with_site(readme):
    """README with a link to the published site behind the one to the page that needs none."""
    readme, home = SITE.sub("", readme), site_address()
    if not home:
        return readme
    link = f", or [the whole course as pages]({home.rstrip('/')}/index.html)"
    return readme.replace(EXECUTED, EXECUTED + link, 1)
