"""What the kernels are tried on: small, odd, and with every rule about who sees whom."""

from typing import NamedTuple

import torch


class Shape(NamedTuple):
    B: int = 2
    T: int = 40
    S: int = 40
    H: int = 2
    G: int = 2
    D: int = 32
    V: int = 11
    causal: bool = True
    window: int = 0
    lengths: tuple | None = None
    gain: float | None = 0.7

    @property
    def how(self):
        lengths = None if self.lengths is None else torch.tensor(self.lengths)
        return dict(causal=self.causal, window=self.window, lengths=lengths)

    def tensors(self, dtype=torch.float32, unique=False, seed=0, grad=False):
        """[q, k, table, ids, gain]. Unique ids: every position has a row of its own, as in an
        ordinary V."""
        made = torch.Generator().manual_seed(seed)
        q, k, table = (
            torch.randn(*size, generator=made).to(dtype).requires_grad_(grad)
            for size in (
                (self.B, self.T, self.H, self.D),
                (self.B, self.S, self.G, self.D),
                (self.V, self.G, self.D),
            )
        )
        ids = torch.randint(self.V, (self.B, self.S), generator=made, dtype=torch.int32)
        if unique:
            ids = (
                torch.randperm(self.V, generator=made)[: self.B * self.S].view(self.B, self.S).int()
            )
        gain = None if self.gain is None else torch.tensor(self.gain, requires_grad=grad)
        return [q, k, table, ids, gain]


TRAINING = dict(
    plain=Shape(),
    one_tile=Shape(T=32, S=32),
    odd=Shape(B=1, T=65, S=65, D=64),
    one_token=Shape(B=3, T=1, S=1),
    grouped=Shape(H=6, G=2, T=37, S=37),
    one_key_head=Shape(H=4, G=1, T=33, S=33),
    window=Shape(T=100, S=100, B=1, window=17),
    window_of_one=Shape(T=45, S=45, B=1, window=1),
    window_of_all=Shape(T=45, S=45, B=1, window=45),
    grouped_window=Shape(T=70, S=70, B=1, H=4, G=2, window=32),
    everyone_sees_all=Shape(causal=False, T=35, S=50),
    window_without_causal=Shape(causal=False, T=50, S=50, window=9),
    longer_past=Shape(T=20, S=83),
    more_queries_than_keys=Shape(T=50, S=20),
    many_more_queries_than_keys=Shape(
        T=100, S=20
    ),  # whole tiles of queries stand before position 0
    tiles_before_a_short_sequence=Shape(T=100, S=130, lengths=(10, 130)),
    tiles_before_it_with_a_window=Shape(T=100, S=130, lengths=(10, 130), window=9),
    padded=Shape(B=3, T=40, S=40, lengths=(40, 1, 23)),
    an_empty_sequence=Shape(T=40, S=40, lengths=(0, 40)),
    padded_window=Shape(T=70, S=70, lengths=(70, 12), window=8),
    ragged=Shape(B=3, T=5, S=60, lengths=(60, 33, 2)),
    gain_zero=Shape(gain=0.0),
    gain_negative=Shape(gain=-1.3),
    no_gain=Shape(gain=None),
    one_word=Shape(V=1),
)
DECODING = dict(
    plain=Shape(T=1, S=97),
    grouped=Shape(T=1, S=70, H=8, G=2, gain=-1.3),
    one_key_head=Shape(T=1, S=65, H=5, G=1),
    wide=Shape(T=1, S=64, D=128, gain=None),
    window=Shape(T=1, S=150, window=40),
    several_queries=Shape(T=5, S=77, H=4, G=2),
    several_queries_window=Shape(T=3, S=90, H=4, G=2, window=13),
    without_causal=Shape(T=4, S=50, causal=False),
    ragged=Shape(B=4, T=1, S=100, lengths=(100, 1, 64, 33)),
    ragged_window=Shape(B=3, T=2, S=100, lengths=(100, 7, 64), window=20),
    an_empty_sequence=Shape(B=2, T=1, S=50, lengths=(0, 50)),
    shorter_than_its_queries=Shape(B=2, T=4, S=50, lengths=(2, 50)),
    one_key=Shape(T=1, S=1),
    many_words=Shape(T=1, S=40, V=1000),
    gain_zero=Shape(T=1, S=40, gain=0.0),
)
