"""Which way is right here, and why? A choice from shapes, with its reason in words."""

import importlib.util
import os
import sys

HAS_TRITON = importlib.util.find_spec("triton") is not None

# Query rows that share a key head; beyond, attention is bound by products and not by bytes.
DECODE_QUERIES = 64

# Numbers in the visible values; fewer are gathered by a CPU before another way has started.
FEW_VALUES = 2**19

# Keys in flight below which the launches of a GPU cost more than the bytes.
FEW_KEYS = 16384

# Between these shares of rows by position and rows by token, bytes do not decide on a CPU.
CLOSE = 4

# The same where the histogram reads rows of tokens that occur only: a large table costs its bins.
CLOSE_TO_BINS = 8


def worth_storing(positions, numbers, device):
    """Is a past of so many positions read faster where values are stored than where it names them?
    `numbers`: of one position's values, G D. As REASONS has it: few, and short."""
    return positions < FEW_KEYS if device == "cuda" else positions * numbers < FEW_VALUES


def kernels_run(device):
    """Triton is here and can run: on a GPU, or in its interpreter.

    TRITON_INTERPRET=1 asks for the interpreter, before the kernels are imported."""
    loaded = sys.modules.get("minimal.kernels.forward")
    interpreted = loaded.INTERPRETED if loaded else os.environ.get("TRITON_INTERPRET") == "1"
    return HAS_TRITON and (device == "cuda" or interpreted)


def in_reach(T, S, window):
    """How many keys of a sequence some query sees."""
    return min(S, window + T) if window else S


def table_rows(B, T, S, H, G, V, window=0):
    """(by position, by token): table rows that a step reads, one a key or the whole table once."""
    shared = B * T * H > G  # several query rows of a key head read the table together
    return B * T * H * in_reach(T, S, window), V * (G if shared else H)


def is_close(B, T, S, H, G, V, window=0):
    """Do bytes leave it open whether rows or the histogram is faster?"""
    by_position, by_token = table_rows(B, T, S, H, G, V, window)
    large_table = CLOSE if B * T * H > G else CLOSE_TO_BINS
    return by_position <= CLOSE * by_token and by_token <= large_table * by_position


REASONS = dict(
    window="uncompiled, PyTorch's attention computes all {S} keys of a query, "
    "the kernel about {window}; on an H100 that was 1.6 times as fast with a window of S/4",
    training="rows that are looked up cost 3 to 11 % of the forward on an H100, and PyTorch's "
    "attention was 1.2 to 1.7 times as fast as ours with them, its backward 2 to 4 times",
    triton="Triton is not installed",
    width="the kernels take head widths of 32 to 128 and no float64",
    wide="rows twice as wide as keys: on an H100 0.9 times as fast as a V cache at 16,384 "
    "keys, 1.1 to 1.2 times from 131,072 on, and 1.5 there with rows as wide as keys; keys of "
    "one byte are not yet measured on a GPU",
    long="keys from memory, table rows mostly from the L2 cache: 1.2 to 1.5 times as fast as a "
    "V cache on an H100",
    short="short: a V cache was 1.2 times as fast at 4,096 keys on an H100, but no V is stored",
    few="{positions} rows of values are there before a cleverer way starts",
    table="{by_token} rows of the whole table < {by_position} rows by position",
    position="{by_position} rows by position <= {by_token} rows of the whole table",
)


def route(B, T, S, H, G, D, V, **known):
    """(way, reason), from shapes. On a GPU as one H100 said, in notebooks/evidence/gather_gpu.json:
    the histogram won there by a hair in one case of those where keys are smaller than table rows,
    and nowhere else, so a GPU takes it only where a caller names it.

    On a CPU, where rows and the histogram are close, gather_attention measures both once."""
    way, why = choose_way(B, T, S, H, G, D, V, **known)
    window = known.get("window", 0)
    by_position, by_token = table_rows(B, T, S, H, G, V, window)
    numbers = dict(S=S, window=window, by_position=by_position, by_token=by_token)
    return way, REASONS[why].format(positions=B * in_reach(T, S, window), **numbers)


def choose_way(
    B, T, S, H, G, D, V,
    *,
    device, training=False, window=0, k_bytes=4, table_bytes=4, triton=None,
):  # fmt: skip
    """(way, name of the reason). A decode step asks in every layer and wants no words."""
    triton = HAS_TRITON if triton is None else triton
    gpu = device == "cuda"
    decoding = not training and T * (H // G) <= DECODE_QUERIES
    kernels_take = 32 <= D <= 128 and max(k_bytes, table_bytes) <= 4
    narrow = 0 < window <= S // 4  # measured with S / 4 and S / 16

    by_position, by_token = table_rows(B, T, S, H, G, V, window)
    positions = B * in_reach(T, S, window)

    wide = k_bytes < table_bytes  # rows of fp32 beside keys of bf16, as in training
    kernels = gpu and triton and kernels_take
    # fmt: off
    rules = [  # the first that holds
        (not decoding and kernels and narrow, "fused",     "window"),
        (not decoding,                        "dense",     "training"),
        (gpu and not triton,                  "dense",     "triton"),
        (gpu and not kernels_take,            "dense",     "width"),
        (gpu and wide,                        "split",     "wide"),
        (gpu and B * S >= FEW_KEYS,           "split",     "long"),
        (gpu,                                 "split",     "short"),
        (worth_storing(positions, G * D, device), "dense", "few"),
        (by_token < by_position,              "histogram", "table"),
        (True,                                "rows",      "position"),
    ]
    # fmt: on
    return next((way, why) for holds, way, why in rules if holds)
