"""Triton's language on tiles of PyTorch: addresses are checked and kept, mistakes have names."""

import inspect
import os
import sys

import pytest
import torch

from course import launch, steps
from course.drawings import addresses
from homework.in_notebooks import kernels, nb11a
from homework.in_notebooks.solutions import nb11a as solved
from homework.mistakes import written
from minimal.kernels import tiles
from minimal.kernels.tiles import tl


def copy(x, out, n, BLOCK):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place, mask=place < n), mask=place < n)


def everywhere(x, out, n, BLOCK):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place))


def stretched(x, out, n, BLOCK):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + 2 * place, tl.load(x + place, mask=place < n), mask=place < n)


def beyond(x, out, n, BLOCK):
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + n + tl.arange(0, BLOCK)))


def same_place(x, out, n, BLOCK):
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))


def untold(x, out, n, BLOCK):
    lane = tl.arange(0, BLOCK)
    row = tl.load(x + lane, mask=lane < n)
    tl.store(out + lane, row * 0 + tl.sum(row, 0), mask=lane < n)


def odd(x, out, n, BLOCK):
    tl.store(out + tl.arange(0, 3), 1.0)


def ran(kernel, n=10, BLOCK=4, programs=3, **how):
    x, out = torch.arange(float(n)), kernels.empty(n)
    return out, tiles.run(kernel, (programs,), x, out, n, BLOCK=BLOCK, **how)


def test_every_load_and_store_is_kept_with_its_places():
    out, trace = ran(copy)
    assert torch.equal(out, torch.arange(10.0))
    loads = [event.places.tolist() for event in trace.of("x", "load")]
    assert loads == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [event.idle for event in trace.of("out", "store")] == [0, 0, 2]
    assert trace.twice("out") is None


def test_places_are_counted_in_memory_not_in_the_tensors_order():
    x = torch.arange(6.0).view(2, 3).T  # (3, 2)
    assert tiles.addresses_of(x).tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    "kernel, says",
    [
        (everywhere, "program 2 loads from place 10 of x, which has 10: switch the lanes"),
        (stretched, "place 10 of out, which has 10: your mask has its lane on"),
        (beyond, "place 10 of x, which has 10: no place of this tile lies inside"),
        (odd, "wanted a power of two of lanes"),
    ],
)
def test_what_a_gpu_would_do_in_silence_is_an_error_here(kernel, says):
    with pytest.raises(tiles.Mistake, match=says):
        ran(kernel)


@pytest.mark.parametrize(
    "line, says",
    [
        ("x[lane]", "x is an address and no number: tl.load"),
        ("2 * x", "x is an address and no number"),
        ("tl.load(x + out)", "out is an address and no number"),
        ("tl.load(x + lane / 2)", "an address is a whole number"),
        ("tl.arange(BLOCK)", "wanted two ends, tl.arange"),
        ("tl.zeros(BLOCK, tl.float32)", "wanted the shape in brackets"),
        ("tl.max(lane, tl.max(lane, 0))", "tl.maximum takes the larger"),
        ("tl.store(out, tl.full([1], 0.0, tl.float32))", r"stored is \(1,\), and its addresses"),
    ],
)
def test_a_slip_of_a_first_kernel_is_told_in_a_sentence(line, says):
    names = dict(tl=tl)
    code = f"def slip(x, out, n, BLOCK):\n    lane = tl.arange(0, BLOCK)\n    {line}\n"
    exec(code, names)
    with pytest.raises(tiles.Mistake, match=says):
        ran(names["slip"])


