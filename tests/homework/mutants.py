"""What small slips can a right solution suffer? One change in one place: sign, axis, scale, off by
one, index, mask."""

import ast
import copy
import itertools

OPERATORS = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
NAMES = {
    "mean": "sum",
    "sum": "mean",
    "triu": "tril",
    "tril": "triu",
    "max": "min",
    "min": "max",
    "amax": "amin",
    "cos": "sin",
    "sin": "cos",
    "exp": "sigmoid",
    "sigmoid": "exp",
    "relu": "abs",
    "cumsum": "cumprod",
    "argmax": "argmin",
    "repeat_interleave": "repeat",
}


def slips(node):
    """Every changed copy of one node."""

    def changed(**fields):
        new = copy.copy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return ast.copy_location(new, node)

    if isinstance(node, (ast.BinOp, ast.BoolOp)):
        for other in OPERATORS.get(type(node.op), []):
            yield changed(op=other())
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Div)):
            yield changed(left=node.right, right=node.left)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in OPERATORS.get(type(node.ops[0]), []):
            yield changed(ops=[other()])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield changed(value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield changed(value=node.value + 1)
        yield changed(value=node.value - 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield changed(value=node.value * 1.25 or 1.0)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield changed(attr=NAMES[node.attr])
    elif isinstance(node, ast.IfExp):
        yield changed(body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Slice) and (node.lower is None) != (node.upper is None):
        yield changed(lower=node.upper, upper=node.lower)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):  # a layer's index
        yield changed(slice=ast.copy_location(ast.Constant(0), node.slice))


def places(tree):
    """(parent, field, position or None, node) of every expression under a function's body,
    docstring left out."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for position, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                text = (
                    isinstance(parent, ast.Expr)
                    and isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                )
                if isinstance(node, ast.AST) and not text:
                    yield parent, field, position, node


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
