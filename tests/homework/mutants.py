"""A right solution with every small slip, and what once earned points that it should not."""

import ast
import copy
import itertools

from homework.slips import places, slips


def mutants(source, step=1):
    """(function, line, what it reads now, module text) of every `step`-th slip."""
    tree, number = ast.parse(source), itertools.count()
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        for parent, field, position, node in list(places(ast.Module(function.body, []))):
            for slip in slips(node):
                if next(number) % step:
                    continue
                put(parent, field, position, slip)
                line = ast.fix_missing_locations(copy.copy(slip))
                yield (
                    function.name,
                    node.lineno,
                    f"{ast.unparse(node)}  ->  {ast.unparse(line)}",
                    ast.unparse(tree),
                )
                put(parent, field, position, node)


def put(parent, field, position, node):
    if position is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[position] = node


# What once earned full points and should not: (unit, exercise, what replaces the right function).
SLIPPED = [
    ("hw01", "rope", "lambda x, positions, *how: right(x, positions.half().double(), *how)"),
    ("hw01", "rope", "lambda x, positions, *how: right(x.float(), positions, *how).to(x.dtype)"),
    (
        "hw01",
        "attention",
        "lambda q, k, v, rows: right(q.float(), k.float(), v.float(), rows).to(q.dtype)",
    ),
    (
        "hw03",
        "grouped_attention",
        "lambda q, k, v: right(q.float(), k.float(), v.float()).to(q.dtype)",
    ),
    ("hw03", "windowed_bytes", "lambda keys, *rest: right(list(range(len(keys))), *rest)"),
    (
        "hw04",
        "window",
        "lambda step, steps, longest, block: min(right(step, steps, longest, block), longest)",
    ),
    (
        "hw04",
        "window",
        "lambda step, steps, longest, block: right(max(step - 1, 0), steps, longest, block)",
    ),
    (
        "hw04",
        "mixed_value",
        "lambda v, ve, s0, s1: s0 * v / (v.square().mean(-1, keepdim=True) + 1e-2).sqrt() + (0 if "
        "ve is None else s1 * ve.unflatten(-1, (-1, 5)).repeat_interleave(30 // ve.shape[-1], 2))",
    ),
    (
        "hw06",
        "em_f1",
        "lambda p, golds: right(p.replace('_', '0'), [g.replace('_', '0') for g in golds])",
    ),
    ("hw06", "em_f1", "lambda p, golds: right(*[re.sub('[^a-z0-9 ]', '', p.lower()), golds])"),
    ("hw06", "mask_tokens", "lambda ids, draw, *rest: right(ids, draw.nextafter(draw - 1), *rest)"),
    (
        "hw06",
        "mask_tokens",
        "lambda ids, draw, action, *rest: right(ids, draw, action.nextafter(action - 1), *rest)",
    ),
    (
        "hw07",
        "value",
        "lambda row, *rest: right(row, *rest) if row not in (3, 5) else rest[3]",
    ),
    (
        "hw07",
        "aligned_table",
        "lambda e, w: (e / (e.square().mean(-1, keepdim=True) + 1e-2).sqrt()) @ w.mean(0)",
    ),
    ("hw08", "copy_tiles", "lambda x, block: (x, *right(x, block)[1:])"),
    ("hw08", "copy_tiles", "lambda x, block: (x.view(-1), *right(x, block)[1:])"),
]
