// Full-text search: `/` opens it, the index is read when it is first wanted, and it works from a folder.
(() => {
  const here = document.currentScript.dataset.root, shown = 30;
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Search the course");
  dialog.innerHTML = `<form method="dialog"><input type="search" aria-label="Search the course"
    placeholder="Search the course" autocomplete="off"><button>Close</button></form>
    <div class="found" tabindex="-1"><p class="soft" role="status"></p><ol></ol></div>`;
  document.body.append(dialog);
  const [field, status, list] = ["input", "[role=status]", "ol"].map(one => dialog.querySelector(one));

  const plain = text => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const safe = text => text.replace(/[&<>]/g, sign => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

  // words that stand everywhere count only where nothing else is asked for
  const fillers = new Set("an and are as at by do does for from how in is it of on or that the to what with".split(" "));
  const asked = text => {
    const words = plain(text).split(/[^\p{L}\p{N}_.]+/u).map(word => word.replace(/^\.+|\.+$/g, "")).filter(word => word.length > 1);
    const telling = words.filter(word => !fillers.has(word));
    return telling.length ? telling : words;
  };

  // words that mean one thing; each asks for the words behind it
  const same = { "positional": "rope", "encoding": "rope", "kvcache": "cache", "backprop": "backward", "backpropagation": "backward" };
  // one letter more, less or other, or two swapped
  const near = (one, other) => {
    if (Math.abs(one.length - other.length) > 1) return false;
    let at = 0;
    while (at < one.length && one[at] === other[at]) at++;
    const rest = (text, from) => text.slice(from);
    return rest(one, at + 1) === rest(other, at + 1) || rest(one, at) === rest(other, at + 1)
      || rest(one, at + 1) === rest(other, at)
      || (one[at] === other[at + 1] && one[at + 1] === other[at] && rest(one, at + 2) === rest(other, at + 2));
  };
  let known = null;  // every word of the course of five letters or more
  const meant = (word, rows) => {  // the words that stand for one that stands nowhere
    if (rows.some(row => row.slice(4).some(text => text.includes(word)))) return word;
    if (same[word]) return same[word];
    if (word.length < 5) return word;
    known ??= [...new Set(rows.flatMap(row => row.slice(4).join(" ").match(/\p{L}{5,}/gu) ?? []))];
    return known.find(other => other[0] === word[0] && near(word, other)) ?? word;
  };

  let loading = null;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = here + "/assets/index.js";
    script.onload = () => done(window.searchIndex.map(row => [...row, plain(row[1]), plain(row[2]), plain(row[3])]));
    script.onerror = failed;
    document.head.append(script);
  });

  // every word must stand somewhere in the section; its heading counts most, then the page's title
  const score = (words, [at, , , , title, heading, text]) => {
    let sum = 0;
    for (const word of words) {
      const many = text.split(word).length - 1;
      const worth = 8 * heading.includes(word) + 4 * title.includes(word) + Math.min(many, 5);
      if (!worth) return 0;
      sum += worth;
    }
    if (at.startsWith("api/")) return sum / 2;  // the course first, then its code
    return at.includes("#/") ? sum / 10 : sum;  // and slides, which say it again, behind the pages
  };
  const excerpt = (words, text) => {
    const places = words.map(word => plain(text).indexOf(word)).filter(at => at >= 0);
    const from = Math.max(0, Math.min(...places, text.length) - 60);
    const cut = (from ? "… " : "") + text.slice(from, from + 170);
    const any = words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    return cut.split(new RegExp(`(${any})`, "gi")).map((part, i) => i % 2 ? `<mark>${safe(part)}</mark>` : safe(part)).join("");
  };
  const search = async () => {
    const rows = await load();
    const words = [...new Set(asked(field.value).map(word => meant(word, rows)))];
    const found = words.length ? rows.map(row => [score(words, row), row]).filter(([sum]) => sum) : [];
    found.sort((a, b) => b[0] - a[0]);
    list.innerHTML = found.slice(0, shown).map(([, [at, page, heading, text]]) =>
      `<li><a href="${here}/${at}"><strong>${safe(heading || page)}</strong> <span class="soft">${safe(heading ? page : "")}</span><br>${excerpt(words, text)}</a></li>`).join("");
    status.textContent = !words.length ? "Type two letters or more." : found.length > shown
      ? `The first ${shown} of ${found.length} places` : `${found.length} place${found.length === 1 ? "" : "s"}`;
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
