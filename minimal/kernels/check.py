"""Is this call right? One clear sentence for each way to call gather attention wrongly."""

import torch

from minimal.kernels.reference import TOLERANCE


def want(holds, sentence, *got):
    """Refuse with a sentence, which is only written where it is needed."""
    if not holds:
        raise ValueError(sentence.format(*got))


def check(q, k, table, ids, gain, window, lengths, scale):
    """Shapes, then types, then settings, then devices, then what the integers say."""
    for name, x, n in (("q", q, 4), ("k", k, 4), ("table", table, 3), ("ids", ids, 2)):
        want(x.ndim == n, "{} wants {} dimensions, got {}", name, n, x.shape)
    (B, _, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)

    # shapes
    fits = k.shape == (B, S, G, D)
    want(fits, "k wants batch {} and head width {} as q has, got {}", B, D, k.shape)
    want(G > 0 and H % G == 0, "q's {} heads want to be a multiple of k's {} heads", H, G)
    want(table.shape == (V, G, D), "table wants (V, {}, {}) to fit k, got {}", G, D, table.shape)
    want(ids.shape == (B, S), "ids wants one id a key, ({}, {}), got {}", B, S, ids.shape)

    # types
    want(ids.dtype == torch.int32, "ids wants torch.int32, got {}: call ids.int()", ids.dtype)
    same = q.dtype in TOLERANCE and k.dtype == q.dtype
    want(same, "q and k want one floating dtype, got {} and {}", q.dtype, k.dtype)
    want(table.dtype in TOLERANCE, "table wants a floating dtype, got {}", table.dtype)

    # settings
    scalar = isinstance(gain, torch.Tensor) and gain.ndim == 0
    want(gain is None or scalar, "gain wants a 0-D tensor or None, got {}", gain)
    want(window >= 0, "window wants the number of keys to the left, 0 for all, got {}", window)
    want(scale is None or scale > 0, "scale wants a positive number, got {}", scale)
    if lengths is not None:
        whole = lengths.shape == (B,) and lengths.dtype in (torch.int32, torch.int64)
        want(whole, "lengths wants {} integers, one a sequence, got {}", B, lengths)

    # devices
    others = dict(k=k, table=table, ids=ids, gain=gain, lengths=lengths)
    for name, x in others.items():
        here = x is None or x.device == q.device
        want(here, "all tensors want one device, got q on {} and {} elsewhere", q.device, name)

    # the integers
    if ids.numel() and may_look_now(ids, V):
        low, high = (int(x) for x in ids.aminmax())
        named = 0 <= low and high < V
        want(named, "ids want to name rows 0 to {}, padding too, got {} to {}", V - 1, low, high)
        low, high = (0, S) if lengths is None else (int(x) for x in lengths.aminmax())
        inside = 0 <= low and high <= S
        want(inside, "lengths want 0 to {} keys, got {} to {}", S, low, high)


def stamp(ids, vocabulary):
    """Changes when somebody writes to the ids, except in inference mode, which counts no writes."""
    return vocabulary, None if ids.is_inference() else ids._version


def may_look_now(ids, vocabulary):
    """On a CPU always. On a GPU a look waits for the device: once for these ids, not once a layer.

    While a CUDA graph is recorded, or a model compiled, nobody can look: make one call before."""
    if torch.compiler.is_compiling() or (ids.is_cuda and torch.cuda.is_current_stream_capturing()):
        return False
    if not ids.is_cuda:
        return True
    now, before = stamp(ids, vocabulary), getattr(ids, "_looked", None)
    ids._looked = now
    return before != now


def kernel_ready(q, k, table, ids):
    """What the kernels take for granted: types, head width, whole rows, offsets in 32 bits."""
    half_or_single = torch.float64 not in (q.dtype, table.dtype)
    want(half_or_single, "the kernels want float32, bfloat16 or float16, got float64")
    D = q.shape[-1]
    want(32 <= D <= 128, "the kernels want a head width of 32 to 128, got {}: use way='dense'", D)
    multiplies_right = q.is_cuda or torch.bfloat16 not in (q.dtype, table.dtype)
    want(
        multiplies_right,
        "Triton's interpreter multiplies bfloat16 wrongly and says nothing: use float32",
    )

    k, table, ids = (x if x.stride(-1) == 1 else x.contiguous() for x in (k, table, ids))
    for name, x in (("a sequence of k", k[0]), ("table", table)):
        steps = zip(x.shape, x.stride(), strict=True)
        elements = 1 + sum((n - 1) * step for n, step in steps)
        want(
            elements <= 2**31,
            "the kernels want fewer than 2^31 elements in {}, got {}: use way='dense'",
            name,
            elements,
        )
    return q.contiguous(), k, table, ids


def as_int32(lengths):
    return None if lengths is None else lengths.int()
