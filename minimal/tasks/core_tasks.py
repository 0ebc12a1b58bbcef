"""What does CORE ask, and how is it put to a model? 21 tasks as rows of a table, their items, prompts and scored spans,
as DCLM made them and Bank of Values (2606.02780) ran them."""

import hashlib
import json
import random
from collections import namedtuple
from pathlib import Path

from minimal.data.files import DataError
from minimal.data.hub import fetched

# baseline: r of (accuracy - r) / (1 - r) as published. chance: a guesser's share on the items of the public files;
# commonsense_qa, lsat_ar and language_identification have four choices there, not five, five and eleven.
Task = namedtuple("Task", "label file kind shots delimiter baseline chance category items")

MC, SCHEMA, LM = "multiple_choice", "schema", "language_modeling"

SPACE, ANSWER = " ", "\nAnswer: "

READING, SYMBOLIC, WORLD = "reading comprehension", "symbolic problem solving", "world knowledge"

COMMON, LANGUAGE = "commonsense reasoning", "language understanding"

TASKS = [
    Task(*row)
    for row in [
        ("jeopardy", "jeopardy_all", LM, 10, ANSWER, 0, 0, WORLD, 2117),
        ("bigbench_qa_wikidata", "bigbench_qa_wikidata", LM, 10, SPACE, 0, 0, WORLD, 20321),
        ("arc_easy", "arc_easy", MC, 25, ANSWER, 0.25, 0.25, WORLD, 2376),
        ("arc_challenge", "arc_challenge", MC, 25, ANSWER, 0.25, 0.25, WORLD, 1172),
        ("copa", "copa", MC, 0, SPACE, 0.5, 0.5, COMMON, 100),
        ("commonsense_qa", "commonsense_qa", MC, 10, SPACE, 0.2, 0.25, COMMON, 1221),
        ("piqa", "piqa", MC, 10, ANSWER, 0.5, 0.5, COMMON, 1838),
        ("openbook_qa", "openbook_qa", MC, 0, SPACE, 0.25, 0.25, COMMON, 500),
        ("lambada_openai", "lambada_openai", LM, 0, SPACE, 0, 0, LANGUAGE, 5153),
        ("hellaswag", "hellaswag", MC, 10, SPACE, 0.25, 0.25, LANGUAGE, 10042),
        ("winograd", "winograd_wsc", SCHEMA, 0, SPACE, 0.5, 0.5, LANGUAGE, 273),
        ("winogrande", "winogrande", SCHEMA, 5, SPACE, 0.5, 0.5, LANGUAGE, 1267),
        ("bigbench_dyck_languages", "bigbench_dyck_languages", LM, 10, SPACE, 0, 0, SYMBOLIC, 1000),
        ("agi_eval_lsat_ar", "agi_eval_lsat_ar", MC, 3, SPACE, 0.2, 0.25, SYMBOLIC, 230),
        ("bigbench_cs_algorithms", "bigbench_cs_algorithms", LM, 10, SPACE, 0, 0, SYMBOLIC, 1320),
        ("bigbench_operators", "bigbench_operators", LM, 10, SPACE, 0, 0, SYMBOLIC, 210),
        (
            "bigbench_repeat_copy_logic",
            "bigbench_repeat_copy_logic",
            LM,
            10,
            SPACE,
            0,
            0,
            SYMBOLIC,
            32,
        ),
        ("squad", "squad", LM, 10, SPACE, 0, 0, READING, 10570),
        ("coqa", "coqa", LM, 0, SPACE, 0, 0, READING, 7983),
        (
            "boolq",
            "boolq",
            MC,
            10,
            ANSWER,
            0.62,
            0.62,
            READING,
            3270,
        ),  # the majority's share; a coin gets .5
        (
            "bigbench_language_identification",
            "bigbench_language_identification",
            MC,
            10,
            SPACE,
            0.091,
            0.25,
            LANGUAGE,
            10000,
        ),
    ]
]

SIX = (
    "hellaswag openbook_qa winogrande arc_challenge arc_easy piqa".split()
)  # ResFormer (2410.17897), Table 1

SUITES = dict(core=TASKS, resformer=[task._replace(shots=0) for task in TASKS if task.label in SIX])

# What an item holds; which field lists the options; how it reads when solved; the texts that ask about it.
Kind = namedtuple("Kind", "fields options shot ask")

KINDS = {
    MC: Kind(
        ("query", "choices", "gold"),
        "choices",
        lambda x, d: x["query"] + d + x["choices"][x["gold"]],
        lambda x, d: [x["query"] + d + choice for choice in x["choices"]],
    ),
    SCHEMA: Kind(
        ("context_options", "continuation", "gold"),
        "context_options",
        lambda x, d: x["context_options"][x["gold"]] + d + x["continuation"],
        lambda x, d: [context + d + x["continuation"] for context in x["context_options"]],
    ),
    LM: Kind(
        ("context", "continuation"),
        None,
        lambda x, d: x["context"].strip() + d + x["continuation"],
        lambda x, d: [x["context"].strip() + d, x["context"].strip() + d + x["continuation"]],
    ),
}


