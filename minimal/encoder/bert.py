"""What does the same stack become when it reads in both directions? BERT: the encoder, its three heads, and the public
weights by name."""

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


# ---- heads ------------------------------------------------------------------------------------------------------
class Masked(nn.Module):
    """Which piece stood here? gelu, norm, then the embedding read backwards (Devlin et al. 2019)."""

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


class Sentence(nn.Module):
    """Which class? The first token, [CLS], speaks for all."""

    def __init__(self, config, embed=None):
        super().__init__()
        self.pool = Linear("pool", config.width, config.width, bias=True)
        self.out = Linear("classes", config.width, 2, bias=True)
        self.dropout = config.dropout

    def forward(self, x):
        pooled = torch.tanh(self.pool(x[:, 0]))  # (B, C)
        return self.out(F.dropout(pooled, self.dropout, self.training)).float()  # (B, 2)


# ---- the encoder ------------------------------------------------------------------------------------------------
class Bert(GPT):
    """The course's stack in the style `bert`: every token sees every other; learned positions, segments, norm after
    the sum. Its attention and its value sources are the decoder's."""

    both_ways = True

    def __init__(self, config, plan, head=Masked):
        super().__init__(config, plan)  # self.norm stands after the embedding here
        self.segment = Embedding("segment", 2, (config.width,), "position", "embed")
        self.head = head(config, self.embed)

    def hidden(self, ids, tape, segments=None):
        """The last block's output (B, T, C)."""
        if ids.shape[1] > self.config.context:
            raise ValueError(
                f"{ids.shape[1]} positions came to a model that has {self.config.context}: cut the text "
                "into windows (squad.windows), or train with a longer context"
            )
        positions = torch.arange(ids.shape[1], device=ids.device)
        segments = torch.zeros_like(ids) if segments is None else segments
        x = self.embed(ids) + self.position(positions) + self.segment(segments)  # (B, T, C)
        x = F.dropout(self.norm(x.to(self.dtype)), self.config.dropout, self.training)
        return self.through(x, tape)

    def forward(self, ids, *, segments=None, lengths=None, tape=None):
        """ids (B, T) -> what the head says. `lengths` (B,): positions from there on are padding."""
        return self.head(self.hidden(ids, tape or self.tape(ids, lengths=lengths), segments))

    def wear(self, head, seed=0):
        """The same encoder under a fresh head, for another task; a head that is tied to the embedding leaves it so."""
        words = self.embed.weight.detach().clone()
        self.head = head(self.config, self.embed)
        fresh = nn.Module()
        fresh.config, fresh.head = self.config, self.head
        init_bert(fresh, seed)
        self.embed.weight.data.copy_(words)
        return self.to(self.device)


@torch.no_grad()
def init_bert(model, seed):
    """BERT's 0.02 belongs to a width of 768. At width C matrices and embeddings start at 0.02 sqrt(768 / C) (ours), so
    that scores and branches begin as large as they do in BERT-base."""
    init(model, seed)
    for weight in {
        module.weight for module in model.modules() if isinstance(module, (Linear, Embedding))
    }:  # tied once
        weight *= math.sqrt(768 / model.config.width)
    return model


def build(plan="standard", size="bert-4l", head=Masked, seed=0, **changes):
    """An encoder ready to train: build("standard", "bert-4l", vocab=2000, context=128), or with the bypass,
    build(dict(alpha="head", act="gelu"), …): minimal.encoder.bypass has the dials."""
    config = sizes.size(size, **changes) if isinstance(size, str) else size.but(**changes)
    plan = bypass.plan(plan)
    return init_bert(Bert(plan.adapt(config), plan, head), seed)


# ---- public weights ---------------------------------------------------------------------------------------------
THEIRS = (  # our names -> those of the public checkpoints
    (r"^embed\.", "bert.embeddings.word_embeddings."),
    (r"^position\.", "bert.embeddings.position_embeddings."),
    (r"^segment\.", "bert.embeddings.token_type_embeddings."),
    (r"^norm\.", "bert.embeddings.LayerNorm."),
    (
        r"^blocks\.(\d+)\.attention\.(query|key|value)\.(?:x\.)?project\.",
        r"bert.encoder.layer.\1.attention.self.\2.",
    ),
    (r"^blocks\.(\d+)\.attention\.out\.", r"bert.encoder.layer.\1.attention.output.dense."),
    (r"^blocks\.(\d+)\.norm1\.", r"bert.encoder.layer.\1.attention.output.LayerNorm."),
    (r"^blocks\.(\d+)\.mlp\.up\.", r"bert.encoder.layer.\1.intermediate.dense."),
    (r"^blocks\.(\d+)\.mlp\.down\.", r"bert.encoder.layer.\1.output.dense."),
    (r"^blocks\.(\d+)\.norm2\.", r"bert.encoder.layer.\1.output.LayerNorm."),
    (r"^head\.mix\.", "cls.predictions.transform.dense."),
    (r"^head\.norm\.", "cls.predictions.transform.LayerNorm."),
    (r"^head\.pool\.", "bert.pooler.dense."),
)

OUT = {
    Masked: "cls.predictions.",
    Spans: "qa_outputs.",
    Sentence: "classifier.",
}  # head.out; MLM's is only a bias


def public_names(model):
    """Our parameter names -> the public ones; what BERT does not have (a learned alpha) is left out."""
    table = (*THEIRS, (r"^head\.out\.", OUT[type(model.head)]))
    names = {}
    for ours, _ in model.named_parameters():
        theirs = [re.sub(pattern, name, ours) for pattern, name in table if re.match(pattern, ours)]
        names |= {ours: theirs[0]} if theirs else {}
    return names


@torch.no_grad()
def load_public(model, weights):
    """Put public BERT weights (a state dict, or a .safetensors file such as bert-base-uncased's) into a model.
    -> (our parameters that the file lacks, its names that we have no place for); the encoder must be complete."""
    if not isinstance(weights, dict):
        from safetensors.torch import load_file

        if not Path(weights).is_file():
            raise FileNotFoundError(
                f"{weights} is not there; wanted a model.safetensors with BERT weights"
            )
        weights = load_file(weights)
    found = {}
    for name, tensor in weights.items():
        name = re.sub(
            r"gamma$", "weight", re.sub(r"beta$", "bias", name)
        )  # as the first checkpoints say
        found[
            name
            if name.startswith(("bert.", "cls.", "qa_outputs.", "classifier."))
            else "bert." + name
        ] = tensor
    parameters, names, missing = dict(model.named_parameters()), public_names(model), []
    for ours, parameter in parameters.items():
        theirs = names.get(ours)
        tensor = found.pop(theirs, None)
        if tensor is None:
            missing.append(ours)
        elif tensor.shape != parameter.shape:
            raise ValueError(
                f"{theirs} is {tuple(tensor.shape)} in the file and {tuple(parameter.shape)} here: "
                f"build the model with the size, vocabulary and context of the file"
            )
        else:
            parameter.copy_(tensor)
    absent = [name for name in missing if not name.startswith("head.") and name in names]
    if absent:
        raise ValueError(
            f"the file lacks {len(absent)} of the encoder's parameters, first {names[absent[0]]} "
            f"(our {absent[0]}): is it a BERT of {model.config.layers} layers?"
        )
    return missing, sorted(found)
