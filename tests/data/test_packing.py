"""Is nothing lost and nothing seen twice, and is a batch a function of seed and step?"""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from minimal.data import __main__ as data_command
from minimal.data import corpora, packing
from minimal.data import tokenizer as tokenizers
from minimal.data.documents import cut, survey
from minimal.data.files import SUMS, DataError

ROOT = Path(__file__).resolve().parents[2]
WORDS = (
    "the a one value token head layer query key that asks which whom never always sees reads mixes "
    "1812 42"
).split()


def prose(characters, seed=0):
    """Sentences of random words, some made up, now and then an accent or emoji: BPE has work."""
    rng, parts, size = np.random.RandomState(seed), [], 0
    while size < characters:
        made_up = "".join(rng.choice(list("abcdefghilmnoprstuvéü"), rng.randint(3, 9)))
        end = rng.choice([". ", ", 漢字! ", "?\n\n", " 🙂\n"])
        parts.append(" ".join([*rng.choice(WORDS, rng.randint(4, 12)), made_up]) + end)
        size += len(parts[-1])
    return "".join(parts)[:characters]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of this file's own, so that what it counts and breaks is nobody else's."""
    before, folder = os.environ.get("MINIMAL_RUNS"), tmp_path_factory.mktemp("runs")
    os.environ["MINIMAL_RUNS"] = str(folder)
    yield folder
    os.environ.pop("MINIMAL_RUNS") if before is None else os.environ.update(MINIMAL_RUNS=before)


@pytest.fixture(scope="module")
def book(cache, tmp_path_factory):
    return corpus_of(tmp_path_factory.mktemp("text") / "book.txt", prose(260_000))


@pytest.fixture(scope="module")
def tok(book):
    return tokenizers.tokenizer(book, 512)


@pytest.fixture(scope="module")
def ds(book, tok):
    return packing.pack(book, tok, context=32)


def corpus_of(path, text):
    path.write_text(text, encoding="utf-8")
    return corpora.find(path)


def counted(rows=100, context=4):
    """A dataset whose every row is its own number."""
    rows = np.repeat(np.arange(rows, dtype=np.uint16)[:, None], context + 1, axis=1)
    return packing.Dataset(rows, rows, context, 0.0, {}, "")


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


# ---- tokenizer ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "  indent\n\n\tand\r\n",
        "naïve 漢字 🙂👩‍👩‍👧",
        "x" * 5000,
        "\x00\x7f",
        tokenizers.BOS,
    ],
)
def test_every_text_comes_back_as_it_was(tok, text):
    assert tok.decode(tok.encode(text)) == text
    assert sum(tok.bytes[tok.encode(text)]) == len(text.encode())


def test_bos_is_token_0_and_only_packing_writes_it(tok):
    assert tok.bos == 0 and tok.bytes[0] == 0 and (tok.bytes[1:] > 0).all()
    assert (
        0 not in tok.encode(f"a {tokenizers.BOS} b")
        and 0 not in tok.encode_all([tokenizers.BOS])[0]
    )


def test_numbers_are_cut_into_one_or_two_digits_and_words_keep_their_space(tok):
    pieces = [tok.raw.id_to_token(i) for i in range(tok.vocab)]
    assert max(sum(letter.isdigit() for letter in piece) for piece in pieces) == 2
    assert "Ġvalue" in pieces and not any("Ġ" in piece.strip("Ġ") for piece in pieces)


def test_the_tokenizer_is_learned_once_and_the_same_in_another_process(book, tok, tmp_path):
    file = book.folder / "tokenizer-512" / "tokenizer.json"
    stamp = file.stat().st_mtime_ns
    assert (
        tokenizers.tokenizer(book, 512).fingerprint == tok.fingerprint
        and file.stat().st_mtime_ns == stamp
    )
    assert (
        tok.vocab == 512 and tokenizers.Tokenizer(file.read_text()).fingerprint == tok.fingerprint
    )
    path = tmp_path / "book.txt"
    corpus_of(path, *book.read())
    there = python(
        "from minimal.data import corpora; from minimal.data.tokenizer import tokenizer; "
        f"print(tokenizer(corpora.find({str(path)!r}), 512).fingerprint)",
        MINIMAL_RUNS=str(tmp_path),
        TOKENIZERS_PARALLELISM="false",
        PYTHONHASHSEED="3",
    ).stdout
    assert there.strip() == tok.fingerprint
    assert tokenizers.tokenizer(book, 300).fingerprint != tok.fingerprint


@pytest.mark.parametrize("vocab", (258, 300, 511))
def test_a_smaller_vocabulary_is_the_beginning_of_a_larger_one(book, tok, vocab):
    """Cut off, not learned again, and to the last byte the same."""
    learned = tokenizers.learn(book, vocab).to_str(pretty=True)
    assert 512 in tokenizers.learned(book)
    assert tokenizers.tokenizer(book, vocab).text == learned
    assert tokenizers.first_of(tok, vocab).to_str(pretty=True) == learned


def test_the_tokenizer_learns_from_training_text_only_10000_characters_a_round(monkeypatch):
    marks = "".join(
        chr(0x4E00 + i // 4000) * 4000 for i in range(0, 200_000, 4000)
    )  # block i is one letter of its own

    class Two:
        documents = staticmethod(lambda split: cut([marks, "short"], held=split == "valid"))

    pieces = list(tokenizers.text_to_learn(Two))
    assert sum(map(len, pieces)) == 192_005 and max(map(len, pieces)) == 10_000
    assert [len(piece) for piece in pieces[:3]] == [10_000, 10_000, 5] and pieces[3] == marks[
        10_000:20_000
    ]
    assert not {chr(0x4E00 + 24), chr(0x4E00 + 49)} & set("".join(pieces))
    monkeypatch.setattr(tokenizers, "SAMPLE", 25_000)
    assert [len(piece) for piece in tokenizers.text_to_learn(Two)] == [10_000, 10_000, 5, 4_995]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_encodes_without_its_parents_threads_and_in_silence(tok):
    done = python(f"""
