"""How does a gradient become a step? Muon for matrices, AdamW for the rest; recipes.py says which, and how fast."""

import torch

from minimal.training import recipes

# Five odd polynomials whose composition sends every singular value near 1 (Polar Express, as in nanochat).
POLAR_EXPRESS = (
    (8.15655, -22.48329, 15.87877),
    (4.04293, -2.80892, 0.500018),
    (3.89167, -2.77248, 0.506065),
    (3.28575, -2.36813, 0.464490),
    (2.34654, -1.70978, 0.423236),
)

STACK = dict(
    cpu=2**17
)  # numbers in one stack: half a megabyte stays in a core's cache; elsewhere no limit


def size(matrix):
    """The Frobenius norm of every matrix of a stack."""
    return matrix.norm(dim=(-2, -1), keepdim=True)  # (N, 1, 1)


def orthogonal(matrix):
    """The same directions with every singular value near 1: those above a thousandth of the norm end in 0.86 to 1.14.

    x <- a x + x (b A + c A^2) five times, with A = x'x on the short side, for a stack of matrices (N, rows, columns).
    """
    x = matrix / (1.01 * size(matrix) + 1e-6)  # (N, rows, columns)
    tall, exact = x.size(-2) > x.size(-1), x.dtype != torch.bfloat16
    if exact and max(x.shape[-2:]) > 1.5 * min(x.shape[-2:]):
        return x @ short_side(x.mT @ x) if tall else short_side(x @ x.mT) @ x
    for a, b, c in POLAR_EXPRESS:
        gram = x.mT @ x if tall else x @ x.mT  # (N, short, short)
        mix = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)  # (N, short, short)
        x = torch.baddbmm(x, x, mix, beta=a) if tall else torch.baddbmm(x, mix, x, beta=a)
    return x


def short_side(gram):
    """The same five polynomials as one factor, made from A alone: A <- m A m and factor <- factor m, m = a + b A + c A^2.

    The long side is then touched twice instead of ten times: 1.7 times faster for an MLP's matrices, equal to 1e-4 in
    fp32. Not for bf16, where A has lost the small singular values before the first step.
    """
    factor = torch.eye(gram.size(-1), dtype=gram.dtype, device=gram.device).expand_as(gram)
    for a, b, c in POLAR_EXPRESS:
        mix = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)  # (N, short, short)
        factor = torch.baddbmm(factor, factor, mix, beta=a)
        half = torch.baddbmm(gram, gram, mix, beta=a)
        gram = torch.baddbmm(half, half, mix, beta=a)
    return factor


def muon(
    p, grad, buffer, second, lr, momentum, decay, beta2=0.9, cautious=True, dtype=torch.float32
):
    """One step for a stack of equal shapes (N, rows, columns): new matrices, buffer and second moment; its inputs stay.

    Nesterov momentum, orthogonalised, evened out along the long side (NorMuon), then cautious decay. `lr` already
    carries the shape factor. beta2=None leaves out the second moment.
    """
    buffer = buffer.lerp(grad, 1 - momentum)
    update = orthogonal(grad.lerp(buffer, momentum).to(dtype)).to(p.dtype)
    if beta2 is not None:
        short = -1 if p.size(-2) >= p.size(-1) else -2
        squares = update.square().mean(short, keepdim=True)  # (N, rows, 1) or (N, 1, columns)
        second = second.lerp(squares, 1 - beta2)
        even = second.clamp_min(1e-10).rsqrt()
        kept = squares.sum((-2, -1), keepdim=True) / (squares * even * even).sum(
            (-2, -1), keepdim=True
        ).clamp_min(1e-20)
        update = update * (even * kept.sqrt())  # evened out, its norm unchanged
    shrink = p * (update * p >= 0) if cautious else p
    return p - lr * (update + decay * shrink), buffer, second


class Stack:
    """Matrices of one shape under one row, with momentum (N, rows, columns) and a second moment
    for every row, or for every column of wide ones: (N, rows, 1) or (N, 1, columns)."""

    def __init__(self, named, row):
        self.named, self.row = named, row
        count, first = len(named), next(iter(named.values()))
        (rows, columns), device = first.shape, first.device
        self.shape_factor = max(1, rows / columns) ** 0.5
        self.decay = row.decay if row.shaped_decay else row.decay / self.shape_factor
        self.buffer = torch.zeros(count, rows, columns, device=device)
        self.second = self.buffer.new_zeros(
            count, *((rows, 1) if rows >= columns else (1, columns))
        )

    def state(self):
        return {
            f"{name}/{key}": whole[i]
            for i, name in enumerate(self.named)
            for key, whole in (("buffer", self.buffer), ("second", self.second))
        }


class Dense:
    """Parameters under one AdamW row, through torch's fused kernel (3.4 times the speed of the plain one on a CPU)."""

    def __init__(self, named, row):
        self.named, self.row = named, row
        self.adamw = torch.optim.AdamW(
            named.values(), row.lr, row.betas, row.eps, row.decay, fused=True
        )
        for p in named.values():
            self.adamw.state[p] = dict(
                step=torch.zeros((), device=p.device),
                exp_avg=torch.zeros_like(p),
                exp_avg_sq=torch.zeros_like(p),
            )

    def step(self, multiplier):
        self.adamw.param_groups[0]["lr"] = self.row.lr * multiplier
        self.adamw.step()

    def state(self):
        return {
            f"{name}/{key}": value
            for name, p in self.named.items()
            for key, value in self.adamw.state[p].items()
        }


