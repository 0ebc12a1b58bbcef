// What an audience could not read on the slide that is shown now: a list of sentences.
(() => {
  const out = [], slide = Reveal.getCurrentSlide(), stage = slide.querySelector(".slide");

  const seen = e => {
    for (let p = e; p && p !== slide.parentElement; p = p.parentElement) {
      const s = getComputedStyle(p);
      if (s.display === "none" || s.visibility === "hidden" || s.opacity === "0") return false;
    }
    return true;
  };

  // the slide itself
  if (stage.scrollHeight > 720 || stage.scrollWidth > 1280)
    out.push(`holds ${stage.scrollWidth} x ${stage.scrollHeight} pixels`);

  // everything on it
  for (const e of stage.querySelectorAll("*")) {
    if (!seen(e)) continue;
    const box = e.getBoundingClientRect(), in_svg = e.closest("svg, math");
    const what = `${e.localName} "${(e.textContent || e.alt || "").trim().slice(0, 40)}"`;
    const beyond = box.right > 1280.5 || box.bottom > 720.5 || box.left < -0.5 || box.top < -0.5;
    if (!in_svg && box.width && beyond) out.push(`${what} leaves the slide`);
    const wide = e.scrollWidth > e.clientWidth + 1 && e.clientWidth;
    if ((["pre", "div"].includes(e.localName) || e.matches(".equation")) && wide)
      out.push(`${what} is cut off at its side`);
    const high = e.scrollHeight > e.clientHeight + 1 && e.clientHeight;
    if (["pre", "div"].includes(e.localName) && high) out.push(`${what} is cut off below`);
    if (e.localName === "img") {
      if (!(e.alt || "").trim()) out.push("image without alt text");
      const drawn = e.naturalWidth, shown = Math.round(box.width);
      if (box.width < 0.985 * drawn)
        out.push(`image drawn ${drawn} wide, shown ${shown} wide: its text shrinks`);
    }
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const size = parseFloat(getComputedStyle(e).fontSize);
    if (own && !in_svg && size < SMALLEST - 0.01) out.push(`${what} is ${size} px`);
  }

  // it is filled, or its words stand in its middle
  const body = stage.querySelector(".body"), room = body.getBoundingClientRect();
  const boxes = [...body.querySelectorAll("p, li, th, td, img, pre, math")]
    .map(e => e.getBoundingClientRect()).filter(box => box.height);
  const above = Math.min(...boxes.map(box => box.top)) - room.top;
  const below = room.bottom - Math.max(...boxes.map(box => box.bottom));
  if (!stage.matches(".title") && below - above > 0.4 * room.height)
    out.push(`ends in the middle, ${Math.round(below)} px above its end`);

  // its parts, pair by pair
  const parts = [...body.querySelectorAll(":scope > *, .left > *, .right > *")].filter(seen);
  for (const a of parts) for (const b of parts) {
    if (a === b || a.contains(b) || b.contains(a)) continue;
    const r = a.getBoundingClientRect(), s = b.getBoundingClientRect();
    const down = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
    const across = Math.min(r.right, s.right) - Math.max(r.left, s.left);
    if (down > 2 && across > 2 && a.compareDocumentPosition(b) & 4)
      out.push(`${a.localName} and ${b.localName} overlap`);
  }
  return out;
})()
