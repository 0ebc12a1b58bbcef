"""What do the heads of two models look at, in the reader's own sentence?"""

import json

import torch

from course.movable.piece import PHONE, Control, Piece, fixed, moving_path, part, whole_numbers
from minimal import analysis

MOST_TOKENS = 24  # what a screen holds
HIGH = 19  # of a word's line
MIDDLE, LONGEST = 330, 170  # where words stand, and how long the bar of weight 1 is
SIDES = (-1, 1)  # the first model to the left, the second to the right


def heads_over(sentence, tok, **models):
    """Two models by name, and the sentence that both read: a piece of their heads."""
    ids = torch.tensor([tok.encode(sentence)[:MOST_TOKENS]])  # (1, T)
    words = [tok.decode([i]) for i in ids[0].tolist()]
    seen = {name: heads_seen(model, ids) for name, model in models.items()}
    return attention_heads(words, seen)


@torch.no_grad()
def heads_seen(model, ids):
    """Of one text: what every head looks at, and how alike the values are that it carries.

    Both (L, H, T, T): weights, and cosines between the values of two tokens."""
    tape = analysis.observe(model, ids)
    layers = [at for at, block in enumerate(model.blocks) if block.attention]
    weights = torch.cat([analysis.attention_map(model, tape, at) for at in layers])
    heads, alike = weights.shape[1], []
    for at in layers:
        v = tape.values[at].dense().float()[0]  # (T, G, D)
        v = torch.nn.functional.normalize(v, dim=-1).transpose(0, 1)  # (G, T, D)
        alike.append((v @ v.mT).repeat_interleave(heads // len(v), 0))  # (H, T, T)
    return weights, torch.stack(alike)


def thousandths(numbers):
    """(L, H, T, T) as whole thousandths: row t holds what token t may see, t + 1 numbers."""
    whole = (numbers * 1000).round().int().tolist()
    return [[[row[: t + 1] for t, row in enumerate(head)] for head in layer] for layer in whole]


def attention_heads(words, seen):
    """Layer, head, word -> the row of attention, and how alike the values are, in both models."""
    names = list(seen)
    weights = [thousandths(seen[name][0]) for name in names]
    alike = [thousandths(seen[name][1]) for name in names]
    layers, heads, top = len(weights[0]), len(weights[0][0]), 40

    def compute(v):
        found = dict(here=f"M{MIDDLE - 62} {top + HIGH * v['word'] + 4} v10 l8 -5 z")
        for model, side in enumerate(SIDES):
            row = weights[model][v["layer"]][v["head"]][v["word"]]
            same = alike[model][v["layer"]][v["head"]][v["word"]]
            for at in range(len(words)):
                y, start = top + HIGH * at + 9, MIDDLE + side * 70
                weight, cosine = (row[at], same[at]) if at < len(row) else (0, 0)
                wide = fixed(side * LONGEST * weight / 1000)
                found[f"weight{model}_{at}"] = f"M{start} {y - 5} h{wide} v10 H{start} z"
                middle = MIDDLE + side * 285
                found[f"alike{model}_{at}"] = f"M{middle} {y} h{fixed(30 * cosine / 1000)}"
            most = row.index(max(row))
            found[f"said{model}"] = (
                f"{names[model]}: {fixed(row[most] / 1000)} of its weight goes to token {most + 1}"
            )
        return found

    def draw(c, moving):
        for model, side in enumerate(SIDES):
            weights, values = MIDDLE + side * 155, MIDDLE + side * 285
            with part(c, right=PHONE / 2 + side * 66 - weights):
                c.text(weights, 10, names[model], 13, bold=True)
                c.text(weights, 28, "weight", 12, kind="soft")
            with part(c, right=PHONE / 2 + side * 134 - values):
                c.text(values, 14, "value", 12, kind="soft")
                c.text(values, 28, "alike", 12, kind="soft")
            shorter = 58 / LONGEST  # a bar of weight 1 from 54 to 112 beside the middle
            with part(c, PHONE / 2 + side * 54 - shorter * (MIDDLE + side * 70), wide=shorter):
                for at in range(len(words)):
                    moving_path(c, f"weight{model}_{at}", moving, "routing", tip=False)
            with part(c, right=PHONE / 2 + side * 134 - 0.5 * values, wide=0.5):
                end = top + HIGH * len(words)
                c.path([(values, top), (values, end)], "faint", tip=False)
                for at in range(len(words)):
                    moving_path(c, f"alike{model}_{at}", moving, "value", tip=False)
        with part(c, right=PHONE / 2 - MIDDLE):
            for at, word in enumerate(words):
                c.text(MIDDLE, top + HIGH * at + 9, f"{at + 1} {word.strip() or repr(word)}", 12)
        with part(c, right=PHONE / 2 - MIDDLE + 9):
            moving_path(c, "here", moving, "dark", tip=False)

    script = f"""
const words = {len(words)}, names = {json.dumps(names)}, weights = {json.dumps(weights)};
const alike = {json.dumps(alike)}, sides = {list(SIDES)};
const out = {{ here: `M{MIDDLE - 62} ${{{top} + {HIGH} * v.word + 4}} v10 l8 -5 z` }};
for (let model = 0; model < 2; model++) {{
  const side = sides[model], row = weights[model][v.layer][v.head][v.word];
  const same = alike[model][v.layer][v.head][v.word];
  for (let at = 0; at < words; at++) {{
    const y = {top} + {HIGH} * at + 9, start = {MIDDLE} + side * 70;
    const weight = row[at] ?? 0, cosine = same[at] ?? 0;
    const wide = (side * {LONGEST} * weight / 1000).toFixed(2), middle = {MIDDLE} + side * 285;
    out[`weight${{model}}_${{at}}`] = `M${{start}} ${{y - 5}} h${{wide}} v10 H${{start}} z`;
    out[`alike${{model}}_${{at}}`] = `M${{middle}} ${{y}} h${{(30 * cosine / 1000).toFixed(2)}}`;
  }}
  const most = row.indexOf(Math.max(...row)), share = (row[most] / 1000).toFixed(2);
  out["said" + model] = `${{names[model]}}: ${{share}} of its weight goes to token ${{most + 1}}`;
}}
return out;
"""
    start = dict(layer=layers - 1, head=0, word=len(words) - 1)
    said = compute(start)
    alt = (
        f"The tokens of a sentence with two bars each: the attention that one head of {names[0]} "
        f"(left) and of {names[1]} (right) gives them, and a mark for how alike their values are "
        f"to the chosen one's. At the last token, in the last layer: {said['said0']}; "
        f"{said['said1']}."
    )
    controls = (
        Control("layer", "layer", whole_numbers(0, layers - 1), start["layer"]),
        Control("head", "head", whole_numbers(0, heads - 1), 0),
        Control("word", "token that looks", tuple(enumerate_words(words)), start["word"]),
    )
    high = top + HIGH * len(words) + 4
    title = f"Heads of {names[0]} and {names[1]} over a sentence"
    size, says = (2 * MIDDLE, high), ("said0", "said1")
    return Piece("heads", title, controls, draw, compute, script, size, high, alt, says, stressed=2)


def enumerate_words(words):
    return [(at, f"{at + 1} {word.strip()}") for at, word in enumerate(words)]
