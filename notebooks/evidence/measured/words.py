"""On which texts should tables by token pay most? A prediction from the text alone, before any run.

python -m evidence.measured.words          every text of the grids why_text_*
python -m evidence.measured.words --vocab  the two texts of why_vocab_*, by vocabulary

The row of a table is decided by the id alone, wherever it stands. So what it can teach is what an
id says by itself of the next one. Two guesses of how much that is, in nats a token, counted in the
training rows of a run and scored on its held-out ones:

next     H(next) - H(next | id): the mutual information of an id and the next one
farther  H(next | id) - H(next | id, the id d places back), the mean over d = 1 … 8: what rows read
         at other places add to the row of the id itself

Scored on held-out text, since counted on the same text rare pairs would say as much as they like,
and the more the larger the vocabulary. (Either is below 0 where what was counted misleads.) Both
are compared with the lead of tables; `next` is the prediction that is at stake, `farther` its
rival. What came out stands in asked/words.toml as `counted`.
"""

import sys

import numpy as np

from evidence.measured import derived  # noqa: F401 whose names of texts are then known
from minimal.command import command
from minimal.data import corpora
from minimal.data.packing import pack, permutation
from minimal.data.tokenizer import tokenizer

ROWS = 500 * 16  # what a run of the grids reads
SCORED = 371  # and is scored on
BACK = range(1, 9)

# ---- the texts -----------------------------------------------------------------------------------

# name of a grid -> corpus. The novels are the two longest of the folder and its longest English
# one: a run reads them .85 to 1.5 times, and .3 to .5 of the Python texts. Comments go first,
# since a third of the library is prose about it, which no renaming of names would touch.
CORPUS_OF = dict(
    code="stdlib",
    bare="stdlib:bare",
    renamed="stdlib:bare:renamed",
    fresh="stdlib:bare:fresh",
    code_shuffled="stdlib:shuffled",
    novel="war-and-peace",
    miserables="books:les-mis-rables",
    dombey="books:dombey-and-son",
    novel_shuffled="war-and-peace:shuffled",
)

VOCABS = (258, 1024, 4096)  # the smallest there is holds the 256 bytes, BOS and one merge


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


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.measured.words", __doc__)
def main(parser, argv):
    parser.add_argument("--vocab", action="store_true", help="two texts, by vocabulary")
    parser.add_argument("--texts", nargs="+", metavar="CORPUS", help="default: those of the grids")
    asked = parser.parse_args(argv)
    texts = asked.texts or [*CORPUS_OF.values()]
    cells = [(text, 1024) for text in texts]
    if asked.vocab:
        two = asked.texts or [CORPUS_OF["code"], CORPUS_OF["novel"]]
        cells = [(text, vocab) for text in two for vocab in VOCABS]
    print(f"{'corpus':26}{'vocab':>6}{'next':>8}{'farther':>9}   a byte:{'next':>7}  fingerprint")
    for text, vocab in cells:
        found = foretold_of(text, vocab)
        a_byte = found["next"] / found["bytes"]
        line = f"{text:26}{vocab:6}{found['next']:8.3f}{found['farther']:9.3f}"
        print(f"{line}   {a_byte:14.3f}  {found['fingerprint']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
