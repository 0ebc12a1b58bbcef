"""What the kernels become on GPUs that are not here: no spills, asynchronous copies, tensor cores,
RED and not ATOM."""

import json
import os
import subprocess
import sys

import pytest

from course import compiled, records
from minimal.kernels import route

pytestmark = pytest.mark.slow
RECORDED = records.read("compiled")
STEP = int(os.environ.get("STEP", 12))  # between cases that are compiled again
ALL = list(compiled.cases())
FIRST = {(case.kernel, case.arch): at for at, case in reversed([*enumerate(ALL)])}
TRIED = sorted({*range(0, len(ALL), STEP), *FIRST.values()})
COMMAND = """
from course import compiled

cases = list(compiled.cases())
compiled.cases = lambda: [cases[at] for at in {tried}]
raise SystemExit(compiled.main())
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The first case of every kernel on either GPU, and every twelfth of all: STEP=1 compiles all.
    In a process of its own, because in this one Triton is an interpreter."""
    if not route.HAS_TRITON or sys.platform != "linux":
        pytest.skip("Triton is not installed: nothing can be compiled for a GPU here")
    out = tmp_path_factory.mktemp("compiled") / "compiled.json"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(tried=TRIED), "--out", str(out)],
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(out.read_text())


# PyTorch's compiler hands a kernel its numbers in float64, where a launch from Python has float32.
IN_FLOAT64 = """
from course import compiled

for name in ("split", "scatter_masses"):
    case = compiled.Case(name, 128, 90)
    kernel, types = compiled.kernel_named(name), compiled.argument_types(case)
    types = {arg: kind and kind.format(dtype=case.dtype) for arg, kind in types.items()}
    types |= dict(scale="fp64", bound="fp64")
    tile, constants, warps, stages = compiled.launched(case)
    done = compiled.compile_kernel(kernel, types, constants | tile, 90, warps, stages)
    wide = [line for line in done.asm["ptx"].splitlines() if "ex2" in line and "f64" in line]
    assert not wide and "ex2.approx" in done.asm["ptx"], name
"""


def test_decoding_compiles_where_its_numbers_come_in_float64():
    if not route.HAS_TRITON or sys.platform != "linux":
        pytest.skip("Triton is not installed: nothing can be compiled for a GPU here")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    command = [sys.executable, "-c", IN_FLOAT64]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_kernel_compiles_for_both_gpus_without_a_complaint(fresh):
    assert list(compiled.complaints(fresh["rows"])) == []
    for arch in compiled.ARCHITECTURES:
        names = {row["function"] for row in fresh["rows"] if row["arch"] == arch}
        assert names == {
            "forward",
            "backward_queries",
            "backward_keys",
            "sum_by_token",
            "split",
            "combine",
            "scatter_masses",
        }


def test_the_recorded_table_is_what_this_triton_makes_of_these_kernels(fresh):
    if fresh["versions"]["triton"] != RECORDED["versions"]["triton"]:
        versions = RECORDED["versions"]["triton"], fresh["versions"]["triton"]
        pytest.skip("recorded with triton {}, here is {}".format(*versions))
    recorded = [RECORDED["rows"][at] for at in TRIED]
    assert fresh["rows"] == recorded, "the kernels changed: run " + RECORDED["command"]


def test_the_recorded_table_has_no_complaint_and_what_the_notebook_shows():
    assert list(compiled.complaints(RECORDED["rows"])) == []
    for row in RECORDED["rows"]:
        assert {
            "kernel",
            "D",
            "dtype",
            "arch",
            "tile",
            "warps",
            "stages",
            "registers",
            "spill_bytes",
            "shared_bytes",
            "cp_async",
            "cp_async_16B",
            "wgmma",
            "mma",
            "red",
            "atom",
        } <= set(row)


def test_a_load_through_ids_gains_from_odd_stages_only():
    """(stages - 1) // 2 further buffers for what hangs on the ids, stages - 1 for what does not."""
    shared = {
        (row["kernel"], row["stages"]): row["shared_bytes"]
        for row in RECORDED["rows"]
        if row.get("study")
    }
    copies = {
        (row["kernel"], row["stages"]): row["cp_async"]
        for row in RECORDED["rows"]
        if row.get("study")
    }
    assert shared["forward", 3] == shared["forward", 4] < shared["forward", 5]
    assert (
        copies["forward", 2] < copies["forward", 3] == copies["forward", 4] < copies["forward", 5]
    )
    stored = [shared["forward of a stored V", stages] for stages in (2, 3, 4, 5)]
    assert stored == sorted(set(stored))


@pytest.mark.parametrize(
    "kernel, change, sentence",
    (
        ("forward", dict(spill_bytes=8), "spills 8 bytes"),
        ("forward", dict(cp_async_16B=0), "copies nothing asynchronously"),
        ("forward", dict(wgmma=0), "does not use wgmma"),
        ("split", dict(mma=0), "uses no tensor core"),
        ("backward_keys", dict(shared_bytes=300_000), "wants 300000 bytes of shared memory"),
        ("backward_keys by atomics", dict(atom=1), "waits for the answer of an atomic"),
        ("scatter_masses", dict(red=0), "has no RED"),
        ("split", dict(stages=4), "has an even number of stages"),
    ),
)
def test_each_complaint_can_be_made(kernel, change, sentence):
    row = next(
        row
        for row in RECORDED["rows"]
        if row["kernel"] == kernel and row["arch"] == 90 and "study" not in row
    )
    assert [sentence in said for said in compiled.complaints([row | change])].count(True) == 1


def test_a_case_is_fields_and_its_name_follows_from_them():
    """The name is for readers; nothing is read back from it."""
    case = compiled.Case
    assert case("split", 128, 90, group=8).label() == "split of 8 heads"
    assert case("backward_keys", 64, 80, atomics=True).label() == "backward_keys by atomics"
    assert case("forward", 64, 90, stored=True).label() == "forward of a stored V"
    assert case("forward", 64, 90, dtype="fp32").label() == "forward in fp32"
    assert case("forward", 64, 90, table="fp32").label() == "forward (fp32 table)"
    assert len(set(compiled.cases())) == len(list(compiled.cases())) == len(RECORDED["rows"])


@pytest.mark.parametrize("case", sorted({case.kernel for case in compiled.cases()}))
def test_every_argument_of_every_kernel_has_a_type_or_is_a_constant(case, interpreter):
    case = compiled.Case(case, 128, 90)
    tile, constants, _, _ = compiled.launched(case)
    told = compiled.argument_types(case).keys() | constants.keys() | tile.keys()
    assert set(compiled.kernel_named(case.kernel).arg_names) <= told
