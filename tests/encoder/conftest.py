"""Models of 32 to 64 are slower on two threads than on one."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
