"""A training step by kernel: is the rival the same step, and are kernels told for what they are?"""

import json

import pytest
import torch

from evidence.bench import step_kernels
from evidence.bench.gpu_table import PEAK
from evidence.bench.nanochat import Nanochat
from evidence.bench.step_kernels import by_kind, kind_of
from minimal.model.config import size as named
from minimal.variants import build

SMALL = dict(size="smoke", batch=2, where="cpu", compile=False, rounds=1)


def test_nanochats_step_is_the_step_of_our_standard_in_loss_and_gradients():
    """Or the clocks would compare two models."""
    config = named("nano", windows="L")
    ours, theirs = build("standard", config), Nanochat(config)
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in ours.parameters():  # matrices that start at zero say nothing
            p.normal_(std=0.2, generator=chance)
        mine = dict(ours.named_parameters())
        pairs = [(theirs.embed, "embed"), (theirs.head, "head")]
        for at, layer in enumerate(theirs.layers):
            block = f"blocks.{at}"
            doors = dict(q="query.project", k="key.project", v="value.project", out="out")
            pairs += [(getattr(layer, a), f"{block}.attention.{b}") for a, b in doors.items()]
            pairs += [(layer.mlp[part], f"{block}.mlp.{part}") for part in ("up", "down")]
        for module, name in pairs:
            module.weight.copy_(mine.pop(f"{name}.weight"))
    assert not mine, "every weight of ours is one of theirs"
    ids, targets = torch.randint(config.vocab, (2, 2, config.context), generator=chance)
    losses = [model.loss(ids, targets) for model in (ours, theirs)]
    torch.testing.assert_close(*losses, rtol=1e-5, atol=0)
    for loss in losses:
        loss.backward()
    mine = dict(ours.named_parameters())
    for module, name in pairs:
        a, b = module.weight.grad, mine[f"{name}.weight"].grad
        assert (a - b).abs().max() <= 1e-4 * b.abs().max(), name


def test_both_are_moved_by_the_same_rows_of_one_optimizer():
    steps = [step_kernels.Step(way, *list(SMALL.values())[:4]) for way in step_kernels.WAYS[1:]]
    stacks = [
        sorted((stack.buffer.shape, stack.row.lr) for stack in step.optimizer.stacks)
        for step in steps
    ]
    assert stacks[0] == stacks[1] and stacks[0]
    dense = [
        sorted(p.numel() for part in step.optimizer.dense for p in part.named.values())
        for step in steps
    ]
    assert dense[0] == dense[1]
    assert steps[0].flops == steps[1].flops and steps[0].tokens == steps[1].tokens


def test_a_step_is_told_by_kind_and_by_kernel():
    rows = json.loads(json.dumps(list(step_kernels.steps(**SMALL))))
    assert [row["way"] for row in rows] == [*step_kernels.WAYS]
    for row in rows:
        kinds = row["kinds"]
        assert {"products", "attention", step_kernels.MOVE, step_kernels.BETWEEN} <= kinds.keys()
        # forward: q, k, v, out, up and down of two layers, and the head; backward: two for each
        assert kinds["products"][0] == 3 * 13
        assert kinds["attention"][0] >= 2 * 2 and kinds["products"][1] > 0
        assert 0 < row["passes_ms"] and row["tokens"] == 128
        told = step_kernels.report(row)
        assert f"{row['way']} smoke: a step of 128 tokens" in told and "| products |" in told
        assert "| `aten::mm` | 39 |" in told


def test_shares_are_of_the_step_and_of_the_peak():
    class Toy:
        flops, tokens = PEAK / 1000, 2**19 // 4  # a millisecond at the peak; four make a batch

    kernels = {"sm90_gemm": (10, 1500.0), "triton_red_fused_tanh_exp_1": (2, 300.0)}
    row = step_kernels.row_of("ours", Toy, 4.0, 2.0, kernels | dict(outside=(0, 9.0)))
    assert row["share_of_peak"] == pytest.approx(0.25)
    assert row["share_of_peak_large_batch"] == pytest.approx(4 / (4 * 2 + 2))
    assert row["kinds"]["products"] == [10, 1500.0] and row["kinds"][step_kernels.MOVE][1] == 2000
    assert row["kinds"][step_kernels.BETWEEN][1] == pytest.approx(200)
    assert [*row["kernels"]][:2] == ["sm90_gemm", "triton_red_fused_tanh_exp_1"]
    told = step_kernels.report(row | dict(size="toy"))
    assert "| optimizer | 0 | 2.00 | 50% | 50% |" in told, "without it half of the peak"
    assert "| products | 10 | 1.50 | 38% |  |" in told


@pytest.mark.parametrize(
    "name, kind",
    (
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_traits<128, cutlass::bfloat16_t>>",
            "attention",
        ),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_7", "attention"),
        ("triton_tem_fused_flex_attention_backward_zeros_3", "attention"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopB_TNT", "products"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "products"),
        ("triton_tem_fused_mm_2", "products"),
        ("triton_red_fused__to_copy_add_exp_mul_reciprocal_sum_7", "scores and loss"),
        ("triton_red_fused__log_softmax__to_copy_4", "scores and loss"),
        ("triton_per_fused__fused_rms_norm_add_0", "norms and positions"),
        ("triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_5", "norms and positions"),
        ("triton_poi_fused_add_mul_roll_5", "norms and positions"),
        ("triton_poi_fused_mul_relu_9", "relu squared"),
        ("triton_poi_fused__to_copy_expand_3", "copies"),
        ("void at::native::(anonymous namespace)::indexing_backward_kernel", "embedding"),
        ("Memset (Device)", "copies"),
        ("triton_poi_fused_add_12", step_kernels.OTHER),
    ),
)
def test_a_kernel_is_told_by_what_it_is_for(name, kind):
    assert kind_of(name) == kind
    assert by_kind({name: (1, 5.0)}, 7.0) == {kind: (1, 5.0), step_kernels.BETWEEN: (0, 2.0)}
