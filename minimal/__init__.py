"""Where do the values of attention come from? A GPT of which every layer may answer differently.

    from minimal import Plan, Run, build, generate, load, place, train, PLANS

    build("bov", "tiny")                 a model; PLANS names the systems
    Plan(place(value=MySource))          a system of your own
    train(Run("bov", out="runs/x"))      one loop for every plan: a CPU, one GPU or several
    model, tok = load("runs/x")          what a run's folder holds
    generate(model, ids, tokens=60)      prefill, then a token at a time
    gather_attention(q, k, table, ids)   attention whose values are rows named by token ids

READ FIRST: gpt.py, a whole GPT on one screen, with the one line that says where its values come
from. Then, room by room:

    variants.py   every system, a line each                       python -m minimal.variants
    train.py      one loop for every plan                         python -m minimal.train
    generate.py   prefill, then a token at a time                 python -m minimal.generate
    evaluate.py   bits per byte; opening a checkpoint             python -m minimal.evaluate
    analysis.py   what a pass saw: entropy, similarity, spectra
    command.py    what the commands share: options, and one last sentence
    callable.py   how a module is called as the function of its name

    model/        and in it values.py: the seam. Blocks, attention, cache, init, counts
    kernels/      values named by token ids: the reference and every faster way, Triton's too
    training/     recipes, optimizers, what a run is, checkpoints, devices, teams of processes
    data/         corpora, tokenizer, packing, and files that are written whole or not at all
    encoder/      BERT, its value bypass, word pieces, pretraining and fine-tuning
    tasks/        CORE's 21 tasks, SQuAD
    compare/      your plans, matched and paired by seed          python -m minimal.compare
    bench/        how fast this machine is, and the share used    python -m minimal.bench

Imports run one way: kernels, data and command.py stand on the ground; training may import data,
model may import kernels; the commands stand on those; tasks, encoder, compare and bench on the
commands. tests/setup/test_walls.py holds it. Importing this package loads nothing else.
"""

import importlib
import sys

# `python -m minimal.…`: Ctrl-C during the seconds of its imports gets one sentence.
if sys.argv[:1] == ["-m"]:
    from minimal.command import wait_for_imports

    wait_for_imports()

__version__ = "0.2.0"

HOMES = dict(
    build="variants",
    load="train",
    generate="generate",
    train="train",
    Run="training.run",
    Plan="model.plan",
    place="model.plan",
    PLANS="variants",
    gather_attention="kernels.gather",
)

__all__ = [*HOMES, "__version__"]


def __getattr__(name):
    """A public name, loaded when it is first asked for. `train` and `generate` are modules, too,
    the commands of those names, and may be called."""
    if name not in HOMES:
        raise AttributeError(f"minimal has {', '.join(__all__)} and its modules; got {name!r}")
    home = importlib.import_module(f"minimal.{HOMES[name]}")
    return home if name == HOMES[name] else getattr(home, name)


def __dir__():
    return __all__
