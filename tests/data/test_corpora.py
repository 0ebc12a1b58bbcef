"""Is a run's text the same everywhere, and is its held-out part never trained on?"""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minimal.data import corpora, files, hub, manual
from minimal.data.documents import cut
from minimal.data.files import DataError
from minimal.evaluate import domains
from minimal.tasks import rows
from tests import warm

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of this file's own, so that what it counts and breaks is nobody else's."""
    before, folder = os.environ.get("MINIMAL_RUNS"), tmp_path_factory.mktemp("runs")
    os.environ["MINIMAL_RUNS"] = str(folder)
    yield folder
    os.environ.pop("MINIMAL_RUNS") if before is None else os.environ.update(MINIMAL_RUNS=before)


# ---- corpora ------------------------------------------------------------------------------------


def test_held_out_text_is_every_25th_block_of_4000_characters_of_the_documents_laid_end_to_end():
    everything = "".join(
        f"{n:07d}\n" for n in range(60_000)
    )  # 480,000 characters, each stretch unlike any other
    edges = [0, 1, 90_000, 95_999, 97_001, 98_000, 230_001, 480_000]
    documents = [everything[a:b] for a, b in zip(edges, edges[1:])]
    blocks = [everything[at : at + 4000] for at in range(0, len(everything), 4000)]
    assert "".join(cut(documents, held=True)) == "".join(blocks[24::25])
    assert "".join(cut(documents, held=False)) == "".join(
        b for i, b in enumerate(blocks) if i % 25 != 24
    )
    assert [len(piece) for piece in cut(documents, held=True)] == [
        1001,
        999,
        2000,
        4000,
        4000,
        4000,
    ]


def test_no_document_reaches_across_a_cut():
    text = "".join(f"{n:07d}\n" for n in range(43_750))  # 350,000 characters
    for piece in [*cut([text], held=False), *cut([text], held=True)]:
        assert piece in text
    assert [len(piece) for piece in cut([text], held=False)] == [96_000, 96_000, 96_000, 50_000]


def test_the_standard_library_is_a_corpus_of_millions_of_characters_equal_in_every_process():
    corpus = corpora.find("stdlib")
    assert corpus.texts > 300 and 5e6 < corpus.characters < 15e6
    text = "".join(corpus.documents("train"))
    assert '"""' in text and "def " in text
    code = "from minimal.data import corpora; print(corpora.find('stdlib').fingerprint)"
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert there.stdout.strip() == corpus.fingerprint
    subject = [
        text.count("asyncio", at, at + 500_000) for at in range(0, len(text) - 500_000, 500_000)
    ]
    assert (
        np.count_nonzero(subject) > len(subject) / 2
    )  # mixed: one package does not sit in one stretch


@pytest.mark.slow
def test_the_manual_is_english_that_comes_with_python_a_document_a_module_and_a_chapter():
    corpus, code = corpora.find("manual"), corpora.find("stdlib")
    assert corpus.texts > 300 and 1e6 < corpus.characters < code.characters / 3
    text = "".join(corpus.documents("train"))

    def share(text, words):
        every = re.findall(r"[a-z]+", text.lower())
        return sum(word in words for word in every) / len(every)

    english, keywords = {"the", "of", "a", "to", "and", "is"}, {"self", "def", "none"}
    source = "".join(code.documents("train"))
    assert share(text, english) > 0.15 > 0.1 > share(source, english)
    assert share(text, keywords) < share(source, keywords) / 5
    whole = "".join(corpus.read())  # which documents are held out depends on the library
    assert "The following identifiers are used as reserved words" in whole  # a chapter
    assert "andom integer" in whole  # a module
    assert corpora.find("manual").fingerprint == corpus.fingerprint


@pytest.mark.slow
def test_the_manual_is_the_library_alone_where_a_python_comes_without_its_chapters(monkeypatch):
    whole = corpora.find("manual")
    monkeypatch.setattr(manual, "topics", dict)
    alone = corpora.find("manual")
    assert alone.fingerprint != whole.fingerprint and 5e5 < alone.characters < whole.characters


