"""Walks a deck as a speaker would, slide by slide and fragment by fragment, and says what an audience could not read."""

from pathlib import Path

SMALLEST = 20  # pixels of text on a slide of 1280 x 720
LOOK = """(() => {
  const out = [], slide = Reveal.getCurrentSlide(), stage = slide.querySelector(".slide"), seen = e => {
    for (let p = e; p && p !== slide.parentElement; p = p.parentElement) {
      const s = getComputedStyle(p);
      if (s.display === "none" || s.visibility === "hidden" || s.opacity === "0" || p.localName === "mjx-assistive-mml") return false;
    }
    return true; };
  if (stage.scrollHeight > 720 || stage.scrollWidth > 1280) out.push(`holds ${stage.scrollWidth} x ${stage.scrollHeight} pixels`);
  for (const e of stage.querySelectorAll("*")) {
    if (!seen(e)) continue;
    const box = e.getBoundingClientRect(), what = `${e.localName} "${(e.textContent || e.alt || "").trim().slice(0, 40)}"`;
    if (!e.closest("svg") && box.width && (box.right > 1280.5 || box.bottom > 720.5 || box.left < -0.5 || box.top < -0.5))
      out.push(`${what} leaves the slide`);
    if (["pre", "div", "mjx-container"].includes(e.localName) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth) out.push(`${what} is cut off at its side`);
    if (["pre", "div"].includes(e.localName) && e.scrollHeight > e.clientHeight + 1 && e.clientHeight) out.push(`${what} is cut off below`);
    if (e.localName === "img") {
      if (!(e.alt || "").trim()) out.push("image without alt text");
      if (box.width < 0.985 * e.naturalWidth) out.push(`image drawn ${e.naturalWidth} wide, shown ${Math.round(box.width)} wide: its text shrinks`);
    }
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const size = parseFloat(getComputedStyle(e).fontSize);
    if (own && !e.closest("svg") && size < SMALLEST - 0.01) out.push(`${what} is ${size} px`);
  }
  const body = stage.querySelector(".body"), parts = [...body.querySelectorAll(":scope > *, .left > *, .right > *")].filter(seen);
  for (const a of parts) for (const b of parts)
    if (a !== b && !a.contains(b) && !b.contains(a)) {
      const r = a.getBoundingClientRect(), s = b.getBoundingClientRect();
      if (Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 2 && Math.min(r.right, s.right) - Math.max(r.left, s.left) > 2
          && a.compareDocumentPosition(b) & 4) out.push(`${a.localName} and ${b.localName} overlap`);
    }
  return out;
})()""".replace("SMALLEST", str(SMALLEST))


def faults(browser, path, dark=False, shots=None):
    """Every fault of a deck; with `shots`, a folder for a picture of each slide as its last fragment leaves it."""
    page, found, at = browser.page(dark=dark), [], 0
    page.open(path)
    while True:
        where = page.run("Reveal.getCurrentSlide().id")
        found += [f"{path.stem}, slide {where}: {fault}" for fault in page.run(LOOK)]
        if shots and not page.run("Reveal.availableFragments().next"):
            Path(shots).mkdir(parents=True, exist_ok=True)
            page.shot(Path(shots, f"slide-{at:02}.png"))
            at += 1
        if page.run("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            break
        page.run("Reveal.next()")
    found += [f"{path.stem}: console: {error}" for error in page.errors]
    found += [f"{path.stem}: asks for {url}" for url in page.strangers()]
    return list(dict.fromkeys(found))
