"""What is this course about, in one picture that moves? One arrow, and one curve that falls."""

from course.drawings.canvas import Canvas, side_by_side
from course.drawings.systems import HEIGHT, WIDTH, frame, own_arrow, value_box, x0_arrow

LEFT, RIGHT, TOP, FLOOR = 60, 372, 74, 268  # the panel of the curves, in pixels

# In twelve seconds the arrow leaves the stream, then the second curve is drawn. Where motion is not
# wanted the picture is its own last moment: the old arrow dashed, both curves there.
MOTION = """<style>
.before { stroke-dasharray: 5 4; opacity: 0.35; }
.drawn { stroke-dasharray: 1000; stroke-dashoffset: 0; }
@media (prefers-reduced-motion: no-preference) {
  .before { animation: before 12s infinite; }
  .after { animation: after 12s infinite; }
  .drawn { animation: drawn 12s infinite; }
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