# ---- items ----------------------------------------------------------------------------------------------------------
def find(task, where):
    """The task's file: <where>/<file>.jsonl or <where>/<category>/<file>.jsonl (the public layout); None if absent."""
    name, folder = f"{task.file}.jsonl", task.category.replace(" ", "_")
    if "://" in str(where):
        return f"{where}/{folder}/{name}"
    places = Path(where) / name, Path(where) / folder / name
    return next((path for path in places if path.exists()), None)


def read(task, where):
    """All items of a task, checked, and their fingerprint. A URL goes through `datasets`, a folder is read here."""
    source = find(task, where)
    if source is None:
        raise DataError(
            f"wanted {task.file}.jsonl in {where}: put the CORE files there, or name another folder or URL"
        )
    if "://" in str(source):
        items = dict(enumerate(downloaded(source), 1))
    else:
        lines = source.read_text(encoding="utf-8").split("\n")
        items = {
            n: parse(line, f"{source.name}, line {n}")
            for n, line in enumerate(lines, 1)
            if line.strip()
        }
    for n, item in items.items():
        check(task, item, f"{task.file}.jsonl, line {n}")
    items = list(items.values())
    return items, hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:12]


def downloaded(address):
    try:
        from datasets import load_dataset

        return list(load_dataset("json", data_files=fetched(address), split="train"))
    except Exception as error:  # no network, no such file: each library has its own class
        raise DataError(
            f"{address} did not come through `datasets` ({type(error).__name__}): check it, or name "
            "a folder"
        ) from error


def parse(line, place):
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{place}: wanted one JSON object, got {line.strip()[:40]!r} ({error.msg}): "
            "mend or delete the line"
        ) from None


def check(task, item, place):
    """One sentence about the first thing that keeps an item from being scored."""
    kind = KINDS[task.kind]

    def need(fine, problem):
        if not fine:
            raise DataError(
                f"{place}: wanted {', '.join(kind.fields)} for a {task.kind} task, {problem}: "
                "mend or delete the line"
            )

    need(isinstance(item, dict), f"got {str(item)[:40]!r}")
    absent = [field for field in kind.fields if item.get(field) is None]
    need(not absent, f"{', '.join(absent)} missing")
    if "continuation" in kind.fields:
        need(str(item["continuation"]).strip(), "the continuation is empty")
    if kind.options:
        options, gold = item[kind.options], item["gold"]
        need(
            isinstance(options, list) and len(options) > 1,
            f"{kind.options} is {str(options)[:40]!r}",
        )
        need(
            type(gold) is int and 0 <= gold < len(options),
            f"gold is {gold!r} where 0 to {len(options) - 1} can be",
        )


def sample(task, items, limit=None):
    """The items that are asked: shuffled with seed 1337, cut to `limit`. Examples are drawn among the same items."""
    items = list(items)
    random.Random(1337).shuffle(items)
    items = items[:limit]
    if len(items) <= task.shots:
        raise DataError(
            f"{task.label} shows {task.shots} other items before each question and has {len(items)}: "
            f"ask for at least {task.shots + 1} items"
        )
    return items


# ---- questions ------------------------------------------------------------------------------------------------------
def prompts(task, items, index):
    """The texts that ask about one item: examples, a blank line after each, then the question, once a choice."""
    kind, others = KINDS[task.kind], [i for i in range(len(items)) if i != index]
    shots = random.Random(1234 + index).sample(others, task.shots)
    shown = "".join(kind.shot(items[i], task.delimiter) + "\n\n" for i in shots)
    return [shown + text for text in kind.ask(items[index], task.delimiter)]


def common(rows):
    """How many tokens all rows begin with."""
    return next(
        (n for n, column in enumerate(zip(*rows)) if len(set(column)) > 1), min(map(len, rows))
    )


# Token rows; where in each the scored span starts (it ends with the row); did rows, did spans lose tokens?
Question = namedtuple("Question", "rows starts cut clipped")


def question(task, items, index, tok, context):
    """One item in tokens. The scored span is, in multiple choice, all from the first token where the prompts differ; in
    a schema, the tokens that all prompts end with; in language modelling, the continuation. Rows longer than the
    context lose tokens from the left. A span keeps at least one token, also where one choice begins another."""
    texts = prompts(task, items, index)
    if task.kind == LM:
        texts[0] = texts[0].strip()
    rows = [[tok.bos] + tok.encode(text) for text in texts]
    if task.kind == MC:
        starts = [min(common(rows), len(row) - 1) for row in rows]
    elif task.kind == SCHEMA:
        starts = [len(row) - max(1, common([r[::-1] for r in rows])) for row in rows]
    else:
        asked, whole = rows
        if whole[: len(asked)] != asked or len(whole) == len(asked):
            raise DataError(
                f"{task.label}, item {index}: this tokenizer joins the end of the prompt and the answer "
                f"{items[index]['continuation']!r} in one token: take one that splits before a space"
            )
        rows, starts = [whole], [len(asked)]
    lost = [max(0, len(row) - context) for row in rows]
    return Question(
        [row[n:] for row, n in zip(rows, lost)],
        [max(1, start - n) for start, n in zip(starts, lost)],
        any(lost),
        any(start <= n for start, n in zip(starts, lost)),
    )