def test_documentation_is_read_in_the_order_of_its_lines():
    method = '    def f():\n        "Three."\n'
    source = f'"""One."""\nclass A:\n    """Two.\n\n    More.\n    """\n{method}x = "no"'
    assert manual.docstrings(source) == ["One.", "Two.\n\nMore.", "Three."]
    assert manual.docstrings("def f(:") == []


def test_a_python_tree_leaves_out_tests_installed_packages_and_what_is_not_utf8(tmp_path):
    for place in (
        "a.py",
        "pkg/b.py",
        "pkg/tests/c.py",
        "test_d.py",
        "site-packages/e.py",
        ".venv/f.py",
        "g.txt",
        "__pycache__/h.py",
        "_sysconfigdata_x.py",
        "pkg/attest.py",
        "empty.py",
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / place).write_text("" if "empty" in place else f"# {place}\n")
    (tmp_path / "latin.py").write_bytes("# é\n".encode("latin-1"))
    corpus = corpora.find(f"python:{tmp_path}")
    assert sorted(corpus.documents("train")) == ["# a.py\n", "# pkg/attest.py\n", "# pkg/b.py\n"]
    assert (
        corpus.name == f"python:{tmp_path.name}"
    )  # evidence names the corpus, not this machine's folders


def test_the_fingerprint_is_of_the_text_and_not_of_its_name_or_line_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
    (tmp_path / "b.txt").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / "c.txt").write_bytes(b"one\ntwo!\n")
    a, b, c = (corpora.find(tmp_path / f"{name}.txt").fingerprint for name in "abc")
    assert a == b != c
    (tmp_path / "d").mkdir()
    for name, text in (("1.txt", "one\n"), ("2.txt", "two\n")):
        (tmp_path / "d" / name).write_text(text)
    assert corpora.find(tmp_path / "d").fingerprint != a  # two documents are not one


def test_auto_is_war_and_peace_where_minimal_data_has_it_and_else_the_standard_library(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("MINIMAL_DATA", raising=False)
    assert corpora.find("auto").name == "stdlib"
    monkeypatch.setenv("MINIMAL_DATA", str(tmp_path))
    assert corpora.find().name == "stdlib"
    (tmp_path / "books").mkdir()
    for name in ("war-and-peace", "ulysses"):
        (tmp_path / "books" / f"{name}.txt").write_text(f"Well, {name}.")
    assert list(corpora.find("auto").documents("train")) == ["Well, war-and-peace."]
    assert list(corpora.find("books").documents("train")) == [
        "Well, ulysses.",
        "Well, war-and-peace.",
    ]


# ---- through `datasets` -------------------------------------------------------------------------


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def stories(label, n=40):
    return [{"text": f"{label} {i}. " + "Once upon a time. " * (30 + i), "id": i} for i in range(n)]


@pytest.fixture
def row_at(monkeypatch):
    """A row of the table with a folder for its address: all else is the code that reads the Hub."""

    def move(name, folder):
        monkeypatch.setitem(hub.HUB, name, replace(hub.HUB[name], path=str(folder)))

    return move


@pytest.mark.hub
def test_a_source_with_a_validation_split_keeps_it(cache, tmp_path, row_at):
    write_rows(tmp_path / "data/train-00000-of-00001.parquet", stories("train"))
    write_rows(tmp_path / "data/validation-00000-of-00001.parquet", stories("held"))
    row_at("tinystories", tmp_path)
    corpus = corpora.find("tinystories", tokens=2_000)  # 10,000 characters
    train, valid = (list(corpus.documents(split)) for split in ("train", "valid"))
    assert all(text.startswith("train") for text in train) and all(
        text.startswith("held") for text in valid
    )
    assert sum(map(len, train)) == 10_000 and sum(map(len, valid)) == 10_000 // 24
    assert train[0] == stories("train")[0]["text"] and corpus.characters == 10_416
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    again = corpora.find(
        "tinystories", tokens=2_000
    )  # read once: the second time the source need not be there
    assert again.fingerprint == corpus.fingerprint and list(again.documents("train")) == train


@pytest.mark.hub
def test_climbmix_trains_on_the_first_shards_and_validates_on_the_last(cache, tmp_path, row_at):
    for shard in (0, 1, 6542):
        write_rows(tmp_path / f"shard_{shard:05d}.parquet", stories(f"shard{shard}", n=4))
    row_at("climbmix", tmp_path)
    corpus = corpora.find("climbmix", tokens=100_000)
    assert [text.split()[0] for text in corpus.documents("train")] == ["shard0"] * 4 + [
        "shard1"
    ] * 4
    assert [text.split()[0] for text in corpus.documents("valid")] == ["shard6542"] * 4


@pytest.mark.hub
@pytest.mark.parametrize("name", ["wikipedia", "fineweb"])
def test_a_source_with_configurations_is_read_by_its_own_and_cut_by_us(
    name, cache, tmp_path, row_at
):
    config = hub.HUB[name].config
    write_rows(tmp_path / "wrong/train.parquet", stories("wrong", n=3))
    write_rows(tmp_path / "right/train.parquet", stories("right", n=150))
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n"
        + "".join(
            f'- config_name: "{label}"\n  data_files: {folder}/*.parquet\n'
            for label, folder in (("other", "wrong"), (config, "right"))
        )
        + "---\n"
    )
    row_at(name, tmp_path)
    corpus = corpora.find(name, tokens=35_000)
    assert all(text.startswith("right") for text in corpus.read()) and corpus.characters == 175_000
    assert sum(map(len, corpus.documents("valid"))) == 4_000


