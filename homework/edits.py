"""What is a mistake? An edit of the oracle, the sentence that it earns, the points that it costs.

A table of mistakes is text, and stands below the oracle that it edits. All that a learner is told
of an exercise stands there, without quotes:

    unit.mistakes(\"""
    takes: easy, 5 minutes
    hint: What is the mean of squares of your answer?
    2 | yours have length 1; wanted root mean SQUARE 1
        .mean(-1 => .sum(-1
    1 | you took the mean along axis 1, which is not always the last
        .mean(-1 => .mean(1
    2 | you subtracted the mean, and divided by what is
      | measured from zero
        x / => (x - x.mean(-1, keepdims=True)) /
        => standardised(x)
    \""")

`2 |` begins a mistake: the points that it costs, and its sentence. Each line below is one way to
make it, `this text => that text`, where this text stands in the oracle's body exactly once. Without
a text before the arrow all of the body is replaced, by an expression or by what has a `return`.

    old => new || new   two ways, which replace the same text
    and: old => new     belongs to the way above it: both at once
    | more words        continues the line above
    hint: …             the first hint for whoever made this mistake
    \\n                  in an edit, a new line (then the table is an r-string)

Above all mistakes stand

    takes: …            its level (easy, medium, hard, stretch), and how many minutes
    hint: …             for whoever lost points, the first and then the next
    hint for PART: …    for whoever lost this part
    off for PART: …     what is said of a prediction that is not near
    after: …            why it is so: for whoever has earned every part, on the public card
    in: name, name      edits may lie in these functions, too, which the oracle calls
"""

import ast
import functools
import inspect
import re
import textwrap
import types
from dataclasses import dataclass, field

HEAD = re.compile(r"(\d+) \| (.+)")
TAKES = re.compile(r"takes: (\w+), (\d+) minutes")
OFF = re.compile(r"off for (.+?): (.+)")
HINT = re.compile(r"hint(?: for (.+?))?: (.+)")


class Misprint(ValueError):
    """A line of a table that cannot be read, or an edit that fits nowhere or twice."""


@dataclass
class Mistake:
    """A sentence of a table, and the ways to make its mistake: lists of (line, old, new)."""

    line: int
    loses: int
    says: str
    hint: str = ""
    ways: list = field(default_factory=list)


@dataclass
class Table:
    """What a table says: mistakes, and above them level and minutes, hints, as (part or None,
    hint), {part: what is told where it is off}, why it is so, and the names of helpers."""

    takes: tuple = ("", 0)
    hints: list = field(default_factory=list)
    off: dict = field(default_factory=dict)
    after: str = ""
    helpers: list = field(default_factory=list)
    mistakes: list = field(default_factory=list)


def lines_of(table, first):
    """(number, text) of a table's lines, those with more words put behind the line above."""
    found = []
    for number, line in enumerate(table.splitlines(), first):
        text = line.strip()
        if text.startswith("| ") and found:
            found[-1] = found[-1][0], f"{found[-1][1]} {text[2:]}"
        elif text:
            found.append((number, text))
    return found


def read(table, first=1):
    """The Table of a text that begins in this line of its file."""
    made = Table()
    found = made.mistakes
    for number, text in lines_of(table, first):
        if head := HEAD.fullmatch(text):
            found.append(Mistake(number, int(head[1]), head[2]))
        elif found and text.startswith("hint: "):
            found[-1].hint = text.removeprefix("hint: ")
        elif not found and (takes := TAKES.fullmatch(text)):
            made.takes = takes[1], int(takes[2])
        elif not found and (hint := HINT.fullmatch(text)):
            made.hints.append(hint.groups())
        elif not found and (off := OFF.fullmatch(text)):
            made.off[off[1]] = off[2]
        elif not found and text.startswith("after: "):
            made.after = text.removeprefix("after: ")
        elif not found and text.startswith("in: "):
            made.helpers += text.removeprefix("in: ").split(", ")
        elif not found:
            raise Misprint(f"line {number}: wanted `POINTS | SENTENCE`, got {text!r}")
        elif "=>" not in text:
            raise Misprint(f"line {number}: wanted `this text => that text`, got {text!r}")
        elif not text.startswith("and: "):
            old, new = edit_of(text)
            found[-1].ways += [[(number, old, one)] for one in re.split(r"(?:^| )\|\| ", new)]
        elif not found[-1].ways:
            raise Misprint(f"line {number}: `and:` goes with an edit, and there is none above it")
        else:
            found[-1].ways[-1].append((number, *edit_of(text.removeprefix("and: "))))
    for mistake in found:
        if not mistake.ways:
            raise Misprint(f"line {mistake.line}: a sentence without an edit: {mistake.says!r}")
    return made


def edit_of(text):
    """(old, new) of "old => new"."""
    old, new = text.replace("\\n", "\n").split("=>", 1)
    return old.strip(), new.strip()


