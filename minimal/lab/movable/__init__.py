"""Which ideas should be moved rather than read? Small pieces: sliders, a picture, a number."""

from minimal.lab.movable.angles import resformer_mix, rope
from minimal.lab.movable.cache import break_even, cache_calculator
from minimal.lab.movable.sums import mixin_share, online_softmax

PIECES = dict(
    cache=cache_calculator,
    rope=rope,
    mix=resformer_mix,
    share=mixin_share,
    even=break_even,
    softmax=online_softmax,
)
