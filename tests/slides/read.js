// What somebody with an upright phone could not read of a deck: a list of sentences.
(() => {
  const out = [], wide = document.documentElement.clientWidth;
  const root = document.documentElement, sections = [...document.querySelectorAll("section[id]")];
  const told = e => `${e.localName} "${(e.textContent || e.alt || "").trim().slice(0, 40)}"`;
  const seen = e => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    !e.closest("script, style");
  const moves = e => e !== document.body && (getComputedStyle(e).overflowX === "auto" ||
    moves(e.parentElement));
  const shown = e => e.offsetWidth > 200 ? e.getBoundingClientRect().width / e.offsetWidth
    : shown(e.parentElement);  // of a short word pixels are too coarse

  // the page itself
  if (wide !== WIDTH) out.push(`the page is ${wide} wide`);
  if (root.scrollWidth > wide) out.push(`the page moves sideways: ${root.scrollWidth}`);

  // every slide, one below the other, within what can be scrolled
  let below = 0;
  for (const section of sections) {
    const box = section.getBoundingClientRect(), top = box.top + scrollY;
    const reached = top >= below - 1 && box.bottom + scrollY <= root.scrollHeight + 1;
    if (!seen(section) || !box.height || !reached) out.push(`slide ${section.id} is out of reach`);
    below = Math.max(below, top + box.height);
    for (const e of section.querySelectorAll(".fragment"))
      if (!seen(e)) out.push(`${told(e)} is hidden`);
  }

  // everything on them: as large as it is shown, not as its style says
  for (const e of document.querySelectorAll("section[id] *")) {
    if (!seen(e) || e.closest("svg, math, .notes")) continue;
    const box = e.getBoundingClientRect();
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const size = parseFloat(getComputedStyle(e).fontSize) * shown(e);
    if (own && size < SMALLEST - 0.1) out.push(`${told(e)} is ${size.toFixed(1)} px`);
    if (box.width && box.right > wide + 0.5 && !moves(e.parentElement))
      out.push(`${told(e)} leaves the screen`);
    if (e.localName === "img" && box.width < Math.min(0.85 * wide, e.naturalWidth))
      out.push(`image shown ${Math.round(box.width)} wide`);
    const cut = e.matches("pre, div, figure, .equation") && e.clientWidth &&
      e.scrollWidth > e.clientWidth + 1;
    if (cut && !moves(e)) out.push(`${told(e)} is cut off at its side`);
    if (cut && moves(e) && e.localName !== "figure" && e.tabIndex < 0)
      out.push(`${told(e)} moves, and not with the keyboard`);
  }
  return out;
})()
