"""How do I start a unit over? `python -m homework.reset hw03` writes the stub again, in work/ and
where the course has it, and keeps your file beside it."""

import itertools
import os

from homework.marking import find
from minimal.command import command
from minimal.data import files


def reset(unit):
    """The stub in both places; whatever else was there moved to NAME.mine-1.py, -2, …. Returns
    where to. What was there may be anything: it is never read as text."""
    unit.copy.parent.mkdir(parents=True, exist_ok=True)
    kept = [put_stub(unit, path) for path in (unit.copy, unit.given)]
    return [path for path in kept if path]


def put_stub(unit, path):
    """The stub at this path; where what was there has gone, or None."""
    if unit.is_untouched(path):
        return None
    kept = None
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
    shown = lambda path: path.relative_to(unit.given.parents[2]).as_posix()
    try:
        kept = reset(unit)
    except OSError as error:
        raise ValueError(f"{unit.file} cannot be written: {error.strerror}") from None
    also = f"; your file is now {' and '.join(map(shown, kept))}" if kept else ""
    print(f"{shown(unit.copy)} is the stub{also}")


if __name__ == "__main__":
    main()
