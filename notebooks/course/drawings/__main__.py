"""Which drawings do the front pages show? Those of plans, each with its alt text.

python -m course.drawings        draw them anew into slides/figures/
"""

from course import figures
from course.drawings.canvas import Drawing
from course.drawings.moving import moving
from course.drawings.systems import systems
from course.records import CHECKOUT, recorded_runs
from course.source_map import sources_map
from minimal.command import command
from minimal.data.files import write_whole

FIVE = ("standard", "resformer", "svformer", "bov", "bypass")
NINE = ("standard", "resformer", "svformer", "row9", "bov", "vplus", "modded", "dva", "bypass")
FIRST_SHOWN = 200  # steps: before it the two curves lie on each other

MOVING_TOLD = (
    "One layer of attention as boxes and arrows, beside two curves of training loss. Queries and "
    "keys stay where they are; the thick arrow of the value leaves the hidden state and starts at "
    "the token. With it the loss on code falls below that of standard attention, from step 300 on."
)
MAP_TOLD = (
    "Every plan of the course down, twelve layers across, each cell lettered by the source of its "
    "values: the layer's hidden state, an earlier layer, x0, a table by token id or by the last n "
    "ids, a latent, all hidden states so far, a mixture, or no attention. A strip marks the layers "
    "where a row of a table joins the hidden state instead: ple and engram."
)
SHORT_TOLD = (
    "Nine systems down, twelve layers across: which layers take their values from their "
    "hidden state, an earlier layer, the token embedding, a table by token id, or a mixture."
)


def moving_arrow(columns=2):
    """Mean training loss of ten seeds, each system at its own best learning rate, on code."""
    runs = [run for run in recorded_runs() if run["grid"] == "fair_finer_code"]
    steps = [runs[0]["every"] * (i + 1) for i in range(len(runs[0]["train"]))]
    first = steps.index(FIRST_SHOWN)

    def mean(plan):
        curves = [run["train"][first:] for run in runs if run["plan"] == plan]
        return [sum(at_once) / len(curves) for at_once in zip(*curves, strict=True)]

    return moving(steps[first:], mean("standard"), mean("x0-v"), MOVING_TOLD, columns)


# a phone has the tall ones: two or five side by side would have letters of six pixels
PICTURES = {
    "moving": moving_arrow,
    "moving-tall": lambda: moving_arrow(columns=1),
    "systems": lambda: systems(*FIVE),
    "systems-tall": lambda: systems(*FIVE, columns=2),
    "sources": lambda: figures.file_bytes(sources_map(), MAP_TOLD, decimals=1),
    "sources-short": lambda: figures.file_bytes(
        sources_map(plans=list(NINE), title="Where do the values come from?"), SHORT_TOLD
    ),
}


def picture_bytes(draw):
    """A picture as the bytes of an SVG."""
    made = draw()
    return made.svg.encode() if isinstance(made, Drawing) else made


def write_pictures(pictures):
    """Each of {name: what draws it} anew, as a file that pages show."""
    for name, draw in pictures.items():
        path = CHECKOUT / "slides" / "figures" / f"{name}.svg"
        write_whole(path, picture_bytes(draw))
        print(f"drew {path.relative_to(CHECKOUT)}")


@command("course.drawings", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    write_pictures(PICTURES)


if __name__ == "__main__":
    main()