@dataclass(frozen=True)
class Body:
    """A function as text: its `def`, and what stands below its docstring, from the margin on."""

    function: types.FunctionType
    head: str
    text: str

    @property
    def name(self):
        return self.function.__name__


def body_of(function):
    source = textwrap.dedent(inspect.getsource(function))
    node, lines = ast.parse(source).body[0], source.splitlines(keepends=True)
    first = node.body[1 if ast.get_docstring(node) is not None else 0]
    docstring = node.body[0] if first is not node.body[0] else first
    head = "".join(lines[node.lineno - 1 : docstring.lineno - 1])
    return Body(function, head, textwrap.dedent("".join(lines[first.lineno - 1 :])).strip())


@dataclass(frozen=True)
class Edited:
    """The oracle with some of its text, or of its helpers', replaced. Compiled when it is called
    first. spans: (which body, start, end, new text)."""

    bodies: tuple
    spans: tuple

    def __call__(self, *inputs):
        return self.function(*inputs)

    @functools.cached_property
    def function(self):
        oracle, *helpers = self.bodies
        if all(body == 0 for body, *_ in self.spans):
            return self.made(0, oracle.function.__globals__)
        # helpers call each other by name; the oracle's own name stays that of the right one
        names = [dict(body.function.__globals__) for body in self.bodies]
        made = [self.made(n, names[n]) for n in range(len(self.bodies))]
        for known in names:
            known.update((body.name, made[n]) for n, body in enumerate(helpers, 1))
        return made[0]

    def made(self, n, names):
        """One of the functions, which finds what it calls among these names."""
        body = self.bodies[n]
        scratch = dict(body.function.__globals__)
        exec(compile(self.source(n), f"<{body.name}, edited>", "exec"), scratch)
        made = scratch[body.name]
        again = types.FunctionType(made.__code__, names, body.name, made.__defaults__)
        again.__kwdefaults__ = made.__kwdefaults__
        return again

    def source(self, n):
        """One of the functions with its edits, as text."""
        text = self.bodies[n].text
        for body, start, end, new in sorted(self.spans, reverse=True):
            if body == n:
                text = text[:start] + new + text[end:]
        return f"{self.bodies[n].head}{textwrap.indent(text, '    ')}\n"

    def beside(self, other):
        """Both at once, or None where they meet."""
        if self.bodies != other.bodies:
            return None
        spans = sorted(self.spans + other.spans)
        for (one, _, end, _), (two, start, *_) in zip(spans, spans[1:], strict=False):
            if one == two and start < end:
                return None
        return Edited(self.bodies, tuple(spans))


def span_of(bodies, old, new):
    """Where an edit belongs: in the one place that has its text."""
    if not old:  # all of the oracle
        return 0, 0, len(bodies[0].text), new if "return " in new else f"return {new}"
    places = [
        (n, match.start())
        for n, body in enumerate(bodies)
        for match in re.finditer(f"(?={re.escape(old)})", body.text)
    ]
    if len(places) != 1:
        names = " and ".join(body.name for body in bodies)
        often = "does not occur" if not places else f"occurs {len(places)} times"
        more = "; write more of the line" if places else ""
        raise Misprint(f"{old!r} {often} in the body of {names}{more}")
    ((n, start),) = places
    return n, start, start + len(old), new


def edited(bodies, way):
    """The oracle with one way to make a mistake: edits that do not meet."""
    made = None
    for line, old, new in way:
        try:
            one = Edited(bodies, (span_of(bodies, old, new),))
            made = made.beside(one) if made else one
        except Misprint as why:
            raise Misprint(f"line {line}: {why}") from None
        if made is None:
            raise Misprint(f"line {line}: {old!r} lies where the edit above lies")
    for n in {body for body, *_ in made.spans}:
        try:
            ast.parse(made.source(n))
        except SyntaxError as error:
            raise Misprint(
                f"line {way[0][0]}: Python cannot read {(error.text or '').strip()!r}: {error.msg}"
            ) from None
    return made


def bodies_of(oracle, helpers=()):
    """The texts that edits are made in: the oracle's, and those of functions of its file."""
    for name in helpers:
        if not inspect.isfunction(oracle.__globals__.get(name)):
            raise Misprint(f"`in:` wants functions that {oracle.__name__} calls, got {name}")
    return tuple(map(body_of, [oracle, *(oracle.__globals__[name] for name in helpers)]))


def ways_of(oracle, table):
    """(mistake, name, Edited) of each way to make each mistake of a table, from top to bottom."""
    bodies = bodies_of(oracle, table.helpers)
    for mistake in table.mistakes:
        for way in mistake.ways:
            name = "; ".join(f"{old} => {new}".strip() for _, old, new in way)
            yield mistake, name.replace("\n", "\\n"), edited(bodies, way)
