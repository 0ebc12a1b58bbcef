"""Is what was built by hand the same function as another? In outputs and in gradients."""

import torch
import torch.nn.functional as F

from minimal.analysis import attention_map, observe
from minimal.model.init import generator
from minimal.variants import build

SILENT = ("out.weight", "down.weight", "head.weight")  # they start at zero, or nearly


def gap(f, g, *inputs, seed=0):
    """The largest difference between f and g, in outputs and in gradients by every input.

    Two functions train alike only if both agree. The gradient from above is arbitrary, so it is
    drawn.
    """
    inputs = [x.detach().requires_grad_() for x in inputs]
    return gap_by(lambda: f(*inputs), lambda: g(*inputs), inputs, seed)


def gap_by(f, g, leaves, seed=0):
    """The same for functions without arguments, with gradients by tensors that both of them use."""
    leaves = list(leaves)
    outputs = f(), g()
    above = torch.randn(outputs[0].shape, generator=torch.Generator().manual_seed(seed))
    above = above.to(outputs[0])
    gradients = [torch.autograd.grad(y, leaves, above) for y in outputs]
    pairs = [outputs, *zip(*gradients, strict=True)]
    return max((a - b).abs().max().item() for a, b in pairs)


def say_gaps(gaps):
    """{what was compared: how far apart}, a line each."""
    for name, distance in gaps.items():
        print(f"{name:22} {distance:.1e}")


def kept_bytes(f, *inputs):
    """Bytes that f keeps for its backward pass, each storage once, the inputs not counted."""
    inputs, kept = [x.detach().requires_grad_() for x in inputs], {}

    def note(t):
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        y = f(*inputs)
    for x in inputs:
        kept.pop(x.untyped_storage().data_ptr(), None)
    del y  # it held what was counted until here, or an address might have been used twice
    return sum(kept.values())


# ---- of whole models -----------------------------------------------------------------------------


@torch.no_grad()
def wake(model, seed=0, std=0.1):
    """Random numbers for every matrix that starts at zero, or any wiring would pass a proof; by
    name, so that all plans get the same. The model itself."""
    for name, p in model.named_parameters():
        if not p.any():
            p.normal_(std=std, generator=generator(seed, name))
    return model


def logits_apart(theirs, ours, ids):
    """The largest difference of two models' logits, as a share of their spread."""
    a, b = theirs(ids), ours(ids)  # (B, T, V) each
    return ((a - b).abs().max() / a.std()).item()


def models_apart(theirs, ours, ids, targets, named=lambda model: dict(model.named_parameters())):
    """(logits, gradients): the largest difference of each, logits as a share of their spread,
    gradients of the loss by any weight as a share of the largest. `named` gives the weights of the
    first model under the names of the second."""
    weights, own = named(theirs), dict(ours.named_parameters())
    loss = lambda model: F.cross_entropy(model(ids).mT, targets)
    wanted = torch.autograd.grad(loss(theirs), list(weights.values()))
    got = torch.autograd.grad(loss(ours), [own[name] for name in weights])
    pairs = zip(wanted, got, strict=True)
    off = max((a.reshape(b.shape) - b).abs().max() for a, b in pairs)
    largest = max(a.abs().max() for a in wanted)
    return logits_apart(theirs, ours, ids), (off / largest).item()


def awake(plan, size="nano", seed=1, **changes):
    """One of minimal's models in doubles, with random numbers where it starts at zero or at what
    its plan says: a fresh model passes any test, for no layer of it has anything to say."""
    model = build(plan, size, seed=seed, **changes).eval().double()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(SILENT) or p.dim() < 2:
                p.normal_(0.0, 0.1 if p.dim() > 1 else 0.5, generator=draw)
    return model


def pair_values(model, ids, at):
    """What the tokens of one text, ids (1, T), say to each other in layer `at` of a model with
    dynamic values and one head: the map (T, S), and v_ij = v_j + qR_i * kR_j by pairs, (T, S, C).
    """
    with torch.no_grad():
        tape = observe(model, ids)
        block = model.blocks[at]
        h = block.first(tape.streams[at])  # (1, T, C)
        v = tape.raw[at].flatten(2)[0]  # (S, C)
        gate, offered = block.attention.read.query(h)[0], block.attention.read.key(h)[0]
        return attention_map(model, tape, at)[0, 0], v[None] + gate[:, None] * offered[None]
