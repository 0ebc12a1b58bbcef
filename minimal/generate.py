"""What comes next? Prefill once, then one token at a time out of the cache.

python -m minimal.generate runs/bov "The house" --tokens 60      continue a text with a trained model
"""

import argparse
import sys

import torch


def pick(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """One id a row from logits (B, V). top_k=1, like temperature 0, is argmax."""
    if (
        temperature < 0
        or (top_k is not None and top_k < 1)
        or (top_p is not None and not 0 < top_p <= 1)
    ):
        raise ValueError(
            f"sampling wants temperature >= 0, top_k >= 1, 0 < top_p <= 1; "
            f"got {temperature}, {top_k}, {top_p}"
        )
    if temperature == 0 or top_k == 1:
        return logits.argmax(-1, keepdim=True)  # (B, 1)
    z = logits / temperature
    if top_k is not None and top_k < z.shape[-1]:
        z = z.masked_fill(z < z.topk(top_k).values[..., -1:], -torch.inf)
    if top_p is not None:
        ranked, order = z.softmax(-1).sort(-1, descending=True)
        beyond = ranked.cumsum(-1) - ranked >= top_p  # the token that crosses top_p still counts
        z = z.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return torch.multinomial(z.softmax(-1).cpu(), 1, generator=generator).to(z.device)  # (B, 1)


@torch.inference_mode()
def generate(
    model, ids, tokens, temperature=1.0, top_k=None, top_p=None, seed=0, rings=True, cache=None
):
    """ids (B, T) and `tokens` more of them (B, T + tokens). The model's own windows become rings; a Bank of Values
    model stores no values for its table layers, only the ids."""
    if ids.shape[1] == 0:
        raise ValueError("generation continues a text: give at least one token, for example BOS")
    model.eval()
    chance = torch.Generator().manual_seed(seed)
    cache = cache if cache is not None else model.cache(rings=rings)
    new = ids
    for _ in range(tokens):
        logits = model(new, cache=cache)[:, -1]  # (B, V)
        new = pick(logits, temperature, top_k, top_p, chance)
        ids = torch.cat([ids, new], dim=1)
    return ids


def continue_text(model, tok, text, tokens=100, **how):
    """The same for text."""
    ids = torch.tensor([[tok.bos, *tok.encode(text)]], device=model.device)
    return tok.decode(generate(model, ids, tokens, **how)[0, 1:].tolist())


def main(argv=None):
    from minimal.train import load

    ask = argparse.ArgumentParser(
        prog="python -m minimal.generate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask.add_argument("folder", help="of a run, as named by minimal.train --out")
    ask.add_argument("text")
    for name, kind, default in (
        ("tokens", int, 100),
        ("temperature", float, 1.0),
        ("top_k", int, None),
        ("top_p", float, None),
        ("seed", int, 0),
    ):
        ask.add_argument(f"--{name}", type=kind, default=default)
    asked = vars(ask.parse_args(argv))
    try:
        print(
            continue_text(
                *load(asked.pop("folder")), asked.pop("text"), asked.pop("tokens"), **asked
            )
        )
    except (ValueError, OSError) as error:
        sys.exit(f"generate: {error}")


if __name__ == "__main__":
    main()
