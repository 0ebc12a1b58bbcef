"""Which of two models knows more? CORE: the accuracy on 21 tasks, each centred on a chance level,
and their mean, with the error bars that Bank of Values (2606.02780) leaves out.

    python -m minimal.tasks.core --checkpoint runs/x --tasks all --items 50
"""

import hashlib
import json
import math
import os
from collections import Counter
from pathlib import Path

import torch

from minimal.command import command, number
from minimal.data import files
from minimal.data.results import check_evidence, header, write
from minimal.evaluate import opened
from minimal.tasks.core_scores import RULES, judge, score_questions
from minimal.tasks.core_tasks import LM, SUITES, TASKS, file_of, question, read_task, sample
from minimal.training.progress import progress

# ResFormer does not say which; OpenBookQA below chance points at sums.
RULE_OF = dict(core="bytes", resformer="sum")


# ---- tasks --------------------------------------------------------------------------------------
def fingerprint(model):
    """Twelve letters that name these weights, so that a log is continued only by the model that
    began it."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:12]


def key_of(*settings):
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]


def evaluate(model, tok, tasks, where, limit=None, log=None, block=32):
    """Every item of every task: one dict a task. With a log (a .jsonl file) answers are kept as
    they are made, and the next call with the same weights, items and settings goes on where this
    one was killed."""
    model.eval()
    context, weights = model.config.context, fingerprint(model)

    # What is known from the log: {key: {index: row}}.
    known = {}
    for row in files.read_lines(log) if log else []:
        known.setdefault(row["key"], {})[row["index"]] = row

    # What is to be asked.
    asked = []
    for task in tasks:
        items, data = read_task(task, where)
        key = key_of(weights, task, data, limit, context)
        asked.append((task, sample(task, items, limit), key))

    results, total = [], sum(len(items) for _, items, _ in asked)
    answered = 0
    with progress("CORE", total, unit="items") as bar:
        for task, items, key in asked:
            done = known.get(key, {})
            answered += len(done)
            todo = [index for index in range(len(items)) if index not in done]
            for first in range(0, len(todo), block):
                part = todo[first : first + block]
                rows = ask(model, tok, task, items, part, context)
                rows = [dict(key=key, **row) for row in rows]
                done.update((row["index"], row) for row in rows)
                if log:
                    files.append_lines(log, rows)
                answered += len(part)
                bar.show(answered, task.label)
            results.append(task_summary(task, list(done.values())))
    return results


def ask(model, tok, task, items, indices, context):
    """Some items of a task: a row for each."""
    questions = [question(task, items, index, tok, context) for index in indices]
    rows = []
    for index, asked, answer in zip(indices, questions, score_questions(model, questions)):
        about = dict(task=task.label, index=index, cut=asked.cut, clipped=asked.clipped)
        rows.append(about | judge(task, items[index], asked, answer, tok))
    return rows


# ---- what it amounts to -------------------------------------------------------------------------
def centred(accuracy, baseline):
    """0 for a guesser, 1 for an oracle."""
    return (accuracy - baseline) / (1 - baseline)


def standard_error(share, n):
    """Of a share of n independent items (binomial)."""
    return math.sqrt(share * (1 - share) / n)


def task_summary(task, rows):
    """One task in numbers: accuracy by each rule, the share of the most frequent right answer, the
    share cut."""
    n = len(rows)
    accuracy = {rule: sum(row[rule] == row["gold"] for row in rows) / n for rule in RULES}
    [(_, most)] = Counter(row["gold"] for row in rows).most_common(1)
    return dict(
        task=task.label,
        category=task.category,
        kind=task.kind,
        shots=task.shots,
        n=n,
        **accuracy,
        errors={rule: standard_error(value, n) for rule, value in accuracy.items()},
        baseline=task.baseline,
        chance=task.chance,
        majority=None if task.kind == LM else most / n,
        cut=sum(row["cut"] for row in rows) / n,
        clipped=sum(row["clipped"] for row in rows) / n,
    )


def aggregate(accuracy, items=None, level="baseline"):
    """CORE from {label: accuracy}: the unweighted mean of centred accuracies, its binomial standard
    error, and how many of the 21 tasks are in it. `level`: "baseline", as published, or "chance",
    what the files' items deserve."""
    values, errors = [], []
    for task in TASKS:
        if task.label not in accuracy:
            continue
        share, r = accuracy[task.label], getattr(task, level)
        n = (items or {}).get(task.label, task.items)
        values.append(centred(share, r))
        errors.append(standard_error(share, n) / (1 - r))
    count = len(values)
    return sum(values) / count, math.hypot(*errors) / count, count


def with_error(share, n, r=0.0):
    """A share centred on r, and its standard error; where that is 0, all answers being alike, the
    95 % bound 3/n."""
    error = f"<{3 / n / (1 - r):.3f}"
    if 0 < share < 1:
        error = f"±{standard_error(share, n) / (1 - r):.3f}"
    return f"{centred(share, r):.3f}{error}"


