"""Which pictures belong to the findings? One or two below each heading, drawn from the records.

Titles and alt texts are counted from the rows, so that they stay true when a grid is recorded anew.
"""

import html
import re
import statistics

from minimal.lab import figures, pictures
from minimal.lab.evidence import intervals, records
from minimal.lab.speed import table

PAGES = [
    ("Findings", "evidence/index.html"),
    ("Claims and verdicts", "evidence/claims.html"),
    ("What the sources print", "evidence/published.html"),
    ("Recorded runs", "evidence/recorded.html"),
]
FAMILY = (
    "resformer resformer-learned cross cross-mean cross-all identity residual-q residual-k "
    "neutreno denseformer svformer svformer-anchors gqa cla share-q share-k share-k2 share-v2"
).split()
SETTINGS = {  # (plan, recipe) of lambdas.json, in words
    ("modded", "modded"): "plain",
    ("modded", "modded-open"): "window open",
    ("modded", "modded-constant"): "rate constant",
    ("modded-moved", "modded"): "gap moved",
    ("modded-whole", "modded"): "no gap",
}
NATS = "held-out nats a token minus {base}'s; left is better"


def rows(*files):
    """Rows of files of one corpus, size and budget; a plan that two of them hold counts once."""
    found = {}
    for name in files:
        for row in records.rows_of(records.EVIDENCE / f"{name}.json"):
            if row.get("steps") == 500:
                found.setdefault((row["plan"], row["seed"]), row)
    return list(found.values())


# ---- what is drawn: (figure, alt text), or None where nothing is recorded ------------------------


def differences(what, table, base="standard"):
    """Rows of intervals.paired, best first."""
    table = [row for row in table if row["difference"] is not None and row["plan"] != base]
    if not table:
        return None
    table.sort(key=lambda row: row["difference"])
    ahead = [row["plan"] for row in table if row["clear"] and row["difference"] < 0]
    behind = [row["plan"] for row in table if row["clear"] and row["difference"] > 0]
    title = f"{what}: of {len(table)}, {len(ahead)} lead clearly, {len(behind)} trail clearly"
    fig = figures.intervals(table, title, NATS.format(base=base))
    listed = lambda names: ", ".join(names) or "none"
    alt = (
        f"{what}: {len(table)} rows down, the difference of their held-out loss from {base} "
        f"across, with 95 per cent intervals. Clearly ahead: {listed(ahead)}. "
        f"Clearly behind: {listed(behind)}."
    )
    return fig, alt


def bank_of_values():
    kept = [row for row in rows("thirteen_rows") if re.match(r"row|bov|standard$", row["plan"])]
    return differences("Context-free values", intervals.paired(kept, "loss")) if kept else None


def resformers():
    some = rows("residuals", "sharing", "thirteen_rows")
    if not some:
        return None
    return differences("Values shared upwards", intervals.paired(some, "loss", plans=FAMILY))


def depths():
    """ResFormer's lead in stacks of several depths."""
    by_depth = {}
    for row in records.rows_of(records.EVIDENCE / "sizes.json"):
        by_depth.setdefault(row["asked"]["changes"]["layers"], []).append(row)
    table = []
    for layers, some in sorted(by_depth.items()):
        for row in intervals.paired(some, "loss", plans=["resformer"]):
            table.append(row | dict(plan=f"ResFormer, {layers} layers"))
    return differences("ResFormer by depth", table)


def corners():
    """Dynamic value attention and what it replaces, one thing at a time."""
    base = "standard/many/ffn/wo"
    some = rows("dva_factorial")
    if not some:
        return None
    return differences("One thing at a time", intervals.paired(some, "loss", base), base)


def mixin():
    """How much of the embedding each layer of modded-nanogpt mixes in when training ends."""
    shares = {}
    for row in records.rows_of(records.EVIDENCE / "lambdas.json"):
        name = SETTINGS[row["plan"], row["asked"]["recipe"]]
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
    groups = {}
    for row in records.rows_of(records.EVIDENCE / "bypass.json"):
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
    """How much faster than a V cache each way of decoding is, by length of the text."""
    bench = records.rows_of(records.EVIDENCE / "bench.json")
    recorded = [row for row in bench if row["part"] == "decode_cpu"]
    if not recorded:
        return None
    cpu, machine = recorded[-1]["result"], table.machine_of(recorded[-1])
    ways = ("histogram", "sorted", "rows", "materialise")
    faster = {way: [one["faster"][way] for one in cpu.values()] for way in ways}
    fig = figures.lines(
        faster,
        "Decoding against a V cache read by PyTorch's attention",
        "keys in the cache",
        "times as fast",
        x=[int(n) for n in cpu],
        logx=True,
    )
    fig.axes[0].axhline(1, color=figures.INK, linestyle=":", linewidth=1)
    last = ", ".join(f"{way} {values[-1]:.1f}" for way, values in faster.items())
    alt = (
        f"Times as fast as a V cache read by PyTorch's attention, on {machine}, against the "
        f"number of keys. At the longest text: {last}."
    )
    return fig, alt


BELOW = {
    "Every system at one budget": ("recorded.svg",),
    "Bank of Values": (bank_of_values,),
    "ResFormer and SVFormer": (depths, resformers),
    "Value embeddings in modded-nanogpt": (mixin,),
    "Dynamic value attention": (corners,),
    "The bypass in BERT": (bypass,),
    "Speed": (decoding,),
}


def with_figures(body):
    """The findings with their pictures below the headings."""

    def turn(match):
        words = re.sub(r"<a .*?</a>|<[^>]+>", "", match[0])
        return match[0] + "".join(map(shown, BELOW.get(html.unescape(words).strip(), ())))

    return re.sub(r"<h2.*?</h2>", turn, body, flags=re.S)


def shown(picture):
    """A picture of the repository by its name, or one that a function draws."""
    if isinstance(picture, str):
        alt = html.escape(pictures.PICTURES[picture][1], quote=True)
        return f'<figure><img src="../figures/{picture}" alt="{alt}"></figure>'
    found = picture()
    if not found:
        return ""
    fig, alt = found
    return figures.on_page(figures.picture(fig), "png", figures.check_alt(alt))
