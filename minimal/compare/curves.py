"""What do the curves of two runs say of each other?"""

import torch


def smooth(values, window=100):
    """Moving average over whole windows only: entry k is the mean of values k … k + window - 1."""
    x = torch.tensor(values, dtype=torch.float64)
    if len(x) < window:
        raise ValueError(
            f"a window of {window} does not fit into {len(x)} values: take a smaller one"
        )
    return x.unfold(0, window, 1).mean(-1).tolist()


def relative(losses, baseline, window=100):
    """Method minus baseline, step by step, smoothed: below zero the method is ahead (ResFormer,
    Fig 1)."""
    if len(losses) != len(baseline):
        raise ValueError(
            f"curves of {len(losses)} and {len(baseline)} steps cannot be subtracted: "
            "compare equal lengths"
        )
    return smooth([a - b for a, b in zip(losses, baseline)], window)
