"""How does an encoder learn to read before anyone asks it something? Masked pieces: short rows first, then long ones.

python -m minimal.encoder.pretrain --size bert-4l --corpus auto --vocab 8000 --stages 128x48x6500,512x48x1500 --out runs/mlm
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F

from minimal.data import corpora, files
from minimal.data.packing import pack, permutation
from minimal.encoder import bert, bypass, wordpiece
from minimal.model.config import Config
from minimal.model.init import generator
from minimal.training import checkpoint
from minimal.training.device import compute_dtype, device
from minimal.training.optim import Optimizer
from minimal.training.recipes import RECIPES

RECIPE = replace(RECIPES["bert"], clip=1.0)  # BERT's public code clips; the report does not say


# ---- the loop ---------------------------------------------------------------------------------------------------
def places(count, batch, seed, step):
    """Which of `count` rows step number `step` reads: every row once an epoch, in an order that (seed, epoch) gives."""
    wanted = range(step * batch, (step + 1) * batch)
    return torch.tensor(
        [int(permutation(count, seed, at // count)[at % count]) for at in wanted]
    )  # (B,)


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
    """Train on loss_at(step), a pure function of the step's number, so that a run which was stopped goes on exactly.
    -> the losses. `ramp` moves the bypass's alpha on the way (bypass.RAMPS); None leaves it as the last run left it."""
    optimizer = Optimizer(
        model, recipe, batch_tokens=1, steps=steps, lr=lr
    )  # these recipes do not look at the batch
    losses, out = [], Path(out) if out else None
    if out and (out / "last.safetensors").exists():
        losses = resume(model, optimizer, out, identity)
    model.train()
    before = time.perf_counter()
    for step in range(len(losses), steps):
        torch.manual_seed(
            generator(seed, f"dropout {step}").initial_seed()
        )  # it, too, is a function of (seed, step)
        bypass.turn(model, ramp, step / steps)
        loss = loss_at(step)
        loss.backward()
        optimizer.step(step)
        losses.append(loss.item())
        if losses[-1] != losses[-1]:
            raise ValueError(
                f"the loss is no number at step {step}; take a smaller rate than "
                f"{lr or recipe.rows['matrix'].lr}"
            )
        if out and (step + 1 == steps or (step + 1) % save == 0):
            keep(model, optimizer, out, identity, losses)
            files.append_lines(
                out / "log.jsonl",
                [
                    dict(
                        step=step + 1,
                        loss=sum(losses[-save:]) / len(losses[-save:]),
                        seconds=round(time.perf_counter() - before, 1),
                    )
                ],
            )
    bypass.turn(model, ramp, 1.0)
    return losses


def keep(model, optimizer, out, identity, losses):
    tensors = {f"model/{name}": p for name, p in model.named_parameters()}
    tensors |= {f"optimizer/{name}": state for name, state in optimizer.state_dict().items()}
    checkpoint.save(out / "last.safetensors", tensors, dict(identity=identity, losses=losses))


def resume(model, optimizer, out, identity):
    tensors, state = checkpoint.load(out)
    theirs, ours = state["identity"], json.loads(json.dumps(identity))
    if theirs != ours:
        differ = sorted(name for name in ours if theirs.get(name) != ours[name])
        raise checkpoint.CheckpointError(
            f"{out} holds another run (it differs in {', '.join(differ)}): name another "
            "folder, or run with what it was started with"
        )
    part = {
        kind: {name.removeprefix(kind): t for name, t in tensors.items() if name.startswith(kind)}
        for kind in ("model/", "optimizer/")
    }
    checkpoint.load_weights(model, part["model/"])
    optimizer.load_state_dict(part["optimizer/"])
    return state["losses"]


# ---- masked language modelling ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Stage:
    """Rows of `length` pieces, `batch` of them a step."""

    length: int
    batch: int
    steps: int


REPORT = (
    Stage(128, 48, 65_000),
    Stage(512, 48, 15_000),
)  # the bypass report: 399M + 369M tokens seen, of 0.6B