@pytest.mark.hub
def test_slimpajama_keeps_to_the_weights_of_its_domains_at_every_point(cache, tmp_path, row_at):
    rng = np.random.RandomState(0)
    domains = ["CommonCrawl", "C4", "Github", "Book", "ArXiv", "Wikipedia", "StackExchange"]
    actual = np.array([52.2, 26.7, 5.2, 4.2, 4.6, 3.8, 3.3])  # SlimPajama's own shares
    rows = [
        {
            "text": f"{domain} " + "x" * int(rng.randint(50, 400)),
            "meta": {"redpajama_set_name": f"RedPajama{domain}"},
        }
        for domain in rng.choice(domains, 4000, p=actual / actual.sum())
    ]
    write_rows(tmp_path / "train.jsonl", rows)
    write_rows(tmp_path / "validation.jsonl", rows[:500])
    row_at("slimpajama", tmp_path)

    def shares(documents):
        sizes = dict.fromkeys(domains, 0)
        for text in documents:
            sizes[text.split()[0]] += len(text)
        return [sizes[domain] / sum(sizes.values()) for domain in domains]

    train = list(corpora.find("slimpajama", tokens=50_000).documents("train"))
    assert sum(map(len, train)) == 250_000
    for part in (train, train[: len(train) // 3], train[len(train) // 3 :]):
        assert shares(part) == pytest.approx([0.5, 0.2, 0.1, 0.05, 0.05, 0.05, 0.05], abs=0.02)
    one = corpora.find("slimpajama:Github", tokens=1_000)
    assert one.name == "slimpajama:Github" and shares(one.documents("train"))[2] == 1


@pytest.mark.hub
def test_a_domain_that_cannot_be_had_says_so(cache, tmp_path, row_at, monkeypatch):
    rows = [{"text": "some words", "meta": {"redpajama_set_name": "RedPajamaC4"}}] * 200
    write_rows(tmp_path / "train.jsonl", rows)
    write_rows(tmp_path / "validation.jsonl", rows)
    row_at("slimpajama", tmp_path)
    monkeypatch.setattr(hub, "MOST_IN_VAIN", 50)
    with pytest.raises(DataError, match="none from Book: take another corpus, or a domain"):
        corpora.find("slimpajama:Book")
    for name in ("slimpajama:Poems", "stdlib:C4", "tinystories:C4"):
        with pytest.raises(DataError, match=f"unknown corpus '{name}': one of .*slimpajama:DOMAIN"):
            corpora.find(name)


def test_texts_of_another_kind_are_found_where_somebody_knows_them(tmp_path, monkeypatch):
    (tmp_path / "poems.txt").write_text("A rose is a rose.\n")
    poems = lambda name: corpora.files(name, [tmp_path / "poems.txt"]) if name == "poems" else None
    monkeypatch.setattr(corpora, "FINDERS", [poems])
    assert list(corpora.find("poems").documents("train")) == ["A rose is a rose.\n"]
    with pytest.raises(DataError, match="unknown corpus 'prose'"):
        corpora.find("prose")


@pytest.mark.hub
def test_any_other_dataset_is_read_by_name_and_column(cache, tmp_path):
    write_rows(
        tmp_path / "train.jsonl",
        [{"body": body, "text": None} for body in ("one", "two", " ", "three")],
    )
    corpus = corpora.find(f"hub:{tmp_path}:body")
    assert list(corpus.documents("train")) == ["one", "two", "three"]
    with pytest.raises(DataError, match="no column 'prose' but body, text"):
        corpora.find(f"hub:{tmp_path}:prose")
    with pytest.raises(DataError, match="is empty"):
        corpora.find(f"hub:{tmp_path}")


@pytest.mark.hub
@pytest.mark.slow
def test_without_the_network_a_hub_name_ends_in_one_sentence_and_leaves_nothing_behind(cache):
    words = ["-m", "minimal.data", "--corpus", "tinystories"]
    done = warm.run(words, cwd=ROOT, env=os.environ | dict(HF_HUB_OFFLINE="1"))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert (
        last.startswith("data: corpus tinystories did not come")
        and "go online" in last
        and "stdlib" in last
    )
    assert not [
        file
        for file in files.data_folder().rglob("*")
        if "tinystories" in str(file) and file.suffix == ".part"
    ]


class Gutenberg(http.server.BaseHTTPRequestHandler):
    page = (
        "\ufeffThe Project Gutenberg eBook of War and Peace\r\n\r\nLicence, licence.\r\n"
        "*** START OF THE PROJECT GUTENBERG EBOOK WAR AND PEACE ***\r\n\r\n"
        "WAR AND PEACE\r\n\r\n“Well.”\r\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK WAR AND PEACE ***\r\nMore licence.\r\n"
    ).encode()

    def do_GET(self):
        self.send_response(200 if "2600" in self.path else 404)
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_):
        pass


@pytest.mark.hub
def test_war_and_peace_comes_from_gutenberg_without_its_licence_where_minimal_data_lacks_it(
    cache, monkeypatch
):
    monkeypatch.delenv("MINIMAL_DATA", raising=False)
    server = http.server.HTTPServer(("127.0.0.1", 0), Gutenberg)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    row = hub.HUB["war-and-peace"]
    assert row.files["train"].startswith("https://www.gutenberg.org/")
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        monkeypatch.setitem(
            hub.HUB, "war-and-peace", replace(row, files={"train": f"{address}/pg2600.txt"})
        )
        assert list(corpora.find("war-and-peace").documents("train")) == [
            "WAR AND PEACE\n\n“Well.”\n"
        ]
        monkeypatch.setitem(
            hub.HUB, "war-and-peace", replace(row, files={"train": f"{address}/gone.txt"})
        )
        with pytest.raises(DataError, match="did not come through `datasets` .*404.*go online"):
            corpora.find("war-and-peace")
    finally:
        server.shutdown()


class CutOff(Gutenberg):
    """Promises the book, and is gone after a part of it."""

    whole = False

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page if self.whole else self.page[:100])


