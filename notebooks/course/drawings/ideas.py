"""Which ideas want a drawing, not a plot? Rotary positions, Muon, skips, ResFormer's steps."""

import math

from course.drawings.canvas import Canvas, side_by_side
from minimal.model.residual import UNet
from minimal.model.values import Table
from minimal.variants import skeleton

# ---- rotary positions as the hands of clocks -----------------------------------------------------


def rope_clocks(positions=(0, 1, 2, 3, 8), width=8, base=100.0):
    """Each pair of features is the hand of a clock; a token at position p has moved it p times "
    "the pair's rate."""
    pairs, radius, step = width // 2, 20, 54
    rates = [base ** (-2 * pair / width) for pair in range(pairs)]
    c = Canvas(100 + pairs * step, 56 + len(positions) * step)
    for pair, rate in enumerate(rates):
        c.text(110 + pair * step, 12, f"pair {pair + 1}", 11)
        c.text(110 + pair * step, 27, f"{rate:.2f} rad", 9.5, kind="soft")
    for row, position in enumerate(positions):
        y = 64 + row * step
        c.text(70, y, f"position {position}", 11, "end")
        for pair, rate in enumerate(rates):
            x, angle = 110 + pair * step, -position * rate  # our layout turns by -angle
            c.add(f'<circle cx="{x}" cy="{y}" r="{radius}" class="quiet"/>')
            tip = (x + radius * 0.85 * math.cos(angle), y - radius * 0.85 * math.sin(angle))
            c.path([(x, y), tip], "value")
    alt = (
        f"Rotary positions as clocks: {len(positions)} positions down, {pairs} pairs of features "
        "across. The first pair's hand "
        f"turns by {rates[0]:.2f} radians a position, the last pair's by {rates[-1]:.2f}: fast "
        "hands tell neighbours apart, "
        "slow hands tell far from near."
    )
    return c.drawing(alt, "RoPE turns each pair of features like a hand")


# ---- Muon: an ellipse becomes a circle -----------------------------------------------------------


def muon_circle(singular=(3.0, 0.6), angle=0.5):
    """A gradient maps the unit circle to an ellipse; orthogonalised, all directions move alike."""
    c = Canvas(470, 190)
    big, small = (34 * value / singular[0] * 2 for value in singular)
    turn = math.degrees(angle)
    c.text(105, 12, "the gradient", 12, bold=True)
    c.add(
        f'<ellipse cx="105" cy="100" rx="{big:g}" ry="{small:g}" '
        f'transform="rotate({-turn:g} 105 100)" class="routing"/>'
    )
    c.text(236, 82, "same directions,", 10.5, kind="soft")
    c.text(236, 96, "equal strength", 10.5, kind="soft")
    c.path([(204, 114), (268, 114)])
    c.text(365, 12, "Muon's update", 12, bold=True)
    c.add('<circle cx="365" cy="100" r="58" class="content"/>')
    for x, (long, short) in ((105, (big, small)), (365, (58, 58))):
        for length, extra in ((long, 0.0), (short, math.pi / 2)):
            end = (x + length * math.cos(angle + extra), 100 - length * math.sin(angle + extra))
            c.path([(x, 100), end], "value")
    c.text(105, 180, f"singular values {singular[0]:g} and {singular[1]:g}", 10.5, kind="soft")
    c.text(365, 180, "singular values near 1", 10.5, kind="soft")
    alt = (
        f"Left, the unit circle as the gradient maps it: an ellipse with axes {singular[0]:g} and "
        f"{singular[1]:g}. Right, the same "
        "two directions after orthogonalisation: a circle. Muon keeps the directions of a "
        "gradient and makes their strengths equal."
    )
    return c.drawing(alt, "Muon: an ellipse becomes a circle")


# ---- modded-nanogpt's sixteen layers -------------------------------------------------------------


def modded_layers(plan="modded", size="modded-medium"):
    """Sixteen layers: value tables on the first and last three, skips as arcs, one layer
    without attention."""
    model = skeleton(plan, size)
    layers, step = len(model.blocks), 26
    c = Canvas(330, 60 + layers * step)
    middle = lambda at: 34 + (layers - 1 - at) * step + 10  # noqa: E731
    tables, gap = {}, []
    for at, block in enumerate(model.blocks):
        c.box(
            120, middle(at) - 10, 90, 20, f"layer {at}", "box" if block.attention else "faint", 10.5
        )
        if block.attention is None:
            gap.append(at)
            c.text(112, middle(at), "no attention", 9.5, "end", "soft")
            continue
        for part in block.attention.value.modules():
            if isinstance(part, Table):
                tables.setdefault(part.bank, []).append(at)
    for i, where in enumerate(tables.values()):
        for at in where:
            c.table(40, middle(at) - 9, 34, 18)
            c.path([(74, middle(at)), (118, middle(at))], "value")
            c.text(30, middle(at), f"E{i}", 10, "end")
    skips = next(stream.skips for stream in model.streams if isinstance(stream, UNet))
    for to, start in skips.items():
        out = 230 + 5 * (to - start)
        c.curve(
            (210, middle(start)), (out + 40, (middle(start) + middle(to)) / 2), (212, middle(to))
        )
    c.text(165, 12, "head", 11, kind="soft")
    c.text(165, 46 + layers * step, "token embedding", 11, kind="soft")
    alt = (
        f"The {layers} layers of modded-nanogpt's medium model, first below. Tables by token id "
        "feed the values of layers "
        f"{', '.join(str(at) for at in sorted(sum(tables.values(), [])))}, the first and the last "
        "sharing theirs; arcs carry the outputs of "
        f"layers {', '.join(f'{start} to {to}' for to, start in sorted(skips.items()))}; layer "
        f"{gap[0] if gap else 'none'} has no attention."
    )
    return c.drawing(alt, "modded-nanogpt's layers")


