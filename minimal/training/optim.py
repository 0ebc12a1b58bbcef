"""How does a gradient become a step? Optimizers: Muon for matrices, AdamW for the rest.

rows.py says which parameter is treated how, and by whom; recipes.py, how fast.
"""

import torch
from torch.optim.adamw import adamw

from minimal.training.device import compute_dtype
from minimal.training.rows import KEPT, carried, groups, owners, rows_by_name

# Five odd polynomials that together send every singular value near 1 (Polar Express, as nanochat).
POLAR_EXPRESS = (
    (8.15655, -22.48329, 15.87877),
    (4.04293, -2.80892, 0.500018),
    (3.89167, -2.77248, 0.506065),
    (3.28575, -2.36813, 0.464490),
    (2.34654, -1.70978, 0.423236),
)


def frobenius(matrix):
    """The norm of every matrix of a stack."""
    return matrix.norm(dim=(-2, -1), keepdim=True)  # (N, 1, 1)


def orthogonal(matrix):
    """The same directions, every singular value near 1, for a stack of matrices (N, rows, columns).

    Those above a thousandth of the norm end in 0.85 to 1.14. Five times x <- a x + x (b A + c A^2),
    with A = x'x on the short side.
    """
    x = matrix / (1.01 * frobenius(matrix) + 1e-6)  # (N, rows, columns)
    rows, columns = x.shape[-2:]
    tall = rows > columns
    oblong = max(rows, columns) > 1.5 * min(rows, columns)
    if oblong and x.dtype != torch.bfloat16:
        return x @ short_side(x.mT @ x) if tall else short_side(x @ x.mT) @ x
    for a, b, c in POLAR_EXPRESS:
        gram = x.mT @ x if tall else x @ x.mT  # (N, short, short)
        mix = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)  # (N, short, short)
        x = torch.baddbmm(x, x, mix, beta=a) if tall else torch.baddbmm(x, mix, x, beta=a)
    return x


