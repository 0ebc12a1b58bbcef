"""Where do the values of attention come from? The package of the course, room by room.

    variants.py   every system of the course, a line each        python -m minimal.variants
    train.py      one loop for every plan                         python -m minimal.train
    generate.py   prefill, then a token at a time                 python -m minimal.generate
    evaluate.py   bits per byte; opening a checkpoint             python -m minimal.evaluate
    analysis.py   what a pass saw: entropy, similarity, spectra
    command.py    what the commands share: options, and one last sentence

    model/        READ FIRST, and in it values.py: the seam. Blocks, attention, cache, init, counts
    kernels/      values named by token ids: the reference and every faster way, Triton's too
    training/     recipes, optimizers, what a run is, checkpoints, devices, teams of processes
    data/         corpora, tokenizer, packing, and files that are written whole or not at all
    encoder/      BERT, its value bypass, word pieces, pretraining and fine-tuning
    tasks/        CORE's 21 tasks, SQuAD, an invented village of questions
    lab/          what the course measures, draws and judges with: evidence, speed, figures

Imports run one way: kernels, data and command.py stand on the ground; training may import data,
model may import kernels; the commands stand on those; tasks and encoder on the commands; lab on
everything; and nothing imports lab. Every room but kernels may import command.py.
tests/setup/test_walls.py holds it.
"""

import os
import sys

# `python -m minimal.…`: Ctrl-C during the seconds of its imports gets one sentence.
if sys.argv[:1] == ["-m"]:
    from minimal.command import wait_for_imports

    wait_for_imports()

# A thread of torch that waits for another spins before it sleeps, by libgomp's default for some
# milliseconds. Beside another busy process it then keeps the processor from the one that it waits
# for. libgomp reads this once, as torch is loaded: `make bench PART=busy` measures it.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
