"""Are bits per byte counted over every byte once, with the context that was promised?"""

import argparse
import math

import pytest
import torch
import torch.nn.functional as F

from course import records
from minimal import evaluate
from minimal.data import corpora, packing, results
from minimal.evaluate import domains, passes_over, score_text, table, tokens_of
from minimal.tasks import core
from minimal.train import Run, Trainer
from minimal.variants import build
from tests.tasks.toys import Knows, tokenizer, uniform

TEXT = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. " * 2


def ids_of(text):
    tok = tokenizer()
    return [tok.bos, *tok.encode(text)]


def small(context=32, **changes):
    model = build("standard", "nano", vocab=512, context=context, **changes)
    torch.nn.init.normal_(model.head.weight, std=0.3)
    return model.eval()


@pytest.mark.parametrize(
    "length, window, stride",
    [(2, 8, 8), (9, 8, 8), (10, 8, 3), (100, 16, 16), (101, 16, 5), (64, 7, 1)],
)
def test_every_token_but_the_first_is_scored_once_with_the_promised_context(length, window, stride):
    passes = list(passes_over(length, window, stride))
    assert [n for _, scored, end in passes for n in range(scored, end)] == list(range(1, length))
    assert {end - start for start, _, end in passes} == {min(window + 1, length)}
    assert all(scored - start >= window - stride + 1 for start, scored, _ in passes[1:])


@pytest.mark.parametrize("stride", [0, 9, -1])
def test_a_stride_that_would_skip_or_stand_still_is_refused(stride):
    with pytest.raises(ValueError, match="stride .* with window 8: wanted 1 to 8"):
        list(passes_over(20, 8, stride))


@pytest.mark.parametrize("window, stride", [(16, 16), (64, 20)])
def test_a_uniform_model_needs_log2_of_the_vocabulary_a_token(window, stride):
    tok, ids = tokenizer(), ids_of(TEXT)
    found = score_text(Knows(uniform()), tok, ids, window, stride)
    assert found["bits_per_byte"] == pytest.approx(
        math.log2(512) * (len(ids) - 1) / len(TEXT.encode())
    )
    assert found["bits_per_byte"] == pytest.approx(evaluate.uniform(tok, ids))
    assert found["nats_per_token"] == pytest.approx(math.log(512))
    assert (found["tokens"], found["bytes"]) == (len(ids) - 1, len(TEXT.encode()))


@pytest.mark.parametrize("window, stride", [(16, 16), (20, 7), (4000, 4000)])
def test_it_equals_a_token_by_token_reckoning(window, stride):
    model, tok, ids, nats = small(), tokenizer(), ids_of(TEXT)[:40], 0.0
    for start, scored, end in passes_over(len(ids), window, stride):
        for n in range(scored, end):
            with torch.no_grad():
                nats += F.cross_entropy(
                    model(torch.tensor([ids[start:n]]))[0, -1:], torch.tensor([ids[n]])
                ).item()
    found = score_text(model, tok, ids, window, stride)
    assert found["bits_per_byte"] == pytest.approx(nats / math.log(2) / found["bytes"], rel=1e-5)
    assert found["bytes"] == len(tok.decode(ids[1:]).encode())


def test_it_agrees_with_what_training_reports_on_the_same_windows():
    corpus, tok, model = corpora.find(argparse.__file__), tokenizer(), small(context=32)
    held = packing.pack(corpus, tok, 32).held
    ids = [int(held[0, 0])] + [int(n) for row in held for n in row[1:]]
    nats = size = 0
    for x, y in packing.Dataset(held, held, 32, 0.0, {}, "").valid():
        with torch.no_grad():
            some, more = packing.nats_and_bytes(
                model.loss(x, y, reduction="none").view_as(y), y, tok.bytes
            )
        nats, size = nats + some, size + more
    found = score_text(model, tok, ids)
    assert (
        found["bits_per_byte"] == pytest.approx(nats / size / math.log(2), rel=1e-6)
        and found["bytes"] == size
    )


def test_tokens_that_stand_for_no_byte_are_read_and_not_counted():
    tok = tokenizer()
    one, two = ids_of("hello there"), ids_of("hello there") + ids_of("general remarks")
    model = Knows(uniform())
    first, both = (score_text(model, tok, ids, 8) for ids in (one, two))
    assert both["bytes"] == len("hello theregeneral remarks") and both["tokens"] == len(two) - 2
    assert first["bytes"] == len("hello there")
    with pytest.raises(ValueError, match="no text to score"):
        score_text(model, tok, [tok.bos, tok.bos])


def test_the_error_is_that_of_a_mean_over_passes():
    """Passes of equal bytes: the ordinary standard error of their mean."""
    tok = tokenizer()
    letter = next(i for i in range(tok.vocab) if tok.bytes[i] == 1)
    losses = [1.0, 2.0, 4.0, 5.0]  # nats a token, one a pass of 4 tokens

    def tell(ids):
        z = torch.zeros(*ids.shape, tok.vocab)
        p = torch.tensor([math.exp(-losses[int(i)]) for i in level[: len(ids)]])
        level[:] = level[len(ids) :]
        z[..., letter] = (p / (1 - p) * (tok.vocab - 1)).log()[:, None]
        return z

    level = list(range(4))
    found = score_text(Knows(tell), tok, [letter] * 17, 4)
    assert found["nats_per_token"] == pytest.approx(3.0, rel=1e-4)
    spread = math.sqrt(sum((x - 3) ** 2 for x in losses) / 3)
    assert found["error"] == pytest.approx(spread / 2 / math.log(2), rel=1e-4)


