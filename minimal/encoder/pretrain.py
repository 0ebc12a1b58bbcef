"""How does an encoder learn to read before anyone asks it something? Masked language modelling:
short rows first, then long ones.

python -m minimal.encoder.pretrain --size bert-4l --vocab 8000 --stages 128x48x6500,512x48x1500 \\
    --corpus auto --out runs/mlm
"""

import json
from bisect import bisect_right
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path

import torch
import torch.nn.functional as F

from minimal.command import command, number
from minimal.data import corpora
from minimal.data.files import write_whole
from minimal.data.packing import pack, permutation
from minimal.encoder import bert, bypass, wordpiece
from minimal.model.config import Config
from minimal.model.init import generator
from minimal.training import checkpoint
from minimal.training.device import compute_dtype, device
from minimal.training.loop import Loop
from minimal.training.optim import Optimizer
from minimal.training.recipes import RECIPES

RECIPE = replace(RECIPES["bert"], clip=1.0)  # BERT's public code clips; the report does not say

SEED = number(int, least=0, most=2**32 - 1)  # what NumPy's generator takes


# ---- the loop -----------------------------------------------------------------------------------
def places(count, batch, seed, step):
    """Which of `count` rows step number `step` reads: every row once an epoch, in an order that
    (seed, epoch) gives."""
    rows = []
    for at in range(step * batch, (step + 1) * batch):
        epoch, place = divmod(at, count)
        rows.append(int(permutation(count, seed, epoch)[place]))
    return torch.tensor(rows)  # (B,)


class EncoderLoop(Loop):
    """The loop of minimal.training with a loss given as loss_at(step), and the bypass's ramp."""

    def __init__(self, model, optimizer, loss_at, steps, seed, ramp, out, about, save):
        super().__init__(model, optimizer, steps, out, dict(save=save))
        self.loss_at, self.seed, self.ramp, self.about = loss_at, seed, ramp, about

    def step(self, step):
        # dropout, too, is a function of (seed, step)
        torch.manual_seed(generator(self.seed, f"dropout {step}").initial_seed())
        bypass.set_ramp(self.model, self.ramp, step / self.steps)
        loss = self.loss_at(step)
        loss.backward()
        self.optimizer.step(step)
        return loss.detach()

    def identity(self):
        return self.about


def fit(
    model,
    loss_at,
    steps,
    *,
    seed=0,
    recipe=RECIPE,
    lr=None,
    ramp=None,
    out=None,
    identity=None,
    save=500,
):
    """Train on loss_at(step), a pure function of the step's number, so that a run which was stopped
    goes on exactly. -> the losses. `ramp` moves the bypass on the way (bypass.RAMPS); None leaves
    it as the last run left it."""
    # these recipes do not look at the number of tokens in a batch
    optimizer = Optimizer(model, recipe, batch_tokens=1, steps=steps, lr=lr)
    loop = EncoderLoop(model, optimizer, loss_at, steps, seed, ramp, out, identity or {}, save)
    loop.fit()
    bypass.set_ramp(model, ramp, 1.0)
    return [row["loss"] for row in loop.history]


# ---- masked language modelling ------------------------------------------------------------------
@dataclass(frozen=True)
class Stage:
    """Rows of `length` pieces, `batch` of them a step."""

    length: int
    batch: int
    steps: int


# the bypass report: 399M + 369M tokens seen, of 0.6B
REPORT = (Stage(128, 48, 65_000), Stage(512, 48, 15_000))

SHORTEST_SEQUENCE = 4  # [CLS], a piece and the one after it, [SEP]


def stages_of(text):
    """128x48x65000,512x48x15000 -> stages."""
    try:
        stages = tuple(Stage(*map(int, part.split("x"))) for part in text.split(","))
    except (ValueError, TypeError):
        stages = ()
    whole = all(s.length >= SHORTEST_SEQUENCE and s.batch > 0 and s.steps > 0 for s in stages)
    if not stages or not whole:
        raise ValueError(
            f"stages {text!r}: wanted LENGTHxBATCHxSTEPS with commas between, at least "
            f"{SHORTEST_SEQUENCE}x1x1, as in 128x48x65000,512x48x15000"
        )
    return stages


