"""The same kernels compiled and run where there is a GPU. All parts were equal on an H100
(notebooks/evidence/measured/gpu_session.json); on sm_80 they have not run."""

import os
import subprocess
import sys

import pytest
import torch

from minimal.kernels import route
from tests.kernels import on_gpu


@pytest.mark.skipif(
    not torch.cuda.is_available() or not route.HAS_TRITON, reason="needs a GPU and Triton"
)
@pytest.mark.parametrize("part", on_gpu.PARTS)
def test_the_compiled_kernels_equal_the_reference_on_a_gpu(part):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.on_gpu", part],
        env=clean,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("equal"), done.stderr[-3000:]
