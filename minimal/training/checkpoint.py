"""How is a run put on disk so that nothing can be lost? One safetensors file, its JSON in the header, one rename."""

import json
import os
from pathlib import Path

import torch

FORMAT = "minimal-checkpoint-1"


class CheckpointError(ValueError):
    """What was wanted, what came, what to do."""


def kept(path):
    """What an error may promise of the file at `path`, which it has not touched."""
    return (
        f"the last checkpoint, {path}, is untouched"
        if path.exists()
        else "there is no earlier checkpoint"
    )


def save(path, tensors, state):
    """Write all of it beside `path`, then rename: a kill leaves the old file or the new one, never half of one."""
    from safetensors.torch import save_file

    path = Path(path)
    part = path.with_name(
        f".{path.name}.part"
    )  # one name: what a kill leaves is overwritten by the next save
    meta = dict(format=FORMAT, state=json.dumps(state))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({name: t.detach().contiguous() for name, t in tensors.items()}, str(part), meta)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except Exception as error:  # safetensors reports a full disk as an error of its own
        part.unlink(missing_ok=True)
        raise CheckpointError(
            f"could not write {path}: {error}; {kept(path)}; make room and run the same command again"
        ) from error


def load(path):
    """(tensors, state). A file that is cut short, or is not ours, gets one sentence."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    path = path / "last.safetensors" if path.is_dir() else path
    if not path.exists():
        raise CheckpointError(
            f"no checkpoint at {path}: train one with python -m minimal.train --out FOLDER"
        )
    try:
        with safe_open(str(path), "pt") as file:
            meta = file.metadata() or {}
            if meta.get("format") != FORMAT:
                raise CheckpointError(
                    f"{path} is a safetensors file but no checkpoint of this course "
                    f"(format {meta.get('format')}, wanted {FORMAT})"
                )
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(meta["state"])
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged or no checkpoint ({error}): delete it; the run then starts anew"
        ) from error


def load_weights(model, tensors):
    """Load weights into a model, or say in one sentence how they differ."""
    own = dict(model.named_parameters())
    missing, foreign = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    shapes = [
        f"{n} {tuple(tensors[n].shape)} for {tuple(p.shape)}"
        for n, p in own.items()
        if n in tensors and tensors[n].shape != p.shape
    ]
    if missing or foreign or shapes:
        what = "; ".join(
            f"{k} {', '.join(v[:3])}"
            for k, v in (("lacks", missing), ("has besides", foreign), ("other shapes:", shapes))
            if v
        )
        raise CheckpointError(
            f"the checkpoint does not fit this model: it {what}; name the plan, size and vocabulary it was made with"
        )
    with torch.no_grad():
        for name, p in own.items():
            p.copy_(tensors[name])
