"""What small slips can a line suffer? One change in one place: sign, axis, scale, index, mask."""

import ast
import copy


def both_ways(*pairs):
    return {one: [other] for pair in pairs for one, other in (pair, pair[::-1])}


OPERATORS = both_ways((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or))
OPERATORS |= both_ways((ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.BitAnd, ast.BitOr))
OPERATORS |= dict.fromkeys((ast.FloorDiv, ast.Mod, ast.Pow), [ast.Mult])
OPERATORS |= {ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE]}
OPERATORS |= {ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.LtE]}
NAMES = both_ways(*map(str.split, ("mean sum", "triu tril", "max min", "cos sin", "exp sigmoid")))
NAMES |= dict(amax=["amin"], argmax=["argmin"], cumsum=["cumprod"], relu=["abs"])
NAMES |= dict(repeat_interleave=["repeat"])


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
        for other in NAMES[node.attr]:
            yield changed(attr=other)
    elif isinstance(node, ast.IfExp):
        yield changed(body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Slice) and (node.lower is None) != (node.upper is None):
        yield changed(lower=node.upper, upper=node.lower)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):  # a layer's index
        yield changed(slice=ast.copy_location(ast.Constant(0), node.slice))


def places(tree):
    """(parent, field, position or None, node) of every expression but the docstring."""
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
