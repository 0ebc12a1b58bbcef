"""How is a loss compiled so that it stays compiled? A limit on graphs that says when it is met."""

import torch

MOST_GRAPHS = 64  # windows that grow are constants of a graph: a run with many has a graph for each


def compiled(work, **how):
    """torch.compile with static shapes, and no silent way back to eager.

    By itself PyTorch compiles a function eight times and then runs it uncompiled without a word;
    here it compiles it for up to MOST_GRAPHS shapes and settings, and beyond them it stops."""
    torch._dynamo.config.recompile_limit = MOST_GRAPHS
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    return torch.compile(work, dynamic=False, **how)
