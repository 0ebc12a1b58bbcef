"""Nine graded units, one for each stretch of the notebooks. `homework/README.md` is the
instructor's page."""

import os
import sys

IS_COMMAND = sys.argv[:1] == ["-m"]


def refuse_other_folders():
    """`python -m` loads modules from the current folder first, and there may lie a learner's.

    The environment that `make setup` made imports this package before that folder counts
    (notebooks/course/beside.py), so nothing of a learner's has run when this is asked."""
    course = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        current = os.getcwd()
    except OSError:
        return  # it is gone, and so are its modules
    counts = not sys.flags.safe_path or current in sys.path
    if counts and not os.path.samefile(course, current):
        leave(f"modules of the current folder would run: say python -P -m, or start in {course}")


def leave(sentence):
    """End a command in a sentence, whatever of Python has been set up so far."""
    if not IS_COMMAND:
        raise ImportError(sentence)
    os.write(2, os.fsencode(f"homework: {sentence}\n"))
    os._exit(2)


if sys.flags.optimize > 1:
    leave("exercises are made of docstrings, which python -OO leaves out: use -O, or none")
if IS_COMMAND:
    import minimal  # noqa: F401 what it says of Ctrl-C during imports holds here, too

    refuse_other_folders()
