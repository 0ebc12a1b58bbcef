"""What do the kernels become on a GPU that this machine does not have? Offline compilation.

Triton compiles for any GPU on any Linux machine, and its wheel carries NVIDIA's assembler. `report`
compiles every kernel at tiles that gather_attention launches, for sm_80 and sm_90, and reads the
result: registers, spills, shared memory, asynchronous copies (cp.async), tensor-core instructions
(wgmma, mma), reductions (RED) against atomics that wait for an answer (ATOM). `complaints` says
what must not be. These are facts about code, not timings. Most cases are in bf16, the largest also
in fp32, and in bf16 over a table in fp32, as a model has it. Decode is compiled for 16 query rows a
key head, and in fp32, which has the fewest registers left, also for the most that there can be.

    python -m course.compiled --out notebooks/evidence/measured/compiled.json
"""

import platform
import re
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from minimal.command import command
from minimal.data.results import check_evidence, header, write

# An A100 has 163 KB, but sm_86 and sm_89 run the same tiles with 99 KB.
SHARED_LIMIT = {80: 99 * 1024, 90: 227 * 1024}

ARCHITECTURES = tuple(SHARED_LIMIT)

BYTES = dict(bf16=2, fp16=2, fp32=4)

# Types of the kernels' arguments as Triton names them; ":16" is what it finds out by itself at a
# launch: divisible by 16.
# fmt: off
ARGUMENTS = {
    "*{dtype}": "q k table out unscaled grad grad_q grad_k grad_v rows",
    "*fp32":    "gain lse delta part bins",
    "*i32":     "ids lengths order starts",
    "i32:16":   "k_b k_s k_g table_v table_g width V",
    "i32":      "T S H ids_b lines splits",
    "fp32":     "scale bound",
    None:       "grad_table",
}
# fmt: on


class Case(NamedTuple):
    """One compilation: a kernel, a head width, an architecture, and how it differs from the
    plain."""

    kernel: str
    D: int
    arch: int
    dtype: str = "bf16"
    table: str | None = None  # the table's type, if it is another
    group: int = 1
    window: int = 0
    atomics: bool = False  # backward_keys adds to the table's gradient
    stored: bool = False  # no ids: V itself
    stages: int | None = None  # instead of those it is launched with
    study: str | None = None  # a row that compares, and may be what others must not be

    def label(self):
        """The name of the row."""
        parts = (
            (self.atomics, "by atomics"),
            (self.kernel not in TILED and self.group > 1, f"of {self.group} heads"),
            (self.stored, "of a stored V"),
            (self.dtype != "bf16", f"in {self.dtype}"),
            (self.table, f"({self.table} table)"),
        )
        return " ".join([self.kernel, *(words for holds, words in parts if holds)])


TILED = ("forward", "backward_queries", "backward_keys")  # their tiles stand in tables
LARGEST = (*TILED, "split")


def cases():
    """Every compilation, from the plain ones to a study of the pipeline."""
    for arch in ARCHITECTURES:
        for D in (64, 128):
            yield from (Case(kernel, D, arch) for kernel in LARGEST)
            yield Case("backward_keys", D, arch, atomics=True)
            yield Case("split", D, arch, group=8)
        for atomics in (False, True):
            for kernel in TILED[2:] if atomics else TILED:
                yield Case(kernel, 128, arch, atomics=atomics, window=512, group=4)
                yield Case(kernel, 96, arch, atomics=atomics)
        for kernel in ("sum_by_token", "combine", "scatter_masses"):
            yield Case(kernel, 128, arch)
        for kernel in LARGEST:
            yield Case(kernel, 128, arch, dtype="fp32")
            yield Case(kernel, 128, arch, table="fp32")
    for stages in (2, 3, 4, 5):  # what more stages buy a load through ids, and a plain one
        for stored in (False, True):
            yield Case("forward", 64, 90, stored=stored, stages=stages, study="stages")
    for arch in ARCHITECTURES:
        for kernel, group in (("split", 32), ("split", 64), ("scatter_masses", 64)):
            yield Case(kernel, 128, arch, dtype="fp32", group=group)


