// Which places of the course does a reader mean? Nothing of a page is touched here; search.js shows what is found.
//   const find = searchIn(rows)     rows: [address, page, heading, text]
//   find("kv cahce")                { places: [row, …] best first, named(word): was it meant?, whole }
// A word finds its other forms by its stem, its near misses by letters, its field's other names by SAME.

// One line, one thing. Words of a name stand together; commas part the names.
const SAME = `
  kv cache, kvcache
  positional encoding, position encoding, positional embedding, position embedding, rope, rotary embedding, rotary
  backprop, backpropagation, backward pass, backward
  apple silicon, macos, mac, macbook, mps
  windows, microsoft, wsl
  feed forward, ffn, mlp
  learning rate, lr, step size
  layer norm, layernorm, rms norm, rmsnorm
  tokenizer, byte pair encoding, bpe
  skip connection, residual stream, residual
  grouped query attention, gqa, grouped heads
  multi head attention, mha, heads
  perplexity, bits per byte, loss
  speedrun, modded nanogpt
  p value, significance, significant, permutation test
  copyright, licence, license
  softmax qk sqrt, scaled dot product attention, attention
  multi query attention, mqa
  latent attention, mla
  lookup table, embedding table, value embedding
  value residual, resformer
  sampling, sample, generate, generation
  install, set up, setup
  initialization, initialize, init
  graphics card, gpu, cuda
  error bar, confidence interval, interval
  random seed, seed
  cite, citation, bibtex
  teacher, instructor, ta
  grading, grade, marking
  sliding window, local attention
`.trim().split("\n").map(line => line.split(",").map(name => name.trim().split(" ")));

// What stands everywhere counts only where nothing else is asked for.
const FILLERS = new Set(`a an and are as at be by can do does for from how i in is it its me my of on or so that the
  there this to use was we what when where which why will with you your`.split(/\s+/));

// A symbol has many spellings and is one word: V1, V₁ and V_1; wv, Wᵥ and W_V; λ and lambda.
const GREEK = `alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau
  upsilon phi chi psi omega`.split(/\s+/);  // in Unicode's order; one sigma ends a word
const inLatin = letter => GREEK[letter.normalize("NFKD").codePointAt(0) - "α".codePointAt(0)] ?? letter;
const lowered = text => text.replace(/[₀-₉ₐ-ₜᵢ-ᵪⱼ]+/gu, marks => "_" + marks.normalize("NFKD"));
const plain = text => lowered(text).normalize("NFD").replace(/\p{M}/gu, "").toLowerCase()
  .replace(/\p{Script=Greek}(?![_\d])/gu, "$& ")  // cos φ, η λ: each a word, up to its index
  .replace(/\p{Script=Greek}/gu, letter => " " + inLatin(letter));
// of letters alone only those without a vowel: A_n is no "an"
const SYMBOL = /^(?:\p{L}+_\d{1,2}|[b-df-hj-tv-xz]_[b-df-hj-tv-xz])$/u;
function whole(word) {
  const joined = word.replace("_", "");
  return SYMBOL.test(word) && !FILLERS.has(joined) ? joined : word;
}

const asTyped = text => plain(text).match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu) ?? [];
const lettersOf = text => asTyped(text).map(whole);
// a name of code is found by itself and by its parts
const wordsOf = text => asTyped(text).flatMap(word =>
  /[_.]/.test(word) ? [whole(word), ...word.split(/[_.]+/).filter(Boolean)] : [word]);

// The part of a word that its forms share: cache, caches, cached and caching are "cach".
function stem(word) {
  if (word.length < 4 || /[\d_.]/.test(word)) return word;
  let root = word.replace(/ies$/, "y").replace(/(x|ch|sh|ss)es$/, "$1").replace(/([^sui])s$/, "$1");
  root = root.replace(/is(e|ed|er|ing|ation)$/, "iz$1");  // as the British write it
  for (const ending of ["ization", "ation", "ing", "ion", "ed", "er", "al", "ly"]) {
    const left = root.slice(0, -ending.length);
    if (!root.endsWith(ending) || left.length < 4 || !/[aeiouy]/.test(left)) continue;
    root = ending === "ization" ? left + "iz" : left;
    break;
  }
  return root.replace(/([bdgmnprt])\1$/, "$1").replace(/e$/, "").replace(/y$/, "i");
}

