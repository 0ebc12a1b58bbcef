"""Are 15 % of the pieces to be guessed, 80/10/10, always anew, never a special? Is a learned
vocabulary the same every time?"""

import math

import pytest
import torch

from minimal.data.files import DataError
from minimal.encoder import wordpiece

TEXT = [
    "The naïve café sells 652 kinds of tea, and the cats sleep. " * 3,
    "Tea and cats: sleeping kinds, selling naïvely.",
]


@pytest.fixture(scope="module")
def pieces():
    return wordpiece.learn_pieces(TEXT, 75)


@pytest.fixture(scope="module")
def ids(pieces):
    """256 rows of 64: [CLS], running pieces, [SEP], and padding behind every other row."""
    flat = torch.tensor(sum(pieces.encode_all(TEXT * 600), []))
    rows = torch.cat(
        [
            torch.full((256, 1), pieces.cls),
            flat[: 256 * 62].view(256, 62),
            torch.full((256, 1), pieces.sep),
        ],
        1,
    )
    rows[::2, 40:] = pieces.pad
    rows[5, 7] = pieces.unk
    return rows


def near(share, wanted, count, sigmas=5):
    return abs(share - wanted) < sigmas * math.sqrt(wanted * (1 - wanted) / count)


def test_the_shares_are_15_percent_and_of_these_80_10_10(ids, pieces):
    chosen = masked = swapped = kept = opened = 0
    for step in range(20):
        inputs, targets = wordpiece.mask(ids, pieces, 0, step)
        guess = targets != wordpiece.IGNORE
        chosen += guess.sum().item()
        opened += (~torch.isin(ids, pieces.special)).sum().item()
        masked += (guess & (inputs == pieces.mask)).sum().item()
        kept += (guess & (inputs == ids)).sum().item()
        swapped += (guess & (inputs != ids) & (inputs != pieces.mask)).sum().item()
        assert (inputs == ids)[~guess].all(), "what is not to be guessed is not touched"
        assert (targets == ids)[guess].all(), "the target is what stood there"
    assert (
        abs(chosen / opened - 0.15) < 0.0015
    )  # rounded by lot in every row: far less spread than by coin
    assert near(masked / chosen, 0.8, chosen) and near(
        swapped / chosen, 0.1 * (1 - 1 / len(pieces.ordinary)), chosen
    )
    assert near(kept / chosen, 0.1 + 0.1 / len(pieces.ordinary), chosen)


def test_each_row_gives_its_own_15_percent_to_within_one(ids, pieces):
    _, targets = wordpiece.mask(ids, pieces, 3, 4)
    wanted = 0.15 * (~torch.isin(ids, pieces.special)).sum(1)
    assert ((targets != wordpiece.IGNORE).sum(1) - wanted).abs().max() < 1


def test_specials_are_never_guessed_and_never_put_in(ids, pieces):
    for step in range(10):
        inputs, targets = wordpiece.mask(ids, pieces, 1, step)
        special = torch.isin(ids, pieces.special)
        assert (targets[special] == wordpiece.IGNORE).all() and (
            inputs[special] == ids[special]
        ).all()
        put_in = inputs[(inputs != ids) & (inputs != pieces.mask)]
        assert not torch.isin(put_in, pieces.special).any() and len(put_in.unique()) > 20


def test_places_are_taken_evenly(ids, pieces):
    hits = sum(
        (wordpiece.mask(ids[1::2], pieces, 0, step)[1] != wordpiece.IGNORE).float()
        for step in range(40)
    ).sum(0)
    assert hits[0] == hits[-1] == 0
    middle = hits[1:-1] / (40 * 128)
    assert (middle - 0.15).abs().max() < 5 * math.sqrt(0.15 * 0.85 / (40 * 128))


def test_masks_are_a_function_of_seed_and_step_and_change_with_each(ids, pieces):
    first = wordpiece.mask(ids, pieces, 0, 0)
    torch.rand(7)  # somebody else's random numbers do not matter
    again = wordpiece.mask(ids, pieces, 0, 0)
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not torch.equal(first[1], wordpiece.mask(ids, pieces, 0, 1)[1])
    assert not torch.equal(first[1], wordpiece.mask(ids, pieces, 1, 0)[1])


def test_rows_without_ordinary_pieces_are_left_alone(pieces):
    ids = torch.tensor([[pieces.cls, pieces.unk, pieces.sep, pieces.pad]])
    inputs, targets = wordpiece.mask(ids, pieces, 0, 0, rate=0.9)
    assert torch.equal(inputs, ids) and (targets == wordpiece.IGNORE).all()


# ---- the vocabulary -----------------------------------------------------------------------------


def test_pieces_are_uncased_without_accents_and_offsets_point_into_the_text(pieces):
    text = "Naïve CATS sell 🤗!"
    encoding = pieces.encode([text])[0]
    assert pieces.decode(encoding.ids).startswith("naive cats sell")
    for piece, (a, b) in zip(encoding.tokens, encoding.offsets):
        if piece != "[UNK]":
            assert len(text[a:b]) == len(piece.removeprefix("##"))
    assert encoding.tokens[-2] == "[UNK]" and text[slice(*encoding.offsets[-2])] == "🤗"


def test_specials_in_running_text_stay_text_for_offsets_and_have_the_first_ids(pieces):
    assert [pieces.pad, pieces.unk, pieces.cls, pieces.sep, pieces.mask] == [0, 1, 2, 3, 4]
    assert pieces.vocab == 75 == len(set(pieces.raw.get_vocab().values()))
    assert not torch.isin(pieces.special, pieces.ordinary).any() and len(pieces.ordinary) == 70


def test_the_same_texts_always_give_the_same_vocabulary():
    assert len({wordpiece.learn_pieces(TEXT, 75).fingerprint for _ in range(6)}) == 1


def test_a_vocab_txt_in_the_order_of_bert_base_is_read_as_it_stands(tmp_path):
    lines = [
        "[PAD]",
        *(f"[unused{i}]" for i in range(5)),
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "tea",
        "cat",
        "##s",
        "!",
        "\u2028",
        "\x85",
    ]
    (tmp_path / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pieces = wordpiece.load_pieces(tmp_path / "vocab.txt")
    assert [pieces.raw.id_to_token(id) for id in range(pieces.vocab)] == lines, (
        "a separator of lines may be a piece"
    )
    assert (pieces.pad, pieces.unk, pieces.cls, pieces.sep, pieces.mask) == (0, 6, 7, 8, 9)
    assert pieces.encode(["Cats! tea dog"])[0].ids == [11, 12, 13, 10, 6]


def test_a_saved_tokenizer_comes_back_equal(tmp_path, pieces):
    pieces.raw.save(str(tmp_path / "tokenizer.json"))
    back = wordpiece.load_pieces(tmp_path / "tokenizer.json")
    assert back.fingerprint == pieces.fingerprint and back.encode_all(TEXT) == pieces.encode_all(
        TEXT
    )


def test_bad_vocabularies_get_one_sentence(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[CLS]\ntea\n", encoding="utf-8")
    for call, wanted in (
        (lambda: wordpiece.load_pieces(tmp_path / "vocab.txt"), r"no \[UNK\], \[SEP\], \[MASK\]"),
        (lambda: wordpiece.load_pieces(tmp_path / "none.txt"), "is not there"),
        (lambda: wordpiece.learn_pieces(["", "  "], 100), "0 different words"),
        (lambda: wordpiece.learn_pieces(TEXT, 20), "larger vocabulary"),
    ):
        with pytest.raises(DataError, match=wanted) as error:
            call()
        assert "\n" not in str(error.value)
