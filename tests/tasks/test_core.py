"""Does CORE score what it should, count what it scored, and go on after a kill?"""

import argparse
import math

import pytest
import torch
import torch.nn.functional as F

from course import records
from minimal.data import files
from minimal.encoder import bert
from minimal.model.config import Config
from minimal.tasks import core
from minimal.tasks.core import RULES, aggregate, evaluate, with_error
from minimal.tasks.core_scores import score_questions
from minimal.tasks.core_tasks import (
    LM,
    MC,
    SIX,
    TASKS,
    QuestionInTokens,
    prompts,
    question,
    read_task,
    sample,
)
from minimal.train import Run, Trainer
from minimal.variants import build
from tests.tasks.toys import (
    TASK,
    Knows,
    constant,
    oracle,
    tokenizer,
    uniform,
    write_items,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_items(tmp_path_factory.mktemp("core"))


def alive(plan="standard", context=2048, **changes):
    """A small untrained model whose output matrices are not zero, so that its answers depend on
    everything it read."""
    model = build(plan, "nano", vocab=512, context=context, **changes)
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.2)
    torch.nn.init.normal_(model.head.weight, std=0.2)
    return model.eval()


# ---- scoring ------------------------------------------------------------------------------------


def slowly(model, asked):
    """The definition, one row at a time without cache or padding: nats of the span, its length, is
    all of it argmax?"""
    found = []
    for row, start in zip(asked.rows, asked.starts):
        ids = torch.tensor([row])
        with torch.no_grad():
            z = model(ids)[0, :-1].double()
        nats = F.cross_entropy(z, ids[0, 1:], reduction="none")[start - 1 :]
        found.append(
            (
                nats.sum().item(),
                len(nats),
                bool((z[start - 1 :].argmax(-1) == ids[0, start:]).all()),
            )
        )
    return found


def assert_equal_to_slow(model, asked):
    for fast, question_ in zip(score_questions(model, asked), asked):
        for (nats, n, exact), (slow, m, right) in zip(fast, slowly(model, question_), strict=True):
            assert nats == pytest.approx(slow, rel=1e-4, abs=1e-4) and (n, exact) == (m, right)


def few(task, shots=2):
    """The same task with fewer examples: quicker, and otherwise no different."""
    return task._replace(shots=min(task.shots, shots))


@pytest.mark.parametrize("plan", ["standard", "bov", "svformer", "vplus", "dva"])
def test_the_batched_and_cached_scorer_equals_the_slow_one_for_every_way_of_making_values(
    plan, folder
):
    model = alive(plan)
    for task in (few(TASK["arc_easy"]), TASK["winogrande"], few(TASK["jeopardy"]), TASK["copa"]):
        items = sample(task, read_task(task, folder)[0])
        assert_equal_to_slow(
            model, [question(task, items, index, tokenizer(), 2048) for index in range(2)]
        )


@pytest.mark.data
@pytest.mark.parametrize("context", [96, 4096])
def test_the_scorers_agree_on_public_items_cut_and_uncut(context, data):
    model = alive(context=context)
    for task in TASKS:
        if (data / "core" / f"{task.file}.jsonl").exists():
            task = few(task, 1)
            items = sample(task, read_task(task, data / "core")[0], 20)
            assert_equal_to_slow(
                model, [question(task, items, index, tokenizer(), context) for index in range(2)]
            )


def test_what_the_rows_of_a_question_share_is_read_once(folder):
    items = sample(TASK["arc_easy"], read_task(TASK["arc_easy"], folder)[0])
    asked = question(TASK["arc_easy"], items, 0, tokenizer(), 10**9)
    model = Knows(uniform())
    score_questions(model, [asked])
    assert model.read < 1.3 * len(asked.rows[0]) and len(asked.rows) == 4


