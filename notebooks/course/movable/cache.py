"""What does decoding hold? The cache calculator, and when a table is smaller than a V cache."""

import json
from functools import lru_cache

from course.memory import kept
from course.movable.piece import WIDE, Control, Piece, bar_row, fixed, powers
from minimal.model.count import count
from minimal.variants import skeleton

CACHE_PLANS = ("standard", "gqa", "mqa", "cla", "svformer", "resformer", "bov", "bov-keep", "dva")
CACHE_SIZES = ("tiny", "d12", "d24")


@lru_cache
def cache_bytes(plan, size):
    """Bytes that a token adds as keys, values and ids, and what stands there once: the tables."""
    model = skeleton(plan, size)
    found = dict(keys=0, values=0, ids=0)
    for name, (rows, _) in kept(model).items():
        kind = "ids" if name == "ids" else "keys" if name[0] == "k" else "values"  # DVA's k_R, too
        found[kind] += rows.numel() * (2 if rows.is_floating_point() else 4)
    return found | dict(tables=count(model)["cache_bytes_fixed"])


def cache_calculator():
    """What decoding holds, by plan, size, tokens and batch: the counts of `variants --json`."""
    held = {
        f"{plan} {size}": cache_bytes(plan, size) for plan in CACHE_PLANS for size in CACHE_SIZES
    }

    def compute(v):
        parts, tokens = held[f"{v['plan']} {v['size']}"], v["tokens"] * v["batch"]
        base = held[f"standard {v['size']}"]
        amounts = {name: parts[name] * tokens for name in ("keys", "values", "ids")}
        amounts["tables"] = parts["tables"]
        total, most = sum(amounts.values()), (base["keys"] + base["values"]) * tokens
        longest = max(most, total)
        found = {f"{name}_text": fixed(amount / 2**20) + " MiB" for name, amount in amounts.items()}
        found |= {f"{name}_bar": fixed(WIDE * amount / longest) for name, amount in amounts.items()}
        share = total / most
        found["total"] = (
            f"in all {fixed(total / 2**20)} MiB, {fixed(share)} of standard attention's"
        )
        return found

    def draw(c, moving):
        for row, (name, kind) in enumerate(
            (("keys", "routing"), ("values", "content"), ("ids", "quiet"), ("tables", "content"))
        ):
            bar_row(c, 12 + 40 * row, name, f"{name}_bar", moving, kind, f"{name}_text")

    controls = (
        Control("plan", "plan", tuple((name, name) for name in CACHE_PLANS), 6, choose=True),
        Control("size", "size", tuple((name, name) for name in CACHE_SIZES), 1, choose=True),
        Control("tokens", "tokens", powers(7, 20), 8),
        Control("batch", "batch", powers(0, 6), 0),
    )
    script = f"""
const held = {json.dumps(held)};
const parts = held[v.plan + " " + v.size], base = held["standard " + v.size];
const tokens = v.tokens * v.batch;
const amounts = {{
  keys: parts.keys * tokens, values: parts.values * tokens,
  ids: parts.ids * tokens, tables: parts.tables,
}};
const total = amounts.keys + amounts.values + amounts.ids + amounts.tables;
const most = (base.keys + base.values) * tokens;
const out = {{}};
for (const name of Object.keys(amounts)) {{
  out[name + "_text"] = (amounts[name] / 2 ** 20).toFixed(2) + " MiB";
  out[name + "_bar"] = ({WIDE} * amounts[name] / Math.max(most, total)).toFixed(2);
}}
out.total = `in all ${{(total / 2 ** 20).toFixed(2)}} MiB, `;
out.total += `${{(total / most).toFixed(2)}} of standard attention's`;
return out;
"""
    start = compute(dict(plan="bov", size="d12", tokens=2**15, batch=1))
    alt = (
        "Four bars: the bytes that decoding keeps as keys, values, ids and tables. "
        f"At the start, Bank of Values at d12 and 32,768 tokens: {start['total']}."
    )
    title, size = "Cache calculator", (660, 166)
    return Piece("cache", title, controls, draw, compute, script, size, 176, alt, says=("total",))


def break_even_piece():
    """V of all tokens in flight against one table by token: rows of one layer."""

    def compute(v):
        tokens, vocabulary = v["batch"] * v["tokens"], v["vocabulary"]
        longest = max(tokens, vocabulary)
        ratio = tokens / vocabulary
        word = "the table is smaller" if ratio > 1 else "the V cache is smaller"
        return dict(
            cache_bar=fixed(WIDE * tokens / longest),
            table_bar=fixed(WIDE * vocabulary / longest),
            said=f"B T / |V| = {fixed(ratio)}: {word}",
        )

    def draw(c, moving):
        for row, (name, words) in enumerate((("cache", "V cache"), ("table", "table"))):
            bar_row(c, 12 + 36 * row, words, f"{name}_bar", moving)

    script = f"""
const tokens = v.batch * v.tokens, longest = Math.max(tokens, v.vocabulary);
const ratio = tokens / v.vocabulary;
const word = ratio > 1 ? "the table is smaller" : "the V cache is smaller";
return {{
  cache_bar: ({WIDE} * tokens / longest).toFixed(2),
  table_bar: ({WIDE} * v.vocabulary / longest).toFixed(2),
  said: `B T / |V| = ${{ratio.toFixed(2)}}: ${{word}}`,
}};
"""
    alt = (
        "Two bars of one layer: a V cache of batch times tokens rows, and a table of one row a "
        "token of the vocabulary. They are equal where batch times tokens is the vocabulary."
    )
    controls = (
        Control("batch", "batch", powers(0, 6), 0),
        Control("tokens", "tokens", powers(7, 20), 7),
        Control(
            "vocabulary",
            "vocabulary",
            ((32768, "32,768"), (50257, "50,257"), (151936, "151,936")),
            0,
        ),
    )
    title, size = "When is a table smaller?", (600, 76)
    return Piece("even", title, controls, draw, compute, script, size, 76, alt, says=("said",))
