"""What do arrows do? RoPE's hands, and ResFormer's mix of two values."""

import math

from course.movable.piece import WIDE, Control, Piece, bar_row, fixed, moving_path, part, shares


def rope():
    """How alike a query and an equal key stay as they move apart: mean cos(distance x rate)."""
    pairs = 8

    def compute(v):
        rates = [v["base"] ** (-pair / pairs) for pair in range(pairs)]
        angles = [rate * v["distance"] for rate in rates]
        found = {}
        for pair, angle in enumerate(angles):
            x, y = 62 + 66 * pair, 60
            tip = fixed(x + 24 * math.cos(angle)), fixed(y - 24 * math.sin(angle))
            found[f"hand{pair}"] = f"M{x} {y} L{tip[0]} {tip[1]}"
        score = sum(math.cos(angle) for angle in angles) / pairs
        found["score"] = f"score {fixed(score)}"
        found["bar"] = fixed(max(0.0, WIDE * score))
        return found

    def draw(c, moving):
        for pair in range(pairs):
            second = pair >= pairs // 2
            with part(c, right=-8 - 264 * second, down=90 * second):  # on a phone two rows of four
                c.add(f'<circle cx="{62 + 66 * pair}" cy="60" r="28" class="quiet"/>')
                c.text(62 + 66 * pair, 16, f"pair {pair + 1}", 12)
                moving_path(c, f"hand{pair}", moving, "value")
        with part(c, down=90):
            bar_row(c, 108, "alike", "bar", moving, "routing")

    controls = (
        Control("distance", "distance", tuple((n, f"{n} tokens") for n in range(0, 257)), 3),
        Control(
            "base", "base", ((10.0, "10"), (100.0, "100"), (1e4, "10,000"), (1e5, "100,000")), 2
        ),
    )
    script = f"""
const out = {{}};
let score = 0;
for (let pair = 0; pair < {pairs}; pair++) {{
  const angle = v.base ** (-pair / {pairs}) * v.distance, x = 62 + 66 * pair, y = 60;
  const right = (x + 24 * Math.cos(angle)).toFixed(2), up = (y - 24 * Math.sin(angle)).toFixed(2);
  out["hand" + pair] = `M${{x}} ${{y}} L${{right}} ${{up}}`;
  score += Math.cos(angle) / {pairs};
}}
out.score = "score " + score.toFixed(2);
out.bar = Math.max(0, {WIDE} * score).toFixed(2);
return out;
"""
    alt = (
        "Eight clock hands, one for each pair of features, turned by distance times the pair's "
        "rate; a bar shows how alike an equal query and key remain. Fast hands come back, slow "
        "hands do not."
    )
    title, size = "RoPE: angle against distance", (600, 136)
    return Piece("rope", title, controls, draw, compute, script, size, 226, alt, says=("score",))


TOY_WORDS = ("the", "cat", "sat", "on", "a", "mat")
V1_VECTORS = (
    (34, 20),
    (10, 40),
    (-22, 34),
    (-38, 6),
    (28, -26),
    (-6, -40),
)  # V1, toy vectors in a plane
DEEP = ((30, 8), (27, 12), (24, 14), (20, 13), (28, 4), (22, 12))  # V of a deep layer: grown alike


def resformer_mix():
    """(1 - share) V + share V1 for six words: how unlike the words are again."""

    def compute(v):
        share, found, mixed = v["share"], {}, []
        for at, (one, deep) in enumerate(zip(V1_VECTORS, DEEP, strict=True)):
            x, y = ((1 - share) * d + share * f for f, d in zip(one, deep, strict=True))
            mixed.append((x, y))
            centre = 60 + 96 * at
            found[f"word{at}"] = f"M{centre} 70 L{fixed(centre + x)} {fixed(70 - y)}"
        unit = [(x / math.hypot(x, y), y / math.hypot(x, y)) for x, y in mixed]
        alike = [a[0] * b[0] + a[1] * b[1] for i, a in enumerate(unit) for b in unit[i + 1 :]]
        found["alike"] = f"mean cosine between words {fixed(sum(alike) / len(alike))}"
        return found

    def draw(c, moving):
        for at, word in enumerate(TOY_WORDS):
            centre, second = 60 + 96 * at, at >= len(TOY_WORDS) // 2
            with part(
                c, right=-3 - 288 * second, down=124 * second
            ):  # on a phone two rows of three
                c.text(centre, 14, word, 12)
                c.add(f'<circle cx="{centre}" cy="70" r="46" class="quiet"/>')
                for (x, y), kind in ((V1_VECTORS[at], "faint"), (DEEP[at], "ink")):
                    c.path([(centre, 70), (centre + x, 70 - y)], kind)
                moving_path(c, f"word{at}", moving, "value")

    script = f"""
const first = {list(map(list, V1_VECTORS))}, deep = {list(map(list, DEEP))}, out = {{}}, unit = [];
for (let at = 0; at < first.length; at++) {{
  const x = (1 - v.share) * deep[at][0] + v.share * first[at][0];
  const y = (1 - v.share) * deep[at][1] + v.share * first[at][1], centre = 60 + 96 * at;
  out["word" + at] = `M${{centre}} 70 L${{(centre + x).toFixed(2)}} ${{(70 - y).toFixed(2)}}`;
  unit.push([x / Math.hypot(x, y), y / Math.hypot(x, y)]);
}}
let sum = 0, many = 0;
for (let i = 0; i < unit.length; i++) for (let j = i + 1; j < unit.length; j++) {{
  sum += unit[i][0] * unit[j][0] + unit[i][1] * unit[j][1]; many++;
}}
out.alike = "mean cosine between words " + (sum / many).toFixed(2);
return out;
"""
    alt = (
        "Six words, each with two arrows: its value in the first layer, and its value deep in the "
        "stack, where all words have grown alike. A thick arrow between them is "
        "ResFormer's mix. Toy vectors."
    )
    controls = (Control("share", "share of V₁", shares(0, 1, 0.05), 10),)
    caption = "Dashed: V₁ of the first layer; thin: V of a deep layer; thick: the mix."
    title, size, says = "ResFormer's mix", (600, 124), ("alike",)
    return Piece("mix", title, controls, draw, compute, script, size, 248, alt, says, caption)
