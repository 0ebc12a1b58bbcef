"""What the notebooks import beside `minimal`: figures, drawings, movable pieces, the diary, checks.

Notebooks run in their own folder, which is how they find this one; from here on they find the
checkout, too, where the exercises are.
"""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
if str(CHECKOUT) not in sys.path:
    sys.path.append(str(CHECKOUT))

# `python -m course.…`: Ctrl-C during the seconds of its imports gets one sentence.
if sys.argv[:1] == ["-m"]:
    from minimal.command import wait_for_imports

    wait_for_imports()
