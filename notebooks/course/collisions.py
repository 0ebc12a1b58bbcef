"""How often do n-grams meet in a slot? Counted on a text, for any table and rule."""

import torch

from minimal.model.ngram import last_ids, slots


def collisions(ids, n, rows, slot_of=slots):
    """How often do names meet? Of the n-grams of ids (B, S): names, slots in use, and the shares of
    names, and of positions, whose slot another name uses, too."""
    name = number_of_each([x[:, n - 1 :].flatten() for x in last_ids(ids, n)])  # (N,)
    chosen = slot_of(ids, n, rows)[:, n - 1 :].flatten().long()  # (N,)
    times = name.bincount()
    slot = torch.empty(len(times), dtype=torch.long).index_put_((name,), chosen)
    shared = torch.bincount(slot, minlength=rows)[slot] > 1  # by name
    return dict(
        names=len(times),
        used=len(slot.unique()),
        names_sharing=shared.float().mean().item(),
        positions_sharing=(times * shared).sum().item() / len(chosen),
    )


def number_of_each(columns):
    """One number a place, the same where all columns (N,) agree. Numbers stay below N, so that any
    number of columns fits in 64 bits, and single numbers sort ten times as fast as rows."""
    name = torch.zeros_like(columns[0], dtype=torch.long)
    for column in columns:
        name = (name * (int(column.max()) + 1) + column).unique(return_inverse=True)[1]
    return name
