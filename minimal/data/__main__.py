"""Prepare a corpus and say what it holds.

python -m minimal.data --corpus war-and-peace --vocab 1024 --context 128
"""

import time

from minimal.command import command, number
from minimal.data import corpora
from minimal.data.packing import prepare_text
from minimal.data.tokenizer import SMALLEST


@command("minimal.data", __doc__)
def main(parser, argv):
    positive = number(int, least=1)
    parser.add_argument("--corpus", default="auto", help=", ".join(corpora.known()))
    parser.add_argument(
        "--vocab",
        type=number(int, least=SMALLEST, most=2**20),
        default=1024,
        help="tokens of the vocabulary (%(default)s)",
    )
    parser.add_argument("--context", type=positive, default=128, help="tokens a row (%(default)s)")
    parser.add_argument("--packing", default="stream", help="stream or bestfit")
    parser.add_argument(
        "--tokens",
        type=positive,
        help="training tokens; also how much of a streamed corpus is fetched",
    )
    asked = parser.parse_args(argv)

    start = time.perf_counter()
    made = prepare_text(asked.corpus, asked.vocab, asked.context, asked.packing, asked.tokens)
    seconds = time.perf_counter() - start
    for name, value in description(*made, seconds).items():
        print(f"{name:20}{value}")


def description(corpus, tok, data, seconds):
    """What a corpus holds, in words by name."""
    parts = data.about["train"], data.about["valid"]
    documents, tokens, size = (
        sum(part[name] for part in parts) for name in ("documents", "tokens", "bytes")
    )
    rows = f"{len(data.train):,} / {len(data.held):,}"
    return {
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "characters": f"{corpus.characters:,}",
        "documents": f"{corpus.texts:,} ({documents:,} after the cut)",
        "tokens": f"{tokens:,} of {tok.vocab:,} kinds (tokenizer {tok.fingerprint})",
        "bytes per token": f"{size / (tokens - documents):.3f}",
        "rows train / valid": f"{rows} of {data.context} + 1 (data {data.fingerprint})",
        "seconds": f"{seconds:.1f}",
    }


if __name__ == "__main__":
    main()
