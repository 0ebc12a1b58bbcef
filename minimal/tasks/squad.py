"""Which words of this passage answer the question? SQuAD v1 and v2: reading, windows, spans, and the official score."""

import json
import re
import string
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from minimal.data.files import Skip, need

SHAPE = '{"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text", "answer_start"}]}]}]}]}'


@dataclass(frozen=True)
class Question:
    id: str
    question: str
    context: str
    answers: tuple = ()  # (text, start) pairs; none means: the passage does not answer it (SQuAD v2)

    @property
    def span(self):
        """(first, end) in characters of the first answer that occurs in the context: nearest to where it should be."""
        for text, start in self.answers:
            places = (
                [m.start() for m in re.finditer(f"(?={re.escape(text)})", self.context)]
                if text.strip()
                else []
            )
            if places:
                at = min(places, key=lambda place: abs(place - start))
                return at, at + len(text)


# ---- reading ----------------------------------------------------------------------------------------------------
def read(source, report):
    """The questions of a SQuAD file (a path, or the dict in it). A broken file raises, a broken item is skipped."""
    if isinstance(source, dict):
        return _questions(_items(source, "this SQuAD data"), report)
    try:
        tree = json.loads(Path(source).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{source} is not JSON ({error}); wanted a SQuAD file, {SHAPE}") from None
    return _questions(_items(tree, str(source)), report)


def from_rows(rows, report, v2=False):
    """The same from rows of `datasets`, where answers = {"text": [...], "answer_start": [...]}, in v2 also empty."""

    def items():
        for i, row in enumerate(rows):
            columns = _part(row, "answers", dict, f"row {i}")
            texts, starts = (
                _part(columns, name, list, f"row {i}, answers") for name in ("text", "answer_start")
            )
            answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts)]
            yield (
                f"row {i}",
                dict(row, answers=answers, is_impossible=v2 and not answers),
                row.get("context"),
            )

    return _questions(items(), report)


def load(name, split, report):
    """A .json file, or through `datasets` by public name: load("rajpurkar/squad_v2", "validation", report)."""
    if str(name).endswith(".json"):
        return read(name, report)
    import datasets

    try:
        rows = datasets.load_dataset(str(name), split=split)
    except Exception as error:
        raise RuntimeError(
            f"`datasets` cannot load {name} ({type(error).__name__}); go online once, "
            "or give the path of a SQuAD .json file"
        ) from error
    return from_rows(rows, report, v2="v2" in str(name))


def _items(tree, name):
    """(place, item, context) of every question in the tree."""
    for i, article in enumerate(_part(tree, "data", list, name)):
        for j, paragraph in enumerate(_part(article, "paragraphs", list, f"{name}, article {i}")):
            place = f"{name}, article {i}, paragraph {j}"
            context = _part(paragraph, "context", str, place)
            for k, item in enumerate(_part(paragraph, "qas", list, place)):
                yield f"article {i}, paragraph {j}, question {k}", item, context


def _part(tree, key, kind, place):
    if isinstance(tree, dict) and isinstance(tree.get(key), kind):
        return tree[key]
    got = (
        f"a {type(tree[key]).__name__}"
        if isinstance(tree, dict) and key in tree
        else "nothing of that name"
    )
    raise ValueError(
        f"{place}: wanted {key!r}, a {kind.__name__}; got {got}; a SQuAD file is {SHAPE}"
    )


def _questions(items, report):
    questions = {}
    for place, item, context in items:
        id = item.get("id") if isinstance(item, dict) else None
        try:
            need(isinstance(id, str) and id, "it has no id, so that no prediction could name it")
            place = id if id not in questions else f"{place} (another {id})"
            need(id not in questions, "an earlier question has the same id")
            question = _text(item.get("question"), "question")
            questions[id] = Question(id, question, _text(context, "context"), _answers(item))
        except Skip as why:
            report.skipped[place] = str(why)
    return list(questions.values())


def _text(text, what):
    need(isinstance(text, str) and text.strip(), f"its {what} is empty")
    return text


def _answers(item):
    if item.get("is_impossible"):
        return ()
    answers = item.get("answers")
    need(answers, "it has no answer, and nothing marks it is_impossible")
    need(
        isinstance(answers, list)
        and all(
            isinstance(a, dict)
            and isinstance(a.get("text"), str)
            and isinstance(a.get("answer_start"), int)
            for a in answers
        ),
        "its answers are not a list of {text, answer_start}",
    )
    return tuple((a["text"], a["answer_start"]) for a in answers)


