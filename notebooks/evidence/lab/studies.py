"""What does a trained model do with its values? Studies that a grid records beside the losses."""

import torch
import torch.nn.functional as F

from evidence.lab import plans
from minimal.analysis import observe
from minimal.kernels.reference import by_definition, visible
from minimal.model.depth import Mixture

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

    return load(result["folder"], plan=plans.OURS.get(result["run"]["plan"]))


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


def mixtures(model, ids):
    """What each door mixes, by layer: the weight of x0 beside the stream's, or the share of every
    part, the embedding first, as means over held-out tokens."""
    found = {}
    with torch.no_grad():
        tape = observe(model, ids)
        for at, block in enumerate(model.blocks):
            layer = block.attention
            for name, door in (("q", layer.query), ("k", layer.key), ("v", layer.value)):
                mixture = getattr(door, "mixture", None)
                if isinstance(mixture, plans.Weighed):
                    a, b = abs(mixture.a().item()), abs(mixture.b().item())
                    found.setdefault(name, []).append(round(b / (a + b), 4))
                if isinstance(mixture, plans.Chosen):
                    shares = mixture.shares(plans.parts_of(tape, at)).mean((0, 1))
                    found.setdefault(name, []).append([round(s, 4) for s in shares.tolist()])
    return dict(mixed=found) if found else {}


def own_mixture(result):
    """The loss of the held-out rows, and what query, key and value mix each for itself."""
    return held_out(result) | mixtures(*trained(result))


def depth_study(result):
    """Which layers does a dynamic mixture take its values from? By layer, the share of every part
    in what it adds up: |a_j| times the part's size, over 16 held-out texts. Other plans: {}."""
    model, ids = trained(result)
    values = {at: block.attention.value for at, block in enumerate(model.blocks) if block.attention}
    mixtures = {at: source for at, source in values.items() if isinstance(source, Mixture)}
    if not mixtures:
        return {}
    shares = {}
    with torch.no_grad():
        tape = observe(model, ids)
        for at, source in mixtures.items():
            sizes = source.parts(tape).norm(dim=2)  # (B, T, at + 1)
            added = source.shares(tape).abs() * sizes
            mean = (added / added.sum(-1, keepdim=True)).mean((0, 1))
            shares[at] = [round(share, 4) for share in mean.tolist()]
    return dict(depth=shares)


# ---- what stands in for cross-layer attention ----------------------------------------------------


@torch.no_grad()
def across_study(model, ids):
    """How near do Eq 3 and Eq 6 come to Eq 2? Cosines by layer n >= 1 of a trained baseline.

    Eq 2 is true cross-layer attention on layer n-1, Eq 3 replaces its keys by this layer's, and
    Eq 6 adds the mean of earlier values at the same position.
    """
    tape, rows = observe(model, ids), []
    layers = sorted(tape.raw)
    for below, n in zip(layers, layers[1:]):
        how = model.blocks[n].attention.read.how(n, tape)
        q, k, v = tape.queries[n], tape.keys[n], tape.values[n].dense()
        # Eq 2: one softmax over both layers' keys
        k2, v2 = tape.keys[below], tape.values[below].dense()
        seen = visible(q.shape[1], k.shape[1], how["causal"], how["window"], device=q.device)
        mask = torch.cat([seen, seen], -1)  # (T, 2S)
        keys, values = torch.cat([k, k2], 1), torch.cat([v, v2], 1)
        eq2 = by_definition(q, keys, values, scale=how["scale"], mask=mask)
        # Eq 3: the mean of both values, through this layer's map
        eq3 = by_definition(q, k, (v + v2) / 2, **how)
        # Eq 6: all earlier values, without a map
        earlier = torch.stack([tape.raw[j] for j in layers if j < n]).mean(0)  # (B, T, G, D)
        earlier = earlier.repeat_interleave(q.shape[2] // k.shape[2], 2)
        eq6 = by_definition(q, k, v, **how) + earlier
        rows.append(dict(layer=n, eq3=cosine(eq2, eq3), eq6=cosine(eq2, eq6)))
    return rows


def cosine(a, b):
    """Mean over positions, all heads together, of a and b (B, T, H, D)."""
    return F.cosine_similarity(a.flatten(2), b.flatten(2), dim=-1).mean().item()
