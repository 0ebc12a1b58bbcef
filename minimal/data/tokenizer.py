"""How does text become token ids, and ids text? A tokenizer: byte-level BPE, learned once."""

import json
import re
from itertools import count

import numpy as np

from minimal.data.files import DataError, digest, once

BOS = "<|bos|>"

SMALLEST = 258  # BOS, the 256 bytes, and one merge

# what a token may not reach across; GPT-4's rule, with numbers cut into one or two digits
SPLIT = "|".join(
    (
        r"'(?i:[sdmt]|ll|ve|re)",  # the ends of English contractions
        r"[^\r\n\p{L}\p{N}]?\p{L}+",  # a word, with the one space or sign before it
        r"\p{N}{1,2}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",  # signs, with the line ends that follow
        r"\s*[\r\n]+",
        r"\s+(?!\S)",  # spaces, less the one that belongs to the next word
        r"\s+",
    )
)

# characters that the tokenizer learns from: of a document in a round, and in all
CROP, SAMPLE = 10_000, 20_000_000


class Tokenizer:
    """Byte-level BPE: any text can be decoded as it was. `bytes`, by token, is 0 for BOS."""

    def __init__(self, text):
        self.text = text  # of a tokenizer.json
        self.raw = parsed(text)
        self.raw.encode_special_tokens = True  # "<|bos|>" in a text is text: packing writes BOS
        self.vocab = self.raw.get_vocab_size()
        names = [self.raw.id_to_token(i) for i in range(self.vocab)]
        self.bos = names.index(BOS)
        # In a byte-level name one character stands for one byte. Measuring the decoded token
        # instead would count half a character as U+FFFD, three bytes, and so flatter the model.
        self.bytes = np.array([0 if name == BOS else len(name) for name in names])  # (V,)
        self.fingerprint = digest(SPLIT, names)

    def encode(self, text):
        return self.raw.encode(text, add_special_tokens=False).ids

    def encode_all(self, texts):
        """The same for many texts, on all cores."""
        encodings = self.raw.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids):
        return self.raw.decode([int(i) for i in ids])


def parsed(text):
    """The tokenizer of a tokenizer.json, or one sentence."""
    import tokenizers

    try:
        raw = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more special
        raise DataError(
            f"this is no tokenizer ({error}): wanted the text of a tokenizer.json of this course"
        ) from None
    if raw.token_to_id(BOS) is None:
        raise DataError(f"this tokenizer has no {BOS}: wanted one that this course has learned")
    return raw


def tokenizer(corpus, vocab=1024):
    """The tokenizer of this corpus with `vocab` tokens, BOS included; from training text alone."""
    if vocab < SMALLEST:
        raise DataError(
            f"vocab {vocab} is too small: {SMALLEST} holds BOS, the 256 bytes and one merge; "
            "ask for more"
        )

    def make(folder):
        larger = [size for size in learned(corpus) if size > vocab]
        raw = first_of(tokenizer(corpus, min(larger)), vocab) if larger else learn(corpus, vocab)
        folder.mkdir()
        raw.save(str(folder / "tokenizer.json"))

    folder = once(corpus.folder / f"tokenizer-{vocab}", make)
    return Tokenizer((folder / "tokenizer.json").read_text(encoding="utf-8"))


def learned(corpus):
    """The vocabularies for which this corpus has a tokenizer."""
    found = (re.fullmatch(r"tokenizer-(\d+)", path.name) for path in corpus.folder.glob("*"))
    return [int(match[1]) for match in found if match]


def first_of(larger, vocab):
    """The tokenizer of the first `vocab` tokens: learning for fewer makes the same merges, in the
    same order, and stops as soon as there are enough."""
    told = json.loads(larger.text)
    model = told["model"]
    model["vocab"] = {name: at for name, at in model["vocab"].items() if at < vocab}
    last = max(model["vocab"], key=model["vocab"].get)
    made = ["".join(pair) for pair in model["merges"]]
    model["merges"] = model["merges"][: made.index(last) + 1]
    return parsed(json.dumps(told))


def learn(corpus, vocab):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    # the rules
    raw = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(SPLIT), behavior="isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    raw.decoder = decoders.ByteLevel()

    # the merges
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[BOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(text_to_learn(corpus), trainer)
    if raw.get_vocab_size() < vocab:
        raise DataError(
            f"corpus {corpus.name} is too short for {vocab} tokens: its pairs run out at "
            f"{raw.get_vocab_size()}; ask for a smaller vocab or give more text"
        )
    return raw


def text_to_learn(corpus):
    """The first 10,000 characters of every document, then the next of every one, to 20 million.

    Of many short documents this is the usual crop, and one long novel is still read whole.
    """
    room = SAMPLE
    for start in count(step=CROP):
        pieces = (text[start : start + CROP] for text in corpus.documents("train"))
        before = room
        for piece in filter(None, pieces):
            yield piece[:room]
            room -= len(piece)
            if room <= 0:
                return
        if room == before:
            return


def check_vocab(tok, model_vocab):
    """A tokenizer and a model that belong together."""
    if tok.vocab != model_vocab:
        raise DataError(
            f"the tokenizer has {tok.vocab} tokens, the model {model_vocab}: "
            "make the tokenizer with the model's vocabulary, or the model with the tokenizer's"
        )
