"""Prepare a corpus and say what it holds.

python -m minimal.data --corpus war-and-peace --vocab 1024 --context 128
"""

import argparse
import sys
import time

from minimal.data import corpora
from minimal.data.files import DataError
from minimal.data.packing import pack
from minimal.data.tokenizer import tokenizer


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python -m minimal.data", description="Prepare a corpus and say what it holds."
    )
    ask.add_argument("--corpus", default="auto", help=", ".join(corpora.known()))
    ask.add_argument("--vocab", type=int, default=1024)
    ask.add_argument("--context", type=int, default=128)
    ask.add_argument("--packing", default="stream", help="stream or bestfit")
    ask.add_argument(
        "--tokens", type=int, help="training tokens; also how much of a streamed corpus is fetched"
    )
    ask.add_argument("--mix", help="weights of slimpajama's domains, as C4=.7,Github=.3")
    asked = ask.parse_args(argv)
    start = time.perf_counter()
    try:
        corpus = corpora.find(asked.corpus, asked.tokens, asked.mix)
        tok = tokenizer(corpus, asked.vocab)
        ds = pack(corpus, tok, asked.context, asked.packing, asked.tokens)
    except DataError as error:
        sys.exit(f"data: {error}")
    both = {
        key: ds.about["train"][key] + ds.about["valid"][key]
        for key in ("documents", "tokens", "bytes")
    }
    for name, value in {
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "characters": f"{corpus.characters:,}",
        "documents": f"{corpus.texts:,} ({both['documents']:,} after the cut)",
        "tokens": f"{both['tokens']:,} of {tok.vocab:,} kinds (tokenizer {tok.fingerprint})",
        "bytes per token": f"{both['bytes'] / (both['tokens'] - both['documents']):.3f}",
        "rows train / valid": f"{len(ds.train):,} / {len(ds.held):,} of {ds.context} + 1 (data {ds.fingerprint})",
        "seconds": f"{time.perf_counter() - start:.1f}",
    }.items():
        print(f"{name:20}{value}")


if __name__ == "__main__":
    main()
