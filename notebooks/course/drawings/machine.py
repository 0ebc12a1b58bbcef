"""What does a machine hold and load? The cache, tiles of the causal triangle, levels of memory."""

from course import memory
from course.drawings.canvas import Canvas, side_by_side
from minimal.model.count import count
from minimal.variants import skeleton

# ---- what the cache holds ------------------------------------------------------------------------


def kept_names(model):
    """Names of what one token leaves in the cache, from a pass that needs no storage."""
    return set(memory.kept(model))


def cache_column(plan, size):
    """One plan: its layers up, keys and values across; what is kept is filled."""
    model = skeleton(plan, size)
    kept, layers, side = kept_names(model), len(model.blocks), 18
    wide = 24 * model.config.groups / model.config.heads  # fewer key/value heads, narrower squares
    c = Canvas(118, 78 + layers * side)
    c.text(59, 10, plan, 12, bold=True)
    c.text(34 + wide / 2, 32, "K", 11)
    c.text(64 + wide / 2, 32, "V", 11)
    for at in range(layers):
        y = 42 + (layers - 1 - at) * side
        c.text(26, y + side / 2, str(at + 1), 9, "end", "soft")
        keys = "routing" if ("k", at) in kept else "faint"
        content = "content" if ("v", at) in kept else "faint"
        c.box(34, y, wide, side - 2, kind=keys, corner=2)
        c.box(64, y, wide, side - 2, kind=content, corner=2)
    y = 46 + layers * side
    if "ids" in kept:
        c.box(34, y, 54, 8, kind="quiet", corner=2)
        c.text(94, y + 4, "ids", 9, "start", "soft")
    size_of = count(model)["cache_bytes_per_token"]
    c.text(61, y + 22, f"{size_of:,} B", 11)
    return c, size_of


def cache_grid(*plans, size="tiny"):
    """What decoding keeps of one token, layer by layer, and what that weighs at two bytes a "
    "number."""
    columns = [cache_column(plan, size) for plan in plans]
    weights = ", ".join(
        f"{plan} {bytes_:,} bytes" for plan, (_, bytes_) in zip(plans, columns, strict=True)
    )
    alt = (
        "The cache of one token as a grid for each plan: layers upwards, a square for keys and a "
        "square for values, "
        f"filled where something is kept. Of one token stay: {weights}."
    )
    return side_by_side([canvas for canvas, _ in columns]).drawing(alt, "What decoding keeps")


# ---- tiles over the causal triangle --------------------------------------------------------------


def tile_kinds(length, rows, columns, window=0):
    """{(row tile, column tile): "skipped", "masked" or "whole"} of causal attention."""
    kinds = {}
    for top in range(0, length, rows):
        bottom = min(top + rows, length) - 1
        for left in range(0, length, columns):
            right = min(left + columns, length) - 1
            oldest = (
                bottom - window if window else 0
            )  # the first key that the last query still sees
            none = left > bottom or (window and right < top - window)
            every = right <= top and left >= oldest
            kinds[top // rows, left // columns] = (
                "skipped" if none else "whole" if every else "masked"
            )
    return kinds


def tile_map(length=16, rows=4, columns=4, window=0, cell=15):
    """Queries down, keys across: which tiles a flash kernel computes without a mask, with one, "
    "or never."""
    kinds = tile_kinds(length, rows, columns, window)
    c = Canvas(length * cell + 220, length * cell + 40)
    c.text(length * cell / 2 + 66, 10, "keys →", 11, kind="soft")
    c.text(60, 24 + length * cell / 2, "queries ↓", 11, "end", "soft")
    styles = dict(whole="content", masked="routing", skipped="faint")
    for (row, column), kind in kinds.items():
        height = min(rows, length - row * rows) * cell
        width = min(columns, length - column * columns) * cell
        c.box(
            66 + column * columns * cell,
            24 + row * rows * cell,
            width - 2,
            height - 2,
            kind=styles[kind],
            corner=2,
        )
    for t in range(length):  # the mask itself, a dot for every key that a query sees
        for s in range(max(0, t - window) if window else 0, t + 1):
            c.add(
                f'<circle cx="{66 + (s + 0.5) * cell - 1:g}" cy="{24 + (t + 0.5) * cell - 1:g}" '
                'r="1.6" class="dark"/>'
            )
    counted = {kind: list(kinds.values()).count(kind) for kind in styles}
    words = dict(whole="no mask needed", masked="masked inside", skipped="never loaded")
    for i, kind in enumerate(styles):
        y = 40 + i * 26
        c.box(length * cell + 82, y, 18, 18, kind=styles[kind], corner=2)
        c.text(length * cell + 106, y + 9, f"{counted[kind]} {words[kind]}", 10.5, "start")
    alt = (
        f"The square of {length} queries by {length} keys cut into tiles of {rows} by {columns}"
        + (f", with a window of {window}" if window else "")
        + f". {counted['whole']} tiles need no mask, {counted['masked']} are masked inside, "
        f"{counted['skipped']} lie wholly outside the causal triangle and are never loaded."
    )
    return c.drawing(alt, "Tiles over the causal triangle")


# ---- where numbers wait on a GPU -----------------------------------------------------------------

# What multiplies tiles, and what feeds it: who shares it, its size on an H100 (NVIDIA's data sheet
# and architecture paper).
MEMORY_LEVELS = (
    ("tensor cores", "a multiprocessor", "989 TFLOP/s in bf16"),
    ("registers", "one thread", "256 KB a multiprocessor"),
    ("shared memory", "one program", "up to 228 KB a multiprocessor"),
    ("L2 cache", "all programs", "50 MB"),
    ("HBM", "all programs", "80 GB"),
)


def memory_levels():
    """From the fastest and smallest to the slowest and largest: what a kernel tries to read "
    "once."""
    c = Canvas(520, 40 + 44 * len(MEMORY_LEVELS))
    c.text(122, 12, "level", 11, kind="soft")
    c.text(262, 12, "shared by", 11, kind="soft")
    c.text(400, 12, "on an H100", 11, kind="soft")
    kinds = ("faint", "content", "routing", "quiet", "box")
    for i, (level, whose, size) in enumerate(MEMORY_LEVELS):
        inset = 9 * (len(MEMORY_LEVELS) - 1 - i)
        y = 26 + 44 * i
        c.box(10 + inset, y, 500 - 2 * inset, 36, kind=kinds[i])
        c.text(122, y + 18, level, 12.5, bold=True)
        c.text(262, y + 18, whose, 11)
        c.text(400, y + 18, size, 11)
    alt = (
        "Tensor cores and levels of memory on a GPU, small and fast above, large and slow below: "
        + "; ".join(f"{level}, shared by {whose}, {size}" for level, whose, size in MEMORY_LEVELS)
        + "."
    )
    return c.drawing(alt, "Where numbers wait")
