// Full-text search: `/` opens it, the index is read when it is first wanted, and it works from a folder.
(() => {
  const here = document.currentScript.dataset.root, shown = 30;
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", say("search_course"));
  dialog.innerHTML = `<form method="dialog"><input type="search" aria-label="${say("search_course")}"
    placeholder="${say("search_course")}" autocomplete="off"><button>${say("close")}</button></form>
    <div class="found" tabindex="-1"><p class="soft" role="status"></p><ol></ol></div>`;
  document.body.append(dialog);
  const [field, status, list] = ["input", "[role=status]", "ol"].map(one => dialog.querySelector(one));

  const safe = text => text.replace(/[&<>]/g, sign => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

  let loading = null;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = here + "/assets/index.js";
    script.onload = () => done(searchIn(window.searchIndex));
    script.onerror = failed;
    document.head.append(script);
  });

  // the text around the first word that was meant, with all of them marked
  const excerpt = (text, named) => {
    const parts = text.split(/([\p{L}\p{N}_.]+)/u);  // sign, word, sign, …
    const first = parts.findIndex((part, i) => i % 2 && named(part));
    const from = Math.max(0, first - 16);
    let cut = "", long = 0;
    for (let i = from; i < parts.length && long < 170; i++) {
      cut += i % 2 && named(parts[i]) ? `<mark>${safe(parts[i])}</mark>` : safe(parts[i]);
      long += parts[i].length;
    }
    return (from ? "… " : "") + cut;
  };
  const search = async () => {
    const asked = field.value, find = await load();
    if (asked !== field.value) return;  // the reader went on
    const { places, named, whole } = find(asked);
    list.innerHTML = places.slice(0, shown).map(([at, page, heading, text]) =>
      `<li><a href="${here}/${at}"><strong>${safe(heading || page)}</strong> <span class="soft">${safe(heading ? page : "")}</span><br>${excerpt(text, named)}</a></li>`).join("");
    const all = places.length, name = all > shown ? "first_places" : all === 1 ? "one_place" : "places";
    const some = all && !whole ? say("none_with_all") : "";
    status.textContent = asked.trim() ? say(name, { some: shown, all }) + some : say("type_a_word");
  };

  const open = () => { if (!dialog.open) dialog.showModal(); field.select(); search(); };
  document.getElementById("find").addEventListener("click", open);
  field.addEventListener("input", search);
  addEventListener("keydown", event => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); open(); }
  });
  dialog.addEventListener("keydown", event => {  // arrows walk through the list, Enter opens
    const links = [field, ...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && at >= 0) { event.preventDefault(); links[Math.max(0, Math.min(links.length - 1, at + step))].focus(); }
    if (event.key === "Escape") dialog.close();  // a field of search would only be emptied
    if (event.key === "Enter" && event.target === field) { event.preventDefault(); links[1]?.click(); }
  });
  dialog.addEventListener("click", event => { if (event.target === dialog || event.target.closest("li a")) dialog.close(); });
})();
