"""What is recorded of speed, and on which processor? Read from bench.json.

    python -m evidence.bench.table     the tables of speed.md and gpu.md as the records have them

A ratio is a machine's and not a method's: two libraries, three processors, many answers. So every
number names its processor, and machines that were measured stand beside each other.
"""

import re

from course import figures, records
from course.markdown import table
from evidence.bench import gpu_table
from minimal.command import command
from minimal.data.files import write_whole

HEAD = "| what | measured | wanted | on |\n|---|---|---|---|"


def machine_of(row):
    """The processor of a row in words; rows from before it was asked for its name say less."""
    machine = row["machine"]
    model = machine.get("model", machine["cpu"])
    threads = f"{machine['threads']} of {machine['cores']} cores"
    return f"{model}, {machine['capability']}, {threads}"


def in_percent(share):
    return f"{100 * share:.0f} %"


def newest(rows):
    """The last row of each part on each machine; of race and train, compiled and eager are one."""
    kept = {}
    for row in rows:
        result = row["result"]
        how = result.get("compiled") if row["part"] == "race" else None
        kept[row["part"], how, machine_of(row)] = row
    return list(kept.values())


# ---- one part, in lines (what, measured, wanted) -----------------------------------------------
def of_training(found):
    lines = []
    for row in found:
        if row["size"] == "wide":
            how = "compiled" if row["compiled"] else "eager"
            what = f"a training step at `wide`, {how}, as a share of the floor of its products"
            lines.append((what, in_percent(row["share"]), "65 %" if row["compiled"] else ""))
    return lines


def of_race(found):
    how = "compiled" if found["compiled"] else "eager"
    what = (
        "time of the course's recipe to the loss that GPT-2 with AdamW (best of three rates) has "
        f"after {found['base_steps']:,} steps, {how}, as a share of its time"
    )
    if found["share"] is None:
        return [(what, "not reached", "0.15")]
    return [(what, f"{found['share']:.2f} ({found['course_steps']} steps)", "0.15")]


LENGTHS = (8192, 32768, 131072, 262144)  # of the texts that decode is recorded for

WANTED = {"131072": "1.4", "262144": "1.65"}  # times the V cache, by length


def of_decode(found):
    lines = []
    for length, row in found.items():
        keys = f"decode at {int(length):,} keys"
        if length in WANTED:
            what = f"{keys} through the histogram, times PyTorch's attention over a V cache"
            times, allowed = row["faster"]["histogram"], row["floor"]["histogram"]
            lines.append((what, f"{times:.2f} (bytes {allowed:.2f})", WANTED[length]))
            own = over_best(row, "histogram")
            what = f"{keys}, times the better V cache of two (PyTorch's attention, two products)"
            lines.append((what, f"{own:.2f}", ""))
            what = f"{keys}, times the paper's materialise-and-attend"
            paper, allowed = row["histogram_over_materialise"], by_bytes(int(length), row)
            wish = wished(5, allowed) if length == "131072" else ""
            lines.append((what, f"{paper:.1f} (bytes {allowed:.1f})", wish))
        elif "front_door_over" in row:
            best = min(row["front_door_over"].values())
            what = f"{keys}: the front door, times the best of rows, sorted and V cache"
            lines.append((what, f"{best:.2f}", "1"))
    return lines


def over_best(row, way):
    """How many times as fast a way is as the better of the two that read a stored V."""
    return min(row["v_cache"], row["products"]) / row[way]


FLOOR, FLATTERING = "histogram's floor", "histogram over SDPA"


def decode_times(rows=None):
    """{processor: {way: times as fast as the best V cache, by length}}: all that were timed.

    Beside the ways stand what bytes allow the histogram, and, since PyTorch's attention over a V
    cache may be slow, how far the histogram is ahead of that alone."""
    rows = records.rows("bench") if rows is None else rows
    times = {}
    for row in newest(rows):
        if row["part"] != "decode_cpu":
            continue
        by_length = row["result"].values()
        of_one = {
            way: [over_best(one, way) for one in by_length]
            for way in ("histogram", "sorted", "rows", "materialise")
        }
        of_one[FLOOR] = [one["floor"]["histogram"] for one in by_length]
        of_one[FLATTERING] = [one["faster"]["histogram"] for one in by_length]
        times[short_name(row["machine"])] = of_one
    return times


def short_name(machine):
    """A processor in a few words, as the title of a panel: what nobody confuses is left out."""
    words = machine.get("model", "").replace("(R)", "").split()
    model = " ".join(word for word in words if word not in ("AMD", "CPU", "Intel", "Processor"))
    return f"{model} {machine['capability']}, {machine['cores']} cores".strip()


def by_bytes(keys, row):
    """How many times the histogram's bytes the paper's way moves: it reads K, reads the table's
    rows once, writes them out for every token, and reads what it wrote."""
    paper = 3 + row["distinct"] / keys  # in units of K, which V is as large as
    histogram = 2 / row["floor"]["histogram"]  # a floor is times the V cache: K and V
    return paper / histogram


def wished(times, allowed):
    """The wish; where bytes do not allow it, that is said."""
    return f"{times}" if allowed >= times else f"{times}, more than bytes allow"


def of_generation(found):
    lines = []
    for row in found:
        if row["plan"] != "standard" and "interval" not in row:  # those have a table of their own
            length = f"{row['length']:,} tokens of context"
            what = f"`generate` at {length}, {row['plan']}, times standard"
            measured = f"{row['times_standard']:.2f} (bytes {row['bytes_allow']:.2f})"
            lines.append((what, measured, wanted_of(row)))
    return lines


def generations(rows=None):
    """Whole generations as they were timed last on a processor: a row a plan and shape, and how
    fast a prompt is read (`prefill`)."""
    rows = records.rows("bench") if rows is None else rows
    return [row for row in rows if row["part"] == "generate_cpu"][-1]


