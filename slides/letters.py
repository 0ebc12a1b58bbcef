"""In which letters is a figure? In those of the page around it, where the npm packages have them.

Matplotlib reads no web font, and a drawing in a page may load no file. So the first gets them as
TrueType for the time of a build, and into each drawing they are written.
"""

import base64
import contextlib
import functools
import os
import re
import tempfile
from pathlib import Path

from course import figures
from minimal.data.files import write_whole
from notebooks.run import ROOT

FAMILY = "Source Sans 3"
PACKAGES = ROOT / "node_modules"
WEIGHTS = (400, 700)
ALPHABETS = ("latin", "greek")
EMBEDDED = re.compile(r'(?<=src="data:image/svg\+xml;base64,)[^"]*')
STYLE_OPENS = re.compile(r"<style[^>]*>")
BOLD = re.compile(r"bold|font-weight: ?[67]00")
GREEK = re.compile("[\u0370-\u03ff]")
RANGES = dict(latin="U+0000-00FF,U+2000-206F,U+2212", greek="U+0370-03FF")


def file_of(alphabet, weight, kind):
    folder = PACKAGES / "@fontsource" / "source-sans-3" / "files"
    return folder / f"source-sans-3-{alphabet}-{weight}-normal.{kind}"


def packages_here():
    """Are the npm packages here?"""
    return PACKAGES.is_dir()


@contextlib.contextmanager
def for_figures():
    """Notebooks that are executed in here draw in these letters. A family has one file a weight for
    Matplotlib, so each alphabet is a family of its own."""
    if not packages_here():
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        for alphabet in ALPHABETS:
            for weight in WEIGHTS:
                true_type(alphabet, weight, Path(folder, f"{alphabet}-{weight}.ttf"))
        os.environ[figures.LETTERS_FROM] = folder
        try:
            yield
        finally:
            del os.environ[figures.LETTERS_FROM]


def true_type(alphabet, weight, path):
    from fontTools.ttLib import TTFont  # Matplotlib brings it

    font = TTFont(file_of(alphabet, weight, "woff"))
    font.flavor = None
    for record in font["name"].names:
        if record.nameID in (1, 16):  # of the family
            record.string = f"{FAMILY} {alphabet}"
    font.save(path)


def into_drawings(folder):
    """Each SVG of a folder brings the letters that its words are in."""
    for path in folder.glob("*.svg"):
        write_whole(path, with_letters(path.read_text(encoding="utf-8")))


def into_images(markup):
    """So do the SVGs that a page holds as images."""
    if not packages_here():
        return markup
    decoded = lambda found: base64.b64decode(found[0]).decode()
    encoded = lambda svg: base64.b64encode(svg.encode()).decode()
    return EMBEDDED.sub(lambda found: encoded(with_letters(decoded(found))), markup)


def with_letters(svg):
    """A drawing with the faces that it needs: bold and Greek ones only where there are such."""
    weights = WEIGHTS if BOLD.search(svg) else WEIGHTS[:1]
    alphabets = ALPHABETS if GREEK.search(svg) else ALPHABETS[:1]
    faces = "".join(face(alphabet, weight) for alphabet in alphabets for weight in weights)
    return STYLE_OPENS.sub(lambda opened: opened[0] + faces, svg, count=1)


@functools.cache
def face(alphabet, weight):
    data = base64.b64encode(file_of(alphabet, weight, "woff2").read_bytes()).decode()
    return (
        f'@font-face{{font-family:"{FAMILY}";font-weight:{weight};'
        f"unicode-range:{RANGES[alphabet]};src:url(data:font/woff2;base64,{data})}}\n"
    )
