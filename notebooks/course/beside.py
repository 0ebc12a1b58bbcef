"""What does a Python of the course find beside the package, and in no wheel? make setup asks once.

The homework stands in the checkout, what notebooks import and what serves the records under
notebooks: a line each in a .pth file of the environment. Its third line tells torch's threads to
sleep soon when they wait, so that a busy neighbour costs less; libgomp reads that once, as torch is
loaded (make bench PART=busy measures it). The package itself sets nothing.
"""

import sysconfig
from pathlib import Path

SLEEP = (
    'import os; "OMP_WAIT_POLICY" in os.environ or os.environ.setdefault("GOMP_SPINCOUNT", "2000")'
)


def main():
    here = Path(__file__).resolve().parents[2]
    lines = [here, here / "notebooks", SLEEP, ""]
    file = Path(sysconfig.get_path("purelib"), "course.pth")
    file.write_text("\n".join(map(str, lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
