"""Does the reader lose nothing in silence, do windows and spans point at the right characters, is
the score the official one?"""

import copy
import json
import os

import pytest
import torch

from minimal.data import files
from minimal.data.files import DataError
from minimal.encoder import wordpiece
from minimal.tasks import passages, squad

TREE = {
    "version": "1.1",
    "data": [
        {
            "title": "Rivers",
            "paragraphs": [
                {
                    "context": "The Po rises near the Café Monviso, and flows east for 652 km to "
                    "the Adriatic Sea.",
                    "qas": [
                        {
                            "id": "po-1",
                            "question": "Where does the Po rise?",
                            "answers": [
                                {"text": "near the Café Monviso", "answer_start": 13},
                                {"text": "Café Monviso", "answer_start": 22},
                            ],
                        },
                        {
                            "id": "po-2",
                            "question": "How long is it?",
                            "answers": [{"text": "652 km", "answer_start": 55}],
                        },
                    ],
                }
            ],
        }
    ],
}


def tree(change=None, **fields):
    """The tree above with its second question's fields replaced."""
    made = copy.deepcopy(TREE)
    made["data"][0]["paragraphs"][0]["qas"][1].update(fields)
    if change:
        change(made)
    return made


@pytest.fixture(scope="module")
def pieces():
    texts = [
        TREE["data"][0]["paragraphs"][0]["context"],
        "Where does the Po rise? How long is it?",
        "0123456789 '’🤗 naïve",
    ]
    # hardly more than letters: 50 pieces for the context, 8 for a question
    return wordpiece.learn_pieces(texts, 80)


def read(source):
    report = files.Report()
    return squad.read(source, report), report


# ---- reading ------------------------------------------------------------------------------------


