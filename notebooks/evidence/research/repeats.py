"""Does a recorded row come again? One recorded run, trained anew beside its record, and the noise
floor: how far such repetitions lie from what they repeat.

    python -m evidence.research --repeat thirteen_rows standard 1

The record stays as it is; the repetition is appended to notebooks/evidence/repeats/<grid>.json.
"""

import math

from course import records
from evidence.research import pairs
from evidence.research.grids import GRIDS
from minimal.compare import ledger
from minimal.compare.runs import asked_of, in_folder, row_of, run_key, same
from minimal.data import corpora, files, results
from minimal.train import Trainer


def repeat(name, plan, seed, number=None, minutes=None, command=""):
    """Train a recorded run of grid `name` again, append it to the repetitions, and return its row.
    `number` (from 1) chooses where a plan has several runs with that seed. A repetition that was
    stopped goes on."""
    run = chosen(name, plan, seed, number)
    recorded, corpus = recorded_row(name, run)
    here = corpora.find(run.corpus, run.tokens)
    if here.fingerprint != corpus["fingerprint"]:
        raise ValueError(
            f"wanted corpus {corpus['name']} ({corpus['fingerprint']}), on which {name} is "
            f"recorded; got {here.name} ({here.fingerprint}): take the text of the record"
        )
    folder = files.runs_folder() / "repeated" / f"{run.plan}-{run_key(run, here.fingerprint)}"
    with files.locked(folder):
        result = Trainer(in_folder(run, folder), quiet=True).fit(minutes)
        row = row_of(run, result) | ledger.numerical_state()
        row |= dict(recorded=recorded["loss"], recorded_commit=recorded.get("commit"))
        row["difference"] = round(row["loss"] - recorded["loss"], 5)
        head = results.header(f"Recorded runs of {name}, trained again", command, result["corpus"])
        results.append(folder_of_repeats() / f"{name}.json", row, head)
        files.remove_folder(folder)
    return row


def folder_of_repeats():
    return records.EVIDENCE / "repeats"


def chosen(name, plan, seed, number=None):
    """The run of a grid with this plan and seed, the `number`th of them."""
    runs = [run for run in GRIDS[name].runs() if (run.plan, run.seed) == (plan, seed)]
    if not runs:
        plans = dict.fromkeys(run.plan for run in GRIDS[name].runs())
        raise ValueError(
            f"{name} has no run of {plan} with seed {seed}: it has {', '.join(plans)} with seeds "
            f"{', '.join(map(str, GRIDS[name].seeds))}"
        )
    if number is None and len(runs) > 1:
        several = "; ".join(f"{i} {asked_of(run)}" for i, run in enumerate(runs, 1))
        raise ValueError(
            f"{name} has {len(runs)} runs of {plan} with seed {seed}: name one by a number after "
            f"the seed ({several})"
        )
    if not 1 <= (number or 1) <= len(runs):
        raise ValueError(f"wanted a number from 1 to {len(runs)}, got {number}")
    return runs[(number or 1) - 1]


def recorded_row(name, run):
    """(the row that a grid's file has of this run, the corpus of the file)."""
    path = records.EVIDENCE / f"{name}.json"
    rows = [row for row in ledger.rows_of(path) if same(row, run)]
    if not rows:
        raise ValueError(
            f"{path.name} has no row of {run.plan} with seed {run.seed} yet: "
            f"python -m evidence.research --record {name} trains it"
        )
    return rows[0], records.read(path)["corpus"]


def noise_floor():
    """Of all repetitions on record: how many, the root mean square of their differences from what
    they repeat, and the largest; None where nothing was repeated yet."""
    paths = sorted(folder_of_repeats().glob("*.json"))
    apart = [row["difference"] for path in paths for row in ledger.rows_of(path)]
    return floor_of(apart) if apart else None


def twin_floor(grid="noise_code", twin="ten_seeds_code"):
    """The same of a whole grid that was recorded twice, with its sums in two orders: every row of
    `grid` beside its twin. None until all are there."""
    rows = pairs.whole_rows(grid) if pairs.whole(grid) else []
    recorded = ledger.rows_of(records.EVIDENCE / f"{twin}.json")
    losses = {key_of(row): row["loss"] for row in recorded}
    apart = [row["loss"] - losses[key_of(row)] for row in rows if key_of(row) in losses]
    if not apart or len(apart) < len(rows):
        return None
    return floor_of(apart)


def key_of(row):
    """Two rows of one run have it in common."""
    return row["plan"], row["size"], row["seed"], str(row["asked"])


def floor_of(differences):
    mean_square = math.fsum(value**2 for value in differences) / len(differences)
    largest = max(map(abs, differences))
    return dict(n=len(differences), rms=math.sqrt(mean_square), largest=largest)


def sentences(row, floor):
    """A repetition beside its record, and the noise floor as it was before."""
    commit = row["recorded_commit"] or "unknown, older than rows that name it"
    made_by = f"commit {row['commit']}, torch {row['torch']}, {row['machine']}"
    noise = "not measured yet: this was the first repetition on record"
    if floor:
        times = "one earlier repetition" if floor["n"] == 1 else f"{floor['n']} earlier repetitions"
        noise = f"{floor['rms']:.5f} (root mean square of {times}; largest {floor['largest']:.5f})"
    twins = twin_floor()
    other = "not measured yet: the grid noise_code is not whole"
    if twins:
        other = (
            f"{twins['rms']:.5f} (root mean square of {twins['n']} runs recorded with sums in "
            f"another order; largest {twins['largest']:.5f})"
        )
    return "\n".join(
        [
            f"{row['plan']}, seed {row['seed']}: held-out nats a token",
            f"recorded    {row['recorded']:.5f}   commit {commit}",
            f"repeated    {row['loss']:.5f}   {made_by}",
            f"difference {row['difference']:+.5f}",
            f"noise       {noise}",
            f"rounding    {other}",
        ]
    )
