"""What does an encoder read, and what is it asked to guess? WordPiece pieces, and masks that are
drawn anew at every step."""

from pathlib import Path

import torch

from minimal.data.files import DataError, digest, once
from minimal.model.init import generator

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

IGNORE = -100  # targets that cost nothing


# ---- pieces -------------------------------------------------------------------------------------
class Pieces:
    """A WordPiece tokenizer, with what packing (minimal.data) and encoding ask of it. A document
    begins with [SEP]."""

    def __init__(self, raw):
        self.raw, self.vocab = raw, raw.get_vocab_size()
        ids = [raw.token_to_id(token) for token in SPECIALS]
        absent = [token for token, id in zip(SPECIALS, ids) if id is None]
        if absent:
            raise DataError(
                f"the vocabulary has no {', '.join(absent)}: an encoder needs all of "
                f"{' '.join(SPECIALS)}; take one that has them"
            )
        self.pad, self.unk, self.cls, self.sep, self.mask = ids
        self.bos = self.sep
        every = torch.arange(self.vocab)
        self.special = torch.tensor(ids)
        self.ordinary = every[~torch.isin(every, self.special)]  # (V - 5,)
        self.fingerprint = digest(*(raw.id_to_token(id) for id in range(self.vocab)))

    def encode(self, texts):
        """One encoding a text, with .ids and .offsets, on all cores."""
        return self.raw.encode_batch(list(texts), add_special_tokens=False)

    def encode_all(self, texts):
        return [encoding.ids for encoding in self.encode(texts)]

    def decode(self, ids):
        return self.raw.decode([int(id) for id in ids])


def uncased(vocab):
    """BERT's pipeline: clean, lower case, no accents; split at spaces and punctuation; the longest
    piece first."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    raw = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece()
    raw.add_special_tokens([token for token in SPECIALS if token in vocab])
    return raw


def learn_pieces(texts, vocab):
    """An uncased vocabulary of at most `vocab` pieces, learned from a list of texts; the specials
    are 0 to 4.

    The library numbers the pieces "##x" in the order of a hash table and breaks ties by number, so
    that the same texts give another vocabulary every time (its issue 1794). Named in advance, in
    order, they always give the same."""
    from tokenizers.trainers import WordPieceTrainer

    # The words, and the letters that pieces begin with or go on with.
    raw = uncased({})
    words = set()
    for text in texts:
        plain = raw.normalizer.normalize_str(text)
        words |= {word for word, _ in raw.pre_tokenizer.pre_tokenize_str(plain)}
    letters = {letter for word in words for letter in word}
    inner = sorted({"##" + letter for word in words for letter in word[1:]})

    needed = len(letters) + len(inner) + len(SPECIALS)
    if not words or vocab < needed:
        raise DataError(
            f"a vocabulary of {vocab} for {len(words)} different words: the specials and their "
            f"letters alone take {needed}; give more text or a larger vocabulary"
        )
    named = SPECIALS + inner
    trainer = WordPieceTrainer(vocab_size=vocab, special_tokens=named, show_progress=False)
    raw.train_from_iterator(texts, trainer)
    return Pieces(uncased(raw.get_vocab()))


def load_pieces(path):
    """From a tokenizer.json, or from a vocab.txt with one piece a line, as bert-base-uncased has
    it."""
    path = Path(path)
    wanted = "wanted a tokenizer.json, or a vocab.txt with one piece a line"
    if not path.is_file():
        raise DataError(f"{path} is not there: {wanted}")
    try:
        return Pieces(from_json(path) if path.suffix == ".json" else from_lines(path))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # a codec's, or the library's own, which has no class
        raise DataError(f"{path} holds something else ({error}): {wanted}") from None


def from_json(path):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))


def from_lines(path):
    with open(path, encoding="utf-8") as file:  # splitlines would also cut at U+2028, a piece
        return uncased({line.rstrip("\n"): id for id, line in enumerate(file)})


def corpus_pieces(corpus, vocab, characters=20_000_000):
    """The vocabulary of a corpus (minimal.data.corpora), learned once from the beginnings of its
    training documents."""

    def make(folder):
        texts, room = [], characters
        for text in corpus.documents("train"):
            texts.append(text[:room])
            room -= len(texts[-1])
            if room <= 0:
                break
        folder.mkdir()
        learn_pieces(texts, vocab).raw.save(str(folder / "tokenizer.json"))

    folder = once(corpus.folder / f"wordpiece-{vocab}-{characters}", make)
    return load_pieces(folder / "tokenizer.json")


# ---- masks --------------------------------------------------------------------------------------
def mask(ids, pieces, seed, step, rate=0.15):
    """BERT's masked language modelling on ids (B, T): -> (inputs, targets), a pure function of
    (seed, step).

    In each row `rate` of the pieces (rounded up or down by lot) are to be guessed; of these 80 %
    read [MASK], 10 % some piece, 10 % themselves, so that an unmasked piece needs a prediction too.
    Specials are never touched."""
    # Draw an order of the places, a fate for each, another piece, and the rounding of a row.
    random = generator(seed, f"mask {step}")
    order, fate = torch.rand(2, *ids.shape, generator=random)  # (B, T) each
    lots = torch.randint(len(pieces.ordinary), ids.shape, generator=random)  # (B, T)
    rounding = torch.rand(len(ids), generator=random)  # (B,)

    # Choose the first `count` ordinary places of the order.
    special = torch.isin(ids, pieces.special)  # (B, T)
    count = (rate * (~special).sum(1) + rounding).floor()  # (B,)
    order = order.masked_fill(special, 2)  # behind all others
    rank = order.argsort(1).argsort(1)  # (B, T)
    chosen = ~special & (rank < count[:, None])  # (B, T)

    # Hide them, each as its fate says.
    hidden = chosen & (fate < 0.8)
    swapped = chosen & (fate >= 0.8) & (fate < 0.9)
    inputs = torch.where(hidden, pieces.mask, ids)
    inputs = torch.where(swapped, pieces.ordinary[lots], inputs)
    targets = torch.where(chosen, ids, IGNORE).long()
    return inputs, targets