// How many letters are to be put in, taken out, replaced or swapped with the next; `most` + 1 if more.
function distance(one, other, most) {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let before = [], last = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const miss = one[i - 1] === other[j - 1] ? 0 : 1;
      row[j] = Math.min(row[j - 1] + 1, last[j] + 1, last[j - 1] + miss);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (swapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return Math.min(last[other.length], most + 1);
}

// The course first, then what its records say, then its code, unless a name of code is asked for; slides say it again, and lists only name it.
function weightOf([address, , heading], asked) {
  if (address.startsWith("api/")) return lettersOf(asked).some(word => /[_.]\w/.test(word)) ? 1 : 0.1;
  if (address.startsWith("slides/")) return 0.35;
  if (/^(changes|evidence.(recorded|published|ledger))/.test(address) || heading === "References") return 0.4;
  return address.startsWith("evidence/") ? 0.7 : 1;
}

function searchIn(rows) {
  // ---- the index: stem -> {row: how much it says there} ----
  const index = new Map(), written = new Map();  // written: word -> stem
  const rootOf = word => {
    if (!written.has(word)) written.set(word, stem(word));
    return written.get(word);
  };
  const joined = rows.map(row => row.slice(1).map(text => ` ${lettersOf(text).map(rootOf).join(" ")} `));
  rows.forEach(([, page, heading, text], at) => {
    const counts = new Map();
    const note = (field, worth) => {
      for (const word of wordsOf(field)) {
        const root = rootOf(word);
        const [words = 0, named = 0] = counts.get(root) ?? [];
        counts.set(root, worth ? [words, Math.max(named, worth)] : [words + 1, named]);
      }
    };
    note(page, 3);
    note(heading || page, 6);
    note(text, 0);
    const long = 1 + text.length / 1500;
    for (const [root, [words, named]] of counts) {
      if (!index.has(root)) index.set(root, new Map());
      index.get(root).set(at, named + 3 * words / (words + long));
    }
  });
  const rare = root => Math.log(1 + rows.length / index.get(root).size);

  // ---- what a reader may mean: [{roots, worth}] for a word or a name of several words ----
  function split(word) {  // two words written as one
    for (let at = 2; at <= word.length - 2; at++) {
      const parts = [word.slice(0, at), word.slice(at)];
      if (parts.every(part => written.has(part))) return [{ roots: parts.map(stem), worth: 0.9 }];
    }
    return [];
  }
  function near(word) {
    const most = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
    const found = [];
    for (const [other, root] of written) {
      if (other.length < 4 || (most > 1 && other[0] !== word[0])) continue;
      const far = distance(word, other, most);
      if (far <= most) found.push({ roots: [root], worth: far === 1 ? 0.7 : 0.4, far, seen: index.get(root).size });
    }
    found.sort((a, b) => a.far - b.far || b.seen - a.seen);
    return found.filter(one => one.far === found[0].far).slice(0, 4);
  }
  function begun(word) {  // the reader is still typing
    const whole = [...written.keys()].filter(other => other.length > word.length && other.startsWith(word));
    const roots = new Set(whole.map(other => written.get(other)));
    return [...roots].slice(0, 60).map(root => ({ roots: [root], worth: 0.5 }));
  }
  function meant(words, last) {
    const roots = words.map(stem);
    const found = [{ roots, worth: 1 }];
    for (const names of SAME) {
      if (!names.some(name => name.map(stem).join(" ") === roots.join(" "))) continue;
      for (const name of names) found.push({ roots: name.map(stem), worth: 0.8 });
    }
    if (words.length > 1) return found;
    if (last && words[0].length > 2) found.push(...begun(words[0]));
    if (!found.some(one => one.roots.every(root => index.has(root)))) found.push(...split(words[0]));
    if (!found.some(one => one.roots.every(root => index.has(root)))) found.push(...near(words[0]));
    return found;
  }

  // ---- a reader's words as things that she asks for, each with the ways to say it ----
  const longest = Math.max(...SAME.flat().map(name => name.length));
  const names = new Set(SAME.flat().map(name => name.map(stem).join(" ")));
  function things(asked) {
    let words = lettersOf(asked);
    const named = at => at + 1 < words.length && names.has(words.slice(at, at + 2).map(stem).join(" "));  // p value
    const telling = words.filter((word, at) =>
      !FILLERS.has(word) && (word.length > 1 || /[\p{N}]/u.test(word) || named(at)));
    words = telling.length ? telling : words;
    const found = [], typing = /[\p{L}\p{N}_]$/u.test(asked);
    for (let at = 0; at < words.length;) {
      let many = Math.min(longest, words.length - at);
      while (many > 1 && !names.has(words.slice(at, at + many).map(stem).join(" "))) many--;
      found.push(meant(words.slice(at, at + many), typing && at + many === words.length));
      at += many;
    }
    return { found, phrase: words.map(stem).join(" ") };
  }

  // ---- the score of one thing: {row: points} ----
  function points(ways) {
    const best = new Map();
    for (const { roots, worth } of ways) {
      if (!roots.every(root => index.has(root))) continue;
      for (const at of index.get(roots[0]).keys()) {
        if (!roots.every(root => index.get(root).has(at))) continue;
        const each = roots.map(root => rare(root) * index.get(root).get(at));
        const together = roots.length === 1 || joined[at].some(text => text.includes(` ${roots.join(" ")} `));
        const sum = worth * (together ? 1 : 0.4) * each.reduce((a, b) => a + b) / Math.sqrt(roots.length);
        best.set(at, Math.max(best.get(at) ?? 0, sum));
      }
    }
    return best;
  }

  return asked => {
    const { found, phrase } = things(asked);
    const question = ` ${lettersOf(asked).map(stem).join(" ")} `;
    const each = found.map(points), sums = new Map();
    for (const scores of each) {
      for (const [at, sum] of scores) {
        const [all, many] = sums.get(at) ?? [0, 0];
        sums.set(at, [all + sum, many + 1]);
      }
    }
    // every thing must be there; where no place has all, those with most
    const most = Math.max(0, ...[...sums.values()].map(([, many]) => many));
    const scored = [...sums].filter(([, [, many]]) => many === most).map(([at, [sum]]) => {
      const [page, heading, text] = joined[at], named = ` ${phrase} `;
      const title = rows[at][2] ? heading : page;
      const unnumbered = title.replace(/^ (hw)?\d+[a-z]? /, " ");  // 10 · Bank of Values
      const exact = unnumbered === question && !rows[at][0].startsWith("api/");
      const said = exact ? 4 : title.includes(named) ? 2 : text.includes(named) ? 1.3 : 1;
      return [sum * said * weightOf(rows[at], asked), at];
    });
    scored.sort((a, b) => b[0] - a[0]);
    const roots = new Set(found.flat().flatMap(one => one.roots));
    const named = word => wordsOf(word).some(part => roots.has(stem(part)));
    return { places: scored.map(([, at]) => rows[at]), named, whole: most === found.length };
  };
}
