"""What is a weight worth, and how is a softmax summed in pieces? x0's share, and online softmax."""

import math

from course.movable.piece import (
    WIDE,
    Control,
    Piece,
    bar_row,
    fixed,
    moving_path,
    part,
    shares,
    whole_numbers,
)


def mixin_share():
    """r x + z x0: what share of the sum's length is the token's, when the stream has grown long?"""

    def compute(v):
        stream, token = v["residual"] * v["length"], v["x0"]
        share = token / (stream + token)
        return dict(
            stream_bar=fixed(WIDE * (1 - share)),
            token_bar=fixed(WIDE * share),
            said=f"the token's share: {fixed(100 * share, 1)} %",
            needed=f"for half of it x0's weight would have to be {fixed(stream)}",
        )

    def draw(c, moving):
        for row, (name, kind) in enumerate((("stream", "routing"), ("token", "content"))):
            bar_row(c, 12 + 36 * row, name, f"{name}_bar", moving, kind)

    script = f"""
const stream = v.residual * v.length, share = v.x0 / (stream + v.x0);
return {{
  stream_bar: ({WIDE} * (1 - share)).toFixed(2), token_bar: ({WIDE} * share).toFixed(2),
  said: "the token's share: " + (100 * share).toFixed(1) + " %",
  needed: "for half of it x0's weight would have to be " + stream.toFixed(2),
}};
"""
    alt = (
        "Two bars, the stream's length and the token's in r x + z x0. The same weight on x0 means "
        "little where the stream has grown long: a coefficient is not a share."
    )
    controls = (
        Control("x0", "weight of x0", shares(0, 2, 0.1, 1), 5),
        Control("residual", "weight of the stream", shares(0.1, 2, 0.1, 1), 9),
        Control(
            "length", "length of the stream, in x0's", tuple((n, str(n)) for n in range(1, 65)), 11
        ),
    )
    title, size, says = "A weight is not a share", (600, 76), ("said", "needed")
    return Piece("share", title, controls, draw, compute, script, size, 76, alt, says)


SCORES = (0.4, -0.7, 1.3, 0.1, 2.2, -0.3, 0.9, 1.7, -1.1, 0.6, 3.0, 0.2)
VALUES = (1.0, 0.2, -0.5, 0.8, 1.4, -1.0, 0.3, 0.6, -0.2, 0.9, -0.8, 0.1)


def end_of_tile(at, width):
    """The first key after the tile in which key `at` lies."""
    return (at // width + 1) * width


def online_softmax():
    """After so many tiles: the largest score, the sum, the output, as a flash kernel has them."""

    def compute(v):
        seen, found = min(v["tiles"] * v["width"], len(SCORES)), {}
        m = max(SCORES[:seen], default=-math.inf)
        weights = [math.exp(score - m) for score in SCORES[:seen]]
        for at in range(len(SCORES)):
            height = fixed(56 * weights[at] if at < seen else 0.0)
            found[f"bar{at}"] = f"M{20 + 46 * at} 70 v-{height} h32 v{height} z"
        if not seen:
            return found | dict(state="nothing is read yet", output="-", forgetful="-")
        total = sum(weights)
        y = sum(w * x for w, x in zip(weights, VALUES, strict=False)) / total
        uncorrected = sum(
            math.exp(SCORES[at] - max(SCORES[: end_of_tile(at, v["width"])])) * VALUES[at]
            for at in range(seen)
        )
        return found | dict(
            state=f"m = {fixed(m)}, l = {fixed(total)}, {seen} of {len(SCORES)} keys read",
            output=f"output so far {fixed(y, 3)}",
            forgetful=f"if earlier sums were not corrected: {fixed(uncorrected / total, 3)}",
        )

    def draw(c, moving):
        for at, score in enumerate(SCORES):
            x, second = 20 + 46 * at, at >= len(SCORES) // 2
            with part(c, right=-276 * second, down=96 * second):  # on a phone two rows of six
                c.box(x, 10, 32, 60, kind="faint", corner=2)
                moving_path(c, f"bar{at}", moving, "content", tip=False)
                c.text(x + 16, 84, f"{score:g}".replace("-", "−"), 12)

    script = f"""
const scores = {list(SCORES)}, values = {list(VALUES)}, out = {{}};
const seen = Math.min(v.tiles * v.width, scores.length), m = Math.max(...scores.slice(0, seen));
const weights = scores.slice(0, seen).map((score) => Math.exp(score - m));
for (let at = 0; at < scores.length; at++) {{
  const height = (at < seen ? 56 * weights[at] : 0).toFixed(2);
  out["bar" + at] = `M${{20 + 46 * at}} 70 v-${{height}} h32 v${{height}} z`;
}}
const nothing = {{ state: "nothing is read yet", output: "-", forgetful: "-" }};
if (!seen) return Object.assign(out, nothing);
const total = weights.reduce((a, b) => a + b);
const y = weights.reduce((sum, w, at) => sum + w * values[at], 0) / total;
out.state = `m = ${{m.toFixed(2)}}, l = ${{total.toFixed(2)}}, `;
out.state += `${{seen}} of ${{scores.length}} keys read`;
out.output = "output so far " + y.toFixed(3);
let uncorrected = 0;
for (let at = 0; at < seen; at++) {{
  const end = (Math.floor(at / v.width) + 1) * v.width;
  uncorrected += Math.exp(scores[at] - Math.max(...scores.slice(0, end))) * values[at];
}}
out.forgetful = "if earlier sums were not corrected: " + (uncorrected / total).toFixed(3);
return out;
"""
    alt = (
        "Twelve scores as boxes that fill tile by tile with exp(score - m), where m is the largest "
        "score so far. When a larger score comes, all earlier bars shrink together: "
        "that is the rescaling."
    )
    controls = (
        Control("tiles", "tiles read", whole_numbers(0, 12), 1, run=True),
        Control("width", "keys a tile", ((1, "1"), (2, "2"), (3, "3"), (4, "4")), 3),
    )
    says = ("state", "output", "forgetful")
    caption = "Scores below; a bar is exp(score − m), and shrinks when m grows."
    title, size = "Online softmax", (600, 96)
    return Piece("softmax", title, controls, draw, compute, script, size, 192, alt, says, caption)
