"""Do pretraining and fine-tuning learn, in stages, from any point on, the same every time? Do all
plans of a seed start alike?"""

import pytest
import torch

from course.village import make
from minimal.data import files
from minimal.encoder import bert, finetune, pretrain, wordpiece
from minimal.model.values import Bypass
from minimal.tasks import squad
from minimal.training.checkpoint import CheckpointError
from minimal.training.run import Diverged
from tests.encoder.small import TINY, encoder


@pytest.fixture(scope="module")
def village():
    """Level 1 of the generated set, few questions."""
    train, test = (
        squad.read(make(1, n, 0, split), files.Report())
        for n, split in ((40, "train"), (6, "test"))
    )
    return train, test, wordpiece.learn_pieces([q.context + " " + q.question for q in train], 400)


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# ---- masked pieces ------------------------------------------------------------------------------


def test_a_row_so_short_that_nothing_is_masked_teaches_nothing_and_is_no_nan(pieces, monkeypatch):
    nothing = lambda ids, *_: (ids, torch.full_like(ids, pretrain.wordpiece.IGNORE))
    monkeypatch.setattr(pretrain.wordpiece, "mask", nothing)
    model = encoder(pieces.vocab)
    loss = pretrain.masked_loss(model, pieces, torch.full((1, 4), pieces.cls), 0, 0)
    loss.backward()
    assert loss == 0 and not model.embed.weight.grad.any()


def test_pretraining_runs_its_stages_in_order_and_learns(book, pieces, monkeypatch):
    seen, plain = [], pretrain.masked_loss
    monkeypatch.setattr(
        pretrain, "masked_loss", lambda m, p, ids, *a: seen.append(ids) or plain(m, p, ids, *a)
    )
    model = encoder(pieces.vocab, dropout=0.0)
    before = pretrain.masked_score(model, book, pieces, 64)
    plan = pretrain.stages_of("16x12x60,64x3x20")
    losses = pretrain.pretrain(model, book, pieces, plan, lr=1e-2)
    assert [tuple(ids.shape) for ids in seen] == [(12, 16)] * 60 + [(3, 64)] * 20 and len(
        losses
    ) == 80
    assert all((ids[:, 0] == pieces.cls).all() and (ids[:, -1] == pieces.sep).all() for ids in seen)
    after = pretrain.masked_score(model, book, pieces, 64)
    assert after["loss"] < 0.8 * before["loss"] and after["right"] > before["right"] + 0.1
    assert after == pretrain.masked_score(model, book, pieces, 64), "always the same rows and masks"


def test_rows_never_repeat_within_an_epoch_and_come_in_another_order_in_the_next():
    first, second = (
        torch.cat([pretrain.places(20, 5, 0, step) for step in range(at, at + 4)]) for at in (0, 4)
    )
    assert (
        sorted(first.tolist()) == sorted(second.tolist()) == list(range(20))
        and first.tolist() != second.tolist()
    )
    assert sorted(
        torch.cat([pretrain.places(7, 3, 1, step) for step in range(7)]).tolist()
    ) == sorted(list(range(7)) * 3)


def test_a_run_that_was_stopped_goes_on_bit_for_bit_and_a_folder_keeps_its_run(
    book, pieces, tmp_path, monkeypatch
):
    how = dict(
        stages=pretrain.stages_of("16x4x12"),
        lr=1e-2,
        save=4,
        identity=dict(seed=0, lr=1e-2),
        ramp="decay",
    )
    stopped, plain = encoder(pieces.vocab, {}), pretrain.masked_loss
    whole = encoder(pieces.vocab, {})
    losses = pretrain.pretrain(whole, book, pieces, **how)

    def killed(model, pieces, ids, seed, step, *rest):
        if step == 7:
            raise KeyboardInterrupt
        return plain(model, pieces, ids, seed, step, *rest)

    monkeypatch.setattr(pretrain, "masked_loss", killed)
    with pytest.raises(KeyboardInterrupt):
        pretrain.pretrain(stopped, book, pieces, out=tmp_path, **how)
    monkeypatch.setattr(pretrain, "masked_loss", plain)
    assert [row["step"] for row in files.read_lines(tmp_path / "log.jsonl")] == [1, 4]
    # everything must come from the folder
    fresh = bert.build({}, TINY.but(vocab=pieces.vocab), seed=77)
    assert pretrain.pretrain(fresh, book, pieces, out=tmp_path, **how) == losses
    assert equal(weights(fresh), weights(whole))
    with pytest.raises(CheckpointError, match=r"holds another run \(lr: 0.01 there, 5.0 here\)"):
        pretrain.pretrain(
            fresh, book, pieces, out=tmp_path, **how | dict(identity=dict(seed=0, lr=5.0))
        )


def test_the_same_seed_gives_the_same_run_and_another_seed_another(book, pieces):
    def losses(seed):
        return pretrain.pretrain(
            encoder(pieces.vocab), book, pieces, pretrain.stages_of("16x4x5"), seed=seed, lr=1e-2
        )

    assert losses(0) == losses(0) != losses(1)


def test_dropout_is_drawn_anew_at_every_step_and_the_same_way_for_every_run(pieces):
    def losses(seed=0):
        model = encoder(pieces.vocab, dropout=0.5)
        return pretrain.fit(
            model,
            lambda step: model(torch.arange(8).view(1, 8)).square().mean(),
            4,
            seed=seed,
            lr=1e-12,
        )

    first = losses()
    assert len(set(first)) == 4 and first == losses() and first != losses(seed=1)


