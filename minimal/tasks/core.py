"""Which of two models knows more? CORE: 21 tasks, each centred on a chance level, and their mean, with the error bars
that Bank of Values (2606.02780) leaves out.

    python -m minimal.tasks.core --checkpoint runs/x --tasks all --items 50
"""

import argparse
import hashlib
import json
import math
import os
import sys
from collections import Counter
from pathlib import Path

import torch

from minimal.data import files
from minimal.data.results import header, write
from minimal.evaluate import LOGITS, opened
from minimal.tasks.core_tasks import LM, SUITES, TASKS, common, find, question, read, sample

WORTH = 64  # tokens that a shared prefix must save before it gets a pass, and a cache, of its own


# ---- what a model thinks of a span ----------------------------------------------------------------------------------
def spans(model, rows, starts, cache=None, seen=0):
    """For each row: nats of its span, tokens in it, and whether each of them is the argmax. `cache` holds the first
    `seen` tokens of all rows; shorter rows are padded on the right, where causal attention never looks."""
    longest = max(map(len, rows))
    ids = torch.tensor(
        [row[seen:] + row[:1] * (longest - len(row)) for row in rows], device=model.device
    )  # (B, T)
    logits = model(ids, cache=cache)  # (B, T, V)
    found = []
    for row, start, z in zip(rows, starts, logits):
        target = torch.tensor(row[start:], device=model.device)  # (n,)
        z = z[start - 1 - seen : len(row) - 1 - seen].float()  # (n, V)
        nats = z.logsumexp(-1) - z.gather(-1, target[:, None])[:, 0]  # (n,)
        found.append(
            (nats.double().sum().item(), len(target), bool((z.argmax(-1) == target).all()))
        )
    return found


