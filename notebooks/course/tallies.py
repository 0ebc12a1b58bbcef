"""What became of the claims? A bar for each source, and for each text that decides them."""

from collections import Counter

from course import figures, records

INKS = dict(  # colour and hatch: told apart without colour, too
    zip(
        records.VERDICTS,
        (
            ("#1b5e8a", ""),
            ("#c8501e", "//"),
            ("#e8c46a", "\\\\"),
            ("#1b1f24", "xx"),
            ("#d9d9d9", ".."),
            ("#ffffff", ""),
        ),
    )
)
ALT = (
    "Stacked bars of claims by verdict: one for each of the five sources and one for what came "
    "after them, and two for the claims that recorded runs decide on both texts, on the novel and "
    "on code. Numbers stand in the bars."
)


def tallies(claims, sources):
    """{bar: how many of each verdict}: each source, then the claims judged on both texts."""
    found = {
        about["short"]: Counter(row["verdict"] for row in claims if row["source"] == name)
        for name, about in sources.items()
    }
    both = [row for row in claims if "verdict_on_code" in row]
    found["by runs, on the novel"] = Counter(row["verdict"] for row in both)
    found["the same, on code"] = Counter(row["verdict_on_code"] for row in both)
    return found


def bars(claims, sources, title=""):
    """The figure; its alternative text is ALT."""
    found = tallies(claims, sources)
    told = {verdict for counts in found.values() for verdict in counts}
    fig, ax = figures.axes(title, "claims", "", 9.0, 4.2)
    for y, counts in enumerate(reversed(found.values())):
        left = 0
        for verdict, (colour, hatch) in INKS.items():
            number = counts[verdict]
            name = verdict if y == 0 and verdict in told else None
            look = dict(color=colour, hatch=hatch, edgecolor="#8a8f98", label=name)
            ax.barh(y, number, left=left, **look)
            if number:
                box = dict(fc="white", ec="none", pad=1.2)
                middle = left + number / 2
                ax.text(middle, y, number, ha="center", va="center", fontsize=9, bbox=box)
            left += number
    ax.set_yticks(range(len(found)), list(reversed(found)))
    ax.axhline(1.5, color="#8a8f98", linewidth=1)
    ax.legend(frameon=False, fontsize=9, ncols=3, loc="upper center", bbox_to_anchor=(0.4, -0.16))
    return fig