# ---- windows ----------------------------------------------------------------------------------------------------
@dataclass
class Windows:
    """[CLS] question [SEP] a piece of the context [SEP]: N windows, as long as the longest, T positions."""

    ids: torch.Tensor  # (N, T)
    segments: torch.Tensor  # (N, T)  0 question, 1 context
    inside: torch.Tensor  # (N, T)  true on the tokens of the context
    lengths: torch.Tensor  # (N,)    positions before the padding
    spans: (
        torch.Tensor
    )  # (N, 2)  first and last token of the answer; (0, 0), the [CLS], where it is not here
    owner: torch.Tensor  # (N,)    which question a window belongs to
    shift: torch.Tensor  # (N,)    position - shift = number of the token in the whole context
    offsets: list  # a question: (first, end) in characters of every token of its context

    def place(self, row, first, last):
        """The characters of the context that the tokens first..last of a window cover."""
        offsets, shift = self.offsets[self.owner[row]], int(self.shift[row])
        return offsets[first - shift][0], offsets[last - shift][1]


def windows(questions, pieces, length, stride, report, train=False):
    """Windows of at most `length` positions that start at most `stride` context tokens apart (BERT's doc_stride).
    stride=0: one window a question; longer contexts are skipped. Training also skips what has no span to learn from."""
    asked = pieces.encode(q.question for q in questions)
    texts = list(dict.fromkeys(q.context for q in questions))
    contexts = dict(zip(texts, pieces.encode(texts)))
    rows = []
    for which, question in enumerate(questions):
        context, words = (
            contexts[question.context],
            _cut_question(question, asked[which].ids, report),
        )
        try:
            parts, answer = _parts(
                question, context, length - len(words) - 3, stride, report, train
            )
            rows += [_window(which, words, context.ids[a:b], a, answer, pieces) for a, b in parts]
        except Skip as why:
            report.skipped[question.id] = str(why)
    if not rows:
        raise ValueError(f"none of {len(questions)} questions can be used; {report}")

    def table(name, fill=0):
        return pad_sequence(
            [torch.tensor(row[name]) for row in rows], batch_first=True, padding_value=fill
        )  # (N, T)

    return Windows(
        table("ids", pieces.pad),
        table("segments"),
        table("inside", False),
        *(
            torch.tensor([row[name] for row in rows])
            for name in ("length", "span", "owner", "shift")
        ),
        [contexts[q.context].offsets for q in questions],
    )


def _cut_question(question, words, report, longest=64):
    if len(words) > longest:
        report.change(question.id, f"its question was cut from {len(words)} to {longest} tokens")
    return words[:longest]


def _parts(question, context, room, stride, report, train):
    """Where the windows on this context start and end, and the answer's first and last token (None: no answer)."""
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
    stride = min(stride, room)  # a larger one would jump over tokens
    starts = range(0, total - room + stride, stride) if total > room else [0]
    parts = [(a, min(a + room, total)) for a in starts]
    span, answer = question.span, None
    if span:
        touched = [i for i, (a, b) in enumerate(context.offsets) if a < span[1] and b > span[0]]
        answer = (touched[0], touched[-1]) if touched else None
    if question.answers:
        text, start = question.answers[0]
        need(answer or not train, f"its answer {text!r} does not occur in its context")
        fits = answer and any(a <= answer[0] and answer[1] < b for a, b in parts)
        need(fits or not train, f"its answer {text!r} fits into none of its {len(parts)} windows")
        if span != (start, start + len(text)):
            report.change(
                question.id,
                f"its answer {text!r} is not at {start}; "
                + (
                    f"the one at {span[0]} is taken" if answer else "it can be scored but not found"
                ),
            )
    if len(parts) > 1:
        report.change(
            question.id, f"its context of {total} tokens was split into {len(parts)} windows"
        )
    return parts, answer


def _window(which, words, part, start, answer, pieces):
    before = len(words) + 2
    here = answer and start <= answer[0] and answer[1] < start + len(part)
    return dict(
        ids=[pieces.cls, *words, pieces.sep, *part, pieces.sep],
        segments=[0] * before + [1] * (len(part) + 1),
        inside=[False] * before + [True] * len(part) + [False],
        length=before + len(part) + 1,
        span=[token - start + before for token in answer] if here else [0, 0],
        owner=which,
        shift=before - start,
    )


