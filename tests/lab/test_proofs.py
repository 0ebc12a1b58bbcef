"""Does `gap` see a difference that outputs alone would hide?"""

import torch

from minimal.lab.proofs import gap

x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def test_equal_functions_are_equal_in_outputs_and_gradients():
    assert gap(lambda x: x * x, lambda x: x.square(), x) < 1e-6


def test_a_difference_in_outputs_or_in_gradients_alone_is_seen():
    assert gap(lambda x: x, lambda x: x + 1, x) > 0.5
    assert gap(lambda x: x, lambda x: 2 * x - x.detach(), x) > 0.5  # outputs are equal


def test_every_input_counts():
    y = x.flip(0)
    assert gap(lambda x, y: x + y, lambda x, y: x + 2 * y - y.detach(), x, y) > 0.5