@pytest.mark.hub
def test_a_file_a_dict_and_rows_of_datasets_give_the_same_questions(tmp_path):
    import datasets

    path = tmp_path / "rivers.json"
    path.write_text(json.dumps(TREE), encoding="utf-8")
    questions, report = read(path)
    assert [q.id for q in questions] == ["po-1", "po-2"] and not report.skipped
    assert questions[0].answers == (("near the Café Monviso", 13), ("Café Monviso", 22))
    rows = [
        dict(
            id=q.id,
            question=q.question,
            context=q.context,
            answers=dict(text=[t for t, _ in q.answers], answer_start=[s for _, s in q.answers]),
        )
        for q in questions
    ]
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "rivers.parquet")
    loaded = datasets.load_dataset(
        "parquet",
        data_files=str(tmp_path / "rivers.parquet"),
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    assert read(TREE)[0] == questions == squad.from_rows(loaded, files.Report())


def test_v2_marks_the_unanswerable_and_rows_of_v2_have_none():
    questions, report = read(
        tree(
            answers=[],
            is_impossible=True,
            plausible_answers=[{"text": "652 km", "answer_start": 55}],
        )
    )
    assert questions[1].answers == () and not report.skipped
    row = dict(id="a", question="Q?", context="C.", answers=dict(text=[], answer_start=[]))
    assert squad.from_rows([row], files.Report(), v2=True)[0].answers == ()
    report = files.Report()
    assert (
        squad.from_rows([row], report) == []
        and "nothing marks it is_impossible" in report.skipped["a"]
    )


@pytest.mark.parametrize(
    "fields, sentence",
    [
        (dict(question="   "), "question is empty"),
        (dict(question=7), "question is empty"),
        (dict(answers=[]), "no answer, and nothing marks it is_impossible"),
        (dict(answers="652 km"), "not a list of {text, answer_start}"),
        (dict(answers=[{"text": "652 km"}]), "not a list of {text, answer_start}"),
        (dict(id="po-1"), "an earlier question has the same id"),
        (dict(id=""), "no id"),
    ],
)
def test_a_broken_item_is_skipped_with_a_sentence_and_its_neighbour_stays(fields, sentence):
    questions, report = read(tree(**fields))
    assert [q.id for q in questions] == ["po-1"]
    ((place, why),) = report.skipped.items()
    assert sentence in why and place in str(report) and why in str(report)
    assert place == "po-2" or "question 1" in place, (
        "an item without a usable id is named by its place"
    )


@pytest.mark.parametrize(
    "change, wanted",
    [
        (lambda t: t.pop("data"), "'data'"),
        (lambda t: t["data"][0].pop("paragraphs"), "'paragraphs'"),
        (lambda t: t["data"][0]["paragraphs"][0].pop("context"), "'context'"),
        (lambda t: t["data"][0]["paragraphs"][0].update(qas={}), "'qas'"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_the_place(change, wanted):
    with pytest.raises(ValueError, match=wanted) as error:
        read(tree(change))
    assert "\n" not in str(error.value)


def test_what_is_no_json_is_refused_by_name(tmp_path):
    for name, content in (
        ("cut.json", b'{"data": [{"par'),
        ("binary.json", bytes(range(128, 200))),
        ("deep.json", b"[" * 100_000),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="is not JSON") as error:
            read(tmp_path / name)
        assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are named on Unix")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "train.json")
    with pytest.raises(ValueError, match="train.json is no file; wanted a SQuAD file"):
        squad.load(str(tmp_path / "train.json"), "train", files.Report())


@pytest.mark.hub
def test_a_name_that_datasets_cannot_reach_says_what_to_do():
    wanted = "no-such-squad did not come through `datasets` .*: go online once, or name the path of"
    with pytest.raises(DataError, match=wanted):
        squad.load("nobody/no-such-squad", "train", files.Report())


# ---- windows ------------------------------------------------------------------------------------


def text_of(questions, rows, at):
    """What the gold span of window `at` covers, in characters of the context."""
    a, b = rows.place(at, *rows.spans[at].tolist())
    return questions[rows.owner[at]].context[a:b]


def test_windows_cover_every_token_and_spans_cover_the_answer(pieces):
    questions, _ = read(TREE)
    report = files.Report()
    whole = passages.windows(questions, pieces, 384, 128, report, train=True)
    assert len(whole.ids) == 2 and not report.skipped
    assert [text_of(questions, whole, at) for at in (0, 1)] == ["near the Café Monviso", "652 km"]
    total = [int(whole.inside[at].sum()) for at in (0, 1)]
    report = files.Report()
    cut = passages.windows(questions, pieces, 40, 6, report, train=True)
    for which, question in enumerate(questions):
        mine = [at for at in range(len(cut.ids)) if cut.owner[at] == which]
        covered = {int(p - cut.shift[at]) for at in mine for p in cut.inside[at].nonzero()}
        assert covered == set(range(total[which])) and len(mine) > 1
        starts = [int(cut.inside[at].nonzero()[0] - cut.shift[at]) for at in mine]
        assert starts == list(range(0, 6 * len(mine), 6))
        assert f"split into {len(mine)} windows" in report.changed[question.id]
        found = [at for at in mine if cut.spans[at].any()]
        assert found and all(text_of(questions, cut, at) == question.answers[0][0] for at in found)
    assert (
        not cut.spans[(cut.spans == 0).all(1)].any()
        and int(cut.lengths.max()) == cut.ids.shape[1] <= 40
    )
    for at in range(len(cut.ids)):
        row, n = cut.ids[at].tolist(), int(cut.lengths[at])
        assert (
            row[0] == pieces.cls
            and row[n - 1] == pieces.sep
            and row[n:] == [pieces.pad] * (len(row) - n)
        )
        assert cut.segments[at].sum() == cut.inside[at].sum() + 1 and not cut.inside[at, n - 1]


def test_offsets_survive_accents_emoji_and_answers_inside_a_piece(pieces):
    context = "Naïve 🤗 people say it’s 652km — or was it £700?"
    for answer in ("Naïve", "🤗", "652", "£700"):
        question = squad.Question("x", "How?", context, ((answer, context.index(answer)),))
        rows = passages.windows([question], pieces, 384, 128, files.Report(), train=True)
        assert (
            answer in text_of([question], rows, 0)
            and len(text_of([question], rows, 0)) <= len(answer) + 2
        )


def test_an_answer_at_a_wrong_place_moves_to_the_nearest_occurrence_and_is_reported(pieces):
    question = squad.Question("x", "How?", "one two one two one", (("two", 11),))
    report = files.Report()
    assert question.span == (12, 15)
    passages.windows([question], pieces, 64, 32, report, train=True)
    assert "is not at 11; the one at 12 is taken" in report.changed["x"]


def test_what_training_cannot_use_is_skipped_and_what_scoring_can_use_stays(pieces):
    lost = squad.Question("lost", "How long?", "It is 652 km.", (("900 km", 6),))
    fine = squad.Question("fine", "How long?", "It is 652 km.", (("652 km", 6),))
    report = files.Report()
    assert passages.windows([lost, fine], pieces, 64, 32, report, train=True).owner.tolist() == [1]
    assert report.skipped == {"lost": "its answer '900 km' does not occur in its context"}
    report = files.Report()
    assert passages.windows([lost, fine], pieces, 64, 32, report).owner.tolist() == [0, 1]
    assert not report.skipped and "can be scored but not found" in report.changed["lost"]


def test_contexts_and_questions_too_long_for_the_model_get_one_sentence_each(pieces):
    questions, _ = read(TREE)
    report = files.Report()
    with pytest.raises(ValueError, match="none of 2 questions can be used"):
        passages.windows(questions, pieces, 40, 0, report)
    assert "does not fit" in report.skipped["po-1"] and "stride=0" in report.skipped["po-1"]
    report = files.Report()
    with pytest.raises(ValueError):
        passages.windows(questions[:1], pieces, 8, 4, report)
    assert "leaves no room for the context" in report.skipped["po-1"]
    wide_apart = passages.windows(questions[:1], pieces, 40, 39, files.Report())
    assert int(wide_apart.inside.sum()) == len(pieces.encode([questions[0].context])[0].ids), (
        "no token is jumped over"
    )
    wide = squad.Question("wide", "long " * 70, "It is 652 km.", (("652 km", 6),))
    report = files.Report()
    passages.windows([wide], pieces, 384, 128, report)
    assert "cut from" in report.changed["wide"]
    broad = squad.Question("broad", "How?", "km " * 60, (("km " * 40, 0),))
    report = files.Report()
    with pytest.raises(ValueError):
        passages.windows([broad], pieces, 30, 10, report, train=True)
    assert "fits into none of its" in report.skipped["broad"]


def test_the_report_counts_what_it_does_not_print():
    report = files.Report(skipped={str(i): "why" for i in range(30)})
    assert "30 skipped, 0 changed" in str(report) and "22 more: all are in .skipped" in str(report)


# ---- decoding -----------------------------------------------------------------------------------


def brute_force(first, last, inside, n, longest):
    spans = [
        ((first[a] + last[b]).item(), a, b)
        for a in range(len(first))
        for b in range(a, min(len(first), a + longest))
        if inside[a] and inside[b]
    ]
    return sorted(spans, reverse=True)[:n]


def test_the_n_best_spans_are_those_of_a_search_over_all_valid_ones():
    torch.manual_seed(0)
    first, last = torch.randn(2, 3, 17, dtype=torch.float64)
    inside = torch.rand(3, 17) < 0.6
    inside[2] = False
    found = passages.best_spans(first, last, inside, n=7, longest=4)
    for row in range(3):
        assert found[row] == brute_force(first[row], last[row], inside[row], 7, 4)
    assert found[2] == []


def test_impossible_spans_never_win_however_high_they_score(pieces):
    questions, _ = read(TREE)
    rows = passages.windows(questions[1:], pieces, 384, 128, files.Report(), train=True)
    first, last = torch.zeros(2, *rows.ids.shape)
    a, b = rows.spans[0].tolist()
    first[0, a], last[0, b] = 5, 5
    first[0, 1] = last[0, 1] = 90  # in the question
    first[0, int(rows.lengths[0]) - 1] = last[0, -1] = 90  # the last [SEP]
    first[0, b + 1], last[0, a - 1] = 4.5, 4.5  # each fair alone, but the end before the beginning
    best, null = passages.answers(questions[1:], rows, first, last, longest=b - a + 1)["po-2"]
    assert best[0] == ("652 km", 10.0) and null == 0 and len(best) == 20
    assert all(text in questions[1].context for text, _ in best)
    assert [score for _, score in best] == sorted((score for _, score in best), reverse=True)


def test_windows_of_one_question_are_ranked_together_and_a_span_seen_twice_counts_once(pieces):
    questions = read(TREE)[0][1:]
    rows = passages.windows(questions, pieces, 40, 6, files.Report())
    twice = [at for at in range(len(rows.ids)) if rows.spans[at].any()][:2]
    for scores in ((3.0, 4.0), (4.0, 3.0)):
        first, last = torch.zeros(2, *rows.ids.shape)
        for at, score in zip(twice, scores):
            first[at, rows.spans[at, 0]] = last[at, rows.spans[at, 1]] = score
        best, _ = passages.answers(questions, rows, first, last)["po-2"]
        assert len(twice) == 2 and best[0] == ("652 km", 8.0)
        assert [text for text, _ in best].count("652 km") == 1


def test_no_answer_wins_only_where_its_score_beats_the_best_span_by_the_threshold(pieces):
    questions, _ = read(TREE)
    rows = passages.windows(questions[:1], pieces, 40, 6, files.Report())
    first, last = torch.zeros(2, *rows.ids.shape)
    first[:, 0] = torch.arange(len(rows.ids)) + 1.0  # [CLS]: the least over the windows is 1 + 0
    at = int(rows.inside[0].nonzero()[0])
    first[0, at] = 0.6
    found = passages.answers(questions[:1], rows, first, last)
    ((best, null),) = found.values()
    assert null == 1.0 and best[0][1] == pytest.approx(0.6)
    assert passages.chosen_answers(found) == {"po-1": best[0][0]}, "v1 always answers"
    assert passages.chosen_answers(found, threshold=0.0) == {"po-1": ""}
    assert passages.chosen_answers(found, threshold=0.5) == {"po-1": best[0][0]}
    assert passages.chosen_answers({"y": ([], 0.0)}) == {"y": ""}


# ---- the official score, by hand ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text, plain",
    [
        ("The Cat", "cat"),
        ("a an the A", ""),
        ("Athens, the anthem", "athens anthem"),
        ("U.S.A.", "usa"),
        ("it's", "its"),
        ("it’s", "it’s"),  # only ASCII punctuation goes
        ("the-cat", "thecat"),  # the hyphen goes first, so "the" is no word any more
        ("the–cat", "–cat"),  # a dash stays, and "the" before it is a word
        ("a’s", "’s"),
        ("$5.00", "500"),
        ("£5", "£5"),
        ("  two \t words\n", "two words"),
        ("½ the price", "½ price"),
        ("ÀNDRÉ", "àndré"),  # accents stay: the model drops them, the scorer does not
        ("an_apple", "anapple"),
        ("...", ""),
    ],
)
def test_normalisation_follows_the_official_order(text, plain):
    assert squad.normalise(text) == plain


@pytest.mark.parametrize(
    "said, truth, exact, f1, f1_v2",
    [
        ("The Broncos", "Broncos", 1, 1, 1),
        ("Denver Broncos", "The Broncos", 0, 2 / 3, 2 / 3),  # precision 1/2, recall 1
        (
            "cat cat cat dog",
            "cat cat bird",
            0,
            4 / 7,
            4 / 7,
        ),  # 2 in common of 4 and 3: words are counted, not listed
        ("cat", "dog", 0, 0, 0),
        (
            "The",
            "the",
            1,
            0,
            1,
        ),  # nothing is left of either: v1 finds no common word, v2 calls them equal
        ("", "", 1, 0, 1),
        ("", "cat", 0, 0, 0),
        ("the", "cat", 0, 0, 0),
        ("in 1066 AD", "1066", 0, 0.5, 0.5),
        ("7,000", "7000", 1, 1, 1),
        ("co-operate", "co operate", 0, 0, 0),  # "cooperate" against two words
        ("Москва", "москва", 1, 1, 1),
    ],
)
def test_em_and_f1_are_the_official_ones(said, truth, exact, f1, f1_v2):
    assert squad.exact(said, truth) == exact
    assert squad.f1(said, truth) == pytest.approx(f1) and squad.f1(truth, said) == pytest.approx(f1)
    assert squad.f1(said, truth, v2=True) == pytest.approx(f1_v2)


def test_the_best_of_several_answers_counts_metric_by_metric():
    question = squad.Question("q", "?", "?", (("cat", 0), ("black cat sat there", 0)))
    got = squad.score([question], {"q": "black cat sat"})
    assert got["exact"] == 0 and got["f1"] == pytest.approx(100 * 6 / 7)
    assert squad.score([question], {"q": "a cat"})["exact"] == 100


def test_a_missing_prediction_scores_zero_and_is_named():
    questions = [squad.Question(name, "?", "?", (("cat", 0),)) for name in "ab"]
    got = squad.score(questions, {"a": "cat", "c": "nobody asked"})
    assert (got["exact"], got["f1"], got["total"], got["missing"]) == (50, 50, 2, ["b"])


def test_v2_scores_the_answerable_and_the_unanswerable_apart():
    questions = [
        squad.Question("yes", "?", "?", (("cat", 0),)),
        squad.Question("no", "?", "?", ()),
        squad.Question("hm", "?", "?", ()),
        squad.Question("the", "?", "?", (("The", 0),)),
    ]
    got = squad.score(questions, {"yes": "black cat", "no": "", "hm": "cat", "the": ""}, v2=True)
    assert got["answerable_total"] == 2 and got["unanswerable_total"] == 2 and got["total"] == 4
    assert got["answerable_f1"] == pytest.approx(
        100 * (2 / 3 + 1) / 2
    )  # a gold answer of articles only counts as none
    assert got["unanswerable_exact"] == 50 and got["exact"] == 50
    assert got["f1"] == pytest.approx(100 * (2 / 3 + 1 + 0 + 1) / 4)
    only = squad.score(questions[:1], {"yes": "cat"}, v2=True)
    assert only["unanswerable_total"] == 0 and only["unanswerable_f1"] is None and only["f1"] == 100


# ---- real data ----------------------------------------------------------------------------------


@pytest.mark.data
def test_an_oracle_reaches_the_ceiling_on_real_questions(data):
    questions, report = read(data / "squad" / "xquad-en.json")
    assert len(questions) == 912 and not report.skipped
    questions = questions[:200]
    pieces = wordpiece.learn_pieces(
        list({q.context for q in questions}) + [q.question for q in questions], 1500
    )
    rows = passages.windows(questions, pieces, 128, 64, report, train=True)
    assert not report.skipped and len(rows.ids) > 400
    first, last = torch.zeros(2, *rows.ids.shape)
    here = rows.spans[:, 0] > 0
    first[here, rows.spans[here, 0]] = last[here, rows.spans[here, 1]] = 9
    got = squad.score(
        questions, passages.chosen_answers(passages.answers(questions, rows, first, last))
    )
    assert got["exact"] > 99 and got["missing"] == []
