"""What does CORE ask, and how is it put to a model? 21 tasks as rows of a table; their items,
prompts and scored spans, as DCLM made them and Bank of Values (2606.02780) ran them."""

import hashlib
import json
import random
from collections import namedtuple
from pathlib import Path

from minimal.data.files import DataError
from minimal.tasks.rows import downloaded

# baseline: r of (accuracy - r) / (1 - r) as published. chance: a guesser's share on the items of
# the public files; commonsense_qa, lsat_ar and language_identification have four choices there,
# not five, five and eleven. boolq: the share of the majority; a coin gets .5.
Task = namedtuple("Task", "label file kind shots delimiter baseline chance category items")

MC, SCHEMA, LM = "multiple_choice", "schema", "language_modeling"

SPACE, ANSWER = " ", "\nAnswer: "

READING, SYMBOLIC, WORLD = "reading comprehension", "symbolic problem solving", "world knowledge"

COMMON, LANGUAGE = "commonsense reasoning", "language understanding"

# fmt: off
TASK_ROWS = (  # label, kind, examples, delimiter, baseline, chance, category, items
    ("jeopardy",                         LM,     10, ANSWER, 0,     0,    WORLD,    2117),
    ("bigbench_qa_wikidata",             LM,     10, SPACE,  0,     0,    WORLD,    20321),
    ("arc_easy",                         MC,     25, ANSWER, 0.25,  0.25, WORLD,    2376),
    ("arc_challenge",                    MC,     25, ANSWER, 0.25,  0.25, WORLD,    1172),
    ("copa",                             MC,     0,  SPACE,  0.5,   0.5,  COMMON,   100),
    ("commonsense_qa",                   MC,     10, SPACE,  0.2,   0.25, COMMON,   1221),
    ("piqa",                             MC,     10, ANSWER, 0.5,   0.5,  COMMON,   1838),
    ("openbook_qa",                      MC,     0,  SPACE,  0.25,  0.25, COMMON,   500),
    ("lambada_openai",                   LM,     0,  SPACE,  0,     0,    LANGUAGE, 5153),
    ("hellaswag",                        MC,     10, SPACE,  0.25,  0.25, LANGUAGE, 10042),
    ("winograd",                         SCHEMA, 0,  SPACE,  0.5,   0.5,  LANGUAGE, 273),
    ("winogrande",                       SCHEMA, 5,  SPACE,  0.5,   0.5,  LANGUAGE, 1267),
    ("bigbench_dyck_languages",          LM,     10, SPACE,  0,     0,    SYMBOLIC, 1000),
    ("agi_eval_lsat_ar",                 MC,     3,  SPACE,  0.2,   0.25, SYMBOLIC, 230),
    ("bigbench_cs_algorithms",           LM,     10, SPACE,  0,     0,    SYMBOLIC, 1320),
    ("bigbench_operators",               LM,     10, SPACE,  0,     0,    SYMBOLIC, 210),
    ("bigbench_repeat_copy_logic",       LM,     10, SPACE,  0,     0,    SYMBOLIC, 32),
    ("squad",                            LM,     10, SPACE,  0,     0,    READING,  10570),
    ("coqa",                             LM,     0,  SPACE,  0,     0,    READING,  7983),
    ("boolq",                            MC,     10, ANSWER, 0.62,  0.62, READING,  3270),
    ("bigbench_language_identification", MC,     10, SPACE,  0.091, 0.25, LANGUAGE, 10000),
)
# fmt: on

FILES = dict(jeopardy="jeopardy_all", winograd="winograd_wsc")  # the others bear their label

TASKS = [Task(label, FILES.get(label, label), *rest) for label, *rest in TASK_ROWS]

# ResFormer (2410.17897), Table 1
SIX = "hellaswag openbook_qa winogrande arc_challenge arc_easy piqa".split()

SUITES = dict(core=TASKS, resformer=[task._replace(shots=0) for task in TASKS if task.label in SIX])

# What an item holds; which field lists the options; how it reads when solved; the texts that ask.
Kind = namedtuple("Kind", "fields options solved asking")


def solved_choice(item, delimiter):
    return item["query"] + delimiter + item["choices"][item["gold"]]


def asking_choices(item, delimiter):
    return [item["query"] + delimiter + choice for choice in item["choices"]]


def solved_schema(item, delimiter):
    return item["context_options"][item["gold"]] + delimiter + item["continuation"]


def asking_contexts(item, delimiter):
    return [text + delimiter + item["continuation"] for text in item["context_options"]]


def solved_text(item, delimiter):
    return item["context"].strip() + delimiter + item["continuation"]


def asking_text(item, delimiter):
    """The prompt alone, and with its answer."""
    prompt = item["context"].strip() + delimiter
    return [prompt, prompt + item["continuation"]]


CHOICES, CONTEXTS = ("query", "choices", "gold"), ("context_options", "continuation", "gold")

KINDS = {
    MC: Kind(CHOICES, "choices", solved_choice, asking_choices),
    SCHEMA: Kind(CONTEXTS, "context_options", solved_schema, asking_contexts),
    LM: Kind(("context", "continuation"), None, solved_text, asking_text),
}


# ---- items --------------------------------------------------------------------------------------
def is_address(where):
    return "://" in str(where)


