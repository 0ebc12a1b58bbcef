"""Numbers in prose that come from the records: each carries an invisible mark that names it.

    x0 W_V in all layers leads by 0.108<!--= lead x0-v code fine --> nats.
    | x0 W_V | **+0.108** (+0.085 to +0.131)<!--= lead x0-v code fine --> |

    python -m evidence.lab.marks            renew every number whose records have moved
    python -m evidence.lab.marks --check    say which are not what the records say
    python -m evidence.lab.marks --try "lead x0-v code fine"

A mark stands behind a number, or behind a mean with its interval. What it names is a quantity
(evidence.lab.quantities). A renewed number keeps its form: its decimals, its sign or none, per
cent. In front of an interval bold says that it is clear of zero. Browsers, GitHub, JupyterLab and
the site show no comment. A number that no record has is marked `by hand`, with its source:
<!--= by hand: the paper's Table 1 -->.

The alt text of a picture of slides/figures is the one that its file holds (`make figures`). Two of
these pictures are of quantities, and move; `--draw` draws them anew.
"""

import html
import itertools
import json
import re
import sys

from course.drawings.__main__ import write_pictures
from course.drawings.moving import dose, seeds
from course.records import CHECKOUT
from evidence.lab.comparison import Lead, of_seeds
from evidence.lab.quantities import quantity
from minimal.command import command
from minimal.data.files import write_whole

NUMBER = r"[+−-]?\d[\d,]*(?:\.\d+)?|[+−-]?\.\d+"
INTERVAL = rf"(?:\*\*)?(?:{NUMBER})(?:\*\*)? \((?:{NUMBER}) to (?:{NUMBER})\)"
MARKED = re.compile(rf"({INTERVAL}|{NUMBER})(\*\*)?( ?%)?<!--= (.*?) -->")
BY_HAND = "by hand"

# what people read: pages, the front page, notebooks and decks, the pages of homework
PLACES = (
    *("README.md", "README.*.md", "notebooks/README.md", "notebooks/essay.md"),
    *("notebooks/*.ipynb", "slides/*.ipynb"),
    *("notebooks/evidence/*.md", "notebooks/evidence/questions/*.ipynb", "homework/*/README.md"),
)


# ---- one number ----------------------------------------------------------------------------------


def like(old, value):
    """A value in the form of a number that stands: "+0.108", "0.108", ".11", "1,024"."""
    decimals = len(old.partition(".")[2])
    sign = "+" if old[0] in "+−-" else ""
    new = f"{value:{sign},.{decimals}f}" if "," in old else f"{value:{sign}.{decimals}f}"
    if re.match(r"[+−-]?\.", old):
        new = new.replace("0.", ".", 1)
    return new.replace("-", "-" if old[0] == "-" else "−")


def renewed(match):
    """A marked number as the records have it now, its mark behind it."""
    old, bold, per_cent, name = match.groups()
    mark = f"{bold or ''}{per_cent or ''}<!--= {name} -->"
    if name.startswith(BY_HAND):
        return match[0]
    found = quantity(name)
    if " to " in old:
        if not isinstance(found, Lead):
            raise ValueError(f"{name!r} has no interval, but one stands before its mark: {old}")
        mean, low, high = re.findall(NUMBER, old)
        mean = like(mean, found.mean)
        bold = f"**{mean}**" if found.clear else mean
        return f"{bold} ({like(low, found.low)} to {like(high, found.high)}){mark}"
    value = found.mean if isinstance(found, Lead) else found
    if isinstance(value, str):
        raise ValueError(f"{name!r} is {value!r}, and no number")
    return like(old, 100 * value if per_cent else value) + mark


def renew(text):
    """A text whose marked numbers are what the records say."""
    return MARKED.sub(renewed, text)


# ---- alt texts -----------------------------------------------------------------------------------

FIGURES = CHECKOUT / "slides" / "figures"
SHOWN = (  # its pictures, in Markdown and in HTML
    r"!\[(?P<alt>[^\]]*)\]\([^)\s]*figures/(?P<name>[\w-]+)\.svg\)",
    r'<img src="[^"]*figures/(?P<name>[\w-]+)\.svg" alt="(?P<alt>[^"]*)">',
)


def alt_of(name):
    """The alt text that the file of a picture holds."""
    path = FIGURES / f"{name}.svg"
    if not path.exists():
        raise ValueError(f"{path.name} is shown and not there: wanted one that make figures draws")
    (told,) = re.findall("<desc>(.*?)</desc>", path.read_text(encoding="utf-8"), re.S)
    return html.unescape(told)


