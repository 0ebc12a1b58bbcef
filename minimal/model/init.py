"""How does every tensor start, and which role does it have? One table of inits, by style.

Every tensor of the course and its start; n is its fan-in, U(s) uniform with standard deviation s:

    tensor                                  nanochat     modded      llama, gpt2, bert   fan-in
    embed      token embedding              N(0.8)       N(1)        N(0.02)             N(0.02)
    head       scores over the vocabulary   N(0.001)     0           N(0.02)             N(0.02)
    matrix     W_Q, W_K, W_V                U(n^-½)      U(½ n^-½)   N(0.02)             N(n^-½)
    up         first matrix of the MLP      U(0.4 n^-½)  U(½ n^-½)   N(0.02)             N(n^-½)
    out        W_O, last matrix of the MLP  0            0           N(0.02)             N(n^-½)

In every style: learned positions N(0.02); gates and smear between 0 and 0.02; routers (zero) 0;
tables "aligned" (norm(embed) W_V, as the matrix would be), "uniform" U(n^-½) or "normal" N(1), with
n the width; weights of norms 1, biases 0; coefficients what their plan says.
Zero W_O makes every plan equal at step 0.
"""

import hashlib
import math

import torch

from minimal.model.layers import Coefficient, Embedding, Linear, Norm, norm

# kind of tensor -> (distribution, size), or (distribution, size, "fan-in"): size n^-1/2
INITS = dict(
    nanochat=dict(
        embed=("normal", 0.8),
        head=("normal", 0.001),
        matrix=("uniform", 1.0, "fan-in"),
        up=("uniform", 0.4, "fan-in"),
        out=("zero", 0.0),
    ),
    modded=dict(
        embed=("normal", 1.0),
        head=("zero", 0.0),
        matrix=("uniform", 0.5, "fan-in"),
        up=("uniform", 0.5, "fan-in"),
        out=("zero", 0.0),
    ),
    normal=dict(
        embed=("normal", 0.02),
        head=("normal", 0.02),
        matrix=("normal", 0.02),
        up=("normal", 0.02),
        out=("normal", 0.02),
    ),
)

FAN_IN = dict.fromkeys(("matrix", "up", "out"), ("normal", 1.0, "fan-in"))

INITS["fan-in"] = INITS["normal"] | FAN_IN

EVERYWHERE = dict(
    position=("normal", 0.02),
    gate=("between", 0.02),
    smear=("between", 0.02),
    zero=("zero", 0.0),
    uniform=("uniform", 1.0, "fan-in"),
    normal=("normal", 1.0),
)

DISTRIBUTIONS = dict(
    zero=lambda t, size, g: t.zero_(),
    normal=lambda t, size, g: t.normal_(0, size, generator=g),
    uniform=lambda t, size, g: t.uniform_(-math.sqrt(3) * size, math.sqrt(3) * size, generator=g),
    between=lambda t, size, g: t.uniform_(0, size, generator=g),
)

# kind of a Linear -> the role that decides its learning rate
ROLE_OF_KIND = dict(
    matrix="matrix",
    up="matrix",
    out="matrix",
    zero="matrix",
    gate="gate",
    head="head",
    smear="smear",
)


def role_of(module, leaf):
    """The role of a module's parameter `leaf`."""
    if isinstance(module, Linear):
        return "bias" if leaf == "bias" else ROLE_OF_KIND[module.kind]
    if isinstance(module, (Coefficient, Embedding)):
        return module.role
    if isinstance(module, Norm):
        return "norm" if leaf == "weight" else "bias"
    raise TypeError(f"{type(module).__name__}.{leaf} has no role: give it one in role_of")


def start_tensor(tensor, start, fan_in, random):
    """Fill a tensor as a row of INITS says; returns it."""
    distribution, size, *rule = start
    if rule:
        size = size * fan_in**-0.5
    return DISTRIBUTIONS[distribution](tensor, size, random)


@torch.no_grad()
def init(model, seed=0):
    """Fill every parameter by its name's own random stream; raise on one that nobody filled.

    Because streams go by name, two plans with one seed share every matrix that both have, and an
    aligned table equals norm(x0) W_V with exactly the W_V that the x0 variant would hold.
    """
    starts = INITS[model.config.style.init] | EVERYWHERE
    for parameter in model.parameters():
        parameter.fill_(float("nan"))
    for module in model.modules():
        if isinstance(module, Linear):
            random = generator(seed, module.key)
            start_tensor(module.weight, starts[module.kind], module.weight.shape[1], random)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, Norm):
            module.weight.fill_(1.0)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, Coefficient):
            module.value.copy_(torch.tensor(module.start).expand(module.value.shape))
        elif isinstance(module, Embedding) and module.start == "aligned":
            align(model, module, starts, seed)
        elif isinstance(module, Embedding):
            embed(model, module, starts, seed)
    unfilled = [name for name, p in model.named_parameters() if p.isnan().any()]
    if unfilled:
        raise RuntimeError(f"no init for {', '.join(unfilled)}: give the kind a row in INITS")
    return model


def embed(model, rows, starts, seed):
    """Token embeddings, learned positions, and tables that are not aligned."""
    kind = "position" if rows.role == "position" else rows.start
    key = f"table {rows.key}" if rows.role == "table" else rows.key
    start_tensor(rows.weight, starts[kind], model.config.width, generator(seed, key))


def align(model, bank, starts, seed):
    """Bank of Values: row t = norm(embedding of t) W_V, so pass one equals the x0 variant's."""
    width = model.config.width
    g, d = bank.weight.shape[-2:]
    # the W_V and the embedding that this seed gives, whether the model holds them or not
    w_v = torch.empty(g * d, width)
    start_tensor(w_v, starts["matrix"], width, generator(seed, bank.key))
    tokens = torch.empty(model.embed.weight.shape)
    start_tensor(tokens, starts["embed"], width, generator(seed, model.embed.key))
    # a table holds what attention would have read
    rows = (norm(tokens) @ w_v.T).unflatten(-1, (g, d))  # (V, G, D)
    rows = norm(rows) if model.config.style.value_norm else rows
    # of several rows a token, all start alike
    bank.weight.copy_(rows.repeat(len(bank.weight) // len(rows), 1, 1))


def generator(seed, key):
    """A random stream for (seed, key): the same numbers whatever else the model holds."""
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
