"""A text that is soon learnt, for tests that train."""

import pytest


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A text to train on, in a folder that keeps its runs."""
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    text = tmp_path / "book.txt"
    text.write_text("the cat sat on the mat, and the dog lay by the door. " * 3000)
    return str(text)
