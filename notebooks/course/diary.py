"""How good are my guesses? What a learner predicted, how far off it was, and a diary of both.

The diary is a file on the learner's machine, beside the runs; nothing sends it anywhere.
"""

import contextlib
import math
import re
from numbers import Real

from minimal.data import files

ROUNDING = 1e-5  # what is left of nothing where numbers are calculated in fp32


def diary():
    """The file that keeps the guesses: a line of JSON each."""
    return files.runs_folder() / "diary.jsonl"


def plain(value):
    """A number out of its tensor, so that it can be printed and kept; what is neither a number nor
    a list is words."""
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):  # a tensor, an array or a number of NumPy
        alone = math.prod(value.shape) == 1
        return value.item() if alone else value.tolist()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return float(value) if isinstance(value, Real) else str(value)


# ---- what a guess means --------------------------------------------------------------------------

NUMBER = re.compile(r"[-+−]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:e[-+]?\d+)?(?: ?/ ?\d+)?")
IN_WORDS = dict(none=0, half=0.5, double=2, twice=2)
IN_WORDS |= {word: n for n, word in enumerate("zero one two three four five six seven".split())}
YES_NO = {True: ("yes", "true", "y", "1"), False: ("no", "false", "n", "0")}
AROUND = set("the a an it is goes one model plan layers".split())  # words around a name


def as_meant(truth, guess):
    """A guess in the form of the answer: "about .3", "30 %" and "3/10" are numbers, yes is True."""
    if isinstance(truth, (list, tuple)):
        several = re.split(r", (?:and )?|; ?| and | > ", guess) if isinstance(guess, str) else guess
        pairs = isinstance(several, (list, tuple)) and len(several) == len(truth)
        return list(map(as_meant, truth, several)) if pairs else guess
    if number(truth) and isinstance(guess, str):
        return number_in(guess, truth)
    if isinstance(truth, bool) or str(truth).lower() in ("yes", "no"):
        word = re.split("[ ,]", f"{guess}".lower())[0].strip(".")
        said = next((value for value, known in YES_NO.items() if word in known), None)
        return guess if said is None else said if isinstance(truth, bool) else YES_NO[said][0]
    return guess


def number_in(guess, truth):
    """The one number in some words, or the words; of 30 % the nearer of 0.3 and 30."""
    words = re.sub(r"(?<=\d)[  '’](?=\d{3}\b)", "", guess.lower().strip()).rstrip(" .")
    if words in IN_WORDS:
        return IN_WORDS[words]
    if logarithm := re.fullmatch(r"(?:log|ln) ?\(?([1-9]\d*)\)?", words):
        return math.log(int(logarithm[1]))
    found = NUMBER.findall(re.sub("minus ", "-", words))
    if len(found) != 1 or re.search("/ ?0+$", found[0]) or re.search("log|ln|root", words):
        return guess
    above, _, below = found[0].replace("−", "-").partition("/")
    thousands = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", above.strip())
    value = float(above.replace(",", "" if thousands else ".")) / float(below or 1)
    if not re.search("%|per ?cent", words):
        return value
    return min(value, value / 100, key=lambda x: off_by(abs(x), abs(truth)))


def off_by(one, other):
    """How far two sizes are from each other: shares as a difference, larger numbers as a ratio."""
    return abs(one - other) if other <= 1 or not one else abs(math.log(one / other))


# ---- in words ------------------------------------------------------------------------------------


def value_in_words(value, form):
    """A value in words: numbers in the given form, several of them with commas."""
    if isinstance(value, (list, tuple)):
        return ", ".join(value_in_words(part, form) for part in value)
    if not number(value):
        return str(value)
    if isinstance(value, float):
        form = form.replace("d", "g")  # the answer is a whole number, and a guess need not be one
    small = form.endswith("0f") and 0 < abs(value) < 1  # 0.22 where whole numbers are printed
    return format(value, ".2g" if small else form)


