"""What serves the records: `lab` asks and answers, `bench` measures speed, `measured` the rest."""

import sys

# `python -m evidence.…`: Ctrl-C during the seconds of its imports gets one sentence.
if sys.argv[:1] == ["-m"]:
    from minimal.command import wait_for_imports

    wait_for_imports()
