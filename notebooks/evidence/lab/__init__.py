"""The laboratory: one table of all runs, what was asked of them, and one comparison.

    from evidence.lab import runs, lead
    lead(runs(), "x0-v", text="code", rates="fine")     +0.108 (+0.085 to +0.131)

    table = runs()                                      of the last five of its ten seeds alone
    lead(table[table.seed > 7], "x0-v", text="code", rates="fine")

A lead above zero means a lower held-out loss than the other, in nats a token.
"""

from evidence.lab.comparison import NotRecorded, change, effect, lead, leads, tabled
from evidence.lab.picture import along, picture
from evidence.lab.table import runs

__all__ = ["NotRecorded", "along", "change", "effect", "lead", "leads", "picture", "runs", "tabled"]
