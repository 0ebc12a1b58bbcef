"""Which of my plans is better, at equal what? Trained, matched, paired by seed, and drawn.

python -m minimal.compare --plans standard bov --match flops --budget 3e13 --seeds 0 1 2
"""

import sys

from minimal.command import command, number
from minimal.compare.budgets import MATCH
from minimal.compare.comparison import compare


@command("minimal.compare", __doc__)
def main(parser, argv):
    parser.add_argument("--plans", nargs="+", metavar="PLAN", required=True, help="compare these")
    parser.add_argument("--match", choices=MATCH, default="tokens")
    parser.add_argument(
        "--budget",
        type=number(float, above=0),
        default=512_000,
        help="steps, tokens (also for parameters), FLOPs or seconds a run",
    )
    parser.add_argument("--seeds", type=number(int, least=0), nargs="+", default=[0, 1, 2])
    parser.add_argument("--baseline", default="standard")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--corpus", default="auto")
    parser.add_argument("--batch", type=number(int, least=1), default=16)
    parser.add_argument("--vocab", type=number(int, least=1), help="default: the size's")
    parser.add_argument(
        "--minutes",
        type=number(float, above=0),
        help="stop cleanly after so long; the next call goes on",
    )
    parser.add_argument("--out", help="evidence file (default: under $MINIMAL_RUNS)")
    asked = parser.parse_args(argv)
    words = " ".join(["python -m minimal.compare", *argv])
    compare(**vars(asked), command=words)


if __name__ == "__main__":
    sys.exit(main())
