"""Which ideas should be moved rather than read? Small pieces: sliders, a picture, a number."""

from course.movable.angles import resformer_mix, rope
from course.movable.cache import break_even_piece, cache_calculator
from course.movable.heads import attention_heads, heads_over
from course.movable.seeds import seeds_and_steps
from course.movable.sums import mixin_share, online_softmax
from course.movable.tiles import tiles

PIECES = dict(
    cache=cache_calculator,
    rope=rope,
    mix=resformer_mix,
    share=mixin_share,
    even=break_even_piece,
    softmax=online_softmax,
    tiles=tiles,
)

__all__ = ["PIECES", "attention_heads", "heads_over", "seeds_and_steps", "tiles"]
