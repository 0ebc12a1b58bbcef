"""Does CORE ask as published, from files that are as they should be?"""

import pytest

from course import records
from minimal.tasks.core_tasks import (
    KINDS,
    LM,
    SCHEMA,
    SIX,
    SUITES,
    TASKS,
    common,
    prompts,
    question,
    read_task,
    sample,
)
from tests.tasks.toys import TASK, public_items, tokenizer, write_items


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_items(tmp_path_factory.mktemp("core"))


# ---- the table ----------------------------------------------------------------------------------


def test_the_table_has_21_tasks_in_five_categories_with_the_papers_settings():
    assert len(TASKS) == len(TASK) == 21
    assert sorted(sum(t.category == c for t in TASKS) for c in {t.category for t in TASKS}) == [
        3,
        4,
        4,
        5,
        5,
    ]
    assert {t.label for t in TASKS if t.delimiter != " "} == {
        "jeopardy",
        "arc_easy",
        "arc_challenge",
        "piqa",
        "boolq",
    }
    assert {t.label for t in TASKS if t.shots == 0} == {
        "copa",
        "openbook_qa",
        "lambada_openai",
        "winograd",
        "coqa",
    }
    assert {t.label: t.shots for t in TASKS if t.shots not in (0, 10)} == dict(
        arc_easy=25, arc_challenge=25, winogrande=5, agi_eval_lsat_ar=3
    )
    assert [t.label for t in TASKS if t.kind == SCHEMA] == ["winograd", "winogrande"]
    assert {t.label: t.baseline for t in TASKS if t.baseline != t.chance} == dict(
        commonsense_qa=0.2, agi_eval_lsat_ar=0.2, bigbench_language_identification=0.091
    )


def test_categories_are_those_of_the_published_tables():
    rows = {row["task"]: row["category"] for row in records.published("bov", "Table 5")["rows"]}
    assert all(rows[task.label] == task.category for task in TASKS)


def test_the_resformer_suite_is_its_six_tasks_without_examples():
    columns = records.published("resformer", "Table 1")["columns"]
    assert [t.label for t in SUITES["resformer"]] == sorted(SIX, key=list(TASK).index)
    assert set(SIX) < set(columns) and all(t.shots == 0 for t in SUITES["resformer"])


@pytest.mark.data
@pytest.mark.parametrize("label", [t.label for t in TASKS])
def test_sizes_and_chance_levels_are_counted_from_the_public_files(label, data):
    task = TASK[label]
    items, _ = read_task(task, public_items(data, task))
    assert len(items) == task.items
    options = KINDS[task.kind].options
    if label == "boolq":
        assert sum(item["gold"] for item in items) / len(items) == pytest.approx(
            task.chance, abs=0.002
        )
    elif options:
        assert {len(item[options]) for item in items} == {round(1 / task.chance)}


# ---- prompts and spans --------------------------------------------------------------------------


def test_a_multiple_choice_prompt_is_examples_blank_lines_and_the_question():
    items = [dict(query=f"q{n}", choices=["no", "yes"], gold=n % 2) for n in range(3)]
    task = TASK["boolq"]._replace(shots=2)
    others = {0: "q0\nAnswer: no", 1: "q1\nAnswer: yes", 2: "q2\nAnswer: no"}
    for text, choice in zip(prompts(task, items, 1), ("no", "yes"), strict=True):
        first, second, last = text.split("\n\n")
        assert {first, second} == {others[0], others[2]} and last == f"q1\nAnswer: {choice}"


def test_examples_are_drawn_with_the_published_seeds():
    items = [dict(context=f"c{n} ", continuation=str(n)) for n in range(40)]
    asked = sample(TASK["bigbench_operators"], items)
    assert [x["continuation"] for x in asked[:5]] == ["32", "14", "31", "8", "4"], (
        "Random(1337).shuffle"
    )
    shown = prompts(TASK["bigbench_operators"], asked, 7)[1].split("\n\n")
    assert (
        shown[:3] == ["c39 39", "c37 37", "c35 35"] and shown[-1] == "c29 29" and len(shown) == 11
    )
    assert shown[-1] not in shown[:-1]


def test_language_modelling_trims_contexts_and_the_prompt_without_its_answer():
    items = [dict(context=f" c{n} \n", continuation=f"w{n}") for n in range(3)]
    without, whole = prompts(TASK["jeopardy"]._replace(shots=1), items, 0)
    assert whole.endswith("\n\nc0\nAnswer: w0") and without.endswith("\n\nc0\nAnswer: ")
    tok = tokenizer()
    asked = question(TASK["jeopardy"]._replace(shots=1), items, 0, tok, 10**6)
    assert tok.decode(asked.rows[0][asked.starts[0] :]) == " w0"


def test_a_schema_shows_the_right_context_and_scores_the_common_ending():
    items = [
        dict(context_options=["the cat", "the dog"], continuation="was fed.", gold=1),
        dict(context_options=["a man", "a tall woman"], continuation="ran away.", gold=0),
    ]
    task = TASK["winogrande"]._replace(shots=1)
    shown = "the dog was fed.\n\n"
    assert prompts(task, items, 1) == [shown + "a man ran away.", shown + "a tall woman ran away."]
    tok = tokenizer()
    asked = question(task, items, 1, tok, 10**6)
    spans = {tok.decode(row[start:]) for row, start in zip(asked.rows, asked.starts)}
    assert len(spans) == 1 and spans.pop().endswith(" ran away.")


def test_multiple_choice_scores_from_the_first_differing_token_to_the_end():
    tok = tokenizer()
    item = dict(query="is it", choices=["not so", "not true"], gold=0)
    asked = question(TASK["copa"], [item], 0, tok, 10**6)
    n = common(asked.rows)
    assert asked.starts == [n, n] and tok.decode(asked.rows[0][:n]).endswith("is it not")
    assert asked.rows[0][0] == tok.bos