@torch.inference_mode()
def score(model, questions):
    """spans() of every row of every question. What the rows of a question begin with goes through the model once, into
    a cache; where that would save little, the rows of many questions share a batch."""
    answers, loose = [[None] * len(asked.rows) for asked in questions], []
    for at, asked in enumerate(questions):
        choices = len(asked.rows)
        shared = min(common(asked.rows), min(asked.starts) - 1)
        if shared * (choices - 1) < WORTH:
            loose += [(at, choice) for choice in range(choices)]
            continue
        cache = model.cache()
        model(torch.tensor([asked.rows[0][:shared]], device=model.device), cache=cache)
        answers[at] = spans(model, asked.rows, asked.starts, cache.expand(choices), shared)
    loose.sort(key=lambda place: -len(questions[place[0]].rows[place[1]]))
    while loose:
        longest = len(questions[loose[0][0]].rows[loose[0][1]])
        room = max(1, LOGITS // (longest * model.config.vocab))
        batch, loose = loose[:room], loose[room:]
        rows, starts = zip(
            *((questions[at].rows[choice], questions[at].starts[choice]) for at, choice in batch)
        )
        for (at, choice), found in zip(batch, spans(model, rows, starts)):
            answers[at][choice] = found
    return answers


# How unlikely a choice is: per UTF-8 byte of its span (the paper's code), per token (DCLM), in sum (lm-eval's `acc`).
RULES = dict(
    bytes=lambda nats, tokens, size: nats / size,
    tokens=lambda nats, tokens, size: nats / tokens,
    sum=lambda nats, tokens, size: nats,
)

RULE_OF = dict(
    core="bytes", resformer="sum"
)  # ResFormer does not say; OpenBookQA below chance points at sums


def judge(task, item, asked, answer, tok):
    """The right choice and the one that each rule picks, the first of equals. In language modelling 1 is right: every
    token of the answer is the argmax."""
    if task.kind == LM:
        return dict(gold=1, **{rule: int(answer[0][2]) for rule in RULES})
    sizes = [
        max(1, len(tok.decode(row[start:]).encode()))
        for row, start in zip(asked.rows, asked.starts)
    ]
    picks = {}
    for rule, loss in RULES.items():
        losses = [loss(nats, tokens, size) for (nats, tokens, _), size in zip(answer, sizes)]
        picks[rule] = next(i for i, value in enumerate(losses) if value <= min(losses) * (1 + 1e-6))
    return dict(gold=item["gold"], **picks)


# ---- tasks ----------------------------------------------------------------------------------------------------------
def fingerprint(model):
    """Twelve letters that name these weights, so that a log is continued only by the model that began it."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:12]


def evaluate(model, tok, tasks, where, limit=None, log=None, block=32):
    """Every item of every task: one dict a task. With a log (a .jsonl file) answers are kept as they come, and the next
    call with the same weights, items and settings goes on where this one was killed."""
    from tqdm.auto import tqdm

    model.eval()
    context, weights = model.config.context, fingerprint(model)
    known, plan, results = {}, [], []
    for row in files.read_lines(log) if log else []:
        known.setdefault(row["key"], {})[row["index"]] = row
    for task in tasks:
        items, data = read(task, where)
        key = hashlib.sha256(
            json.dumps([weights, task, data, limit, context]).encode()
        ).hexdigest()[:12]
        plan.append((task, sample(task, items, limit), key))
    with tqdm(total=sum(len(items) for _, items, _ in plan), unit="item", mininterval=1) as bar:
        for task, items, key in plan:
            bar.set_postfix_str(task.label)
            done = known.get(key, {})
            bar.update(len(done))
            todo = [index for index in range(len(items)) if index not in done]
            for part in (todo[i : i + block] for i in range(0, len(todo), block)):
                asked = [question(task, items, index, tok, context) for index in part]
                rows = [
                    dict(
                        key=key,
                        task=task.label,
                        index=index,
                        cut=q.cut,
                        clipped=q.clipped,
                        **judge(task, items[index], q, answer, tok),
                    )
                    for index, q, answer in zip(part, asked, score(model, asked))
                ]
                done.update((row["index"], row) for row in rows)
                if log:
                    files.append_lines(log, rows)
                bar.update(len(part))
            results.append(summary(task, list(done.values())))
    return results


# ---- what it amounts to ---------------------------------------------------------------------------------------------
def centred(accuracy, baseline):
    """0 for a guesser, 1 for an oracle."""
    return (accuracy - baseline) / (1 - baseline)


def standard_error(share, n):
    """Of a share of n independent items (binomial)."""
    return math.sqrt(share * (1 - share) / n)


def summary(task, rows):
    """One task in numbers: accuracy by each rule, the share of the most frequent right answer, the share cut."""
    n, share = len(rows), lambda found: sum(found) / len(rows)
    most = Counter(row["gold"] for row in rows).most_common(1)[0][1] / n
    accuracy = {rule: share(row[rule] == row["gold"] for row in rows) for rule in RULES}
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
        majority=None if task.kind == LM else most,
        cut=share(row["cut"] for row in rows),
        clipped=share(row["clipped"] for row in rows),
    )


def aggregate(accuracy, items=None, level="baseline"):
    """CORE from {label: accuracy}: the unweighted mean of centred accuracies, its binomial standard error, and how many
    of the 21 tasks are in it. `level`: "baseline", as published, or "chance", what the files' items deserve."""
    tasks = [(task, getattr(task, level)) for task in TASKS if task.label in accuracy]
    values = [centred(accuracy[task.label], r) for task, r in tasks]
    errors = [
        standard_error(accuracy[task.label], (items or {}).get(task.label, task.items)) / (1 - r)
        for task, r in tasks
    ]
    return sum(values) / len(tasks), math.hypot(*errors) / len(tasks), len(tasks)


def with_error(share, n, r=0.0):
    """A share centred on r, and its standard error; where that is 0, all answers being alike, the 95 % bound 3/n."""
    error = (
        f"±{standard_error(share, n) / (1 - r):.3f}" if 0 < share < 1 else f"<{3 / n / (1 - r):.3f}"
    )
    return f"{centred(share, r):.3f}{error}"


def report(results, suite="core", rule=None):
    """The table that a reader needs, and under it the mean."""
    rule = rule or RULE_OF[suite]
    lines = [
        f"{'task':33}{'shots':>5}{'n':>6}{'per byte':>13}{'per token':>13}{'in sum':>13}"
        f"{'published r':>13}{'centred':>13}{'counted r':>11}{'centred':>13}{'majority':>10}{'cut':>6}"
    ]
    for row in results:
        n, r, fair = row["n"], row["baseline"], row["chance"]
        most = "-" if row["majority"] is None else f"{row['majority']:.3f}"
        lines.append(
            f"{row['task']:33}{row['shots']:5}{n:6}"
            + "".join(f"{with_error(row[x], n):>13}" for x in RULES)
            + f"{r:13.3f}{with_error(row[rule], n, r):>13}{fair:11.3f}{with_error(row[rule], n, fair):>13}"
            + f"{most:>10}{row['cut']:6.0%}"
        )
    accuracy, items = (
        {row["task"]: row[rule] for row in results},
        {row["task"]: row["n"] for row in results},
    )
    if suite == "core":
        few = f"; {len(results)} of {len(TASKS)} tasks, not comparable with a published score"
        for level, words in (
            ("baseline", "on published chance levels"),
            ("chance", "on counted chance levels"),
        ):
            value, error, n = aggregate(accuracy, items, level)
            lines.append(f"CORE {value:+.4f} ± {error:.4f} {words}" + few * (n < len(TASKS)))
    else:
        error = math.hypot(
            *(standard_error(accuracy[label], items[label]) for label in accuracy)
        ) / len(accuracy)
        lines.append(
            f"mean accuracy {sum(accuracy.values()) / len(accuracy):.3f} ± {error:.3f}, "
            f"{len(results)} of {len(SUITES[suite])} tasks"
        )
    if any(row["cut"] for row in results):
        worst = max(results, key=lambda row: row["clipped"])
        lines.append(
            f"prompts longer than the context were cut from the left; answers themselves were cut in up to "
            f"{worst['clipped']:.0%} of a task's items ({worst['task']})"
        )
    return "\n".join(lines)


def main(argv=None):
    home = os.environ.get("MINIMAL_DATA")
    ask = argparse.ArgumentParser(
        prog="python -m minimal.tasks.core", description="CORE of a checkpoint, with error bars."
    )
    ask.add_argument("--checkpoint", required=True, help="a folder written by minimal.train")
    ask.add_argument("--suite", choices=SUITES, default="core")
    ask.add_argument("--tasks", default="all", help="all, or labels with commas between")
    ask.add_argument("--items", type=int, help="items a task; all of them if absent")
    ask.add_argument(
        "--data", default=home and f"{home}/core", help="folder or URL of the .jsonl files"
    )
    ask.add_argument("--device", default="auto")
    ask.add_argument("--json", help="evidence file to write")
    asked = ask.parse_args(argv)
    tasks = {task.label: task for task in SUITES[asked.suite]}
    if not asked.data:
        ask.error("no data: set MINIMAL_DATA to the folder that holds core/, or pass --data")
    if asked.tasks != "all":
        unknown = sorted(set(asked.tasks.split(",")) - set(tasks))
        if unknown:
            ask.error(f"no task {', '.join(unknown)}; the suite has {', '.join(tasks)}")
        tasks = {label: tasks[label] for label in asked.tasks.split(",")}
    absent = [label for label, task in tasks.items() if not find(task, asked.data)]
    here = [task for label, task in tasks.items() if label not in absent]
    if absent:
        print(f"not run, their files are not there: {', '.join(absent)}")
    if not here:
        ask.error(f"none of the files is in {asked.data}")

    folder = Path(asked.checkpoint)
    try:
        model, tok = opened(folder, asked.device)
        results = evaluate(model, tok, here, asked.data, asked.items, log=folder / "core.jsonl")
    except ValueError as error:
        sys.exit(f"core: {error}")
    print(report(results, asked.suite))
    if asked.json:
        words = " ".join(
            ["python -m minimal.tasks.core", *(sys.argv[1:] if argv is None else argv)]
        )
        corpus = dict(name=asked.suite, fingerprint=fingerprint(model), tokens=None)
        head = header(f"{asked.suite} of {folder.name}", words, corpus)
        write(
            asked.json, {**head, "rows": [dict(checkpoint=folder.name, **row) for row in results]}
        )


if __name__ == "__main__":
    main()
