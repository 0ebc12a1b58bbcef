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
      control.setAttribute("aria-valuetext", words);
      const shown = root.querySelector(`[data-shown="${control.dataset.control}"]`);
      if (shown) shown.textContent = words;
    }
    for (const [key, value] of Object.entries(compute(values))) {
      for (const element of root.querySelectorAll(`[data-key="${key}"]`)) {
        const attribute = element.dataset.attribute;
        if (attribute) element.setAttribute(attribute, value);
        else element.textContent = value;
      }
    }
  }

  for (const control of controls) control.addEventListener("input", update);
  update();
}
