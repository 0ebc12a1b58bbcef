"""What does a trained model do with its values? Studies that a grid records beside the losses."""

import torch
import torch.nn.functional as F

from evidence.research import doors
from minimal.analysis import observe

# ---- coefficients --------------------------------------------------------------------------------


def trajectories(result, end=""):
    """{name: values over the steps} of every coefficient whose name ends so, of a training
    result."""
    names, steps = result["coefficients"]["names"], result["coefficients"]["steps"]
    return {name: [step[i] for step in steps] for i, name in enumerate(names) if name.endswith(end)}


def largest_coefficients(result):
    """How far each learned coefficient was from zero at its largest; its row says where it ends. A
    gain that was large and ends near zero closed its layer; one that never grew did not."""
    paths = trajectories(result)
    return dict(largest={name: round(max(map(abs, path)), 4) for name, path in paths.items()})


def mixin_study(result):
    """What the weights of an x0 mixin r x + z x0 did in training.

    x0_share   z's share by layer at the end
    turn       when the shares were largest, as a part of the run (without layer 0, where x is x0)
    fell       how many of them fell by 2 % from there
    crossed    layers whose weight of x0 changed sign after the first tenth
    rise       the largest rise of the held-out loss between two evaluations
    """
    paths = trajectories(result)
    kept = [path for name, path in paths.items() if ".residual." in name]
    mixed = [path for name, path in paths.items() if ".x0." in name]

    # shares, smoothed over a twentieth of the run
    r, z = torch.tensor(kept), torch.tensor(mixed)  # (L, steps) each
    share = z.abs() / (r.abs() + z.abs())
    steps = share.shape[1]
    smoothed = share[1:].unfold(1, max(1, steps // 20), 1).mean(-1)  # (L - 1, steps')
    peak, at = smoothed.max(1)

    held = [row["loss"] for row in result["valid"]]
    rises = [after - before for before, after in zip(held, held[1:])]
    return dict(
        x0_share=[round(v, 4) for v in share[:, -1].tolist()],
        turn=round(((at + 1) / smoothed.shape[1]).mean().item(), 4),
        fell=(smoothed[:, -1] < 0.98 * peak).sum().item(),
        crossed=[i for i, path in enumerate(mixed) if path[steps // 10] * path[-1] < 0],
        rise=round(max(rises, default=0.0), 4),
    )


# ---- what a trained model does with held-out text ------------------------------------------------


def loaded(result):
    """(model, tokenizer) of a training result; code is not in a checkpoint, so a plan of our own is
    handed over."""
    from minimal.train import load

    return load(result["folder"], plan=doors.MIXES.get(result["run"]["plan"]))


def trained(result, texts=16):
    """The model of a training result, and the ids (texts, T) of its first held-out texts."""
    from minimal.data import corpora, packing

    model, tok = loaded(result)
    text = corpora.find(result["run"]["corpus"])
    held = packing.pack(text, tok, model.config.context)
    ids, _ = next(iter(held.valid(texts, texts)))
    return model, ids


def held_out(result, at_once=16):
    """The loss of every 16 held-out rows, in the order of the text: two runs over the same rows are
    compared row by row, so that a difference has the error of its rows beside that of its seeds."""
    from minimal.data import corpora, packing

    model, tok = loaded(result)
    run = result["run"]
    corpus = corpora.find(run["corpus"])
    held = packing.pack(corpus, tok, model.config.context)
    losses = []
    with torch.no_grad():
        for ids, targets in held.valid(at_once, run["rows"]):
            logits = model(ids).float()  # (B, T, V)
            losses.append(round(F.cross_entropy(logits.mT, targets).item(), 4))
    return dict(held_out=losses)


def size_of(x):
    """Root of the mean square of all numbers."""
    return x.float().square().mean().sqrt().item()


def layer_shares(result):
    """How much of every layer's output is attention's? Over 16 held-out texts, by layer:

    value   the size of the values as they arrive: gain times rows. A gain alone says little, since
            a table with large rows and a small gain is a table with small rows and a large one
    share   |attention's output| / (|attention's output| + |stream that it is added to|)
    """
    model, ids = trained(result)
    with torch.no_grad():
        tape = observe(model, ids)
        found = dict(value={}, share={})
        for at, block in enumerate(model.blocks):
            if block.attention is None:
                continue
            # values, as large as their gain makes them
            value = tape.values[at]
            v = value.dense()  # (B, T, G, D)
            found["value"][at] = size_of(v if value.gain is None else value.gain * v)
            # attention's output beside the stream
            branch = size_of(block.attention.out(tape.out[at].flatten(2)))
            found["share"][at] = branch / (branch + size_of(tape.streams[at]))
    return {name: {at: round(x, 4) for at, x in by.items()} for name, by in found.items()}


def gain_study(result):
    """Did a learned gain close its layer? Its largest value, and what is left of the layer."""
    return largest_coefficients(result) | layer_shares(result)


def token_left(result):
    """How much of the token is left in the stream that enters each block, and the head: its mean
    cosine with x0 over 16 held-out texts."""
    model, ids = trained(result)
    streams = observe(model, ids).streams
    cosines = [F.cosine_similarity(x, streams[0], dim=-1).mean().item() for x in streams]
    return dict(token_left=[round(cosine, 4) for cosine in cosines])


def own_mixture(result):
    """The loss of the held-out rows, and what query, key and value mix each for itself."""
    return held_out(result) | doors.mixtures(*trained(result))