def file_of(task, where):
    """The task's file: <where>/<file>.jsonl or <where>/<category>/<file>.jsonl (the public layout);
    None if absent."""
    name, folder = f"{task.file}.jsonl", task.category.replace(" ", "_")
    if is_address(where):
        return f"{where}/{folder}/{name}"
    places = Path(where) / name, Path(where) / folder / name
    return next((path for path in places if path.exists()), None)


def read_task(task, where):
    """All items of a task, checked, and their fingerprint. A URL goes through `datasets`, a folder
    is read here."""
    source = file_of(task, where)
    if source is None:
        raise DataError(
            f"wanted {task.file}.jsonl in {where}: put the CORE files there, or name another "
            "folder or URL"
        )
    items = from_address(source) if is_address(source) else from_file(source)
    for line, item in items.items():
        check_item(task, item, f"{task.file}.jsonl, line {line}")
    items = list(items.values())
    return items, hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()[:12]


def from_address(address):
    """{line: item}."""
    rows = downloaded(address, "a folder with the CORE files", "json", "train", address)
    return dict(enumerate(rows, 1))


def from_file(path):
    """{line: item} of a .jsonl file."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: wanted text in UTF-8, got {error}: fetch the file anew") from None
    items = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            items[number] = parse(line, f"{path.name}, line {number}")
    return items


def parse(line, place):
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{place}: wanted one JSON object, got {line.strip()[:40]!r} ({error.msg}): "
            "fix or delete the line"
        ) from None


def check_item(task, item, place):
    """One sentence about the first thing that keeps an item from being scored."""
    problem = problem_of(item, KINDS[task.kind])
    if problem:
        raise DataError(
            f"{place}: wanted {', '.join(KINDS[task.kind].fields)} for a {task.kind} task, "
            f"{problem}: fix or delete the line"
        )


def problem_of(item, kind):
    """What is wrong with an item; None if it can be scored."""
    if not isinstance(item, dict):
        return f"got {str(item)[:40]!r}"
    absent = [field for field in kind.fields if item.get(field) is None]
    if absent:
        return f"{', '.join(absent)} missing"
    for field in kind.fields:
        if field not in ("gold", kind.options) and not isinstance(item[field], str):
            return f"{field} is {str(item[field])[:40]!r}, no text"
    if "continuation" in kind.fields and not item["continuation"].strip():
        return "the continuation is empty"
    if kind.options is None:
        return None
    options, gold = item[kind.options], item["gold"]
    whole = isinstance(options, list) and all(isinstance(option, str) for option in options)
    if not whole or len(options) < 2:
        return f"{kind.options} is {str(options)[:40]!r}"
    if type(gold) is not int or gold not in range(len(options)):
        return f"gold is {gold!r} where 0 to {len(options) - 1} can be"
    return None


def sample(task, items, limit=None):
    """The items that are asked: shuffled with seed 1337, cut to `limit`. Examples are drawn among
    the same items."""
    items = list(items)
    random.Random(1337).shuffle(items)
    items = items[:limit]
    if len(items) <= task.shots:
        raise DataError(
            f"{task.label} shows {task.shots} other items before each question and has "
            f"{len(items)}: ask for at least {task.shots + 1} items"
        )
    return items


# ---- questions ----------------------------------------------------------------------------------
def prompts(task, items, index):
    """The texts that ask about one item: examples, a blank line after each, then the question, once
    a choice."""
    kind = KINDS[task.kind]
    others = [i for i in range(len(items)) if i != index]
    shots = random.Random(1234 + index).sample(others, task.shots)
    shown = "".join(kind.solved(items[i], task.delimiter) + "\n\n" for i in shots)
    return [shown + text for text in kind.asking(items[index], task.delimiter)]


def common(rows):
    """How many tokens all rows begin with."""
    for number, column in enumerate(zip(*rows)):
        if len(set(column)) > 1:
            return number
    return min(map(len, rows))


# Token rows; where in each the scored span starts (it ends with the row); did rows, did spans lose
# tokens?
QuestionInTokens = namedtuple("QuestionInTokens", "rows starts cut clipped")


def question(task, items, index, tok, context):
    """One item in tokens. The scored span is, in multiple choice, all from the first token where
    the prompts differ; in a schema, the tokens that all prompts end with; in language modelling,
    the continuation. Rows longer than the context lose tokens from the left. A span keeps at least
    one token, also where one choice begins another."""
    texts = prompts(task, items, index)
    if task.kind == LM:
        texts[0] = texts[0].strip()
    rows = [[tok.bos] + tok.encode(text) for text in texts]

    # Where the scored span starts.
    if task.kind == MC:
        starts = [min(common(rows), len(row) - 1) for row in rows]
    elif task.kind == SCHEMA:
        ending = max(1, common([row[::-1] for row in rows]))
        starts = [len(row) - ending for row in rows]
    else:
        asked, whole = rows
        if whole[: len(asked)] != asked or len(whole) == len(asked):
            raise DataError(
                f"{task.label}, item {index}: this tokenizer joins the end of the prompt and the "
                f"answer {items[index]['continuation']!r} in one token: take one that splits "
                "before a space"
            )
        rows, starts = [whole], [len(asked)]

    # What the context cannot hold is lost on the left.
    lost = [max(0, len(row) - context) for row in rows]
    pairs = list(zip(starts, lost))
    return QuestionInTokens(
        rows=[row[n:] for row, n in zip(rows, lost)],
        starts=[max(1, start - n) for start, n in pairs],
        cut=any(lost),
        clipped=any(start <= n for start, n in pairs),
    )
