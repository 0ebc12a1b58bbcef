"""What was counted on the structure equals what the sources and the closed formulas say."""

import json
from functools import cache

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from course.memory import names_by_parts
from minimal.model.attention import Plain
from minimal.model.config import SIZES
from minimal.model.count import bytes_of, count, of_one_token, passes
from minimal.model.layers import Linear, Part
from minimal.variants import PLANS, Plan, build, describe, place, plan_named, skeleton, summary
from tests import warm


@cache
def counts(plan, size, **changes):
    return count(skeleton(plan, size, **changes))


# plan: (FLOPs/token, parameters) at d12. The official counts less 25 smear parameters and the dead
# W_V.
D12 = dict(
    standard=(759693312, 135266304),
    row1=(759693312, 135266304),
    row2=(759693312, 135266308),
    row3=(720764928, 128778240),
    row4=(738459648, 131727366),
    row5=(745537536, 132907008),
    row6=(745537536, 132907012),
    row7=(759693312, 135266310),
    row8=(759693312, 135266304),
    row9=(759693312, 135266308),
    row10=(759693312, 135266304),
    row11=(759693312, 135266312),
    row12=(773849088, 135266304),
    row13=(773849088, 135266312),
    bov=(745537536, 233570308),
    vplus=(759695904, 286261680),
    **{
        "bov-fixed": (745537536, 233570304),
        "bov-shared": (745537536, 158072836),
        "bov-every": (717225984, 430178316),
        "bov-keep": (759693312, 235929608),
    },
)
D24 = dict(
    standard=(4775215104, 780140544),
    bov=(4661968896, 1163919368),
    row6=(4661968896, None),
    row3=(4449632256, None),
    row13=(4888461312, None),
    vplus=(4775225472, None),
    **{"bov-every": (4435476480, None)},
)


@pytest.mark.parametrize("plan", D12)
def test_d12_equals_the_official_count(plan):
    counted = counts(plan, "d12")
    assert (counted["flops_per_token"], counted["parameters"]) == D12[plan]


@pytest.mark.parametrize("plan", D24)
def test_d24_equals_the_official_count(plan):
    counted, (flops, parameters) = counts(plan, "d24"), D24[plan]
    assert counted["flops_per_token"] == flops
    assert parameters is None or counted["parameters"] == parameters


# What a token pays for beside every matrix once and every map q k^T, A V once: (matrices, times),
# and (maps q k^T, maps A V) in the layers that have them.
TWICE = {
    "row12": "value.x.project",  # one W_V reads the stream and x0
    "row13": "value.x.project",
}
MAPS = {
    "cross": (2, 2),  # keys and values of two layers
    **dict.fromkeys(("dva", "dva-ffn", "dva-naive", "dva-random"), (1, 2)),  # one map, two streams
    **dict.fromkeys(("mla", "mla-half"), (1.5, 1)),  # half a head more compares positions
}


def all_matrices(model, plan):
    """6 FLOPs for every weight of every matrix, each once; the head is one, an embedding none.

    As karpathy's nanochat counts them (num_matmul_params), but for the smear's 24 weights, which
    the fork's estimate leaves out."""
    total = 0
    for name, weight in model.named_parameters():
        module = model.get_submodule(name.rpartition(".")[0])
        if type(module) is Linear and name.endswith("weight") and name != "smear.gate.weight":
            times = 2 if TWICE.get(plan, "nothing") in name else 1
            total += 6 * times * weight.numel()
    return total


def all_maps(model, plan):
    config, more = model.config, MAPS.get(plan, (1, 1))
    total = 0
    for at, window in enumerate(config.window_sizes()):
        if model.blocks[at].attention:
            scores, mixes = more if at or plan != "cross" else (1, 1)
            seen = min(window or config.context, config.context)
            total += 6 * config.width * (scores + mixes) * seen
    return total


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("size", ["d12", "smoke"])
def test_flops_are_six_for_every_weight_of_every_matrix_and_the_maps(plan, size):
    model = skeleton(plan, size)
    flops = counts(plan, size)["flops_per_token"]
    assert flops == all_matrices(model, plan) + all_maps(model, plan)


