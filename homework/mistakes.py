"""What would a learner be told who makes this mistake? A line of a table, tried and proved.

    python -m homework.mistakes nb04 resformer_values 'V[0] => V[1]'   an edit, before it is written
    … 'V[0] => 2 * V[0]' --says "you doubled V[0]"                     and written into the table
    python -m homework.mistakes nb04 resformer_values                  every line of a table
    python -m homework.mistakes nb04                                   every table of a unit
    python -m homework.mistakes hw03 --class graded/unnamed.txt       what a class wrote, as drafts

An edit lies in the oracle, as those of a table do, or in the course's solution: then you read what
a learner is told who writes so. Of an edit of the oracle you read besides what it costs, in how
many cases it shows, which named mistakes it cannot be told apart from, and which answers of the
list of right and wrong ones (tests/homework/blind.txt) it would name.
"""

import inspect
import itertools
import linecache
import math
import os
import re
import textwrap
from collections import deque
from pathlib import Path

import numpy as np
import torch

from homework import diagnosis, edits, marking, turn, unnamed
from homework.marking import PUBLIC, Wrong
from minimal.command import command
from minimal.data.files import write_whole
from minimal.model.layers import norm

SEEDS = (PUBLIC, 1, 987654321)
LIST = marking.HERE.parent / "tests" / "homework" / "blind.txt"
COUNT = itertools.count(1)
WIDTH = 100  # columns of a table
SPACE = re.compile("(?<! ) (?! )")  # where a line may go on below; several spaces are Python's


# ---- answers that are text -----------------------------------------------------------------------


def listed():
    """{"nb04 neutreno": what the list holds of it}; none where there is no list."""
    text = LIST.read_text(encoding="utf-8") if LIST.exists() else ""
    return dict(re.findall(r"^== (.+)\n((?:(?!== ).*\n)*)", text, re.M))


def answers(of):
    """(right bodies, {what a learner wrote: body}) of the list for one exercise."""
    right, wrong = of.split("WRONG\n")
    right = right.strip().split("\n--\n")
    return right, {line: body(right[0], line) for line in wrong.split("\n") if line}


def body(right, line):
    """The body of an answer that is given as a change, a body or an expression."""
    if " =>" not in line:
        line = line if "return " in line else f"return {line}"
        return line.replace("\\n", "\n")
    old, new = line.replace("\\n", "\n").split(" =>", 1)
    assert old in right, line
    return right.replace(old, new.removeprefix(" "))


def written(code):
    """The last function of a learner's cell; tl and triton are those that the course has here."""
    path = f"<cell {next(COUNT)}>"
    linecache.cache[path] = (len(code), None, code.splitlines(keepends=True), path)
    kernels = turn.plain(turn.solution("nb11a", "add")).__globals__
    names = {name: kernels[name] for name in ("tl", "triton")}
    names |= dict(torch=torch, np=np, deque=deque)
    names |= dict(F=torch.nn.functional, itertools=itertools, math=math, norm=norm)
    exec(compile(code, path, "exec"), names)
    return [x for x in names.values() if callable(x) and getattr(x, "__name__", "")][-1]


def function_of(exercise, lines):
    """A learner's function with this body."""
    return written(f"{exercise.head()}\n{textwrap.indent(lines, '    ')}\n")


# ---- what an answer is told ----------------------------------------------------------------------


def answered(exercise, function, seed=PUBLIC):
    """[(part, states, answers)] of a learner's function."""
    code = getattr(turn.plain(function), "__code__", None)
    names = {exercise.name: turn.generous(exercise.runs(function))}
    path = getattr(code, "co_filename", "")
    return [
        (part, *marking.called(names, {}, exercise, part, seed, path)) for part in exercise.parts
    ]


def made(exercise, wrong, seed=PUBLIC):
    """[(part, states, answers)] of a mistake, in the dtypes of a learner's."""
    return [
        (
            part,
            [dict(state="ok")] * len(cases),
            [typed(inputs, exercise.expected(part, seed, n, wrong)) for n, inputs in cases],
        )
        for part in exercise.parts
        for cases in [list(enumerate(exercise.cases(part, seed)))]
    ]


def typed(inputs, found):
    dtype = next((x.dtype for x in inputs if marking.floats(x)), None)
    with np.errstate(over="ignore"):
        return [
            x.astype(dtype) if dtype and x.ndim and marking.floats(x) else x for x in found or []
        ]


def told(exercise, asked, seed=PUBLIC):
    """[(part, state, why)] of an answer to all parts."""
    return [
        (part, *exercise.verdict(part, seed, states, found, others=judged(asked, part)))
        for part, states, found in asked
    ]


def judged(asked, but=None):
    """The parts of an answer that have one right answer, less one."""
    return [one for one in asked if one[0] != but and not one[0].accept]


def lost(exercise, wrong, seed=PUBLIC):
    """(points that a named mistake loses, what it is told)."""
    rows = [row for row in told(exercise, made(exercise, wrong, seed), seed) if row[1] != "ok"]
    return sum(part.points for part, *_ in rows), [why for *_, why in rows]


