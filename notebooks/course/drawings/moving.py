"""What is this course about, in pictures that move? One arrow and one curve that falls; layers that
change one after the other; seeds that are drawn again and again.

Where motion is not wanted, each picture is its own last moment, and nothing of it is missing. Each
begins with that moment, too: on paper, and where a picture stands still, it is whole.
"""

from course.drawings.canvas import Canvas, side_by_side
from course.drawings.systems import HEIGHT, WIDTH, frame, own_arrow, value_box, x0_arrow

LEFT, RIGHT, TOP, FLOOR = 60, 372, 74, 268  # the panel of the curves, in pixels

# In twelve seconds the arrow leaves the stream, then the second curve is drawn. At rest the old
# arrow is dashed, and both curves are there.
MOTION = """<style>
.before { stroke-dasharray: 5 4; opacity: 0.35; }
.drawn { stroke-dasharray: 1000; stroke-dashoffset: 0; }
@media (prefers-reduced-motion: no-preference) {
  .before { animation: before 12s -8s infinite; }
  .after { animation: after 12s -8s infinite; }
  .drawn { animation: drawn 12s -8s infinite; }
}
@keyframes before {
  0%, 22% { opacity: 1; stroke-dasharray: none; }
  32%, 96% { opacity: 0.35; stroke-dasharray: 5 4; }
  100% { opacity: 1; }
}
@keyframes after { 0%, 24% { opacity: 0; } 34%, 96% { opacity: 1; } 100% { opacity: 0; } }
@keyframes drawn {
  0%, 34% { stroke-dashoffset: 1000; }
  64%, 97% { stroke-dashoffset: 0; }
  98%, 100% { stroke-dashoffset: 1000; }
}
</style>"""


def together(canvas, kind, *parts):
    """What the parts add to the canvas, as one group that appears and goes together."""
    canvas.add(f'<g class="{kind}">')
    for part in parts:
        part()
    canvas.add("</g>")


def layer():
    """One layer of attention; the arrow of its values leaves the hidden state for the token."""
    canvas = Canvas(WIDTH, HEIGHT)
    canvas.add(MOTION)
    canvas.text(WIDTH / 2, 10, "one layer of attention", 15, bold=True)
    frame(canvas)
    together(canvas, "before", lambda: own_arrow(canvas, several=False))
    together(canvas, "after", lambda: x0_arrow(canvas, several=False))
    value_box(canvas, dict(gain=False))
    return canvas


def two_curves(steps, standard, token):
    """Two losses over the steps of training, each named at its end."""
    canvas = Canvas(RIGHT + 130, HEIGHT)
    low, high = min(token), max(standard)

    def across(step):
        return LEFT + (RIGHT - LEFT) * (step - steps[0]) / (steps[-1] - steps[0])

    def down(loss):
        return FLOOR - (FLOOR - TOP) * (loss - low) / (high - low)

    def line(losses, kind):
        points = [(across(step), down(loss)) for step, loss in zip(steps, losses, strict=True)]
        canvas.path(points, kind, tip=False)

    def named(loss, lift, words, **how):
        for i, part in enumerate(words):
            canvas.text(RIGHT + 8, down(loss) + lift + 16 * i, part, 13, "start", **how)

    canvas.text(LEFT - 8, 10, "training loss: lower is better", 15, "start", bold=True)
    canvas.path([(LEFT, TOP - 14), (LEFT, FLOOR + 12), (RIGHT, FLOOR + 12)], tip=False)
    for step in (steps[0], steps[-1]):
        canvas.text(across(step), FLOOR + 26, f"{step} steps", kind="soft")
    for loss in (low, high):
        canvas.text(LEFT - 8, down(loss), f"{loss:.1f}", anchor="end", kind="soft")
    line(standard, "ink")
    named(standard[-1], -18, ("values from the", "hidden state"), kind="soft")
    together(canvas, "drawn", lambda: line(token, "value"))
    ending = ("values from the", "token alone")
    together(canvas, "after", lambda: named(token[-1], -8, ending, bold=True))
    return canvas


def moving(steps, standard, token, alt, columns=2):
    """The picture: at `steps` the losses of both, as the records have them. One column: a phone."""
    whole = side_by_side([layer(), two_curves(steps, standard, token)], columns=columns)
    return whole.drawing(alt, "Where do the values come from?")


# ---- one after the other -------------------------------------------------------------------------


def in_turn(many, seconds=14):
    """The style of parts `turn0`, `turn1`, … that appear one after the other and go together."""
    rules = []
    for at in range(many):
        come = 4 + 60 * at / many
        rules.append(
            f"@keyframes turn{at} {{ 0%, {come:.0f}% {{ opacity: 0; }} "
            f"{come + 4:.0f}%, 97% {{ opacity: 1; }} 100% {{ opacity: 0; }} }}"
        )
    moved = " ".join(
        f".turn{at} {{ animation: turn{at} {seconds}s {-0.7 * seconds:g}s infinite; }}"
        for at in range(many)
    )
    wanted = f"@media (prefers-reduced-motion: no-preference) {{ {moved} }}"
    return f"<style>\n{wanted}\n" + "\n".join(rules) + "\n</style>"


PANEL = 346  # wide: one of them is as wide as a phone


