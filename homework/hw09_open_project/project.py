"""hw09 · A value path of your own: the template, which runs as it stands.

    python work/hw09_open_project/project.py --smoke          everything once, in a minute
    python work/hw09_open_project/project.py --seeds 0 1 2    the runs that you report

Four things are yours: SENTENCE, the class, its control, and PREDICTED. Write the last one before
the first run; the file prints it beside what came out.
"""

import torch

from minimal.command import command
from minimal.compare.__main__ import main as compare
from minimal.model.plan import Plan, last_third, place
from minimal.model.values import Own, Source
from minimal.variants import PLANS
from minimal.variants import main as count

SENTENCE = "A token offers its own value, stretched by what a table knows of the token."
RIVAL = "standard"  # what your system is when its new part is zero

# Your guess at the lead over RIVAL (its loss minus yours) in nats at the real budget, and how sure
# you are, in per cent. Before the first run. None: you have not guessed yet.
PREDICTED = None
SURE = None


class Mine(Source):
    """V = (1 + E[id]) * own. Yours replaces this one."""

    mark, start = "mix", "zero"

    def __init__(self, **where):
        super().__init__(**where)
        self.x = Own(**where)
        self.bank = str(self.at)

    def rows(self, h, at, tape):
        bank = tape.banks[self.bank]
        e = bank(self.names(tape, len(bank.weight))).to(h.dtype)  # (B, T, G, D)
        return (1 + e) * self.x.rows(h, at, tape)

    def names(self, tape, rows):
        """Which row of the table each position reads: that of its token, (B, T)."""
        return tape.ids

    def word(self):
        return "own·(1+E)"


class Control(Mine):
    """The same parameters, the same arithmetic, the same table, and shuffled ids: at every position
    a token reads another row. All rows are trained, and none knows a token: what the token's
    identity brings must be gone. If this one leads too, it was something else."""

    def names(self, tape, rows):
        position = torch.arange(tape.ids.shape[1], device=tape.ids.device) + tape.start  # (T,)
        return (tape.ids + 7919 * position) % rows  # a prime: rows come round late


PLANS["mine"] = Plan(place(last_third, value=Mine))
PLANS["mine-control"] = Plan(place(last_third, value=Control))


@command("homework/hw09_open_project/project.py", __doc__)
def main(parser, argv):
    parser.add_argument("--smoke", action="store_true", help="the smallest size and three steps")
    parser.add_argument("--seeds", nargs="+", default=["0", "1", "2"])
    parser.add_argument("--tokens", default="512000", help="of a run, at equal parameters")
    parser.add_argument("--corpus", default="auto")
    asked = parser.parse_args(argv)

    # the question
    print(SENTENCE)
    guess = "nothing was predicted" if PREDICTED is None else f"{PREDICTED:+.3f} nats, {SURE} %"
    print(f"predicted, lead over {RIVAL}: {guess}\n")

    # the account: parameters, FLOPs and cache, before anybody speaks of a lead
    size = "smoke" if asked.smoke else "tiny"
    plans = [RIVAL, "mine", "mine-control"]
    count(["--size", size, "--plans", *plans])

    # the runs: equal parameters and tokens; in the trial run equal steps
    budget = ["--match", "parameters", "--budget", asked.tokens]
    if asked.smoke:
        budget = ["--match", "steps", "--budget", "3"]
    where = ["--size", size, "--corpus", asked.corpus]
    compare(["--plans", *plans, "--baseline", RIVAL, "--seeds", *asked.seeds, *budget, *where])


if __name__ == "__main__":
    main()