def test_nothing_of_one_question_reaches_another_in_a_batch():
    asked = [
        QuestionInTokens([[1, 5, 9, 3]], [2], False, False),
        QuestionInTokens([[1, 7] * 20], [30], False, False),
    ]
    model = alive()
    (alone,), (together, _) = score_questions(model, asked[:1]), score_questions(model, asked)
    assert together[0][0] == pytest.approx(alone[0][0], rel=1e-5)


def accuracy(results, rule="bytes"):
    return {row["task"]: row[rule] for row in results}


def span_texts(task, items, index):
    """Token spans of each choice, found from the texts alone."""
    rows = [tokenizer().encode(text) for text in prompts(task, items, index)]
    if task.kind == MC:
        start = next(n for n, column in enumerate(zip(*rows)) if len(set(column)) > 1)
        return [row[start:] for row in rows]
    n = 1
    while len({tuple(row[-n - 1 :]) for row in rows}) == 1:
        n += 1
    return [row[-n:] for row in rows]


def first_smallest(values):
    return min(range(len(values)), key=lambda i: (round(values[i], 6), i))


@pytest.mark.parametrize("token, logit", [(None, 0.0), (17, 3.0)])
def test_uniform_and_constant_models_land_where_counting_says(folder, token, logit):
    """Their loss of a span follows from its tokens: n log Z, less `logit` for each constant
    token."""
    model = Knows(uniform() if token is None else constant(token, logit))
    log_z = math.log(511 + math.exp(logit))
    results = {row["task"]: row for row in evaluate(model, tokenizer(), TASKS, folder)}
    for task in TASKS:
        items = sample(task, read_task(task, folder)[0])
        if task.kind == LM:
            assert results[task.label]["tokens"] == 0
            continue
        right = dict.fromkeys(RULES, 0)
        for index, item in enumerate(items):
            spans = span_texts(task, items, index)
            nats = [len(span) * log_z - logit * span.count(token) for span in spans]
            losses = dict(
                sum=nats,
                tokens=[a / len(span) for a, span in zip(nats, spans)],
                bytes=[a / len(tokenizer().decode(span).encode()) for a, span in zip(nats, spans)],
            )
            for rule in RULES:
                right[rule] += first_smallest(losses[rule]) == item["gold"]
        for rule in RULES:
            assert results[task.label][rule] == pytest.approx(right[rule] / len(items)), (
                task.label,
                rule,
            )
        if token is None:
            first = sum(item["gold"] == 0 for item in items) / len(items)
            assert results[task.label]["tokens"] == pytest.approx(first), (
                "all choices tie: the first is taken"
            )


def test_an_oracle_gets_everything_right_and_core_one(folder):
    for task in map(few, TASKS):
        items = sample(task, read_task(task, folder)[0], 8)
        asked = [question(task, items, index, tokenizer(), 10**9) for index in range(len(items))]
        golden = [q.rows[0 if task.kind == LM else item["gold"]] for q, item in zip(asked, items)]
        (row,) = evaluate(Knows(oracle(golden)), tokenizer(), [task], folder, limit=8)
        assert all(row[rule] == 1 for rule in RULES), task.label
    assert aggregate({task.label: 1.0 for task in TASKS})[0] == 1


def test_one_wrong_token_makes_a_continuation_wrong():
    row = [3, 4, 5, 6, 7]
    asked = QuestionInTokens([row], [2], False, False)
    assert score_questions(Knows(oracle([row])), [asked])[0][0][2] is True
    assert score_questions(Knows(oracle([[3, 4, 5, 9, 7]])), [asked])[0][0][2] is False


def test_rules_differ_where_choices_differ_in_length():
    """Two tokens of one byte each against one token of many bytes."""
    tok = tokenizer()
    long = max(range(tok.vocab), key=lambda i: tok.bytes[i])
    short = [i for i in range(tok.vocab) if tok.bytes[i] == 1][40:42]
    asked = QuestionInTokens([[tok.bos, long], [tok.bos, *short]], [1, 1], False, False)
    item = dict(gold=0)
    judged = core.judge(TASK["copa"], item, asked, [(6.0, 1, False), (8.0, 2, False)], tok)
    assert judged == dict(gold=0, bytes=0, tokens=1, sum=0)


