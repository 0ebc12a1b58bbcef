"""On which texts should tables by token pay most? A prediction from the text alone, before any run.

python -m evidence.research.foretold          every text of the grids why_text_*
python -m evidence.research.foretold --vocab  the two texts of why_vocab_*, by vocabulary
python -m evidence.research.foretold --judge  beside the leads that were recorded

The row of a table is decided by the id alone, wherever it stands. So what it can teach is what an
id says by itself of the next one. Two guesses of how much that is, in nats a token, counted in the
training rows of a run and scored on its held-out ones:

next     H(next) - H(next | id): the mutual information of an id and the next one
farther  H(next | id) - H(next | id, the id d places back), the mean over d = 1 … 8: what rows read
         at other places add to the row of the id itself

Scored on held-out text, since counted on the same text rare pairs would say as much as they like,
and the more the larger the vocabulary. (Either is
below 0 where what was counted misleads.) Both are compared with the lead of tables; `next` is the
prediction that is at stake (evidence.research.why.FORETOLD), `farther` its rival.
"""

import sys

import numpy as np

from course import records
from evidence.research import why
from evidence.research.leads import between, rank_correlation
from minimal.command import command
from minimal.data import corpora
from minimal.data.packing import pack, permutation
from minimal.data.tokenizer import tokenizer

ROWS = 500 * 16  # what a run of the grids reads
SCORED = 371  # and is scored on
BACK = range(1, 9)
SLIM_CHANGES = dict(hidden=why.SLIM_AT_VOCAB[1024])  # bov-fixed at the parameters of standard


# ---- counting ------------------------------------------------------------------------------------


def tallied(keys):
    """Distinct keys in order, and how often each occurs."""
    return np.unique(keys, return_counts=True)


def looked_up(table, keys):
    """The counts of these keys; 0 where the table has none."""
    known, often = table
    at = np.searchsorted(known, keys).clip(max=len(known) - 1)
    return np.where(known[at] == keys, often[at], 0)


def chances(seen, asked, base, vocab):
    """p(next | context) of the `asked` (contexts, nexts), from the `seen` ones, by Witten and Bell:
    a context of n uses and d different nexts trusts its own counts by n / (n + d), `base` by the
    rest."""
    (contexts, nexts), (here, after) = seen, asked
    pairs = tallied(contexts * vocab + nexts)
    total = looked_up(tallied(contexts), here)
    kinds = looked_up(tallied(pairs[0] // vocab), here)
    own = looked_up(pairs, here * vocab + after)
    return np.where(total, (own + kinds * base) / np.maximum(total + kinds, 1), base)


def guesses(train, held, vocab, back=BACK):
    """dict(next, farther) in nats a token, of rows of ids (rows, T+1) to learn and to be scored
    on."""
    train, held = (rows.astype(np.int64) for rows in (train, held))
    back = [d for d in back if d < train.shape[1] - 1]
    first = max(back, default=0)  # every guess is scored at the same places

    # what comes next by itself, then after an id
    def next_of(rows):
        return rows[:, first + 1 :].ravel()

    def id_before(rows, d=0):
        return rows[:, first - d : -1 - d].ravel()

    after, asked = next_of(train), next_of(held)
    alone = (np.bincount(after, minlength=vocab) + 1) / (len(after) + vocab)
    by_itself = alone[asked]
    seen = id_before(train), after
    by_id = chances(seen, (id_before(held), asked), by_itself, vocab)

    # and after an id and one farther back
    def gain(d):
        two = [id_before(rows, d) * vocab + id_before(rows) for rows in (train, held)]
        both = chances((two[0], after), (two[1], asked), by_id, vocab)
        return np.log(both / by_id).mean()

    return dict(
        next=np.log(by_id / by_itself).mean(),
        farther=np.mean([gain(d) for d in back]) if back else 0.0,
    )


# ---- of a corpus ---------------------------------------------------------------------------------


def foretold_of(name, vocab=1024, context=128):
    """The same of a corpus, from the rows that a run of seed 0 reads; and bytes a token."""
    corpus = corpora.find(name)
    tok = tokenizer(corpus, vocab)
    data = pack(corpus, tok, context)
    train = data.train[np.sort(permutation(len(data.train), 0, 0)[:ROWS])]
    chosen = np.arange(min(SCORED, len(data.held))) * len(data.held) // min(SCORED, len(data.held))
    about = data.about["valid"]
    found = guesses(train, data.held[chosen], vocab)
    return found | dict(bytes=about["bytes"] / about["tokens"], fingerprint=corpus.fingerprint)


# ---- beside what was recorded --------------------------------------------------------------------


def lead_of(rows, plan="bov-fixed", changes=SLIM_CHANGES):
    """Standard less a plan, by seed, only seeds that have both: what was foretold is the lead of
    bov-fixed at the parameters of standard. `changes` None: the plan as it is."""

    def losses(plan, changes):
        kept = (row for row in rows if row["plan"] == plan)
        return {row["seed"]: row["loss"] for row in kept if row["asked"].get("changes") == changes}

    return list(between(losses(plan, changes or None), losses("standard", None)))


def verdict(leads, seeds=3):
    """What `leads` {text: lead by seed} make of the prediction; nothing from a part of it."""
    new = [name for name in why.FORETOLD if name not in why.SEEN]
    lacking = [name for name in new if len(leads.get(name, ())) < seeds]
    if lacking:
        return f"open: no verdict before {', '.join(lacking)} have {seeds} seeds"
    found = rank_correlation(
        [why.FORETOLD[name][0] for name in new], [np.mean(leads[name]) for name in new]
    )
    word = "open"
    if found > why.HELD - 0.001:
        word = "held"
    elif found <= why.FAILED:
        word = "failed"
    return f"{word}: rank correlation {found:.3f} over {len(new)} new texts"


def judge():
    leads = {}
    for name, (ahead, *_) in why.FORETOLD.items():
        rows = records.rows_of(records.EVIDENCE / f"why_text_{name}.json")
        leads[name] = lead_of(rows)
        seeds = " ".join(f"{lead:+.4f}" for lead in leads[name]) or "not recorded"
        print(f"{name:16}next {ahead:.3f}   lead by seed: {seeds}")
    print(verdict(leads))


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.research.foretold", __doc__)
def main(parser, argv):
    parser.add_argument("--vocab", action="store_true", help="two texts, by vocabulary")
    parser.add_argument("--texts", nargs="+", metavar="CORPUS", help="default: those of the grids")
    parser.add_argument("--judge", action="store_true", help="beside the recorded leads")
    asked = parser.parse_args(argv)
    if asked.judge:
        judge()
        return
    texts = asked.texts or [*why.CORPUS_OF.values()]
    cells = [(text, 1024) for text in texts]
    if asked.vocab:
        two = asked.texts or [why.CORPUS_OF["code"], why.CORPUS_OF["novel"]]
        cells = [(text, vocab) for text in two for vocab in why.VOCABS]
    print(f"{'corpus':26}{'vocab':>6}{'next':>8}{'farther':>9}   a byte:{'next':>7}  fingerprint")
    for text, vocab in cells:
        found = foretold_of(text, vocab)
        a_byte = found["next"] / found["bytes"]
        line = f"{text:26}{vocab:6}{found['next']:8.3f}{found['farther']:9.3f}"
        print(f"{line}   {a_byte:14.3f}  {found['fingerprint']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