def test_domains_are_rows_and_the_mean_is_unweighted(tmp_path):
    (tmp_path / "long.txt").write_text("many words of one kind. " * 200)
    (tmp_path / "short.txt").write_text("§ 1: Âmes. " * 30, encoding="utf-8")
    rows = table(small(), tokenizer(), domains([str(tmp_path)]), part="all", stride=16)
    assert [row["domain"] for row in rows] == ["long", "short", "mean"]
    for key in ("bits_per_byte", "nats_per_token"):
        assert rows[2][key] == pytest.approx((rows[0][key] + rows[1][key]) / 2)
    assert rows[0]["bytes"] > 10 * rows[1]["bytes"]
    said = evaluate.report(rows)
    assert "windows of 32 tokens, stride 16" in said and said.splitlines()[3].startswith("mean")


def test_a_folder_without_texts_is_told(tmp_path):
    with pytest.raises(ValueError, match="no .txt in "):
        table(small(), tokenizer(), domains([str(tmp_path)]))


def test_a_mixed_corpus_becomes_one_row_a_domain(monkeypatch):
    asked = []
    monkeypatch.setattr(evaluate, "find", lambda name, tokens=None: asked.append(name))
    names = [name for name, _ in domains(["slimpajama"])]
    assert asked == [f"slimpajama:{name}" for name in names] and len(names) == 7
    columns = [
        c
        for c in records.published("resformer", "Table 5")["columns"]
        if c not in ("plan", "size", "average")
    ]
    assert len(columns) == len(names)


def test_held_out_text_is_taken_unless_asked_otherwise(tmp_path):
    (tmp_path / "one.txt").write_text("".join(f"line {n} of the book.\n" for n in range(6000)))
    corpus, tok = corpora.find(str(tmp_path / "one.txt")), tokenizer()
    held, whole = tokens_of(corpus, tok), tokens_of(corpus, tok, "all")
    assert len(held) < len(whole) / 20 and held.count(tok.bos) == 1
    assert len(tok.decode(tokens_of(corpus, tok, characters=50)[1:])) == 50
    (tmp_path / "two.txt").write_text("too short to hold anything out")
    with pytest.raises(ValueError, match="two has no valid text; .* say --part all"):
        tokens_of(corpora.find(str(tmp_path / "two.txt")), tok)


def test_another_models_tokenizer_is_refused():
    with pytest.raises(ValueError, match="the tokenizer has 512 tokens, the model 300"):
        score_text(Knows(uniform(300), vocab=300), tokenizer(), ids_of("text"))


def test_the_command_scores_a_trained_checkpoint(tmp_path, capsys):
    """The whole chain once: train, save, load, score by domain, record."""
    Trainer(
        Run(
            size="nano",
            vocab=512,
            context=32,
            steps=2,
            batch=2,
            rows=2,
            corpus=argparse.__file__,
            out=str(tmp_path / "run"),
        ),
        quiet=True,
    ).fit()
    (tmp_path / "speech.txt").write_text(TEXT, encoding="utf-8")
    evaluate.main(
        [
            "--checkpoint",
            str(tmp_path / "run"),
            "--domains",
            str(tmp_path / "speech.txt"),
            argparse.__file__,
            "--part",
            "all",
            "--stride",
            "16",
            "--characters",
            "2000",
            "--json",
            str(tmp_path / "out.json"),
        ]
    )
    said = capsys.readouterr().out
    assert all(word in said for word in ("speech", "argparse", "mean", "stride 16"))
    assert [row["domain"] for row in records.read(tmp_path / "out.json")["rows"]] == [
        "speech",
        "argparse",
        "mean",
    ]
    with pytest.raises(SystemExit, match="evaluate: no checkpoint at"):
        evaluate.main(["--checkpoint", str(tmp_path / "nowhere")])


MINE = {"minimal.evaluate": evaluate.main, "minimal.tasks.core": core.main}


@pytest.mark.parametrize("own", MINE)
@pytest.mark.parametrize("other", [*MINE, "minimal.compare"])
def test_the_evidence_of_another_command_is_left_as_it_is(own, other, tmp_path, capsys):
    """Its own it would replace: then the next thing that is missing is named."""
    path = tmp_path / "found.json"
    command = f"python -m {other} --checkpoint x"
    results.write(path, dict.fromkeys(results.FIELDS, "") | dict(rows=[{}], command=command))
    before = path.read_bytes()
    missing = {"minimal.evaluate": "no checkpoint at", "minimal.tasks.core": "none of the files"}
    told = missing[own] if own == other else "something that this command did not write"
    data = ["--data", str(tmp_path)] if own == "minimal.tasks.core" else []
    with pytest.raises(SystemExit) as error:
        MINE[own](["--checkpoint", str(tmp_path / "nowhere"), "--json", str(path), *data])
    assert told in f"{error.value} {capsys.readouterr().err}"
    assert path.read_bytes() == before