def stages(text):
    """128x48x65000,512x48x15000 -> stages."""
    try:
        return tuple(Stage(*map(int, part.split("x"))) for part in text.split(","))
    except (ValueError, TypeError):
        raise ValueError(
            f"stages {text!r}: wanted LENGTHxBATCHxSTEPS with commas between, as in "
            "128x48x65000,512x48x15000"
        ) from None


def framed(rows, pieces):
    """[CLS] … [SEP] around rows of running text (N, n) -> (N, n + 2)."""
    rows = torch.as_tensor(rows).long()
    return F.pad(F.pad(rows, (1, 0), value=pieces.cls), (0, 1), value=pieces.sep)


def masked_loss(model, pieces, ids, seed, step, segments=None, lengths=None):
    """Cross entropy in nats where a piece was to be guessed; the head runs over those places only."""
    inputs, targets = (t.to(model.device) for t in wordpiece.mask(ids, pieces, seed, step))
    x = model.hidden(inputs, model.tape(inputs, lengths=lengths), segments)  # (B, T, C)
    chosen = targets != wordpiece.IGNORE
    return F.cross_entropy(model.head(x[chosen]), targets[chosen])


def pretrain(model, corpus, pieces, plan=REPORT, seed=0, lr=None, **how):
    """The stages one after the other under one schedule of warm-up and decay. -> losses"""
    rows = {
        stage.length: pack(corpus, pieces, stage.length - 3) for stage in plan
    }  # pack's rows hold one piece more
    ends = [sum(stage.steps for stage in plan[: i + 1]) for i in range(len(plan))]

    def loss_at(step):
        stage = next(stage for stage, end in zip(plan, ends) if step < end)
        train = rows[stage.length].train
        ids = framed(
            train[places(len(train), stage.batch, seed, step)].astype("int64"), pieces
        )  # (B, length)
        return masked_loss(model, pieces, ids, seed, step)

    return fit(model, loss_at, ends[-1], seed=seed, lr=lr, **how)


def on_windows(model, pieces, rows, batch, seed):
    """loss_at(step) of masked pieces in questions with their passages (squad.windows): how they fit together is learned
    before anybody asks for an answer."""

    def loss_at(step):
        which = places(len(rows.ids), batch, seed, step)
        width = int(rows.lengths[which].max())
        ids, segments = rows.ids[which, :width], rows.segments[which, :width].to(model.device)
        return masked_loss(
            model, pieces, ids, seed, step, segments, rows.lengths[which].to(model.device)
        )

    return loss_at


