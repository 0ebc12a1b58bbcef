"""Import this before Triton: its first import decides whether its language is interpreted.

Whichever folder of tests comes first, kernels or homework, kernels run in the interpreter.
"""

import os
import sys

import torch

from course import interpreter

INHERITED = os.environ.get("TRITON_INTERPRET")
if "triton" not in sys.modules and sys.platform == "linux":
    os.environ["TRITON_INTERPRET"] = "1"
    from evidence.bench import gpu  # noqa: F401
    from minimal.kernels import backward, decode, fused, route  # noqa: F401 all files with kernels

    if route.HAS_TRITON:  # the first launch imports the rest of it
        interpreter.quicker()
        order = fused.sort_ids(torch.zeros(1, 1).int(), 1)
        backward.run_sum_by_token(torch.ones(1, 1, 1, 32), order, torch.ones(1, 1, 32))
    if INHERITED is None:  # other tests, and the processes that they start, go on without it
        del os.environ["TRITON_INTERPRET"]
