"""What passes of a value: its number, or the gradient's way home? Controls of ResFormer's.

They are twists of plans: "standard/v1-gradient" is half V, half V1 (or x0 W_V), of which one half
alone passes. Where this file is imported, plans may be named so."""

from functools import partial

from minimal.model.layers import norm
from minimal.model.pieces import mixed_with
from minimal.model.plan import after_first, place
from minimal.model.values import Input, Layer
from minimal.variants import TWISTS


class Detached(Layer):
    """V_j as a term of a mixture, with the gradient's short way home cut: a control of ResFormer's,
    which has its numbers and not its way for gradients."""

    def rows(self, h, at, tape):
        return super().rows(h, at, tape).detach()


# what passes of a value: its number, the gradient's way home, or neither; or another text's number
PASSES = dict(
    both=lambda x: x,
    forward=lambda x: x.detach(),
    gradient=lambda x: x - x.detach(),  # straight through: zero, with the gradient of x
    neither=lambda x: 0 * x.detach(),
    other=lambda x: x.roll(1, 0).detach(),  # of the text beside it in the batch
)


class PassedLayer(Layer):
    """V_j as a term of a mixture, of which `passes` comes through: a control of ResFormer's."""

    def __init__(self, j, passes, **where):
        super().__init__(j, **where)
        self.passes = passes

    def rows(self, h, at, tape):
        return PASSES[self.passes](super().rows(h, at, tape))


class PassedInput(Input):
    """norm(x0) W_V as a term of a mixture, where `passes` comes through of x0 itself."""

    def __init__(self, passes, **where):
        super().__init__(**where)
        self.passes = passes

    def rows(self, h, at, tape):
        return self.through(PASSES[self.passes](norm(tape.x0)))


DETACHED = mixed_with(partial(Detached, 0), 0.5, 0.5)
PASSED = {f"v1-{way}": mixed_with(partial(PassedLayer, 0, way), 0.5, 0.5) for way in PASSES}
PASSED |= {f"x0-{way}": mixed_with(partial(PassedInput, way), 0.5, 0.5, tie=True) for way in PASSES}

for _name, _value in dict(detached=DETACHED, **PASSED).items():
    TWISTS[_name] = dict(line=place(after_first, value=_value))
