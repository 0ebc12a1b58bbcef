"""A training step by kernel: is the rival the same step, and are kernels told for what they are?"""

import json
import re

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course import records
from evidence.bench import rented, step_kernels
from evidence.bench.gpu_table import PEAK
from evidence.bench.rivals import Nanochat
from evidence.bench.step_kernels import by_kind, kind_of
from minimal.bench.bench import stepper
from minimal.model.config import size as named
from minimal.model.count import count
from minimal.training import optim
from minimal.variants import build, skeleton

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
        ("triton_poi_fused_add_12", step_kernels.NO_KIND),
    ),
)
def test_a_kernel_is_told_by_what_it_is_for(name, kind):
    assert kind_of(name) == kind
    assert by_kind({name: (1, 5.0)}, 7.0) == {kind: (1, 5.0), step_kernels.BETWEEN: (0, 2.0)}


# ---- what the pages say of it --------------------------------------------------------------------


def section(page, head):
    text = (records.EVIDENCE / page).read_text(encoding="utf-8")
    return " ".join(text.partition(f"## {head}")[2].partition("\n## ")[0].split())


def test_every_stage_that_waits_for_a_gpu_is_told_with_its_minutes():
    page = (records.EVIDENCE / "gpu.md").read_text(encoding="utf-8")
    told = {}
    for name, minutes in re.findall(r"^\| `(\w+)`.*\| ([\d.]+) \| [a-z ]+ \|$", page, re.M):
        told[name] = told.get(name, 0) + float(minutes)
    waiting = {name: minutes for name, (_, minutes, _) in rented.STAGES.items()}
    assert told == {name: waiting[name] for name in waiting if name not in ("kernels", "runs")}
    parts = re.findall(r"^\| `attention`: (.*?) \|", page, re.M)
    assert re.findall(r"`(\w+)`", " ".join(parts)) == [*rented.ATTENTION]
    commands = re.findall(r"rented --minutes (\d+) --only (.*) --out DIR", page)
    assert len(commands) == 2 and all(float(minutes) < 10 for minutes, _ in commands)
    assert {name for _, names in commands for name in names.split()} == told.keys()


def muons_products(config):
    """FLOPs of the polynomials of every matrix of `standard`, as they are made in bf16."""
    width, hidden = config.width, config.mlp_width
    shapes = [(width, width)] * 4 + [(width, hidden)] * 2
    each = [2 * short * short * (2 * long + short) for short, long in shapes]
    return config.layers * sum(each) * len(optim.POLAR_EXPRESS)


def test_the_shares_of_arithmetic_that_the_page_of_a_gpu_tells_are_counted():
    config, told = named("d12"), section("gpu.md", "Prepared, and not yet measured on a GPU")
    each = count(skeleton("standard", config))["flops_per_token"]
    head = 6 * config.width * config.vocab / each
    assert f"The head is {100 * head:.0f} % of d12's arithmetic" in told
    small, large = (100 * muons_products(config) / each / tokens for tokens in (2**15, 2**19))
    words = f"are {small:.1f} % on top of the arithmetic that is counted, and {large:.1f} % in"
    assert words in told


def test_a_cpus_products_are_those_that_the_page_counts():
    told = section("bench/where_time_goes.md", "A training step at `wide`, compiled")
    model, step = stepper("standard", "wide", "course", 16, False)
    with FlopCounterMode(display=False) as counted:
        step()
    aten, found = torch.ops.aten, counted.get_flop_counts()["Global"]
    matrices, muon = found[aten.mm], found[aten.bmm] + found[aten.baddbmm]
    floor = 16 * model.config.context * count(model)["flops_per_token"]
    for words, flops, whether in (
        ("of matrices: forward, and two in the backward pass", matrices, "yes"),
        ("of attention, as the floor counts them", floor - matrices, "yes"),
        ("of Muon", muon, "no"),
        ("sum", floor + muon, ""),
    ):
        ms = 222 * flops / floor
        line = f"| {words} | {flops / 1e9:.1f} | {whether} | {ms:.0f} |".replace("|  |", "| |")
        assert line in told, line
    assert f"the step is at {100 * 222 * (floor + muon) / floor / 374:.0f} %" in told