def test_a_letter_of_several_bytes_counts_its_bytes():
    """Of two spans of equal nats, of two letters each, the one of more bytes is likelier."""
    tok = tokenizer()
    plain, accented = tok.encode("ab"), tok.encode("é日")
    assert len(tok.decode(plain)) == len(tok.decode(accented)) == 2
    asked = QuestionInTokens([[tok.bos, *plain], [tok.bos, *accented]], [1, 1], False, False)
    judged = core.judge(TASK["copa"], dict(gold=1), asked, [(6.0, 1, False), (6.0, 1, False)], tok)
    assert judged == dict(gold=1, bytes=1, tokens=0, sum=0)


# ---- what it amounts to -------------------------------------------------------------------------


def test_standard_errors_stand_beside_every_number(folder):
    results = evaluate(Knows(uniform()), tokenizer(), [TASK["copa"], TASK["jeopardy"]], folder)
    lines = core.report(results).splitlines()
    assert lines[1].count("±") == 5, "three rules and two centrings"
    assert lines[2].count("<0.100") == 5, "0 of 30 has no binomial error: the 95 % bound is 3/n"
    assert with_error(0.5, 100) == "0.500±0.050" and with_error(0.5, 100, 0.2) == "0.375±0.062"
    assert "2 of 21 tasks, not comparable" in lines[-1]


def test_the_error_of_core_is_that_of_a_mean_of_centred_shares():
    share = {task.label: 0.6 for task in TASKS}
    parts = [math.sqrt(0.24 / task.items) / (1 - task.baseline) for task in TASKS]
    assert aggregate(share)[1] == pytest.approx(math.sqrt(sum(p * p for p in parts)) / 21)


def test_the_report_says_how_much_was_cut(folder):
    results = evaluate(
        alive(context=64), tokenizer(), [few(TASK["arc_easy"], 4), TASK["copa"]], folder
    )
    assert [row["cut"] for row in results] == [1, 0] and "cut from the left" in core.report(results)


# ---- going on after a kill ----------------------------------------------------------------------


def test_a_killed_evaluation_goes_on_where_it_stopped(folder, tmp_path):
    log, tasks, model = (
        tmp_path / "core.jsonl",
        [TASK["copa"], TASK["jeopardy"], TASK["piqa"]],
        alive(context=96),
    )
    whole, passes = evaluate(model, tokenizer(), tasks, folder, block=8), []

    def dies(module, arguments, output):
        passes.append(1)
        if len(passes) == 6:
            raise KeyboardInterrupt

    handle = model.register_forward_hook(dies)
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, tokenizer(), tasks, folder, log=log, block=8)
    handle.remove()
    done = files.read_lines(log)
    assert 0 < len(done) < 90
    asked = []  # forward passes
    handle = model.register_forward_pre_hook(lambda *_: asked.append(1))
    assert evaluate(model, tokenizer(), tasks, folder, log=log, block=8) == whole
    rows = files.read_lines(log)
    assert len(rows) == 90 and rows[: len(done)] == done, "nothing is asked twice"
    asked.clear()
    assert evaluate(model, tokenizer(), tasks, folder, log=log, block=8) == whole and not asked


def test_a_log_is_not_continued_by_other_weights_or_other_settings(folder, tmp_path):
    log, model = tmp_path / "core.jsonl", alive()
    evaluate(model, tokenizer(), [TASK["copa"]], folder, log=log)
    evaluate(model, tokenizer(), [TASK["copa"]], folder, limit=12, log=log)
    with torch.no_grad():
        model.head.weight[0, 0] += 1
    evaluate(model, tokenizer(), [TASK["copa"]], folder, log=log)
    assert len(files.read_lines(log)) == 30 + 12 + 30