def short_side(gram):
    """The same five polynomials as one factor, made from A alone.

    A <- m A m and factor <- factor m, with m = a + b A + c A^2. The long side is then touched twice
    instead of ten times: 1.7 times faster for an MLP's matrices. In fp32 the entries of a gradient
    agree to some 1e-6 with those of the plain way; of oblong matrices with a condition of 1e3, to
    3e-3. Not for bf16, where A has lost the small singular values before the first step.
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
    """One step for a stack of equal shapes (N, rows, columns) -> matrices, buffer, second moment.

    Nesterov momentum, orthogonalised, evened out along the long side (NorMuon), then decay, which
    a cautious one keeps from entries that move away from zero. `lr` already carries the shape
    factor. beta2=None leaves out the second moment. What is given stays as it is.

    Where an entry of the update is nearly zero, its sign, and so a cautious decay, is a matter of
    rounding. Five steps beside Bank of Values' code differ by up to 4e-3 of the way for this reason
    alone: without decay by 3e-5. At small widths the carried decay is hundreds of times as large,
    and so is each such entry; the gradients of gains follow.
    """
    # momentum
    buffer = buffer.lerp(grad, 1 - momentum)
    update = orthogonal(grad.lerp(buffer, momentum).to(dtype)).to(p.dtype)

    # second moment: even out rows or columns, and leave the norm unchanged
    if beta2 is not None:
        short = -1 if p.size(-2) >= p.size(-1) else -2
        squares = update.square().mean(short, keepdim=True)  # (N, rows, 1) or (N, 1, columns)
        second = second.lerp(squares, 1 - beta2)
        even = second.clamp_min(1e-10).rsqrt()
        before = squares.sum((-2, -1), keepdim=True)  # (N, 1, 1)
        after = (squares * even * even).sum((-2, -1), keepdim=True).clamp_min(1e-20)
        update = update * (even * (before / after).sqrt())

    # decay
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
        self.kind = compute_dtype(device)
        self.buffer = torch.zeros(count, rows, columns, device=device)
        long = (rows, 1) if rows >= columns else (1, columns)
        self.second = torch.zeros(count, *long, device=device)

    def state(self):
        return {
            f"{name}/{key}": whole[i]
            for i, name in enumerate(self.named)
            for key, whole in (("buffer", self.buffer), ("second", self.second))
        }


class Elementwise:
    """Parameters under one AdamW row, by torch's fused kernel: on a CPU 3.4 times as fast.

    The function alone: torch's class of that name first loads torch.compile, two seconds in which
    nothing is trained.
    """

    def __init__(self, named, row):
        self.named, self.row = named, row
        self.kept = {
            name: dict(
                step=torch.zeros((), device=p.device),
                exp_avg=torch.zeros_like(p),
                exp_avg_sq=torch.zeros_like(p),
            )
            for name, p in named.items()
        }

    @torch.no_grad()
    def step(self, rate):
        moved = {name: p for name, p in self.named.items() if p.grad is not None}
        kept = [self.kept[name] for name in moved]
        beta1, beta2 = self.row.betas
        adamw(
            list(moved.values()),
            [p.grad for p in moved.values()],
            [state["exp_avg"] for state in kept],
            [state["exp_avg_sq"] for state in kept],
            [],  # what amsgrad would keep
            [state["step"] for state in kept],
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=rate,
            weight_decay=self.row.decay,
            eps=self.row.eps,
            maximize=False,
        )

    def state(self):
        return {f"{name}/{key}": x for name, kept in self.kept.items() for key, x in kept.items()}


@torch.no_grad()
def muon_step(stacks, lrs, momentum, decays):
    """All stacks in turn: a plain loop on a CPU; on a GPU one graph, with rates as tensors."""
    for stack, lr, decay in zip(stacks, lrs, decays):
        params = list(stack.named.values())
        p = torch.stack(params).float()  # (N, rows, columns)
        grad = torch.stack([q.grad for q in params]).float()  # (N, rows, columns)
        row, state, rates = stack.row, (stack.buffer, stack.second), (lr, momentum, decay)
        p, buffer, second = muon(p, grad, *state, *rates, row.betas[1], row.cautious, stack.kind)
        stack.buffer.copy_(buffer)
        stack.second.copy_(second)
        for old, new in zip(params, p.unbind()):
            old.copy_(new)


class Optimizer:
    """Every parameter that wants a gradient is treated by the row of its role.

    A step is a function of gradients, state and the step's number: nothing here counts, so a
    resumed run is exact. `lr` moves the matrices' rate and all others along. `backend` compiles
    Muon's step (None: no; it pays on GPUs).

    In a `team` of several processes every parameter has one owner, who alone keeps its state and
    moves it, and then shares it: the state of a process is its part of the whole.
    """

    def __init__(
        self,
        model,
        recipe="course",
        *,
        batch_tokens,
        steps,
        scale="paper",
        lr=None,
        backend="auto",
        team=None,
    ):
        self.recipe, self.steps = carried(recipe, model, batch_tokens, scale, lr), steps
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.rows = rows_by_name(self.recipe, model.roles(), self.named)
        # what this process owns
        self.team = team if team and team.world > 1 else None
        self.owner = owners(self.rows, self.named, team.world) if self.team else {}
        own = self.named
        if self.team:
            own = {name: p for name, p in own.items() if self.owner[name] == team.rank}
        rows = {name: self.rows[name] for name in own}
        self.dense = [Elementwise(group, row) for row, group in groups(rows, own, "adamw")]
        self.stacks = [Stack(group, row) for row, group in groups(rows, own, "muon")]
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
        self.move(self.rates(step))

    def rates(self, step):
        """What changes with the step: the rates of the dense parts, rates and decays of the stacks,
        and Muon's momentum."""
        recipe = self.recipe
        multiplier = recipe.lr(step, self.steps)
        decay = recipe.muon_decay(step, self.steps)
        return [
            *(part.row.lr * multiplier for part in self.dense),
            *(stack.row.lr * stack.shape_factor * multiplier for stack in self.stacks),
            *(stack.decay * decay for stack in self.stacks),
            recipe.momentum(step, self.steps),
        ]

    def move(self, rates):
        """The update at these rates: numbers, or tensors of one number where it is recorded."""
        self.check_gradients()
        if self.recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.named.values(), self.recipe.clip)

        # AdamW
        some, rest = rates[: len(self.dense)], rates[len(self.dense) :]
        for part, rate in zip(self.dense, some):
            part.step(rate)

        # Muon
        if self.tensors:  # a number would be compiled anew at every step
            rest = [torch.as_tensor(rate) for rate in rest]
        count = len(self.stacks)
        self.muon_step(self.stacks, rest[:count], rest[-1], rest[count:-1])
        for p in self.named.values():
            p.grad = None
        self.share()

    @torch.no_grad()
    def share(self):
        """Every owner's parameters to all processes."""
        for rank in range(self.team.world if self.team else 0):
            theirs = [p for name, p in self.named.items() if self.owner[name] == rank]
            self.team.from_one(rank, theirs)

    def check_gradients(self):
        for stack in self.stacks:
            for name, p in stack.named.items():
                if p.grad is None:
                    raise ValueError(
                        f"Muon wanted a gradient for {name}, and the backward pass left none: use "
                        "the matrix in the forward pass, or freeze it (requires_grad = False) "
                        "before making the optimizer"
                    )

    def live_state(self):
        state = {}
        for part in (*self.dense, *self.stacks):
            state |= part.state()
        return state

    def state_dict(self):
        """A flat dict of tensors by "parameter/key", one a matrix however they were stacked.

        Several processes call it together, and the first gets the whole, the others nothing."""
        own = {key: value.clone() for key, value in self.live_state().items()}
        return self.team.union(own) if self.team else own

    def load_state_dict(self, state):
        """The whole state, of which every process takes its part."""
        live = self.live_state()
        kept = (f"{name}/{key}" for name, row in self.rows.items() for key in KEPT[row.algorithm])
        differ = sorted(set(kept) ^ state.keys())
        if not differ:
            differ = [key for key in live if live[key].shape != state[key].shape]
        if differ:
            raise ValueError(
                f"this optimizer state belongs to another model or recipe: {len(differ)} entries "
                f"differ, first {differ[0]}; load it with the plan, size and recipe that wrote it"
            )
        for key, value in live.items():
            value.copy_(state[key])
