"""Which runs of the bypass does a notebook look at? An encoder to look into, a small grid that is
trained on the spot, and the recorded sizes side by side."""

import contextlib
import io

import torch

from course import records, village
from evidence.measured import bypass_seeds
from minimal.compare import intervals
from minimal.data import files
from minimal.tasks import squad

SHAPES = dict(smoke=(2, 32), laptop=(2, 64), gpu=(4, 128))  # layers, width

SETTINGS = dict(
    smoke=dict(level=1, paragraphs=60, test=20, vocab=400, masked=4, spans=6, batch=16),
    laptop=dict(level=1, paragraphs=2000, test=100, vocab=500, masked=100, spans=300, batch=32),
    gpu=dict(level=2),
)


def encoder(profile, seed):
    """A standard encoder that has learned to answer: (its row, the model, its task, the F1 of
    answers by chance)."""
    settings = SETTINGS[profile]
    row, model = bypass_seeds.run("standard", *SHAPES[profile], seed, **settings)
    chosen = {name: settings.get(name, usual) for name, usual in bypass_seeds.SET.items()}
    task, _ = bypass_seeds.village_task(**chosen)
    tree = village.make(chosen["level"], chosen["test"], 0, "test")
    by_chance = squad.score(task.test, village.chance_predictions(tree))["f1"]
    return row, model.eval(), task, by_chance


def same_everywhere(y):
    """The share of the square of y (B, T, H, D) that depends neither on the text nor on the
    position: that of its mean vector."""
    y = y.flatten(0, 1).flatten(1)  # (B T, H D)
    return (y.mean(0).square().sum() / y.square().sum(1).mean()).item()


def live(profile, plans, seeds):
    """The rows of these plans with seeds 0, 1, …, by seed: trained where the cache lacks them."""
    shape, settings = SHAPES[profile], SETTINGS[profile]
    # both decide how sums are rounded
    made_by = torch.__version__.split("+")[0], torch.get_num_threads()
    path = files.runs_folder() / "village" / f"{files.digest(shape, settings, made_by)}.json"
    with contextlib.redirect_stdout(io.StringIO()):  # it reports seconds, which are no result
        bypass_seeds.grid(path, plans, [shape], range(seeds), **settings)
    kept = [row for row in records.read(path)["rows"] if row["seed"] < seeds]
    return sorted(kept, key=lambda row: row["seed"])


def by_size(rows):
    """The bypass against standard in F1, paired by seed: a row for every size that has both."""
    found = []
    for size in bypass_seeds.SIZES:
        of_size = [row for row in rows if row["size"] == size]
        for row in intervals.paired(of_size, "f1", plans=["bypass"]) if of_size else []:
            found.append(row | dict(plan=f"{size}, bypass"))
    return found
