"""Do the plans that came after compute what the public modules compute? Our weights in theirs.

Tiny random modules of `transformers`: outputs, and the gradient of the input and of every weight.
"""

import pytest
import torch
from torch import nn

from minimal.model.layers import rope_tables, whole_rows
from tests.model.test_plans import awake, tokens

pytestmark = pytest.mark.parity

T = 11


def started(plan, style="llama", **changes):
    """A model of a plan in a style, a tape that knows its positions, an input."""
    model = awake(plan, style=style, **changes).train()
    draw = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 2:
                p.normal_(0, 2 * p.shape[-1] ** -0.5, generator=draw)  # large beside any eps
    tape = model.tape(tokens(T))
    x = torch.randn(2, T, model.config.width, generator=torch.Generator().manual_seed(4))
    cos, sin = rope_tables(torch.arange(T), model.config.head, 10_000.0)
    groups = {model.config.heads, model.config.groups}
    tape.rotation = {heads: whole_rows(cos, sin, heads) for heads in groups}
    tape.streams.append(x)
    return model, tape, x


def compare(ours, theirs, pairs, x):
    """ours, theirs: functions of the input. pairs: (our weight, their weight, index or reorder)."""
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    push = torch.randn(2, T, x.shape[-1], generator=torch.Generator().manual_seed(5))
    y, z = ours(mine), theirs(other)
    assert y.std() > 1e-2, "outputs this small would agree with anything"
    torch.testing.assert_close(y, z, atol=2e-5, rtol=1e-4)
    (y * push).sum().backward()
    (z * push).sum().backward()
    torch.testing.assert_close(mine.grad, other.grad, atol=1e-4, rtol=1e-3)
    for weight, public, seen in pairs:
        assert weight.grad.abs().max() > 0
        torch.testing.assert_close(weight.grad, seen(public.grad), atol=2e-4, rtol=1e-3)


def put(pairs):
    """Their tensors out of ours: each pair's `seen` is a view of theirs that ours is written to."""
    with torch.no_grad():
        for weight, public, seen in pairs:
            view = seen(public.data)
            assert view.shape == weight.shape
            view.copy_(weight)
            assert torch.equal(seen(public.data), weight), "a view, not a copy"


def causal():
    return torch.full((T, T), float("-inf")).triu(1)[None, None]


def test_latent_attention_is_deepseek_v2s():
    from transformers.models.deepseek_v2 import modeling_deepseek_v2 as public

    from minimal.model import latent

    model, tape, x = started("mla")
    config, part = model.config, model.blocks[0].attention
    heads, head, turning = config.heads, config.head, latent.turning(config)
    size = part.read.latent
    theirs = public.DeepseekV2Attention(
        public.DeepseekV2Config(
            hidden_size=config.width, num_attention_heads=heads, num_key_value_heads=heads,
            q_lora_rank=None, kv_lora_rank=size, qk_nope_head_dim=head, qk_rope_head_dim=turning,
            v_head_dim=head, attn_implementation="eager", num_hidden_layers=1, vocab_size=97,
        ),
        0,
    )  # fmt: skip

    # their pairs of features lie side by side, ours in halves
    halves = torch.arange(turning).view(-1, 2).T.flatten()
    heads_of = lambda w: w.view(heads, head + turning, -1)
    rows = torch.arange(heads * (head + turning)).view(heads, -1)
    q_rows = torch.cat([rows[:, :head], rows[:, head:][:, halves]], 1).flatten()
    down_rows = torch.cat([torch.arange(size), size + halves])
    kv = lambda w: w.view(heads, 2 * head, size)
    weights = [
        (part.query.project.weight, theirs.q_proj.weight, lambda w: w[q_rows]),
        (part.key.down.weight, theirs.kv_a_proj_with_mqa.weight, lambda w: w[down_rows]),
        (part.read.up.weight, theirs.kv_b_proj.weight, lambda w: kv(w)[:, :head].reshape(-1, size)),
        (
            part.value.project.weight,
            theirs.kv_b_proj.weight,
            lambda w: kv(w)[:, head:].reshape(-1, size),
        ),
        (part.out.weight, theirs.o_proj.weight, lambda w: w),
    ]
    with torch.no_grad():
        theirs.q_proj.weight[q_rows] = part.query.project.weight
        theirs.kv_a_proj_with_mqa.weight[down_rows] = part.key.down.weight
        kv(theirs.kv_b_proj.weight)[:, :head] = part.read.up.weight.view(heads, head, size)
        kv(theirs.kv_b_proj.weight)[:, head:] = part.value.project.weight.view(heads, head, size)
        theirs.o_proj.weight.copy_(part.out.weight)
    assert heads_of(theirs.q_proj.weight).shape == (heads, head + turning, config.width)

    # their rotation turns by +angle; ours by -angle, so they are given the conjugate
    cos, sin = rope_tables(torch.arange(T), turning, 10_000.0)
    frequencies = torch.complex(cos[:, 0], -sin[:, 0])[None]
    theirs.kv_a_layernorm.variance_epsilon = torch.finfo(torch.float32).eps
    mask = causal()
    compare(
        lambda h: part(h, 0, tape),
        lambda h: theirs(h, attention_mask=mask, position_embeddings=frequencies)[0],
        weights,
        x,
    )


