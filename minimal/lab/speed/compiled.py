"""What do the kernels become on a GPU that this machine does not have?

Triton compiles for any GPU on any Linux machine, and its wheel carries NVIDIA's assembler. `report` compiles every
kernel at tiles that gather_attention launches, for sm_80 and sm_90, and reads the result: registers, spills, shared
memory, asynchronous copies (cp.async), tensor-core instructions (wgmma, mma), reductions (RED) against atomics that
wait for an answer (ATOM). `complaints` says what must not be. These are facts about code, not timings. Most cases are
in bf16, the largest also in fp32, and in bf16 over a table in fp32, as a model has it. Decode is compiled for up to 16
query rows a key head (64 of them spill in fp32).

    python -m minimal.lab.speed.compiled --out notebooks/evidence/compiled.json
"""

import argparse
import platform
import re
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from minimal.data.results import header, write

SHARED_LIMIT = {
    80: 99 * 1024,
    90: 227 * 1024,
}  # an A100 has 163 KB, but sm_86 and sm_89 run the same tiles with 99 KB

ARCHITECTURES = tuple(SHARED_LIMIT)

TYPES = dict(bf16=2, fp16=2, fp32=4)

# Arguments of the kernels as Triton names them; ":16" is what it finds out by itself at a launch: divisible by 16.
ARGUMENTS = {
    name: "*{dtype}" for name in "q k table out unscaled grad grad_q grad_k grad_v rows".split()
}

ARGUMENTS |= {name: "*fp32" for name in "gain lse delta part bins".split()}

ARGUMENTS |= {name: "*i32" for name in "ids lengths order starts".split()}

ARGUMENTS |= {name: "i32:16" for name in "k_b k_s k_g table_v table_g width V".split()}

ARGUMENTS |= {name: "i32" for name in "T S H ids_b lines".split()} | dict(
    scale="fp32", bound="fp32", grad_table=None
)


def cases():
    """One row a compilation: kernel, head width, architecture, what differs from the plain case, and why it is here."""
    kernels = (
        "forward",
        "backward_queries",
        "backward_keys",
        "backward_keys by atomics",
        "split",
        "split of 8 heads",
    )
    largest = ("forward", "backward_queries", "backward_keys", "split")
    for arch in ARCHITECTURES:
        for D in (64, 128):
            yield from (dict(kernel=kernel, D=D, arch=arch) for kernel in kernels)
        for kernel in ("forward", "backward_queries", "backward_keys", "backward_keys by atomics"):
            yield dict(kernel=kernel, D=128, arch=arch, window=512, group=4)
            yield dict(kernel=kernel, D=96, arch=arch)
        yield from (
            dict(kernel=kernel, D=128, arch=arch)
            for kernel in (
                "sum_by_token",
                "combine",
                "scatter_masses",
                "scatter_masses in fixed point",
            )
        )
        yield from (
            dict(kernel=f"{kernel} in fp32", D=128, arch=arch, dtype="fp32") for kernel in largest
        )
        yield from (
            dict(kernel=f"{kernel} (fp32 table)", D=128, arch=arch, table="fp32")
            for kernel in largest
        )
    for stages in (
        2,
        3,
        4,
        5,
    ):  # the pipeliner's rule: what more stages buy a load through ids, and a plain one
        yield dict(kernel="forward", D=64, arch=90, stages=stages, study="stages")
        yield dict(kernel="forward of a stored V", D=64, arch=90, stages=stages, study="stages")


