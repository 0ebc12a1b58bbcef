"""What did a GPU say? The rows of `make gpu` as tables and words: those of gpu.md.

Two files: gather_gpu has attention by every way, gpu_session whole training steps and the runs of
one session. Ratios are of two ways on one machine; every way at its best settings.
"""

from course import records
from course.markdown import table

# ---- what the papers' runs would cost ------------------------------------------------------------

# What would the paper's own runs cost? H100-hours, at the share of the peak that d12 reached.
#
# python -m evidence.bench.rented --cost

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


def papers():
    """The same as a table of the page."""
    lines = [[name, each_of(runs), f"{hours(sum(runs)):,.1f}"] for name, runs in PAPERS.items()]
    return table(["runs of Bank of Values", "FLOPs", "H100-hours in all"], lines)


def each_of(runs):
    """ "5 x 3.91e19", or the FLOPs of runs that differ."""
    each = [f"{flops:.3g}".replace("e+", "e") for flops in dict.fromkeys(runs)]
    return f"{len(runs)} x {each[0]}" if len(each) == 1 else ", ".join(each)


LONG_PAST = 65536  # positions in flight beyond which launches no longer count


def gpu_rows(part, file="gather_gpu"):
    return [row for row in records.rows(file) if row["part"] == part]


def per_cent(value):
    return f"{100 * value:.0f} %"


# ---- decode --------------------------------------------------------------------------------------


def in_flight(row):
    """Positions whose keys a step reads, in all of its sequences."""
    return row["B"] * row["T"]


def over_v_cache(row, way="gather"):
    """Times as fast as the best V cache, whoever wrote it: ours or PyTorch's."""
    best = row["faster_than_v_cache"] * row["gather_us"]
    return best / row[f"{way}_us"]


def gpu_marks(fig):
    """Put what a GPU's clock has said, if it is recorded, into a figure of times as fast as the
    best V cache against positions in flight, as open marks; how many situations there are."""
    rows = gpu_rows("decode")
    for way, mark in (("gather", "o"), ("materialise", "s")):
        for row in rows:
            times = over_v_cache(row, way)
            fig.axes[0].plot(in_flight(row), times, mark, color="black", mfc="none")
    return len(rows)


def promised(row):
    """Times as fast as a V cache by bytes: keys and values at memory's measured rate, over the
    gather's floor."""
    memory = gpu_rows("bandwidth")[0]["memory_gb_s"] * 1e9
    stored = 2 * in_flight(row) * row["G"] * row["D"] * 2  # bf16
    return 1e6 * stored / memory / row["floor_us"]


def decode():
    """A step of decoding by every way, as times the speed of the best V cache."""
    lines = []
    for row in sorted(gpu_rows("decode"), key=in_flight):
        heads = f"{row['H']} on {row['G']}" if row["H"] != row["G"] else row["H"]
        ways = [f"{over_v_cache(row, way):.2f}" for way in ("gather", "materialise")]
        bins = f"{over_v_cache(row, 'histogram'):.2f}" if "histogram_us" in row else ""
        line = [f"{in_flight(row):,}", f"{row['B']} × {row['T']:,}", heads, *ways, bins]
        lines.append([*line, f"{promised(row):.2f}", per_cent(row["share_of_floor"])])
    columns = ["positions in flight", "texts × keys", "heads", "gather", "rows first", "histogram"]
    return table([*columns, "gather by bytes", "share of its time floor"], lines)


def long_texts():
    """The rows in which a gather runs at a steady share of its floor."""
    return [row for row in gpu_rows("decode") if in_flight(row) >= LONG_PAST]


def wide():
    """A step of decoding where rows are twice as wide as keys, as times the speed of the best V
    cache: rows by position, rows narrowed first in every step, and the sum by token."""
    lines = []
    for row in sorted(gpu_rows("wide"), key=in_flight):
        ways = [f"{over_v_cache(row, way):.2f}" for way in ("gather", "narrowed", "histogram")]
        lines.append([f"{in_flight(row):,}", f"{row['B']} × {row['T']:,}", *ways])
    columns = ["positions in flight", "texts × keys", "gather", "table narrowed first", "histogram"]
    return table(columns, lines)


PLAIN_LOOP = "plain loop"


def recorded_steps():
    """Whole generations in which each token is one replayed graph: the plans, and their rivals."""
    return gpu_rows("generation", FILE)


def shape_of_texts(row):
    return row["texts"], row["length"]


def step_of(plan, texts, length):
    """Its row, or None where it was not timed."""
    shape = dict(plan=plan, texts=texts, length=length)
    return next((row for row in recorded_steps() if shape.items() <= row.items()), None)


def over_loop(row):
    """Times as fast as the plain loop, which has a V cache and compiled layers; None without it."""
    loop = step_of(PLAIN_LOOP, *shape_of_texts(row))
    return loop and row["tokens_per_second"] / loop["tokens_per_second"]


def share_of_floor(row):
    return row["tokens_per_second"] / row["floor_tokens_per_second"]