def test_a_download_that_breaks_off_is_not_kept_and_comes_whole_the_next_time(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    server = http.server.HTTPServer(("127.0.0.1", 0), CutOff)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/book.txt"
    try:
        with pytest.raises(DataError, match=f"wanted {len(CutOff.page)} bytes of {address}, got 1"):
            hub.fetched(address)
        assert not [*tmp_path.rglob("*.txt*[!k]")], "nothing but the lock"
        monkeypatch.setattr(CutOff, "whole", True)
        with open(hub.fetched(address), "rb") as file:
            assert file.read() == CutOff.page
    finally:
        server.shutdown()


def test_without_the_extra_the_sentence_names_it(monkeypatch, tmp_path):
    """`datasets` is no need of the package, and "go online" helps nobody who has not got it."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match="not installed here: make setup EXTRAS=hub, or take"):
        corpora.find("hub:no/such")
    with pytest.raises(DataError, match="squad .*not installed here: make setup EXTRAS=hub"):
        rows.downloaded("squad", "a file", "squad", "train")
    monkeypatch.setattr(files, "CHECKOUT", tmp_path)  # as from a wheel
    with pytest.raises(DataError, match="not installed here: pip install 'minimal.hub.'"):
        corpora.find("hub:no/such")


# ---- sentences ----------------------------------------------------------------------------------


def corpus_of(tmp_path, content, name="x.txt"):
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


@pytest.mark.parametrize(
    "name, sentence",
    [
        (
            "war-and-pease",
            "unknown corpus 'war-and-pease': one of auto, stdlib, manual, books, tinystories, "
            "climbmix, slimpajama",
        ),
        ("no/such/file.txt", "no file or folder no/such/file.txt: give the path"),
        ("python:no/such", "no Python source under no/such: name a folder"),
        ("books", "corpus books is the folder .MINIMAL_DATA/books: set MINIMAL_DATA"),
    ],
)
def test_a_name_that_is_no_corpus_says_what_would_be(name, sentence, monkeypatch):
    monkeypatch.delenv("MINIMAL_DATA", raising=False)
    with pytest.raises(DataError, match=sentence):
        corpora.find(name)


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "corpus x is empty: give it"),
        (b" \n\n ", "corpus x is empty: give it"),
        (b"\x7fELF\x02\x01\x00", "is binary or not UTF-8: wanted plain text"),
        ("é".encode("latin-1") * 50, "is binary or not UTF-8: wanted plain text"),
    ],
)
def test_a_file_that_is_no_text_says_so(content, sentence, tmp_path):
    with pytest.raises(DataError, match=sentence):
        corpora.find(corpus_of(tmp_path, content))


def test_a_folder_without_text_says_so(tmp_path):
    corpus_of(tmp_path, b"x = 1\n", "code.py")
    with pytest.raises(
        DataError, match="no .txt, .md, .rst files in .*: for Python sources say python:"
    ):
        corpora.find(tmp_path)


def test_hidden_copies_in_a_folder_of_texts_are_no_documents(tmp_path):
    """As Jupyter makes one of every file that it saves; the folder itself may be hidden."""
    texts = tmp_path / ".texts"
    for name in ("b.txt", "a/deep/one.md", ".ipynb_checkpoints/b-checkpoint.txt", "a/.git/x/y.txt"):
        (texts / name).parent.mkdir(parents=True, exist_ok=True)
        (texts / name).write_text(f"{name}\n")
    (texts / "a" / "._one.md").write_text("what another system notes of a file")
    found = corpora.find(str(texts))
    assert [*found.read()] == ["a/deep/one.md\n", "b.txt\n"]
    (texts / ".c.txt").write_text("a draft that an editor keeps")
    assert [name for name, _ in domains([str(texts)])] == ["b"]


def test_a_folder_named_like_a_text_is_no_text_and_capitals_are_letters(tmp_path):
    (tmp_path / "notes.md").mkdir()
    corpus_of(tmp_path, b"One sentence, and another one.\n" * 2000, "A.TXT")
    assert corpora.find(tmp_path).characters > 50_000


@pytest.mark.data
def test_war_and_peace_is_the_book_that_the_recorded_runs_read():
    corpus = corpora.find("war-and-peace")
    assert (corpus.fingerprint, corpus.characters) == ("df714a2d01ce", 3_207_081)
    assert len(list(corpus.documents("valid"))) == 32