def framed(rows, pieces):
    """[CLS] … [SEP] around rows of running text (N, n) -> (N, n + 2)."""
    rows = torch.as_tensor(rows).long()
    rows = F.pad(rows, (1, 0), value=pieces.cls)
    return F.pad(rows, (0, 1), value=pieces.sep)


def packed_rows(corpus, pieces, length):
    """Running text in rows that, framed, have this length. (pack's rows hold one piece more.)"""
    return pack(corpus, pieces, length - 3)


def masked_loss(model, pieces, ids, seed, step, segments=None, lengths=None):
    """Cross entropy in nats where a piece was to be guessed; the head runs over those places
    only."""
    inputs, targets = wordpiece.mask(ids, pieces, seed, step)  # (B, T) each
    inputs, targets = inputs.to(model.device), targets.to(model.device)
    x = model.hidden(inputs, model.tape(inputs, lengths=lengths), segments)  # (B, T, C)
    chosen = targets != wordpiece.IGNORE
    if not chosen.any():  # a short row may hide nothing: no mean, and nothing to learn
        return 0 * x.sum()
    return F.cross_entropy(model.head(x[chosen]), targets[chosen])


def pretrain(model, corpus, pieces, stages=REPORT, seed=0, lr=None, **how):
    """The stages one after the other under one schedule of warm-up and decay. -> losses"""
    rows = {stage.length: packed_rows(corpus, pieces, stage.length).train for stage in stages}
    ends = list(accumulate(stage.steps for stage in stages))

    def loss_at(step):
        stage = stages[bisect_right(ends, step)]
        train = rows[stage.length]
        which = places(len(train), stage.batch, seed, step)
        ids = framed(train[which].astype("int64"), pieces)  # (B, length)
        return masked_loss(model, pieces, ids, seed, step)

    return fit(model, loss_at, ends[-1], seed=seed, lr=lr, **how)


