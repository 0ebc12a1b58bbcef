"""How few bytes can a figure's SVG have, and show the same? What Matplotlib repeats stands once.

A map of 70 plans has 1,400 cells and as many letters: each brings a style of 100 bytes, the names
of five fonts, a group of its own, and places to a millionth of a point.
"""

import re
from collections import Counter

# as the site has it, then as Matplotlib measured it
FAMILIES = '"Source Sans 3", "DejaVu Sans", Verdana, sans-serif'

FONTS = re.compile(r" ?font-family: [^;]*;")
NO_TURN = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
OWN_GROUP = re.compile(  # around one element
    r'<g id="[^"]*">\s*(<(?:path|text)\b[^<>]*(?:/>|>[^<]*</text>))\s*</g>'
)
PLACES = re.compile(r'(?<= )(?:d|points|x|y|x1|x2|y1|y2|cx|cy|width|height|transform)="[^"]*"')
STYLED = re.compile(r' style="([^"]*)"')
OFTEN = 3  # times: then a class is shorter
LONG = re.compile(r'<path d="([^"]{300,})"')  # the dots of a hatch: 80,000 bytes, for each edge


def slim(svg, decimals=2):
    """The same picture: places to so many decimals, every style once, letters as letters."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = NO_TURN.sub("", FONTS.sub("", svg))
    svg = PLACES.sub(lambda found: shorter(found[0], decimals), svg)
    svg = OWN_GROUP.sub(r"\1", svg)
    svg = once(svg)
    svg, classes = classed(svg)
    rules = "".join(f".{name}{{{style}}}\n" for style, name in classes.items())
    svg = svg.replace(
        "</style>", f"\ntext{{font-family:{FAMILIES};white-space:pre}}\n{rules}</style>", 1
    )
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


def shorter(places, decimals):
    """One attribute in one line, its numbers rounded; a scale stays as it is."""
    if "scale" in places or "matrix" in places:
        return places
    places = re.sub(r"\s+", " ", places)
    places = re.sub(r'(?<=[MLCQ]) | (?=[MLCQz"])', "", places)
    return re.sub(r"-?\d+\.\d+", lambda number: rounded(number[0], decimals), places)


def rounded(number, decimals):
    return f"{float(number):.{decimals}f}".rstrip("0").rstrip(".")


def once(svg):
    """A long way that is drawn again is drawn by its name."""
    counted = Counter(LONG.findall(svg))
    again = {way: f"w{at}" for at, way in enumerate(counted) if counted[way] > 1}
    ways = "".join(f'<path id="{name}" d="{way}"/>\n' for way, name in again.items())
    named = lambda found: f'<use xlink:href="#{again[found[1]]}"' if found[1] in again else found[0]
    return LONG.sub(named, svg).replace("<defs>", f"<defs>\n{ways}", 1)


def classed(svg):
    """Styles that come often as classes: the picture, and {style: class}."""
    counted = Counter(STYLED.findall(svg))
    often = [style for style, count in counted.most_common() if count > OFTEN]
    classes = {style: f"s{at}" for at, style in enumerate(often)}

    def turn(found):
        return f' class="{classes[found[1]]}"' if found[1] in classes else found[0]

    return STYLED.sub(turn, svg), classes
