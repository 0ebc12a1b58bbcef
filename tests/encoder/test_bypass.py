"""Does V' = V + alpha act(X) do what it says at every dial, stay inside the attention, and obey the
variance identity?"""

import math

import pytest
import torch
import torch.nn.functional as F

from course.variance import spread, variance_of_sum
from minimal.encoder import bert, bypass
from minimal.kernels.reference import weights
from minimal.model.config import Config
from minimal.model.values import Bypass
from minimal.variants import build

SIZE = Config(3, 48, 4, 40, 97, style="bert", windows="L")
IDS = torch.randint(97, (2, 13), generator=torch.Generator().manual_seed(0))


def model(plan="standard", **changes):
    made = bert.build(plan, SIZE.but(**changes)).eval()
    # a spread of activations that small initial weights would not give
    for module in made.modules():
        if hasattr(module, "key") and getattr(module, "kind", "") == "matrix":
            module.weight.data.mul_(8)
    return made


def bypassed(made):
    """The value sources that add act(X), by layer."""
    return [m for m in made.modules() if isinstance(getattr(m, "y", None), Bypass)]


def values(made):
    """(X, V', own V) of every layer, in one forward pass."""
    tape = made.tape(IDS)
    made(IDS, tape=tape)
    return [(tape.streams[at], tape.rows[at], tape.raw[at]) for at in range(made.config.layers)]


