"""Decks and site, built once for all tests of this folder."""

import os
import sys
from pathlib import Path

import pytest

from tests import warm

sys.path.append(str(Path(__file__).parent))  # walk.py


@pytest.fixture(autouse=True)
def npm_packages_are_an_extra(request, monkeypatch):
    """A test without the mark `site` finds none, wherever it runs."""
    if not request.node.get_closest_marker("site"):
        from slides import letters

        monkeypatch.setattr(letters, "PACKAGES", letters.ROOT / "nowhere")


@pytest.fixture(scope="session")
def copies(tmp_path_factory):
    """Every deck executed by the command's own function: the copies, and what went wrong.

    $MINIMAL_EXECUTED/decks keeps the copies from one run of the tests to the next.
    """
    from slides import deck

    by_hand = os.environ.get("MINIMAL_EXECUTED")
    folder = Path(by_hand, "decks") if by_hand else tmp_path_factory.mktemp("decks")
    with warm.runners():
        return deck.executed(deck.decks(), "smoke", folder, jobs=1)


@pytest.fixture(scope="session")
def built(copies, tmp_path_factory):
    """A folder with every deck as HTML, as `make slides` writes it."""
    import nbformat

    from slides import deck

    out = tmp_path_factory.mktemp("slides")
    deck.lay_out(out / "assets")
    for path, copy in copies[0].items():
        (out / f"{path.stem}.html").write_text(deck.html(nbformat.read(copy, 4)), encoding="utf-8")
    return out


@pytest.fixture(scope="session")
def site(copies, tmp_path_factory):
    """The site from smoke: of notebooks that the suite has executed, else of the first two."""
    from notebooks import run
    from slides import build, deck

    by_suite = sorted(tmp_path_factory.getbasetemp().glob("course*/smoke/*.ipynb"))
    by_hand = Path(os.environ.get("MINIMAL_EXECUTED", "nowhere")).glob("*.ipynb")
    ready = {path.name: path for path in [*by_suite, *by_hand]}
    sources, faults = run.chosen([]), []
    found = {path: ready[path.name] for path in sources if path.name in ready}
    if not found:
        folder = tmp_path_factory.mktemp("executed")
        with warm.runners():
            found, faults = deck.executed(sources[:2], "smoke", folder, jobs=1)
    out = tmp_path_factory.mktemp("site")
    build.build(out, found, "smoke", copies[0], printing=False)
    return out, faults
