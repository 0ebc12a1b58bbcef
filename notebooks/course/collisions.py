"""How often do n-grams meet in a slot? Counted on a text, for any table and rule."""

import torch

from minimal.model.ngram import last_ids, slots


def collisions(ids, n, rows, slot_of=slots):
    """How often do names meet? Of the n-grams of ids (B, S): names, slots in use, and the shares of
    names, and of positions, whose slot another name uses, too."""
    names = torch.stack([x[:, n - 1 :] for x in last_ids(ids, n)], -1).flatten(0, 1)  # (N, n)
    chosen = slot_of(ids, n, rows)[:, n - 1 :].flatten().long()  # (N,)
    unique, which, times = names.unique(dim=0, return_inverse=True, return_counts=True)
    slot = torch.empty(len(unique), dtype=torch.long).index_put_((which,), chosen)
    shared = torch.bincount(slot, minlength=rows)[slot] > 1  # by name
    return dict(
        names=len(unique),
        used=len(slot.unique()),
        names_sharing=shared.float().mean().item(),
        positions_sharing=(times * shared).sum().item() / len(chosen),
    )