def test_latent_attention_pays_for_the_matrix_that_makes_its_values():
    counted = {plan: counts(plan, "d12")["flops_per_token"] for plan in ("mla", "mla-half")}
    assert counted == {"mla": 788_004_864, "mla-half": 841_089_024}


@pytest.mark.parametrize("plan", PLANS)
@torch.no_grad()
def test_what_is_counted_on_no_text_is_what_a_text_meets_and_leaves(plan):
    """With weights of one zero each, too: the matrices and rows are those of a real text."""
    model = build(plan, "smoke")
    before = [p.clone() for p in model.parameters()]
    counted = passes(model)
    assert all(map(torch.equal, before, model.parameters())), "its own weights are untouched"

    met, cache = [], model.cache()
    for part in model.modules():
        if isinstance(part, Linear) and part.kind != "smear":
            part.register_forward_hook(lambda part, *_: met.append(part.weight.numel()))
    text = torch.zeros(1, 1, dtype=torch.long)
    model(text, cache=cache)
    weights, first = sum(met), sum(map(bytes_of, cache.kept.values()))
    model(text, cache=cache)
    second = sum(map(bytes_of, cache.kept.values()))
    assert counted == (weights, second - first, 2 * first - second)


def test_smear_adds_its_25_parameters_and_no_flops():
    counted = count(skeleton("standard", "d12", smear=True))
    assert (counted["parameters"], counted["flops_per_token"]) == (135_266_329, 759_693_312)


@pytest.mark.parametrize(
    "plan,size,parameters",
    [
        ("dva", "gpt2", 112_800_768),
        ("standard", "gpt2", 162_419_712),
        ("gpt2", "gpt2", 162_419_712),
        ("standard", "llama-2m", 1.62e6),
        ("standard", "llama-82m", 81.90e6),
        ("standard", "llama-180m", 179.87e6),
        ("standard", "llama-468m", 467.92e6),
        ("modded", "modded-medium", 454.50e6),
    ],
)
def test_other_families_have_their_published_sizes(plan, size, parameters):
    counted = counts(plan, size)["parameters"]
    assert (
        counted == parameters
        if isinstance(parameters, int)
        else round(counted / 1e6, 2) == round(parameters / 1e6, 2)
    )


def test_dva_with_an_output_projection_would_not_have_112_million():
    """The source says "project output"; only without W_O (and its bias) do the parameters come to
    112.8M."""
    plan = plan_named("dva").but(every=dict(output=True))
    assert round(count(skeleton(plan, "gpt2"))["parameters"] / 1e6, 1) == 119.9


@pytest.mark.parametrize(
    "plan,size,budget,batch,iterations",
    [
        ("standard", "d12", 1.5e18, 2**19, 3766),
        ("row3", "d12", 1.5e18, 2**19, 3969),
        ("row4", "d12", 1.5e18, 2**19, 3874),
        ("row6", "d12", 1.5e18, 2**19, 3838),
        ("row13", "d12", 1.5e18, 2**19, 3697),
        ("bov-every", "d12", 1.5e18, 2**19, 3989),
        ("standard", "d24", 3.91e19, 2**20, 7809),
        ("bov", "d24", 3.91e19, 2**20, 7998),
        ("row3", "d24", 3.91e19, 2**20, 8380),
        ("row13", "d24", 3.91e19, 2**20, 7628),
        ("bov-every", "d24", 3.91e19, 2**20, 8407),
    ],
)
def test_a_flop_budget_buys_the_official_number_of_steps(plan, size, budget, batch, iterations):
    assert round(budget / (counts(plan, size)["flops_per_token"] * batch)) == iterations


