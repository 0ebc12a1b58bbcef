"""What would the paper's own runs cost? H100-hours, at the share of the peak that d12 reached.

python -m evidence.bench.rented --cost
"""

from course import records

FILE = "gpu_session"

# An H100's dense bf16 peak, and the share of it that a plan assumes until it has measured one.
PEAK, ASSUMED = 989e12, 0.40

# FLOPs of each run: Bank of Values, Table 8, and Section 5 for the 100B tokens of Table 2, of which
# its text names the first; of BoV we count as many fewer as its layers have no W_V
PAPERS = {
    "d12, 135M: one run of Table 1": [1.5e18],
    "d24, 780M: Table 3's five runs": 5 * [3.91e19],
    "d24, 780M: Table 2, standard and BoV on 100B tokens": [4.78e20, 4.66e20],
}


def reached():
    """The share of an H100's peak that d12's slowest plan reached; None where no H100 is on
    file."""
    rows = records.rows(FILE)
    rows = [row for row in rows if row["part"] == "training" and row["size"] == "d12"]
    rows = [row for row in rows if "H100" in row["machine"]]
    return min((row["tflops"] * 1e12 / PEAK for row in rows), default=None)


def hours(flops, share=None):
    """H100-hours of so many FLOPs at a share of the peak: what was reached, or what we assume."""
    return flops / ((share or reached() or ASSUMED) * PEAK) / 3600


def cost():
    """The table of `--cost`, as lines."""
    share, source = reached(), "measured for d12; d24 was not"
    if share is None:
        share, source = ASSUMED, "assumed; not measured"
    lines = [f"H100-hours at {share:.0%} of {PEAK / 1e12:.0f} TFLOP/s ({source})"]
    for name, runs in PAPERS.items():
        lines.append(f"  {name:52}{hours(sum(runs), share):9,.1f}  ({each_of(runs)} FLOPs)")
    return "\n".join(lines)


def each_of(runs):
    """ "5 x 3.91e19", or the FLOPs of runs that differ."""
    each = [f"{flops:.3g}".replace("e+", "e") for flops in dict.fromkeys(runs)]
    return f"{len(runs)} x {each[0]}" if len(each) == 1 else ", ".join(each)