import os, warnings
from minimal.data.tokenizer import Tokenizer
warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on Python warns of such forks
tok = Tokenizer({tok.text!r})
texts = ["some value and a head " * 50] * 64
here = tok.encode_all(texts)
child = os.fork()
if not child:
    os._exit(0 if tok.encode_all(texts) == here else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")
    assert (
        done.stderr == ""
    )  # `tokenizers` itself falls back to one thread; should it ever hang or warn, we hear of it


# ---- packing ------------------------------------------------------------------------------------


def test_stream_rows_predict_every_token_once_with_bos_before_each_document(book, tok, ds):
    flat = [token for text in book.documents("train") for token in (tok.bos, *tok.encode(text))]
    assert ds.train.shape == ((len(flat) - 1) // 32, 33) and ds.train.dtype == np.uint16
    assert ds.train[:, 1:].reshape(-1).tolist() == flat[1 : 1 + ds.train.shape[0] * 32]
    assert (ds.train[1:, 0] == ds.train[:-1, -1]).all()
    size = sum(len(text.encode()) for text in book.documents("train"))
    assert ds.about["train"] == dict(documents=3, tokens=len(flat), bytes=size)
    held = [token for text in book.documents("valid") for token in (tok.bos, *tok.encode(text))]
    assert (
        ds.held[:, 1:].reshape(-1).tolist() == held[1 : 1 + ds.held.shape[0] * 32]
        and held.count(tok.bos) == 2
    )


def test_rows_are_read_from_the_file_and_not_held_in_memory(ds):
    owner = ds.train
    while not isinstance(owner, np.memmap):
        owner = owner.base
        assert owner is not None
    assert owner.mode == "r" and not ds.train.flags.writeable


def test_one_token_file_serves_every_context_and_tokens_caps_the_training_rows(book, tok, ds):
    stamp = {path: path.stat().st_mtime_ns for path in book.folder.rglob("*.bin")}
    other = packing.pack(book, tok, context=100, tokens=1_050)
    assert {path: path.stat().st_mtime_ns for path in book.folder.rglob("*.bin")} == stamp
    assert (
        other.train.shape == (10, 101)
        and len(other.held) == (ds.about["valid"]["tokens"] - 1) // 100
    )
    assert (
        len({ds.fingerprint, other.fingerprint, packing.pack(book, tok, context=100).fingerprint})
        == 3
    )
    assert packing.pack(book, tok, context=32).fingerprint == ds.fingerprint


def test_what_is_cached_is_not_made_again(book, tok, ds, monkeypatch):
    monkeypatch.setattr(tokenizers, "learn", None)
    monkeypatch.setattr(tokenizers.Tokenizer, "encode_all", None)
    again = packing.pack(book, tokenizers.tokenizer(book, 512), context=32)
    assert again.fingerprint == ds.fingerprint and np.array_equal(again.train, ds.train)


def test_bestfit_puts_in_the_longest_that_fits_and_crops_the_shortest_when_none_does():
    documents = [np.full(length, name) for name, length in enumerate([3, 7, 5, 12, 2, 4])]
    rows = [row.tolist() for row in packing.best_fit(documents, room=10)]
    # 7 + 3 fill a row; 5 + 4 leave room for one, so the shortest (2) is cropped to 1; 12 is
    # cropped to a row of its own
    assert rows == [[1] * 7 + [0] * 3, [2] * 5 + [5] * 4 + [4], [3] * 10]
    equals = packing.best_fit([np.full(4, name) for name in range(5)], room=8, buffer=2)
    assert [row.tolist() for row in equals] == [[0] * 4 + [1] * 4, [2] * 4 + [3] * 4]
    assert [row.tolist() for row in packing.best_fit([np.arange(30)], room=10)] == [
        list(range(10))
    ]  # its start, BOS and all
    few = list(packing.best_fit((np.full(n % 9 + 1, n) for n in range(5000)), room=9, buffer=50))
    assert all(len(row) == 9 for row in few)


def test_of_equal_documents_bestfit_takes_and_crops_the_first_read():
    """As nanochat's loader, of which the shortest is `min`, so the first of equals."""
    names = [np.array([0, name, name, name]) for name in (1, 2, 3)]
    cropped = list(packing.best_fit(names, room=3))
    assert [row.tolist() for row in cropped] == [[0, 1, 1], [0, 2, 2], [0, 3, 3]]
    longer = [np.full(5, 9), *names]
    assert next(iter(packing.best_fit(longer, room=3))).tolist() == [0, 1, 1]
    assert next(iter(packing.best_fit(names, room=4))).tolist() == [0, 1, 1, 1]


def test_bestfit_prints_the_share_it_crops_and_validates_on_the_same_rows_as_stream(cache, capsys):
    texts = [prose(60 + 7 * (i % 30), seed=i) for i in range(2500)]
    corpus = survey("letters", lambda: iter(texts[100:]), lambda: iter(texts[:100]))
    tok = tokenizers.tokenizer(corpus, 400)
    ds = packing.pack(corpus, tok, context=256, how="bestfit")
    said = f"bestfit: {ds.cropped:.1%} of the training tokens cropped\n"
    assert 0 < ds.cropped < 0.5 and capsys.readouterr().out == said
    assert ds.train.shape[1] == 257 and (ds.train[:, 0] == tok.bos).all()
    assert ds.train.size == pytest.approx(ds.about["train"]["tokens"] * (1 - ds.cropped))
    stream = packing.pack(corpus, tok, context=256)
    assert np.array_equal(stream.held, ds.held) and stream.fingerprint != ds.fingerprint
    packing.pack(corpus, tok, context=256, how="bestfit")
    assert capsys.readouterr().out == said  # from the cache too


def test_bestfit_refuses_to_throw_away_more_than_half(book, tok):
    with pytest.raises(
        DataError, match=r"context 32 would crop (9\d|100)% of corpus book.*pack it as a stream"
    ):
        packing.pack(book, tok, context=32, how="bestfit")
    assert not list(book.folder.glob("bestfit*.part"))


# ---- batches ------------------------------------------------------------------------------------


def test_a_batch_depends_on_seed_and_step_and_on_nothing_before(book, tok, ds):
    first = ds.batch(9, batch=8, seed=3)
    for step in (0, 500, 9, 10):
        ds.batch(step, batch=8, seed=4), ds.batch(step, batch=5, seed=3)
    packing.permutation.cache_clear()
    again = packing.pack(book, tok, context=32).batch(9, batch=8, seed=3)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], ds.batch(9, batch=8, seed=4)[0])
    inputs, targets = first
    assert inputs.shape == targets.shape == (8, 32) and inputs.dtype == targets.dtype == torch.long
    assert (
        inputs.is_contiguous()
        and targets.is_contiguous()
        and torch.equal(inputs[:, 1:], targets[:, :-1])
    )


