"""What does the same stack become when it reads in both directions? BERT: the encoder, its heads,
and public weights by name."""

import math
import re
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from minimal.encoder import bypass
from minimal.model import config as sizes
from minimal.model.init import init
from minimal.model.layers import Embedding, Linear, Norm
from minimal.model.transformer import GPT


# ---- heads --------------------------------------------------------------------------------------
class Masked(nn.Module):
    """Which piece stood here? gelu, norm, the embedding read backwards (Devlin et al. 2019)."""

    def __init__(self, config, embed):
        super().__init__()
        self.mix = Linear("mlm", config.width, config.width, bias=True)
        self.norm = Norm(config.width, "layer", config.style.eps)
        self.out = Linear("embed", config.width, config.vocab, "head", bias=True)
        self.out.weight = embed.weight  # tied

    def forward(self, x):
        return self.out(self.norm(F.gelu(self.mix(x)))).float()  # (…, V)


class Spans(nn.Module):
    """Where does the answer begin and end? Two scores a token."""

    def __init__(self, config, embed=None):
        super().__init__()
        self.out = Linear("spans", config.width, 2, bias=True)

    def forward(self, x):
        return self.out(x).float().unbind(-1)  # first (B, T), last (B, T)


# ---- the encoder --------------------------------------------------------------------------------
class Bert(GPT):
    """The course's stack in the style `bert`: every token sees every other; learned positions,
    segments, norm after the sum. Its attention and its value sources are the decoder's."""

    both_ways = True

    def __init__(self, config, plan, head=Masked):
        super().__init__(config, plan)  # self.norm stands after the embedding here
        self.segment = Embedding("segment", 2, (config.width,), "position", "embed")
        self.head = head(config, self.embed)

    def hidden(self, ids, tape, segments=None):
        """The last block's output (B, T, C)."""
        length, context = ids.shape[1], self.config.context
        if length > context:
            raise ValueError(
                f"wanted at most {context} positions, the model's context, got {length}: "
                "cut the text into windows (passages.windows), or train with a longer context"
            )
        if segments is None:
            segments = torch.zeros_like(ids)
        positions = torch.arange(length, device=ids.device)
        x = self.embed(ids) + self.position(positions) + self.segment(segments)  # (B, T, C)
        x = self.norm(x.to(self.dtype))
        x = F.dropout(x, self.config.dropout, self.training)
        return self.through(x, tape)

    def forward(self, ids, *, segments=None, lengths=None, tape=None):
        """ids (B, T) -> what the head says. `lengths` (B,): positions from there are padding."""
        tape = self.tape_for(ids, tape, lengths=lengths)
        return self.head(self.hidden(ids, tape, segments))

    def with_head(self, head, seed=0):
        """This encoder, now under a fresh head for another task. One that is tied to the embedding
        leaves the embedding as it is."""
        embedding = self.embed.weight.detach().clone()
        self.head = head(self.config, self.embed)
        fresh = nn.Module()
        fresh.config, fresh.head = self.config, self.head
        init_bert(fresh, seed)
        self.embed.weight.data.copy_(embedding)
        return self.to(self.device)


@torch.no_grad()
def init_bert(model, seed):
    """BERT's 0.02 belongs to a width of 768. At width C matrices and embeddings start at
    0.02 sqrt(768 / C) (ours), so that scores and branches begin as large as in BERT-base."""
    init(model, seed)
    matrices = [m.weight for m in model.modules() if isinstance(m, (Linear, Embedding))]
    for weight in set(matrices):  # a tied one once
        weight *= math.sqrt(768 / model.config.width)
    return model


def build(plan="standard", size="bert-4l", head=Masked, seed=0, **changes):
    """An encoder ready to train: build("standard", "bert-4l", vocab=2000, context=128), or with
    the bypass, build(dict(alpha="head", act="gelu"), …): minimal.encoder.bypass has the dials."""
    config = sizes.size(size, **changes) if isinstance(size, str) else size.but(**changes)
    plan = bypass.plan(plan)
    return init_bert(Bert(plan.adapt(config), plan, head), seed)