def closed_form(plan, layers, kv, width, heads):
    """Elements of the cache a token where they are not two rows a layer, by the formulas of facts.

    An id is worth two elements. DVA keeps a third stream; one layer of modded has no attention; the
    anchors keep theirs; latent attention keeps a latent, and half a head's positions. A plan that
    is not here keeps what its parts say.
    """
    n, t = layers, lambda where: sum(where(i) for i in range(layers))
    last = t(lambda i: i >= 2 * n // 3)
    every2 = t(lambda i: i % 2 == (n - 1) % 2)
    return {
        "svformer": (n + 1) * kv,
        "svformer-gqa": (n + 1) * kv,
        "svformer-anchors": (n + 3) * kv,
        "row3": (n + 1) * kv,
        "row4": (2 * n - every2) * kv,
        "row5": (2 * n - last) * kv,
        "row6": (2 * n - last) * kv,
        "cla": 2 * -(-n // 2) * kv,
        "skipv1": (n + 1) * kv + (n - 1) * kv // 2,
        "share-k": (n + 1) * kv,
        "share-k2": 2 * n * kv - n // 2 * kv,
        "share-v2": 2 * n * kv - n // 2 * kv,
        "bov": (2 * n - last) * kv + 2,
        "bov-shared": (2 * n - last) * kv + 2,
        "bov-fixed": (2 * n - last) * kv + 2,
        "bov-gqa": (2 * n - last) * kv + 2,
        "bov-every": n * kv + 2,
        "bov-alternate": (2 * n - every2) * kv + 2,
        "bov-half": (2 * n - (n - n // 2)) * kv + 2,
        **dict.fromkeys(("ngram", "ngram-two", "ngram-hash"), (2 * n - last) * kv + 2),
        **dict.fromkeys(("ngram-small", "ngram-3", "ngram-fixed"), (2 * n - last) * kv + 2),
        "ngram-plus": 2 * n * kv + 2,
        **dict.fromkeys(("engram", "engram-v", "engram-both"), 2 * n * kv + 2),
        "mla": n * (width // 2 + width // heads // 2),
        "mla-half": n * width,
        "modded": 2 * (n - 1) * kv,
        "modded-moved": 2 * (n - 1) * kv,
        "dva": 3 * n * width,
        "dva-ffn": 3 * n * width,
        "dva-naive": 3 * n * width,
        "dva-random": 3 * n * width,
    }.get(plan)


@pytest.mark.parametrize("plan", PLANS)
def test_cache_bytes_equal_the_closed_formula(plan):
    """Two bytes an element and four an id, so an id is worth two elements."""
    n, width = 6, 768
    model = skeleton(plan, "d12", layers=n)
    kv = model.config.groups * model.config.head
    elements = closed_form(plan, n, kv, width, model.config.heads)
    if elements is None:
        says = names_by_parts(model)
        elements = kv * len(says - {"ids"}) + 2 * ("ids" in says)
    assert count(model)["cache_bytes_per_token"] == 2 * elements


@pytest.mark.parametrize("plan", PLANS)
def test_a_cache_holds_what_the_parts_say_that_they_keep(plan):
    """And what a layer reads of others is kept by somebody."""
    model = skeleton(plan, "nano", layers=6)
    cache = model.cache()
    of_one_token(model, cache)
    assert cache.kept.keys() - {"smear"} == names_by_parts(model)
    for block in model.blocks:
        for part in block.modules():
            if isinstance(part, Part):
                assert all(0 <= j < model.config.layers for j in part.reads)
                assert part.j is None or part.j >= max(part.reads, default=0)


def test_the_named_byte_counts_of_d12():
    named = dict(
        standard=36864,
        svformer=19968,
        row3=19968,
        row4=27648,
        row6=30720,
        bov=30724,
        cla=18432,
        skipv1=28416,
        dva=55296,
    )
    assert {plan: counts(plan, "d12")["cache_bytes_per_token"] for plan in named} == named


@pytest.mark.parametrize(
    "tokens,saved_mb",
    [(2048, -184.0), (32000, -0.13), (32768, 4.59), (131072, 608.2), (2**20, 6240)],
)
def test_equation_6_in_bytes(tokens, saved_mb):
    """Bank of Values against standard at d12, batch 1, from counted bytes: the table is paid once,
    W_V is not needed."""
    base, bov = counts("standard", "d12"), counts("bov", "d12")
    total = lambda c: c["cache_bytes_per_token"] * tokens + c["cache_bytes_fixed"]
    freed = 2 * 4 * 768 * 768
    assert (total(base) - total(bov) + freed) / 1e6 == pytest.approx(saved_mb, rel=2e-3, abs=0.01)


@pytest.mark.parametrize(
    "layers,targets",
    [
        (2, {1}),
        (3, {2}),
        (4, {2, 3}),
        (6, {4, 5}),
        (8, {5, 6, 7}),
        (10, {6, 7, 8, 9}),
        (12, {8, 9, 10, 11}),
        (24, set(range(16, 24))),
    ],
)
def test_the_last_third_is_what_the_code_says(layers, targets):
    found = describe(skeleton("bov", "nano", layers=layers))
    assert {i for i, word in enumerate(found) if word == "γ·E"} == targets


def test_alternate_layers_end_with_the_last():
    assert {i for i, word in enumerate(describe(skeleton("row7", "d12"))) if word == "γ·x0"} == {
        1,
        3,
        5,
        7,
        9,
        11,
    }
    assert "V1" not in describe(skeleton("row4", "nano", layers=5))[0], (
        "layer 0 cannot point at itself"
    )


@pytest.mark.parametrize(
    "context,short", [(256, 128), (512, 128), (1024, 256), (2048, 512), (4096, 1024)]
)
def test_short_windows_are_a_quarter_rounded_up(context, short):
    windows = SIZES["d12"].but(context=context).window_sizes()
    assert windows == [short, short, short, 0] * 3
    assert SIZES["d12"].but(context=context, layers=6).window_sizes()[-1] == 0, (
        "the last layer is always long"
    )


def test_modded_at_16_layers_is_what_the_record_ran():
    words = describe(skeleton("modded", "modded-medium"))
    assert [i for i, w in enumerate(words) if w == "no attention"] == [7]
    assert [(i, w[-2]) for i, w in enumerate(words) if "ve" in w] == [
        (0, "0"),
        (1, "1"),
        (2, "2"),
        (13, "0"),
        (14, "1"),
        (15, "2"),
    ]
    assert skeleton("modded", "modded-medium").streams[0].skips == {11: 2, 10: 4, 9: 6}
    assert [i for i, w in enumerate(SIZES["modded-medium"].window_sizes()) if w == 0] == [
        0,
        4,
        11,
        15,
    ], "long layers"


@pytest.mark.slow
def test_the_command_prints_the_agreed_schema():
    out = warm.run(["-m", "minimal.variants", "--size", "smoke", "--json"])
    assert out.returncode == 0, out.stderr
    rows = json.loads(out.stdout)
    assert [r["plan"] for r in rows] == list(PLANS)
    assert all(
        list(r)
        == [
            "plan",
            "parameters",
            "flops_per_token",
            "cache_bytes_per_token",
            "cache_bytes_fixed",
            "sources",
        ]
        for r in rows
    )
    assert rows[0] == summary("standard", "smoke")


def test_counting_lays_no_matrix_out():
    """A pass of one token; a matrix of d12 alone has 2.4 MB, and its largest 9.4."""
    model = skeleton("standard", "d12")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        count(model)
    largest = max(event.self_cpu_memory_usage for event in seen.events())
    assert largest < 2**20, largest


def test_a_way_to_read_that_goes_text_by_text_is_counted():
    class TextByText(Plain):
        def forward(self, q, k, value, h, at, tape):
            return torch.stack([q[b] for b in range(len(q))])

    model = skeleton(Plan(place(read=TextByText), name="by text"), "nano")
    assert count(model)["flops_per_token"] == count(skeleton("standard", "nano"))["flops_per_token"]
