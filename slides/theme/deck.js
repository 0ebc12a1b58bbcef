// On a screen Reveal shows a slide at a time; on an upright phone the slides stand one below the other.
const printing = /print-pdf/.test(location.search);
const upright = matchMedia("(max-width: 600px) and (orientation: portrait)");
const ready = () => { document.documentElement.dataset.ready = "yes"; };

// a slide of few words has larger ones: they grow until it is filled, or a line would not fit its width
const ROOM = { height: 0.8, width: 1152, most: 1.5 };
const grow = slide => {
  const body = slide.querySelector(".slide:not(.title, .beside) > .body:not(:has(img))");
  if (!body?.firstElementChild || body.style.zoom) return;
  const last = body.lastElementChild, first = body.firstElementChild;
  const used = last.offsetTop + last.offsetHeight - first.offsetTop;
  const scale = slide.getBoundingClientRect().width / 1280;
  const lines = [...body.querySelectorAll("pre, math")].map(wide => {
    const words = document.createRange();
    words.selectNodeContents(wide);
    return words.getBoundingClientRect().width / scale + 60;  // what stands around it
  });
  const wanted = Math.sqrt(ROOM.height * body.clientHeight / used);  // what grows wraps, too
  body.style.zoom = Math.max(1, Math.min(ROOM.most, wanted, ROOM.width / Math.max(...lines, 1)));
};
const growing = () => {
  document.querySelector("main").removeAttribute("role");  // Reveal's "application": what is read here is the main text
  const slides = document.querySelectorAll(".slides section");
  for (const slide of printing ? slides : [Reveal.getCurrentSlide()]) grow(slide);
  Reveal.on("slidechanged", event => grow(event.currentSlide));
};

const show = () => {
  const printed = printing ? new Promise(done => Reveal.on("pdf-ready", done)) : null;
  return Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", slideNumber: "c/t",
    pdfSeparateFragments: false, controlsTutorial: false, plugins: [RevealNotes], scrollActivationWidth: null,
    keyboard: { 84: window.switchTheme },  // t
  }).then(() => printed).then(growing);
};

// Reveal lays out what its class names: without them its slides are a page like any other
const scroll = () => {
  const deck = document.querySelector(".reveal"), sections = [...deck.querySelectorAll("section")];
  deck.className = "page";
  deck.firstElementChild.className = "";

  // what is wider than the screen moves in a box of its own, and so with the keyboard, too
  for (const table of deck.querySelectorAll("table")) {
    const box = document.createElement("div");
    box.className = "scroll";
    table.replaceWith(box);
    box.append(table);
  }
  for (const box of deck.querySelectorAll("pre, .scroll, .equation"))
    if (box.scrollWidth > box.clientWidth && box.clientWidth) box.tabIndex = 0;

  // a figure is as wide as the screen, and larger when somebody asks
  for (const figure of deck.querySelectorAll("figure")) {
    const button = document.createElement("button");
    const turn = () => { button.textContent = say(figure.classList.toggle("large") ? "smaller" : "larger"); };
    button.type = "button";
    button.textContent = say("larger");
    button.addEventListener("click", turn);
    figure.querySelector("img")?.addEventListener("click", turn);
    figure.after(button);
  }

  // the address says which slide is read, as on a wide screen
  const named = () => document.getElementById(location.hash.replace(/^#\/?/, ""))?.scrollIntoView();
  const read = new IntersectionObserver(seen => {
    const now = seen.find(entry => entry.isIntersecting);
    if (now) history.replaceState(null, "", `#/${now.target.id}`);
  }, { rootMargin: "-40% 0px -60% 0px" });
  named();
  addEventListener("hashchange", named);
  for (const section of sections) read.observe(section);
};

// letters first, while every slide has its size
document.fonts.ready.then(upright.matches && !printing ? scroll : show).then(ready);
if (!printing) upright.addEventListener("change", () => { if (!matchMedia("print").matches) location.reload(); });