def test_the_order_of_rows_is_the_same_every_year():
    assert packing.permutation(10, 0, 0).tolist() == [3, 7, 6, 4, 1, 0, 2, 8, 5, 9]
    assert packing.permutation(10, 1, 0).tolist() == [2, 9, 8, 3, 6, 7, 1, 4, 0, 5]
    assert packing.permutation(10, 0, 1).tolist() != packing.permutation(10, 1, 0).tolist()


def test_every_row_is_seen_once_an_epoch_even_where_a_batch_spans_two():
    ds = counted(100)
    seen = [
        row for step in range(38) for row in ds.batch(step, batch=8, seed=1)[0][:, 0].tolist()
    ]  # 304 rows
    for epoch in range(3):
        assert sorted(seen[100 * epoch : 100 * epoch + 100]) == list(range(100))
    assert seen[:100] != seen[100:200] and ds.epochs(38, 8) == pytest.approx(3.04)


def test_ranks_and_micro_batches_partition_the_batch():
    ds = counted(100)
    whole = ds.batch(13, batch=12, seed=2)[0][:, 0].tolist()
    for world in (2, 3, 4):
        parts = [
            ds.batch(13, batch=12, seed=2, rank=rank, world=world)[0][:, 0].tolist()
            for rank in range(world)
        ]
        assert all(len(part) == 12 // world for part in parts) and sorted(sum(parts, [])) == sorted(
            whole
        )
    assert (
        sum((ds.batch(13 * 3 + i, batch=4, seed=2)[0][:, 0].tolist() for i in range(3)), [])
        == whole
    )
    with pytest.raises(DataError, match="a batch of 12 does not split over 5 processes"):
        ds.batch(0, batch=12, rank=0, world=5)


