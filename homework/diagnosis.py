"""Which mistake explains an answer? A named one, two named ones at once, or what its numbers show.

A sentence is said only if it is true of every case, and of the other parts where they are known:
one may be chance. Each was written before the
answer came, but for the factor in "times the wanted one", which hidden grading keeps to itself.
"""

import functools
import itertools

import numpy as np

from homework.compare import compare, dtype_of
from homework.relation import relation

PAIRS = 400  # pairs of mistakes that are tried at most


def arrays_agree(exercise, part, seed, case, answer, found):
    like = dtype_of(exercise.cases(part, seed)[case])
    if [x.shape for x in answer] == [x.shape for x in found]:
        known = [in_range(*pair) for pair in zip(answer, found, strict=True)]
        answer, found = [pair[0] for pair in known], [pair[1] for pair in known]
    # asked in float64, an angle or a range may still have been calculated in float32
    return not compare(answer, found, None, like=like, near="float32")


def in_range(got, found):
    """The two, with 0 in both where the answer is not finite and a mistake, which is calculated in
    float64, would not be in the answer's dtype: there they agree. An infinite mistake explains only
    the same infinity; one that runs off to both has overflowed, and explains a NaN, too."""
    if got.dtype.kind != "f" or found.dtype.kind != "f" or np.isfinite(got).all():
        return got, found
    with np.errstate(all="ignore"):
        lost = ~np.isfinite(got) & ~(np.abs(found) < np.finfo(got.dtype).max)
        overflowed = np.isposinf(found).any() and np.isneginf(found).any()
        lost &= ~np.isinf(found) | (got == found) | (overflowed & np.isnan(got))
    return np.where(lost, 0, got).astype(got.dtype), np.where(lost, 0, found)


def explains(exercise, seed, asked, wrong):
    """Does this mistake give what was returned in every case, and something wrong in one of the
    first part? asked: (part, states, answers) of that part, and of all others that are known."""
    mistaken = []
    for at, (part, states, answers) in enumerate(asked):
        for case, (state, answer) in enumerate(zip(states, answers, strict=True)):
            found = exercise.expected(part, seed, case, wrong)
            if state["state"] != "ok" or found is None:
                continue
            if not arrays_agree(exercise, part, seed, case, answer, found):
                return False
            right = exercise.expected(part, seed, case)
            mistaken += [at == 0 and bool(compare(found, right, None))]
    return any(mistaken)


@functools.lru_cache(maxsize=256)
def pairs(wrongs):
    """Two mistakes at once, where they do not touch: as one Wrong each."""
    made = (both(a, b) for a, b in itertools.combinations(wrongs, 2) if a.says != b.says)
    return tuple(itertools.islice(filter(None, made), PAIRS))


def both(a, b):
    """One Wrong of two, or None where one edits the other's text."""
    says = f"two things at once. First: {a.says}. Second: {b.says}"
    oracle = a.oracle.beside(b.oracle)
    return oracle and type(a)(f"{a.name} + {b.name}", a.loses, says, oracle)


def varied(asked):
    """Does an answer hold two different numbers that are no counts or places? One alone, or some
    whole ones, would be explained by many a pair."""
    arrays = [array for _, _, answers in asked for answer in answers for array in answer]
    return len({x for xs in arrays if xs.dtype.kind == "f" for x in np.unique(xs)[:2].tolist()}) > 1


def swapped(exercise, part, seed, states, answers):
    """Are two results right, and in each other's place?"""
    wanted = [exercise.expected(part, seed, case) for case in range(len(answers))]
    count = len(wanted[0])
    if any(len(answer) != count for answer in answers):
        return ""
    for i, j in itertools.combinations(range(count), 2):
        order = list(range(count))
        order[i], order[j] = j, i
        same = all(
            arrays_agree(exercise, part, seed, case, [answer[n] for n in order], right)
            for case, (answer, right) in enumerate(zip(answers, wanted, strict=True))
        )
        if same:
            return f"your results {i + 1} and {j + 1} are right and in each other's place"
    return ""


def factor(exercise, seed, asked):
    """Is every number of one result the same multiple of the wanted one, in every part that is not
    right, and all other results right?"""
    answers, wanted = [], []
    for part, states, given in asked:
        right = [exercise.expected(part, seed, case) for case in range(len(given))]
        if any(state["state"] != "ok" for state in states) or any(
            [x.shape for x in a] != [x.shape for x in w] for a, w in zip(given, right, strict=True)
        ):
            return ""
        if not all(same(given, right, n) for n in range(len(right[0]))):
            answers, wanted = [*answers, *given], [*wanted, *right]
    count = len(wanted[0]) if wanted else 0
    off = [n for n in range(count) if not same(answers, wanted, n)]
    case = exercise.asked(asked[0][0], seed, 0)
    if all_off := multiple(answers, wanted, range(count)):
        return f"every number is {all_off:.4g} times the wanted one{case}"
    if len(off) == 1 < count and (times := multiple(answers, wanted, off)):
        return f"every number of result {off[0] + 1} is {times:.4g} times the wanted one{case}"
    return ""


def same(answers, wanted, result):
    pairs = zip(answers, wanted, strict=True)
    return all(np.allclose(a[result], w[result], rtol=1e-4) for a, w in pairs)


def multiple(answers, wanted, results):
    """The factor between these results and the wanted ones, or 0 where it is not one."""
    ratios = []
    for answer, right in zip(answers, wanted, strict=True):
        got, right = (np.concatenate([np.ravel(xs[n]) for n in results]) for xs in (answer, right))
        if right.dtype.kind != "f" or got.dtype.kind not in "fiu" or not np.isfinite(right).all():
            return 0
        large = np.abs(right) > 1e-3 * np.abs(right).max(initial=0)
        if not np.allclose(got[~large], 0, atol=1e-2 * np.abs(right).max(initial=0)):
            return 0
        ratios.append(got[large].astype("f8") / right[large])
    every = np.concatenate(ratios) if ratios else np.zeros(0)
    if every.size < 6 or not np.isfinite(every).all():
        return 0
    middle = float(np.median(every))
    if abs(middle) < 1e-6 or abs(middle - 1) < 1e-2 or np.abs(every - middle).max() > 2e-3:
        return 0
    return middle


def explained(exercise, part, seed, states, answers, hidden, others=()):
    """What to say of a wrong answer beyond its numbers; '' where nothing explains it."""
    asked = [(part, states, answers), *others]
    if part.accept or any(state["state"] != "ok" for state in states):
        return first(exercise, seed, asked, [] if part.accept else exercise.wrongs)
    return (
        first(exercise, seed, asked, exercise.wrongs)
        or swapped(exercise, part, seed, states, answers)
        or first(exercise, seed, asked, pairs(tuple(exercise.wrongs)) if varied(asked) else ())
        or ("" if hidden else factor(exercise, seed, asked))
        or ("" if hidden else relation(exercise, seed, asked))
    )


def first(exercise, seed, asked, wrongs):
    return next((wrong.says for wrong in wrongs if explains(exercise, seed, asked, wrong)), "")
