"""Which class is this sentence, or this pair? GLUE's tables (SST-2 first), read, encoded, scored."""

import math
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from minimal.data.files import DataError, Skip, need

ENTAILS = {"entailment": 0, "not_entailment": 1}


@dataclass(frozen=True)
class Table:
    """Where a task keeps its texts and its label: columns of its .tsv (numbers where there is no header line), and of
    its rows in `datasets`."""

    texts: tuple
    label: str | int
    rows: tuple = ("sentence",)
    names: dict | None = None  # label as printed -> class


TASKS = dict(
    sst2=Table(("sentence",), "label"),
    cola=Table((3,), 1),
    mrpc=Table(("#1 String", "#2 String"), "Quality", ("sentence1", "sentence2")),
    rte=Table(("sentence1", "sentence2"), "label", ("sentence1", "sentence2"), ENTAILS),
    qnli=Table(("question", "sentence"), "label", ("question", "sentence"), ENTAILS),
)


@dataclass(frozen=True)
class Example:
    id: str
    texts: tuple  # one or two
    label: int


# ---- reading ----------------------------------------------------------------------------------------------------
def table_of(task):
    if task not in TASKS:
        raise DataError(f"unknown task {task!r}: one of {', '.join(TASKS)}")
    return TASKS[task]


def read(path, task, report):
    """The examples of a GLUE .tsv: fields between tabs, quotes are letters like others. A broken line is skipped."""
    table = table_of(task)
    with open(path, encoding="utf-8-sig") as file:
        lines = [
            line.rstrip("\n") for line in file
        ]  # splitlines would also cut at U+2028, inside a sentence
    wanted, start = (*table.texts, table.label), 0
    if isinstance(table.label, str):
        header, start = lines[0].split("\t") if lines else [], 1
        lacks = [name for name in wanted if name not in header]
        if lacks:
            raise DataError(
                f"{path}: its first line should name the columns {', '.join(wanted)}; it says "
                f"{', '.join(header) or 'nothing'}: is this a {task} file?"
            )
        wanted = tuple(header.index(name) for name in wanted)

    def cells():
        for number, line in enumerate(lines[start:], start + 1):
            fields = line.split("\t")
            yield (
                f"{path}, line {number}",
                [fields[at] if at < len(fields) else None for at in wanted],
            )

    return _examples(cells(), table, report)


def from_rows(rows, task, report, split="rows"):
    """The same from rows of `datasets`, where a label is already a number."""
    table = table_of(task)
    cells = (
        (f"{split}, row {i}", [row.get(name) for name in (*table.rows, "label")])
        for i, row in enumerate(rows)
    )
    return _examples(cells, table, report)


def load(source, task, split, report):
    """A .tsv file, or through `datasets` by name: load("nyu-mll/glue", "sst2", "validation", report)."""
    if str(source).endswith(".tsv"):
        return read(source, task, report)
    import datasets

    try:
        rows = datasets.load_dataset(str(source), task, split=split)
    except Exception as error:
        raise DataError(
            f"`datasets` cannot load {source}, {task} ({type(error).__name__}): go online once, or give "
            "the path of a .tsv file"
        ) from error
    return from_rows(rows, task, report, split)


def _examples(cells, table, report):
    examples = []
    for place, (*texts, label) in cells:
        try:
            need(
                all(isinstance(text, str) and text.strip() for text in texts),
                "a text is empty or has no column",
            )
            shown = table.names.get(label, label) if table.names else label
            need(
                str(shown).strip() in ("0", "1"),
                f"its label is {label!r}; wanted one of " + ", ".join(table.names or ("0", "1")),
            )
            examples.append(Example(place, tuple(texts), int(shown)))
        except Skip as why:
            report.skipped[place] = str(why)
    return examples


# ---- rows for the encoder ---------------------------------------------------------------------------------------
@dataclass
class Rows:
    """[CLS] text [SEP], or [CLS] text [SEP] text [SEP]: N rows, as long as the longest, T positions."""

    ids: torch.Tensor  # (N, T)
    segments: torch.Tensor  # (N, T)  0 first text, 1 second
    lengths: torch.Tensor  # (N,)    positions before the padding
    labels: torch.Tensor  # (N,)


def encode(examples, pieces, length, report):
    """Rows of at most `length` positions; a longer text loses its end, and the report says so."""
    if not examples:
        raise DataError(f"no example is left; {report}")
    texts = [
        pieces.encode(example.texts[i] for example in examples)
        for i in range(len(examples[0].texts))
    ]
    room = (length - 1 - len(texts)) // len(texts)
    rows = []
    for example, encoded in zip(examples, zip(*texts)):
        parts = [[*encoding.ids[:room], pieces.sep] for encoding in encoded]
        if any(len(encoding.ids) > room for encoding in encoded):
            report.change(
                example.id, f"a text of {max(len(e.ids) for e in encoded)} pieces was cut to {room}"
            )
        segments = [i for i, part in enumerate(parts) for _ in part]
        rows.append(([pieces.cls, *sum(parts, [])], [0, *segments]))
    ids, segments = (
        pad_sequence([torch.tensor(row[i]) for row in rows], True, fill)
        for i, fill in ((0, pieces.pad), (1, 0))
    )  # (N, T) each
    return Rows(
        ids,
        segments,
        torch.tensor([len(row[0]) for row in rows]),
        torch.tensor([e.label for e in examples]),
    )


# ---- the score --------------------------------------------------------------------------------------------------
def score(said, labels):
    """Share right, and Matthews' correlation (CoLA's score), which is 0 for any answer that ignores the sentence."""
    right = (said == labels).float().mean().item()
    counts = [((said == a) & (labels == b)).sum().item() for a in (0, 1) for b in (0, 1)]
    tn, fn, fp, tp = counts
    scale = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return dict(
        accuracy=100 * right,
        matthews=(tp * tn - fp * fn) / scale if scale else 0.0,
        total=len(labels),
    )
