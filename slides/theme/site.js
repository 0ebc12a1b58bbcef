document.getElementById("theme").addEventListener("click", window.switchTheme);
for (const wide of document.querySelectorAll("table")) {  // a wide table scrolls in a box of its own
  const box = document.createElement("div");
  box.className = "scroll";
  wide.replaceWith(box);
  box.append(wide);
}
const reachable = () => {  // whatever scrolls sideways can be scrolled with the keyboard
  for (const box of document.querySelectorAll("pre, .scroll, mjx-container[display=true]"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
};
const drawn = window.MathJax?.startup?.promise ?? Promise.resolve();
Promise.all([drawn, document.fonts.ready]).then(() => {
  reachable();
  addEventListener("resize", reachable);
  document.documentElement.dataset.ready = "yes";
});
