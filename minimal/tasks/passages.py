"""How does a passage go through an encoder that is shorter, and how do scores become an answer?
Overlapping windows, valid spans, and the score of "no answer"."""

from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from minimal.data.files import Skip, need

LONGEST_QUESTION = 64  # tokens
RANKED_AT_ONCE = 64  # windows whose spans are ranked at once


# ---- windows ------------------------------------------------------------------------------------
@dataclass
class Windows:
    """[CLS] question [SEP] a piece of the context [SEP]: N windows, as long as the longest, T."""

    ids: torch.Tensor  # (N, T)
    segments: torch.Tensor  # (N, T)  0 question, 1 context
    inside: torch.Tensor  # (N, T)  true on the tokens of the context
    lengths: torch.Tensor  # (N,)    positions before the padding
    spans: torch.Tensor  # (N, 2)  the answer's first and last token; (0, 0), [CLS], if not here
    owner: torch.Tensor  # (N,)    which question a window belongs to
    shift: torch.Tensor  # (N,)    position - shift = number of the token in the whole context
    offsets: list  # a question: (first, end) in characters of every token of its context

    def place(self, row, first, last):
        """The characters of the context that the tokens first..last of a window cover."""
        offsets, shift = self.offsets[self.owner[row]], int(self.shift[row])
        return offsets[first - shift][0], offsets[last - shift][1]


def windows(questions, pieces, length, stride, report, train=False):
    """Windows of at most `length` positions that start at most `stride` context tokens apart
    (BERT's doc_stride). stride=0: one window a question; longer contexts are skipped. Training
    also skips what has no span to learn from."""
    asked = pieces.encode(question.question for question in questions)
    texts = list(dict.fromkeys(question.context for question in questions))
    contexts = dict(zip(texts, pieces.encode(texts)))

    # Cut every context into windows, one dict a window.
    rows = []
    for number, question in enumerate(questions):
        context = contexts[question.context]
        words = cut_question(question, asked[number].ids, report)
        room = length - len(words) - 3
        try:
            parts = parts_of(question, context, room, stride)
            answer = answer_tokens(question, context, parts, report, train)
        except Skip as why:
            report.skipped[question.id] = str(why)
            continue
        if len(parts) > 1:
            total = len(context.ids)
            told = f"its context of {total} tokens was split into {len(parts)} windows"
            report.change(question.id, told)
        for first, end in parts:
            part = context.ids[first:end]
            rows.append(window_row(words, part, first, answer, pieces) | dict(owner=number))
    if not rows:
        raise ValueError(f"none of {len(questions)} questions can be used; {report}")

    # Put the windows into tables.
    def column(name):
        return torch.tensor([row[name] for row in rows])  # (N,) or (N, 2)

    def table(name, padding):
        lines = [torch.tensor(row[name]) for row in rows]
        return pad_sequence(lines, batch_first=True, padding_value=padding)  # (N, T)

    return Windows(
        ids=table("ids", pieces.pad),
        segments=table("segments", 0),
        inside=table("inside", False),
        lengths=column("length"),
        spans=column("span"),
        owner=column("owner"),
        shift=column("shift"),
        offsets=[contexts[question.context].offsets for question in questions],
    )


def cut_question(question, words, report, longest=LONGEST_QUESTION):
    if len(words) > longest:
        report.change(question.id, f"its question was cut from {len(words)} to {longest} tokens")
    return words[:longest]


def parts_of(question, context, room, stride):
    """(first, end) in tokens of every window's piece of the context."""
    total = len(context.ids)
    need(
        room > 0,
        f"its question leaves no room for the context: {1 - room} positions more are needed",
    )
    need(total, "its context has no tokens")
    need(
        total <= room or stride,
        f"its context of {total} tokens does not fit into {room} (stride=0: no windows)",
    )
    if total <= room:
        return [(0, total)]
    stride = min(stride, room)  # a larger one would jump over tokens
    return [(at, min(at + room, total)) for at in range(0, total - room + stride, stride)]


