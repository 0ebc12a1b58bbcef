"""Which pictures belong to the findings? One or two below each heading, drawn from the records.

Titles and alt texts are counted from the rows, so that they stay true when a grid is recorded anew.
"""

import functools
import html
import re
import statistics
import textwrap

from course import figures, records
from evidence.research import (
    answer,
    gains,
    leads,
    numbers,
    pairs,
    pictures,
    slopes,
    table,
    tables,
    text_leads,
    vocab_leads,
)
from minimal.compare import intervals

PAGES = [
    ("Findings", "evidence/index.html"),
    ("Ledger", "evidence/ledger.html"),
    ("Speed", "evidence/speed.html"),
    ("On a GPU", "evidence/gpu.html"),
    ("Claims and verdicts", "evidence/claims.html"),
    ("What the sources print", "evidence/published.html"),
    ("Recorded runs", "evidence/recorded.html"),
]
FAMILY = (
    "resformer resformer-learned cross cross-mean cross-all identity residual-q residual-k "
    "neutreno denseformer svformer svformer-anchors gqa cla share-q share-k share-k2 share-v2"
).split()
TITLE_LETTERS = 78  # letters of a title's line over two panels
NATS = "held-out nats a token ahead of {base}"


def rows(*files):
    """Rows of files of one corpus, size and budget; a plan that two of them hold counts once."""
    found = {}
    for name in files:
        for row in records.rows_of(records.EVIDENCE / f"{name}.json"):
            if row.get("steps") == 500:
                found.setdefault((row["plan"], row["seed"]), row)
    return list(found.values())


# ---- what is drawn: (figure, alt text), or None where nothing is recorded ------------------------


def differences_drawn(what, table, base="standard"):
    """Rows of intervals.paired, best first."""
    table = [row for row in table if row["difference"] is not None and row["plan"] != base]
    if not table:
        return None
    table = sorted(figures.ahead(table), key=lambda row: -row["difference"])
    ahead = [row["plan"] for row in table if row["clear"] and row["difference"] > 0]
    behind = [row["plan"] for row in table if row["clear"] and row["difference"] < 0]
    title = f"{what}: of {len(table)}, {len(ahead)} lead clearly, {len(behind)} trail clearly"
    fig = figures.intervals(table, title, NATS.format(base=base))
    listed = lambda names: ", ".join(names) or "none"
    alt = (
        f"{what}: {len(table)} rows down, how far they end ahead of {base} in held-out loss "
        f"across, with 95 per cent intervals. Clearly ahead: {listed(ahead)}. "
        f"Clearly behind: {listed(behind)}."
    )
    return fig, alt


