"""How do I start a unit over? `python -m homework.reset hw03` writes the stub again and keeps your
file beside it."""

import itertools
import os

from homework.marking import find
from minimal.command import command
from minimal.data import files


def reset(unit):
    """The stub in place; whatever else was there moved to NAME.mine-1.py, -2, …. Returns where to,
    or None. What was there may be anything: it is never read as text."""
    path, stub = unit.path, unit.stub().encode()
    if path.is_file() and path.read_bytes() == stub:
        return None
    kept = None
    if os.path.lexists(path):
        names = (f"{path.stem}.mine-{number}.py" for number in itertools.count(1))
        kept = files.first_free(map(path.with_name, names))
        path.rename(kept)
    path.write_bytes(stub)
    return kept


@command("homework.reset", __doc__)
def main(parser, argv):
    parser.add_argument("unit", help="for example hw03")
    unit = find(parser.parse_args(argv).unit)
    where = unit.path.relative_to(unit.path.parents[2])
    try:
        kept = reset(unit)
    except OSError as error:
        raise ValueError(f"{where} cannot be written: {error.strerror}") from None
    print(f"{where} is the stub" + (f"; your file is now {kept.name} beside it" if kept else ""))


if __name__ == "__main__":
    main()
