"""Do two commits give the same numbers? A fingerprint of the numbers that a commit trains.

    python -m evidence.measured.states                 of this commit, on this machine
    python -m evidence.measured.states a869ae6 5716ca1   of these

A run of another commit, another torch or another processor may differ in the third digit. So rows
name all three, and only rows of one *state* of the numbers are compared with each other. A state is
the losses of a few plans over their first steps, to the last bit: commits that share them share a
state. It is not a proof that they agree for 500 steps (`lab.record --again` trains one anew); that
they differ it does prove. What was found is kept in notebooks/evidence/measured/states.json.
"""

import json
import os
import subprocess
import sys
import tempfile

from course import records
from course.records import CHECKOUT
from minimal.command import command
from minimal.compare import ledger
from minimal.data import results
from minimal.data.files import digest, unpack

PLANS = ("standard", "resformer", "denseformer", "bov", "modded", "dva")
STEPS = 6
HELD_EQUAL = ("commit", "torch", "machine")  # what decides the last digits, beside the run

# Runs in the tree of the commit that is asked for, so it uses only what all of them have; the
# oldest had no rooms, and no rows that name their machine.
PROGRAM = """
import json, platform, sys, tempfile, torch
from minimal.train import Trainer
try:
    from minimal.training.run import Run
except ImportError:
    from minimal.train import Run
try:
    from minimal.compare.ledger import numerical_state
except ImportError:  # commits before that room name their machine as here

    def numerical_state():
        kernels = torch.backends.cpu.get_cpu_capability()
        machine = f"{platform.machine()} {kernels}, {torch.get_num_threads()} threads"
        return dict(commit=None, torch=torch.__version__, machine=machine)

found, how = {}, dict(size="tiny", corpus="stdlib")
if torch.cuda.is_available() and hasattr(Run, "graph"):
    how["graph"] = True  # as grids are recorded there
for plan in sys.argv[2:]:
    steps = int(sys.argv[1])
    out, how = tempfile.mkdtemp(), how | dict(evaluate=steps, rows=8)
    result = Trainer(Run(plan, steps=steps, out=out, **how), quiet=True).fit()
    found[plan] = [*result["losses"], result["valid"][-1]["loss"]]
print(json.dumps([found, result["corpus"], numerical_state()]))
"""


# ---- the fingerprint of a commit -----------------------------------------------------------------


def measured_state(commit, plans=PLANS, steps=STEPS):
    """(row, corpus): what the code of a commit makes of the first steps of these plans."""
    ask = ["git", "archive", commit, "minimal"]
    packed = subprocess.run(ask, cwd=CHECKOUT, capture_output=True)
    if packed.returncode:
        raise ValueError(f"wanted a commit of this checkout, got {commit}: git log lists them")
    with tempfile.TemporaryDirectory() as tree:
        unpack(packed.stdout, tree)
        one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # as grids are recorded
        where = dict(PYTHONPATH=tree, TMPDIR=tree)
        words = [sys.executable, "-c", PROGRAM, str(steps), *plans]
        done = subprocess.run(
            words, cwd=tree, env=os.environ | one | where, capture_output=True, text=True
        )
    if done.returncode:
        raise ValueError(f"the code of {commit} does not train here: {done.stderr.strip()[-300:]}")
    losses, corpus, state = json.loads(done.stdout.splitlines()[-1])
    row = dict(state=fingerprint(losses), plan=", ".join(plans), steps=steps)
    state["machine"] = ledger.of_maker(state["machine"])  # older code did not name the maker
    return row | state | dict(commit=commit, losses=losses), corpus


def fingerprint(losses):
    """A short name for numbers that agree to the last bit."""
    return digest({plan: [value.hex() for value in some] for plan, some in losses.items()})[:8]


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.measured.states", __doc__)
def main(parser, argv):
    parser.add_argument("commits", nargs="*", help="default: the commit of this checkout")
    asked = parser.parse_args(argv)
    words = " ".join(["python -m evidence.measured.states", *argv])
    path = records.MEASURED / "states.json"
    what = f"Fingerprints of numbers: {STEPS} steps of {len(PLANS)} plans by the code of a commit"
    for commit in asked.commits or [results.commit()]:
        if commit is None:
            raise ValueError("wanted a commit, and there is no git here: record in a clone")
        row, corpus = measured_state(commit)
        same = [old for old in ledger.rows_of(path) if alike(old, row)]
        if not same:
            results.append(path, row, results.header(what, words, corpus))
        print(f"{commit}: state {row['state']} (torch {row['torch']}, {row['machine']})")


def alike(one, other):
    return all(one[name] == other[name] for name in HELD_EQUAL)


if __name__ == "__main__":
    main()