def build(case):
    """(kernel, argument types, constants, tile, warps, stages) of a case."""
    from minimal.kernels import backward, decode, forward

    name, D, dtype = case["kernel"].split()[0], case["D"], case.get("dtype", "bf16")
    padded, types = max(32, 1 << (D - 1).bit_length()), dict(ARGUMENTS)
    constants = dict(
        GROUP=case.get("group", 1), CAUSAL=True, WINDOW=case.get("window", 0), D=D, PADDED=padded
    )
    if name == "sum_by_token":
        types["out"], tile, warps, stages = "*fp32", dict(C=64, N=32), 2, 3
        constants = {}
    elif name == "combine":
        tile, warps, stages = dict(SPLITS=24, PADDED_SPLITS=32), 4, 3
        constants = dict(D=D, PADDED=padded)
    elif name in ("split", "scatter_masses"):
        tile, warps, stages = (
            dict(R=16, N=decode.KEYS if TYPES[dtype] == 2 else decode.FEW_KEYS),
            4,
            3,
        )
        constants |= dict(SPLITS=24, GROUP=8 if "8 heads" in case["kernel"] else 1)
        types["out"] = "*fp32"  # partial results
        if name == "scatter_masses":
            constants["FIXED_POINT"] = "fixed" in case["kernel"]
            types["bins"] = "*i64" if constants["FIXED_POINT"] else "*fp32"
    else:
        tiles = dict(
            forward=forward.TILES,
            backward_queries=backward.QUERY_TILES,
            backward_keys=backward.KEY_TILES,
        )[name]
        m, n, warps, stages = forward.pick_tiles(tiles, TYPES[dtype], padded, case["arch"] // 10)
        tile = dict(M=m, N=n)
    if "atomics" in case["kernel"]:
        types |= dict(grad_v=None, grad_table="*fp32")
    if "table" in case:
        types["table"] = f"*{case['table']}"
    if "stored V" in case["kernel"]:
        types["ids"] = None
    kernel = next(
        getattr(module, name) for module in (forward, backward, decode) if hasattr(module, name)
    )
    return kernel, types, constants | tile, tile, warps, case.get("stages", stages)


def compile_case(case):
    """The row of the table for one case."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel, types, constants, tile, warps, stages = build(case)
    dtype, signature, attributes = case.get("dtype", "bf16"), {}, {}
    for i, name in enumerate(kernel.arg_names):
        if name in constants or types[name] is None:
            signature[name], constants[name] = "constexpr", constants.get(name)
            continue
        signature[name], _, divisible = types[name].format(dtype=dtype).partition(":")
        if divisible or signature[name].startswith("*"):
            attributes[(i,)] = [["tt.divisibility", 16]]
    done = triton.compile(
        ASTSource(kernel, signature, constants, attributes),
        target=GPUTarget("cuda", case["arch"], 32),
        options=dict(num_warps=warps, num_stages=stages),
    )
    ptx, usage, sass = done.asm["ptx"], *disassemble(done.asm["cubin"])
    count = {
        name: len(re.findall(pattern, text))
        for name, pattern, text in (
            ("cp_async", r"cp\.async\.c[ag]", ptx),
            ("cp_async_16B", r"cp\.async\.cg", ptx),
            ("cache_hints", "L2::cache_hint", ptx),
            ("wgmma", r"wgmma\.mma_async", ptx),
            ("mma", r"mma\.sync", ptx),
            ("red", r"\bREDG?\.", sass),
            ("atom", r"\bATOMG?\.", sass),
        )
    }
    return dict(
        case,
        dtype=dtype,
        tile="x".join(str(v) for v in tile.values()),
        warps=warps,
        stages=stages,
        registers=int(re.search(r"REG:(\d+)", usage)[1]),
        spill_bytes=int(re.search(r"STACK:(\d+)", usage)[1]),
        shared_bytes=done.metadata.shared,
        **count,
    )


def disassemble(cubin):
    """(resource usage, machine code) by the tools in Triton's wheel."""
    import triton

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tools = triton.knobs.nvidia
        return [
            subprocess.run([*command, file.name], capture_output=True, text=True, check=True).stdout
            for command in (
                [tools.cuobjdump.path, "--dump-resource-usage"],
                [tools.nvdisasm.path, "-c"],
            )
        ]


def complaints(rows):
    """What must not be, one sentence each: an empty list is the claim."""
    for row in rows:
        name = (
            f"{row['kernel']} D={row['D']} {row['dtype']} sm_{row['arch']} stages={row['stages']}"
        )
        dots = row["kernel"] not in ("sum_by_token", "combine")
        wide = (
            dots and not row["kernel"].startswith(("split", "scatter")) and row["dtype"] != "fp32"
        )
        rules = [
            (row["spill_bytes"] == 0, f"spills {row['spill_bytes']} bytes"),
            (
                row["shared_bytes"] <= SHARED_LIMIT[row["arch"]],
                f"wants {row['shared_bytes']} bytes of shared memory",
            ),
            (not dots or row["cp_async_16B"] > 0, "copies nothing asynchronously in 16 bytes"),
            (not (wide and row["arch"] == 90) or row["wgmma"] > 0, "does not use wgmma"),
            (
                not dots or row["dtype"] == "fp32" or row["wgmma"] + row["mma"] > 0,
                "uses no tensor core",
            ),
            (row["atom"] == 0, "waits for the answer of an atomic"),
            (
                row["red"] > 0 or not ("atomics" in row["kernel"] or "scatter" in row["kernel"]),
                "has no RED",
            ),
            (row["stages"] % 2 == 1 or row.get("study"), "has an even number of stages"),
        ]
        yield from (f"{name} {sentence}" for holds, sentence in rules if not holds)


def report():
    """The evidence file: everything compiled, two at a time."""
    import triton

    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(compile_case, cases(), chunksize=2))
    tool = subprocess.run(
        [triton.knobs.nvidia.ptxas.path, "--version"], capture_output=True, text=True
    ).stdout
    head = header(
        "what the gather kernels compile to, without a GPU: facts about code, not timings",
        "python -m minimal.lab.speed.compiled --out notebooks/evidence/compiled.json",
        corpus=dict(name="none", fingerprint="none", tokens=0),
    )
    return head | dict(
        hardware="none: compiled for sm_80 and sm_90",
        rows=rows,
        versions=dict(
            triton=triton.__version__,
            ptxas=re.search(r"V([\d.]+)", tool)[1],
            python=platform.python_version(),
        ),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to write the table")
    arguments = parser.parse_args()
    table = report()
    if arguments.out:
        write(arguments.out, table)
    columns = (
        "kernel D dtype arch group window tile warps stages registers spill_bytes shared_bytes cp_async "
        "cp_async_16B wgmma mma red atom"
    ).split()
    for row in [dict(zip(columns, columns, strict=True)), *table["rows"]]:
        print(
            *(f"{row.get(name, '')!s:>{32 if name == 'kernel' else len(name)}}" for name in columns)
        )
    found = list(complaints(table["rows"]))
    print(*found or ["no complaints"], sep="\n")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
