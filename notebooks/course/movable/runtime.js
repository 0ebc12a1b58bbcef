// Connects the sliders of one piece with its picture. Every element that can change bears data-key;
// `compute` says what it should be. Nothing is loaded, nothing is sent.
function movable(id, stops, compute) {
  const root = document.getElementById(id);
  if (!root) return setTimeout(() => movable(id, stops, compute), 50); // the page is still being built
  const controls = [...root.querySelectorAll("[data-control]")];

  function update() {
    const values = {};
    for (const control of controls) {
      const { value, words } = stops[control.dataset.control][Number(control.value)];
      values[control.dataset.control] = value;
      if (control.type === "range") control.setAttribute("aria-valuetext", words); // a list says its own
      const shown = root.querySelector(`[data-shown="${control.dataset.control}"]`);
      if (shown) shown.textContent = words;
    }
    const found = compute(values);
    for (const [key, value] of Object.entries(found)) {
      for (const element of root.querySelectorAll(`[data-key="${key}"]`)) {
        const attribute = element.dataset.attribute;
        if (attribute) element.setAttribute(attribute, value);
        else element.textContent = value;
      }
    }
    return JSON.stringify(found);
  }

  // Nothing moves unasked; who wants less motion gets one step a press.
  function runs(button) {
    const control = root.querySelector(`[data-control="${button.dataset.run}"]`);
    let clock = null, ended = false;
    function stop() {
      clearInterval(clock);
      clock = null;
      button.textContent = "Run";
    }
    function advance() {
      const before = update();
      control.value = ended ? 0 : Number(control.value) + 1;
      ended = update() === before;
      if (ended || !root.isConnected) stop();
    }
    button.addEventListener("click", () => {
      if (clock) return stop();
      advance();
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      button.textContent = "Stop";
      clock = setInterval(advance, 700);
    });
  }

  for (const control of controls) control.addEventListener("input", update);
  root.querySelectorAll("[data-run]").forEach(runs);
  update();
  const picture = root.querySelector(".picture"); // on a phone it scrolls: by key, too
  if (picture.scrollWidth > picture.clientWidth) picture.tabIndex = 0;
  // JupyterLab would take arrows, Home and End for its notebook, unless what has the focus says so
  for (const one of root.querySelectorAll("input, select, button, .picture")) {
    one.dataset.lmSuppressShortcuts = "true";
  }
}
