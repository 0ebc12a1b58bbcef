"""Where does a program load and store? Drawn from a run; and when a pipeline loads: a time line."""

import torch

from course.drawings.canvas import Canvas, side_by_side
from minimal.kernels.tiles import addresses_of, name_of

# ---- addresses -----------------------------------------------------------------------------------

# untouched, another program's, loaded, stored
SQUARE_KINDS = ("box", "quiet", "routing", "content")
FOLD = 32  # places a row of a tensor that has one dimension
MOST = 96  # lines of a drawing


def touched(trace, tensor, program):
    """A number of KINDS for every place of a tensor, in its shape."""
    place = addresses_of(trace.tensors[tensor])
    kinds = torch.zeros(int(place.max()) + 1 if place.numel() else 0, dtype=torch.int64)
    for event in trace.of(tensor):
        mine = event.program == program
        kind = 1 if not mine else 2 if event.kind == "load" else 3
        at = event.places[event.places < len(kinds)]
        kinds[at] = kinds[at].clamp(min=kind)
    return kinds[place]


def as_grid(kinds):
    """Rows and columns: the first dimension against the others; what is long is folded."""
    if kinds.dim() >= 2 and kinds[0].numel() <= MOST:
        return kinds.reshape(len(kinds), -1)
    rows = -(-kinds.numel() // FOLD)
    wide = min(FOLD, max(1, kinds.numel()))
    padded = torch.full((max(1, rows) * wide,), -1)
    padded[: kinds.numel()] = kinds.flatten()
    return padded.view(-1, wide)


def pooled(grid):
    """(at most MOST lines, rows a line): a line shows the most that befell its rows."""
    step = -(-len(grid) // MOST)
    padding = torch.full((-len(grid) % step, grid.shape[1]), -1)
    return torch.cat([grid, padding]).view(-1, step, grid.shape[1]).amax(1), step


def runs(row):
    """(first, length, kind) of equal neighbours."""
    kinds, lengths = torch.unique_consecutive(row, return_counts=True)
    starts = lengths.cumsum(0) - lengths
    return list(zip(starts.tolist(), lengths.tolist(), kinds.tolist(), strict=True))


def said(trace, tensor, program):
    """What a program does with a tensor, in words."""
    words = []
    for kind, verb in (("load", "loads"), ("store", "stores"), ("add", "adds to")):
        events = trace.of(tensor, kind, program)
        places = torch.cat([event.places for event in events] or [torch.zeros(0)])
        if len(events):
            off = sum(event.idle for event in events)
            lanes = f"{verb} {len(places):,} places" if len(places) != 1 else f"{verb} 1 place"
            words.append(lanes + (f", {off:,} lanes off" if off else ""))
    return "; ".join(words) or "is not touched"


def tensor_panel(trace, tensor, program, most=190):
    """One tensor: a square a place."""
    grid, step = pooled(as_grid(touched(trace, tensor, program)))
    rows, columns = grid.shape
    side = max(1.5, min(12, most / columns, most / rows))
    words = said(trace, tensor, program).split("; ")
    shape = ", ".join(map(str, trace.tensors[tensor].shape))
    title = f"{tensor} ({shape})" + (f", {step} rows a line" if step > 1 else "")
    c = Canvas(max(columns * side, 190, 11 * len(title)), 51 + rows * side)
    c.text(2, 8, title, 11.5, "start", bold=True)
    c.text(2, 28, words[0] if len(words) == 1 else "; ".join(words), 9.5, "start", "soft")
    for first, count, row in equal_rows(grid):
        y, high = 41 + first * side, count * side
        for start, length, kind in runs(row):
            if kind >= 0:
                c.box(start * side, y, length * side, high, kind=SQUARE_KINDS[kind], corner=0)
    return c


def equal_rows(grid):
    """(first row, how many, the row) of equal neighbours among the rows."""
    rows, counts = torch.unique_consecutive(grid, dim=0, return_counts=True)
    starts = counts.cumsum(0) - counts
    return list(zip(starts.tolist(), counts.tolist(), rows, strict=True))


def addresses(trace, program, *tensors, columns=3):
    """Blue: what this program loads; orange: what it stores; grey: what other programs touch."""
    program = (program,) if isinstance(program, int) else program
    tensors = tensors or tuple(trace.tensors)
    panels = [tensor_panel(trace, tensor, program) for tensor in tensors]
    whole = side_by_side(panels, gap=18, columns=min(columns, len(panels)))
    told = "; ".join(f"{name} {said(trace, name, program)}" for name in tensors)
    alt = (
        f"Places of memory that program {name_of(program)} of {programs_of(trace)} touches, "
        f"from a run: {told}."
    )
    return whole.drawing(alt, "What one program loads and stores")


def programs_of(trace):
    count = 1
    for size in trace.grid:
        count *= size
    return count


# ---- when things are loaded ----------------------------------------------------------------------


def leads(stages):
    """(tiles that rows are fetched ahead, tiles that ids are) of a load through ids.

    The compiler's rule, as compiled.json shows it: half of the stages less one for each of the two
    loads; with two stages the ids are not fetched ahead at all, and the rows one tile."""
    ahead = (stages - 1) // 2
    return (ahead, 2 * ahead) if ahead else (1, 1)


def pipeline(*stages, tiles=5):
    """Ids, rows and products of each tile over time, for some numbers of stages."""
    return side_by_side([timeline(n, tiles) for n in stages], gap=16, columns=1).drawing(
        "Three kinds of work over time, tile by tile. "
        + " ".join(in_words(n) for n in stages)
        + " A row is on its way from its load to its product.",
        "A pipeline of loads",
    )


def in_words(stages):
    rows, ids = leads(stages)
    waits = "each load of rows waits for its ids" if ids == rows else f"ids {ids} tiles ahead"
    return f"With {stages} stages: {waits}, rows {rows} ahead, {rows + 1} buffers."


def timeline(stages, tiles, step=52, left=134):
    """One pipeline: a line for the ids, one a buffer, one for the products; names before `left`."""
    rows, ids = leads(stages)
    wide = left + 6 + (tiles + ids + 1) * step
    c = Canvas(max(wide, left + 6 + (tiles + 5) * step), 52 + 22 * (rows + 2))
    c.text(2, 8, in_words(stages), 11, "start", bold=True)
    c.text(left - 8, 32, "ids", 10.5, "end")
    for buffer in range(rows + 1):
        c.text(left - 8, 54 + 22 * buffer, f"rows, buffer {buffer + 1}", 10.5, "end")
    last = 54 + 22 * (rows + 1)
    c.text(left - 8, last, "product", 10.5, "end")
    for tile in range(tiles):
        done = tile + ids  # the step of its product
        sent = done - rows
        blocking = ids == rows
        first = tile if not blocking else sent
        half = step / 2 if blocking else step
        c.box(left + first * step, 23, half - 3, 18, f"{tile}", "routing", 10)
        start = left + sent * step + (step / 2 if blocking else 0)
        end = left + (done + 1) * step
        y = 45 + 22 * (tile % (rows + 1))
        c.box(start, y, end - start - 3, 18, f"{tile}", "content", 10)
        c.box(left + done * step, last - 9, step - 3, 18, f"{tile}", "box", 10)
    return c


# ---- decoding ------------------------------------------------------------------------------------


def split_keys(splits=6):
    """One query of one head: stretches of keys, their means and logarithms, and the answer."""
    c = Canvas(520, 190)
    wide = 500 / splits
    c.text(8, 12, "keys, and the ids beside them", 11, "start", "soft")
    for s in range(splits):
        x, middle = 10 + s * wide, 10 + (s + 0.5) * wide
        c.box(x, 24, wide - 8, 26, f"program {s}", "routing", 10)
        c.path([(middle - 4, 52), (middle - 4, 78)])
        c.box(x + 6, 80, wide - 20, 24, "mean, lse", "content", 10)
        c.path([(middle - 4, 106), (205 + (s - splits / 2 + 0.5) * 20, 140)])
    c.box(60, 142, 290, 26, "combine: softmax of the lse", "box", 11)  # wide: a slide's are larger
    c.path([(352, 155), (394, 155)], "value")
    c.text(400, 155, "out, times γ", 11, "start")
    alt = (
        f"The keys of one head cut into {splits} stretches, one a program. Each program leaves a "
        "mean of table rows and the logarithm of its sum; one more program weights the means by "
        "the softmax of these logarithms and multiplies by the gain."
    )
    return c.drawing(alt, "Split and combine")
