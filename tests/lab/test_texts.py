"""Are the yardsticks of a text what they are called?"""

from types import SimpleNamespace

import numpy as np
import pytest

from course import records, texts
from minimal.data import corpora
from minimal.model.config import SIZES

SMALL = SIZES["smoke"]


@pytest.fixture(scope="module")
def text():
    return texts.packed("stdlib", SMALL)


def test_rows_are_of_the_size_that_was_asked_for(text):
    book, tok, dataset = text
    assert book.name == "stdlib" and tok.vocab == SMALL.vocab
    assert dataset.train.shape[1] == SMALL.context + 1


def test_a_beginning_is_the_first_characters_and_has_a_folder_of_its_own():
    whole = corpora.find("stdlib")
    first = texts.beginning(whole, 50_000)  # of three files
    assert "".join(first.read()) == "".join(whole.read())[:50_000]
    assert first.characters == 50_000 and first.name == whole.name and first.folder != whole.folder


def test_counts_are_shares_and_pairs_know_more(text):
    _, tok, dataset = text
    single, pairs = texts.counted(dataset, tok.vocab)
    assert np.isclose(single.sum(), 1) and np.allclose(pairs.sum(1), 1)
    assert single.min() > 0 and pairs.min() > 0  # no token of a held-out text costs all of it
    x, y = next(iter(dataset.valid(16, 1)))  # (B, T) each
    one = -np.log(single[y]).mean()
    two = -np.log(pairs[x, y]).mean()
    assert two < one < np.log(tok.vocab)


def test_a_pair_that_was_never_seen_has_the_share_of_its_token_alone():
    rows = np.array([[0, 1, 0, 1, 0]])
    single, pairs = texts.counted(SimpleNamespace(train=rows), 3)
    assert np.allclose(single, [3 / 7, 3 / 7, 1 / 7])
    assert np.allclose(pairs[2], single)  # token 2 was never seen
    assert pairs[0, 1] > single[1]


def test_random_order_keeps_the_tokens_and_follows_from_the_seed(text):
    dataset = text[2]
    noise = texts.in_random_order(dataset, 0)
    counts = lambda rows: np.bincount(rows.reshape(-1), minlength=SMALL.vocab)
    assert (counts(noise.train) == counts(dataset.train)).all()
    assert not np.array_equal(noise.train, dataset.train)
    assert np.array_equal(noise.train, texts.in_random_order(dataset, 0).train)
    assert not np.array_equal(noise.train, texts.in_random_order(dataset, 1).train)


@pytest.mark.parametrize("name", ["ten_seeds_code", "ten_seeds_novel"])
def test_recorded_bits_are_those_of_ten_seeds_on_this_text_and_this_vocabulary(name):
    evidence = records.read(name)
    book = SimpleNamespace(fingerprint=evidence["corpus"]["fingerprint"])
    found = texts.recorded_bits(book, 1024)
    assert found == [row["bpb"] for row in evidence["rows"] if row["plan"] == "standard"]
    assert len(found) == 10
    assert texts.recorded_bits(book, 512) == []
    assert texts.recorded_bits(SimpleNamespace(fingerprint="another"), 1024) == []
    assert texts.recorded_bits(corpora.find("stdlib"), 512) == []


class Lines:
    """A text of these held-out lines."""

    name = "lines"

    def __init__(self, *lines):
        self.lines = lines

    def documents(self, split):
        return ["\n".join(self.lines)] * (split == "valid")


def test_an_example_is_the_held_out_line_with_the_longest_tokens():
    words = SimpleNamespace(encode=lambda line: line.split())
    short, long = (
        "a line of words as short as is",
        "considerably longer expressions everywhere below",
    )
    rule = "-" * 40
    assert texts.readable_line(Lines(short, f"  {long}", rule, "x" * 70), words) == long
    with pytest.raises(ValueError, match="wanted a line of 30 to 60 letters, got none in lines"):
        texts.readable_line(Lines(rule), words)


def test_an_example_of_the_default_text_is_readable(text):
    """Of each Python's library it is another one."""
    book, tok, _ = text
    line = texts.readable_line(book, tok)
    pieces = [tok.decode([i]) for i in tok.encode(line)]
    document = next(book.documents("valid"))
    usual = len(document) / len(tok.encode(document))
    assert "".join(pieces) == line and len(line) / len(pieces) > 1.3 * usual