def same_as(exercise, of):
    """The named mistakes that give an answer's numbers in every case. of: seed -> the answer."""
    left = exercise.wrongs
    for seed in SEEDS:
        asked = judged(of(seed)) or of(seed)
        left = [wrong for wrong in left if explained(exercise, seed, asked, wrong)]
    return left


def explained(exercise, seed, asked, wrong):
    """In whatever part it shows."""
    return any(
        diagnosis.explains(exercise, seed, [one, *judged(asked, one[0])], wrong) for one in asked
    )


# ---- one edit ------------------------------------------------------------------------------------


def told_apart(exercise, wrong):
    """For each part, in how many of its cases (of all seeds) a mistake is no right answer."""
    for n, part in enumerate(exercise.parts):
        shown = [
            bool(exercise.judge(part, seed, case, answer))
            for seed in SEEDS
            for case, answer in enumerate(made(exercise, wrong, seed)[n][2])
        ]
        yield f"{part.name}: it differs from the right answer in {sum(shown)} of {len(shown)} cases"


def tried(unit, exercise, old, new, says=""):
    """What there is to say of one edit, and the lines of a table for it, if it can be one."""
    bodies = exercise.bodies or edits.bodies_of(exercise.oracle)
    try:
        edit = edits.edited(bodies, [(1, old, new)])
    except edits.Misprint as why:
        return of_solution(unit, exercise, bodies, old, new, str(why).removeprefix("line 1: "))
    wrong = Wrong("this edit", 0, "this edit", edit)
    try:
        for part in exercise.parts:
            for case, inputs in enumerate(exercise.cases(part, PUBLIC)):
                if exercise.expected(part, PUBLIC, case, wrong) is None:
                    edit(*[x.astype("f8") if marking.floats(x) else x for x in inputs])
    except Exception as error:
        return [f"the oracle with this edit raises {type(error).__name__}: {error}"], None

    # what it is told, and what it costs
    rows = told(exercise, made(exercise, wrong))
    costs = {seed: lost(exercise, wrong, seed)[0] for seed in SEEDS}
    lines = heard(exercise, rows)
    if set(costs.values()) == {0}:
        return [*lines, "It is the right answer in every case: no mistake."], None
    lines += told_apart(exercise, wrong)
    if len(set(costs.values())) > 1:
        lines += [f"It costs {costs} points by the seed of the cases: they do not always show it."]

    # whom else it would speak to
    same = same_as(exercise, lambda seed: made(exercise, wrong, seed))
    lines += [f"It is told apart from {len(exercise.wrongs) - len(same)} named mistakes."]
    lines += [f"It is NOT told apart from `{other.name}`: {other.says}" for other in same]
    right, mute = whom(unit, exercise, wrong)
    lines += [f"It would name a RIGHT answer:\n{textwrap.indent(x, '    ')}" for x in right]
    lines += [f"It names what had no name on the list: {x}" for x in mute]
    if same or right or len(set(costs.values())) > 1:
        return lines, None
    row = costs[PUBLIC], says or "SENTENCE", f"{old} => {new}".strip().replace("\n", "\\n")
    return [*lines, "", *in_table(row)], row


def in_table(row, wide=1):
    """A mistake with one edit, as a table has it."""
    points, says, edit = row
    lines = []
    for line in (f"{points:>{wide}} | {says}", f"{'':>{wide}}   {edit}"):
        first, *words = SPACE.split(line)
        lines.append(first)
        for word in words:
            fits = len(lines[-1]) + 1 + len(word) <= WIDTH
            lines += [] if fits else [f"{'':>{wide}} |"]
            lines[-1] += f" {word}"
    return lines


def of_solution(unit, exercise, bodies, old, new, why):
    """What a learner is told who writes the course's solution with this edit."""
    code = inspect.getsource(turn.plain(turn.solution(unit.short, exercise.name)))
    if not old or code.count(old) != 1:
        often = f"stands {code.count(old)} times in the solution" if old else "is no edit of it"
        shown = "\n\n".join(textwrap.indent(one.text, "    ") for one in bodies)
        return [f"{why}, and {old!r} {often}. The oracle:", "", shown], None
    asked = answered(exercise, written(code.replace(old, new)))
    said = f"({why}: so this is the solution's; for the table, edit the oracle)"
    return [*heard(exercise, told(exercise, asked)), said], None


def heard(exercise, rows):
    """What a learner hears, part by part."""
    lines = []
    for part, state, why in rows:
        name = next((x for x in exercise.wrongs if state == "wrong" and why == x.says), None)
        how = "right" if state == "ok" else why
        lines += [
            f"{part.name}, {part.points - part.points * (state != 'ok')}/{part.points}: {how}"
        ]
        lines += [f"    (named: `{name.name}`)"] if name else []
    return lines