def test_validation_reads_every_held_out_row_or_a_sample_spread_over_all():
    ds = counted(50)
    assert [len(inputs) for inputs, _ in ds.valid(batch=16)] == [16, 16, 16, 2]
    assert torch.cat([inputs for inputs, _ in ds.valid(batch=7)])[:, 0].tolist() == list(range(50))
    assert torch.cat([inputs for inputs, _ in ds.valid(batch=4, rows=10)])[:, 0].tolist() == list(
        range(0, 50, 5)
    )
    assert sum(len(inputs) for inputs, _ in ds.valid(rows=1000)) == 50


# ---- bits per byte ------------------------------------------------------------------------------


def test_a_uniform_model_has_log2_of_the_vocabulary_times_tokens_per_byte(ds, tok):  # T18
    targets = torch.cat([targets for _, targets in ds.valid()])
    nats = torch.full(targets.shape, math.log(tok.vocab))
    tokens, size = (targets != tok.bos).sum().item(), tok.bytes[targets.numpy()].sum()
    assert 1 <= (targets == tok.bos).sum()
    assert packing.bits_per_byte(nats, targets, tok.bytes) == pytest.approx(
        math.log2(tok.vocab) * tokens / size, rel=1e-6
    )
    parts = [packing.nats_and_bytes(nats[i::2], targets[i::2], tok.bytes) for i in range(2)]
    assert sum(n for n, _ in parts) / sum(b for _, b in parts) / math.log(2) == pytest.approx(
        packing.bits_per_byte(nats, targets, tok.bytes)
    )


def test_a_piece_of_a_character_counts_its_own_bytes_and_not_those_of_the_replacement_sign(
    tok,
):  # X25
    text = "🜚 and ᛟ"  # letters the tokenizer never met: several tokens each
    ids = tok.encode(text)
    decoded_alone = [len(tok.decode([i]).encode()) for i in ids]
    assert tok.decode([ids[0]]) == "\ufffd" and decoded_alone[0] == 3 and tok.bytes[ids[0]] < 3
    assert sum(tok.bytes[ids]) == len(text.encode()) == 12 < sum(decoded_alone)
    targets, nats = torch.tensor([ids]), torch.ones(1, len(ids))
    flattered = len(ids) / (math.log(2) * sum(decoded_alone))
    assert packing.bits_per_byte(nats, targets, tok.bytes) == pytest.approx(
        len(ids) / (math.log(2) * 12)
    )
    assert packing.bits_per_byte(nats, targets, tok.bytes) > 1.5 * flattered


def test_bos_and_ignored_targets_weigh_nothing(tok):
    ids = tok.encode("value")
    targets = torch.tensor([[tok.bos, *ids, -1]])
    nats = torch.tensor([[100.0, *[1.0] * len(ids), 100.0]])
    assert packing.nats_and_bytes(nats, targets, tok.bytes) == (len(ids), 5)
    every_token_has_a_byte = np.ones(tok.vocab, int)
    assert packing.nats_and_bytes(nats, targets, every_token_has_a_byte) == (
        100 + len(ids),
        1 + len(ids),
    )
    with pytest.raises(DataError, match="no target stands for a byte"):
        packing.bits_per_byte(torch.ones(1, 1), torch.tensor([[-1]]), tok.bytes)


