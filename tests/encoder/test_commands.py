"""Do the encoder's commands hand an encoder over, and answer what is wrong in one sentence?"""

import json

import pytest

from course.village import make
from minimal.encoder import finetune, pretrain, wordpiece
from minimal.model import config
from minimal.model.values import Bypass
from minimal.training import checkpoint
from minimal.training.checkpoint import CheckpointError
from tests.encoder.small import TINY, WORDS, encoder


@pytest.fixture
def pretrained(tmp_path, book, monkeypatch, capsys):
    """(folder of a small encoder, the words of its command)."""
    monkeypatch.setitem(config.SIZES, "bert-4l", TINY)
    text = tmp_path / "river.txt"
    text.write_text("".join(book.documents("train")), encoding="utf-8")
    out = tmp_path / "mlm"
    words = ["--corpus", str(text), "--vocab", "120", "--stages", "16x4x4,48x2x2"]
    words += ["--plan", '{"alpha": "head"}', "--lr", "0.01", "--ramp", "decay", "--out", str(out)]
    pretrain.main(words)
    assert "nats a masked piece" in capsys.readouterr().out
    return out, words


def test_a_pretrained_encoder_is_restored_with_its_pieces_and_where_its_ramp_ended(pretrained):
    folder, words = pretrained
    model, pieces = pretrain.restore(folder)
    assert all(m.ramp == 0 for m in model.modules() if isinstance(m, Bypass)), "where it ended"
    assert model.config.context == 48 and len(model.coefficients()) == 2
    assert pieces.vocab == model.config.vocab <= 120

    other = ["--vocab", str(pieces.vocab - 3)]
    with pytest.raises(SystemExit, match="pretrain: .* holds another run"):
        pretrain.main([*words, *other])
    again = pretrain.restore(folder)[1]
    assert again.fingerprint == pieces.fingerprint, "a refused run changes nothing"

    path = folder / "last.safetensors"
    tensors, state = checkpoint.load(path)
    checkpoint.save(path, {name: tensor.long() for name, tensor in tensors.items()}, state)
    with pytest.raises(CheckpointError, match="wanted weights with a fraction .*got torch.int64"):
        pretrain.restore(folder)
    checkpoint.save(path, tensors, state)

    wordpiece.learn_pieces(WORDS, 80).raw.save(str(folder / "tokenizer.json"))
    with pytest.raises(CheckpointError, match="is not the one that its encoder was trained with"):
        pretrain.restore(folder)


def test_a_pretrained_encoder_is_fine_tuned_over_seeds(pretrained, tmp_path, capsys):
    folder, _ = pretrained
    for split in ("train", "test"):
        tree = json.dumps(make(1, 4, 0, split))
        (tmp_path / f"{split}.json").write_text(tree, encoding="utf-8")
    words = ["--train", str(tmp_path / "train.json"), "--test", str(tmp_path / "test.json")]
    words += ["--encoder", str(folder), "--length", "48", "--epochs", "1", "--batch", "8"]
    finetune.main([*words, "--seeds", "42", "2"])
    said = capsys.readouterr().out
    assert "seed 42:" in said and "seed 2:" in said and "± " in said and "skipped" in said
    (tmp_path / "train.json").write_text("no tree", encoding="utf-8")
    with pytest.raises(SystemExit, match="finetune: .*is not JSON"):
        finetune.main(words)
    with pytest.raises(SystemExit, match="2"):
        finetune.main(["--train", "x.json", "--test", "y.json"])


# ---- what is wrong ------------------------------------------------------------------------------
SQUAD = "--train train.json --test train.json"

# fmt: off
WRONG = [  # command, its words, what it says
    (pretrain, "--stages abc", "pretrain: stages 'abc': wanted LENGTHxBATCHxSTEPS"),
    (pretrain, "--stages 0x0x0", "at least 4x1x1"),
    (pretrain, '--plan {"alpha":head}', "wanted a name, or dials as JSON"),
    (pretrain, '--plan {"alpha":["head"]}', "alpha=['head']: wanted one of fixed"),
    (pretrain, "--plan nobody", "unknown plan 'nobody'"),
    (pretrain, "--plan gpt2", "an encoder reads both ways: wanted style bert, got gpt2"),
    (pretrain, "--size nano", "an encoder reads both ways: wanted style bert, got nanochat"),
    (pretrain, "--size huge", "unknown size 'huge'"),
    (pretrain, "--pieces noise.json", "noise.json holds something else"),
    (pretrain, "--pieces noise.txt", "noise.txt holds something else"),
    (pretrain, "--pieces absent.txt", "absent.txt is not there"),
    (pretrain, "--vocab 0", "--vocab: wanted a whole number above 0"),
    (pretrain, "--tokens -3", "--tokens: wanted a whole number above 0"),
    (pretrain, "--lr nan", "--lr: wanted a number above 0"),
    (pretrain, "--seed 99999999999999999999999", "--seed: wanted a whole number from 0"),
    (pretrain, "--out noise.txt", "pretrain: cannot write noise.txt/tokenizer.json (File exists)"),
    (finetune, "--train no.json --test no.json --encoder mlm", "finetune: no.json: No such file"),
    (finetune, f"{SQUAD} --encoder gpt", "gpt holds no encoder: its checkpoint does not say"),
    (finetune, f"{SQUAD} --encoder old", "old holds an encoder that cannot be built here"),
    (finetune, f"{SQUAD} --encoder nowhere", "no checkpoint at nowhere"),
    (finetune, f"{SQUAD} --pieces tokenizer.json --weights absent", "absent is not there"),
    (finetune, f"{SQUAD} --pieces tokenizer.json --weights noise.txt", "got something else"),
    (finetune, f"{SQUAD} --encoder mlm --size bert-4l --plan bypass",
     "mlm says itself what it holds: leave out --size, --plan, or --encoder"),
    (finetune, f"{SQUAD} --encoder mlm --epochs 0", "--epochs: wanted a number above 0"),
    (finetune, f"{SQUAD} --encoder mlm --batch 0", "--batch: wanted a whole number from 1"),
    (finetune, f"{SQUAD} --encoder mlm --length -1", "--length: wanted a whole number from 8"),
]
# fmt: on


@pytest.mark.parametrize("module, words, sentence", WRONG)
def test_a_wrong_command_is_answered_by_one_sentence(
    module, words, sentence, tmp_path, capsys, pieces, book, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(config.SIZES, "bert-base", TINY)
    monkeypatch.setattr(pretrain.corpora, "find", lambda *_: book)
    (tmp_path / "train.json").write_text(json.dumps(make(1, 2)), encoding="utf-8")
    for name in ("noise.json", "noise.txt"):
        (tmp_path / name).write_bytes(bytes(range(128, 200)) if "txt" in name else b"no tree")
    pieces.raw.save("tokenizer.json")

    # A decoder's checkpoint, one of a Config that has other fields, and one as it should be.
    model = encoder(pieces.vocab)
    tensors = {f"model/{name}": p for name, p in model.named_parameters()}
    about = pretrain.identity("standard", model.config, pieces, ramp=None)
    kinds = dict(gpt=dict(plan="standard"), old=about | dict(config=dict(depth=3)), mlm=about)
    for name, identity in kinds.items():
        checkpoint.save(tmp_path / name / "last.safetensors", tensors, dict(identity=identity))
        pieces.raw.save(str(tmp_path / name / "tokenizer.json"))

    with pytest.raises(SystemExit) as stopped:
        module.main(words.split(" "))
    said = f"{stopped.value} {capsys.readouterr().err}".strip()
    assert sentence in said and "\n" not in said and stopped.value.code != 0
