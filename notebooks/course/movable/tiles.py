"""In which order does a flash kernel read? Tiles of a map, and the three numbers of a row."""

import json
import math

from course.movable.piece import Control, Piece, fixed, moving_path, part, whole_numbers

WORDS = "the cat saw the dog and the dog saw the cat and then they ran off".split()
ROWS = sorted(set(WORDS), key=WORDS.index)  # the table's: one for each word
T = len(WORDS)  # queries, and keys
CELL, LEFT, TOP = 14, 34, 34  # a score's square, and where the map begins
RIGHT, HIGH = 300, 56  # where the row's bars begin, and how high the largest is
BASE = TOP + HIGH + 22  # the line on which they stand
MAP = TOP + T * CELL  # where the map ends
SIZES = ((2, "2"), (4, "4"), (8, "8"))


def score(t, s):
    """A made-up score with one large value that comes late."""
    return 1.2 * math.sin(1.7 * t + 2.3 * s) + (3.0 if s == 9 else 0.0)


def value(s):
    return math.cos(1.3 * s)


def road(M, N):
    """The tiles that causal attention reads, in order: (program, tile)."""
    return [(i, j) for i in range(T // M) for j in range(math.ceil((i + 1) * M / N))]


def square(i, j, M, N):
    """One tile of the map as a path."""
    x, y = LEFT + j * N * CELL, TOP + i * M * CELL
    return f"M{x} {y} h{N * CELL} v{M * CELL} h-{N * CELL} z"


def row_state(t, N, tiles):
    """(maximum, sum, output, uncorrected output, the maximum's share of each key) after tiles."""
    m, total, out, forgetful = -math.inf, 0.0, 0.0, 0.0
    for tile in range(tiles):
        keys = range(tile * N, min((tile + 1) * N, t + 1))
        largest = max([m, *(score(t, s) for s in keys)])
        shrink = math.exp(m - largest)
        e = [math.exp(score(t, s) - largest) for s in keys]
        found = sum(weight * value(s) for weight, s in zip(e, keys, strict=True))
        total, out = total * shrink + sum(e), out * shrink + found
        forgetful, m = forgetful + found, largest
    read = min(tiles * N, t + 1)
    weights = [math.exp(score(t, s) - m) if s < read else 0.0 for s in range(T)]
    return m, total, out / total, forgetful / total, weights


def tiles(gather=False):
    """A kernel's programs walk over the map tile by tile; `gather`: values are rows of a table."""

    def compute(v):
        M, N = v["M"], v["N"]
        way = road(M, N)
        step = min(v["step"], len(way))
        i, j = way[step - 1]
        t = (i + 1) * M - 1  # the program's last query
        m, total, y, forgetful, weights = row_state(t, N, j + 1)
        whole = row_state(t, N, T // N)[2]
        found = dict(
            done=" ".join(square(*at, M, N) for at in way[: step - 1]),
            now=square(i, j, M, N),
            row=f"M{LEFT} {TOP + t * CELL} h{T * CELL} v{CELL} h-{T * CELL} z",
            where=f"program {i + 1}: queries {i * M + 1} to {t + 1}, keys {j * N + 1} to "
            f"{(j + 1) * N}",
            count=f"tile {step} of {len(way)}; {T * T // (M * N) - len(way)} of the future are "
            "never read",
            state=f"query {t + 1}: m = {fixed(m)}, l = {fixed(total)}, output {fixed(y)}",
            truth=f"all its keys at once: {fixed(whole)}; uncorrected: {fixed(forgetful)}",
        )
        for s in range(T):
            high = fixed(HIGH * weights[s])
            found[f"bar{s}"] = f"M{RIGHT + 20 * s} {BASE} v-{high} h14 v{high} z"
        if gather:
            keys = range(j * N, (j + 1) * N)
            ways = [f"M{RIGHT + 20 * s + 7} {BASE + 16} L{row_at(WORDS[s])} 178" for s in keys]
            named = [word for word in ROWS if word in {WORDS[s] for s in keys}]
            found["loads"] = " ".join(ways)
            found["rows"] = f"{N} keys name {len(named)} rows: {', '.join(named)}"
        return found

    def draw(c, moving):
        c.text(LEFT + T * CELL / 2, 10, "keys", 12)
        c.box(LEFT, TOP, T * CELL, T * CELL, kind="quiet", corner=0)
        moving_path(c, "done", moving, "routing", tip=False)
        moving_path(c, "now", moving, "content", tip=False)
        c.path([(LEFT, TOP), (LEFT + T * CELL, TOP + T * CELL)], "faint", tip=False)
        moving_path(c, "row", moving, "ink", tip=False)
        with part(c, right=-RIGHT - 3, down=MAP + 16):
            c.text(RIGHT + 6, 10, "exp(score − m) of the framed query", 12, "start")
            for s in range(T):
                moving_path(c, f"bar{s}", moving, "content", tip=False)
                c.text(RIGHT + 20 * s + 7, BASE + 9, str(s + 1), 12)
            if gather:
                moving_path(c, "loads", moving, "value", tip=False)
                for word in ROWS:
                    c.box(row_at(word) - 17, 178, 34, 20, word, "content", 12, 1)
                c.text(RIGHT + 6, 211, "the table: one row a word", 12, "start", kind="soft")

    controls = (
        Control("step", "step", whole_numbers(1, len(road(2, 2))), 3, run=True),
        Control("M", "queries a program", SIZES, 1),
        Control("N", "keys a tile", SIZES, 1),
    )
    gathers = f"""
const loads = [], used = new Set();
for (let s = j * v.N; s < (j + 1) * v.N; s++) {{
  loads.push(`M${{{RIGHT} + 20 * s + 7}} {BASE + 16} L${{rowAt[words[s]]}} 178`);
  used.add(words[s]);
}}
const named = Object.keys(rowAt).filter((word) => used.has(word));
out.loads = loads.join(" ");
out.rows = `${{v.N}} keys name ${{named.length}} rows: ${{named.join(", ")}}`;
"""
    script = f"""
const T = {T}, words = {json.dumps(WORDS)}, out = {{}}, way = [];
const rowAt = {json.dumps({word: row_at(word) for word in ROWS})};
const score = (t, s) => 1.2 * Math.sin(1.7 * t + 2.3 * s) + (s === 9 ? 3 : 0);
for (let i = 0; i < T / v.M; i++)
  for (let j = 0; j < Math.ceil((i + 1) * v.M / v.N); j++) way.push([i, j]);
const square = ([i, j]) => `M${{{LEFT} + j * v.N * {CELL}}} ${{{TOP} + i * v.M * {CELL}}} ` +
  `h${{v.N * {CELL}}} v${{v.M * {CELL}}} h-${{v.N * {CELL}}} z`;
const state = (t, tiles) => {{
  let m = -Infinity, total = 0, sum = 0, forgetful = 0;
  const read = Math.min(tiles * v.N, t + 1), weights = [];
  for (let start = 0; start < read; start += v.N) {{
    const keys = [];
    for (let s = start; s < Math.min(start + v.N, t + 1); s++) keys.push(s);
    const largest = Math.max(m, ...keys.map((s) => score(t, s))), shrink = Math.exp(m - largest);
    const e = keys.map((s) => Math.exp(score(t, s) - largest));
    const found = keys.reduce((sum, s, at) => sum + e[at] * Math.cos(1.3 * s), 0);
    total = total * shrink + e.reduce((a, b) => a + b);
    sum = sum * shrink + found;
    forgetful += found;
    m = largest;
  }}
  for (let s = 0; s < T; s++) weights.push(s < read ? Math.exp(score(t, s) - m) : 0);
  return {{ m, total, y: sum / total, forgetful: forgetful / total, weights }};
}};
const step = Math.min(v.step, way.length), [i, j] = way[step - 1], t = (i + 1) * v.M - 1;
const now = state(t, j + 1), whole = state(t, T / v.N).y, future = T * T / (v.M * v.N) - way.length;
out.done = way.slice(0, step - 1).map(square).join(" ");
out.now = square([i, j]);
out.row = `M{LEFT} ${{{TOP} + t * {CELL}}} h{T * CELL} v{CELL} h-{T * CELL} z`;
out.where = `program ${{i + 1}}: queries ${{i * v.M + 1}} to ${{t + 1}}, `;
out.where += `keys ${{j * v.N + 1}} to ${{(j + 1) * v.N}}`;
out.count = `tile ${{step}} of ${{way.length}}; ${{future}} of the future are never read`;
out.state = `query ${{t + 1}}: m = ${{now.m.toFixed(2)}}, l = ${{now.total.toFixed(2)}}, `;
out.state += `output ${{now.y.toFixed(2)}}`;
out.truth = `all its keys at once: ${{whole.toFixed(2)}}; `;
out.truth += `uncorrected: ${{now.forgetful.toFixed(2)}}`;
for (let s = 0; s < T; s++) {{
  const high = ({HIGH} * now.weights[s]).toFixed(2);
  out["bar" + s] = `M${{{RIGHT} + 20 * s}} {BASE} v-${{high}} h14 v${{high}} z`;
}}
{gathers if gather else ""}
return out;
"""
    start = compute(dict(step=4, M=4, N=4))
    alt = (
        "A map of 16 queries by 16 keys, read in tiles from the left up to the diagonal, program "
        "by program; beside it the weights of one query so far, which shrink when a larger score "
        f"comes. At the fourth step {start['where']}. {start['state']}."
    )
    if gather:
        alt += " Below, lines from the tile's keys to the rows of a table that they name."
    name, title = ("gathered", "Tiles of a gather") if gather else ("tiles", "Tiles of attention")
    says = ("state", "where", "count", "truth", *(("rows",) if gather else ()))
    tall = MAP + 16 + (222 if gather else BASE + 20)
    return Piece(name, title, controls, draw, compute, script, (640, MAP + 4), tall, alt, says)


def row_at(word):
    """The middle of a word's row in the table."""
    return RIGHT + 16 + 35 * ROWS.index(word)
