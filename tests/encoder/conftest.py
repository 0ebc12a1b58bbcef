"""One thread, and a book with its pieces. Models of 32 to 64 are slower on two threads than on
one."""

import pytest
import torch

from minimal.data import corpora
from minimal.encoder import wordpiece
from tests.encoder.small import river


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "river.txt"
    path.write_text(river(), encoding="utf-8")
    return corpora.find(str(path))


@pytest.fixture(scope="session")
def pieces(book):
    return wordpiece.corpus_pieces(book, 120)