# ---- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    Trainer(
        Run(
            size="nano",
            vocab=512,
            context=64,
            steps=2,
            batch=2,
            rows=2,
            corpus=argparse.__file__,
            out=str(out),
        ),
        quiet=True,
    ).fit()
    return out


def test_the_command_prints_the_table_and_writes_evidence(checkpoint, folder, capsys, tmp_path):
    (checkpoint / "core.jsonl").unlink(missing_ok=True)  # what another test was answered
    core.main(
        [
            "--checkpoint",
            str(checkpoint),
            "--data",
            str(folder),
            "--tasks",
            "copa,winograd",
            "--items",
            "9",
            "--json",
            str(tmp_path / "out.json"),
        ]
    )
    said = capsys.readouterr().out
    assert "copa" in said and "CORE" in said and "published chance" in said
    content = records.read(tmp_path / "out.json")
    assert [row["task"] for row in content["rows"]] == ["copa", "winograd"] and content["rows"][0][
        "n"
    ] == 9
    assert len(files.read_lines(checkpoint / "core.jsonl")) == 18


def test_the_resformer_suite_runs_what_is_there_and_names_what_is_not(checkpoint, tmp_path, capsys):
    write_items(tmp_path, 5, [TASK[label] for label in SIX if label != "hellaswag"])
    core.main(["--checkpoint", str(checkpoint), "--data", str(tmp_path), "--suite", "resformer"])
    said = capsys.readouterr().out
    assert "not run, their files are not there: hellaswag" in said
    assert "mean accuracy" in said and "5 of 6 tasks" in said


def test_a_wrong_task_or_folder_is_refused_before_anything_is_loaded(folder, tmp_path, capsys):
    wrong = {
        "no task poetry; the suite has jeopardy": ["--tasks", "copa,poetry", "--data", str(folder)],
        "none of the files is in": ["--data", str(tmp_path)],
    }
    for says, arguments in wrong.items():
        with pytest.raises(SystemExit):
            core.main(["--checkpoint", "nowhere", *arguments])
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, says",
    [
        ("--items -1", "core: argument --items: wanted a whole number from 1, got -1"),
        ("--items 0", "core: argument --items: wanted a whole number from 1, got 0"),
        ("--tasks copa", "core: no checkpoint at nowhere"),
    ],
)
def test_a_wrong_wish_is_one_sentence(words, says, folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        core.main(["--checkpoint", "nowhere", "--data", str(folder), *words.split()])
    said = f"{stopped.value} {capsys.readouterr().err}"
    assert says in said and stopped.value.code != 0


def test_a_model_that_sees_the_answer_is_refused(folder, tmp_path, monkeypatch):
    encoder = bert.build("standard", Config(1, 32, 1, 64, 512, style="bert", windows="L"))
    monkeypatch.setattr(core, "opened", lambda *_: (encoder, tokenizer()))
    with pytest.raises(SystemExit, match="core: wanted a decoder, got an encoder"):
        core.main(["--checkpoint", str(tmp_path), "--data", str(folder), "--tasks", "copa"])
    assert not (tmp_path / "core.jsonl").exists()


def test_a_checkpoint_may_be_named_by_its_file(checkpoint, folder, capsys):
    path = checkpoint / "last.safetensors"
    words = ["--data", str(folder), "--tasks", "copa", "--items", "3"]
    core.main(["--checkpoint", str(path), *words])
    assert "copa" in capsys.readouterr().out and (checkpoint / "core.jsonl").is_file()


@pytest.mark.data
def test_a_tiny_model_answers_all_public_tasks(data):
    model, public = build("standard", "tiny", vocab=512), data / "core"
    here = [few(task) for task in TASKS if (public / f"{task.file}.jsonl").exists()]
    results = evaluate(model, tokenizer(), here, public, limit=4)
    assert len(results) >= 18 and all(row["n"] == 4 for row in results)