@torch.no_grad()
def masked_score(model, corpus, pieces, length, rows=64):
    """Held-out loss in nats a masked piece, and the share guessed right; always the same rows and
    masks."""
    # Rows that are spread over the held-out text.
    held = packed_rows(corpus, pieces, length).held
    rows = min(rows, len(held))
    spread = [i * len(held) // rows for i in range(rows)]
    ids = framed(held[spread].astype("int64"), pieces)  # (rows, length)

    # Scores where a piece was masked.
    model.eval()
    inputs, targets = wordpiece.mask(ids, pieces, 0, 0)
    chosen = targets != wordpiece.IGNORE
    scores = []
    for part, hidden in zip(inputs.split(16), chosen.split(16)):
        scores.append(model(part.to(model.device)).cpu()[hidden])  # (some, V)
    scores, targets = torch.cat(scores), targets[chosen]  # (n, V), (n,)
    return dict(
        loss=F.cross_entropy(scores, targets).item(),
        right=(scores.argmax(-1) == targets).float().mean().item(),
        guesses=int(chosen.sum()),
    )


# ---- what is kept -------------------------------------------------------------------------------
def identity(plan, config, pieces, **more):
    """What a folder of weights must say about itself, so that it can be read without being told."""
    return dict(plan=plan, config=config.stored(), pieces=pieces.fingerprint, **more)


def restore(folder):
    """(encoder, pieces) of a folder that this command wrote."""
    tensors, state = checkpoint.load(folder)
    about = state["identity"]
    absent = [name for name in ("plan", "config", "pieces", "ramp") if name not in about]
    if absent:
        raise checkpoint.CheckpointError(
            f"{folder} holds no encoder: its checkpoint does not say {', '.join(absent)}; "
            "wanted a folder that python -m minimal.encoder.pretrain --out wrote"
        )
    try:
        model = bert.build(about["plan"], Config(**about["config"]))
        checkpoint.check_fractions(tensors)
        checkpoint.load_weights(model, checkpoint.part(tensors, "model/"))
    except (TypeError, ValueError) as error:
        raise checkpoint.CheckpointError(
            f"{folder} holds an encoder that cannot be built here ({error}): pretrain it anew"
        ) from None
    bypass.set_ramp(model, about["ramp"], 1.0)

    # Its pieces lie beside it.
    pieces = wordpiece.load_pieces(Path(folder) / "tokenizer.json")
    if pieces.fingerprint != about["pieces"]:
        raise checkpoint.CheckpointError(
            f"{folder}/tokenizer.json is not the one that its encoder was trained with "
            f"(pieces {about['pieces']}, here {pieces.fingerprint}): put that one back"
        )
    return model.eval(), pieces


# ---- the command --------------------------------------------------------------------------------
def plan_of(text):
    """ "standard", or the dials of a bypass as JSON: {"alpha": "head"}."""
    try:
        return json.loads(text) if text.startswith("{") else text
    except json.JSONDecodeError as error:
        raise ValueError(
            f'plan {text}: wanted a name, or dials as JSON, as in {{"alpha": "head"}} ({error})'
        ) from None


def options(parser):
    add = parser.add_argument
    add("--size", default="bert-4l", help="bert-4l, bert-6l, bert-8l or bert-base")
    add("--plan", default="standard", help='a name, or dials: {"alpha": "head"}')
    add("--corpus", default="auto", help="as python -m minimal.data; also wikipedia")
    tokens = "how much of a streamed corpus is fetched"
    add("--tokens", type=number(int, above=0), help=tokens)
    vocab = "pieces to learn from the corpus"
    add("--vocab", type=number(int, above=0, most=2**20), default=8000, help=vocab)
    add("--pieces", help="a vocab.txt or tokenizer.json instead, as bert-base-uncased's")
    stages = "LENGTHxBATCHxSTEPS,… (the report's: 128x48x65000,512x48x15000)"
    add("--stages", default="128x48x6500,512x48x1500", help=stages)
    add("--lr", type=number(float, above=0), help="peak rate (1e-4)")
    add("--ramp", default="constant", choices=bypass.RAMPS, help="of the bypass, over training")
    add("--seed", type=SEED, default=0)
    add("--out", help="folder for weights and log; a second call goes on from there")


@command("minimal.encoder.pretrain", __doc__)
def main(parser, argv):
    options(parser)
    asked = parser.parse_args(argv)

    # The text, its pieces and the encoder.
    plan, stages = plan_of(asked.plan), stages_of(asked.stages)
    corpus = corpora.find(asked.corpus, asked.tokens)
    if asked.pieces:
        pieces = wordpiece.load_pieces(asked.pieces)
    else:
        pieces = wordpiece.corpus_pieces(corpus, asked.vocab)
    longest = max(stage.length for stage in stages)
    model = bert.build(plan, asked.size, seed=asked.seed, vocab=pieces.vocab, context=longest)
    model.to(device(), compute=compute_dtype(device()))

    # What the folder says about itself; the tokenizer of a run that goes on is there.
    about = identity(
        plan,
        model.config,
        pieces,
        corpus=corpus.fingerprint,
        seed=asked.seed,
        lr=asked.lr,
        ramp=asked.ramp,
        stages=[list(asdict(stage).values()) for stage in stages],
    )
    if asked.out and not (Path(asked.out) / "last.safetensors").exists():
        text = pieces.raw.to_str(pretty=True)
        same = lambda path: path.read_bytes() == text.encode()  # begun before, and not yet saved
        write_whole(Path(asked.out) / "tokenizer.json", text, same)

    how = dict(ramp=asked.ramp, out=asked.out, identity=about)
    pretrain(model, corpus, pieces, stages, asked.seed, asked.lr, **how)
    got = masked_score(model, corpus, pieces, stages[-1].length)
    print(
        f"{asked.size} on {corpus.name}, held out: {got['loss']:.3f} nats a masked piece, "
        f"{got['right']:.1%} of {got['guesses']} right"
    )


if __name__ == "__main__":
    main()
