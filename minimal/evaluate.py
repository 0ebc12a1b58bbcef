"""How many bits does a model need for a byte of text, domain by domain? (The layout of ResFormer's Table 5, 2410.17897;
bits per byte instead of nats per token, so that tokenizers can be compared.)

    python -m minimal.evaluate --checkpoint runs/x --domains war-and-peace stdlib --window 128 --stride 64
"""

import argparse
import math
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from minimal.data import results
from minimal.data.corpora import find
from minimal.data.files import DataError
from minimal.data.hub import HUB
from minimal.data.packing import nats_and_bytes
from minimal.data.tokenizer import check_vocab
from minimal.training.device import compute_dtype, device

LOGITS = 2**26  # held at once: 256 MB in fp32


def opened(folder, where="auto"):
    """(model, tokenizer) of a training run's folder, in the type that this device computes fastest."""
    from minimal.train import load

    model, tok = load(folder)
    where = device(where)
    return model.to(where, compute=compute_dtype(where)), tok


def windows(length, window, stride):
    """(start, scored, end) of every pass over `length` tokens. A pass reads `window` tokens (all of a shorter text) and
    scores those that no pass before it scored. So every token but the first is scored once, and after the first pass
    with at least `window - stride + 1` tokens before it."""
    if not 0 < stride <= window:
        raise DataError(
            f"stride {stride} with window {window}: wanted 1 to {window}, so that no token is skipped"
        )
    end = 1
    while end < length:
        scored, end = end, min(length, end + (window if end == 1 else stride))
        yield max(0, end - 1 - window), scored, end


