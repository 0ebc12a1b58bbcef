"""How is a model trained? One loop for every plan, on a CPU, one GPU or several.

python -m minimal.train --plan bov --size tiny --corpus stdlib --steps 300 --out runs/x
torchrun --nproc-per-node 8 -m minimal.train --plan bov --size d12 …
"""

import argparse
import json
import math
import os
import signal
import sys
import time
import warnings
from dataclasses import asdict, fields, replace
from pathlib import Path

import torch
import torch.distributed as dist

from minimal.data import corpora, files, packing
from minimal.data import tokenizer as tokenizers
from minimal.model.count import count, settings_of
from minimal.model.init import generator
from minimal.training import checkpoint, optim, recipes
from minimal.training.device import compute_dtype, keep_memory, matmul_rate
from minimal.training.run import HOW_OFTEN, NOT_IN_IDENTITY, Diverged, Run, Stop, TimeIsUp
from minimal.training.team import Team
from minimal.variants import build, skeleton

PROGRESS = (
    "done",
    "seconds",
    "valid",
    "history",
)  # what a run has reached; its tensors lie beside them


class Trainer:
    """What a run is made of, and the loop."""

    def __init__(self, run, quiet=None):
        keep_memory()
        self.run, self.team = run, Team(run.device)
        self.quiet = self.team.rank > 0 or (
            os.environ.get("CI") == "true" if quiet is None else quiet
        )
        corpus = corpora.find(run.corpus, run.tokens, run.mix)
        where = self.team.device
        self.model = build(
            run.plan, run.size, run.seed, where, compute_dtype(where), **run.config()
        )
        config = self.model.config
        self.tok = tokenizers.tokenizer(corpus, config.vocab)
        self.data = packing.pack(corpus, self.tok, config.context, run.packing, run.tokens)
        self.counted = count(skeleton(run.plan, run.size, **run.config()))
        self.tokens_a_step = run.batch * config.context
        self.steps = 250 if run.steps is None else run.steps
        if run.flops is not None:
            self.steps = max(
                1, round(run.flops / (self.counted["flops_per_token"] * self.tokens_a_step))
            )
        if run.batch % (run.accumulate * self.team.world):
            raise ValueError(
                f"a batch of {run.batch} does not split into {run.accumulate} parts on {self.team.world} "
                f"processes: choose a multiple of {run.accumulate * self.team.world}"
            )
        self.optimizer = optim.Optimizer(
            self.model,
            self.recipe(),
            batch_tokens=self.tokens_a_step,
            steps=self.steps,
            scale=run.scale,
            lr=run.lr,
        )
        self.loss = (
            torch.compile(self.model.loss, dynamic=False) if run.compile else self.model.loss
        )
        self.corpus = dict(
            name=corpus.name,
            fingerprint=corpus.fingerprint,
            tokens=self.data.about["train"]["tokens"],
        )
        self.history, self.valid, self.seconds, self.done = [], [], 0.0, 0
        self.out = Path(run.out) if run.out else None
        if self.out and (self.out / "last.safetensors").exists():
            self.resume()
        if (
            self.out and self.team.rank == 0
        ):  # the log says nothing of steps that were lost and are trained again
            kept = [
                row for row in files.read_lines(self.out / "log.jsonl") if row["step"] <= self.done
            ]
            (self.out / "log.jsonl").unlink(missing_ok=True)
            files.append_lines(self.out / "log.jsonl", kept)

    def recipe(self):
        recipe = recipes.named(self.run.recipe)
        for role, row in self.run.overrides.items():
            recipe = recipe.change(role, **row)
        if self.run.warmup is not None:
            recipe = replace(recipe, lr=replace(recipe.lr, warmup=self.run.warmup))
        return recipe

    def windows(self, step):
        """Keys to the left by layer where the recipe schedules them (modded-nanogpt): half for short layers, in whole
        blocks. On a laptop the source's 3,456 tokens are our context, and its blocks of 128 a sixteenth of that."""
        recipe, config = self.optimizer.recipe, self.model.config
        if recipe.longest_window is None:
            return None
        longest, block = recipe.longest_window, 128
        if self.run.scale == "laptop":
            longest, block = config.context, max(1, config.context // 16)
        now = recipes.window(step, self.steps, longest, block) if recipe.window_grows else longest
        return [
            now if long else max(block, now // (2 * block) * block) for long in config.long_layers()
        ]

    # ---- the loop ----------------------------------------------------------------------------------------------------

    def step(self, step):
        """Fetch, forward, backward, average over processes, step."""
        run, total = self.run, 0.0
        torch.manual_seed(generator(run.seed, f"dropout {step} {self.team.rank}").initial_seed())
        ids, targets = self.data.batch(step, run.batch, run.seed, self.team.rank, self.team.world)
        windows = self.windows(step)
        for x, y in zip(ids.chunk(run.accumulate), targets.chunk(run.accumulate)):
            x, y = (t.to(self.team.device, non_blocking=True) for t in (x, y))
            loss = self.loss(x, y, windows=windows) / run.accumulate
            loss.backward()
            total = total + loss.detach()
        self.team.average([p.grad for p in self.model.parameters() if p.grad is not None] + [total])
        self.optimizer.step(step)
        return total

    def fit(self, minutes=None):
        """Train to the end, or for some minutes; returns the result. Ends cleanly on SIGTERM."""
        ask = []  # a signal that asked us to stop
        before = (
            signal.signal(signal.SIGTERM, lambda *_: ask.append("SIGTERM"))
            if in_main_thread()
            else None
        )
        limit = math.inf if minutes is None else time.monotonic() + 60 * minutes
        rate = matmul_rate(self.team.device)
        bar = self.progress()
        self.model.train()
        first, pending, mark, since = self.done, [], time.perf_counter(), self.done
        try:
            for step in range(first, self.steps):
                pending.append((self.step(step), self.coefficients()))
                self.done, last = step + 1, step + 1 == self.steps
                evaluate, save = (
                    last or self.done % self.run.evaluate == 0,
                    last or self.done % self.run.save == 0,
                )
                report = evaluate or save or self.done % 10 == 0 or step == first
                may_stop = (
                    report or self.team.world == 1
                )  # several processes agree on it, and not at every step
                stop = may_stop and self.team.any(bool(ask) or time.monotonic() > limit)
                if report or stop:
                    pending = self.record(pending)
                    now = time.perf_counter()
                    self.seconds += now - mark if step > first else 0  # the first step may compile
                    speed = (
                        (self.done - since) * self.tokens_a_step / (now - mark)
                    )  # tokens a second
                    self.report(bar, speed, speed * self.counted["flops_per_token"] / rate)
                    if evaluate:
                        self.valid.append(self.evaluate())
                    if (save or stop) and self.out:
                        self.save()
                    mark, since = (
                        time.perf_counter(),
                        self.done,
                    )  # the clock stands while we evaluate and save
                if stop and not last:
                    kind, why = (Stop, ask[0]) if ask else (TimeIsUp, "time is up")
                    kept = (
                        f"{self.out} goes on from there"
                        if self.out
                        else "nothing was kept: name a folder with --out"
                    )
                    raise kind(f"stopped at step {self.done} of {self.steps} ({why}); {kept}")
        finally:
            bar.close()
            if before is not None:
                signal.signal(signal.SIGTERM, before)
        return self.result()

    def record(self, pending):
        """Bring the pending losses over from the device; a loss that is no number ends the run here."""
        for at, (loss, coefficients) in enumerate(pending, self.done - len(pending)):
            if not math.isfinite(loss):
                kept = (
                    checkpoint.kept(self.out / "last.safetensors")
                    if self.out
                    else "nothing was saved"
                )
                raise Diverged(
                    f"the loss became {loss.item()} at step {at + 1}; {kept}; try a smaller --lr"
                )
            self.history.append(
                dict(step=at + 1, loss=loss.item(), coefficients=coefficients.tolist())
            )
        return []

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

    @torch.no_grad()
    def evaluate(self):
        """Held-out nats a token and bits per byte; the same rows whatever the number of processes."""
        self.model.eval()
        nats = tokens = bytes_ = byte_nats = 0
        windows = self.windows(self.done)
        for x, y in self.data.valid(self.run.batch, self.run.rows):
            there = (t.to(self.team.device) for t in (x, y))
            each = (
                self.model.loss(*there, reduction="none", windows=windows).cpu().view_as(y)
            )  # (B, T); MPS has no float64
            nats, tokens = nats + each.double().sum().item(), tokens + y.numel()
            some, size = packing.nats_and_bytes(each, y, self.tok.bytes)
            byte_nats, bytes_ = byte_nats + some, bytes_ + size
        self.model.train()
        return dict(
            step=self.done,
            loss=nats / tokens,
            bpb=byte_nats / (math.log(2) * bytes_),
            seconds=self.seconds,
        )

    # ---- what is said ------------------------------------------------------------------------------------------------

    def progress(self):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # without ipywidgets the bar is drawn in text, which needs no apology
            from tqdm.auto import tqdm

        if not self.quiet:
            print(self.headline())
        shown = not self.quiet and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        return tqdm(
            total=self.steps, initial=self.done, disable=not shown, desc=self.run.plan, leave=False
        )

    def headline(self):
        c, about = self.model.config, self.corpus
        return (
            f"{self.run.plan}: {c.layers} layers of {c.width}, {self.counted['parameters']:,} parameters; {about['name']} "
            f"({about['fingerprint']}); {self.steps:,} steps of {self.tokens_a_step:,} tokens = "
            f"{self.data.epochs(self.steps, self.run.batch):.2f} epochs; seed {self.run.seed}"
        )

    def report(self, bar, speed, share):
        now = self.history[-1]
        bar.n = self.done
        bar.set_postfix_str(
            f"loss {now['loss']:.3f}, {speed:,.0f} tokens/s, {share:.0%} of the matmul floor"
        )
        if self.out and self.team.rank == 0:
            self.out.mkdir(parents=True, exist_ok=True)
            row = dict(
                step=self.done,
                loss=now["loss"],
                tokens_per_second=round(speed),
                floor_share=round(share, 4),
            )
            files.append_lines(self.out / "log.jsonl", [row])
        if not self.quiet and bar.disable and (self.done % 50 == 0 or self.done in (1, self.steps)):
            print(
                f"step {self.done:5d}  loss {now['loss']:.4f}  {speed:,.0f} tokens/s  {share:.0%} of the matmul floor",
                flush=True,
            )

    def result(self):
        return dict(
            run=asdict(self.run),
            corpus=self.corpus,
            steps=self.steps,
            tokens=self.steps * self.tokens_a_step,
            epochs=self.data.epochs(self.steps, self.run.batch),
            seconds=self.seconds,
            **self.counted,
            losses=[h["loss"] for h in self.history],
            valid=self.valid,
            coefficients=dict(names=self.names(), steps=[h["coefficients"] for h in self.history]),
        )

    # ---- what is kept ------------------------------------------------------------------------------------------------

    def identity(self):
        """What must be equal for a run to go on: everything but where it is written and how often."""
        asked = {k: v for k, v in asdict(self.run).items() if k not in NOT_IN_IDENTITY | HOW_OFTEN}
        return asked | dict(
            data=self.data.fingerprint,
            steps=self.steps,
            model=files.digest(settings_of(self.model)),
        )

    def save(self):
        if self.team.rank:
            return
        tensors = {f"optimizer/{k}": v for k, v in self.optimizer.state_dict().items()}
        tensors |= {f"model/{k}": v for k, v in self.model.named_parameters()}
        state = dict(
            identity=self.identity(),
            tokenizer=self.tok.text,
            **{k: getattr(self, k) for k in PROGRESS},
        )
        checkpoint.save(self.out / "last.safetensors", tensors, state)

    def resume(self):
        tensors, state = checkpoint.load(self.out)
        theirs, ours = state["identity"], json.loads(json.dumps(self.identity()))
        differ = [k for k in ours if theirs.get(k) != ours[k]]
        if differ:
            told = ", ".join(f"{k}: {theirs.get(k)} there, {ours[k]} here" for k in differ)
            raise checkpoint.CheckpointError(
                f"{self.out} holds another run ({told}): "
                "name another folder with --out, or the same run"
            )
        part = lambda prefix: {
            k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)
        }
        checkpoint.load_weights(self.model, part("model/"))
        self.optimizer.load_state_dict(part("optimizer/"))
        for k in PROGRESS:
            setattr(self, k, state[k])


def in_main_thread():
    import threading

    return threading.current_thread() is threading.main_thread()


def load(folder, where="cpu"):
    """(model, tokenizer) of a training run's folder."""
    tensors, state = checkpoint.load(folder)
    run = Run(**{k: v for k, v in state["identity"].items() if k in {f.name for f in fields(Run)}})
    model = build(run.plan, run.size, run.seed, **run.config()).to(where)
    checkpoint.load_weights(model, {k[6:]: v for k, v in tensors.items() if k.startswith("model/")})
    return model.eval(), tokenizers.Tokenizer(state["tokenizer"])


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python -m minimal.train", description=__doc__.splitlines()[0]
    )
    for f in fields(Run):
        if f.metadata.get("cli", True):
            flag = f.type is bool
            kind = dict(action="store_true") if flag else dict(type=kind_of(f), default=f.default)
            ask.add_argument(f"--{f.name}", help=f.metadata.get("help"), **kind)
    ask.add_argument(
        "--minutes", type=float, help="stop cleanly after this long; the same command goes on"
    )
    ask.add_argument("--quiet", action="store_true")
    asked = vars(ask.parse_args(argv))
    minutes, quiet = asked.pop("minutes"), asked.pop("quiet")
    try:
        trainer = Trainer(Run(**asked), quiet or None)
        result = trainer.fit(minutes)
    except (ValueError, OSError, Stop) as error:
        sys.exit(f"train: {error}")
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    if trainer.team.rank == 0:
        final = result["valid"][-1]
        print(
            f"{result['run']['plan']}: held-out {final['loss']:.4f} nats a token, {final['bpb']:.4f} bits a byte "
            f"after {result['tokens']:,} tokens in {result['seconds']:.0f} s"
        )


def kind_of(f):
    return next(kind for kind in (int, float, str) if f.type in (kind, kind | None))


if __name__ == "__main__":
    main()