def test_a_choice_that_begins_another_keeps_one_token_to_score():
    item = dict(query="how far", choices=["12", "12 miles"], gold=1)
    asked = question(TASK["copa"], [item], 0, tokenizer(), 10**6)
    assert all(start < len(row) for row, start in zip(asked.rows, asked.starts))


def test_long_prompts_lose_tokens_from_the_left_and_say_so():
    tok = tokenizer()
    item = dict(query="word " * 50, choices=["a b c", "b c"], gold=0)
    whole = question(TASK["copa"], [item], 0, tok, 10**6)
    cut = question(TASK["copa"], [item], 0, tok, 20)
    assert not whole.cut and cut.cut and not cut.clipped
    for full, row, start, moved in zip(whole.rows, cut.rows, whole.starts, cut.starts):
        assert row == full[-20:] and row[moved:] == full[start:]
    edge = len(whole.rows[0]) - whole.starts[0]
    assert question(TASK["copa"], [item], 0, tok, edge).clipped, (
        "nothing is left to predict the first token from"
    )
    assert not question(TASK["copa"], [item], 0, tok, edge + 1).clipped
    tiny = question(TASK["copa"], [item], 0, tok, 2)
    assert tiny.clipped and all(
        start == 1 and len(row) == 2 for row, start in zip(tiny.rows, tiny.starts)
    )


@pytest.mark.data
@pytest.mark.parametrize("label", [t.label for t in TASKS if t.kind == LM])
def test_in_the_public_items_the_prompt_is_a_prefix_of_prompt_and_answer(label, data):
    task = TASK[label]
    items = sample(task._replace(shots=0), read_task(task, public_items(data, task))[0], 200)
    for index, item in enumerate(items):
        asked = question(task._replace(shots=0), items, index, tokenizer(), 10**6)
        assert (
            tokenizer().decode(asked.rows[0][asked.starts[0] :]).strip()
            == item["continuation"].strip()
        )


# ---- what is wrong with the data ----------------------------------------------------------------

GOOD = '{"query": "q", "choices": ["a", "b"], "gold": 0}'


@pytest.mark.parametrize(
    "label, line, says",
    [
        (
            "copa",
            '{"query": "q", "choices"',
            r"copa.jsonl, line 3: wanted one JSON object, got '{\"query\"",
        ),
        (
            "copa",
            "[1, 2]",
            r"copa.jsonl, line 3: wanted query, choices, gold for a multiple_choice task, "
            r"got '\[1, 2\]'",
        ),
        (
            "copa",
            '{"query": "q", "choices": ["a", "b"]}',
            r"line 3: .* gold missing: fix or delete",
        ),
        ("copa", '{"query": "q", "choices": ["a", "b"], "gold": null}', r"line 3: .* gold missing"),
        (
            "copa",
            '{"query": "q", "choices": ["a", "b"], "gold": 2}',
            r"line 3: .* gold is 2 where 0 to 1 can be",
        ),
        (
            "copa",
            '{"query": "q", "choices": ["a", "b"], "gold": "A"}',
            r"line 3: .* gold is 'A' where 0 to 1 can be",
        ),
        (
            "copa",
            '{"query": "q", "choices": ["a"], "gold": 0}',
            r"line 3: .* choices is \"\['a'\]\"",
        ),
        (
            "winograd",
            '{"context_options": ["a", "b"], "continuation": " ", "gold": 0}',
            "line 3: .* continuation is empty",
        ),
        (
            "jeopardy",
            '{"context": 5, "continuation": "d"}',
            "line 3: wanted context, continuation .*, context is '5', no text: fix or delete",
        ),
        (
            "copa",
            '{"query": "q", "choices": [1, 2], "gold": 0}',
            r"line 3: .* choices is '\[1, 2\]'",
        ),
        (
            "jeopardy",
            '{"context": "c"}',
            "jeopardy_all.jsonl, line 3: wanted context.*, continuation missing",
        ),
    ],
)
def test_a_bad_line_is_told_in_one_sentence_with_file_and_line(tmp_path, label, line, says):
    good = {
        "copa": GOOD,
        "winograd": '{"context_options": ["a", "b"], "continuation": "c", "gold": 0}',
        "jeopardy": '{"context": "c", "continuation": "d"}',
    }[label]
    (tmp_path / f"{TASK[label].file}.jsonl").write_text(f"{good}\n{good}\n{line}\n{good}\n")
    with pytest.raises(ValueError, match=says) as caught:
        read_task(TASK[label], tmp_path)
    assert "\n" not in str(caught.value)


def test_an_absent_file_and_too_few_items_say_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="wanted copa.jsonl in .*: put the CORE files there"):
        read_task(TASK["copa"], tmp_path)
    with pytest.raises(
        ValueError, match="arc_easy shows 25 other items .* and has 10: ask for at least 26 items"
    ):
        sample(TASK["arc_easy"], [{}] * 100, 10)


@pytest.mark.hub
def test_the_public_layout_with_category_folders_is_read_by_path_and_through_datasets(
    tmp_path, folder
):
    inside = tmp_path / "commonsense_reasoning"
    inside.mkdir()
    (inside / "copa.jsonl").write_text((folder / "copa.jsonl").read_text())
    flat, nested = read_task(TASK["copa"], folder), read_task(TASK["copa"], tmp_path)
    assert flat == nested == read_task(TASK["copa"], tmp_path.as_uri())
    with pytest.raises(ValueError, match="piqa.jsonl did not come through `datasets`"):
        read_task(TASK["piqa"], tmp_path.as_uri())
