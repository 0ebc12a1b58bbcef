"""What does the site look like? A picture of every page at three widths, light and dark.

The light ones show a page as it opens, the dark ones with every fold open. Long pages are cut into
several pictures; index.html shows all of them. What no page should do is told in words.
"""

import html
from pathlib import Path

from minimal.data.files import check_target, write_whole
from slides.browser import Browser

SIZES = {1440: 900, 820: 1180, 390: 844}  # a desk, a tablet, a phone: width and height
TILE = 3000  # pixels of height in one picture

UNFOLD = "document.querySelectorAll('main details').forEach(box => { box.open = true; })"
LOADED = "Promise.all([...document.images].map(image => image.decode().catch(() => {})))"

# what reaches beyond the window, and figures that are wider than the text around them
# in a window of this width: a phone that shows a wide page says that it is as wide as the page
WIDE = """(wide => {
  const faults = [], room = document.querySelector("main");
  const told = e => (e.alt || e.textContent || "").trim().replace(/\\s+/g, " ").slice(0, 50);
  if (document.documentElement.scrollWidth > wide)
    faults.push(`is ${document.documentElement.scrollWidth} px wide in a window of ${wide}`);
  if (!room) return faults;
  const right = room.getBoundingClientRect().right + 1;
  const moves = e => e !== room && (getComputedStyle(e).overflowX !== "visible" ||
    moves(e.parentElement));
  for (const e of document.querySelectorAll("main :is(img, svg, table)"))
    if (e.getBoundingClientRect().right > right && !moves(e.parentElement))
      faults.push(`${e.localName} wider than the text: ${told(e)}`);
  if (wide > 700)
    for (const e of document.querySelectorAll("main figure.scrolls:not(.map)"))
      faults.push(`figure wider than the text: ${told(e.querySelector("img") ?? e)}`);
  return faults;
})"""


def take(site, folder, names=(), say=print):
    """Pictures of the pages whose address holds one of these names, all without one; faults."""
    site, folder = Path(site), Path(folder)
    check_target(folder / "index.html", is_sheet)
    folder.mkdir(parents=True, exist_ok=True)
    places = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    places = [at for at in places if not names or any(name in at for name in names)]
    shots, faults = {}, []
    with Browser() as browser:
        for width in SIZES:
            for dark in (False, True):
                page = browser.page(width, SIZES[width], dark=dark, phone=width < 600)
                for at in places:
                    name = f"{at[:-5].replace('/', '-')}-{width}-{'dark' if dark else 'light'}"
                    found, tiles = one(page, site / at, folder / name, width, dark)
                    faults += [f"{at} at {width}: {fault}" for fault in found]
                    shots.setdefault(at, []).extend(tiles)
                say(f"{len(places)} pages at {width}, {'dark' if dark else 'light'}")
    write_whole(folder / "index.html", sheet(shots), is_sheet)
    return list(dict.fromkeys(faults))


def one(page, path, start, width, unfold):
    """A page as pictures start-1.png, start-2.png and so on: (faults, the pictures' names)."""
    page.errors.clear()
    page.requests.clear()
    page.open(path)
    if unfold:
        page.run(UNFOLD)
    page.run(LOADED)
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    faults = page.run(f"{WIDE}({width})")
    faults += [f"console: {error}" for error in page.errors]
    faults += [f"asks for {url}" for url in page.strangers()]
    return faults, [tile.name for tile in page.tiles(start, TILE)]


def is_sheet(path):
    """Is this a page that shows pictures of a site?"""
    return b"<title>Screenshots</title>" in path.read_bytes()[:2000]


def sheet(shots):
    """One page that shows them all."""
    rows = []
    for at, names in shots.items():
        images = "".join(
            f'<a href="{name}"><img src="{name}" alt="{name}" loading="lazy" width="320"></a>'
            for name in names
        )
        rows.append(f"<h2>{html.escape(at)}</h2><p>{images}</p>")
    style = "img { vertical-align: top; margin: 4px; border: 1px solid gray; }"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{style}</style>'
    return f"{head}<title>Screenshots</title>{''.join(rows)}</html>\n"
