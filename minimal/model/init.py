"""How does every tensor start, and which role does it have? One table of inits, one random stream a name."""

import hashlib
import math

import torch

from minimal.model.layers import Coefficient, Embedding, Linear, Norm, norm

KINDS = dict(
    matrix="matrix",
    up="matrix",
    out="matrix",
    zero="matrix",
    gate="gate",
    head="head",
    smear="smear",
)


def role_of(module, leaf):
    if isinstance(module, Linear):
        return "bias" if leaf == "bias" else KINDS[module.kind]
    if isinstance(module, (Coefficient, Embedding)):
        return module.role
    if isinstance(module, Norm):
        return "norm" if leaf == "weight" else "bias"
    raise TypeError(f"{type(module).__name__}.{leaf} has no role: give it one in role_of")


def uniform(std):
    return lambda t, g: t.uniform_(-math.sqrt(3) * std, math.sqrt(3) * std, generator=g)


def normal(std):
    return lambda t, g: t.normal_(0, std, generator=g)


def zero(t, g):
    return t.zero_()


# kind of tensor -> how it starts, by style family; `n` is the fan-in. Zero W_O makes every plan equal at step 0.
INITS = dict(
    nanochat=dict(
        embed=lambda n: normal(0.8),
        head=lambda n: normal(0.001),
        matrix=lambda n: uniform(n**-0.5),
        up=lambda n: uniform(0.4 * n**-0.5),
        out=lambda n: zero,
    ),
    modded=dict(
        embed=lambda n: normal(1.0),
        head=lambda n: zero,
        matrix=lambda n: uniform(0.5 * n**-0.5),
        up=lambda n: uniform(0.5 * n**-0.5),
        out=lambda n: zero,
    ),
    normal=dict(
        embed=lambda n: normal(0.02),
        head=lambda n: normal(0.02),
        matrix=lambda n: normal(0.02),
        up=lambda n: normal(0.02),
        out=lambda n: normal(0.02),
    ),
)

INITS["fan-in"] = INITS["normal"] | dict.fromkeys(
    ("matrix", "up", "out"), lambda n: normal(n**-0.5)
)

EVERYWHERE = dict(
    position=lambda n: normal(0.02),
    gate=lambda n: lambda t, g: t.uniform_(0, 0.02, generator=g),
    smear=lambda n: lambda t, g: t.uniform_(0, 0.02, generator=g),
    zero=lambda n: zero,
    uniform=lambda n: uniform(n**-0.5),
    normal=lambda n: normal(1.0),
)


@torch.no_grad()
def init(model, seed=0):
    """Fill every parameter by its name's own random stream; raise on one that nobody filled.

    Because streams go by name, two plans with one seed share every matrix that both have, and an aligned table equals
    norm(x0) W_V with exactly the W_V that the x0 variant would hold."""
    table = INITS[model.config.manners.init] | EVERYWHERE
    for parameter in model.parameters():
        parameter.fill_(float("nan"))
    for module in model.modules():
        if isinstance(module, Linear):
            table[module.kind](module.weight.shape[1])(module.weight, generator(seed, module.key))
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, Norm):
            module.weight.fill_(1.0)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, Coefficient):
            module.value.copy_(torch.tensor(module.start).expand(module.value.shape))
        elif isinstance(module, Embedding) and module.start == "aligned":
            align(model, module, table, seed)
        elif isinstance(module, Embedding):
            kind = "position" if module.role == "position" else module.start
            key = module.key if module.role != "table" else f"table {module.key}"
            table[kind](model.config.width)(module.weight, generator(seed, key))
    unfilled = [name for name, p in model.named_parameters() if p.isnan().any()]
    if unfilled:
        raise RuntimeError(f"no init for {', '.join(unfilled)}: give the kind a row in INITS")
    return model


def align(model, bank, table, seed):
    """Bank of Values' start: row t = norm(embedding of t) W_V, so the first pass equals the x0 variant's."""
    g, d = bank.weight.shape[-2:]
    w_v = table["matrix"](model.config.width)(
        torch.empty(g * d, model.config.width), generator(seed, bank.key)
    )
    embed = table["embed"](model.config.width)(
        torch.empty(model.embed.weight.shape), generator(seed, model.embed.key)
    )
    rows = (norm(embed) @ w_v.T).unflatten(-1, (g, d))  # (V, G, D)
    bank.weight.copy_(norm(rows) if model.config.manners.value_norm else rows)


def generator(seed, key):
    """A random stream for (seed, key): the same key gets the same numbers whatever else the model holds."""
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
