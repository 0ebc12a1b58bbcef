"""How is a model trained? One loop for every plan, on a CPU, one GPU or several.

python -m minimal.train --plan bov --size tiny --corpus stdlib --steps 300 --out runs/x
torchrun --nproc-per-node 8 -m minimal.train --plan bov --size d12 …

The loop itself, with its clock, its checkpoints and its ways to stop, is minimal.training.loop.
"""

import functools
import math
import os
from dataclasses import fields
from pathlib import Path

import torch

from minimal.callable import call_as
from minimal.command import command, number
from minimal.data import files, packing
from minimal.data import tokenizer as tokenizers
from minimal.kernels.recorded import Direct, Recorded
from minimal.model.count import count, settings_of
from minimal.model.foreign import foreign_code
from minimal.model.init import generator
from minimal.model.loss import rows_at_once
from minimal.model.plan import Plan
from minimal.model.transformer import GPT
from minimal.training import checkpoint, optim, recipes
from minimal.training.compiling import compiled
from minimal.training.device import compute_dtype, keep_memory, matmul_rate
from minimal.training.loop import Loop, told_apart
from minimal.training.progress import progress
from minimal.training.run import HOW_OFTEN, NOT_IN_IDENTITY, Run, type_of
from minimal.training.team import Team, disband
from minimal.variants import build, skeleton


@functools.cache
def floor(where, threads):
    """The matmul rate of this machine, measured once a process and not for each of its runs."""
    return matmul_rate(where)


