"""What does the bypass do to the variance of the values? Both sides of the report's formula."""

import torch

from minimal.model.values import Bypass


def variance_of_sum(v, r, a):
    """Both sides of Var(V + a R) = Var V + a² Var R + 2 a Cov(V, R), over all entries, in float64.

    The report prints the last term without its a, and concludes that the sum is "always ≥ Var V".
    It is less wherever Cov(V, R) < -a Var(R) / 2: for V = -relu(X), a = 1/2 a quarter is left."""
    v = v.detach().double().flatten()
    r = r.detach().double().flatten()
    covariance = ((v - v.mean()) * (r - r.mean())).mean()
    terms = dict(
        v=v.var(correction=0).item(),
        r=(a**2 * r.var(correction=0)).item(),
        cross=(2 * a * covariance).item(),
    )
    return dict(
        terms,
        left=(v + a * r).var(correction=0).item(),
        right=sum(terms.values()),
        falls=terms["r"] + terms["cross"] < 0,
    )


@torch.no_grad()
def spread(model, ids, a=0.5, act="relu", on="raw", segments=None):
    """variance_of_sum on an encoder's activations, a dict a layer: V as W_V makes it, and
    R = act(X) of the layer's input. `attended` is the variance of what the layer attends to."""
    tape = model.tape(ids)
    model.hidden(ids, tape, segments)
    rows = []
    for at in sorted(tape.raw):
        past = Bypass(act, on, config=model.config, at=at)
        added = past.rows(tape.streams[at], at, tape)  # (B, T, G, D)
        attended = tape.rows[at].double().var(correction=0).item()
        rows.append(variance_of_sum(tape.raw[at], added, a) | dict(attended=attended))
    return rows