def whole_steps(rows=None):
    """Of these the steps that make a token each; those of the course's own eager step first."""
    return [row for row in generations(rows)["result"] if not row.get("prefill")]


def generation_table(rows=None):
    """Markdown: tokens a second, the share of their floor by bytes, and how many times standard."""
    lines = []
    for row in generations(rows)["result"]:
        what = f"{row['plan']}, prompt" if row.get("prefill") else row["plan"]
        share = f"{row['share']:.0%}" if "share" in row else ""
        low, high = row["interval"]
        times = f"{row['times_standard']:.2f} ({low:.2f} to {high:.2f})"
        allowed = f"{row['bytes_allow']:.2f}" if "bytes_allow" in row else ""
        shape = f"{row['texts']} x {row['length']:,}"
        lines.append([shape, what, f"{row['tokens_per_second']:,.0f}", share, times, allowed])
    head = [
        "texts x tokens",
        "what",
        "tokens a second",
        "of its floor",
        "times `standard`",
        "bytes",
    ]
    return table(head, lines)


def wanted_of(row, length=131072, times=1.3):
    """The wish for tables in a text as long as this."""
    tables = row["plan"].startswith("bov") and row["length"] == length
    return wished(times, row["bytes_allow"]) if tables else ""


def of_busy(found):
    ours, libgomp = (found[name]["slower"] for name in ("ours", "libgomp"))
    what = "a training step on 2 threads beside {}, as many times its time alone"
    return [
        (
            what.format(neighbour),
            f"{ours[name]:.2f} (with libgomp's own spinning {libgomp[name]:.1f})",
            wanted,
        )
        for name, neighbour, wanted in (
            ("two_runs", "another run of its kind", "2.5"),
            ("beside_a_loop", "a loop of plain Python", ""),
        )
    ]


def of_dva(found):
    what = "dynamic value attention through its identity, as many times standard attention's time"
    return [(what, f"{found['identity_over_standard']:.2f}", "2")]


LINES = dict(
    train=of_training,
    race=of_race,
    decode_cpu=of_decode,
    generate_cpu=of_generation,
    busy=of_busy,
    dva=of_dva,
)


def speed_table(rows=None):
    """Markdown: every part that is recorded, on every machine that it was recorded on."""
    rows = records.rows("bench") if rows is None else rows
    lines = [HEAD]
    for part, told in LINES.items():
        for row in newest(rows):
            if row["part"] == part:
                on = machine_of(row)
                lines += [" | ".join(("", *cells, on, "")).strip() for cells in told(row["result"])]
    return "\n".join(lines)


def generations_drawn():
    """(figure, alt text): whole generations beside standard, on a GPU and on a processor."""
    panels = {
        "one graph a token, H200, d12": gpu_table.recorded_steps(),
        "two CPU threads": whole_steps(),
    }
    title = "Behind long texts a whole step with tables is faster"
    fig, both = figures.axes(title, "", "times standard (recorded)", width=10.4, columns=2)
    for ax, (where, rows) in zip(both, panels.items()):
        shapes = sorted(set(map(gpu_table.shape_of_texts, rows)))
        for i, plan in enumerate(("svformer", "bov", "bov-every", gpu_table.PLAIN_LOOP)):
            found = {gpu_table.shape_of_texts(row): row for row in rows if row["plan"] == plan}
            at = [x + 0.2 * (i - 1.5) for x in range(len(shapes))]
            reached = [found[shape]["times_standard"] for shape in shapes]
            if plan == gpu_table.PLAIN_LOOP:  # a rival, not a plan
                ink = dict(color="white", edgecolor=figures.INK, hatch="///")
                ax.bar(at, reached, 0.18, label=plan, **ink)
                continue
            ax.bar(at, reached, 0.18, color=figures.COLOURS[i], label=plan)
            allowed = [found[shape]["bytes_allow"] for shape in shapes]
            name = "bytes allow" if plan == "bov-every" else None
            ax.plot(at, allowed, "_", color=figures.INK, markersize=11, label=name)
        names = [f"{texts} x\n{length:,}" for texts, length in shapes]
        ax.set_xticks(range(len(shapes)), names, fontsize=8)
        ax.set(title=where, xlabel="texts x tokens", ylim=(0, 2.4))
        ax.axhline(1, color=figures.INK, linestyle=":", linewidth=1)
    both[1].legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    return fig, (
        "Bars of whole generations' speed as times that of standard, for three plans and a plain "
        "loop, on a GPU with one graph a token and on a processor; a dash for each plan where "
        "counted bytes would put it. In long texts the plans with tables stand above one on both; "
        "the plain loop is above one nearly everywhere."
    )


# ---- the pages -----------------------------------------------------------------------------------

PAGES = {  # page: what makes its tables
    "speed.md": (speed_table, generation_table),
    "gpu.md": (
        *(gpu_table.decode, gpu_table.wide, gpu_table.generation, gpu_table.attention),
        *(gpu_table.table_gradient, gpu_table.training, gpu_table.papers),
    ),
}


def with_tables(text, tables):
    """A page whose tables are these: each stands where its head stands."""
    for made in tables:
        head = made.splitlines()[0]
        lines = re.escape(head) + r"(\n\|.*)+"
        if not re.search(lines, text):
            raise ValueError(f"wanted a table with the head {head!r}: put one line of it there")
        text = re.sub(lines, lambda _: made, text)
    return text


@command("evidence.bench.table", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    for name, makers in PAGES.items():
        path = records.EVIDENCE / name
        text = path.read_text(encoding="utf-8")
        write_whole(path, with_tables(text, [make() for make in makers]))
        print(f"{name}: {len(makers)} tables")


if __name__ == "__main__":
    main()