def both_texts(what, by_text):
    """{text: rows, ahead above zero} as panels side by side, on one scale: best on code first."""
    if not any(by_text.values()):
        return None
    best_first = [sorted(some, key=lambda row: -row["difference"]) for some in by_text.values()]
    names = list(dict.fromkeys(row["plan"] for some in best_first for row in some))[::-1]

    # the title counts who leads
    counted = []
    for text, some in by_text.items():
        ahead = sum(row["clear"] and row["difference"] > 0 for row in some)
        behind = sum(row["clear"] and row["difference"] < 0 for row in some)
        place = "the novel" if text == "novel" else text
        counted.append(f"on {place} {ahead} of {len(some)} lead clearly, {behind} trail clearly")
    words = f"{what}: {'; '.join(counted)}"
    title = textwrap.fill(words, TITLE_LETTERS)
    height = 1.3 + 0.3 * len(names)
    fig, panels = figures.axes(title, "", "", 9.4, height, columns=len(by_text))

    # a panel for each text
    for ax, (text, some) in zip(panels, by_text.items()):
        by_plan = {row["plan"]: row for row in some}
        figures.interval_marks(ax, [by_plan.get(name) for name in names])
        ax.set_title(text, loc="left", fontsize=10)
        ax.set_yticks(range(len(names)), names if ax is panels[0] else [""] * len(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.locator_params(axis="x", nbins=5)
    limits = [ax.get_xlim() for ax in panels]
    for ax in panels:
        ax.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    fig.supxlabel(NATS.format(base="standard") + "; filled: clear of zero", fontsize=9.5)
    alt = (
        f"{words}. {len(names)} rows down, how far they end ahead of standard in held-out loss "
        f"across, with 95 per cent intervals, a panel for each text. From the top: "
        f"{', '.join(names[::-1])}."
    )
    return fig, alt


def systems_like(what, pattern=""):
    """Systems of the big table whose names match, on both texts."""
    return both_texts(what, {text: named(text, pattern) for text in ("code", "novel")})


def named(text, pattern):
    some = [row for row in numbers.systems(text) if re.match(pattern, row["plan"])]
    return figures.ahead(some)


def everything():
    """All systems of the big table, and those of later grids that stand in the ranking."""
    found = {text: named(text, "") for text in ("code", "novel")}
    for text, some in found.items():
        for plan, grid in answer.LATER.items():
            if pairs.whole(f"{grid}_{text}"):
                some.append(leads.as_row(plan, answer.later(text, plan)))
    return both_texts("All systems", found)


def tables_by_token():
    return systems_like("Values of the token alone", r"bov|vplus|modded|row[5-9]$")


def as_large():
    """Plans with tables whose MLPs were narrowed to the parameters of standard."""
    files = dict(code=("code", "stdlib"), novel=("parameters", "thirteen_rows"))
    found = {}
    for text, (slim, whole) in files.items():
        kept = [row for row in rows(slim) if "hidden" in (row["asked"].get("changes") or {})]
        base = [row for row in rows(whole) if row["plan"] == "standard"]
        table = intervals.paired(kept + base, "loss") if kept and base else []
        found[text] = figures.ahead(row for row in table if row["plan"] != "standard")
    return both_texts("Tables at the parameters of standard", found)


def resformers():
    """On code those that are recorded there; on the novel also what else could be shared."""
    some = rows("residuals", "sharing", "thirteen_rows")
    plans = [plan for plan in FAMILY if any(row["plan"] == plan for row in some)]
    novel = intervals.paired(some, "loss", plans=plans) if some else []
    code = [row for row in numbers.systems("code") if row["plan"] in FAMILY]
    by_text = dict(code=figures.ahead(code), novel=figures.ahead(novel))
    return both_texts("Values shared upwards", by_text)


def along():
    """Leads of a few systems along their runs, by seed, on both texts."""
    plans = ("bov-fixed", "vplus", "resformer", "svformer", "denseformer")
    panels = {}
    for text in ("code", "novel"):
        curves = {}
        for row in rows(numbers.FILES_OF[text][0]):
            curves[row["plan"], row["seed"]] = dict(row["valid"])
        steps = list(next(iter(curves.values())))
        panels[text] = {}
        for plan in plans:
            seeds = [seed for name, seed in curves if name == plan]
            panels[text][plan] = [
                [curves["standard", seed][at] - curves[plan, seed][at] for at in steps]
                for seed in seeds
            ]
    ends = {
        text: ", ".join(f"{plan} {fmean_at(some, -1):.2f}" for plan, some in series.items())
        for text, series in panels.items()
    }
    title = "Leads over standard along the run: mean, and the band of the seeds"
    fig = figures.bands(panels, title, "step", "nats ahead of standard", x=steps)
    alt = (
        f"Lead over standard against training steps, a panel for each text, a line with a band of "
        f"seeds for each of {', '.join(plans)}. At the end on code: {ends['code']}; on the novel: "
        f"{ends['novel']}."
    )
    return fig, alt


def fmean_at(curves, at):
    return statistics.fmean(curve[at] for curve in curves)


def gains_by_layer():
    """Learned gains of the last third by layer: the paper's Figure 2a, and ours on both texts."""
    drawn = records.published("bov", "Figure 2a")["rows"]
    layers = [row["layer"] for row in drawn]
    named = dict(zip(("row6", "row9"), ("V1", "x0 W_V")))
    panels = {
        "the paper, read off": {name: [[row[name] for row in drawn]] for name in named.values()}
    }
    for text in ("code", "novel"):
        panels[text] = {
            name: [[run[layer] for layer in layers] for run in gains.final_gains(text, plan)]
            for plan, name in named.items()
        }
    last = {
        text: ", ".join(f"{name} {fmean_at(runs, -1):.1f}" for name, runs in series.items())
        for text, series in panels.items()
    }
    title = "Learned gains by layer: the paper's grow to twelve, ours stay small on the novel"
    fig = figures.bands(panels, title, "layer", "gain at the end", x=layers)
    told = "; ".join(f"{text}: {words}" for text, words in last.items())
    alt = (
        f"Learned gain on the first layer's V and on x0 W_V in layers {layers[0]} to {layers[-1]}, "
        f"a panel for the paper's Figure 2a and for each text. In the last layer, {told}."
    )
    return fig, alt


def depths():
    """ResFormer's lead in stacks of several depths."""
    by_depth = {}
    for row in records.rows_of(records.EVIDENCE / "sizes.json"):
        by_depth.setdefault(row["asked"]["changes"]["layers"], []).append(row)
    table = []
    for layers, some in sorted(by_depth.items()):
        for row in intervals.paired(some, "loss", plans=["resformer"]):
            table.append(row | dict(plan=f"ResFormer, {layers} layers"))
    return differences_drawn("ResFormer by depth, on the novel", table)


def corners():
    """Dynamic value attention and what it replaces, one thing at a time."""
    base = "standard/many/ffn/wo"
    some = rows("dva_factorial")
    if not some:
        return None
    return differences_drawn("One thing at a time", intervals.paired(some, "loss", base), base)


def mixin():
    """How much of the embedding each layer of modded-nanogpt mixes in when training ends."""
    shares = {}
    for row in records.rows_of(records.EVIDENCE / "lambdas.json"):
        name = tables.MIXINS[row["plan"], row["asked"]["recipe"]]
        shares.setdefault(name, []).append(row["x0_share"])
    if not shares:
        return None
    means = {
        name: [statistics.fmean(layer) for layer in zip(*some)] for name, some in shares.items()
    }
    title = "The embedding's share in each layer's mix, by its weights"
    fig = figures.lines(means, title, "layer", "share at the end, mean of the seeds")
    plain = means["plain"]
    alt = (
        f"The share of the embedding in the weights of each layer's mix, for {', '.join(means)}. "
        f"In the plain run it is {min(plain):.2f} at least and {max(plain):.2f} at most."
    )
    return fig, alt


def bypass():
    """F1 of every seed, by size of the encoder."""
    by_size = lambda row: [int(number) for number in row["size"].split("x")]
    groups = {}
    for row in sorted(records.rows_of(records.EVIDENCE / "bypass.json"), key=by_size):
        name = f"{row['size'].replace('x', ' layers of ')}"
        groups.setdefault(name, {}).setdefault(row["plan"], []).append(row["f1"])
    if not groups:
        return None
    fig = figures.points(groups, "Every seed of the encoders, by size", "F1 on generated questions")
    plans = ", ".join(next(iter(groups.values())))
    alt = (
        f"F1 of every seed as marks with the mean as a bar, a panel for each of {len(groups)} "
        f"encoder sizes, side by side for {plans}."
    )
    return fig, alt


def decoding():
    """How many times as fast as the best V cache each way of decoding is, a panel a processor."""
    timed = table.decode_times()
    if not timed:
        return None
    ways = ("histogram", "sorted", "rows", "materialise")
    fig = figures.bands(
        {cpu: {way: [times[way]] for way in ways} for cpu, times in timed.items()},
        "Decoding against the best V cache of each processor",
        "keys in the cache",
        "times as fast",
        x=table.LENGTHS,
        logx=True,
        baseline=1,
        one_legend=True,
    )
    ends = (
        f"on {cpu}, {', '.join(f'{way} {times[way][-1]:.1f}' for way in ways)}"
        for cpu, times in timed.items()
    )
    alt = (
        "Times as fast as the best V cache against the number of keys, a panel a processor. At the "
        f"longest text: {'; '.join(ends)}."
    )
    return fig, alt


BELOW = {
    "Every system at one budget": (everything,),
    "Do tables pay?": (tables_by_token, as_large, text_leads.picture, vocab_leads.picture),
    "Does the first layer's value help?": (depths, resformers),
    "Do leads last?": (slopes.by_tokens, along, slopes.by_width),
    "Do learned gains stay open?": (gains_by_layer,),
    "What do value embeddings learn?": (mixin,),
    "Do dynamic values pay?": (corners,),
    "Does the bypass help BERT?": (bypass,),
    "Speed": (decoding,),
}


def with_figures(body):
    """The findings with their pictures below the headings."""

    def turn(match):
        words = re.sub(r"<a .*?</a>|<[^>]+>", "", match[0])
        return match[0] + "".join(map(figure_html, BELOW.get(html.unescape(words).strip(), ())))

    return re.sub(r"<h2.*?</h2>", turn, body, flags=re.S)


@functools.cache  # drawn once: half a second each
def figure_html(picture):
    """A picture of the repository by its name, or one that a function draws."""
    if isinstance(picture, str):
        alt = html.escape(pictures.PICTURES[picture][1], quote=True)
        return f'<figure><img src="../figures/{picture}" alt="{alt}"></figure>'
    found = picture()
    if not found:
        return ""
    fig, alt = found
    return figures.on_page(figures.figure_bytes(fig), "png", figures.check_alt(alt))
