"""How do I start a unit over? `python -m homework.reset hw03` writes the stub into work/ again, and
keeps your file beside it."""

import itertools
import os

from homework.marking import find
from minimal.command import command
from minimal.data import files


def reset(unit):
    """The stub in the place of the learner's file. Where that has gone, NAME.mine-1.py, -2, …, or
    None: it may have been anything, and is never read as text."""
    path, kept = unit.path, None
    if unit.is_untouched():
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        names = (f"{path.stem}.mine-{number}.py" for number in itertools.count(1))
        kept = files.first_free(map(path.with_name, names))
        path.rename(kept)
    path.write_bytes(unit.stub().encode())
    return kept


@command("homework.reset", __doc__)
def main(parser, argv):
    parser.add_argument("unit", help="for example hw03")
    unit = find(parser.parse_args(argv).unit)
    try:
        kept = reset(unit)
    except OSError as error:
        raise ValueError(f"{unit.file} cannot be written: {error.strerror}") from None
    also = f"; your file is now {kept.relative_to(unit.path.parents[2]).as_posix()}" if kept else ""
    print(f"{unit.shown} is the stub{also}")


if __name__ == "__main__":
    main()
