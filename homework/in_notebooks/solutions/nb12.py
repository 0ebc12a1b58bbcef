"""Notebook 12, solved."""

import itertools

import torch


def z_of(new, new_error, old, old_error):
    error = (new_error**2 + old_error**2).sqrt()  # (n,): of the difference
    return (new - old) / error


def paired_interval(plan, baseline, t):
    d = baseline - plan  # (n,)
    mean = d.mean().item()
    reach = t * d.std().item() / len(d) ** 0.5  # std divides by n - 1
    return mean, mean - reach, mean + reach


def sign_flips(d):
    patterns = torch.tensor(list(itertools.product([1, -1], repeat=len(d))))  # (2^n, n)
    sums = patterns.to(d) @ d  # (2^n,)
    as_far = sums.abs() >= d.sum().abs() * (1 - 1e-6)
    return as_far.double().mean().item()


def holm(p):
    order = p.argsort()
    times = torch.arange(len(p), 0, -1)  # (m,): m for the smallest, 1 for the largest
    corrected = (p[order] * times).cummax(0).values.clamp(max=1)
    out = torch.empty_like(p)
    out[order] = corrected
    return out