def answer_tokens(question, context, parts, report, train):
    """The answer's first and last token in the context, None where it is not found."""
    if not question.answers:
        return None
    answer, span = None, question.span
    if span:
        first, end = span
        touched = [i for i, (a, b) in enumerate(context.offsets) if a < end and b > first]
        answer = (touched[0], touched[-1]) if touched else None

    # What cannot be learned from is skipped; what can only be scored is reported.
    text, start = question.answers[0]
    need(answer or not train, f"its answer {text!r} does not occur in its context")
    fits = answer and any(a <= answer[0] and answer[1] < b for a, b in parts)
    need(fits or not train, f"its answer {text!r} fits into none of its {len(parts)} windows")
    if span != (start, start + len(text)):
        outcome = "it can be scored but not found"
        if answer:
            outcome = f"the one at {span[0]} is taken"
        report.change(question.id, f"its answer {text!r} is not at {start}; {outcome}")
    return answer


def window_row(words, part, first, answer, pieces):
    """One window: `part` are the context's tokens from number `first` on."""
    before = len(words) + 2
    shift = before - first
    held = answer and first <= answer[0] and answer[1] < first + len(part)
    return dict(
        ids=[pieces.cls, *words, pieces.sep, *part, pieces.sep],
        segments=[0] * before + [1] * (len(part) + 1),
        inside=[False] * before + [True] * len(part) + [False],
        length=before + len(part) + 1,
        span=[token + shift for token in answer] if held else [0, 0],
        shift=shift,
    )


# ---- from scores to answers ---------------------------------------------------------------------
def best_spans(first, last, inside, n=20, longest=30):
    """The n best (score, first, last) of each window among the valid spans: in the context, in
    order, not too long."""
    # Score every pair of positions; what is no span scores -inf.
    width = first.shape[1]
    steps = torch.arange(width)[None, :] - torch.arange(width)[:, None]  # (T, T)  last - first
    valid = inside[:, :, None] & inside[:, None, :] & (steps >= 0) & (steps < longest)  # (N, T, T)
    scores = first[:, :, None] + last[:, None, :]  # (N, T, T)
    scores = scores.masked_fill(~valid, -torch.inf)

    # Rank the pairs of a window.
    best, flat = scores.flatten(1).topk(min(n, width * width))  # (N, n)
    found = []
    for row, places in zip(best.tolist(), flat.tolist()):
        ranked = [(score, *divmod(place, width)) for score, place in zip(row, places)]
        found.append([span for span in ranked if span[0] > -torch.inf])
    return found


def answers(questions, rows, first, last, n=20, longest=30):
    """id -> (the n best [(text, score)] over all windows of that question, the score of "no
    answer"). "No answer" scores first[CLS] + last[CLS], the least over the windows: one window that
    finds something is enough."""
    # Over the windows of a question: the best score of a place, the least of "no answer".
    spans = []
    for batch in torch.arange(len(rows.ids)).split(RANKED_AT_ONCE):
        spans += best_spans(first[batch], last[batch], rows.inside[batch], n, longest)
    places, null = {}, {}
    for row, found in enumerate(spans):
        id = questions[rows.owner[row]].id
        null[id] = min(null.get(id, torch.inf), float(first[row, 0] + last[row, 0]))
        best = places.setdefault(id, {})
        for score, a, b in found:
            place = rows.place(row, a, b)
            best[place] = max(score, best.get(place, -torch.inf))  # windows overlap

    # Places as text, the best first.
    contexts = {question.id: question.context for question in questions}
    ranked = {}
    for id, best in places.items():
        top = sorted(best.items(), key=lambda pair: -pair[1])[:n]
        ranked[id] = [(contexts[id][a:b], score) for (a, b), score in top], null[id]
    return ranked


def chosen_answers(found, threshold=None):
    """id -> text. With a threshold (v2): "", no answer, where its score beats the best span's by
    more than that."""
    said = {}
    for id, (best, null) in found.items():
        silent = not best or (threshold is not None and null - best[0][1] > threshold)
        said[id] = "" if silent else best[0][0]
    return said
