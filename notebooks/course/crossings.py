"""Where does one curve pass another for good? SVFormer's critical point."""

from minimal.compare.curves import relative


def critical_point(losses, baseline, window=100):
    """The step at which the smoothed relative loss turns from negative to positive for good
    (SVFormer is overtaken), or None: it never led, or it still leads."""
    curve = relative(losses, baseline, window)
    ahead = [i for i, value in enumerate(curve) if value < 0]
    if not ahead or ahead[-1] == len(curve) - 1:
        return None
    return ahead[-1] + 1 + window
