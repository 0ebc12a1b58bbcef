"""Which figures may turn dark with the page? Those in which no shade of grey means a number.

A heat map says "dark is large". Turned round it would say the opposite of the text beside it. So
its paper and letters turn, and its shades stay; where it does not say where they are, all of it
keeps its paper.
"""

import base64
import io
import re

from matplotlib import image

MOST_GREY = 0.04  # of the area: letters and lines have 2 % at most, heat maps 7 % at least
PLAIN_PNG = re.compile(r'<img (?![^>]*data-shades)(?=[^>]*src="data:image/png;base64,([^"]*)")')
SHADES = re.compile(r'<img [^>]*data-shades="([^"]*)"[^>]*>')


def turned(body):
    """The body, its drawings of lines marked for the style sheet."""
    mark = '<img class="lines-only" '
    body = PLAIN_PNG.sub(lambda match: match[0] if shaded(match[1]) else mark, body)
    return SHADES.sub(turned_around, body)


def turned_around(match):
    """A heat map, and over each of its shades a box that the style sheet turns back."""
    boxes = ""
    for box in match[1].split(","):
        sides = zip(("left", "top", "width", "height"), box.split())
        place = ";".join(f"{side}:{percent}%" for side, percent in sides)
        boxes += f'<span style="{place}"></span>'
    look = re.search(r' style="([^"]*)"', match[0])
    style = look[0] if look else ""
    image = match[0].replace(style, "")
    return f'<span class="shades"{style}>{image}<span class="boxes">{boxes}</span></span>'


def shaded(data):
    """Does a picture have areas of grey?"""
    pixels = image.imread(io.BytesIO(base64.b64decode(data)))[..., :3]  # (height, width, 3)
    spread = pixels.max(-1) - pixels.min(-1)
    level = pixels.mean(-1)
    grey = (spread < 0.02) & (level > 0.15) & (level < 0.85)
    return grey.mean() > MOST_GREY
