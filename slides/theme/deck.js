// Equations first, while every slide has its size; then Reveal takes the stage.
const drawn = window.MathJax?.startup?.promise ?? Promise.resolve();
const printed = /print-pdf/.test(location.search) ? new Promise(done => Reveal.on("pdf-ready", done)) : null;
Promise.all([drawn, document.fonts.ready]).then(() => Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", slideNumber: "c/t",
  pdfSeparateFragments: false, controlsTutorial: false, plugins: [RevealNotes],
  keyboard: { 84: window.switchTheme },  // t
})).then(() => printed).then(() => { document.documentElement.dataset.ready = "yes"; });
