"""Nine graded units, one for each stretch of the notebooks. `homework/README.md` is the
instructor's page."""

import sys

if sys.argv[:1] == ["-m"]:  # a command: what minimal says of Ctrl-C during imports holds here, too
    import minimal  # noqa: F401