SPOKEN = r"""tl.store(out, tl.log(0.5 + 0.0))
l = 0.0\nfor _ in range(2):\n    l = l + 1\ntl.store(out, tl.log(l))
tl.store(out, tl.maximum(float("-inf"), tl.max(row, 0)))
tl.store(out, row.max(0) - row.min(axis=0) + row.sum(0))
tl.store(out + lane, row - row.max())
tl.store(out + lane, row.to(out.dtype.element_ty))
tl.store(out + lane, row.exp() + row.abs().sqrt() + tl.math.exp(row))
tl.store(out + tl.arange(0, 1), tl.sum(row, 0, keep_dims=True))
tl.store(out + lane, row[None, :].broadcast_to(1, 4).reshape(4))
tl.store(out + lane, tl.trans(row[:, None]).sum(0) + tl.expand_dims(row, 1).sum(1))
tl.store(out + lane, tl.fma(row, 2.0, tl.zeros_like(row)) + tl.softmax(row))
tl.store(out + lane, tl.cast(lane, tl.float32) + max(row.max(0), 0.0))
""".splitlines()


@pytest.mark.parametrize("lines", SPOKEN)
def test_what_triton_takes_the_tiles_take_with_the_same_numbers(lines):
    head = ["@triton.jit", "def spoken(x, out, BLOCK: tl.constexpr):"]
    head += ["    lane = tl.arange(0, BLOCK)", "    row = tl.load(x + lane)"]
    code = "\n".join(head + ["    " + line for line in lines.split("\\n")])

    def launch(x):
        out = torch.zeros(4)
        return kernels.Launch((1,), (x, out), dict(BLOCK=4), (out,))

    (out,) = kernels.launched(launch, written(code), torch.arange(4.0))
    assert out.isfinite().all() and out.any()


def test_two_programs_at_one_place_are_named():
    out, trace = ran(same_place)
    assert trace.twice("out") == (0, (0,), (1,))


def test_an_idle_lane_that_was_told_nothing_spoils_a_sum():
    out, _ = ran(untold, n=3, programs=1)
    assert out.isnan().all()
    assert not ran(untold, n=4, programs=1)[0].isnan().any()


def test_programs_run_in_the_order_that_is_asked_for():
    seen = []

    def noted(x, out, n, BLOCK):
        seen.append(int(tl.program_id(0)))

    ran(noted, order=[(2,), (0,), (1,)])
    assert seen == [2, 0, 1]


def test_a_kernel_is_launched_as_in_triton_where_there_is_none():
    x, out = torch.arange(10.0), kernels.empty(10)
    tiles.triton.jit(copy)[(3,)](x, out, 10, BLOCK=4)
    assert torch.equal(out, x)


def test_a_notebook_gets_triton_interpreted_or_tiles_under_the_same_names(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "set back by the test")
    _, language, start = launch.prepare("laptop")
    assert os.environ["TRITON_INTERPRET"] == "1" and start.where == "cpu"
    assert (language is tl) == launch.ABSENT
    monkeypatch.setitem(sys.modules, "triton", None)  # a machine without it
    triton, language, start = launch.prepare("laptop", "torch")
    assert triton is tiles.triton and language is tl and start.ways == ["tiles"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert launch.prepare("gpu")[2].where == "cuda" and os.environ["TRITON_INTERPRET"] == "0"


def test_the_launcher_fills_the_arguments_and_keeps_the_trace():
    start = launch.Launcher("torch")
    x, out = torch.arange(10.0), kernels.empty(10)
    trace = start(tiles.triton.jit(copy), (3,), x, out, 10, BLOCK=4)
    assert torch.equal(out, x) and trace.grid == (3,) and start.ways == ["tiles"]
    assert "only" in str(start)


def test_gaps_count_infinities_at_the_same_place_as_equal():
    a = torch.tensor([1.0, float("-inf"), float("nan")])
    assert launch.tensors_apart(a, a.clone()) == 0.0
    assert launch.tensors_apart(a, torch.tensor([1.5, float("-inf"), float("nan")])) == 0.5
    assert launch.tensors_apart(a, torch.ones(3)) > 1e30


# ---- what a learner hears of a kernel ------------------------------------------------------------


def verdict(exercise, kernel):
    part = exercise.parts[-1]
    row = nb11a.unit.mark({exercise.name: kernel}, {}, exercise, part)
    return row.state, row.why


def test_a_learner_hears_of_races_strangers_and_gaps():
    exercise = nb11a.unit.exercises["add"]

    def race(x, y, out, n, BLOCK):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    def stranger(x, y, out, n, BLOCK):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + place, tl.load(x + place))

    def gap(x, y, out, n, BLOCK):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mine = place < n - 1
        total = tl.load(x + place, mask=mine) + tl.load(y + place, mask=mine)
        tl.store(out + place, total, mask=mine)

    def added(x, y, out, n, BLOCK):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out + place, 1.0, mask=place < n)

    says = {kernel: verdict(exercise, kernel) for kernel in (race, stranger, gap, added)}
    assert "tl.atomic_add adds to what is there" in says[added][1]
    assert "programs 0 and 1 both store to place 0" in says[race][1]
    assert "program 2 loads from place 10 of x" in says[stranger][1]
    assert says[gap] == (
        "wrong",
        "program 2 never loads x[9], which it needs: "
        "1 of 10 places are NaN, the first at [9]: no program stored them; "
        "asked with x=float32 (10,), y=float32 (10,), BLOCK=4",
    )


