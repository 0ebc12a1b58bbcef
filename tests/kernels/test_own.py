"""A kernel in a file of one's own, compiled without a GPU: what 11b says of it is what is there."""

import inspect
import sys

import pytest

from course import own, steps
from homework.in_notebooks.solutions import nb11a, nb11b
from minimal.kernels import route
from minimal.kernels.tiles import function_of

pytestmark = pytest.mark.slow


def text_of(kernel):
    return inspect.getsource(function_of(kernel))


@pytest.fixture(scope="module", autouse=True)
def linux():
    if not route.HAS_TRITON or sys.platform != "linux":
        pytest.skip("Triton is not installed: nothing can be compiled for a GPU here")


def test_the_eight_differences_show_what_the_notebook_reads_off(tmp_path):
    text, cases = steps.variants(text_of(nb11a.gather), text_of(nb11b.scatter))
    file = tmp_path / "eight.py"
    file.write_text(text)
    found, why = own.compile_own(file, list(cases.values()))
    assert why == ""
    rows = dict(zip(cases, found, strict=True))
    plain = rows["bf16"]
    assert rows["fp32"]["wgmma"] == 0 < plain["wgmma"], "tensor cores take bf16"
    assert rows["three loops"]["wgmma"] == 2 * plain["wgmma"]
    assert rows["three loops"]["cp_async_16B"] == 2 * plain["cp_async_16B"]
    assert rows["exp2"]["multiplications"] < plain["multiplications"]
    assert rows["exp2"]["exponentials"] == plain["exponentials"]
    assert rows["blind rows"]["selects"] > plain["selects"]
    assert rows["masses"]["red"] == rows["fixed-point masses"]["red"] == 1
    assert all(row["spill_bytes"] == row["atom"] == 0 for row in found)

    head, *lines = steps.as_table(rows).splitlines()
    assert (
        head.split()
        == "registers shared B cp.async wgmma products selects hints RED spills".split()
    )
    assert [line[:20].strip() for line in lines] == list(rows)
    assert lines[1].split()[-1] == "0", "nothing spills"


def test_a_split_without_a_product_of_tiles_is_not_fetched_ahead():
    text = steps.PRELUDE + text_of(nb11b.split)
    how = dict(kernel="split", types=steps.split_types(), constants=dict(D=128, N=64))
    rows, _ = own.compile_text(text, [dict(how, arch=90, stages=n) for n in (2, 5)])
    assert [row["cp_async"] for row in rows] == [0, 0]
    assert rows[0]["registers"] == rows[1]["registers"]


def test_what_cannot_be_compiled_says_why(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("def split(:\n")
    rows, why = own.compile_own(file, [])
    assert rows is None and "SyntaxError" in why