class Scale:
    """Leads as pixels: `low` lies at `start`, `high` at `end`."""

    def __init__(self, low, high, start, end):
        self.low, self.start = low, start
        self.a_nat = (end - start) / (high - low)

    def __call__(self, lead):
        return self.start + (lead - self.low) * self.a_nat


def dose(counts, leads, alt, columns=2):
    """From the top, `counts` of twelve layers make their values from the token: which these are,
    and the lead of each choice on every text, {text: [Lead]}."""
    panels = [changed_layers(counts), leads_by_count(counts, leads)]
    panels[0].parts.insert(0, in_turn(len(counts)))
    whole = side_by_side(panels, columns=columns)
    return whole.drawing(alt, "In how many layers?")


def changed_layers(counts, layers=12):
    """Twelve boxes; from the top down they change, as many at a time as the counts say."""
    canvas = Canvas(PANEL, HEIGHT)
    canvas.text(PANEL / 2, 10, "where each layer's values come from", 15, bold=True)
    high, top = 22, 32
    for layer in range(layers):
        canvas.box(60, top + high * (layers - 1 - layer), 110, high - 4, kind="quiet", corner=2)
    for layer in (1, layers):
        canvas.text(52, top + high * (layers - layer) + 9, f"layer {layer}", 12, "end", "soft")
    done = 0
    for turn, count in enumerate(counts):
        canvas.add(f'<g class="turn{turn}">')
        for layer in range(layers - count, layers - done):
            y = top + high * (layers - 1 - layer)
            canvas.box(60, y, 110, high - 4, "the token", "content", 11, 2)
        y = top + high * count - 2
        canvas.path([(174, y), (200, y)], tip=False)
        canvas.text(206, y, f"the top {count}" if count < layers else "all twelve", 12, "start")
        canvas.add("</g>")
        done = count
    canvas.text(
        60, top + high * layers + 14, "grey: the hidden state, as always", 12, "start", "soft"
    )
    return canvas


def leads_by_count(counts, leads):
    """How far each choice is ahead of standard attention, with its interval."""
    canvas = Canvas(PANEL, HEIGHT)
    canvas.text(8, 10, "nats a token ahead of standard", 15, "start", bold=True)
    highest = max(one.high for some in leads.values() for one in some)
    down = Scale(0, highest, 282, 40)
    canvas.path([(46, 30), (46, 282), (PANEL - 6, 282)], tip=False)
    for lead in (0, 0.05, 0.1, 0.15):
        canvas.text(38, down(lead), f"{lead:.2f}", 11, "end", "soft")
        canvas.path([(46, down(lead)), (50, down(lead))], tip=False)
    across = [76 + 62 * at for at in range(len(counts))]
    for x, count in zip(across, counts, strict=True):
        canvas.text(x, 297, str(count), 12)
    canvas.text(PANEL / 2, 316, "layers, from the top", 12, kind="soft")
    for text, (kind, size) in zip(leads, (("content", 6), ("routing", 5)), strict=True):
        for turn, (x, one) in enumerate(zip(across, leads[text], strict=True)):
            canvas.add(f'<g class="turn{turn}">')
            canvas.path([(x, down(one.low)), (x, down(one.high))], tip=False)
            mark(canvas, x, down(one.mean), size, kind)
            canvas.add("</g>")
        canvas.text(across[-1] + 12, down(leads[text][-1].mean), text, 12, "start", bold=True)
    return canvas


def mark(canvas, x, y, size, kind):
    """A disc, or where it is of the other kind a square: told apart without colour."""
    if kind == "content":
        canvas.add(f'<circle cx="{x:g}" cy="{y:.1f}" r="{size}" class="{kind}"/>')
        return
    canvas.box(x - size, y - size, 2 * size, 2 * size, kind=kind, corner=0)


def seeds(rows, alt, columns=2):
    """{text: [(name, Lead)]}: the same model, other seeds, from row to row; the last has all."""
    panels = [rows_of_seeds(text, some) for text, some in rows.items()]
    panels[0].parts.insert(0, in_turn(max(map(len, rows.values()))))
    whole = side_by_side(panels, columns=columns)
    return whole.drawing(alt, "Which seeds?")


def rows_of_seeds(text, rows):
    canvas = Canvas(PANEL, HEIGHT)
    canvas.text(8, 10, text, 15, "start", bold=True)
    low, high = min(one.low for _, one in rows), max(one.high for _, one in rows)
    across = Scale(min(0, low), high, 92, PANEL - 8)
    canvas.path([(across(0), 26), (across(0), 284)], "faint", tip=False)
    step = 0.05 if high > 0.05 else 0.01
    for at in range(int(high / step) + 1):
        canvas.text(across(at * step), 297, f"{at * step:.2f}" if at else "0", 11, kind="soft")
    for turn, (name, one) in enumerate(rows):
        y = 44 + 226 * turn / (len(rows) - 1)
        canvas.add(f'<g class="turn{turn}">')
        canvas.text(84, y, name, 12, "end", bold=turn == len(rows) - 1)
        way = [(across(one.low), y), (across(one.high), y)]
        canvas.path(way, "value" if one.clear else "ink", tip=False)
        for ahead in one.by_seed:
            mark(canvas, across(ahead), y, 4, "content" if one.clear else "box")
        canvas.add("</g>")
    told = "nats ahead; disc and thick: clear of zero"
    canvas.text(PANEL - 8, 316, told, 12, "end", "soft")
    return canvas
