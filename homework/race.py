"""How fast is your histogram decode? `python -m homework.race NAME` measures it, and keeps a board.

The stretch of hw08: `racing_histogram_decode(scores, ids, table, gain)` in your file, or else your
`histogram_decode`, against the course's, in one run, turn by turn. What counts is the ratio of the
two times, so that a slow machine is no disadvantage. Only right answers race. The board is a file
beside your runs, and nothing sends it anywhere.
"""

import statistics
import time
from datetime import date

import torch

from homework import marking, runner
from homework.turn import solution
from minimal.bench.timing import zipf
from minimal.command import command, number
from minimal.data import files

ROUNDS = 7
HEADS, WIDTH = 6, 128
NAMES = ("racing_histogram_decode", "histogram_decode")  # the first that is there races
NO_PLACE = "no place on the board"
ALIKE = ("keys", "vocabulary", "threads")  # races that differ in one of these are not compared


def board():
    return files.runs_folder() / "race_hw08.jsonl"


def inputs(keys, vocabulary, seed=0):
    """One decode step: scores (H, S), ids (S,) as often as in text, a table (V, H, E), a gain."""
    chance = torch.Generator().manual_seed(seed)
    scores = torch.randn(HEADS, keys, generator=chance)
    ids = zipf(vocabulary, keys, chance).long()
    return scores, ids, torch.randn(vocabulary, HEADS, WIDTH, generator=chance), 0.7


def learners(path):
    """The learner's function, by the name that is there; what stops it is said as by the tests."""
    names, problems = runner.load(runner.text_of(path.read_bytes()), str(path))
    name = next((name for name in NAMES if names.get(name) or name in problems), None)
    if name is None:
        raise SystemExit(f"wanted {' or '.join(NAMES)} in {path}")
    refuse = lambda state: SystemExit(f"{NO_PLACE}: {name}: {marking.in_words(state)}")
    if name in problems:
        raise refuse(problems[name])

    def mine(*given):
        try:
            return names[name](*given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise refuse(runner.failure(error, str(path))) from None

    return mine


def differs(found, wanted):
    """Why an answer may not race; '' if it may."""
    if not isinstance(found, tuple) or len(found) != len(wanted):
        return "wanted three results: tokens, masses, out"
    for name, a, b in zip(("tokens", "masses", "out"), found, wanted, strict=True):
        if not torch.is_tensor(a):
            return f"{name}: wanted a tensor, got {type(a).__name__}"
        if a.shape != b.shape:
            return f"{name}: wanted shape {tuple(b.shape)}, got {tuple(a.shape)}"
        if not torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-5):
            return f"{name}: other numbers than the reference"
    return ""


def fresh(given):
    """Inputs that a function may write to: the next one gets its own."""
    return [x.clone() if torch.is_tensor(x) else x for x in given]


def seconds(function, given):
    given = fresh(given)
    start = time.perf_counter()
    function(*given)
    return time.perf_counter() - start


def race(mine, reference, given, rounds=ROUNDS):
    """How many times as fast as the reference: the median over rounds in which both take a turn."""
    why = differs(mine(*fresh(given)), reference(*fresh(given)))  # warms both, too
    if why:
        raise SystemExit(f"{NO_PLACE}: {why}")
    ratios = [seconds(reference, given) / seconds(mine, given) for _ in range(rounds)]
    return statistics.median(ratios)


@command("homework.race", __doc__)
def main(parser, argv):
    size = number(int, least=1, most=2**24)
    parser.add_argument("name", help="under which the board shows you")
    parser.add_argument("--keys", type=size, default=65_536, help="length of the history")
    parser.add_argument("--vocabulary", type=size, default=16_384)
    asked = parser.parse_args(argv)
    mine = learners(marking.find("hw08").path)
    given = inputs(asked.keys, asked.vocabulary)
    try:
        reference = solution("hw08", "histogram_decode")
    except FileNotFoundError:
        raise SystemExit("the course's solutions are withheld here, and one is the rival") from None
    times = race(mine, reference, given)
    row = dict(name=asked.name, times=round(times, 3), keys=asked.keys, day=str(date.today()))
    row |= dict(vocabulary=asked.vocabulary, threads=torch.get_num_threads())
    files.append_lines(board(), [row])
    rows = [old for old in files.read_lines(board()) if row.keys() <= old.keys()]
    same = [old for old in rows if all(old[name] == row[name] for name in ALIKE)]
    print(f"{times:.2f} times as fast as the course's histogram_decode, in this run")
    for place, old in enumerate(sorted(same, key=lambda old: -old["times"])[:10], 1):
        print(f"{place:2}. {old['times']:5.2f}  {old['name']}  {old['day']}")


if __name__ == "__main__":
    main()