# ---- public weights -----------------------------------------------------------------------------
LAYER, THEIR_LAYER = r"^blocks\.(\d+)\.", r"bert.encoder.layer.\1."

PUBLIC_NAMES = (  # patterns of our names -> the names of the public checkpoints
    (r"^embed\.", "bert.embeddings.word_embeddings."),
    (r"^position\.", "bert.embeddings.position_embeddings."),
    (r"^segment\.", "bert.embeddings.token_type_embeddings."),
    (r"^norm\.", "bert.embeddings.LayerNorm."),
    (LAYER + r"attention\.query\.project\.", THEIR_LAYER + "attention.self.query."),
    (LAYER + r"attention\.key\.project\.", THEIR_LAYER + "attention.self.key."),
    (LAYER + r"attention\.value\.(?:x\.)?project\.", THEIR_LAYER + "attention.self.value."),
    (LAYER + r"attention\.out\.", THEIR_LAYER + "attention.output.dense."),
    (LAYER + r"norm1\.", THEIR_LAYER + "attention.output.LayerNorm."),
    (LAYER + r"mlp\.up\.", THEIR_LAYER + "intermediate.dense."),
    (LAYER + r"mlp\.down\.", THEIR_LAYER + "output.dense."),
    (LAYER + r"norm2\.", THEIR_LAYER + "output.LayerNorm."),
    (r"^head\.mix\.", "cls.predictions.transform.dense."),
    (r"^head\.norm\.", "cls.predictions.transform.LayerNorm."),
)

HEAD_NAMES = {Masked: "cls.predictions.", Spans: "qa_outputs."}  # head.out; MLM's is only a bias

STEMS = ("bert.", "cls.", "qa_outputs.", "classifier.")  # what public names begin with


def public_names(model):
    """Our parameter names -> the public ones. What BERT does not have (a learned alpha) is left
    out."""
    table = (*PUBLIC_NAMES, (r"^head\.out\.", HEAD_NAMES[type(model.head)]))
    names = {}
    for ours, _ in model.named_parameters():
        for pattern, theirs in table:
            if re.match(pattern, ours):
                names[ours] = re.sub(pattern, theirs, ours)
    return names


def modern_name(name):
    """A public name as today's checkpoints have it; the first said gamma, beta and no "bert."."""
    name = re.sub(r"gamma$", "weight", name)
    name = re.sub(r"beta$", "bias", name)
    return name if name.startswith(STEMS) else "bert." + name


def read_public(path):
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not Path(path).is_file():
        raise FileNotFoundError(
            f"{path} is not there: wanted a model.safetensors with BERT weights"
        )
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(
            f"{path}: wanted a model.safetensors with BERT weights, got something else ({error}): "
            "download it anew"
        ) from None


@torch.no_grad()
def load_public(model, weights):
    """Put public BERT weights (a state dict, or a .safetensors file such as bert-base-uncased's)
    into a model. -> (our parameters that the file lacks, its names that we have no place for);
    the encoder must be complete."""
    if not isinstance(weights, dict):
        weights = read_public(weights)
    found = {modern_name(name): tensor for name, tensor in weights.items()}
    names, missing = public_names(model), []

    # Copy what the file has.
    for ours, parameter in model.named_parameters():
        theirs = names.get(ours)
        tensor = found.pop(theirs, None)
        if tensor is None:
            missing.append(ours)
            continue
        if tensor.shape != parameter.shape:
            raise ValueError(
                f"{theirs} is {tuple(tensor.shape)} in the file and {tuple(parameter.shape)} here: "
                "build the model with the size, vocabulary and context of the file"
            )
        parameter.copy_(tensor)

    # A head may be fresh; an encoder may not.
    absent = [name for name in missing if name in names and not name.startswith("head.")]
    if absent:
        raise ValueError(
            f"the file lacks {len(absent)} of the encoder's parameters, first {names[absent[0]]} "
            f"(our {absent[0]}): is it a BERT of {model.config.layers} layers?"
        )
    return missing, sorted(found)