def test_idle_lanes_are_blamed_only_for_a_nan_that_they_made():
    def summed(x, out, C, BLOCK):
        lane = tl.arange(0, BLOCK)
        row = tl.load(x + tl.program_id(0) * C + lane, mask=lane < C)
        tl.store(out + tl.program_id(0), tl.sum(row, 0))

    def nothing(x, out, C, BLOCK):
        row = tl.load(x + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < C)
        tl.store(out + tl.program_id(0), tl.sum(tl.where(row != row, 0.0, 0.0 * row), 0) / 0.0)

    exercise = nb11a.unit.exercises["row_sum"]
    says = "your idle lanes were told nothing in the load of x"
    assert says in verdict(exercise, summed)[1]
    assert "told nothing" not in verdict(exercise, nothing)[1]


# ---- the drawings --------------------------------------------------------------------------------


def test_a_drawing_says_what_the_run_did():
    _, trace = ran(copy)
    alt = addresses.addresses(trace, 2).alt
    assert "program 2 of 3" in alt and "x loads 2 places, 2 lanes off" in alt
    kinds = addresses.touched(trace, "out", (1,))
    assert kinds.tolist() == [1, 1, 1, 1, 3, 3, 3, 3, 1, 1]


def test_a_pipeline_follows_the_rule_of_the_record():
    """Buffers as compiled.json has them for the forward kernel through ids."""
    from course import records

    study = [row for row in records.read("compiled")["rows"] if row.get("study") == "stages"]
    for row in study:
        if row["kernel"] == "forward":
            buffers = round(row["shared_bytes"] / 16384) - 1
            assert addresses.leads(row["stages"])[0] + 1 == buffers, row["stages"]


# ---- eight differences ---------------------------------------------------------------------------


def source(kernel):
    return inspect.getsource(tiles.function_of(kernel))


def test_the_edits_change_the_text_and_not_the_numbers():
    """But exp2, which wants its log2(e) from outside."""
    given = [torch.randn(41, 16, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    inputs = (*given, torch.arange(41) % 7, 0.7, 16, 16)
    wanted = kernels.launched(nb11a.launch_gather, solved.gather, *inputs)
    text = source(solved.gather)
    for edit in (steps.tensor_cores, steps.two_loops, steps.blind_rows):
        changed = edit(text)
        assert changed != text
        names = dict(tl=tl, triton=tiles.triton)
        exec(changed, names)
        made = nb11a.launch_gather(*inputs)
        tiles.run(names["gather"], made.grid, *made.arguments, **made.sizes)
        for found, right in zip(made.outs, wanted, strict=True):
            torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-4)


def test_eight_differences_each_with_its_line_and_reason():
    assert len(steps.STEPS) == 8
    assert {step.shows for step in steps.STEPS} == {"compiled", "record", "GPU"}
    named = {step.name for step in steps.STEPS if step.shows == "compiled"}
    assert named == set(steps.EDITS) | {"fixed-point masses"}
    with pytest.raises(ValueError, match="wanted the notebook's kernel"):
        steps.two_loops("def gather(): pass")
