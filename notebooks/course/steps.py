"""From the notebook's kernels to minimal's: eight differences, each as an edit of the text.

A step says which line changes, why, and where its effect can be read: in machine code compiled
here from the edited text, in compiled.json, or not at all before a GPU measures it.
"""

import re
from typing import NamedTuple

LOOP = "    for start in tl.range(0, tl.minimum((tl.program_id(0) + 1) * M, T), N):\n"
MASK = '        score = tl.where(key[None, :] <= t[:, None], score, float("-inf"))\n'


class Step(NamedTuple):
    """One difference: its name, its line, why, and where its effect shows."""

    name: str
    line: str
    why: str
    shows: str


# fmt: off
STEPS = (
    Step("query heads in a GROUP",
         "r = tl.arange(0, R); t, h = r // GROUP, g * GROUP + r % GROUP",
         "heads that share a key head share its program: a row is gathered once for all of them",
         "record"),
    Step("three loops",
         "absorb(whole, end, MASKED=False); absorb(end, stop, MASKED=True)",
         "tiles that all queries see need no mask: only the window's edge and the diagonal do",
         "compiled"),
    Step("exp2",
         "weight = tl.exp2(score - safe[:, None])  # log2(e) is in the scale",
         "the machine has 2 to the power of x; e to the power of x costs a product more, each time",
         "compiled"),
    Step("blind rows",
         'safe = tl.where(new_top == float("-inf"), 0.0, new_top)',
         "a query that saw no key yet has maximum -inf, and -inf - -inf is NaN",
         "compiled"),
    Step("head order",
         "b, g = tl.program_id(1), tl.program_id(2)  # heads slowest",
         "programs that run together read one head's part of the table, which fits the L2 cache",
         "GPU"),
    Step("eviction hints",
         'keys = tl.load(at, …, eviction_policy="evict_first")',
         "a key is read once, a row again and again: let the keys leave the cache first",
         "compiled"),
    Step("fixed-point masses",
         "tl.atomic_add(bins + at, (mass * 2**20).to(tl.int64))",
         "whole numbers add up to the same bits in any order; minimal stays with fp32 and says so",
         "compiled"),
    Step("a CUDA graph",
         "Graphed(step, device)",
         "a decode step is many small kernels: recorded once, Python launches none of them",
         "GPU"),
)
# fmt: on


# ---- the edits -----------------------------------------------------------------------------------
def tensor_cores(text):
    """Before the eight: weights in the type of the rows, so that tensor cores take the product."""
    return replaced(text, "tl.dot(e, values", "tl.dot(e.to(values.dtype), values")


def two_loops(text):
    """Tiles before the diagonal without a mask, the others with one."""
    head, found, rest = text.partition(LOOP)
    body, store, tail = rest.partition("    tl.store(out")
    if not (found and store and MASK in body):
        raise ValueError("wanted the notebook's kernel, with one loop and one mask")
    free = re.sub(r", mask=key(\[:, None\])? < T, other=0(\.0)?", "", body.replace(MASK, ""))
    whole = "tl.program_id(0) * M // N * N"
    first = f"    for start in tl.range(0, {whole}, N):\n"
    return head + first + free + LOOP.replace("range(0,", f"range({whole},") + body + store + tail


def base_two(text):
    return replaced(replaced(text, "tl.exp(", "tl.exp2("), "tl.log(", "tl.log2(")


def blind_rows(text):
    safe = '        safe = tl.where(higher == float("-inf"), 0.0, higher)\n'
    text = replaced(text, "        shrink, e =", safe + "        shrink, e =")
    text = replaced(text, "tl.exp(top - higher)", "tl.exp(top - safe)")
    return replaced(text, "higher[:, None])", "safe[:, None])")


def hints(text):
    line = "keys = tl.load(k + key[:, None] * D + d[None, :], mask=key[:, None] < T, other=0.0"
    return replaced(text, line, line + ', eviction_policy="evict_first"')


def fixed_point(text):
    return replaced(text, "bins + h * V + token, mass,", "bins + h * V + token, whole,").replace(
        "    tl.atomic_add", "    whole = (mass * 1048576.0).to(tl.int64)\n    tl.atomic_add"
    )


EDITS = {
    "three loops": two_loops,
    "exp2": base_two,
    "blind rows": blind_rows,
    "eviction hints": hints,
}


def replaced(text, old, new):
    if old not in text:
        raise ValueError(f"wanted the notebook's kernel, got one without {old!r}")
    return text.replace(old, new)


# ---- what to compile -----------------------------------------------------------------------------
PRELUDE = "import triton\nimport triton.language as tl\n\n\n"
FORWARD = dict(constants=dict(D=128, M=128, N=64), arch=90, warps=8, stages=5)
COUNTING = dict(constants=dict(D=128, N=64), arch=90, warps=4, stages=3)


def gather_types(kind="bf16"):
    rows = dict.fromkeys("q k table out".split(), f"*{kind}")
    return rows | dict(ids="*i32", gain="*fp32", lse="*fp32", T="i32", scale="fp32")


def split_types():
    rows = dict.fromkeys("q k table".split(), "*bf16") | dict(ids="*i32", part="*fp32", lse="*fp32")
    return rows | dict.fromkeys("S H each".split(), "i32") | dict(scale="fp32")


def scatter_types(bins):
    numbers = dict(S="i32", H="i32", V="i32", scale="fp32", bound="fp32")
    return dict(q="*bf16", k="*bf16", ids="*i32", bins=bins) | numbers


def variants(gather, scatter):
    """(the text of a file, {name: case to compile}): the kernels as they are, and each edit."""
    cored = tensor_cores(gather)
    texts = {"fp32": gather, "bf16": cored} | {name: e(cored) for name, e in EDITS.items()}
    texts["all of these"] = two_loops(base_two(blind_rows(hints(cored))))
    file, cases = PRELUDE, {}
    for i, (name, text) in enumerate(texts.items()):
        file += text.replace("def gather(", f"def gather_{i}(") + "\n\n"
        cases[name] = dict(kernel=f"gather_{i}", types=gather_types(), **FORWARD)
    small = dict(constants=dict(D=128, M=32, N=16))
    cases["fp32"] |= small | dict(types=gather_types("fp32"))
    for name, text, bins in (
        ("masses", scatter, "*fp32"),
        ("fixed-point masses", fixed_point(scatter), "*i64"),
    ):
        kernel = name.replace(" ", "_").replace("-", "_")
        file += text.replace("def scatter(", f"def {kernel}(") + "\n\n"
        cases[name] = dict(kernel=kernel, types=scatter_types(bins), **COUNTING)
    return file, cases


# ---- what came of it -----------------------------------------------------------------------------
FIELDS = dict(
    registers="registers",
    shared_bytes="shared B",
    cp_async_16B="cp.async",
    wgmma="wgmma",
    multiplications="products",
    selects="selects",
    cache_hints="hints",
    red="RED",
    spill_bytes="spills",
)


def as_table(compiled):
    """{name: row of compile_own} as lines of text, a version each."""
    wide = {field: max(len(name), 5) + 1 for field, name in FIELDS.items()}
    lines = [" " * 20 + "".join(f"{name:>{wide[field]}}" for field, name in FIELDS.items())]
    for name, row in compiled.items():
        lines.append(f"{name:20}" + "".join(f"{row[field]:>{wide[field]},}" for field in FIELDS))
    return "\n".join(lines)
