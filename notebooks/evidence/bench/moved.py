"""How many bytes must each way of reading values move? Floors, beside which times are told."""


def rows_bytes(B, T, S, H, G, D, V, b=4, distinct=None):
    """(from memory, through the caches): keys and ids once, and rows, the distinct ones or all."""
    keys = B * S * G * D * b + B * S * 4
    rows = min(distinct or V, B * S) * G * D * b
    return keys + rows, keys + B * T * H * S * D * b


def histogram_bytes(B, T, S, H, G, D, V, b=4, distinct=None):
    """Keys and ids once, bins cleared, filled and read, rows once: those that occur, or all."""
    keys = B * S * G * D * b + B * S * 4
    bins = B * T * H * V * 4
    return keys + 4 * bins + (distinct or V) * G * D * b


def sorted_bytes(B, T, S, H, G, D, runs, b=4):
    """Keys once, one row a run and query head, run lengths and tokens."""
    keys = B * S * G * D * b
    return keys + B * T * H * runs * D * b + B * runs * 12


def split_bytes(B, T, S, H, G, D, V, b=2, splits=1, distinct=None):
    """(from HBM, through L2): keys and ids once; rows that occur from HBM, a row a key from L2."""
    keys = B * S * G * D * b + B * S * 4
    partial = 2 * splits * B * T * H * (D + 1) * 4 if splits > 1 else 0
    edges = 2 * B * T * H * D * b + partial
    rows = min(distinct or V, B * S) * G * D * b
    return keys + edges + rows, keys + edges + B * S * G * D * b


def forward_bytes(B, T, S, H, G, D, V, b=2, distinct=None, keep=True):
    """What must cross HBM once: q, k, ids, the table rows that occur, out.

    Training (`keep`) also writes the unscaled out and lse. Attention over stored values reads
    B*S*G*D*b where this reads `distinct` rows (all of V unless told)."""
    queries, keys, ids = B * T * H * D * b, B * S * G * D * b, B * S * 4
    rows = min(distinct or V, B * S) * G * D * b
    kept = queries + B * H * T * 4 if keep else 0
    return 2 * queries + keys + ids + rows + kept