COLUMNS = (  # heading, width, cell(row, the rule that counts)
    ("task", -33, lambda row, rule: row["task"]),
    ("shots", 5, lambda row, rule: str(row["shots"])),
    ("n", 6, lambda row, rule: str(row["n"])),
    ("per byte", 13, lambda row, rule: with_error(row["bytes"], row["n"])),
    ("per token", 13, lambda row, rule: with_error(row["tokens"], row["n"])),
    ("in sum", 13, lambda row, rule: with_error(row["sum"], row["n"])),
    ("published r", 13, lambda row, rule: f"{row['baseline']:.3f}"),
    ("centred", 13, lambda row, rule: with_error(row[rule], row["n"], row["baseline"])),
    ("counted r", 11, lambda row, rule: f"{row['chance']:.3f}"),
    ("centred", 13, lambda row, rule: with_error(row[rule], row["n"], row["chance"])),
    (
        "majority",
        10,
        lambda row, rule: "-" if row["majority"] is None else f"{row['majority']:.3f}",
    ),
    ("cut", 6, lambda row, rule: f"{row['cut']:.0%}"),
)


def line_of(cells):
    """Cells as one line of the table: a negative width is flush left."""
    widths = [width for _, width, _ in COLUMNS]
    pairs = zip(cells, widths)
    return "".join(text.ljust(-width) if width < 0 else text.rjust(width) for text, width in pairs)


def report(results, suite="core", rule=None):
    """The table that a reader needs, and under it the mean."""
    rule = rule or RULE_OF[suite]
    lines = [line_of(heading for heading, _, _ in COLUMNS)]
    lines += [line_of(cell(row, rule) for _, _, cell in COLUMNS) for row in results]
    lines += means(results, suite, rule)
    if any(row["cut"] for row in results):
        worst = max(results, key=lambda row: row["clipped"])
        lines.append(
            "prompts longer than the context were cut from the left; answers themselves were cut "
            f"in up to {worst['clipped']:.0%} of a task's items ({worst['task']})"
        )
    return "\n".join(lines)


def means(results, suite, rule):
    """The last lines of the table: CORE on both chance levels, or the suite's mean accuracy."""
    accuracy = {row["task"]: row[rule] for row in results}
    items = {row["task"]: row["n"] for row in results}
    count = len(results)
    if suite != "core":
        mean = sum(accuracy.values()) / count
        errors = [standard_error(share, items[label]) for label, share in accuracy.items()]
        error = math.hypot(*errors) / count
        return [f"mean accuracy {mean:.3f} ± {error:.3f}, {count} of {len(SUITES[suite])} tasks"]
    few = ""
    if count < len(TASKS):
        few = f"; {count} of {len(TASKS)} tasks, not comparable with a published score"
    lines = []
    for level, name in (("baseline", "published"), ("chance", "counted")):
        value, error, _ = aggregate(accuracy, items, level)
        lines.append(f"CORE {value:+.4f} ± {error:.4f} on {name} chance levels{few}")
    return lines


# ---- the command --------------------------------------------------------------------------------
def causal(model):
    """The model, if it says of a token what it says before it has seen it."""
    if not model.config.style.causal:
        raise ValueError(
            "wanted a decoder, got an encoder, whose tokens see the answer that they are to "
            "predict: CORE would count copying as knowledge; give the checkpoint of a decoder"
        )
    return model


def chosen(parser, asked):
    """The tasks that are asked for and whose files are there."""
    tasks = {task.label: task for task in SUITES[asked.suite]}
    if not asked.data:
        parser.error("no data: set MINIMAL_DATA to the folder that holds core/, or pass --data")
    if asked.tasks != "all":
        labels = asked.tasks.split(",")
        unknown = sorted(set(labels) - set(tasks))
        if unknown:
            parser.error(f"no task {', '.join(unknown)}; the suite has {', '.join(tasks)}")
        tasks = {label: tasks[label] for label in labels}
    found = [task for task in tasks.values() if file_of(task, asked.data)]
    absent = [label for label, task in tasks.items() if task not in found]
    if absent:
        print(f"not run, their files are not there: {', '.join(absent)}")
    if not found:
        parser.error(f"none of the files is in {asked.data}")
    return found


@command("minimal.tasks.core", "CORE of a checkpoint, with error bars.")
def main(parser, argv):
    home = os.environ.get("MINIMAL_DATA")
    data = home and f"{home}/core"
    add = parser.add_argument
    add("--checkpoint", required=True, help="a folder written by minimal.train")
    add("--suite", choices=SUITES, default="core")
    add("--tasks", default="all", help="all, or labels with commas between")
    add("--items", type=number(int, least=1), help="items a task; all of them if absent")
    add("--data", default=data, help="folder or URL of the .jsonl files")
    add("--device", default="auto")
    add("--json", help="evidence file to write")
    asked = parser.parse_args(argv)
    check_evidence(asked.json)
    tasks = chosen(parser, asked)

    folder = Path(asked.checkpoint)
    folder = folder.parent if folder.is_file() else folder
    model, tok = opened(asked.checkpoint, asked.device)
    log = folder / "core.jsonl"
    results = evaluate(causal(model), tok, tasks, asked.data, asked.items, log=log)
    print(report(results, asked.suite))

    if asked.json:
        words = " ".join(["python -m minimal.tasks.core", *argv])
        corpus = dict(name=asked.suite, fingerprint=fingerprint(model), tokens=None)
        head = header(f"{asked.suite} of {folder.name}", words, corpus)
        rows = [dict(checkpoint=folder.name, **row) for row in results]
        write(asked.json, {**head, "rows": rows})


if __name__ == "__main__":
    main()
