"""What came of the frontier of the value path, beside what was foretold?

python -m evidence.research.value_path_came
"""

import sys

from evidence.research import asked
from evidence.research.value_path import LEADS_FORETOLD
from minimal.command import command


def lead_that_came(told):
    """A lead in words, once the grid of its question and text is whole."""
    if told.text not in asked.texts(told.question):
        return "open, the grid is not whole"
    row = asked.lead(told.question, told.text, told.cell, told.over)
    return asked.came_between(row, told.low, told.high)


@command("evidence.research.value_path_came", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    for told in LEADS_FORETOLD:
        said = f"{told.text:6}{told.cell} over {told.over}: {told.low:+.3f} to {told.high:+.3f}"
        print(f"{said}   {lead_that_came(told)}")


if __name__ == "__main__":
    sys.exit(main())