def test_a_loss_that_is_no_number_ends_the_run_with_a_sentence(pieces):
    model = encoder(pieces.vocab)
    with pytest.raises(Diverged, match="the loss became nan at step 1; .*; try a smaller --lr"):
        pretrain.fit(model, lambda step: model.embed.weight.sum() * float("nan"), 3)
    for text in ("128x48", "0x0x0", "3x1x1", "128x48x-1", ""):
        with pytest.raises(ValueError, match=f"stages '{text}': wanted LENGTHxBATCHxSTEPS"):
            pretrain.stages_of(text)


def test_the_ramp_moves_alpha_over_the_run():
    made, turns = encoder(40, {}), []
    past = next(m for m in made.modules() if isinstance(m, Bypass))

    def loss_at(step):
        turns.append(past.ramp)
        return made(torch.arange(8).view(1, 8)).square().mean()

    pretrain.fit(made, loss_at, 4, ramp="decay")
    assert turns == [1, 0.75, 0.5, 0.25]
    pretrain.fit(made, loss_at, 2)
    assert turns[4:] == [0, 0], "the next run goes on with where the ramp ended"


# ---- tasks --------------------------------------------------------------------------------------


def test_spans_are_learned_from_chance_to_all_of_the_training_questions(village):
    train, _, pieces = village
    task = finetune.SpanTask(train[:12], train[:12], pieces, length=64)
    model = encoder(pieces.vocab, dropout=0.0)
    model.with_head(bert.Spans).eval()
    with torch.no_grad():
        before = task.score(model)["f1"]
    got = finetune.finetune(model, task, steps=90, batch=12, lr=5e-3)
    assert before < 40 and got["f1"] > 95 and got["missing"] == [] and len(got["losses"]) == 90


def test_the_loss_of_a_span_is_the_mean_of_its_two_ends(village):
    """-log p of the first piece and of the last, halved, by its definition and as numbers that are
    known: a model without preferences pays ln(length) for each end."""
    train, _, pieces = village
    task = finetune.SpanTask(train[:4], train[:4], pieces, length=64)
    model = encoder(pieces.vocab, dropout=0.0).with_head(bert.Spans).eval()
    which = torch.arange(len(task.rows.ids))
    with torch.no_grad():
        ends = task.scores(model, task.rows, which)
        paid = [
            -end.log_softmax(-1).gather(1, task.rows.spans[which, side, None]).mean()
            for side, end in enumerate(ends)
        ]
        torch.testing.assert_close(task.loss(model, which), sum(paid) / 2)
        model.head.out.weight.zero_(), model.head.out.bias.zero_()
        length = task.rows.lengths[:1].item()
        torch.testing.assert_close(
            task.loss(model, which[:1]), torch.tensor(length).float().log(), rtol=1e-4, atol=1e-4
        )


def test_no_answer_is_learned_in_v2(village):
    tree = make(1, 12, 3, unanswerable=0.5)
    questions = squad.read(tree, files.Report())
    pieces = wordpiece.learn_pieces([q.context + " " + q.question for q in questions], 400)
    task = finetune.SpanTask(questions, questions, pieces, length=64, v2=True)
    got = finetune.finetune(encoder(pieces.vocab, dropout=0.0), task, steps=120, batch=16, lr=5e-3)
    assert got["unanswerable_exact"] > 80 and got["answerable_f1"] > 60


def test_windows_longer_than_the_model_are_refused_before_training(village):
    train, _, pieces = village
    long = squad.read(make(5, 1), files.Report())
    task = finetune.SpanTask(train, long, pieces, length=96)
    with pytest.raises(ValueError, match="rows of 96 positions for a model that has 64"):
        finetune.finetune(encoder(pieces.vocab), task, steps=1)


def test_padding_never_wins_and_batches_do_not_change_the_answer(village):
    train, test, pieces = village
    task = finetune.SpanTask(train, test, pieces, length=64)
    model = encoder(pieces.vocab).with_head(bert.Spans).eval()
    with torch.no_grad():
        model.head.out.bias.fill_(50)
        together = task.found(model)
        alone = [
            task.scores(model, task.held, torch.tensor([at])) for at in range(len(task.held.ids))
        ]
        crowd = task.scores(model, task.held, torch.arange(len(task.held.ids)))
    for at, question in enumerate(test):
        n = int(task.held.lengths[at])
        for one, all_ in zip(alone[at], crowd):
            torch.testing.assert_close(all_[at, :n], one[0], atol=1e-3, rtol=0)
            assert (all_[at, n:] == finetune.LOSING_SCORE).all()
        best, null = together[question.id]
        assert null == pytest.approx(float(alone[at][0][0, 0] + alone[at][1][0, 0]), abs=1e-3)
        assert all(text in question.context for text, _ in best)


@pytest.mark.data
def test_the_same_loop_runs_on_real_questions_in_windows(data):
    questions = squad.read(data / "squad" / "xquad-en.json", files.Report())[:120]
    pieces = wordpiece.learn_pieces([q.context + " " + q.question for q in questions], 800)
    task = finetune.SpanTask(questions[:90], questions[90:], pieces, length=64, stride=24)
    assert len(task.rows.ids) > 3 * 90 and not task.report.skipped
    got = finetune.finetune(encoder(pieces.vocab), task, steps=30, batch=16, lr=2e-3)
    assert got["total"] == 30 and got["missing"] == [] and got["losses"][-1] < got["losses"][0]
