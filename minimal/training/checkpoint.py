"""How is a run put on disk so that nothing is lost? A checkpoint: one safetensors file, one rename.

Its tensors are weights ("model/…"), optimizer state ("optimizer/…") and what every step has left
("history/…"); its header holds JSON, the `state`: who trained this (`identity`), how far, and
whatever else the writer keeps. Beside it stands the SHA-256 of both, which is checked whenever the
file is opened: a disk may lose a bit.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch

from minimal.data.files import whole

FORMAT = "minimal-checkpoint-3"
HISTORY_IN_STATE = "minimal-checkpoint-2"  # until late 2026; it is read
WITHOUT_HASH = "minimal-checkpoint-1"  # before that; it is read, with a word


class CheckpointError(ValueError):
    """What was wanted, what we got, what to do."""


def kept(path):
    """What an error may promise of the file at `path`, which it has not touched."""
    if path.exists():
        return f"the last checkpoint, {path}, is untouched"
    return "there is no earlier checkpoint"


def save(path, tensors, state):
    """An atomic write: a kill leaves the old file or the new one, never half of one."""
    from safetensors.torch import save_file

    path = Path(path)
    part = path.with_name(f".{path.name}.part")  # one name: the next save replaces a kill's rest
    tensors = tensors | columns(state.get("history"))
    tensors = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    told = {name: value for name, value in state.items() if name != "history"}
    header = dict(format=FORMAT, state=json.dumps(told))
    header["sha256"] = content_hash(tensors, header["state"])
    try:
        with whole(path, part):
            save_file(tensors, str(part), header)
    except Exception as error:  # safetensors reports a full disk as an error of its own
        told = getattr(error, "strerror", None) or error
        fix = "make room there, or name another folder with --out, and run the same command again"
        if "header too large" in str(told):  # of evaluations: 100 MB
            fix = "evaluate less often, with --evaluate"
        raise CheckpointError(f"could not write {path}: {told}; {kept(path)}; {fix}") from error


def columns(history):
    """What every step has left, as tensors: losses, and coefficients where there are any. A header
    ends at 100 MB, which a hundred thousand steps would fill."""
    if history is None:
        return {}
    found = dict(loss=torch.tensor([row["loss"] for row in history], dtype=torch.float64))  # (N,)
    if history and "coefficients" in history[0]:
        rows = [row["coefficients"] for row in history]
        found["coefficients"] = torch.tensor(rows, dtype=torch.float32)  # (N, how many)
    return {f"history/{name}": tensor for name, tensor in found.items()}


def history_of(tensors):
    """The same as rows again, a dict a step, from step 1 on."""
    found = {name: tensor.tolist() for name, tensor in part(tensors, "history/").items()}
    steps = range(1, 1 + len(found["loss"]))
    return [dict(zip(("step", *found), row)) for row in zip(steps, *found.values())]


def content_hash(tensors, state):
    """The SHA-256 of all that a checkpoint says: names, types, shapes, numbers, and its state."""
    found = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()


def load(path, **kinds):
    """(tensors, state) of a file, or of a run's folder. Damage gets one sentence.

    `kinds` are entries of the state that the caller needs, with their types; `identity` always is.
    """
    path = Path(path)
    path = path / "last.safetensors" if path.is_dir() else path
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise CheckpointError(f"wanted a checkpoint, got {path}, which is no file: name another")
    if not path.exists():
        raise CheckpointError(
            f"no checkpoint at {path}: train one with python -m minimal.train --out FOLDER"
        )
    tensors, header = contents(path)
    if header.get("format") not in (FORMAT, HISTORY_IN_STATE, WITHOUT_HASH):
        raise CheckpointError(
            f"{path} is a safetensors file but no checkpoint of this course "
            f"(format {header.get('format')}, wanted {FORMAT})"
        )
    state = state_of(path, header)
    if header["format"] == WITHOUT_HASH:
        print(
            f"{path} is of an older version and has no hash: whether it is damaged cannot be told",
            file=sys.stderr,
        )
    elif header.get("sha256") != content_hash(tensors, header["state"]):
        raise CheckpointError(
            f"{path} is damaged: its content is not what was written; take a copy of it, or "
            "delete it, and the run starts anew"
        )
    if "history/loss" in tensors:
        state = dict(history=history_of(tensors)) | state
    check_kinds(path, state, dict(identity=dict) | kinds)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"{path} is damaged: {name} holds numbers that are not finite; delete it, and "
                "train again with a smaller --lr"
            )
    return tensors, state


def contents(path):
    """({name: tensor}, header) of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read ({error.strerror}): it is left as it is; ask its owner for "
            "permission, or name another"
        ) from None
    try:
        with safe_open(str(path), "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            return tensors, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged or no checkpoint ({error}): delete it; the run then starts anew"
        ) from error


def state_of(path, header):
    """The JSON of the header."""
    try:
        state = json.loads(header.get("state", "null"))
    except json.JSONDecodeError:
        state = None
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path} is damaged: wanted its state as a JSON object, got "
            f"{header.get('state', 'nothing')[:40]!r}; delete it; the run then starts anew"
        )
    return state


def check_kinds(path, state, kinds):
    """Is everything in the state that is wanted of it?"""
    for name, kind in kinds.items():
        if not isinstance(state.get(name), kind):
            raise CheckpointError(
                f"{path} is damaged or of another kind of run: wanted {name!r} in its state, got "
                f"{str(state.get(name, 'nothing'))[:40]}; name another folder, or delete it"
            )


def part(tensors, prefix):
    """The tensors whose names start with `prefix`, under the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def check_fractions(tensors):
    """What a model or an optimizer keeps, by name: a file may hold anything."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(
                f"{name}: wanted weights with a fraction (float32, bfloat16 …), got {tensor.dtype}"
            )


def load_weights(model, tensors):
    """Load weights into a model, or say in one sentence how they differ."""
    own = dict(model.named_parameters())
    shapes = [
        f"{name} {tuple(tensors[name].shape)} for {tuple(p.shape)}"
        for name, p in own.items()
        if name in tensors and tensors[name].shape != p.shape
    ]
    differences = {
        "lacks": sorted(own.keys() - tensors.keys()),
        "has besides": sorted(tensors.keys() - own.keys()),
        "other shapes:": shapes,
    }
    told = [f"{what} {', '.join(names[:3])}" for what, names in differences.items() if names]
    if told:
        raise CheckpointError(
            f"the checkpoint does not fit this model: it {'; '.join(told)}; "
            "name the plan, size and vocabulary it was made with"
        )
    with torch.no_grad():
        for name, p in own.items():
            p.copy_(tensors[name])