# ---- ResFormer's way from cross-layer attention to a mixed value ---------------------------------


def cross_layer():
    """Equations 2 to 4 of ResFormer: keys of two layers, then one map over two values, then one "
    "mixed value."""
    panels = []
    for title, words in (
        ("Eq 2: attend to both layers", "both"),
        ("Eq 3: one map, for two values", "values"),
        ("Eq 4: one map, mixed value", "mixed"),
    ):
        c = Canvas(250, 215)
        c.text(125, 10, title, 12.5, bold=True)
        c.box(20, 160, 84, 26, "K′  V′", "quiet", 12)
        c.text(62, 200, "an earlier layer", 10, kind="soft")
        c.box(146, 160, 84, 26, "K  V", "quiet", 12)
        c.text(188, 200, "this layer", 10, kind="soft")
        if words == "both":
            c.box(30, 92, 190, 28, "one softmax over K′ and K", "routing", 11)
            c.path([(50, 160), (50, 120)])
            c.path([(176, 160), (176, 120)])
            c.path([(74, 160), (74, 120)], "value")
            c.path([(200, 160), (200, 120)], "value")
            c.path([(125, 92), (125, 40)], "value")
        if words == "values":
            c.box(41, 92, 42, 28, "A", "routing", 13)
            c.box(167, 92, 42, 28, "A", "routing", 13)
            c.path([(164, 160), (164, 140), (74, 140), (74, 120)])  # this layer's keys, twice
            c.path([(176, 160), (176, 120)])
            c.path([(52, 160), (52, 120)], "value")
            c.path([(200, 160), (200, 120)], "value")
            c.path([(62, 92), (62, 52), (117, 52)], "value")
            c.path([(188, 92), (188, 52), (133, 52)], "value")
            c.plus(125, 52)
            c.path([(125, 44), (125, 28)], "value")
            c.text(68, 76, "½ A V′", 11, "start")
            c.text(182, 76, "½ A V", 11, "end")
        if words == "mixed":
            c.path([(62, 160), (62, 140), (117, 140)], "value")
            c.path([(188, 160), (188, 140), (133, 140)], "value")
            c.plus(125, 140)
            c.path([(125, 132), (125, 96)], "value")
            c.box(93, 68, 64, 28, "A", "routing", 13)
            c.path([(125, 68), (125, 40)], "value")
            c.text(140, 114, "(V + V′) / 2", 10.5, "start")
        panels.append(c)
    alt = (
        "Three steps of ResFormer. Equation 2: every query attends, in one softmax, to the keys "
        "of its own layer and of an earlier one. "
        "Equation 3: with the layer's own keys twice, the earlier layer's values and its own each "
        "pass through the same map, with half the weight, and the two results are added. "
        "Equation 4: because the map "
        "is the same, the two values are mixed first and read once."
    )
    return side_by_side(panels).drawing(alt, "From cross-layer attention to a value residual")


# ---- a value that is looked up -------------------------------------------------------------------

TOKENS = ("def", "get", "(", "self", ")", "return")


def look_up(asked=3):
    """An id names a row of a table, and the row is added to the value that the layer makes."""
    c, row = Canvas(560, 302), 20
    at = 40 + 62 * asked
    # the text and its ids
    for place, word in enumerate(TOKENS):
        kind = "content" if place == asked else "box"
        c.box(12 + 62 * place, 236, 56, 26, word, kind, 12)
        c.text(40 + 62 * place, 276, f"id {place}", 10.5, kind="soft")
    # what the layer makes itself: from the stream, with its context
    c.box(30, 176, 336, 28, "the stream h: what the layers below have heard", "quiet", 11)
    for place in range(asked + 1):
        c.path([(40 + 62 * place, 236), (40 + 62 * place, 204)])
    c.path([(at, 176), (at, 150)])
    c.box(at - 24, 124, 48, 26, "Wᵥ", "box", 12)
    c.path([(at, 124), (at, 82)], "value")
    c.text(at - 8, 104, "v", 12, "end")
    # what it looks up: a row, named by the id alone
    for place in range(len(TOKENS)):
        kind = "content" if place == asked else "quiet"
        c.box(440, 70 + row * place, 100, row - 2, f"row {place}", kind, 10.5, corner=2)
    c.text(490, 56, "table E", 12, bold=True)
    middle = 70 + row * asked + row / 2 - 1
    c.path([(at, 284), (at, 294), (410, 294), (410, middle), (438, middle)])
    c.path([(440, middle), (424, middle), (424, 74), (at + 9, 74)], "value")
    c.text(418, 64, "E[id]", 12, "end")
    # their sum is the value that attention mixes
    c.plus(at, 74)
    c.path([(at, 66), (at, 40)], "value")
    c.box(at - 90, 12, 180, 28, "the value that A mixes", "content", 12)
    alt = (
        f"Six tokens of a program with their ids. The token {TOKENS[asked]} goes two ways. Through "
        "the stream, which holds what lower layers have heard, and the matrix W_V it becomes the "
        f"value v. By its id {asked} alone it names row {asked} of a table. The row is added to v, "
        "and attention mixes the sum."
    )
    return c.drawing(alt, "A value embedding: id, row, + v")
