"""Is a checkpoint that lost a bit noticed, and one that may not be read not called damaged?"""

import json
import os
import random
import re
import struct

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from minimal.training import checkpoint
from minimal.training.checkpoint import CheckpointError, content_hash
from minimal.training.run import TimeIsUp
from tests.training.toys import trained


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """A finished run's file, and where each of its tensors lies: {name: (first, last) byte}."""
    out = tmp_path_factory.mktemp("finished")
    trained(corpus, out, steps=2)
    content = (out / "last.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__")
    places = {name: entry["data_offsets"] for name, entry in header.items()}
    return content, {n: (8 + size + a, 8 + size + b) for n, (a, b) in places.items()}, 8 + size


def flipped(content, at, bit):
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def damages(content, places, start):
    """70 files: 40 with one bit of the weights flipped, 20 with one of the optimizer's state, 10
    with 4,096 bytes of zeros, as a lost block leaves them."""
    chance = random.Random(7)
    for kind, count in (("model/", 40), ("optimizer/", 20)):
        inside = [place for name, place in places.items() if name.startswith(kind)]
        weights = [last - first for first, last in inside]
        for first, last in chance.choices(inside, weights, k=count):
            yield flipped(content, chance.randrange(first, last), chance.randrange(8))
    held = [at for at in range(start, len(content) - 4096) if content[at] and content[at + 4095]]
    for at in chance.sample(held, 10):
        yield content[:at] + bytes(4096) + content[at + 4096 :]


def opens(path, content):
    path.write_bytes(content)
    try:
        checkpoint.load(path)
    except CheckpointError as error:
        assert str(path) in str(error) and "\n" not in str(error)
        return False
    return True


def test_every_lost_bit_and_every_lost_block_is_noticed(tmp_path, finished):
    content, places, start = finished
    path = tmp_path / "x.safetensors"
    assert opens(path, content)
    files = list(damages(*finished))
    assert len(files) == 70 and [i for i, file in enumerate(files) if opens(path, file)] == []


def test_a_lost_bit_in_the_header_is_noticed(tmp_path, finished):
    content, _, start = finished
    chance, path = random.Random(8), tmp_path / "x.safetensors"
    flips = [(chance.randrange(start), chance.randrange(8)) for _ in range(60)]
    assert [flip for flip in flips if opens(path, flipped(content, *flip))] == []


def test_a_run_does_not_go_on_from_a_damaged_file_and_says_what_to_do(corpus, tmp_path, finished):
    content, places, _ = finished
    first, _ = next(place for name, place in places.items() if name.startswith("optimizer"))
    (tmp_path / "last.safetensors").write_bytes(flipped(content, first, 0))
    with pytest.raises(CheckpointError, match="is damaged: its content is not what was written"):
        trained(corpus, tmp_path, steps=2)


def test_an_older_file_without_a_hash_is_read_with_a_word(tmp_path, finished, capsys):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished[0])
    with safe_open(str(path), "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        header = dict(file.metadata(), format=checkpoint.WITHOUT_HASH)
    del header["sha256"]
    save_file(tensors, str(path), header)
    assert checkpoint.load(path)[0].keys() == tensors.keys()
    assert f"{path} is of an older version and has no hash" in capsys.readouterr().err
    # a newer one has one
    save_file(tensors, str(path), header | dict(format=checkpoint.FORMAT))
    with pytest.raises(CheckpointError, match="is damaged: its content"):
        checkpoint.load(path)


# ---- what every step has left --------------------------------------------------------------------


def header_of(path):
    with safe_open(str(path), "pt") as file:
        return dict(file.metadata())


def test_a_headers_size_does_not_grow_with_the_steps_and_their_rows_come_back(tmp_path):
    """It ends at 100 MB: a run of 112,000 steps with 40 coefficients could not be saved."""
    chance, sizes = random.Random(9), []
    for steps in (10, 3000):
        rows = [dict(step=step, loss=chance.random()) for step in range(1, 1 + steps)]
        for row in rows:
            row["coefficients"] = torch.tensor([chance.random() for _ in range(40)]).tolist()
        path = tmp_path / f"{steps}.safetensors"
        checkpoint.save(path, {}, dict(identity={}, history=rows))
        assert checkpoint.load(path, history=list)[1]["history"] == rows
        sizes.append(len(header_of(path)["state"]))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("plan", ["row13", "standard"])
def test_a_run_goes_on_exactly_from_a_file_with_its_history_in_the_state(corpus, tmp_path, plan):
    """As files had it before; and what is then saved has it in tensors."""
    whole = trained(corpus, tmp_path / "whole", plan=plan)
    with pytest.raises(TimeIsUp):
        trained(corpus, tmp_path / "old", minutes=0, plan=plan)
    path = tmp_path / "old" / "last.safetensors"
    tensors, state = checkpoint.load(path)
    tensors = {name: t for name, t in tensors.items() if not name.startswith("history/")}
    header = dict(format=checkpoint.HISTORY_IN_STATE, state=json.dumps(state))
    header["sha256"] = content_hash(tensors, header["state"])
    save_file(tensors, str(path), header)
    parts = trained(corpus, tmp_path / "old", plan=plan)
    assert parts["losses"] == whole["losses"] and parts["coefficients"] == whole["coefficients"]
    assert "history" not in json.loads(header_of(path)["state"])
    tensors, state = checkpoint.load(path)
    assert tensors["history/loss"].tolist() == whole["losses"] and len(state["history"]) == 20


def test_a_lost_bit_of_the_history_is_noticed(tmp_path):
    path = tmp_path / "x.safetensors"
    checkpoint.save(path, {}, dict(identity={}, history=[dict(step=1, loss=0.5)]))
    content = path.read_bytes()
    assert opens(path, content) and not opens(path, flipped(content, len(content) - 3, 0))


def test_a_header_that_is_too_large_is_not_called_a_full_disk(tmp_path, monkeypatch):
    def too_large(*_):
        raise SafetensorError("Error while serializing: header too large")

    monkeypatch.setattr("safetensors.torch.save_file", too_large)
    with pytest.raises(CheckpointError, match="header too large; .*; evaluate less often") as told:
        checkpoint.save(tmp_path / "x.safetensors", {}, {})
    assert "make room" not in str(told.value)


def test_the_hash_tells_names_types_shapes_numbers_and_state_apart():
    x = torch.arange(4.0)
    same = [(dict(a=x), "{}"), (dict(a=x.clone()), "{}")]
    others = [(dict(b=x), "{}"), (dict(a=x.int()), "{}"), (dict(a=x.view(2, 2)), "{}")]
    others += [(dict(a=x + 1), "{}"), (dict(a=x), "{ }"), (dict(a=x, b=x), "{}"), ({}, "{}")]
    others += [(dict(a=x.bfloat16(), b=torch.tensor(1)), "{}"), (dict(a=torch.zeros(0)), "{}")]
    assert len({content_hash(*one) for one in same}) == 1
    assert len({content_hash(*one) for one in [same[0], *others]}) == 1 + len(others)


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, finished, monkeypatch):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished[0])
    kept = type(path).open

    def closed(self, *how, **more):
        if self == path:
            raise PermissionError(13, os.strerror(13), str(self))
        return kept(self, *how, **more)

    monkeypatch.setattr(type(path), "open", closed)
    with pytest.raises(CheckpointError) as told:
        checkpoint.load(tmp_path)
    assert re.search(r"cannot be read .Permission denied.: it is left as it is", str(told.value))
    assert "damaged" not in str(told.value) and "delete" not in str(told.value)
