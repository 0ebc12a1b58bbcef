"""Does every bad input get one sentence and a status, and leave the checkpoint beside it alone?

The rows are the inputs with which the commands that train, prepare and evaluate were once seen to
end in a traceback, to wait for ever, or to succeed without having done anything.
"""

import dataclasses
import os

import numpy as np
import pytest

from minimal import evaluate, generate, train
from minimal.data import __main__ as data
from minimal.model.config import NANOCHAT
from minimal.training.run import Run
from tests.training.toys import CLI, made, trained

COMMANDS = dict(train=train.main, data=data.main, evaluate=evaluate.main, generate=generate.main)


@pytest.fixture(scope="module")
def place(corpus, tmp_path_factory):
    """A folder with a checkpoint `ck`, a file `file`, and inputs that are none."""
    folder = tmp_path_factory.mktemp("place")
    trained(corpus, folder / "ck", steps=3)
    (folder / "file").write_text("a file where a folder is wanted")
    (folder / "short.txt").write_text("too short " * 5)
    (folder / "empty.txt").write_text("")
    os.mkfifo(folder / "pipe")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 900)
    return folder


HUGE = 10**400  # no float is as large

# fmt: off
TRAIN = [
    ("--vocab 100000000",             "vocab: wanted a finite number, at most 1,048,576"),
    ("--vocab 257",                   "vocab 257 is too small"),
    ("--vocab 1.5",                   "argument --vocab: invalid int value"),
    ("--flops inf",                   "flops: wanted a finite number"),
    ("--flops nan",                   "flops must be above 0"),
    ("--flops 1e29",                  "wanted steps or flops, got both, 2 and 1e+29: leave one"),
    ("--steps 0",                     "steps must be above 0"),
    (f"--minutes {HUGE}",             "argument --minutes: wanted a number from 0, got 1000"),
    (f"--steps {HUGE}",               "steps: wanted a finite number, at most 1,000,000,000"),
    ("--steps 99999999999999",        "steps: wanted a finite number, at most"),
    ("--tokens 1e30",                 "argument --tokens: invalid int value"),
    ("--tokens 31",                   "tokens 31 is less than one row"),
    ("--seed 99999999999999999999999", "seed: wanted a whole number from 0 to"),
    ("--seed -1",                     "seed: wanted a whole number from 0 to"),
    ("--lr inf",                      "lr: wanted a finite number"),
    ("--lr nan",                      "lr must be above 0"),
    ("--lr 1e30 --steps 2",           "holds weights that are no numbers"),
    ("--warmup nan",                  "warmup is a share of the run"),
    ("--minutes nan",                 "argument --minutes: wanted a number from 0, got nan"),
    ("--minutes -1",                  "argument --minutes: wanted a number from 0, got -1"),
    ("--minutes 0 --steps 100",       "stopped at step 1 of 100 (time is up)"),
    ("--style bert",                  "would see the token that it is to predict"),
    ("--size bert-4l",                "python -m minimal.encoder.pretrain"),
    ("--size huge",                   "huge"),
    ("--plan bovv",                   "unknown plan 'bovv'"),
    ("--corpus slimpajama:C5",        "unknown corpus 'slimpajama:C5'"),
    ("--packing tight",               "unknown packing 'tight'"),
    ("--device cuda:x",               "device"),
    ("--out /proc/nowhere",           "cannot write /proc/nowhere"),
    ("--out {place}/file",            "cannot write {place}/file"),
    ("--out {place}/ck --seed 7",     "holds another run"),
    ("--corpus {place}/short.txt",    "too short"),
    ("--corpus {place}/empty.txt",    "empty"),
    ("--corpus {place}/binary.txt",   "wanted plain text"),
    ("--zzz",                         "unrecognized arguments: --zzz"),
]
DATA = [
    ("--context 0",                   "argument --context: wanted a whole number from 1, got 0"),
    (f"--context {HUGE}",             "argument --context: wanted a whole number from 1, got 1000"),
    ("--context -1",                  "argument --context: wanted a whole number from 1, got -1"),
    ("--vocab 0",                     "argument --vocab: wanted a whole number from 258"),
    ("--vocab 100000000",             "argument --vocab: wanted a whole number from 258 to"),
    ("--tokens -5",                   "argument --tokens: wanted a whole number from 1, got -5"),
    ("--packing tight",               "unknown packing 'tight'"),
    ("--corpus nonesuch",             "unknown corpus 'nonesuch'"),
    ("--corpus {place}/binary.txt",   "wanted plain text"),
    ("--corpus hub:",                 "wanted hub:NAME, as in hub:roneneldan/TinyStories"),
    ("--corpus hub::text",            "wanted hub:NAME, as in hub:roneneldan/TinyStories"),
    ("--zzz",                         "unrecognized arguments: --zzz"),
]
EVALUATE = [
    ("--window 0",                    "argument --window: wanted a whole number from 1 to"),
    ("--window 99999999999",          "--window: wanted a whole number from 1 to 1,048,576"),
    ("--stride 0",                    "argument --stride: wanted a whole number from 1, got 0"),
    ("--characters 0",                "argument --characters: wanted a whole number from 1, got 0"),
    ("--part all --characters -3",    "argument --characters: wanted a whole number from 1"),
    ("--window 8 --stride 9",         "stride 9 with window 8"),
    ("--domains nonesuch",            "unknown corpus 'nonesuch'"),
    ("--domains {place}/short.txt",   "say --part all"),
    ("--checkpoint {place}/file",     "is damaged or no checkpoint"),
    ("--checkpoint {place}/nowhere",  "no checkpoint at"),
    ("--device gpu",                  "there is no device 'gpu'"),
    ("--domains {place}/short.txt --part all --json /proc/x.json", "cannot write /proc/x.json"),
    ("--domains {place}/short.txt --part all --json {place}/file/x", "cannot write {place}/file/x"),
    ("--part some",                   "invalid choice: 'some'"),
]
GENERATE = [
    ("{place}/nowhere hello",         "no checkpoint at {place}/nowhere"),
    ("{place}/file hello",            "{place}/file is damaged or no checkpoint"),
    ("{place}/pipe hello",            "wanted a checkpoint, got {place}/pipe, which is no file"),
    ("{place}/ck b\udcffd",           r"wanted a text in UTF-8, got 'b\udcffd': convert it"),
    ("{place}/ck hello --tokens 999999999999", "wanted a whole number from 0 to 1,048,576, got 9"),
    ("{place}/ck hello --top_p 2",    "argument --top_p: wanted a number above 0 to 1, got 2"),
]
# fmt: on


