"""What may come in? Every wrong input is refused once, at the boundary, in one sentence.

Shapes and types are looked at always. Numbers inside a tensor are looked at on a CPU only, where it
costs microseconds: on a GPU each look would wait for the device.
"""

import numbers

import torch


def whole_number(name, value, least):
    """A whole number of at least so much."""
    if not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name}: wanted a whole number from {least}, got {value!r}")


def names_of_changes(changes, known):
    """The fields that are changed in a Config."""
    for name in changes:
        if name not in known:
            raise ValueError(f"a size has no {name!r}: choose one of {', '.join(known)}")


def config(wanted):
    """The fields of a Config."""
    for name in ("layers", "width", "heads", "context", "vocab"):
        whole_number(name, getattr(wanted, name), 1)
    for name in ("groups", "hidden"):
        value = getattr(wanted, name)
        if value is not None:
            whole_number(name, value, 1)
    if not (isinstance(wanted.dropout, numbers.Real) and 0 <= wanted.dropout < 1):
        raise ValueError(f"dropout: wanted a share from 0 to below 1, got {wanted.dropout}")
    if wanted.width % wanted.heads:
        raise ValueError(
            f"width {wanted.width} does not split into {wanted.heads} heads: "
            "choose heads that divide it"
        )
    if wanted.heads % wanted.groups:
        raise ValueError(
            f"{wanted.heads} query heads do not share {wanted.groups} key/value heads evenly: "
            "choose groups that divide the heads"
        )
    if not is_pattern(wanted.windows) and not are_widths(wanted.windows):
        raise ValueError(
            "windows: wanted a pattern of S (short) and L (long), or keys to the left by layer "
            f"(0 = all); got {wanted.windows!r}"
        )
    if are_widths(wanted.windows) and wanted.layers % len(wanted.windows):
        raise ValueError(
            f"windows: wanted a width for each of {wanted.layers} layers, or a row of widths that "
            f"repeats in them evenly; got {len(wanted.windows)}: {wanted.windows!r}"
        )


def is_pattern(windows):
    return isinstance(windows, str) and windows != "" and set(windows) <= set("SL")


def are_widths(windows):
    if not isinstance(windows, (list, tuple)) or not windows:
        return False
    return all(isinstance(width, numbers.Integral) and width >= 0 for width in windows)


def heads(style, head, width):
    """Rotary positions need heads of even width."""
    if "rope" in style.positions and head % 2:
        raise ValueError(
            f"rotary positions turn pairs of features, and heads of {head} do not split into "
            f"pairs: choose heads so that width {width} / heads is even"
        )


def direction(style, both_ways):
    """A decoder must not see what comes later, and an encoder must."""
    if both_ways and style.causal:
        raise ValueError(f"an encoder reads both ways: wanted style bert, got {style.name}")
    if not both_ways and not style.causal:
        raise ValueError(
            f"a decoder in style {style.name} would see the token that it is to predict: choose "
            "another style or size, or train an encoder, python -m minimal.encoder.pretrain"
        )


def one_pass(model, ids, cache, windows, lengths):
    """The arguments of one forward pass."""
    tokens(ids, model.config.vocab)
    layers = model.config.layers
    if not are_widths(windows) or len(windows) != layers:
        raise ValueError(
            f"windows: wanted {layers} whole numbers, keys to the left by layer (0 = all); "
            f"got {windows}"
        )
    if cache is not None and cache.batch not in (None, len(ids)):
        raise ValueError(
            f"the cache holds {cache.batch} rows, and ids have {len(ids)}: expand it, or start a "
            "cache of their own"
        )
    positions(model, ids.shape[1] + (0 if cache is None else cache.length))
    if lengths is not None:
        padding(lengths, ids, cache)


def padding(lengths, ids, cache):
    """How many positions of each row are text. Only a pass without a cache knows the others."""
    whole_numbers("lengths", lengths)
    if lengths.shape != ids.shape[:1]:
        wanted, got = tuple(ids.shape[:1]), tuple(lengths.shape)
        raise ValueError(f"lengths: wanted shape {wanted}, one a row; got {got}")
    between("lengths", lengths, 0, ids.shape[1])
    if cache is not None:
        raise ValueError(
            "lengths: wanted a pass without a cache, got one with a cache, which would keep "
            "padding as text: give each text a cache of its own"
        )


def on_tape(cache, windows, lengths):
    """Beside a tape, what it was made with is said already."""
    given = dict(cache=cache, windows=windows, lengths=lengths)
    twice = [name for name, value in given.items() if value is not None]
    if twice:
        names = ", ".join(twice)
        raise ValueError(f"wanted a tape alone, got {names} beside it: make the tape with {names}")


def blank(tape):
    """A tape holds one pass, and a second one would be written behind it."""
    if tape.streams:
        raise ValueError("wanted a blank tape, got one with a pass on it: model.tape makes another")


def positions(model, end):
    """Learned positions end with the context."""
    learned = model.position is not None and not model.both_ways  # an encoder says it in its words
    if learned and end > model.config.context:
        raise ValueError(
            f"wanted position {end} of a model with {model.config.context} learned positions: "
            "shorten the text or train with a longer context"
        )


def tokens(ids, vocab):
    """Token ids (B, T) of this vocabulary."""
    whole_numbers("ids", ids)
    if ids.ndim != 2:
        raise ValueError(f"ids: wanted shape (B, T), got {tuple(ids.shape)}")
    between("ids", ids, 0, vocab - 1)


def targets(wanted, ids, vocab, reduction):
    """Targets (B, T), where those below 0 do not count. A mean wants one at least that does."""
    whole_numbers("targets", wanted)
    if wanted.shape != ids.shape:
        raise ValueError(
            f"targets: wanted shape {tuple(ids.shape)}, that of ids; got {tuple(wanted.shape)}"
        )
    if not may_look(wanted):
        return
    largest = int(wanted.max()) if wanted.numel() else -1
    if largest >= vocab:
        raise ValueError(f"targets: wanted numbers below {vocab}, got {largest}")
    if largest < 0 and reduction == "mean":
        raise ValueError("targets: wanted one at least that counts (0 or above), got none")


def whole_numbers(name, tensor):
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{name}: wanted a tensor, got {type(tensor).__name__}")
    if tensor.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name}: wanted whole numbers (int64 or int32), got {tensor.dtype}")


def between(name, tensor, least, most):
    if not may_look(tensor) or not tensor.numel():
        return
    low, high = (int(end) for end in tensor.aminmax())
    if low < least or high > most:
        got = low if low < least else high
        raise ValueError(f"{name}: wanted {least} to {most}, got {got}")


def may_look(tensor):
    """Can the numbers be read here and now? Not on a GPU, and not while a graph is made."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
