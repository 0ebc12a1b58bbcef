"""What does a model think of each choice? Nats of the scored spans, in batches or through a cache,
and the choice that each rule picks."""

import torch

from minimal.model.loss import rows_at_once
from minimal.tasks.core_tasks import LM, common

WORTH = 64  # tokens that a shared prefix must save before it gets a pass, and a cache, of its own


# ---- what a model thinks of a span --------------------------------------------------------------
def spans(model, rows, starts, cache=None, seen=0):
    """For each row: nats of its span, tokens in it, and whether each of them is the argmax.
    `cache` holds the first `seen` tokens of all rows; shorter rows are padded on the right, where
    causal attention never looks."""
    longest = max(map(len, rows))
    padded = [row[seen:] + row[:1] * (longest - len(row)) for row in rows]
    logits = model(torch.tensor(padded, device=model.device), cache=cache)  # (B, T, V)
    found = []
    for row, start, z in zip(rows, starts, logits):
        target = torch.tensor(row[start:], device=model.device)  # (n,)
        z = z[start - 1 - seen : len(row) - 1 - seen].float()  # (n, V)
        nats = z.logsumexp(-1) - z.gather(-1, target[:, None])[:, 0]  # (n,)
        exact = bool((z.argmax(-1) == target).all())
        found.append((nats.double().sum().item(), len(target), exact))
    return found


@torch.inference_mode()
def score_questions(model, questions):
    """spans() of every row of every question. What the rows of a question begin with goes through
    the model once, into a cache; where that would save little, the rows of many questions share a
    batch."""
    answers = [[None] * len(asked.rows) for asked in questions]

    # Questions whose rows share much: one cache each.
    loose = []  # (question, choice) of the others
    for at, asked in enumerate(questions):
        choices = len(asked.rows)
        shared = min(common(asked.rows), min(asked.starts) - 1)
        if shared * (choices - 1) < WORTH:
            loose += [(at, choice) for choice in range(choices)]
            continue
        cache = model.cache()
        prefix = torch.tensor([asked.rows[0][:shared]], device=model.device)
        model(prefix, cache=cache)
        answers[at] = spans(model, asked.rows, asked.starts, cache.expand(choices), shared)

    # The others: the longest rows first, as many at once as the logits' memory allows.
    def length(place):
        at, choice = place
        return len(questions[at].rows[choice])

    loose.sort(key=length, reverse=True)
    while loose:
        room = rows_at_once(length(loose[0]), model.config.vocab, model.device)
        batch, loose = loose[:room], loose[room:]
        rows = [questions[at].rows[choice] for at, choice in batch]
        starts = [questions[at].starts[choice] for at, choice in batch]
        for (at, choice), found in zip(batch, spans(model, rows, starts)):
            answers[at][choice] = found
    return answers


# How unlikely a choice is: per UTF-8 byte of its span (the paper's code), per token (DCLM), in sum
# (lm-eval's `acc`).
RULES = dict(
    bytes=lambda nats, tokens, size: nats / size,
    tokens=lambda nats, tokens, size: nats / tokens,
    sum=lambda nats, tokens, size: nats,
)


def judge(task, item, asked, answer, tok):
    """The right choice and the one that each rule picks, the first of equals. In language
    modelling 1 is right: every token of the answer is the argmax."""
    if task.kind == LM:
        _, _, exact = answer[0]
        return dict(gold=1, **dict.fromkeys(RULES, int(exact)))
    texts = [tok.decode(row[start:]) for row, start in zip(asked.rows, asked.starts)]
    sizes = [max(1, len(text.encode())) for text in texts]
    picks = {}
    for rule, loss in RULES.items():
        losses = [loss(nats, tokens, size) for (nats, tokens, _), size in zip(answer, sizes)]
        equal = min(losses) * (1 + 1e-6)
        picks[rule] = next(choice for choice, value in enumerate(losses) if value <= equal)
    return dict(gold=item["gold"], **picks)
