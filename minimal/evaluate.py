"""How many bits does a model need for a byte of text, domain by domain? Bits per byte.

The layout is that of ResFormer's Table 5 (2410.17897); bits per byte instead of nats per token, so
that tokenizers can be compared.

    python -m minimal.evaluate --checkpoint runs/x --domains war-and-peace stdlib --stride 64
"""

import itertools
import math
import os
from pathlib import Path

import torch
import torch.nn.functional as F

from minimal.command import command, number
from minimal.data import results
from minimal.data.corpora import find
from minimal.data.files import DataError
from minimal.data.hub import HUB
from minimal.data.packing import nats_and_bytes
from minimal.data.tokenizer import check_vocab
from minimal.model.loss import rows_at_once
from minimal.train import load
from minimal.training.device import compute_dtype, device


def opened(folder, where="auto"):
    """(model, tokenizer) of a run's folder, in the type that this device computes fastest."""
    where = device(where)
    model, tok = load(folder)
    return model.to(where, compute=compute_dtype(where)), tok


# ---- one text -----------------------------------------------------------------------------------
def passes_over(length, window, stride):
    """(start, scored, end) of every pass over `length` tokens.

    A pass reads `window` tokens (all of a shorter text) and scores those that no pass before it
    scored. So every token but the first is scored once, and after the first pass with at least
    `window - stride + 1` tokens before it.
    """
    if not 0 < stride <= window:
        raise DataError(
            f"stride {stride} with window {window}: wanted 1 to {window}, so that no token is "
            "skipped"
        )
    end = 1
    while end < length:
        scored, end = end, min(length, end + (window if end == 1 else stride))
        yield max(0, end - 1 - window), scored, end


@torch.inference_mode()
def score_text(model, tok, ids, window=None, stride=None):
    """One text as token ids: bits per byte with their standard error over passes, and counts.

    Tokens that stand for no byte (BOS) are read, not counted.
    """
    check_vocab(tok, model.config.vocab)
    model.eval()
    window = model.config.context if window is None else window
    stride = window if stride is None else stride
    passes = list(passes_over(len(ids), window, stride))  # all of one length
    batch = rows_at_once(window, tok.vocab, model.device)
    sums = []  # (nats, bytes, tokens), a pass
    for first in range(0, len(passes), batch):
        some = passes[first : first + batch]
        rows = [ids[start:end] for start, _, end in some]
        rows = torch.tensor(rows, device=model.device)  # (B, T+1)
        logits = model(rows[:, :-1]).float().mT  # (B, V, T)
        nats = F.cross_entropy(logits, rows[:, 1:], reduction="none")  # (B, T)
        for (start, scored, _), row, loss in zip(some, rows, nats):
            target = row[scored - start :]  # (n,)
            found = nats_and_bytes(loss[scored - start - 1 :], target, tok.bytes)
            sums.append((*found, (target != tok.bos).sum().item()))
    nats, size, tokens = (sum(column) for column in zip(*sums)) if sums else (0.0, 0, 0)
    if not size:
        raise DataError("no text to score: give at least one byte after the first token")
    return dict(
        bits_per_byte=nats / size / math.log(2),
        nats_per_token=nats / tokens,
        error=error_of_rate(sums),
        tokens=tokens,
        bytes=size,
        window=window,
        stride=stride,
    )


def error_of_rate(sums):
    """Of the ratio all nats / all bytes, in bits: how far each pass is from the common rate."""
    nats, size = sum(n for n, _, _ in sums), sum(b for _, b, _ in sums)
    count = len(sums)
    if count < 2:
        return None
    distance = math.hypot(*(n - b * nats / size for n, b, _ in sums))
    return distance * math.sqrt(count / (count - 1)) / size / math.log(2)


def uniform(tok, ids):
    """What a model that knows nothing needs: log2 of the vocabulary for every token."""
    lengths = tok.bytes[ids[1:]]
    return float(math.log2(tok.vocab) * (lengths > 0).sum() / lengths.sum())