# ---- sentences ----------------------------------------------------------------------------------


def test_a_corpus_too_short_for_its_vocabulary_or_for_one_row_says_so(cache, tmp_path):
    tiny = corpus_of(tmp_path / "x.txt", "abab " * 20)
    with pytest.raises(
        DataError, match=r"corpus x is too short for 400 tokens: its pairs run out at 2\d\d; ask"
    ):
        tokenizers.tokenizer(tiny, 400)
    with pytest.raises(
        DataError, match=r"corpus x is too short: \d+ tokens for train, and one row takes 65; give"
    ):
        packing.pack(tiny, tokenizers.tokenizer(tiny, 259), context=64)
    short = corpus_of(tmp_path / "y.txt", prose(90_000))
    with pytest.raises(
        DataError, match="too short: 0 tokens for valid.* starts after 96,000 characters"
    ):
        packing.pack(short, tokenizers.tokenizer(short, 300), context=64)


def test_settings_that_cannot_be_say_so(book, tok):
    for wrong, sentence in (
        (lambda: tokenizers.tokenizer(book, 257), "vocab 257 is too small: 258 holds"),
        (
            lambda: tokenizers.check_vocab(tok, 1024),
            "the tokenizer has 512 tokens, the model 1024: make",
        ),
        (lambda: packing.pack(book, tok, 32, how="tight"), "unknown packing 'tight': \"stream\""),
        (lambda: packing.pack(book, tok, 32, tokens=31), "tokens 31 is less than one row of 32"),
        (lambda: book.documents("test"), "unknown split 'test'"),
    ):
        with pytest.raises(DataError, match=sentence):
            wrong()
    tokenizers.check_vocab(tok, 512)
    assert tokenizers.tokenizer(book, 258).vocab == 258


def test_a_token_file_that_was_cut_short_is_made_again_or_says_so(book, tok, ds, capsys):
    """Again where its sums are known; a cache from before there were sums can only say so."""
    folder = book.folder / f"stream-{tok.fingerprint}"
    path, sums = folder / "valid.bin", folder / SUMS
    whole, known = path.read_bytes(), sums.read_text()
    os.truncate(path, len(whole) - 2)
    packing.pack(book, tok, context=32)
    assert path.read_bytes() == whole and sums.read_text() == known
    assert "is damaged (valid.bin is not what was written): it is made again" in (
        capsys.readouterr().err
    )
    sums.unlink()
    os.truncate(path, len(whole) - 2)
    with pytest.raises(
        DataError, match=r"valid.bin is damaged \(\d+ bytes for \d+ tokens\): delete its folder"
    ):
        packing.pack(book, tok, context=32)
    path.write_bytes(whole)
    packing.pack(book, tok, context=32)


# ---- the command --------------------------------------------------------------------------------


def test_the_command_prints_one_small_table(book, tok, tmp_path, capsys):
    path = tmp_path / "book.txt"
    corpus_of(path, *book.read())
    data_command.main(["--corpus", str(path), "--vocab", "512", "--context", "32"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    for label, value in (
        ("corpus", "book"),
        ("fingerprint", book.fingerprint),
        ("characters", "260,000"),
        ("documents", "1 (5 after the cut)"),
        ("bytes per token", ""),
        ("seconds", ""),
    ):
        assert any(line.startswith(label) and value in line for line in lines), label
    ds = packing.pack(book, tok, 32)
    assert f"{len(ds.train):,} / {len(ds.held):,} of 32 + 1 (data {ds.fingerprint})" in lines[6]
    assert f"{sum(part['tokens'] for part in ds.about.values()):,} of 512 kinds" in lines[4]
    with pytest.raises(SystemExit, match="data: unknown corpus 'nonesuch'"):
        data_command.main(["--corpus", "nonesuch"])


def test_importing_the_package_loads_neither_datasets_nor_pyarrow():
    python(
        "import sys, minimal.data.packing, minimal.data.tokenizer, minimal.data.corpora; "
        "assert not {'datasets', 'pyarrow', 'tokenizers'} & set(sys.modules)"
    )