@pytest.mark.parametrize(
    "act, function", [("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu), ("none", lambda x: x)]
)
@pytest.mark.parametrize("on", ["raw", "norm"])
@pytest.mark.parametrize("alpha", ["fixed", "layer", "head", "global", "gate"])
def test_values_are_own_plus_alpha_times_act_of_the_input(alpha, act, function, on):
    made = model(dict(alpha=alpha, start=0.3, act=act, on=on))
    for at, source in enumerate(bypassed(made)):
        if alpha == "gate":
            random = torch.Generator().manual_seed(at)
            source.gate.weight.data.normal_(0, 0.3, generator=random)
        elif alpha != "fixed":
            numbers = source.b.value
            numbers.data += 0.1 * torch.arange(numbers.numel()).view(numbers.shape) + at
    for at, (x, mixed, own) in enumerate(values(made)):
        past = function(F.layer_norm(x, (48,)) if on == "norm" else x).view(2, 13, 4, 12)
        wanted = dict(
            fixed=lambda: 0.3,
            layer=lambda: 0.3 + at,
            global_=lambda: 0.3 + 3,  # one number, moved by all layers
            head=lambda: (0.3 + at + 0.1 * torch.arange(4.0))[:, None],
            gate=lambda: torch.sigmoid(x @ bypassed(made)[at].gate.weight[0])[..., None, None],
        )
        torch.testing.assert_close(mixed, own + wanted[alpha.replace("global", "global_")]() * past)


def test_the_report_s_setting_is_the_plan_bypass_and_alpha_zero_is_the_standard_model():
    plain, named, dialled = model(), model("bypass"), model({})
    torch.testing.assert_close(named(IDS), dialled(IDS), rtol=0, atol=1e-6)
    assert not torch.allclose(plain(IDS), dialled(IDS), atol=1e-2)
    torch.testing.assert_close(plain(IDS), model(dict(start=0.0))(IDS), rtol=0, atol=0)
    assert sum(p.numel() for p in plain.parameters()) == sum(
        p.numel() for p in dialled.parameters()
    )


@pytest.mark.parametrize(
    "alpha, count, numbers", [("fixed", 0, 0), ("global", 1, 1), ("layer", 3, 3), ("head", 3, 12)]
)
def test_each_way_of_learning_alpha_has_its_number_of_numbers(alpha, count, numbers):
    made = model(dict(alpha=alpha, start=0.25))
    learned = made.coefficients().values()
    assert (len(learned), sum(c.numel() for c in learned)) == (count, numbers)
    assert all((c == 0.25).all() for c in learned)
    assert (
        sum(p.numel() for p in made.parameters())
        == sum(p.numel() for p in model().parameters()) + numbers
    )
    if alpha == "global":
        plan = bypass.plan(dict(alpha="global"))
        one, other = (bypassed(build(plan, "smoke")) for _ in range(2))
        assert len({id(source.b) for source in bypassed(made)}) == 1
        assert one[0].b is one[1].b is not other[0].b, "two models of one plan share nothing"


def test_the_gate_is_a_function_of_the_token_and_opens_at_one_half():
    made = model(dict(alpha="gate"))
    torch.testing.assert_close(made(IDS), model(dict(start=0.5))(IDS))
    source = bypassed(made)[0]
    source.gate.weight.data.normal_(0, 1, generator=torch.Generator().manual_seed(0))
    h = torch.randn(2, 13, 48, generator=torch.Generator().manual_seed(1))
    gate = source.opening(h)
    assert gate.shape == (2, 13, 1, 1) and gate.std() > 0.1
    torch.testing.assert_close(source.opening(h.flip(1)).flip(1), gate)


@pytest.mark.parametrize(
    "where, layers",
    [
        ("everywhere", {0, 1, 2}),
        ("last_third", {2}),
        ("after_first", {1, 2}),
        ("alternate", {0, 2}),
        ((1,), {1}),
        ((), set()),
    ],
)
def test_any_subset_of_layers_can_have_it(where, layers):
    made = model(dict(where=where))
    assert {source.at for source in bypassed(made)} == layers
    if not layers:
        assert torch.equal(made(IDS), model()(IDS))


def test_unknown_dials_get_one_sentence():
    for dials in (
        dict(alpha="maybe"),
        dict(act="tanh"),
        dict(on="layernorm"),
        dict(where="nowhere"),
    ):
        ((name, value),) = dials.items()
        with pytest.raises(ValueError, match=f"{name}='{value}': wanted one of") as error:
            bypass.plan(dials)
        assert "\n" not in str(error.value)
    for where, wanted in (
        (0, "where=0: wanted one of"),
        ((9,), "there is no layer 9, wanted 0 to 2"),
        ([-1], "no layer -1"),
        ({"a": 1}, "where={'a': 1}: wanted one of"),
    ):
        with pytest.raises(ValueError, match=wanted):
            bert.build(dict(where=where), SIZE)
    with pytest.raises(ValueError, match="unknown dial 'alpa': one of alpha, start"):
        bypass.plan(dict(alpa="head"))
    with pytest.raises(ValueError, match=r"alpha=\['head'\]: wanted one of fixed"):
        bypass.plan(dict(alpha=["head"]))
    for start in ("a half", float("nan")):
        with pytest.raises(ValueError, match=f"start={start!r}: wanted a number"):
            bypass.plan(dict(start=start))
    with pytest.raises(ValueError, match="use groups = heads"):
        bert.build({}, SIZE.but(groups=2))


def test_the_bypass_stays_inside_the_attention():
    """A V' = A V + alpha A act(X): what comes out of a head is still weighted by what the head
    attends to."""
    made = model(dict(start=0.7))
    tape = made.tape(IDS)
    made(IDS, tape=tape)
    for at in range(3):
        a = weights(tape.queries[at], tape.keys[at], causal=False)  # (B, H, T, T)
        past = F.relu(tape.streams[at]).view(2, 13, 4, 12)
        out = torch.einsum("bhts,bshd->bthd", a, tape.raw[at]) + 0.7 * torch.einsum(
            "bhts,bshd->bthd", a, past
        )
        torch.testing.assert_close(tape.out[at], out, atol=1e-4, rtol=1e-4)


def test_a_decoder_can_have_it_too_and_decodes_as_it_reads():
    for dials in (
        dict(alpha="head", act="silu"),
        dict(alpha="gate", on="norm"),
        dict(alpha="global", where="alternate"),
    ):
        made = build(bypass.plan(dials), "smoke").eval()
        for block in made.blocks:
            block.attention.out.weight.data.normal_(0, 0.1)
        ids = torch.randint(512, (2, 12))
        cache = made.cache()
        steps = torch.cat([made(ids[:, i : i + 3], cache=cache) for i in range(0, 12, 3)], 1)
        torch.testing.assert_close(steps, made(ids), atol=1e-5, rtol=1e-5)


# ---- over training ------------------------------------------------------------------------------


def test_ramps_move_alpha_and_leave_what_is_learned_alone():
    assert [bypass.RAMPS["warmup"](d) for d in (0, 0.25, 0.5, 1)] == [0, 0.5, 1, 1]
    assert [bypass.RAMPS["decay"](d) for d in (0, 0.25, 1)] == [1, 0.75, 0]
    made, plain = model(dict(alpha="layer")), model()
    full = made(IDS)
    bypass.set_ramp(made, "decay", 1.0)
    assert torch.equal(made(IDS), plain(IDS)) and all(
        (c == 0.5).all() for c in made.coefficients().values()
    )
    bypass.set_ramp(made, "decay", 0.5)
    half = model(dict(start=0.25))
    torch.testing.assert_close(made(IDS), half(IDS))
    bypass.set_ramp(made, "constant", 0.5)
    assert torch.equal(made(IDS), full)
    assert "ramp" not in " ".join(made.state_dict()), (
        "a ramp is a function of the step, not something to save"
    )


def test_a_ramp_moves_the_plan_bypass_too():
    made, plain = model("bypass"), model()
    bypass.set_ramp(made, "decay", 1.0)
    assert torch.equal(made(IDS), plain(IDS))


# ---- the variance identity ----------------------------------------------------------------------


def test_the_identity_holds_on_tensors_of_any_shape_scale_and_sign():
    random = torch.Generator().manual_seed(0)
    for shape in ((7,), (3, 5, 4), (2, 13, 4, 12)):
        for a in (0.5, -1.3, 0.0, 10.0):
            v = torch.randn(shape, generator=random) * 3 - 1
            r = F.relu(torch.randn(shape, generator=random) + 0.4 * v)
            got = variance_of_sum(v, r, a)
            assert got["left"] == pytest.approx(got["right"], rel=1e-10)
            assert got["right"] == pytest.approx(got["v"] + got["r"] + got["cross"])
            assert got["falls"] == (got["left"] < got["v"])


def test_the_report_s_own_formula_misses_by_its_lost_alpha():
    random = torch.Generator().manual_seed(1)
    x = torch.randn(4000, generator=random)
    v, r, a = x + 0.1 * torch.randn(4000, generator=random), F.relu(x), 0.5
    got = variance_of_sum(v, r, a)
    assert (
        got["v"] + got["r"] + got["cross"] / a - got["left"]
        == pytest.approx(got["cross"], rel=1e-9)
        and got["cross"] > 0.3
    )


def test_variance_falls_to_a_quarter_where_v_is_minus_relu():
    x = torch.randn(200_000, generator=torch.Generator().manual_seed(2))
    got = variance_of_sum(-F.relu(x), F.relu(x), 0.5)
    assert got["v"] == pytest.approx(1 / 2 - 1 / (2 * math.pi), abs=0.01)  # .341
    assert got["left"] == pytest.approx(got["v"] / 4) and got["falls"]
    at_the_border = variance_of_sum(-F.relu(x), F.relu(x), 2.0)  # Cov = -a Var(R) / 2
    assert at_the_border["left"] == pytest.approx(got["v"])


def test_spread_measures_the_identity_on_real_activations_layer_by_layer():
    for plan in ("standard", dict(alpha="fixed", start=0.5)):
        made = model(plan)
        rows = spread(made, IDS, a=0.5)
        assert len(rows) == 3 and all(
            row["left"] == pytest.approx(row["right"], rel=1e-9) for row in rows
        )
        for row, (_x, mixed, own) in zip(rows, values(made)):
            assert row["v"] == pytest.approx(own.double().var(correction=0).item(), rel=1e-6)
            assert row["attended"] == pytest.approx(
                mixed.double().var(correction=0).item(), rel=1e-6
            )
            assert row["attended"] == pytest.approx(
                row["v" if plan == "standard" else "left"], rel=1e-5
            )