# ---- the training -------------------------------------------------------------------------------
class Trainer(Loop):
    """The loop with a GPT's step, evaluation and words. Trainer(run).fit() -> the result."""

    def __init__(self, run, quiet=None):
        # cheap questions first: what is wrong with a run should be said before anything is made
        self.run, self.team = run, Team(run.device)
        self.team.check_batch(run.batch, run.accumulate)
        empty = skeleton(run.plan, run.size, **run.config())
        config, recipe = empty.config, run.whole_recipe()
        self.counted, self.tokens_a_step = count(empty), run.batch * config.context
        steps = run.total_steps(self.counted["flops_per_token"] * self.tokens_a_step)

        # text, model, optimizer: each is given what it needs of the run
        wanted = config.vocab, config.context, run.packing, run.tokens
        corpus, self.tok, self.data = packing.prepare_text(run.corpus, *wanted)
        keep_memory()
        compute = compute_dtype(self.team.device)
        model = build(empty.plan, config, run.seed, self.team.device, compute)
        how = dict(steps=steps, scale=run.scale, lr=run.lr, team=self.team)
        how["backend"] = None if run.graph else "auto"  # a graph's launches cost nothing
        optimizer = optim.Optimizer(model, recipe, batch_tokens=self.tokens_a_step, **how)

        # what this run stands for: the files of a class of one's own may change while it trains,
        # and a model's windows do
        self.content = content_of(model)
        self.numbers = files.digest(recipes.numbers(recipes.named(run.recipe)))

        # the loop, and how a step runs in it
        every = dict(evaluate=run.evaluate, save=run.save)
        super().__init__(model, optimizer, steps, run.out, every)
        self.corpus = dict(
            name=corpus.name,
            fingerprint=corpus.fingerprint,
            tokens=self.data.about["train"]["tokens"],
        )
        self.loss = compiled(self.model.loss) if run.compile else self.model.loss
        self.replayed, self.scored = None, Direct(self.held_out_nats, self.team.to_device)
        if run.graph and self.team.device.type == "cuda":
            self.team.alone("a step as one CUDA graph")
            self.replayed = Recorded(self.whole_step, self.team.device)
            self.scored = Recorded(self.held_out_nats, self.team.device)
        self.writes = self.team.rank == 0
        quiet = os.environ.get("CI") == "true" if quiet is None else quiet
        self.quiet = quiet or not self.writes
        self.resume()

    def step(self, step):
        """Fetch, forward, backward, average over processes, step."""
        run, team = self.run, self.team
        torch.manual_seed(generator(run.seed, f"dropout {step} {team.rank}").initial_seed())
        ids, targets = self.data.batch(step, run.batch, run.seed, team.rank, team.world)
        windows = self.windows(step)
        if self.replayed:
            rates = torch.tensor(self.optimizer.rates(step))
            loss, self.watched = self.replayed(windows, ids, targets, rates)
            return loss
        ids, targets = team.to_device(ids), team.to_device(targets)  # (B, T) each
        total = self.backward(windows, ids, targets)
        team.average([*(p.grad for p in self.model.parameters() if p.grad is not None), total])
        self.optimizer.step(step)
        return total

    def backward(self, windows, ids, targets):
        """The batch's loss, and its gradients in the parameters."""
        parts, total = self.run.accumulate, 0.0
        for x, y in zip(ids.chunk(parts), targets.chunk(parts)):
            loss = self.loss(x, y, windows=windows) / parts
            loss.backward()
            total = total + loss.detach()
        return total

    def whole_step(self, windows, ids, targets, rates):
        """What a GPU records: the loss before the step, and the coefficients after it."""
        loss = self.backward(windows, ids, targets)
        self.optimizer.move(rates.unbind())
        return loss, self.coefficients()

    def windows(self, step):
        """Keys to the left, by layer, where the recipe schedules them; else None."""
        config = self.model.config
        recipe, scale, layers = self.optimizer.recipe, self.run.scale, config.long_layers()
        return recipes.layer_windows(recipe, step, self.steps, scale, config.context, layers)

    @torch.no_grad()
    def evaluate(self):
        """Held-out nats a token and bits per byte: the same rows for any number of processes.

        They pass through the model as many at a time as in training, whose activations fit, and
        no more than have room for their scores, which training never holds all at once.
        """
        self.model.eval()
        nats = tokens = bytes_ = byte_nats = 0
        windows = self.windows(self.done)
        config = self.model.config
        in_training = self.run.batch // (self.run.accumulate * self.team.world)
        at_once = min(in_training, rows_at_once(config.context, config.vocab, self.team.device))
        for x, y in self.data.valid(at_once, self.run.rows):
            (each,) = self.scored(windows, x, y)
            each = each.cpu().view_as(y)  # (B, T), and there because MPS has no float64
            nats, tokens = nats + each.double().sum().item(), tokens + y.numel()
            some, size = packing.nats_and_bytes(each, y, self.tok.bytes)
            byte_nats, bytes_ = byte_nats + some, bytes_ + size
        self.model.train()
        bpb = byte_nats / (math.log(2) * bytes_)
        return dict(step=self.done, loss=nats / tokens, bpb=bpb, seconds=self.seconds)

    def held_out_nats(self, windows, ids, targets):
        """Nats of every position, (B T,)."""
        return (self.model.loss(ids, targets, reduction="none", windows=windows),)

    def watch(self):
        return self.watched if self.replayed else self.coefficients()

    def coefficients(self):
        """All learned coefficients of this moment as one vector, in the order of `names`."""
        values = [c.detach().reshape(-1).float() for c in self.model.coefficients().values()]
        return torch.cat(values) if values else torch.empty(0)

    def names(self):
        return [
            name if c.numel() == 1 else f"{name}[{i}]"
            for name, c in self.model.coefficients().items()
            for i in range(c.numel())
        ]

    def agree(self, wish, report):
        """Several processes stop at the same step; they ask each other only where they report."""
        if self.team.world == 1:
            return wish
        return report and self.team.any(wish)

    # ---- what is said ---------------------------------------------------------------------------
    def fit(self, minutes=None):
        """Train to the end, or for some minutes. -> the result"""
        self.rate = floor(self.team.device, torch.get_num_threads())
        if not self.quiet:
            print(self.headline())
        with progress(str(self.run.plan), self.steps, self.done, quiet=self.quiet) as self.bar:
            try:
                super().fit(minutes)
            finally:  # whoever goes on with the model finds it seeing as it was trained
                self.model.windows = self.windows(self.done) or self.model.windows
        return self.result()

    def headline(self):
        config, counted, corpus = self.model.config, self.counted, self.corpus
        epochs = self.data.epochs(self.steps, self.run.batch)
        return (
            f"{self.run.plan}: {config.layers} layers of {config.width}, "
            f"{counted['parameters']:,} parameters; {corpus['name']} ({corpus['fingerprint']}); "
            f"{self.steps:,} steps of {self.tokens_a_step:,} tokens = {epochs:.2f} epochs; "
            f"seed {self.run.seed}"
        )

    def report(self, seconds, steps):
        """The bar and the log; where there is no bar, a line of text now and then."""
        loss = self.history[-1]["loss"]
        speed = steps * self.tokens_a_step / seconds  # tokens a second
        share = speed * self.counted["flops_per_token"] / (self.rate * self.team.world)
        words = f"{speed:,.0f} tokens/s  {share:.0%} of the matmul floor"
        self.log(tokens_per_second=round(speed), floor_share=round(share, 4))
        self.bar.show(self.done, f"loss {loss:.3f}", words)
        due = self.done % 50 == 0 or self.done in (1, self.steps)
        if due and not self.bar.shown and not self.quiet:
            print(f"step {self.done:5d}  loss {loss:.4f}  {words}", flush=True)

    def result(self):
        return dict(
            run=self.run.asked(),
            corpus=self.corpus,
            steps=self.steps,
            tokens=self.steps * self.tokens_a_step,
            epochs=self.data.epochs(self.steps, self.run.batch),
            seconds=self.seconds,
            **self.counted,
            losses=[row["loss"] for row in self.history],
            valid=self.valid,
            coefficients=dict(
                names=self.names(), steps=[row["coefficients"] for row in self.history]
            ),
        )

    # ---- what is kept ---------------------------------------------------------------------------
    def identity(self):
        """What must be equal for a run to go on: all but where it is written, and how often. A
        class of one's own and a recipe keep their names when their content changes."""
        given = self.run.asked().items()
        asked = {name: value for name, value in given if name not in NOT_IN_IDENTITY | HOW_OFTEN}
        return asked | dict(
            data=self.data.fingerprint,
            steps=self.steps,
            **self.content,
            numbers=self.numbers,
        )

    def extra(self):
        return dict(tokenizer=self.tok.text, windows=self.windows(self.done))


