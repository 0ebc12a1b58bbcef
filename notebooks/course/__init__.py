"""What the notebooks import beside `minimal`: figures, drawings, movable pieces, the diary, checks.

Notebooks run in their own folder, which is how they find this one; from here on they find the
checkout, too, where the exercises are.
"""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
if str(CHECKOUT) not in sys.path:
    sys.path.append(str(CHECKOUT))
