"""What does one layer do to its stream? Attention and the MLP read it through a norm, and add."""

from course.drawings.canvas import Canvas
from course.drawings.systems import wiring
from minimal.variants import skeleton

STREAM, OUT, RIGHT = 40, 50, 490  # the stream's x, where an arrow meets it, the layer's right edge
LOW, HIGH = 344, 134  # where attention leaves the stream, and where the MLP does
JOIN, LATER = 180, 86  # and where what each of them writes is added


def tap(c, y):
    """A branch leaves the stream and is brought to one size."""
    c.path([(STREAM, y), (88, y)])
    c.box(88, y - 13, 56, 26, "norm", "box", 12)


def attention(c):
    """Routing: queries and keys make the map. Content: values are what it mixes."""
    c.text(62, JOIN - 13, "attention: from other positions", 12, "start", bold=True)
    tap(c, LOW)
    # routing: who is heard
    c.path([(144, LOW), (198, LOW), (198, 314)])
    c.path([(198, LOW), (236, LOW), (236, 314)])
    c.box(184, 288, 28, 26, "q", "routing", 13)
    c.box(222, 288, 28, 26, "k", "routing", 13)
    c.path([(198, 288), (198, 266)])
    c.path([(236, 288), (236, 266)])
    c.box(184, 238, 66, 28, "A", "routing", 14)
    c.text(174, 301, "routing", 12, "end", "soft")
    c.text(174, 252, "who is heard", 12, "end", "soft")
    # content: what is said
    c.path([(236, LOW), (316, LOW), (316, 314)], "value")
    c.box(294, 288, 44, 26, "V", "content", 13)
    c.path([(316, 288), (316, 266)], "value")
    c.path([(250, 252), (288, 252)])
    c.box(290, 238, 52, 28, "A V", "content", 14)
    c.text(352, 301, "content", 12, "start", "soft")
    c.text(352, 252, "what is said", 12, "start", "soft")
    # the way back
    c.path([(316, 238), (316, 223)])
    c.box(294, 196, 44, 26, "Wₒ", "box", 12)
    c.path([(316, 196), (316, JOIN), (OUT, JOIN)])
    c.plus(STREAM, JOIN)


def feed_forward(c):
    """Each position alone: wide, cut off below zero and squared, narrow."""
    c.text(62, LATER - 13, "MLP: each position alone", 12, "start", bold=True)
    tap(c, HIGH)
    steps = ((164, 44, "up"), (236, 64, "relu²"), (328, 52, "down"))
    start = 144
    for x, wide, words in steps:
        c.path([(start, HIGH), (x, HIGH)])
        c.box(x, HIGH - 13, wide, 26, words, "box", 12)
        start = x + wide
    c.path([(start, HIGH), (400, HIGH), (400, LATER), (OUT, LATER)])
    c.plus(STREAM, LATER)


def one_layer(plan="standard", size="tiny"):
    """A layer of a plan beside its stream; how many layers, and which parts, is read off it."""
    model = skeleton(plan, size)
    kinds, layers, one = wiring(plan, size)["leaves"], len(model.blocks), model.blocks[-1]
    if kinds != [("own", "")] or one.mlp is None or one.mlp.kind != "relu2":
        raise ValueError(
            f"wanted a layer with values of its own stream and an MLP of relu², got {plan}: "
            "systems() draws the others"
        )
    c = Canvas(RIGHT + 4, 424)
    c.text(STREAM, 20, "stream", 12, kind="soft")
    c.box(STREAM - 20, 396, 40, 26, "x₀", "box", 13)
    c.box(100, 396, 44, 26, "id", "quiet", 12)
    c.path([(100, 409), (62, 409)])
    c.path([(STREAM, 396), (STREAM, 32)])
    c.box(58, 52, RIGHT - 58, 326, kind="faint", corner=6)
    c.text(RIGHT - 8, 364, f"one of {layers} layers", 12, "end", "soft")
    attention(c)
    feed_forward(c)
    narrow, wide = one.mlp.up.weight.shape[::-1]
    alt = (
        f"One of {layers} layers, and the stream that runs past it from the token embedding "
        "upwards. Attention reads the stream through a norm: queries and keys make the map A, who "
        "is heard, and values are what it mixes, what is said. Its result goes through a matrix "
        "and is added to the stream. Then the MLP reads the stream through a norm, each position "
        f"alone: from {narrow} features to {wide}, cut off below zero and squared, back to "
        f"{narrow}, and added. Nothing in the stream is overwritten."
    )
    return c.drawing(alt, "A layer adds to its stream")