@call_as
def train(run: Run, minutes: float | None = None, quiet: bool | None = None) -> dict:
    """Train a run to its end, or for some minutes: losses, evaluations, counts, coefficients.
    With `out` in the run its folder holds checkpoint and log, and the same call goes on there."""
    return Trainer(run, quiet).fit(minutes)


def content_of(model):
    """What a plan's name stands for: the settings of all parts, and the code that is not ours."""
    return dict(
        model=files.digest(settings_of(model)),
        code=files.digest(*foreign_code(model)),
    )


def load(
    folder: str | Path, device: str | torch.device = "cpu", plan: Plan | None = None
) -> tuple[GPT, tokenizers.Tokenizer]:
    """(model, tokenizer) of a training run's folder. Code is not in a checkpoint: a run of a Plan
    of your own wants that `plan` again."""
    tensors, state = checkpoint.load(folder, tokenizer=str, done=int)
    names = {entry.name for entry in fields(Run)}
    try:
        asked = {k: v for k, v in state["identity"].items() if k in names}
        asked["flops"] = None  # the steps that they bought are there
        run = Run(**asked | (dict(plan=plan) if plan else {}))
        skeleton(run.plan, run.size, **run.config())
        model = build(run.plan, run.size, run.seed, device, **run.config())
        checkpoint.check_fractions(tensors)
        checkpoint.load_weights(model, checkpoint.part(tensors, "model/"))
        refuse_another_plan(state["identity"], content_of(model))
        model.windows = trained_windows(state, run, model.config) or model.windows
        tok = tokenizers.Tokenizer(state["tokenizer"])
        tokenizers.check_vocab(tok, model.config.vocab)
        return model.eval(), tok
    except ValueError as error:
        raise checkpoint.CheckpointError(f"{folder}: {error}") from None


def refuse_another_plan(theirs, ours):
    """Weights fit whatever has their shapes. A folder that was written before may say less."""
    told = told_apart(theirs, ours, [name for name in ours if name in theirs])
    if told:
        raise ValueError(
            f"it holds another run ({told}): load it with the plan that was trained, as it was then"
        )


def trained_windows(state, run, config):
    """Keys to the left by layer, as at a checkpoint's step; None where its recipe schedules none.
    Folders that were written before do not say them: there the recipe does."""
    if "windows" in state or run.recipe not in recipes.RECIPES:
        return state.get("windows")
    step, recipe, layers = state["done"], recipes.named(run.recipe), config.long_layers()
    return recipes.layer_windows(recipe, step, run.steps, run.scale, config.context, layers)


# ---- the command --------------------------------------------------------------------------------
@command("minimal.train", __doc__)
def main(parser, argv):
    for entry in fields(Run):
        add_option(parser, entry)
    parser.add_argument(
        "--minutes",
        type=number(float, least=0),
        help="stop cleanly after this long; the same command goes on",
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but the last line")
    asked = vars(parser.parse_args(argv))
    minutes, quiet = asked.pop("minutes"), asked.pop("quiet")
    try:
        trainer = Trainer(Run(**asked), quiet or None)
        result = trainer.fit(minutes)
    finally:
        disband()
    if trainer.writes:
        final = result["valid"][-1]
        print(
            f"{trainer.run.plan}: held-out {final['loss']:.4f} nats a token, "
            f"{final['bpb']:.4f} bits a byte after {result['tokens']:,} tokens "
            f"in {result['seconds']:.0f} s"
        )
    trainer.team.leave()


def add_option(parser, entry):
    """A field of Run as an option."""
    if not entry.metadata.get("cli", True):
        return
    how = dict(help=entry.metadata["help"])
    if entry.type is bool:
        how |= dict(action="store_true")
    else:
        how |= dict(type=type_of(entry), default=entry.default)
    parser.add_argument(f"--{entry.name}", **how)


if __name__ == "__main__":
    main()
