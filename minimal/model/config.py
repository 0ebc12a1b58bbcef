"""How large is the model, and in what style are its blocks built? Configs, styles, sizes."""

import math
from dataclasses import asdict, dataclass, fields, replace

from minimal.model import checks


# ---- styles -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Style:
    """One family's habits: everything that is neither size nor the value path."""

    name: str
    norm: str = "plain"  # plain (no weights) | rms | layer
    eps: float | None = None
    post: bool = False  # BERT: norm after the residual sum
    attention_norm: bool = True  # modded: attention reads the un-normalised stream
    embed_norm: bool = True
    positions: str = "rope"  # rope | half-rope | learned
    rope_base: float = 100_000.0
    mlp: str = "relu2"  # relu2 | swiglu | gelu
    qkv_bias: bool = False
    bias: bool = False  # W_O and MLP
    qk_norm: float | None = 1.2  # gain after the norm of q and k; None = no norm
    value_norm: bool = False
    scale: float | None = None  # None = 1 / sqrt(D)
    softcap: str | None = "tanh"  # 15 tanh(z/15) | "isru" 15 z / sqrt(z^2 + 225) | None
    causal: bool = True
    init: str = "nanochat"
    pad_embed: bool = True  # the embedding, like the head, is padded to a multiple of 64 rows
    pad_head: bool = True

    def attention_scale(self, head):
        """What multiplies q . k: 1/sqrt(D), and both gains of the QK norm, at no cost."""
        return self.scale or (self.qk_norm or 1.0) ** 2 / math.sqrt(head)

    def logit_bound(self, head):
        """The largest |score| that QK norm allows: |q| = |k| = sqrt(D); None without the norm."""
        return None if self.qk_norm is None else head * self.attention_scale(head)


NANOCHAT = Style("nanochat")

LLAMA = Style(
    "llama",
    norm="rms",
    eps=1e-5,
    embed_norm=False,
    rope_base=10_000.0,
    mlp="swiglu",
    qk_norm=None,
    softcap=None,
    init="normal",
    pad_embed=False,
    pad_head=False,
)

# without GPT-2's biases of q, k and v; its GELU is the exact one: see layers.MLP
GPT2 = Style(
    "gpt2",
    norm="layer",
    eps=1e-5,
    embed_norm=False,
    positions="learned",
    mlp="gelu",
    bias=True,
    qk_norm=None,
    softcap=None,
    init="normal",
    pad_embed=False,
    pad_head=False,
)

MODDED = Style(
    "modded",
    attention_norm=False,
    positions="half-rope",
    rope_base=1024.0,
    qk_norm=1.0,
    value_norm=True,
    scale=0.12,
    softcap="isru",
    init="modded",
    pad_embed=False,
)

BERT = Style(
    "bert",
    norm="layer",
    eps=1e-12,
    post=True,
    positions="learned",
    mlp="gelu",
    qkv_bias=True,
    bias=True,
    qk_norm=None,
    softcap=None,
    causal=False,
    init="normal",
    pad_embed=False,
    pad_head=False,
)

# Two controls: matrices that start at 1/sqrt(fan-in), since 0.02 is a smaller start for narrower
# models, and an embedding that enters the stream at unit size, as nanochat's does.
LLAMA_FAN_IN = replace(LLAMA, name="llama-fan-in", init="fan-in")
LLAMA_LOUD = replace(LLAMA, name="llama-loud", embed_norm=True)

ALL_STYLES = (NANOCHAT, LLAMA, GPT2, MODDED, BERT, LLAMA_FAN_IN, LLAMA_LOUD)
STYLES = {style.name: style for style in ALL_STYLES}


def style_named(style):
    """A Style by its name, as it is, or as JSON carries it (a dict of its fields)."""
    if isinstance(style, Style):
        return style
    if isinstance(style, dict):
        return Style(**style)
    if style not in STYLES:
        decoders = [name for name, known in STYLES.items() if known.causal]
        raise ValueError(
            f"unknown style {style!r}: wanted one of {', '.join(decoders)} "
            "(an encoder's is bert, see minimal.encoder)"
        )
    return STYLES[style]