# ---- several domains ----------------------------------------------------------------------------
def domains(names):
    """(name, corpus) of every domain.

    A corpus that is a mix of domains (slimpajama) becomes one a domain; a folder of texts becomes
    one a file; anything else is itself.
    """
    for name in names:
        if name in HUB and HUB[name].mix:
            for domain in HUB[name].mix:
                yield domain, find(f"{name}:{domain}", tokens=1_000_000)
        elif Path(name).is_dir():
            texts = sorted(Path(name).glob("[!.]*.txt"))
            if not texts:
                raise DataError(f"no .txt in {name}: wanted a folder with a text a domain")
            for path in texts:
                yield path.stem, find(str(path))
        else:
            corpus = find(name)
            yield corpus.name, corpus


def tokens_of(corpus, tok, part="valid", characters=None):
    """A part of a corpus ("train", "valid" or "all") as one stream, BOS before each document."""
    if characters is not None and characters < 1:
        raise DataError(f"characters: wanted a whole number from 1, got {characters}")
    names = [name for name in ("train", "valid") if part in (name, "all")]
    room = math.inf if characters is None else characters
    ids = []
    for text in itertools.chain.from_iterable(corpus.documents(name) for name in names):
        if room <= 0:
            break
        text = text if characters is None else text[:room]
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
        about = dict(domain=name, corpus=corpus.fingerprint, part=part, uniform=uniform(tok, ids))
        rows.append(about | score_text(model, tok, ids, window, stride))
    mean = dict(domain="mean")
    for key in ("bits_per_byte", "nats_per_token", "uniform"):
        mean[key] = sum(row[key] for row in rows) / len(rows)
    for key in ("tokens", "bytes"):
        mean[key] = sum(row[key] for row in rows)
    errors = [row["error"] for row in rows]
    mean["error"] = None if None in errors else math.hypot(*errors) / len(rows)
    return [*rows, mean]


def report(rows):
    """The table in text."""
    lines = [
        f"{'domain':32}{'bits/byte':>11}{'±':>9}{'nats/token':>12}"
        f"{'uniform':>9}{'tokens':>12}{'bytes':>12}"
    ]
    for row in rows:
        error = "-" if row["error"] is None else f"{row['error']:.4f}"
        lines.append(
            f"{row['domain']:32}{row['bits_per_byte']:11.4f}{error:>9}{row['nats_per_token']:12.4f}"
            f"{row['uniform']:9.3f}{row['tokens']:12,}{row['bytes']:12,}"
        )
    return "\n".join([*lines, f"windows of {rows[0]['window']} tokens, stride {rows[0]['stride']}"])


# ---- the command --------------------------------------------------------------------------------
@command("minimal.evaluate", __doc__)
def main(parser, argv):
    positive = number(int, least=1)
    add = parser.add_argument
    add("--checkpoint", required=True, help="a folder written by minimal.train")
    add("--domains", nargs="+", default=["auto"], help="corpora by name, text files, folders")
    add("--part", choices=("valid", "train", "all"), default="valid")
    window = number(int, least=1, most=2**20)
    add("--window", type=window, help="tokens read at once (default: the model's context)")
    add("--stride", type=positive, help="tokens newly scored a window (default: the window)")
    add("--characters", type=positive, help="take no more of a domain than this")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    add("--json", help="evidence file to write")
    asked = parser.parse_args(argv)
    results.check_evidence(asked.json)

    model, tok = opened(asked.checkpoint, asked.device)
    how = asked.part, asked.window, asked.stride, asked.characters
    rows = table(model, tok, domains(asked.domains), *how)
    print(report(rows))
    if asked.json:
        write_evidence(asked.json, asked.checkpoint, rows, " ".join([parser.prog, *argv]))


def write_evidence(path, checkpoint, rows, words):
    """Write the rows as an evidence file; `words` is the command that made them."""
    *each, total = rows
    corpus = dict(
        name=", ".join(row["domain"] for row in each),
        tokens=total["tokens"],
        fingerprint="-".join(row["corpus"] for row in each),
    )
    name = os.path.basename(os.path.normpath(checkpoint))
    head = results.header(f"bits per byte of {name}", words, corpus)
    results.write(path, {**head, "rows": [dict(checkpoint=name, **row) for row in rows]})


if __name__ == "__main__":
    main()