def words_of(name, options, place, corpus):
    """The command's arguments: what it needs anyway, then the bad ones."""
    given = dict(
        train=["--corpus", corpus, "--quiet", "--steps", "2", *CLI],
        data=["--corpus", corpus, "--vocab", "300"],
        evaluate=["--checkpoint", str(place / "ck"), "--device", "cpu"],
        generate=["--tokens", "2"],
    )
    return given[name] + options.format(place=place).split()


@pytest.mark.parametrize(
    "name, options, told",
    [
        (name, options, told)
        for name, rows in dict(train=TRAIN, data=DATA, evaluate=EVALUATE, generate=GENERATE).items()
        for options, told in rows
    ],
)
def test_bad_input_is_one_sentence_and_a_status(name, options, told, place, corpus, capsys):
    before = (place / "ck" / "last.safetensors").read_bytes()
    with pytest.raises(SystemExit) as ended:
        COMMANDS[name](words_of(name, options, place, corpus))
    said = capsys.readouterr().err if ended.value.code == 2 else str(ended.value)
    assert said.startswith(f"{name}: ") and told.format(place=place) in said
    assert "\n" not in said.strip() and "Errno" not in said and " came" not in said
    assert (place / "ck" / "last.safetensors").read_bytes() == before


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, capsys):
    with pytest.raises(SystemExit) as ended:
        COMMANDS[name](["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and said.startswith(f"usage: python -m minimal.{name}")
    assert f"python -m minimal.{name} " in said.partition("\n")[2]


@pytest.mark.parametrize(
    "name, value",
    [("WORLD_SIZE", "0"), ("WORLD_SIZE", "two"), ("RANK", "x"), ("RANK", "-1"), ("RANK", "1")],
)
def test_an_environment_that_no_torchrun_made_is_told(name, value, corpus, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=f"train: the environment's {name}: .* got '{value}'; "):
        train.main(["--corpus", corpus, "--quiet", *CLI])


ADAMW = dict(algorithm="adamw", lr=1e-3)
ROWS = [  # of overrides
    (dict(algorithm="AdamW"), "algorithm in a recipe's row: wanted adamw or muon, got 'AdamW'"),
    (dict(algorithm=["muon"]), r"algorithm .*: wanted adamw or muon, got \['muon'\]"),
    (ADAMW, r"betas .*: wanted two numbers from 0 .*, for adamw, got \(None, 0.9\)"),
    (ADAMW | dict(betas=(0.9, 1.0)), r"betas .*: wanted two numbers .*, got \(0.9, 1.0\)"),
    (ADAMW | dict(betas=0.9), "betas .*: wanted two numbers .*, got 0.9"),
    (dict(betas=(None, 2)), "betas .*: wanted two numbers below 1 or None, for muon, got .None, 2"),
    (dict(lr="fast"), "lr in a recipe's row: wanted a number from 0, got 'fast'"),
    (dict(lr=HUGE), "lr in a recipe's row: wanted a number from 0, got 1000"),
    (dict(decay=-1), "decay in a recipe's row: wanted a number from 0, got -1"),
    (dict(eps=float("nan")), "eps in a recipe's row: wanted a number from 0, got nan"),
    (dict(lr_by="batch"), "lr_by .*: wanted some of batch, width, size, got 'batch'"),
    (dict(decay_by=["depth"]), "decay_by .*: wanted some of batch, width, size, got .'depth'"),
    (dict(cautious=1), "cautious in a recipe's row: wanted True or False, got 1"),
]


@pytest.mark.parametrize(
    "wrong, told",
    [
        (dict(steps=2.5), "steps: wanted a whole number, got 2.5"),
        (dict(steps=True), "steps: wanted a whole number, got True"),
        (dict(plan=None), "plan: wanted a name of minimal.variants or a Plan, got None"),
        (dict(lr="fast"), "lr: wanted a number, got 'fast'"),
        (dict(changes=[1]), "changes: wanted dict, got"),
        (dict(compile="yes"), "compile: wanted True or False, got 'yes'"),
        (dict(lr=HUGE), "lr: wanted a finite number, at most 1.79.*, got 1000"),
        (dict(warmup=HUGE), "warmup is a share of the run: wanted 0 or more and below 1, got 1000"),
        (dict(flops=float("inf")), "flops: wanted a finite number"),
        (dict(steps=7, flops=2e7), "wanted steps or flops, got both, 7 and 2e.07: leave one out"),
        (dict(overrides=dict(matrixx=dict(lr=1))), "no role 'matrixx': choose one of alpha, beta"),
        (dict(overrides=dict(matrix=dict(lrr=1))), "row has no 'lrr': choose one of algorithm, lr"),
        *((dict(overrides=dict(matrix=row)), told) for row, told in ROWS),
        (dict(overrides=dict(matrix=0.1)), "overrides: wanted fields of a role, .*, got 0.1"),
        (
            dict(overrides=dict(matrix=dict(lr=np.float32(0.1)))),
            "wanted for lr what JSON can hold, got",
        ),
        (
            dict(changes=dict(layers=np.int64(3))),
            "changes: wanted for layers what JSON can",
        ),
        (dict(changes=dict(style=NANOCHAT)), "for style what JSON can hold, got Style.*asdict"),
    ],
)
def test_a_run_of_wrong_kinds_is_refused_where_it_is_made(wrong, told):
    with pytest.raises(ValueError, match=told):
        Run(**wrong)


def test_a_field_that_no_size_has_is_refused_before_a_text_is_looked_for():
    with pytest.raises(ValueError, match="a size has no 'layrs': choose one of layers, width"):
        train(Run(corpus="nowhere.txt", changes=dict(layrs=3)))


def test_a_style_as_its_fields_and_a_recipe_that_is_not_known_here_are_let_through(corpus):
    style = dataclasses.asdict(NANOCHAT)
    assert made(corpus, changes=dict(style=style, layers=1)).model.config.style == NANOCHAT
    assert Run(recipe="gone", overrides=dict(matrix=dict(lr=0.1))).recipe == "gone"
