"""Where in a figure does a shade mean a number? A page that turns dark must leave it as it is."""


def boxes(fig):
    """Panels with a picture, and their scales, in a figure that was drawn: left, top, width and
    height in per cent, with commas between the boxes."""
    found = []
    for ax in fig.axes:
        if ax.images or ax.get_label() == "<colorbar>":
            left, bottom, width, height = ax.get_position().bounds
            box = (left, 1 - bottom - height, width, height)
            found.append(" ".join(f"{100 * side:.2f}" for side in box))
    return ",".join(found)