@torch.no_grad()
def masked_score(model, corpus, pieces, length, rows=64):
    """Held-out loss in nats a masked piece, and the share guessed right; always the same rows and masks."""
    held = pack(corpus, pieces, length - 3).held
    rows = min(rows, len(held))
    ids = framed(
        held[[i * len(held) // rows for i in range(rows)]].astype("int64"), pieces
    )  # (rows, length)
    model.eval()
    inputs, targets = wordpiece.mask(ids, pieces, 0, 0)
    chosen = targets != wordpiece.IGNORE
    scores = torch.cat([model(part.to(model.device)).cpu() for part in inputs.split(16)])[
        chosen
    ]  # (n, V)
    return dict(
        loss=F.cross_entropy(scores, targets[chosen]).item(),
        right=(scores.argmax(-1) == targets[chosen]).float().mean().item(),
        guesses=int(chosen.sum()),
    )


# ---- the command ------------------------------------------------------------------------------------------------
def identity(plan, config, pieces, **more):
    """What a folder of weights must say about itself, so that it can be read without being told."""
    return dict(plan=plan, config=asdict(config), pieces=pieces.fingerprint, **more)


def restore(folder):
    """(encoder, pieces) of a folder that this command wrote."""
    tensors, state = checkpoint.load(folder)
    told = state["identity"]
    model = bert.build(told["plan"], Config(**told["config"]))
    checkpoint.load_weights(
        model,
        {
            name.removeprefix("model/"): t
            for name, t in tensors.items()
            if name.startswith("model/")
        },
    )
    bypass.turn(model, told["ramp"], 1.0)
    pieces = wordpiece.load_pieces(Path(folder) / "tokenizer.json")
    if pieces.fingerprint != told["pieces"]:
        raise checkpoint.CheckpointError(
            f"{folder}/tokenizer.json is not the one that its encoder was trained with "
            f"(pieces {told['pieces']}, here {pieces.fingerprint}): put that one back"
        )
    return model.eval(), pieces


def plan_of(text):
    """ "standard", or the dials of a bypass as JSON: {"alpha": "head"}."""
    try:
        return json.loads(text) if text.startswith("{") else text
    except json.JSONDecodeError as error:
        raise ValueError(
            f'plan {text}: wanted a name, or dials as JSON, as in {{"alpha": "head"}} ({error})'
        ) from None


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python -m minimal.encoder.pretrain", description=__doc__.splitlines()[0]
    )
    ask.add_argument("--size", default="bert-4l", help="bert-4l, bert-6l, bert-8l or bert-base")
    ask.add_argument("--plan", default="standard", help='a name, or dials: {"alpha": "head"}')
    ask.add_argument(
        "--corpus",
        default="auto",
        help="as python -m minimal.data; wikipedia comes through datasets",
    )
    ask.add_argument("--tokens", type=int, help="how much of a streamed corpus is fetched")
    ask.add_argument("--vocab", type=int, default=8000, help="pieces to learn from the corpus")
    ask.add_argument(
        "--pieces", help="a vocab.txt or tokenizer.json instead, as bert-base-uncased's"
    )
    ask.add_argument(
        "--stages",
        default="128x48x6500,512x48x1500",
        help="LENGTHxBATCHxSTEPS,… (the report's: 128x48x65000,512x48x15000)",
    )
    ask.add_argument("--lr", type=float, help="peak rate (1e-4)")
    ask.add_argument(
        "--ramp", default="constant", choices=bypass.RAMPS, help="of the bypass, over training"
    )
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--out", help="folder for weights and log; a second call goes on from there")
    asked = ask.parse_args(argv)
    try:
        asked.plan, asked.stages = plan_of(asked.plan), stages(asked.stages)
        corpus = corpora.find(asked.corpus, asked.tokens)
        pieces = (
            wordpiece.load_pieces(asked.pieces)
            if asked.pieces
            else wordpiece.corpus_pieces(corpus, asked.vocab)
        )
        model = bert.build(
            asked.plan,
            asked.size,
            seed=asked.seed,
            vocab=pieces.vocab,
            context=max(stage.length for stage in asked.stages),
        ).to(device(), compute=compute_dtype(device()))
        about = identity(
            asked.plan,
            model.config,
            pieces,
            corpus=corpus.fingerprint,
            seed=asked.seed,
            lr=asked.lr,
            ramp=asked.ramp,
            stages=[list(asdict(stage).values()) for stage in asked.stages],
        )
        if (
            asked.out and not (Path(asked.out) / "last.safetensors").exists()
        ):  # of a run that goes on it is there
            Path(asked.out).mkdir(parents=True, exist_ok=True)
            pieces.raw.save(str(Path(asked.out) / "tokenizer.json"))
        pretrain(
            model,
            corpus,
            pieces,
            asked.stages,
            asked.seed,
            asked.lr,
            ramp=asked.ramp,
            out=asked.out,
            identity=about,
        )
        got = masked_score(model, corpus, pieces, asked.stages[-1].length)
    except (ValueError, OSError) as error:
        sys.exit(f"pretrain: {error}")
    print(
        f"{asked.size} on {corpus.name}, held out: {got['loss']:.3f} nats a masked piece, {got['right']:.1%} of "
        f"{got['guesses']} right"
    )


if __name__ == "__main__":
    main()
