const root = document.documentElement;
const all = selector => [...document.querySelectorAll(selector)];
const kept = name => { try { return localStorage.getItem(name); } catch { return null; } };
const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* a folder may keep nothing */ } };
// what a link leads to: ids are as typed, and those of notebooks are encoded as in an address
const led = hash => {
  const named = hash.slice(1);
  try {
    return document.getElementById(named) ?? document.getElementById(decodeURIComponent(named));
  } catch { return null; }  // 37.6-% is no code
};
document.getElementById("theme").addEventListener("click", window.switchTheme);

// whatever scrolls sideways can be scrolled with the keyboard. What is folded away is not measured, which would lay it
// out, and all is measured before anything changes: thousands of rows open at once
const reachable = () => {
  const boxes = all("pre, figure, .scroll, .picture, .equation").filter(box => box.checkVisibility());
  const measured = boxes.map(box => [box, box.scrollWidth > box.clientWidth]);
  for (const [box, wide] of measured) {
    if (wide) box.tabIndex = 0;
    if (!box.matches("figure, .scroll, .picture")) continue;
    box.classList.toggle("scrolls", wide);
    box.dataset.moves = say("moves");
  }
};

// the chapters of a narrow window
const menu = document.getElementById("menu");
const chapters = document.getElementById("chapters");
const current = chapters.querySelector("[aria-current]");
const openMenu = open => {
  document.body.classList.toggle("menu-open", open);
  menu.setAttribute("aria-expanded", open);
  if (!open) return;
  (current ?? chapters.querySelector("summary")).focus({ preventScroll: true });
  if (current) chapters.scrollTop = current.offsetTop - chapters.clientHeight / 3;
};
menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
addEventListener("keydown", event => {
  if (event.key === "Escape" && document.body.classList.contains("menu-open")) { openMenu(false); menu.focus(); }
});
if (current) chapters.scrollTop = current.offsetTop - chapters.clientHeight / 3;

// the contents follow the reader
const contents = document.querySelector(".contents details");
if (contents) {
  const margin = matchMedia("(min-width: 1241px)");
  const fit = () => { contents.open = margin.matches; };
  margin.addEventListener("change", fit);
  fit();
  const links = new Map(all(".contents a").map(link => [led(link.hash), link]));
  const headings = all("main :is(h2, h3)").filter(heading => links.has(heading));
  const follow = () => {
    const seen = headings.filter(h => h.offsetParent && h.getBoundingClientRect().top < innerHeight / 4);
    const now = links.get(seen.at(-1));
    for (const link of links.values())
      if (link === now) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    if (now && margin.matches) {  // never by scrollIntoView: that would move the page
      const box = contents.parentElement, at = now.offsetTop;
      if (at < box.scrollTop || at > box.scrollTop + box.clientHeight - 60) box.scrollTop = at - box.clientHeight / 3;
    }
  };
  addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
  follow();
}

// a page that opens on a phone has its sections folded below their headings, which say what was found
const phone = matchMedia("(max-width: 600px)").matches;
for (const heading of phone ? all(".folded main > h2") : []) {
  const box = document.createElement("details"), summary = document.createElement("summary");
  box.className = "section";
  summary.textContent = say("read_on");
  box.append(summary);
  while (heading.nextElementSibling?.matches(":not(h2, .pager)")) box.append(heading.nextElementSibling);
  heading.after(box);
}

// a link into something folded opens it; paper shows everything
const unfold = () => {
  const target = led(location.hash);
  for (let box = target; box; box = box.parentElement) if (box.localName === "details") box.open = true;
  const section = target?.matches(":has(+ .section)") ? target.nextElementSibling : null;
  if (section) section.open = true;
  if (section || target?.closest("details")) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
if (location.hash) unfold();
addEventListener("beforeprint", () => { for (const box of all("main details")) box.open = true; });

// copy
for (const pre of all("main pre:not(.output)")) {
  const box = document.createElement("div"), button = document.createElement("button");
  box.className = "box";
  button.className = "copy";
  button.type = "button";
  button.textContent = say("copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(pre.textContent.replace(/\n$/, ""))
      .then(() => { button.textContent = say("copied"); }, () => { button.textContent = say("copy_by_hand"); });
    setTimeout(() => { button.textContent = say("copy"); }, 1500);
  });
  pre.replaceWith(box);
  box.append(pre, button);
}

// guesses stay on this machine; Enter opens what came out, and the guess stands beside it
const isNumber = text => text.trim() !== "" && Number.isFinite(Number(text.replace(",", ".").replace("−", "-")));
for (const guess of all("[data-guess]")) {
  const name = `guess ${location.pathname.split("/").pop()} ${guess.dataset.guess}`;
  const rooms = all(`[data-said="${guess.dataset.guess}"]`);
  const status = guess.closest(".guess").querySelector("[role=status]");
  const tell = () => {
    const said = guess.value.trim();
    for (const room of rooms) room.textContent = said ? say("you_said", { guess: said }) : "";
  };
  guess.value = kept(name) ?? "";
  tell();
  guess.addEventListener("input", () => { keep(name, guess.value); status.textContent = ""; tell(); });
  guess.addEventListener("keydown", event => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (rooms[0] && isNumber(rooms[0].dataset.truth) && !isNumber(guess.value)) {
      const said = guess.value.trim();
      status.textContent = said ? say("no_number", { guess: said }) : say("write_one");
      return;
    }
    const inputs = [...guess.closest(".guess").querySelectorAll("input")];
    const next = inputs[inputs.indexOf(guess) + 1];
    if (next && !next.value) return next.focus();
    const held = all("details.held").find(box => guess.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING);
    status.textContent = say("kept");
    if (!held) return;
    held.open = true;
    held.querySelector("summary").focus();
  });
}

// claims by verdict
for (const button of all("[data-show]")) button.addEventListener("click", () => {
  const wanted = button.dataset.show, cards = all(".claims li");
  for (const other of all("[data-show]")) other.setAttribute("aria-pressed", other === button);
  for (const card of cards) card.hidden = Boolean(wanted) && card.dataset.verdict !== wanted;
  for (const list of all(".claims")) list.parentElement.open = Boolean(list.querySelector("li:not([hidden])"));
  const shown = cards.filter(card => !card.hidden).length;
  document.querySelector(".chooser [role=status]").textContent = say("shown", { some: shown, all: cards.length });
});

// a picture has its width once it is there
const loaded = new Promise(done => document.readyState === "complete" ? done() : addEventListener("load", done));
Promise.all([loaded, document.fonts.ready]).then(() => {
  reachable();
  addEventListener("resize", reachable);
  addEventListener("toggle", reachable, true);
  root.dataset.ready = "yes";
});
