"""What comes next? Prefill once, then one token at a time out of the cache.

python -m minimal.generate runs/bov "The house" --tokens 60      continue a text with a model
"""

import argparse
import numbers

import torch

from minimal.callable import call_as
from minimal.command import command, number
from minimal.kernels.route import worth_storing
from minimal.model import checks
from minimal.model.cache import Cache
from minimal.model.still import StillStep, Tried
from minimal.model.transformer import GPT

COLDEST = 1e-6  # below it, logits divided by the temperature overflow

# Of a text, scores are formed for so many of the last positions. One of them is chosen from; but a
# product over few rows rounds otherwise than one over many: on a CPU these keep its last bits.
SCORED = 16


def pick(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """One id a row from logits (B, V). top_k=1, like temperature 0, is argmax."""
    check_dials(temperature, top_k, top_p)
    check_logits(logits)
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return choose(logits, temperature, top_k, top_p, noise)


def choose(logits, temperature, top_k, top_p, noise):
    """pick() without a look at anything, so that a CUDA graph may hold it (B, 1).

    x with the largest p(x) / e(x), where e is exponential noise, comes with the chance p(x); it is
    what torch.multinomial draws from the same generator."""
    if temperature == 0 or top_k == 1:
        return logits.argmax(-1, keepdim=True)
    z = logits / temperature
    # the k best
    if top_k is not None and top_k < z.shape[-1]:
        worst = z.topk(top_k).values[..., -1:]  # (B, 1)
        z = z.masked_fill(z < worst, -torch.inf)
    # the fewest that reach top_p together; the token that crosses it still counts
    if top_p is not None:
        ranked, order = z.softmax(-1).sort(-1, descending=True)
        beyond = ranked.cumsum(-1) - ranked >= top_p  # (B, V), by rank
        z = z.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return z.softmax(-1).div(noise).argmax(-1, keepdim=True)


def check_dials(temperature, top_k, top_p):
    warm = isinstance(temperature, numbers.Real) and (temperature == 0 or temperature >= COLDEST)
    few = top_k is None or (isinstance(top_k, numbers.Integral) and top_k >= 1)
    likely = top_p is None or 0 < top_p <= 1
    if not (warm and few and likely):
        raise ValueError(
            f"sampling wants temperature >= 0 (0, or at least {COLDEST:g}), top_k >= 1, "
            f"0 < top_p <= 1; got {temperature}, {top_k}, {top_p}"
        )


def check_logits(logits):
    """Every row needs a largest number. A GPU is not asked, it would have to be waited for."""
    if checks.may_look(logits):
        best = logits.amax(-1)  # (B,); nan wherever a row holds one
        if not best.isfinite().all():
            wrong = best[~best.isfinite()][0].item()
            raise ValueError(f"logits: wanted numbers, got {wrong}: has the training diverged?")


@call_as
@torch.inference_mode()
def generate(
    model: GPT,
    ids: torch.Tensor,
    tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    rings: bool = True,
    cache: Cache | None = None,
    slide: bool = False,
    compiled: bool | None = None,
) -> torch.Tensor:
    """ids (B, T) and `tokens` more of them (B, T + tokens).

    The model's own windows become rings. For a long text a Bank of Values model stores no values
    for its table layers, only the ids; a short one is read faster where they are stored. The cache
    is laid out once, so no step copies what is kept.

    Beyond the trained context a layer without a window still sees every token, at distances that
    training never showed it. With `slide` it sees the last `context` tokens besides the one that
    asks, as in nanochat: up to there nothing changes, and the cache stops growing. Learned
    positions end with the context either way.

    `compiled`: a step whose shapes stay the same, compiled on a CPU, which takes a minute, or
    recorded as a CUDA graph on a GPU. The same tokens come out. None: a GPU tries both.
    """
    checks.tokens(ids, model.config.vocab)
    checks.whole_number("tokens", tokens, 0)
    check_dials(temperature, top_k, top_p)
    if ids.shape[1] == 0:
        raise ValueError("generation continues a text: give at least one token, for example BOS")
    model.eval()
    if cache is None:
        room = ids.shape[1] + tokens
        # a compiler's work serves all caches of one shape: a power of two, so that there are few
        room = 1 << (room - 1).bit_length() if compiled else room
        cache = model.cache(room, rings, stores(model, len(ids), room))
    windows, dials = context_windows(model) if slide else None, (temperature, top_k, top_p)
    writer = Writer(model, cache, windows, dials)
    chance = torch.Generator(model.device).manual_seed(seed)
    said = [ids]
    for done in range(tokens):
        step = writer.passes if done == 0 else writer.way(compiled)
        said.append(step(said[-1], writer.noise(len(ids), chance)))
    return torch.cat(said, dim=1)


def stores(model, texts, room):
    """Does a cache with room for so many tokens of so many texts store rows of tables, too?"""
    numbers = model.config.groups * model.config.head  # of one position's values
    return worth_storing(texts * room, numbers, model.device.type)


class Writer:
    """The next token of texts, in two ways that give the same: a pass, or a step that stays still.

    Each call keeps the ids that it is given and answers with the next ones (B, 1)."""

    def __init__(self, model, cache, windows, dials):
        self.model, self.cache, self.windows, self.dials = model, cache, windows, dials
        self.then = None  # how the tokens after the first are made

    def noise(self, texts, chance):
        """Exponential noise (B, V), or None where nothing is left to chance: see choose."""
        temperature, top_k, _ = self.dials
        if temperature == 0 or top_k == 1:
            return None
        noise = torch.empty(texts, self.model.config.vocab, device=self.model.device)
        return noise.exponential_(generator=chance)

    def choose(self, logits, noise):
        return choose(logits, *self.dials, noise)

    def passes(self, ids, noise):
        tape = self.model.tape(ids, self.cache, self.windows)
        x = self.model.hidden(ids, tape)[:, -SCORED:]  # (B, up to SCORED, C)
        logits = self.model.logits(x)[:, -1]  # (B, V)
        check_logits(logits)
        return self.choose(logits, noise)

    def way(self, compiled):
        """As asked; unasked, passes on a CPU, and on a GPU what is faster in the beginning."""
        if self.then is None:
            self.then = self.chosen(compiled)
        return self.then

    def chosen(self, compiled):
        on_gpu, laid_out = self.model.device.type == "cuda", self.cache.capacity is not None
        if compiled and not laid_out:
            raise ValueError(
                "compiled: wanted a cache that is laid out, got one that grows: give it a capacity"
            )
        if compiled is False or not laid_out or not (compiled or on_gpu):
            return self.passes
        compiled_in = self.dials if compiled else ()
        still = StillStep(self.model, self.cache, self.windows, self.choose, compiled_in)
        return still if compiled else Tried(still, self.passes)


def context_windows(model):
    """Keys to the left by layer where no layer sees farther back than the context."""
    context = model.config.context
    return [min(window or context, context) for window in model.windows]


def continue_text(model, tok, text, tokens=100, **how):
    """The same for text."""
    ids = torch.tensor([[tok.bos, *tok.encode(text)]], device=model.device)
    return tok.decode(generate(model, ids, tokens, **how)[0, 1:].tolist())


@command("minimal.generate", __doc__)
def main(parser, argv):
    from minimal.train import load

    add = parser.add_argument
    add("folder", help="of a run, as named by minimal.train --out")
    add("text", type=prompt)
    add("--tokens", type=number(int, least=0, most=2**20), default=100)
    add("--temperature", type=number(float, least=0), default=1.0)
    add("--top_k", type=number(int, least=1))
    add("--top_p", type=number(float, above=0, most=1))
    add("--seed", type=number(int, least=0, most=2**63 - 1), default=0)
    add(
        "--slide",
        action="store_true",
        help="beyond the trained context, see only the last context tokens (nanochat's way); "
        "without it every token, at distances that training never showed",
    )
    parser.add_argument(
        "--compiled",
        action=argparse.BooleanOptionalAction,
        help="a step whose shapes stay the same: compiled on a CPU, which takes half a minute and "
        "pays from some thousand tokens on, recorded as a CUDA graph on a GPU; unasked, a GPU "
        "tries both ways and keeps the faster",
    )
    asked = vars(parser.parse_args(argv))
    model, tok = load(asked.pop("folder"))
    print(continue_text(model, tok, asked.pop("text"), **asked))


def prompt(text):
    """The type of a text on the command line, where bytes that are no UTF-8 come as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(
            f"wanted a text in UTF-8, got {ascii(text)[:60]}: convert it"
        ) from None
    return text


if __name__ == "__main__":
    main()
