"""Notebook 02, solved."""

import torch


def norm(x):
    eps = torch.finfo(x.dtype).eps
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()  # (…, C)


def mlp(self, h):
    return self.down(self.up(h).relu().square())


def forward(self, ids):
    x = norm(self.embed(ids))  # (B, T, C): the stream begins
    v1 = None  # the first layer's values
    for n, layer in enumerate(self.layers):
        h = norm(x)  # (B, T, C): what the layer reads
        v = self.value(n, h, v1, ids)  # (B, T, C)
        v1 = v if n == 0 else v1
        x = x + layer.attention(h, v)
        x = x + layer.mlp(norm(x))
    return self.scores(x)


def training(model, optimizer, batches):
    losses = []
    for ids, targets in batches:
        loss = model.loss(ids, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def adamw_step(p, g, m, s, step, lr=0.01, betas=(0.8, 0.95), eps=1e-10, decay=0.1):
    # both running means
    m = betas[0] * m + (1 - betas[0]) * g
    s = betas[1] * s + (1 - betas[1]) * g * g
    # corrected for their start at zero
    mean = m / (1 - betas[0] ** step)
    square = s / (1 - betas[1] ** step)
    # the pull goes past both
    return p * (1 - lr * decay) - lr * mean / (square.sqrt() + eps), m, s


def orthogonal(G, rounds):
    X = G / (1.01 * G.norm() + 1e-6)  # (rows, columns), no singular value above 1
    for a, b, c in rounds:
        A = X @ X.T  # (rows, rows)
        X = a * X + (b * A + c * A @ A) @ X
    return X


def learning_rate(step, steps, warmup, falls=0.65, start=0.025, end=0.05):
    begin = steps - round(falls * steps)
    if step < warmup:
        return start + (1 - start) * step / warmup
    if step <= begin:
        return 1.0
    return 1 + (end - 1) * (step - begin) / (steps - begin)


def value(self, n, h, v1, ids):
    v = self.layers[n].value(h)  # (B, T, C): what the layer makes itself
    return v if n == 0 else (v + v1) / 2
