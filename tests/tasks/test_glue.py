"""Are GLUE's tables read as they are, broken lines named, pairs told apart, and the scores right?"""

import pytest
import torch

from minimal.data import files
from minimal.data.files import DataError
from minimal.encoder import wordpiece
from minimal.tasks import glue

SST2 = "sentence\tlabel\nit 's a \"charming journey\t1\nunflinchingly bleak and desperate\t0\n"
RTE = (
    "index\tsentence1\tsentence2\tlabel\n0\tThe river rises in the hills.\tThe river is a hill.\tnot_entailment\n"
    "1\tThe bridge was closed.\tNobody crossed the bridge.\tentailment\n"
)
COLA = "gj04\t1\t\tThe sailors rode the breeze clear of the rocks.\ngj04\t0\t*\tThe weights made the rope stretch over.\n"


def read(tmp_path, text, task, name="dev.tsv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    report = files.Report()
    return glue.read(tmp_path / name, task, report), report


@pytest.fixture(scope="module")
def pieces():
    return wordpiece.learn_pieces([SST2, RTE, COLA], 150)


def test_tables_with_and_without_a_header_give_texts_and_labels(tmp_path):
    (one, two), report = read(tmp_path, SST2, "sst2")
    assert (one.texts, one.label, two.label) == (
        ("it 's a \"charming journey",),
        1,
        0,
    ) and not report.skipped
    assert [e.label for e in read(tmp_path, RTE, "rte")[0]] == [1, 0], (
        "entailment is class 0, as in GLUE"
    )
    assert read(tmp_path, RTE, "rte")[0][0].texts == (
        "The river rises in the hills.",
        "The river is a hill.",
    )
    assert [(e.texts[0][:11], e.label) for e in read(tmp_path, COLA, "cola")[0]] == [
        ("The sailors", 1),
        ("The weights", 0),
    ]
    assert read(tmp_path, "\ufeff" + SST2, "sst2")[0][0].texts == one.texts, (
        "a byte-order mark is no part of a name"
    )


def test_rows_of_datasets_give_the_same(tmp_path):
    import datasets

    examples, _ = read(tmp_path, SST2, "sst2")
    rows = datasets.Dataset.from_list(
        [dict(sentence=e.texts[0], label=e.label, idx=i) for i, e in enumerate(examples)]
    )
    rows.to_parquet(tmp_path / "dev.parquet")
    loaded = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "dev.parquet"), split="train", cache_dir=str(tmp_path)
    )
    again = glue.from_rows(loaded, "sst2", files.Report())
    assert [(e.texts, e.label) for e in again] == [(e.texts, e.label) for e in examples]


def test_broken_lines_are_skipped_by_number_and_wrong_files_refused(tmp_path):
    text = SST2 + "only one field\n\t1\nfine words\t7\nlast words\t0\n"
    examples, report = read(tmp_path, text, "sst2")
    line = lambda n, name="dev.tsv": f"{tmp_path / name}, line {n}"
    assert [e.id for e in examples] == [line(2), line(3), line(7)]
    assert list(report.skipped) == [line(4), line(5), line(6)]
    assert "label is None" in report.skipped[line(4)] and "text is empty" in report.skipped[line(5)]
    assert "label is '7'; wanted one of 0, 1" in report.skipped[line(6)]
    (tmp_path / "train.tsv").write_text(text, encoding="utf-8")
    glue.read(tmp_path / "train.tsv", "sst2", report)
    assert len(report.skipped) == 6 and line(4, "train.tsv") in report.skipped, (
        "equal lines of two files are two"
    )
    unlabelled = glue.from_rows([dict(sentence="a test row", label=-1)], "sst2", report)
    assert unlabelled == [] and "-1" in report.skipped["rows, row 0"]
    for text, task, wanted in (
        (RTE, "sst2", "should name the columns sentence, label; it says index"),
        ("", "rte", "it says nothing"),
    ):
        with pytest.raises(DataError, match=wanted):
            read(tmp_path, text, task)
    with pytest.raises(DataError, match="one of sst2, cola"):
        glue.read(tmp_path / "dev.tsv", "mnli", report)
    with pytest.raises(DataError, match="go online once"):
        glue.load("nobody/no-such-glue", "sst2", "validation", report)


def test_only_the_end_of_a_line_ends_a_line(tmp_path):
    text = "sentence\tlabel\nfine\u2028words and\x85 more\t1\nbleak\t0\n"
    for name, form in (
        ("unix.tsv", text),
        ("windows.tsv", text.replace("\n", "\r\n")),
        ("cut.tsv", text[:-1]),
    ):
        (tmp_path / name).write_bytes(form.encode())
        report = files.Report()
        examples = glue.read(tmp_path / name, "sst2", report)
        assert [(*e.texts, e.label) for e in examples] == [
            ("fine\u2028words and\x85 more", 1),
            ("bleak", 0),
        ] and not report.skipped


def test_pairs_stand_in_two_segments_and_long_texts_lose_their_end(tmp_path, pieces):
    examples, report = read(tmp_path, RTE, "rte")
    rows = glue.encode(examples, pieces, 64, report)
    for at in range(2):
        n, ids, segments = int(rows.lengths[at]), rows.ids[at].tolist(), rows.segments[at].tolist()
        first_sep = ids.index(pieces.sep)
        assert (
            ids[0] == pieces.cls
            and ids[:n].count(pieces.sep) == 2
            and ids[n - 1] == pieces.sep
            and set(ids[n:]) <= {pieces.pad}
        )
        assert segments[:n] == [0] * (first_sep + 1) + [1] * (n - first_sep - 1)
        assert pieces.decode(ids[1:first_sep]) == examples[at].texts[0].lower().replace(
            ".", " ."
        ).strip().replace(" .", ".")
    assert not report.changed
    short = glue.encode(examples, pieces, 12, report)
    assert short.ids.shape[1] == 11 and "was cut to 4" in report.changed[examples[0].id]
    assert torch.equal(short.ids[:, 1:5], rows.ids[:, 1:5])


@pytest.mark.parametrize(
    "said, labels, accuracy, matthews",
    [
        ([1, 1, 0, 0], [1, 1, 0, 0], 100, 1.0),
        ([0, 0, 1, 1], [1, 1, 0, 0], 0, -1.0),
        ([1, 1, 1, 1], [1, 1, 1, 0], 75, 0.0),  # always the same answer
        ([1, 1, 0, 0, 1], [1, 0, 0, 0, 1], 80, (2 * 2 - 1 * 0) / (3 * 2 * 3 * 2) ** 0.5),
    ],
)
def test_accuracy_and_matthews_are_right_by_hand(said, labels, accuracy, matthews):
    got = glue.score(torch.tensor(said), torch.tensor(labels))
    assert got["accuracy"] == pytest.approx(accuracy) and got["matthews"] == pytest.approx(matthews)