def distance(truth, guess):
    """How far off a guess is, in words."""
    wanted, got = how_many(truth), how_many(guess)
    if wanted != got:
        return f"not so: wanted {wanted}, got {got}"
    if isinstance(truth, (list, tuple)):
        right = sum(map(same, truth, guess))
        numbers = right < len(truth) and all(map(number, [*truth, *guess]))
        each = ": " + "; ".join(map(distance, truth, guess)) if numbers else ""
        return f"{right} of {len(truth)} right{each}"
    if is_right(truth, guess):
        return "right"
    if not number(truth) or not number(guess):
        return "not so: wanted a number" if number(truth) else "not so"
    ratio = guess / truth if truth and guess else 0
    if ratio >= 2 or 0 < ratio <= 0.5:
        times, way = (ratio, "large") if ratio > 1 else (1 / ratio, "small")
        return f"{times:.3g} times too {way}"
    share = f", {abs(guess - truth) / abs(truth):.0%} of it" if truth else ""
    return f"off by {abs(guess - truth):.3g}{share}"


def how_many(value):
    return f"a list of {len(value)}" if isinstance(value, (list, tuple)) else "one answer"


def is_right(truth, guess):
    """The whole answer; of a list all of it."""
    if how_many(truth) != how_many(guess):
        return False
    if isinstance(truth, (list, tuple)):
        return all(map(same, truth, guess))
    return same(truth, guess)


def same(truth, guess):
    """Equal; words without regard to case, dots and what stands around a name, numbers to one part
    in a hundred."""
    if number(truth) and number(guess):
        return math.isclose(truth, guess, rel_tol=0.01, abs_tol=ROUNDING)
    truth, guess = (re.sub(r"[.`'\"]", "", str(x)).lower().split() for x in (truth, guess))
    return truth == guess or [word for word in guess if word not in AROUND] == truth


def number(value):
    return isinstance(value, Real) and not isinstance(value, bool)


# ---- in a notebook -------------------------------------------------------------------------------


def answer(question, truth, guess=None, form=".3g"):
    """Print what came out; if the learner guessed, how far off, and keep the first guess."""
    truth = plain(truth)
    guess = as_meant(truth, plain(guess))
    line = f"{question}: {value_in_words(truth, form)}"
    if guess is None or (isinstance(guess, (list, tuple)) and all(g is None for g in guess)):
        print(line)
        return
    print(f"{line}. You said {value_in_words(guess, form)}: {distance(truth, guess)}")
    with contextlib.suppress(OSError, files.DataError):  # where nobody may write: no diary
        keep(question, truth, guess)


def keep(question, truth, guess):
    """The first guess at a question; a second one has seen the answer."""
    if not any(entry["question"] == question for entry in guesses()):
        diary().parent.mkdir(parents=True, exist_ok=True)
        files.append_lines(diary(), [dict(question=question, truth=truth, guess=guess)])


def guesses():
    """The first guess at every question, in the order in which they were made."""
    return files.read_lines(diary()) if diary().exists() else []


def calibration():
    """(question, log2 of guess over truth) of every guess at a positive number: 0 is right, 1 twice
    too large, -1 half of it. And how many of the other guesses were right: (right, all)."""
    kept = guesses()
    sized = [g for g in kept if all(number(g[k]) and g[k] > 0 for k in ("truth", "guess"))]
    others = [g for g in kept if g not in sized]
    logs = [(g["question"], math.log2(g["guess"] / g["truth"])) for g in sized]
    right = sum(is_right(g["truth"], g["guess"]) for g in others)
    return logs, (right, len(others))


def picture(logs):
    """The guesses at numbers as a figure, the lowest first: guess over truth, a line each."""
    from course import figures

    logs = sorted(logs, key=lambda guess: guess[1])
    near = sum(abs(log) <= 1 for _, log in logs)
    title = f"{near} of your {len(logs)} numbers lie within a factor of two"
    fig, ax = figures.axes(title, "guess / truth", height=1.5 + 0.26 * len(logs))
    ax.axvspan(0.5, 2, color="#d9d9d9", alpha=0.5)
    ax.plot([2**log for _, log in logs], range(len(logs)), "o", color=figures.INK)
    ax.set_xscale("log", base=2)
    ax.set_yticks(range(len(logs)), [question for question, _ in logs], fontsize=8)
    return fig