def alts(text):
    """(a picture as it stands, with the alt text of its file) of each that a text shows."""
    for match in (found for pattern in SHOWN for found in re.finditer(pattern, text)):
        start, end = (at - match.start() for at in match.span("alt"))
        yield match[0], match[0][:start] + alt_of(match["name"]) + match[0][end:]


# ---- the essay's pictures that move: in how many layers, and which three seeds of ten ------------

TOP_LAYERS = (2, 4, 8, 12)  # layers from the top that take their values from the token
TRIES = 6  # of all ways to choose three seeds, as many are shown

DOSE_TOLD = (
    "Twelve layers as boxes, which change from the top down: two, four, eight, all take their "
    "values from the token. Beside them the lead over standard attention on code and on a novel, "
    "with intervals. On both texts two layers have more than half of what all twelve have; on code "
    "the lead is several times that on the novel."
)
SEEDS_TOLD = (
    "The lead over standard attention from three of ten seeds, six times, and from all ten, each "
    "with its interval. On the novel most tries hold zero, though all ten seeds together are clear "
    "of it; on code every try is clear of zero."
)


def moving_dose(columns=2):
    """The leads of the question notebook "In how many layers?", one recipe, five seeds."""
    cell = lambda count: "x0-v@" + ",".join(map(str, range(12 - count, 12)))
    of = lambda text: [quantity(f"lead {cell(count)} {text} course") for count in TOP_LAYERS]
    leads = {text: of(text) for text in ("code", "novel")}
    return dose(TOP_LAYERS, leads, DOSE_TOLD, columns)


def moving_seeds(columns=2):
    """The ten seeds of the answer, three at a time: choices evenly spaced from the lowest mean to
    the highest. The lead of every seed, and the interval that these seeds alone give."""
    rows = {}
    for title, text in (("the novel", "novel"), ("code", "code")):
        by_seed = list(quantity(f"lead x0-v {text} fine").by_seed)
        tries = sorted(itertools.combinations(by_seed, 3), key=sum)
        shown = [tries[int(len(tries) * (at + 0.5) / TRIES)] for at in range(TRIES)]
        named = [*((f"try {at}", some) for at, some in enumerate(shown, 1)), ("all ten", by_seed)]
        rows[title] = [(name, of_seeds(some)) for name, some in named]
    return seeds(rows, SEEDS_TOLD, columns)


# a phone has the tall ones
MOVING = {
    "dose-moving": moving_dose,
    "dose-moving-tall": lambda: moving_dose(columns=1),
    "seeds-moving": moving_seeds,
    "seeds-moving-tall": lambda: moving_seeds(columns=1),
}


# ---- files ---------------------------------------------------------------------------------------


def texts_of(path):
    """The pieces of a file that hold prose: a page, or the Markdown cells of a notebook."""
    if path.suffix == ".md":
        return [path.read_text(encoding="utf-8")]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def marked_files():
    return sorted(path for place in PLACES for path in CHECKOUT.glob(place))


def unclosed(text):
    """Marks that stand behind no number: "12 layers <!--= … -->"."""
    return len(re.findall(r"<!--= ", text)) - len(MARKED.findall(text))


def stale(path):
    """(as it stands, as it should be) of every marked number and alt text that has moved."""
    found = []
    for text in texts_of(path):
        if unclosed(text):
            raise ValueError(f"{path.name}: a mark stands behind no number: put it next to one")
        for match in MARKED.finditer(text):
            if (new := renewed(match)) != match[0]:
                found.append((match[0], new))
        if len(path.suffixes) == 1:  # README.zh.md tells of pictures in its own language
            found += [(old, new) for old, new in alts(text) if old != new]
    return found


def write(path, changes):
    """The file with these numbers renewed, everything else as it stands, to the byte."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        if path.suffix == ".ipynb":  # as they stand within a string of JSON
            old, new = (json.dumps(part, ensure_ascii=False)[1:-1] for part in (old, new))
        text = text.replace(old, new)
    write_whole(path, text)


@command("evidence.lab.marks", __doc__)
def main(parser, argv):
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--try", dest="name", metavar="NAME", help="print one quantity")
    parser.add_argument("--draw", action="store_true", help="draw the pictures that move")
    asked = parser.parse_args(argv)
    if asked.name:
        print(quantity(asked.name))
        return
    if asked.draw:
        write_pictures(MOVING)
        return
    moved = 0
    for path in marked_files():
        changes = stale(path)
        for old, new in changes:
            print(f"{path.relative_to(CHECKOUT)}: {old} is now {new}")
        if changes and not asked.check:
            write(path, changes)
        moved += len(changes)
    if moved and asked.check:
        raise ValueError(f"{moved} numbers have moved: python -m evidence.lab.marks renews them")
    print(f"marks: {moved} renewed" if moved else "marks: every number is what the records say")


if __name__ == "__main__":
    sys.exit(main())