@pytest.mark.parametrize("groups", [2, 1])
def test_the_gate_is_qwen3_nexts(groups):
    from transformers.models.qwen3_next import modeling_qwen3_next as public

    model, tape, x = started("gated", groups=groups)
    config, part = model.config, model.blocks[0].attention
    heads, head = config.heads, config.head
    theirs = public.Qwen3NextAttention(
        public.Qwen3NextConfig(
            hidden_size=config.width, num_attention_heads=heads, num_key_value_heads=groups,
            head_dim=head, attention_bias=False, attn_implementation="eager", vocab_size=97,
        ),
        0,
    )  # fmt: skip
    # ours has no QK norm in this style
    theirs.q_norm = theirs.k_norm = nn.Identity()
    both = lambda w: w.view(heads, 2, head, -1)  # query and gate of each head
    weights = [
        (part.query.project.weight, theirs.q_proj.weight, lambda w: both(w)[:, 0].flatten(0, 1)),
        (part.read.gate.weight, theirs.q_proj.weight, lambda w: both(w)[:, 1].flatten(0, 1)),
        (part.key.project.weight, theirs.k_proj.weight, lambda w: w),
        (part.value.project.weight, theirs.v_proj.weight, lambda w: w),
        (part.out.weight, theirs.o_proj.weight, lambda w: w),
    ]
    with torch.no_grad():
        both(theirs.q_proj.weight)[:, 0] = part.query.project.weight.view(heads, head, -1)
        both(theirs.q_proj.weight)[:, 1] = part.read.gate.weight.view(heads, head, -1)
    put(weights[2:])
    cos, sin = rope_tables(torch.arange(T), head, 10_000.0)
    cos, sin = (torch.cat([x, x], -1)[None, :, 0] for x in (cos, -sin))
    mask = causal()
    compare(
        lambda h: part(h, 0, tape),
        lambda h: theirs(h, position_embeddings=(cos, sin), attention_mask=mask)[0],
        weights,
        x,
    )


def test_per_layer_embeddings_are_gemma_3ns():
    """Its model makes the input of every layer, and its layer gates, projects and norms it."""
    from transformers.models.gemma3n import modeling_gemma3n as public

    model, tape, x = started("ple", layers=3)
    config, looks = model.config, model.streams[0].looks
    width = looks["0"].width
    theirs = public.Gemma3nTextModel(
        public.Gemma3nTextConfig(
            hidden_size=config.width, hidden_size_per_layer_input=width, num_hidden_layers=3,
            vocab_size=97, vocab_size_per_layer_input=97, num_attention_heads=2,
            num_key_value_heads=2, head_dim=24, intermediate_size=8, laurel_rank=4,
            layer_types=["full_attention"] * 3, activation_sparsity_pattern=[0.0] * 3,
            num_kv_shared_layers=0, attn_implementation="eager", rms_norm_eps=1e-6, pad_token_id=0,
        )
    )  # fmt: skip
    for at in range(3):
        look, layer = looks[str(at)], theirs.layers[at]
        part = slice(at * width, (at + 1) * width)
        rows = lambda w, part=part: w[part]
        columns = lambda w, part=part: w[:, part]
        same = lambda w: w
        weights = [
            (look.context.weight, theirs.per_layer_model_projection.weight, rows),
            (look.gate.weight, layer.per_layer_input_gate.weight, same),
            (look.project.weight, layer.per_layer_projection.weight, same),
            (look.norms[1].weight, layer.post_per_layer_input_norm.weight, same),
        ]
        put(weights)
        with torch.no_grad():
            # their rows are multiplied by the root of their width as they are read
            columns(theirs.embed_tokens_per_layer.weight)[:] = look.table.weight[:97] / width**0.5
            theirs.per_layer_projection_norm.weight.copy_(look.norms[0].weight)

        def public_layer(h, layer=layer, at=at):
            given = theirs.project_per_layer_inputs(
                tape.streams[0], theirs.get_per_layer_inputs(tape.ids)
            )[:, :, at]
            gated = layer.act_fn(layer.per_layer_input_gate(h)) * given
            return layer.post_per_layer_input_norm(layer.per_layer_projection(gated))

        for parameter in (*model.parameters(), *theirs.parameters()):
            parameter.grad = None
        compare(lambda h, look=look: look(h, tape), public_layer, weights, x)
        torch.testing.assert_close(
            look.table.weight.grad[:97],
            columns(theirs.embed_tokens_per_layer.weight.grad) / width**0.5,
            atol=2e-4,
            rtol=1e-3,
        )


