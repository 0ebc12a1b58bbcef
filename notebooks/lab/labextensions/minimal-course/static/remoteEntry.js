// Predict and Your turn are the loudest boxes of a notebook, from the moment it opens. JupyterLab
// strips scripts and styles from Markdown, so the words themselves say which boxes these are. And the
// first line of a hidden cell ends where the window does: it made all of a narrow one move sideways.
// A browser keeps the cell in its place that the cursor is on, and so pushed a long card above it out
// of the window, with the verdict: what a cell says grows downwards.
(window._JUPYTERLAB = window._JUPYTERLAB || {})["minimal-course"] = {
  init() {},
  get: () => Promise.resolve(() => ({
    __esModule: true,
    default: { id: "minimal-course:boxes", autoStart: true, activate },
  })),
};

const STYLE = `
.jp-Notebook .course-loud {
  margin: 0.8em 0; padding: 0.7em 1.2em 0.1em; border-left: 8px solid; border-radius: 4px;
  color: var(--jp-content-font-color1);
}
.jp-Notebook .course-predict { border-color: #c8501e; background: rgb(200 80 30 / 14%); }
.jp-Notebook .course-turn { border-color: #1f7fd1; background: rgb(31 127 209 / 14%); }
.jp-Notebook .jp-Cell.jp-mod-active { overflow-anchor: none; }
.jp-Notebook .jp-Placeholder, .jp-Notebook .jp-Placeholder * { min-width: 0; }
.jp-Notebook .jp-Placeholder-contentContainer { overflow: hidden; }
.jp-Notebook .jp-PlaceholderText { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.jp-Notebook .course-loud > p:first-child > strong:first-child { font-size: 1.15em; }
`;
const BOXES = { Predict: "course-predict", "Your turn": "course-turn" };
const OPENING = ".jp-RenderedMarkdown blockquote > p > strong:first-child";

function mark() {
  for (const words of document.querySelectorAll(OPENING)) {
    const kind = BOXES[words.textContent.trim().replace(/\.$/, "")];
    if (!kind || words.previousSibling) continue;
    words.closest("blockquote").classList.add("course-loud", kind);
  }
}

function activate() {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);
  let asked = false;
  new MutationObserver(() => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; mark(); });
  }).observe(document.body, { childList: true, subtree: true });
}