def whom(unit, exercise, wrong):
    """(right answers, wrong ones without a name) of the list that a mistake would explain."""
    known = listed().get(f"{unit.short} {exercise.name}")
    right, mute = [], []
    for lines in answers(known)[0] if known else []:
        if explained(
            exercise, PUBLIC, judged(answered(exercise, function_of(exercise, lines))), wrong
        ):
            right.append(lines)
    for line, lines in answers(known)[1].items() if known else []:
        try:
            asked = answered(exercise, function_of(exercise, lines))
        except SyntaxError:
            continue
        says = {x.says for x in exercise.wrongs}
        if any(why in says for *_, why in told(exercise, asked)):
            continue
        if judged(asked) and explained(exercise, PUBLIC, judged(asked), wrong):
            mute.append(line)
    return right, mute


def write(exercise, row):
    """Put these lines at the end of an exercise's table, and say where that is."""
    path = Path(inspect.getsourcefile(exercise.oracle))
    text = path.read_text(encoding="utf-8")
    start = text.index(f"\ndef {exercise.name}(")
    table = text.find("\nunit.mistakes(", start)
    if table < 0 or 0 <= text.find("\n@unit.exercise(", start) < table:
        raise ValueError(f"{path.name} has no table below {exercise.name}: unit.mistakes(…)")
    end = text.index('\n""")', table) + 1
    if "\\n" in row[-1] and 'mistakes(r"' not in text[table:end]:
        raise ValueError('\\n wants an r-string: write unit.mistakes(r""" first')
    wide = max(map(len, re.findall(r"^( *\d+) \|", text[table:end], re.M)), default=1)
    added = "".join(f"{line}\n" for line in in_table(row, wide))
    write_whole(path, text[:end] + added + text[end:])
    return f"written: {path.name}, line {text.count(chr(10), 0, end) + 1}"


# ---- a table -------------------------------------------------------------------------------------


def proved(exercise):
    """Named mistakes that do not cost what they say, or are not told their own sentence."""
    for wrong in exercise.wrongs:
        said = []
        for seed in SEEDS:
            points, why = lost(exercise, wrong, seed)
            said += why
            if points != wrong.loses:
                yield f"`{wrong.name}` costs {points} with seed {seed}, and says {wrong.loses}"
                break
        else:
            if not any(why.startswith(wrong.says) for why in said):
                yield f"`{wrong.name}` is never told its sentence, but: {said[0]}"


# ---- what a class wrote --------------------------------------------------------------------------


def of_class(unit, text):
    """Lines about every answer that a class was told no reason for: who gave it, and drafts."""
    seed, kept = unnamed.read(unit, text)
    if not kept:
        yield "Every wrong answer was told a reason."
    for name, parts, learners in kept:
        who = "1 learner was" if learners == 1 else f"{learners} learners were"
        yield f"{name}: {who} told no reason"
        exercise = unit.exercises[name]
        found = unnamed.drafts(exercise, seed, parts)
        if not found:
            yield "    No small change of the oracle gives these numbers."
        for old, new in found:
            shown = f"{old} => {new}".replace("\n", "\\n")
            yield f"    A draft: {shown}"
            yield from (
                f"        {line}" if line else "" for line in tried(unit, exercise, old, new)[0]
            )


@command("homework.mistakes", __doc__)
def main(parser, argv):
    parser.add_argument("unit", help="for example nb04 or hw02")
    parser.add_argument("exercise", nargs="?", help="one of the unit's")
    parser.add_argument("edit", nargs="*", help="'old => new', or old and new apart")
    parser.add_argument("--says", metavar="SENTENCE", help="write the edit into the table")
    parser.add_argument("--class", dest="file", type=Path, help="unnamed.txt of a graded class")
    options = parser.parse_args(argv)
    os.environ["HOMEWORK_ROAD"] = "torch"  # numbers are judged, whatever made them
    unit = turn.unit_of(options.unit)
    if options.exercise and options.exercise not in unit.exercises:
        parser.error(f"wanted one of {', '.join(unit.exercises)}, got {options.exercise}")
    if len(options.edit) > 2 or (len(options.edit) == 1 and "=>" not in options.edit[0]):
        parser.error(f"wanted one edit, 'this text => that text', got {options.edit}")
    if options.file:
        try:
            text = options.file.read_text(encoding="utf-8")
            print(*of_class(unit, text), sep="\n")
        except (OSError, ValueError) as why:
            parser.error(f"{options.file}: {why}")
        return
    if options.edit:
        old, new = edits.edit_of(" => ".join(options.edit))
        exercise = unit.exercises[options.exercise]
        lines, row = tried(unit, exercise, old, new, options.says)
        lines += [write(exercise, row)] if row and options.says else []
        print("\n".join(lines))
        raise SystemExit(0 if row else 1)
    bad = 0
    for name in [options.exercise] if options.exercise else unit.exercises:
        exercise = unit.exercises[name]
        problems = list(proved(exercise))
        bad += len(problems)
        print(f"{name}: {len(exercise.wrongs)} named mistakes, {len(problems) or 'no'} problems")
        print("\n".join(f"    {problem}" for problem in problems), end="\n" * bool(problems))
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
