// Light or dark: the reader's choice here, else what the system asks for.
(() => {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const show = () => {
    const paper = /print-pdf/.test(location.search);  // paper is white
    root.dataset.theme = paper ? "light" : kept() || (system.matches ? "dark" : "light");
  };
  window.switchTheme = () => {
    try { localStorage.setItem("theme", root.dataset.theme === "dark" ? "light" : "dark"); } catch { return; }
    show();
  };
  system.addEventListener("change", show);
  show();
})();
