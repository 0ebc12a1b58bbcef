"""Which row of a table do the last n ids choose? Slots by hash, and the values that stand in them.

An n-gram of a vocabulary of V has V^n names, too many for a table; a hash gives every name one of
`rows` slots, and names that meet in a slot share its row. Slots are whole numbers like ids: what
reads a bank by ids, kernels included, reads it by slots.
"""

import torch.nn.functional as F

from minimal.model.values import Table

PRIME = 2**31 - 1  # products of two numbers below it stay below 2^62
# factors that look like chance and are the same everywhere: powers of 48271, a generator of PRIME
FACTORS = [pow(48271, 100 + i, PRIME) for i in range(128)]


APART = 8  # factors between two heads: a hash takes one for each id, and one to add


def factors(n, head=0):
    """n factors and a summand for the hash of n ids; another `head`, other numbers. Hashes of one
    head share their factors: two ids and three meet together more often than by chance."""
    heads = len(FACTORS) // APART
    if n >= APART or head >= heads:
        raise ValueError(
            f"wanted at most {APART - 1} ids and a head below {heads}, got {n} ids and head {head}"
        )
    return FACTORS[APART * head :][: n + 1]


def last_ids(ids, n):
    """The id here, the one before, … (n of them), each (B, S), plus 1; 0 before the text begins."""
    ids = ids.long() + 1
    return [F.pad(ids, (back, 0))[:, : ids.shape[1]] for back in range(n)]


def hashed(numbers, rows, head=0):
    """((a_1 x_1 + … + a_n x_n + b) mod PRIME) mod rows: Carter and Wegman's universal hash.

    Two different names meet with a chance of about 1 / rows, over the choice of a and b.
    """
    *chosen, total = factors(len(numbers), head)
    for factor, number in zip(chosen, numbers):
        total = total + factor * number % PRIME
    return total % PRIME % rows


def slots(ids, n, rows, head=0):
    """The slot of every n-gram that ends here (B, S), in a table of any size."""
    return hashed(last_ids(ids, n), rows, head).int()


def slots_of_token(ids, n, vocab, times):
    """The same where every token has `times` rows of its own: what came before chooses among them.

    Names meet only if they end with the same id. With times = 1 this is the id itself.
    """
    before = last_ids(ids, n)[1:]
    return (ids.long() + vocab * hashed(before, times)).int()


class NGram(Table):
    """V = E[slot(the last n ids)], a table of `times` rows a token: a bank of n-gram values.

    by="token": every token has its own rows, which start alike, as Bank of Values' row does; the
    earlier ids choose among them. by="hash": all n ids choose among all rows. Decoding keeps ids.
    """

    mark = "slots"
    recalls = True

    def __init__(self, n=2, times=8, by="token", bank=None, start=None, **where):
        start = start or ("aligned" if by == "token" else "normal")
        super().__init__(bank=bank, start=start, **where)
        self.n, self.times, self.by = n, times, by
        self.vocab = self.config.padded(self.config.style.pad_embed)
        self.size = times * self.vocab

    def named(self, tape):
        """The slots of all visible positions (B, S), made once a pass."""
        key = (self.n, self.times, self.by)
        if key not in tape.slots:
            ids = tape.token_ids()
            if self.by == "token":
                tape.slots[key] = slots_of_token(ids, self.n, self.vocab, self.times)
            else:
                tape.slots[key] = slots(ids, self.n, self.size)
        return tape.slots[key]

    def rows(self, h, at, tape):
        new = tape.new(self.named(tape))  # (B, T)
        return tape.banks[self.bank](new).to(h.dtype)  # (B, T, G, D)

    def word(self):
        return f"E[{self.n}-gram]"