@torch.inference_mode()
def bits_per_byte(model, tok, ids, window=None, stride=None):
    """One text as token ids: bits per byte with its standard error over passes, nats per token, and what was counted.
    Tokens that stand for no byte (BOS) are read, not counted."""
    check_vocab(tok, model.config.vocab)
    model.eval()
    window = window or model.config.context
    stride = stride or window
    passes, sums = list(windows(len(ids), window, stride)), []  # all of one length
    batch = max(1, LOGITS // (window * tok.vocab))
    for some in (passes[i : i + batch] for i in range(0, len(passes), batch)):
        rows = torch.tensor(
            [ids[start:end] for start, _, end in some], device=model.device
        )  # (B, T+1)
        nats = F.cross_entropy(
            model(rows[:, :-1]).float().mT, rows[:, 1:], reduction="none"
        )  # (B, T)
        for (start, scored, _), row, loss in zip(some, rows, nats):
            target = row[scored - start :]  # (n,)
            found = nats_and_bytes(loss[scored - start - 1 :], target, tok.bytes)
            sums.append((*found, (target != tok.bos).sum().item()))
    nats, size, tokens = (sum(column) for column in zip(*sums))
    if not size:
        raise DataError("no text to score: give at least one byte after the first token")
    n, off = (
        len(sums),
        math.hypot(*(a - b * nats / size for a, b, _ in sums)),
    )  # each pass against the common rate
    return dict(
        bits_per_byte=nats / size / math.log(2),
        nats_per_token=nats / tokens,
        error=off * math.sqrt(n / (n - 1)) / size / math.log(2) if n > 1 else None,
        tokens=tokens,
        bytes=size,
        window=window,
        stride=stride,
    )


def uniform(tok, ids):
    """What a model that knows nothing needs: log2 of the vocabulary for every token."""
    lengths = tok.bytes[ids[1:]]
    return float(math.log2(tok.vocab) * (lengths > 0).sum() / lengths.sum())


def domains(names):
    """Corpora by domain. A corpus that is a mix of domains (slimpajama) becomes one a domain; a folder of texts becomes
    one a file; anything else is itself."""
    for name in names:
        if name in HUB and HUB[name].mix:
            yield from (
                (domain, find(name, tokens=1_000_000, mix={domain: 1})) for domain in HUB[name].mix
            )
        elif Path(name).is_dir():
            texts = sorted(Path(name).glob("*.txt"))
            if not texts:
                raise DataError(f"no .txt in {name}: wanted a folder with a text a domain")
            yield from ((path.stem, find(str(path))) for path in texts)
        else:
            corpus = find(name)
            yield corpus.name, corpus


def tokens_of(corpus, tok, part="valid", characters=None):
    """A part of a corpus ("train", "valid" or "all") as one stream, BOS before each document."""
    ids, room = [], characters or math.inf
    for text in (
        text
        for name in ("train", "valid")
        if part in (name, "all")
        for text in corpus.documents(name)
    ):
        if room <= 0:
            break
        text = text[:room] if characters else text
        ids += [tok.bos, *tok.encode(text)]
        room -= len(text)
    if len(ids) < 2:
        raise DataError(
            f"{corpus.name} has no {part} text; held-out text starts after 96,000 characters: "
            "say --part all"
        )
    return ids


def table(model, tok, corpora, part="valid", window=None, stride=None, characters=None):
    """One row a domain, and below them their unweighted mean, as in ResFormer's Table 5."""
    rows = []
    for name, corpus in corpora:
        ids = tokens_of(corpus, tok, part, characters)
        rows.append(
            dict(
                domain=name,
                corpus=corpus.fingerprint,
                part=part,
                uniform=uniform(tok, ids),
                **bits_per_byte(model, tok, ids, window, stride),
            )
        )
    mean = {
        key: sum(row[key] for row in rows) / len(rows)
        for key in ("bits_per_byte", "nats_per_token", "uniform")
    }
    total = {key: sum(row[key] for row in rows) for key in ("tokens", "bytes")}
    errors = [row["error"] for row in rows]
    return rows + [
        dict(
            domain="mean",
            **mean,
            **total,
            error=None if None in errors else math.hypot(*errors) / len(rows),
        )
    ]


def report(rows):
    lines = [
        f"{'domain':32}{'bits/byte':>11}{'±':>9}{'nats/token':>12}{'uniform':>9}{'tokens':>12}{'bytes':>12}"
    ]
    for row in rows:
        error = "-" if row["error"] is None else f"{row['error']:.4f}"
        lines.append(
            f"{row['domain']:32}{row['bits_per_byte']:11.4f}{error:>9}{row['nats_per_token']:12.4f}"
            f"{row['uniform']:9.3f}{row['tokens']:12,}{row['bytes']:12,}"
        )
    return "\n".join(lines + [f"windows of {rows[0]['window']} tokens, stride {rows[0]['stride']}"])


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python -m minimal.evaluate", description="Bits per byte by domain."
    )
    ask.add_argument("--checkpoint", required=True, help="a folder written by minimal.train")
    ask.add_argument(
        "--domains",
        nargs="+",
        default=["auto"],
        help="corpora by name, text files, folders of them",
    )
    ask.add_argument("--part", choices=("valid", "train", "all"), default="valid")
    ask.add_argument(
        "--window", type=int, help="tokens read at once (default: the model's context)"
    )
    ask.add_argument(
        "--stride", type=int, help="tokens newly scored a window (default: the window)"
    )
    ask.add_argument("--characters", type=int, help="take no more of a domain than this")
    ask.add_argument("--device", default="auto")
    ask.add_argument("--json", help="evidence file to write")
    asked = ask.parse_args(argv)
    try:
        model, tok = opened(asked.checkpoint, asked.device)
        rows = table(
            model,
            tok,
            domains(asked.domains),
            asked.part,
            asked.window,
            asked.stride,
            asked.characters,
        )
    except ValueError as error:
        sys.exit(f"evaluate: {error}")
    print(report(rows))
    if asked.json:
        words = " ".join(["python -m minimal.evaluate", *(sys.argv[1:] if argv is None else argv)])
        corpus = dict(
            name=", ".join(row["domain"] for row in rows[:-1]),
            tokens=rows[-1]["tokens"],
            fingerprint="-".join(row["corpus"] for row in rows[:-1]),
        )
        name = os.path.basename(os.path.normpath(asked.checkpoint))
        head = results.header(f"bits per byte of {name}", words, corpus)
        results.write(asked.json, {**head, "rows": [dict(checkpoint=name, **row) for row in rows]})


if __name__ == "__main__":
    main()
