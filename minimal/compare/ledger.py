"""How is a file of runs filled? Each row is written as soon as it is made, and names the state of
the numbers that it was made in (commit, torch, machine), since the same run on other code or
another processor differs in the third digit.
"""

import ctypes
import functools
import math
import platform
import subprocess
import time
from pathlib import Path

from minimal.data import files, results

# ---- what is there -------------------------------------------------------------------------------


def rows_of(path):
    """The rows of an evidence file; none where there is no file yet."""
    path = Path(path)
    return results.read(path)["rows"] if path.exists() and path.stat().st_size else []


# ---- the state of the numbers --------------------------------------------------------------------


@functools.cache
def numerical_state():
    """What decides the last digits of a run, beside the run: commit, torch, machine."""
    import torch

    from minimal.training.device import compute_dtype

    if torch.cuda.is_available():
        kind = str(compute_dtype("cuda")).removeprefix("torch.")
        machine = f"{torch.cuda.get_device_name()}, {kind}"
    else:
        kernels = torch.backends.cpu.get_cpu_capability()  # AVX2, AVX512 and the like
        machine = of_maker(f"{platform.machine()} {kernels}, {torch.get_num_threads()} threads")
    return dict(commit=commit_here(), torch=torch.__version__, machine=machine)


def of_maker(machine, maker=None):
    """A processor's name with its maker, where that is not Intel. PyTorch's library of products
    (MKL) asks who made the processor: two with the same instructions add in different orders."""
    maker = told_maker() if maker is None else maker
    on_a_gpu = not machine.endswith("threads")
    if on_a_gpu or maker in ("", "GenuineIntel") or maker in machine:
        return machine
    kernels, threads = machine.split(", ")
    return f"{kernels} {maker}, {threads}"


def told_maker():
    """The maker that MKL believes in. A preloaded library that answers mkl_serv_intel_cpu_true for
    it makes an AMD add in the order of an Intel: the same first losses, to the last bit."""
    if hasattr(ctypes.CDLL(None), "mkl_serv_intel_cpu_true"):
        return "GenuineIntel"
    return results.cpu_says("vendor_id")


def commit_here():
    """The commit of this checkout, with a + where minimal/ was changed since; None without git."""
    made = results.commit()
    if made is None:
        return None
    ask = ["git", "status", "--porcelain", "--", "minimal"]
    changed = subprocess.run(ask, cwd=files.CHECKOUT, capture_output=True, text=True).stdout
    return made + "+" * bool(changed)


# ---- filling a file ------------------------------------------------------------------------------


def missing(path, cells, recorded):
    """The cells that no row of the file is: `recorded(row, cell)` says whether a row is a cell."""
    rows = rows_of(path)
    return [cell for cell in cells if not any(recorded(row, cell) for row in rows)]


def fill(path, cells, recorded, make, until=math.inf):
    """Make the cells that an evidence file lacks, append each row at once, and return those that
    are missing still. `make(cell)` -> (row, the head of a new file, what to say of the row), or
    None where it cannot be had now. From `until` (time.monotonic) on no further one begins."""
    cells = list(cells)
    for cell in missing(path, cells, recorded):
        if time.monotonic() >= until:
            break
        if cell not in missing(path, cells, recorded):
            continue  # another process has made it meanwhile
        made = make(cell)
        if made is None or cell not in missing(path, cells, recorded):
            continue
        row, head, words = made
        row = row | numerical_state() | row  # what a row says of its own making stands
        results.append(path, row, head, there=lambda other: recorded(other, cell))
        to_go = len(missing(path, cells, recorded))
        print(f"{row['plan']:20} seed {row['seed']}: {words}; {to_go} to go", flush=True)
    return missing(path, cells, recorded)
