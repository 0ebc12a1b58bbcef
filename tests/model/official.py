"""How are our weights put into the public code? It is loaded where it lies, each parameter of ours
is paired with its place there, and none of that code is kept here."""

import __future__

import importlib
import math
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

REPOSITORIES = {
    "nanochat": "RiddleHe/nanochat, branch research/bank_of_values, commit bee6dac",
    "DenseFormer": "epfml/DenseFormer, commit c99a623",
    "modded-nanogpt": "KellerJordan/modded-nanogpt, commit 06743860",
    "Value-Residual-Learning": "Zcchill/Value-Residual-Learning, commit 95652f6",
    "karpathy-nanochat": "karpathy/nanochat, commit 92d63d4",
    "MUDDFormer": "Caiyun-AI/MUDDFormer, commit fc067b2",
    "ExoFormer": "jon123boss/ExoFormer, commit 1f08c67",
}


def checkout(name):
    """The folder of one repository, or a skip that says what belongs there."""
    folder = Path(os.environ["MINIMAL_OFFICIAL"]).expanduser().resolve() / name
    if not folder.is_dir():
        pytest.skip(
            f"MINIMAL_OFFICIAL has no folder {name}: a checkout of {REPOSITORIES[name]} "
            "would be compared"
        )
    return folder


@cache
def imported(folder, name):
    """A module of a checkout, in fp32 where it asks; sys.path and sys.modules are left as they
    were."""
    before, dtype = set(sys.modules), os.environ.get("NANOCHAT_DTYPE")
    os.environ["NANOCHAT_DTYPE"] = "float32"
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        os.environ.pop("NANOCHAT_DTYPE") if dtype is None else os.environ.update(
            NANOCHAT_DTYPE=dtype
        )
        for added in set(sys.modules) - before:
            if str(getattr(sys.modules[added], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[added]


def executed(file, start, end, **names):
    """The part of a script from the line that starts with `start` to the one that starts with
    `end`, run among `names`: scripts that want eight GPUs on import hold modules that do not."""
    text = file.read_text()
    part = text[text.index(f"\n{start}") : text.index(f"\n{end}")]
    part = (
        "\n" * text[: text.index(part)].count("\n") + part
    )  # so that tracebacks name the right lines
    exec(compile(part, str(file), "exec", flags=__future__.annotations.compiler_flag), names)
    return SimpleNamespace(**names)


@dataclass
class Pair:
    """One parameter of ours and its place in theirs: a whole tensor, or its entry or rows `at`."""

    name: str
    ours: nn.Parameter
    whole: nn.Parameter
    at: int | slice | None = None
    sign: torch.Tensor | float = 1.0  # their convention, where it differs by signs

    def seen(self, tensor):
        """Their tensor (a parameter or its gradient) as ours would be."""
        return (tensor if self.at is None else tensor[self.at]).reshape(self.ours.shape) * self.sign

    @torch.no_grad()
    def put(self):
        there = self.whole if self.at is None else self.whole[self.at]
        there.copy_((self.ours * self.sign).reshape(there.shape))


def paired(ours, theirs, rules, sign=None):
    """Every parameter of ours with its place in theirs, and the names in theirs that have no
    partner. A rule is (pattern, replacement); a name that ends in "/3" is entry 3 of a tensor."""
    there, pairs = dict(theirs.named_parameters()), []
    for name, p in ours.named_parameters():
        place = name
        for pattern, replacement in rules:
            place = re.sub(pattern, replacement, place)
        place, _, at = place.partition("/")
        assert place in there, f"{name} should be {place} there"
        pairs.append(
            Pair(name, p, there[place], int(at) if at else None, sign(name) if sign else 1.0)
        )
    return pairs, there.keys() - {
        name for name, p in there.items() if any(p is pair.whole for pair in pairs)
    }


# Bank of Values and nanochat.

NANOCHAT = [
    (r"^embed", "transformer.wte"),
    (r"^head", "lm_head"),
    (r"^banks", "value_embeds"),
    (r"^blocks", "transformer.h"),
    (r"^smear\.gate", "smear_gate"),
    (r"^smear\.weight\.value", "smear_lambda"),
    (r"mlp\.up", "mlp.c_fc"),
    (r"mlp\.down", "mlp.c_proj"),
    (r"attention\.query\.project", "attn.c_q"),
    (r"attention\.key\.project", "attn.c_k"),
    (r"attention\.value\.([xy]\.)?project", "attn.c_v"),
    (r"attention\.value\.gate", "attn.ve_gate"),
    (r"attention\.value\.gain\.value", "attn.gamma_v"),
    (r"attention\.value\.a\.value", "attn.alpha_v"),
    (r"attention\.value\.b\.value", "attn.beta_v"),
    (r"attention\.out", "attn.c_proj"),
    (r"^streams\.0\.residual\.(\d+)\.value", r"resid_lambdas/\1"),
    (r"^streams\.0\.x0\.(\d+)\.value", r"x0_lambdas/\1"),
    (r"^streams\.1\.weight\.value", "backout_lambda"),
]


def nanochat(Config, Model, config, device="cpu", **flags):
    """Their model for a size of ours: built without storage, then given some, as their trainer
    does."""
    with torch.device("meta"):
        model = Model(
            Config(
                sequence_len=config.context,
                vocab_size=config.vocab,
                n_layer=config.layers,
                n_head=config.heads,
                n_kv_head=config.groups,
                n_embd=config.width,
                **flags,
            )
        )
    if device != "meta":
        model.to_empty(device=device)
        model.init_weights()
    return model


def nanochat_pairs(ours, theirs):
    shared = (
        [(r"^banks\.shared", f"banks.{min(theirs.value_embeds, key=int)}")]
        if "shared" in ours.banks
        else []
    )
    return paired(ours, theirs, shared + NANOCHAT)


def nanochat_cache(config, rows, length):
    """Their cache for decoding, out of a file that wants a GPU's tools beside it."""
    file = checkout("nanochat") / "nanochat" / "engine.py"
    code = executed(file, "class KVCache", "@torch.inference_mode()", torch=torch)
    kv, head, layers = config.groups, config.head, config.layers
    return code.KVCache(rows, kv, length, head, layers, device="cpu", dtype=torch.float32)


# Our plan: the name in their registry, or flags of their base model that no name covers.
REGISTRY = dict(
    standard="gpt_base",
    gqa="gpt_base",
    mqa="gpt_base",
    row1="gpt_base",
    row2="gpt_base_v_scale_learn",
    row3="gpt_base_v_from_v1_every_layer",
    row4="gpt_base_v_from_v1_learn_every2",
    row5="gpt_base_v_from_v1",
    row6="gpt_base_v_from_v1_learn",
    row7="gpt_base_v_from_x0_learn_every2",
    row8="gpt_base_v_from_x0",
    row9="gpt_base_v_from_x0_learn",
    row10="gpt_base_add_init_v",
    row11="gpt_base_add_init_v_learn",
    row12="gpt_base_add_init_res_v",
    row13="gpt_base_add_init_res_v_learn",
    bov="gpt_base_v_from_value_emb_learn",
    vplus="gpt_base_add_init_value_emb_nanogpt_every2",
    svformer="gpt_base_v_from_v1_every_layer",
    resformer=dict(add_init_v=True, on_every_layer=True),
    **{
        "bov-fixed": "gpt_base_v_from_value_emb",
        "bov-shared": "gpt_base_v_from_value_emb_learn_shared",
        "bov-every": "gpt_base_v_from_value_emb_learn_every_layer",
        "bov-keep": "gpt_base_add_init_value_emb_learn",
        "bov-alternate": "gpt_base_v_from_value_emb_learn_every2",
        "bov-half": "gpt_base_v_from_value_emb_learn_second_half",
        "bov-gqa": "gpt_base_v_from_value_emb_learn",
        "x0-detach": dict(v_from_x0=True, learn_init_coeffs=True, detach_init_value=True),
        "x0-v": dict(v_from_x0=True, on_every_layer=True),
        "xsa": dict(v_exclude_self=True, on_every_layer=True),
        "xsa-x0": dict(v_exclude_self=True, v_from_x0=True, on_every_layer=True),
    },
)


def bank_of_values(plan, config, device="cpu"):
    """Their model of this plan, in this size."""
    name = REGISTRY.get(plan, "gpt")
    flags = name if isinstance(name, dict) else {}
    registry = imported(checkout("nanochat"), "nanochat.model_registry")
    return nanochat(*registry.get_model("gpt_base" if flags else name), config, device, **flags)


def trainer(steps):
    """Their trainer's defaults and its three schedules, out of a script that trains when it is
    imported."""
    file = checkout("nanochat") / "scripts" / "base_train.py"
    found = re.findall(
        r'add_argument\("--([a-z-]+)", type=(?:int|float), default=([0-9.e-]+)', file.read_text()
    )
    args = SimpleNamespace(**{name.replace("-", "_"): float(value) for name, value in found})
    return args, executed(
        file,
        "def get_lr_multiplier(",
        "# Training loop",
        args=args,
        math=math,
        num_iterations=steps,
        weight_decay_scaled=args.weight_decay,
    )


def their_optimizer(other, args, tokens=2**19, smaller=1.0):
    """As their trainer makes it: rates by the root of the batch, Muon's decay by d12's share of the
    size, too."""
    factor = math.sqrt(tokens / 2**19)
    return other.setup_optimizer(
        unembedding_lr=args.unembedding_lr * factor,
        embedding_lr=args.embedding_lr * factor,
        scalar_lr=args.scalar_lr * factor,
        matrix_lr=args.matrix_lr * factor,
        weight_decay=args.weight_decay * factor * smaller,
    )


# modded-nanogpt, the medium track.


class OnCpuInFp32(TorchFunctionMode):
    """Their script writes "cuda" and bf16 into the modules; here both are undone, and the logits
    are overheard."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.bfloat16:
            return args[0]
        if kwargs.get("device") == "cuda":
            kwargs = kwargs | dict(device="cpu")
        if func is F.cross_entropy:
            self.logits = args[0]
        return func(*args, **kwargs)


def masked(q, k, v, block_mask, scale):
    """What their flex_attention computes, with the mask written out: blocks that are visible, then
    the rule inside."""
    tile, n = block_mask.BLOCK_SIZE[0], torch.arange(q.shape[-2])
    blocks = (
        block_mask.to_dense()[0, 0].bool().repeat_interleave(tile, 0).repeat_interleave(tile, 1)
    )  # (T, T)
    return F.scaled_dot_product_attention(
        q, k, v, blocks & block_mask.mask_mod(0, 0, n[:, None], n[None]), scale=scale
    )


@cache
def modded(folder):
    from torch.nn.attention.flex_attention import BlockMask

    try:
        return executed(
            folder / "train_gpt_medium.py",
            "def norm(",
            "def _load_data_shard(",
            torch=torch,
            nn=nn,
            F=F,
            Tensor=torch.Tensor,
            BlockMask=BlockMask,
            flex_attention=masked,
        )
    except NameError as error:
        wanted = REPOSITORIES["modded-nanogpt"]
        pytest.fail(f"{folder} does not run ({error}): wanted {wanted}")


def scalar(kind, of):
    """Where the one tensor of scalars keeps what we name apart: 16 skips, then (x, x0), then (own,
    table) by layer."""
    first, step = dict(skip=(0, 1), x=(16, 2), x0=(17, 2), own=(48, 2), table=(49, 2))[kind]
    return lambda found: f"scalars/{first + step * of(int(found[1]))}"


def modded_rules(skips):
    same = lambda at: at
    return [
        (r"^banks\.ve", "value_embeds."),
        (r"^head\.weight", "lm_head_w"),
        (r"mlp\.up\.weight", "mlp.fc_w"),
        (r"mlp\.down\.weight", "mlp.proj_w"),
        (r"attention\.query\.project\.weight", "attn.qkvo_w/0"),
        (r"attention\.key\.project\.weight", "attn.qkvo_w/1"),
        (r"attention\.value\.(?:x\.)?project\.weight", "attn.qkvo_w/2"),
        (r"attention\.out\.weight", "attn.qkvo_w/3"),
        (r"^streams\.0\.weight\.(\d+)\.value", scalar("skip", skips.get)),
        (r"^streams\.1\.residual\.(\d+)\.value", scalar("x", same)),
        (r"^streams\.1\.x0\.(\d+)\.value", scalar("x0", same)),
        (r"^blocks\.(\d+)\.attention\.value\.(?:gain|a)\.value", scalar("own", same)),
        (r"^blocks\.(\d+)\.attention\.value\.b\.value", scalar("table", same)),
    ]


# ResFormer's Llama: their layers, in a frame of ours, so that no version of transformers is needed.

LLAMA = [
    (r"^blocks", "layers"),
    (r"norm1", "input_layernorm"),
    (r"norm2", "post_attention_layernorm"),
    (r"attention\.query\.project", "self_attn.q_proj"),
    (r"attention\.key\.project", "self_attn.k_proj"),
    (r"attention\.(?:value|value\.x)\.project", "self_attn.v_proj"),
    (r"attention\.out", "self_attn.o_proj"),
    (r"mlp\.gate", "mlp.gate_proj"),
    (r"mlp\.up", "mlp.up_proj"),
    (r"mlp\.down", "mlp.down_proj"),
]


def frequencies(config, device=None):
    rates = config.rope_theta ** (-torch.arange(0, config.head_dim, 2) / config.head_dim)  # (D/2,)
    return rates, 1.0


@cache
def llama_code(file):
    return executed(
        file,
        "class LlamaRMSNorm",
        "LLAMA_START_DOCSTRING",
        torch=torch,
        nn=nn,
        F=F,
        math=math,
        ALL_LAYERNORM_LAYERS=[],
        ACT2FN=dict(silu=F.silu),
        ROPE_INIT_FUNCTIONS=dict(default=frequencies),
    )


class Llama(nn.Module):
    """Embedding, their decoder layers one after the other, their norm, head."""

    def __init__(self, file, config):
        super().__init__()
        code = llama_code(file)
        size = SimpleNamespace(
            hidden_size=config.width,
            num_attention_heads=config.heads,
            num_key_value_heads=config.groups,
            head_dim=config.head,
            intermediate_size=config.mlp_width,
            max_position_embeddings=config.context,
            rope_theta=10000.0,
            rope_scaling=None,
            attention_dropout=0.0,
            attention_bias=False,
            mlp_bias=False,
            pretraining_tp=1,
            rms_norm_eps=1e-5,
            hidden_act="silu",
            _attn_implementation="eager",
        )
        self.embed = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList(code.LlamaDecoderLayer(size, at) for at in range(config.layers))
        self.norm = code.LlamaRMSNorm(config.width, eps=1e-5)
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        self.rotary = code.LlamaRotaryEmbedding(config=size)

    def forward(self, ids):
        x, places = self.embed(ids), torch.arange(ids.shape[1])[None]  # (B, T, C), (1, T)
        later = torch.full((1, 1, ids.shape[1], ids.shape[1]), -torch.inf).triu(1)
        how = dict(
            attention_mask=later, position_embeddings=self.rotary(x, places), formal_layer_values=[]
        )
        for layer in self.layers:
            x, *_ = layer(x, **how)
            x = (
                x[0] if isinstance(x, tuple) else x
            )  # the baseline returns no list of values beside its output
        return self.head(self.norm(x))


def turned(config):
    """Llama turns queries and keys the other way round: the same scores, once half of each head's
    rows change sign."""
    half = torch.tensor([1.0, -1.0]).repeat_interleave(config.head // 2)[:, None]  # (D, 1)
    heads = dict(query=config.heads, key=config.groups)

    def sign(name):
        found = re.search(r"attention\.(query|key)\.project", name)
        return half.repeat(heads[found[1]], 1) if found else 1.0

    return sign


def mudd(file, width, layer):
    """Their block that makes and applies the weights of all streams so far, for one way out of
    four. It asks einops for one regrouping, which is spelled out here."""
    part = executed(
        file, "class RMSnormNoscale", "def precompute_freqs_cis", nn=nn, torch=torch
    ).RMSnormNoscale
    names = dict(
        nn=nn,
        Tensor=torch.Tensor,
        MUDDFormerConfig=object,
        RMSnormNoscale=part,
        rearrange=lambda x, _, C: x.unflatten(-1, (C, -1)).permute(2, 0, 1, 3),
    )
    code = executed(file, "class MultiwayDynamicDenseBlock", "class MUDDFormer", **names)
    config = SimpleNamespace(
        dense_type="v", dim=width, norm_eps=torch.finfo(torch.float32).eps, round64=False
    )
    return code.MultiwayDynamicDenseBlock(config, layer)