def generation():
    """Whole generations by shape and plan: tokens a second, and what bytes would allow."""
    lines = []
    for row in sorted(recorded_steps(), key=shape_of_texts):
        low, high = row["interval"]
        times = f"{row['times_standard']:.2f} ({low:.2f} to {high:.2f})"
        line = [f"{row['texts']} × {row['length']:,}", f"`{row['plan']}`"]
        line += [f"{row['tokens_per_second']:,.0f}", times, f"{row['bytes_allow']:.2f}"]
        loop = over_loop(row)
        lines.append([*line, f"{loop:.2f}" if loop else "", per_cent(share_of_floor(row))])
    columns = ["texts × tokens", "plan", "tokens a second", "times `standard`", "by bytes"]
    return table([*columns, "times the plain loop", "share of the floor by bytes"], lines)


def decode_from():
    return f"{min(map(in_flight, long_texts())):,}"


def decode_lead():
    """A gather's least and largest lead over a V cache in long texts: "1.45 to 1.52"."""
    leads = [over_v_cache(row) for row in long_texts()]
    return f"{min(leads):.2f} to {max(leads):.2f}"


# ---- forward and backward ------------------------------------------------------------------------


def attention():
    """Our fused kernels, as times the speed of PyTorch's attention over rows that it looks up."""
    backs = {shape_of(row): row for row in gpu_rows("backward")}
    lines = []
    for row in gpu_rows("forward"):
        batch, length, heads, width, window = shape_of(row)
        both = row, backs[shape_of(row)]
        call = [f"{one['rows_and_sdpa_us'] / one['fused_us']:.2f}" for one in both]
        tried = all("rows_and_flex_us" in one for one in both)
        flex = [f"{one['rows_and_flex_us'] / one['fused_us']:.2f}" for one in both if tried]
        flex = flex or ["", ""]
        stored = f"{row['fused_over_stored']:.2f}"
        name = f"{batch} × {length:,}, {heads} × {width}"
        lines.append([name, window or "none", stored, call[0], flex[0], call[1], flex[1]])
    columns = ["texts × tokens, heads × width", "window", "forward: over our own, V stored"]
    rivals = ["over PyTorch's call", "over FlexAttention"]
    return table([*columns, *rivals, "backward: " + rivals[0], rivals[1]], lines)


def shape_of(row):
    return tuple(row[name] for name in ("B", "T", "H", "D", "window"))


def table_gradient():
    """Microseconds of a table's gradient, by how frequent its hottest token is."""
    lines = []
    for row in gpu_rows("table"):
        ways = [f"{row[f'{way}_us']:,.0f}" for way in ("sum_by_token", "embedding", "atomics")]
        lines.append([per_cent(row["hottest"]), *ways, f"{row['floor_us']:.0f}"])
    columns = ["hottest token", "`sum_by_token`", "PyTorch's embedding", "atomics", "floor"]
    return table(columns, lines)


# ---- training ------------------------------------------------------------------------------------


def training():
    """Whole steps of d12 by plan, and where its runs ended, seed by seed."""
    lines, runs = [], gpu_rows("run", FILE)
    for row in gpu_rows("training", FILE):
        line = [f"`{row['plan']}`", f"{row['tokens_per_second']:,}", per_cent(row["share"])]
        line.append(per_cent(row["tflops"] * 1e12 / PEAK))
        for name in ("loss", "bpb"):
            ends = (run[name] for run in runs if run["plan"] == row["plan"])
            line.append(", ".join(f"{end:.3f}" for end in ends))
        lines.append(line)
    columns = ["plan", "tokens a second", "share of the best product", "share of the peak"]
    return table([*columns, "held-out nats", "bits per byte"], lines)


def epochs():
    return f"{max(row['epochs'] for row in gpu_rows('run', FILE)):.2f}"


def unequal():
    """How many of the kernels' checks were not equal to the definition: "0 of 10"."""
    (row,) = gpu_rows("kernels", FILE)
    return f"{sum(not equal for equal in row['equal'])} of {len(row['equal'])}"


# ---- what prose tells the least and the most of --------------------------------------------------


def plans_at(texts, length):
    """The rows of one shape, without the rival."""
    shape = int(texts), int(length)
    rows = (row for row in recorded_steps() if row["plan"] != PLAIN_LOOP)
    return [row for row in rows if shape_of_texts(row) == shape]


def run_leads(plan):
    """By how many nats a plan's runs ended below standard's of the same seeds."""
    losses = {(row["plan"], row["seed"]): row["loss"] for row in gpu_rows("run", FILE)}
    seeds = [seed for name, seed in losses if name == plan]
    return [losses["standard", seed] - losses[plan, seed] for seed in seeds]


SPANS = {  # name in a mark, "gpu-least gather" (evidence.lab.quantities): its numbers
    "positions": lambda: map(in_flight, long_texts()),
    "gather": lambda: map(over_v_cache, long_texts()),
    "gather-floor": lambda: [row["share_of_floor"] for row in long_texts()],
    "loop": lambda: [r["times_standard"] for r in recorded_steps() if r["plan"] == PLAIN_LOOP],
    "called": lambda: [
        row["times_standard"] for row in gpu_rows("called", FILE) if row["plan"].startswith("bov")
    ],
    "floor": lambda *shape: map(share_of_floor, plans_at(*shape)),
    "over-loop": lambda *shape: map(over_loop, plans_at(*shape)),
    "step-ms": lambda *shape: [1e3 / row["tokens_per_second"] for row in plans_at(*shape)],
    "run-lead": run_leads,
    "reached": lambda: [reached()],
    "epochs": lambda: [row["epochs"] for row in gpu_rows("run", FILE)],
}
