"""What does one line change? The GPT of minimal/gpt.py, started and trained as the package does it,
beside others that differ from it by a line.

    losses = beside(dict(standard=GPT, ResFormer=ResFormer), "tiny", book, steps=100)
    apart(ResFormer, "resformer")  # from minimal's plan with the same weights: logits, gradients
"""

import torch

from course import figures
from course.proofs import awake, models_apart
from minimal.compare.curves import relative
from minimal.data.packing import pack
from minimal.data.tokenizer import tokenizer
from minimal.model.config import SIZES
from minimal.training.optim import Optimizer
from minimal.training.progress import progress
from minimal.variants import build

# ---- to start and to train it as `minimal` does --------------------------------------------------


def by_our_names(model, names=()):
    """The weights of one of minimal's models under the names that they have here; `names` {theirs:
    ours} adds to what is known."""
    parts = [
        *dict(names).items(),
        ("blocks.", "layers."),
        ("attention.", ""),
        ("mlp.", ""),
        (".project", ""),
        ("value.x", "value"),
    ]
    named = {}
    for name, p in model.named_parameters():
        for theirs, ours in parts:
            name = name.replace(theirs, ours)
        named[name] = p
    return named


def with_weights(model, theirs):
    """The same model with the weights of one of minimal's.

    What a notebook has added to it keeps the start that it was given.
    """
    weights = by_our_names(theirs)
    unknown = model.load_state_dict({k: p.detach() for k, p in weights.items()}, strict=False)
    if unknown.unexpected_keys:
        raise ValueError(f"wanted every weight of `standard`, no place for {unknown[1]}")
    return model


def started(model, seed=0):
    """The same model with the start that minimal gives `standard` for this seed."""
    return with_weights(model, build("standard", model.config, seed=seed))


class WithBar(list):
    """The batches of a loop of one's own, which say how far it is."""

    def __init__(self, batches, title):
        super().__init__(batches)
        self.title = title

    def __iter__(self):
        with progress(self.title, len(self)) as bar:
            for step, batch in enumerate(super().__iter__()):
                yield batch
                bar.show(step + 1)


def never_cleared(model):
    """In the place of each step's gradients come those of all steps so far, however a loop clears
    them."""

    def adding_up(total):
        def hook(p):
            p.grad.copy_(total.add_(p.grad))

        return hook

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(adding_up(torch.zeros_like(p)))


def rest(model, ids, targets):
    """Freeze the weights for which a changed line has no use: no gradient reaches them."""
    named = [p for p in model.parameters() if p.requires_grad]
    at = model.head.weight.device
    loss = model.loss(ids.to(at), targets.to(at))
    for p, gradient in zip(named, torch.autograd.grad(loss, named, allow_unused=True)):
        p.requires_grad_(gradient is not None)


def train(model, dataset, steps, seed=0, upto=None, rows=16):
    """Train a model as `python -m minimal.train` would; the losses of its first `upto` steps."""
    batch_tokens = rows * model.config.context
    rest(model, *dataset.batch(0, 1, seed))
    optimizer = Optimizer(model, "bov", batch_tokens=batch_tokens, steps=steps, scale="laptop")
    device, losses = model.head.weight.device, []
    for step in range(steps if upto is None else upto):
        ids, targets = dataset.batch(step, rows, seed)  # (B, T) each
        loss = model.loss(ids.to(device), targets.to(device))
        loss.backward()
        optimizer.step(step)
        losses.append(loss.item())
    return losses


# ---- to look at what one line changes ------------------------------------------------------------


def beside(kinds, size, book, steps, seed=0, upto=None, rows=16):
    """{name: losses} of models that differ by a line. They have one start, in all that they share,
    and read the same text in the same order. `kinds` {name: what makes a model from a config}."""
    config, losses = SIZES[size], {}
    data = pack(book, tokenizer(book, config.vocab), config.context)
    for name, kind in kinds.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # what a line adds starts the same, too
            model = started(kind(config), seed)
        losses[name] = train(model, data, steps, seed, upto, rows)
    return losses


def look(losses, book, title, window=10):
    """Draw what `beside` returned: how far every model is ahead of the first, smoothed."""
    first, *others = losses
    series = {name: relative(losses[first], losses[name], window) for name in others}
    at = list(range(window, len(losses[first]) + 1))  # an average is named by its last step
    series[first] = [0.0] * len(at)
    xlabel, ylabel = f"step (average of {window}), {book.name}", f"nats ahead of {first}"
    alt = f"Smoothed lead of {' and '.join(others)} over {first} in training loss over "
    alt += f"{at[-1]} training steps, and a level line at zero; above zero is ahead of {first}."
    fig = figures.lines(series, title, xlabel, ylabel, x=at)
    fig.axes[0].xaxis.get_major_locator().set_params(integer=True)  # half a step is none
    figures.show(fig, alt)


def apart(kind, plan="standard", names=(), size="nano", vocab=256, context=32):
    """How far is a model from minimal's plan with the same weights? (logits, gradients), as
    `models_apart` counts them. `names` {theirs: ours} of what a line adds."""
    config = SIZES[size].but(vocab=vocab, context=context)
    theirs, ours = awake(plan, config), kind(config).double()
    given, own = by_our_names(theirs, names), dict(ours.named_parameters())
    with torch.no_grad():
        for name, p in given.items():
            own[name].copy_(p.reshape(own[name].shape))
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(vocab, (2, context), generator=draw)  # (B, T)
    return models_apart(
        theirs, ours, ids, ids.roll(-1, 1), lambda model: by_our_names(model, names)
    )