def interleaved(head):
    """The features of a head in halves, in the order of one whose pairs lie side by side."""
    return torch.arange(head).view(-1, 2).T.flatten()


def test_the_turned_key_is_deepseek_v4s():
    """One head of keys, read as values, too, and turned back. Ours has no low rank on the way in or
    out and no sink, so theirs are identities and minus infinity."""
    from transformers.models.deepseek_v4 import modeling_deepseek_v4 as public

    model, tape, x = started("keys-turned", "nanochat", groups=1)
    config, part = model.config, model.blocks[0].attention
    heads, head = config.heads, config.head
    theirs = public.DeepseekV4Attention(
        public.DeepseekV4Config(
            hidden_size=config.width, num_attention_heads=heads, head_dim=head,
            q_lora_rank=config.width, o_lora_rank=heads * head, o_groups=1, num_hidden_layers=1,
            layer_types=["sliding_attention"], attn_implementation="eager", vocab_size=97,
            rms_norm_eps=torch.finfo(torch.float32).eps,
        ),
        0,
    )  # fmt: skip
    theirs.q_a_proj = theirs.q_a_norm = theirs.o_a_proj = nn.Identity()
    theirs.scaling = config.style.attention_scale(head)
    with torch.no_grad():
        theirs.sinks.fill_(float("-inf"))
        theirs.kv_norm.weight.fill_(1)
    halves = interleaved(head)
    of_all = (torch.arange(heads)[:, None] * head + halves).flatten()
    weights = [
        (part.query.project.weight, theirs.q_b_proj.weight, lambda w: w[of_all]),
        (part.key.project.weight, theirs.kv_proj.weight, lambda w: w[halves]),
        (part.out.weight, theirs.o_b_proj.weight, lambda w: w[:, of_all]),
    ]
    with torch.no_grad():
        theirs.q_b_proj.weight[of_all] = part.query.project.weight
        theirs.kv_proj.weight[halves] = part.key.project.weight
        theirs.o_b_proj.weight[:, of_all] = part.out.weight
    # their rotation turns by +angle; ours by -angle
    cos, sin = (y[None, :, 0] for y in rope_tables(torch.arange(T), head, 10_000.0))
    mask = causal()
    compare(
        lambda h: part(h, 0, tape),
        lambda h: theirs(h, {"main": (cos, -sin)}, torch.arange(T)[None], mask)[0],
        weights,
        x,
    )


@pytest.mark.parametrize("groups", [2, 1])
def test_the_plain_key_is_gemma_4s(groups):
    """A global layer: the value is the key before its turn, by a norm without weights."""
    from transformers.models.gemma4 import modeling_gemma4 as public

    model, tape, x = started("keys-plain", "nanochat", groups=groups)
    config, part = model.config, model.blocks[0].attention
    heads, head = config.heads, config.head
    theirs = public.Gemma4TextAttention(
        public.Gemma4TextConfig(
            hidden_size=config.width, num_attention_heads=heads, num_key_value_heads=groups,
            num_global_key_value_heads=groups, head_dim=head, global_head_dim=head,
            attention_k_eq_v=True, num_hidden_layers=1, layer_types=["full_attention"],
            num_kv_shared_layers=0, attn_implementation="eager", vocab_size=97,
            rms_norm_eps=torch.finfo(torch.float32).eps,
        ),
        0,
    )  # fmt: skip
    assert theirs.v_proj is None
    theirs.scaling = config.style.attention_scale(head)
    same = lambda w: w
    weights = [
        (part.query.project.weight, theirs.q_proj.weight, same),
        (part.key.project.weight, theirs.k_proj.weight, same),
        (part.out.weight, theirs.o_proj.weight, same),
    ]
    put(weights)
    cos, sin = rope_tables(torch.arange(T), head, 10_000.0)
    cos, sin = (torch.cat([x, x], -1)[None, :, 0] for x in (cos, -sin))
    mask = causal()
    compare(
        lambda h: part(h, 0, tape),
        lambda h: theirs(h, (cos, sin), mask, {})[0],
        weights,
        x,
    )