def argument_types(case):
    """{argument: type} of a kernel."""
    types = {name: kind for kind, names in ARGUMENTS.items() for name in names.split()}
    if case.kernel in ("split", "sum_by_token"):
        types["out"] = "*fp32"  # partial results, gradients
    if case.atomics:
        types |= dict(grad_v=None, grad_table="*fp32")
    if case.table:
        types["table"] = f"*{case.table}"
    if case.stored:
        types["ids"] = None
    return types


def launched(case):
    """(tile, other constants, warps, stages) with which the kernel is launched."""
    from minimal.kernels import backward, decode, forward

    padded = forward.padded_width(case.D)
    width = dict(D=case.D, PADDED=padded)
    if case.kernel == "sum_by_token":
        return dict(C=64, N=32), {}, 2, 3
    if case.kernel == "combine":
        return dict(PADDED_SPLITS=32), width, 4, 3
    constants = dict(width, GROUP=case.group, CAUSAL=True, WINDOW=case.window)
    if case.kernel in TILED:
        tables = (forward.TILES, backward.QUERY_TILES, backward.KEY_TILES)
        tiles = dict(zip(TILED, tables, strict=True))[case.kernel]
        generation = case.arch // 10
        m, n, warps, stages = forward.pick_tiles(tiles, BYTES[case.dtype], padded, generation)
        return dict(M=m, N=n), constants, warps, stages
    if case.kernel == "split":
        constants["JOINED"] = True
    keys = decode.KEYS if BYTES[case.dtype] == 2 else decode.KEYS_IN_FP32
    rows, warps = decode.rows_and_warps(1, case.group, BYTES[case.dtype], case.arch // 10)
    return dict(R=rows, N=keys), constants, warps, 3


def kernel_named(name):
    from minimal.kernels import backward, decode, forward

    # A file may import another's kernel: the one that it was written in has it, too.
    return next(getattr(m, name) for m in (forward, backward, decode) if hasattr(m, name))


def compile_case(case):
    """The row of the table for one case, a Case or a dict of its fields."""
    case = Case(**case) if isinstance(case, dict) else case
    kernel, types = kernel_named(case.kernel), argument_types(case)
    types = {name: kind and kind.format(dtype=case.dtype) for name, kind in types.items()}
    tile, constants, warps, stages = launched(case)
    constants, stages = constants | tile, case.stages or stages

    done = compile_kernel(kernel, types, constants, case.arch, warps, stages)
    plain = Case(case.kernel, case.D, case.arch)._asdict()
    special = {name: value for name, value in case._asdict().items() if value != plain[name]}
    return dict(
        kernel=case.label(),
        function=case.kernel,
        D=case.D,
        arch=case.arch,
        dtype=case.dtype,
        **{name: special[name] for name in special if name not in ("dtype", "stages")},
        tile="x".join(str(v) for v in tile.values()),
        warps=warps,
        stages=stages,
        **kernel_facts(done),
    )


def compile_kernel(kernel, types, constants, arch, warps, stages):
    """A kernel compiled: `types` by argument, None for what is not given."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    # The signature: a type an argument, or a constant; and what is divisible by 16.
    constants, signature, attributes = dict(constants), {}, {}
    for i, name in enumerate(kernel.arg_names):
        if name in constants or types[name] is None:
            signature[name] = "constexpr"
            constants.setdefault(name, None)
            continue
        signature[name], _, divisible = types[name].partition(":")
        if divisible or signature[name].startswith("*"):
            attributes[(i,)] = [["tt.divisibility", 16]]
    return triton.compile(
        ASTSource(kernel, signature, constants, attributes),
        target=GPUTarget("cuda", arch, 32),
        options=dict(num_warps=warps, num_stages=stages),
    )


def kernel_facts(done):
    """What stands in a compiled kernel."""
    usage, sass = disassemble(done.asm["cubin"])
    count = lambda pattern, text: len(re.findall(pattern, text))
    ptx = done.asm["ptx"]
    return dict(
        registers=int(re.search(r"REG:(\d+)", usage)[1]),
        spill_bytes=int(re.search(r"STACK:(\d+)", usage)[1]),
        shared_bytes=done.metadata.shared,
        cp_async=count(r"cp\.async\.c[ag]", ptx),
        cp_async_16B=count(r"cp\.async\.cg", ptx),
        cache_hints=count(r"L2::cache_hint", ptx),
        wgmma=count(r"wgmma\.mma_async", ptx),
        mma=count(r"mma\.sync", ptx),
        red=count(r"\bREDG?\.", sass),
        atom=count(r"\bATOMG?\.", sass),
    )


def disassemble(cubin):
    """(resource usage, machine code) by the tools in Triton's wheel."""
    import triton

    tools = triton.knobs.nvidia
    commands = (
        [tools.cuobjdump.path, "--dump-resource-usage"],
        [tools.nvdisasm.path, "-c"],
    )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        how = dict(capture_output=True, text=True, check=True)
        return [subprocess.run([*words, file.name], **how).stdout for words in commands]


def complaints(rows):
    """What must not be, one sentence each: an empty list is the claim."""
    for row in rows:
        function, half = row["function"], row["dtype"] != "fp32"
        dots = function not in ("sum_by_token", "combine")
        wide = function in TILED and half and row["arch"] == 90
        adds = row.get("atomics") or function == "scatter_masses"
        cores = row["wgmma"] + row["mma"]
        shared = row["shared_bytes"]
        fits = shared <= SHARED_LIMIT[row["arch"]]
        odd = row["stages"] % 2 == 1
        # fmt: off
        rules = [
            (row["spill_bytes"] == 0,              f"spills {row['spill_bytes']} bytes"),
            (fits,                                 f"wants {shared} bytes of shared memory"),
            (not dots or row["cp_async_16B"] > 0,  "copies nothing asynchronously in 16 bytes"),
            (not wide or row["wgmma"] > 0,         "does not use wgmma"),
            (not dots or not half or cores > 0,    "uses no tensor core"),
            (row["atom"] == 0,                     "waits for the answer of an atomic"),
            (not adds or row["red"] > 0,           "has no RED"),
            (odd or row.get("study"),              "has an even number of stages"),
        ]
        # fmt: on
        name = "{kernel} D={D} {dtype} sm_{arch} stages={stages}".format(**row)
        yield from (f"{name} {sentence}" for holds, sentence in rules if not holds)


def report():
    """The evidence file: everything compiled, two at a time."""
    import triton

    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(compile_case, cases(), chunksize=2))
    ask = [triton.knobs.nvidia.ptxas.path, "--version"]
    tool = subprocess.run(ask, capture_output=True, text=True).stdout
    head = header(
        "what the gather kernels compile to, without a GPU: facts about code, not timings",
        "python -m course.compiled --out notebooks/evidence/measured/compiled.json",
        corpus=dict(name="none", fingerprint="none", tokens=0),
    )
    versions = dict(
        triton=triton.__version__,
        ptxas=re.search(r"V([\d.]+)", tool)[1],
        python=platform.python_version(),
    )
    where = "none: compiled for sm_80 and sm_90"
    return head | dict(hardware=where, rows=rows, versions=versions)


SHOWN = (
    "kernel D dtype arch group window tile warps stages registers spill_bytes shared_bytes "
    "cp_async cp_async_16B cache_hints wgmma mma red atom"
).split()


def line(row):
    """A row of the printed table."""
    widths = {name: 32 if name == "kernel" else len(name) for name in SHOWN}
    return " ".join(f"{row.get(name, '')!s:>{width}}" for name, width in widths.items())


@command("course.compiled", __doc__.splitlines()[0])
def main(parser, argv):
    parser.add_argument("--out", type=Path, help="where to write the table")
    asked = parser.parse_args(argv)
    check_evidence(asked.out)
    table = report()
    if asked.out:
        write(asked.out, table)
    print(line({name: name for name in SHOWN}))
    for row in table["rows"]:
        print(line(row))
    found = list(complaints(table["rows"]))
    print(*found or ["no complaints"], sep="\n")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