# ---- configs ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Config:
    """One dial a line. `groups` (key/value heads) and `style` are orthogonal to every plan."""

    layers: int
    width: int
    heads: int
    context: int
    vocab: int
    groups: int | None = None  # key/value heads; None becomes `heads`
    hidden: int | None = None  # MLP width; None = 4 width
    style: Style | str = "nanochat"  # a name is enough: here it becomes the Style
    windows: str | tuple[int, ...] = "SSSL"  # a pattern, or keys to the left by layer (0 = all)
    smear: bool = False
    dropout: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "style", style_named(self.style))
        if self.groups is None:
            object.__setattr__(self, "groups", self.heads)
        checks.config(self)
        if isinstance(self.windows, list):  # as JSON carries them
            object.__setattr__(self, "windows", tuple(self.windows))

    @property
    def head(self):
        """Features a head."""
        return self.width // self.heads

    @property
    def mlp_width(self):
        return self.hidden or 4 * self.width

    def padded(self, pad=True):
        """Rows of an embedding or a head: the vocabulary, up to a multiple of 64."""
        return -(-self.vocab // 64) * 64 if pad else self.vocab

    def window_pattern(self):
        """The pattern, or the widths, repeated until every layer has one."""
        return [self.windows[at % len(self.windows)] for at in range(self.layers)]

    def window_sizes(self):
        """Keys to the left by layer, 0 = all.

        "S" is a quarter of the context rounded up to 128; in a pattern the last layer is always
        long (Bank of Values, base model).
        """
        pattern = self.window_pattern()
        if not isinstance(self.windows, str):
            return pattern
        short = -(-self.context // 4 // 128) * 128
        if short >= self.context:
            return [0] * self.layers
        sizes = [short if letter == "S" else 0 for letter in pattern]
        sizes[-1] = 0
        return sizes

    def long_layers(self):
        """Which layers a schedule of windows treats as long: those without one, and the last."""
        long = [window in ("L", 0) for window in self.window_pattern()]
        long[-1] = True
        return long

    def but(self, **changes):
        """The same, with changes; heads that are not grouped stay so."""
        checks.names_of_changes(changes, [entry.name for entry in fields(self)])
        return replace(self, **self.ungrouped() | changes)

    def ungrouped(self):
        """{groups: None} where every head has keys and values of its own."""
        return dict(groups=None) if self.groups == self.heads else {}

    def stored(self):
        """Its fields as files have them, from which Config(**fields) makes it again."""
        return asdict(self) | self.ungrouped()


# ---- sizes ------------------------------------------------------------------------------------
def _depth(layers, **more):
    """nanochat's one dial: width = 64 * depth rounded up to 128, heads of 128."""
    width = -(-64 * layers // 128) * 128
    return Config(layers, width, width // 128, 2048, 32768, **more)


def _llama(layers, width, heads, hidden):
    return Config(layers, width, heads, 2048, 50277, hidden=hidden, style="llama", windows="L")


def _bert(layers, width, heads):
    return Config(layers, width, heads, 512, 30522, style="bert", windows="L", dropout=0.1)


def _modded():
    windows = "LSSSLSSSSSSLSSSL"
    return Config(16, 1024, 8, 65536, 50257, style="modded", windows=windows)


SIZES = {
    # mechanics, the course, and its GPU runs: layers, width, heads, context, vocab
    "smoke": Config(2, 32, 2, 64, 512),
    "nano": Config(4, 64, 2, 128, 1024),
    "tiny": Config(12, 64, 2, 128, 1024),
    "wide": Config(6, 128, 2, 128, 2048),
    "small-gpu": Config(12, 384, 6, 1024, 8192),
    # Bank of Values
    "d12": _depth(12),
    "d24": _depth(24),
    # ResFormer: layers, width, heads, MLP width
    "llama-2m": _llama(4, 16, 2, 56),
    "llama-82m": _llama(8, 512, 8, 1792),
    "llama-180m": _llama(12, 768, 12, 2688),
    "llama-468m": _llama(24, 1024, 16, 3584),
    # dynamic value attention
    "gpt2": Config(12, 768, 12, 256, 50257, style="gpt2", windows="L"),
    # modded-nanogpt, the medium track
    "modded-medium": _modded(),
    # the BERT bypass: layers, width, heads
    "bert-4l": _bert(4, 256, 4),
    "bert-6l": _bert(6, 384, 6),
    "bert-8l": _bert(8, 512, 8),
    "bert-base": _bert(12, 768, 12),
}


def size(name, **changes):
    """A size by name or as it is, with changes: size("tiny", vocab=512)."""
    if isinstance(name, Config):
        return name.but(**changes)
    if name not in SIZES:
        raise ValueError(f"unknown size {name!r}: one of {', '.join(SIZES)}")
    return SIZES[name].but(**changes)
