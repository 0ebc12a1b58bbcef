"""How does a notebook's core end? One picture: a few systems against `standard`, on both texts.

    ending.show({"ResFormer": "resformer",
                 "detached": ("controls", "resformer/detached")}, "…", "alt text")

A system is the name of a plan, which is read from the whole grid with the most seeds on each text;
or a grid, a plan in it, and what it is compared with there ("standard" unless said).
"""

from course import figures
from evidence.research import numbers, pairs
from evidence.research.leads import as_row

PANELS = {"code: Python's library": "code", "a novel: War and Peace": "novel"}


def row_of(name, system, text):
    """What `figures.interval_marks` draws of a system on a text; None while it is not recorded."""
    if isinstance(system, str):
        found = numbers.against_standard([system], text)
        return figures.ahead(found)[0] | dict(plan=name) if found else None
    grid, plan, *base = system
    if not pairs.whole(f"{grid}_{text}"):  # nothing is decided from a part of a grid
        return None
    ours, theirs = (cell_of_grid(grid, words, text) for words in (plan, *(base or ["standard"])))
    return as_row(name, numbers.differences(ours, "", theirs))


def cell_of_grid(grid, words, text):
    """ "standard hidden=416" of a grid's file for a text, as `numbers` names it."""
    plan, *asked = words.split()
    return " ".join([plan, "in", f"{grid}_{text}", *asked, "vocab=None"])


def found(systems):
    """{text: {name: row}} of systems {name: system}, as far as they are recorded."""
    table = {}
    for text in PANELS.values():
        rows = {name: row_of(name, system, text) for name, system in systems.items()}
        table[text] = {name: row for name, row in rows.items() if row}
    return table


def drawn_on_both(table, title=""):
    """What `found` says as a figure, a panel for each text."""
    from evidence.research import pictures

    panels = {words: list(table[text].values()) for words, text in PANELS.items()}
    xlabel = "held-out nats a token ahead of standard; filled: clear of zero"
    return pictures.beside(panels, title, xlabel)


def show(systems, title, alt):
    """Print and draw the systems; what `found` says."""
    table = found(systems)
    longest = max(map(len, systems))
    for words, text in PANELS.items():
        print(f"{words}: held-out nats a token ahead of standard")
        for name in systems:
            row = table[text].get(name)
            print(f"  {name:{longest}}  {row_told(row) if row else 'not recorded yet'}")
    if all(table.values()):
        figures.show(drawn_on_both(table, title), alt)
    return table


def row_told(row):
    if row["low"] is None:
        return f"{row['difference']:+.3f}, one seed"
    return f"{row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f}, {row['n']} seeds)"