# ---- from scores to answers -------------------------------------------------------------------------------------
def best_spans(first, last, inside, n=20, longest=30):
    """The n best (score, first, last) of each window among the valid spans: in the context, in order, not too long."""
    width = first.shape[1]
    steps = torch.arange(width)[None, :] - torch.arange(width)[:, None]  # (T, T)  last - first
    valid = inside[:, :, None] & inside[:, None, :] & (steps >= 0) & (steps < longest)  # (N, T, T)
    scores = (first[:, :, None] + last[:, None, :]).masked_fill(~valid, -torch.inf)  # (N, T, T)
    best, flat = scores.flatten(1).topk(min(n, width * width))  # (N, n)
    return [
        [(score, place // width, place % width) for score, place in zip(*row) if score > -torch.inf]
        for row in zip(best.tolist(), flat.tolist())
    ]


def answers(questions, rows, first, last, n=20, longest=30):
    """id -> (the n best [(text, score)] over all windows of that question, the score of "no answer").
    "No answer" scores first[CLS] + last[CLS], the least over the windows: one window that finds something is enough."""
    found, null = {}, {}
    for batch in torch.arange(len(rows.ids)).split(64):
        for row, spans in zip(
            batch.tolist(), best_spans(first[batch], last[batch], rows.inside[batch], n, longest)
        ):
            id, best = (
                questions[rows.owner[row]].id,
                found.setdefault(questions[rows.owner[row]].id, {}),
            )
            null[id] = min(null.get(id, torch.inf), float(first[row, 0] + last[row, 0]))
            for score, a, b in spans:
                place = rows.place(row, a, b)
                best[place] = max(score, best.get(place, -torch.inf))  # windows overlap
    context = {question.id: question.context for question in questions}
    ranked = {id: sorted(best.items(), key=lambda pair: -pair[1])[:n] for id, best in found.items()}
    return {
        id: ([(context[id][a:b], score) for (a, b), score in ranked[id]], null[id]) for id in ranked
    }


def choose(found, threshold=None):
    """id -> text. With a threshold (v2): "", no answer, where its score beats the best span's by more than that."""
    return {
        id: ""
        if not best or (threshold is not None and null - best[0][1] > threshold)
        else best[0][0]
        for id, (best, null) in found.items()
    }


# ---- the official score -----------------------------------------------------------------------------------------
def normalise(text):
    """Lower case, no ASCII punctuation, no English articles, single spaces: the official scorers' order."""
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def exact(said, truth):
    return float(normalise(said) == normalise(truth))


def f1(said, truth, v2=False):
    """Overlap of two bags of words. Where one of them is empty, v1's scorer says 0 and v2's says whether both are."""
    ours, theirs = normalise(said).split(), normalise(truth).split()
    if v2 and not (ours and theirs):
        return float(ours == theirs)
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0


def score(questions, said, v2=False):
    """EM and F1 in per cent: the best over the accepted answers, the mean over ALL questions. One without a prediction
    is named and scores 0, which is v1's rule; v2's script leaves it out of the mean, and that would be silence."""
    rows = {}  # id -> (exact, f1)
    for question in questions:
        truths = [text for text, _ in question.answers if not v2 or normalise(text)] or [""]
        guess = said.get(question.id)
        rows[question.id] = (
            (0.0, 0.0)
            if guess is None
            else (max(exact(guess, t) for t in truths), max(f1(guess, t, v2) for t in truths))
        )
    parts = {"": questions}
    if v2:
        parts |= {
            "answerable_": [q for q in questions if q.answers],
            "unanswerable_": [q for q in questions if not q.answers],
        }
    result = {"missing": [question.id for question in questions if question.id not in said]}
    for name, part in parts.items():
        for column, metric in enumerate(("exact", "f1")):
            result[name + metric] = (
                100 * sum(rows[q.id][column] for q in part) / len(part) if part else None
            )
        result[name + "total"] = len(part)
    return result


def best_threshold(questions, found):
    """(threshold, F1) that serve a v2 set best, as the official script reports them: chosen on the very set that is
    scored, so flattering. Questions turn into "no answer" one by one, the surest first."""

    def gain(question):  # of saying "" instead of the best span
        truths = [text for text, _ in question.answers if normalise(text)] or [""]
        best = found[question.id][0][0][0] if found[question.id][0] else ""
        return max(f1("", t, True) for t in truths) - max(f1(best, t, True) for t in truths)

    def margin(question):
        best, null = found[question.id]
        return null - best[0][1] if best else torch.inf

    total = score(questions, choose(found), v2=True)["f1"]
    top, threshold = total, torch.inf
    for question in sorted((q for q in questions if q.id in found), key=margin, reverse=True):
        total += 100 * gain(question) / len(questions)
        if total > top:
            top, threshold = total, margin(question) - 1e-6
    return threshold, top