@torch.no_grad()
def muon_step(stacks, lrs, momentum, decays):
    """All stacks in turn: a plain loop on a CPU, one compiled graph on a GPU (its rates are then 0-D tensors)."""
    for stack, lr, decay in zip(stacks, lrs, decays):
        params = list(stack.named.values())
        p = torch.stack(params).float()  # (N, rows, columns)
        grad = torch.stack([q.grad for q in params]).float()  # (N, rows, columns)
        p, buffer, second = muon(
            p,
            grad,
            stack.buffer,
            stack.second,
            lr,
            momentum,
            decay,
            stack.row.betas[1],
            stack.row.cautious,
            torch.bfloat16 if p.is_cuda else torch.float32,
        )
        stack.buffer.copy_(buffer)
        stack.second.copy_(second)
        for old, new in zip(params, p.unbind()):
            old.copy_(new)


class Optimizer:
    """Every parameter that wants a gradient is treated by the row of its role, at the speed of the recipe's schedules.

    A step is a function of gradients, state and the step's number: nothing here counts, so a resumed run is exact.
    `lr` moves the matrices' rate and all others along. `backend` compiles Muon's step (None: no; it pays on GPUs).
    """

    def __init__(
        self, model, recipe="course", *, batch_tokens, steps, scale="paper", lr=None, backend="auto"
    ):
        self.recipe, self.steps = carried(recipe, model, batch_tokens, scale, lr), steps
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        rows = rows_by_name(self.recipe, model.roles(), self.named)
        self.dense = [Dense(group, row) for row, group in groups(rows, self.named, "adamw")]
        self.stacks = [Stack(group, row) for row, group in groups(rows, self.named, "muon")]
        cuda = any(p.is_cuda for p in self.named.values())
        self.tensors = bool(backend) if backend != "auto" else cuda
        compiled = "inductor" if backend == "auto" else backend
        self.muon_step = muon_step
        if self.tensors:
            self.muon_step = torch.compile(
                muon_step, backend=compiled, dynamic=False, fullgraph=True
            )

    def step(self, step):
        """One update from every p.grad, which is then cleared."""
        recipe, number = self.recipe, torch.tensor if self.tensors else float
        for name in (
            name for stack in self.stacks for name in stack.named if self.named[name].grad is None
        ):
            raise ValueError(
                f"Muon wanted a gradient for {name}, and the backward pass left none: use the matrix in "
                "the forward pass, or freeze it (requires_grad = False) before making the optimizer"
            )
        if recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.named.values(), recipe.clip)
        multiplier, decay = recipe.lr(step, self.steps), recipe.muon_decay(step, self.steps)
        for part in self.dense:
            part.step(multiplier)
        self.muon_step(
            self.stacks,
            [number(s.row.lr * s.shape_factor * multiplier) for s in self.stacks],
            number(recipe.momentum(step, self.steps)),
            [number(s.decay * decay) for s in self.stacks],
        )
        for p in self.named.values():
            p.grad = None

    def live_state(self):
        return {
            key: value
            for part in (*self.dense, *self.stacks)
            for key, value in part.state().items()
        }

    def state_dict(self):
        """A flat dict of tensors by "parameter/key", one entry a matrix however they were stacked."""
        return {key: value.clone() for key, value in self.live_state().items()}

    def load_state_dict(self, state):
        live = self.live_state()
        odd = sorted(live.keys() ^ state.keys()) or [
            key for key in live if live[key].shape != state[key].shape
        ]
        if odd:
            raise ValueError(
                f"this optimizer state belongs to another model or recipe: {len(odd)} entries differ, "
                f"first {odd[0]}; load it with the plan, size and recipe that wrote it"
            )
        for key, value in live.items():
            value.copy_(state[key])


def carried(recipe, model, batch_tokens, scale="paper", lr=None):
    """The named recipe in numbers for this model, by the size of the standard plan, so that all plans learn alike."""
    recipe, config, roles = recipes.named(recipe), model.config, model.roles()
    head = sum(p.numel() for name, p in model.named_parameters() if roles[name] == "head")
    parameters = 12 * config.layers * config.width**2 + head
    recipe = recipes.scaled(recipes.SCALES[scale](recipe), config.width, batch_tokens, parameters)
    return recipe if lr is None else recipe.at(lr)


def rows_by_name(recipe, roles, named):
    """The row of every parameter. Matrices inside an MLP are a role of their own: modded-nanogpt decays them twice."""
    rows = {}
    for name, p in named.items():
        role = "mlp" if roles[name] == "matrix" and ".mlp." in name else roles[name]
        if role not in recipe.rows:
            raise ValueError(
                f"{name} has the role {role!r}, for which this recipe has no row: "
                "add one to its table in recipes.py"
            )
        rows[name] = recipe.rows[role]
        if rows[name].algorithm == "muon" and p.ndim != 2:
            raise ValueError(
                f"Muon takes matrices, and {name} has shape {tuple(p.shape)}: "
                f"give {role!r} an AdamW row"
            )
    return rows


def groups(rows, named, algorithm):
    """(row, {name: parameter}) for every row of this algorithm; Muon's share a shape and, on a CPU, fit its cache."""
    found = {}
    for name, row in rows.items():
        if row.algorithm == algorithm:
            found.setdefault((row, named[name].shape if algorithm == "muon" else None), []).append(
                name
            )
    for (row, shape), names in found.items():
        limit = STACK.get(named[names[0]].device.type) if shape else None
        count = max(1, limit // shape.numel()) if limit else len(names)
        for first in range(0, len(names), count):
            yield row, {name: named[name] for name in names[first : first + count]}
