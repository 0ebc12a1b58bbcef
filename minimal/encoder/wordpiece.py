"""What does an encoder learn to guess? WordPiece pieces, and masks that are drawn anew at every step."""

from pathlib import Path

import torch

from minimal.data.files import DataError, digest, once
from minimal.model.init import generator

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

IGNORE = -100  # targets that cost nothing


# ---- pieces -----------------------------------------------------------------------------------------------------
class Pieces:
    """A WordPiece tokenizer, with what packing (minimal.data) and encoding ask of it. A document begins with [SEP]."""

    def __init__(self, raw):
        self.raw, self.vocab = raw, raw.get_vocab_size()
        ids = [raw.token_to_id(token) for token in SPECIALS]
        if None in ids:
            lacks = ", ".join(token for token, id in zip(SPECIALS, ids) if id is None)
            raise DataError(
                f"the vocabulary has no {lacks}: an encoder needs all of {' '.join(SPECIALS)}"
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
    """BERT's pipeline: clean, lower case, no accents; split at spaces and punctuation; the longest piece first."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    raw = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece()
    raw.add_special_tokens([token for token in SPECIALS if token in vocab])
    return raw


def learn_pieces(texts, vocab):
    """An uncased vocabulary of at most `vocab` pieces, learned from a list of texts; the specials are 0 to 4.

    The library numbers the pieces "##x" in the order of a hash table and breaks ties by number, so that the same texts
    give another vocabulary every time (its issue 1794). Named in advance, in order, they always give the same."""
    from tokenizers.trainers import WordPieceTrainer

    raw = uncased({})
    split, plain = raw.pre_tokenizer.pre_tokenize_str, raw.normalizer.normalize_str
    words = {word for text in texts for word, _ in split(plain(text))}
    inner = sorted({"##" + letter for word in words for letter in word[1:]})
    needed = len({letter for word in words for letter in word}) + len(inner) + len(SPECIALS)
    if not words or vocab < needed:
        raise DataError(
            f"a vocabulary of {vocab} for {len(words)} different words: the specials and their letters "
            f"alone take {needed}; give more text or a larger vocabulary"
        )
    trainer = WordPieceTrainer(
        vocab_size=vocab, special_tokens=SPECIALS + inner, show_progress=False
    )
    raw.train_from_iterator(texts, trainer)
    return Pieces(uncased(raw.get_vocab()))


def load_pieces(path):
    """From a tokenizer.json, or from a vocab.txt with one piece a line, as bert-base-uncased has it."""
    from tokenizers import Tokenizer

    path = Path(path)
    if not path.is_file():
        raise DataError(
            f"{path} is not there: wanted a tokenizer.json, or a vocab.txt with one piece a line"
        )
    if path.suffix == ".json":
        return Pieces(Tokenizer.from_file(str(path)))
    with open(
        path, encoding="utf-8"
    ) as file:  # splitlines would also cut at U+2028, which may be a piece
        return Pieces(uncased({line.rstrip("\n"): id for id, line in enumerate(file)}))


def corpus_pieces(corpus, vocab, characters=20_000_000):
    """The vocabulary of a corpus (minimal.data.corpora), learned once from the beginnings of its training documents."""

    def make(folder):
        texts, room = [], characters
        for text in corpus.documents("train"):
            texts.append(text[:room])
            room -= len(texts[-1])
            if room <= 0:
                break
        folder.mkdir()
        learn_pieces(texts, vocab).raw.save(str(folder / "tokenizer.json"))

    return load_pieces(
        once(corpus.folder / f"wordpiece-{vocab}-{characters}", make) / "tokenizer.json"
    )


# ---- masks ------------------------------------------------------------------------------------------------------
def mask(ids, pieces, seed, step, rate=0.15):
    """BERT's masked language modelling on ids (B, T): -> (inputs, targets), a pure function of (seed, step).

    In each row `rate` of the pieces (rounded up or down by lot) are to be guessed; of these 80 % read [MASK], 10 % some
    piece, 10 % themselves, so that an unmasked piece needs a prediction too. Specials are never touched."""
    random = generator(seed, f"mask {step}")
    order, fate = torch.rand(2, *ids.shape, generator=random)  # (B, T) each
    other = pieces.ordinary[
        torch.randint(len(pieces.ordinary), ids.shape, generator=random)
    ]  # (B, T)
    open_ = ~torch.isin(ids, pieces.special)  # (B, T)
    count = (rate * open_.sum(1) + torch.rand(len(ids), generator=random)).floor()  # (B,)
    rank = (
        order.masked_fill(~open_, 2).argsort(1).argsort(1)
    )  # (B, T)  places in a random order, specials last
    chosen = open_ & (rank < count[:, None])  # (B, T)
    inputs = torch.where(chosen & (fate < 0.8), pieces.mask, ids)
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), other, inputs)
    return inputs, torch.where(chosen, ids, IGNORE).long()
