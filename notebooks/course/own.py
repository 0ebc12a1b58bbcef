"""What does the compiler make of a kernel in a file of your own? Compiled for a GPU, and read.

    rows = compile_own("mine.py", [dict(kernel="split", types=…, constants=…, arch=90)])

In a process of its own, because one that runs Triton's interpreter cannot compile. Facts about
code, not timings.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = (
    "import json, sys; from course.own import compile_here; "
    "print(json.dumps(compile_here(*json.loads(sys.argv[1]))))"
)

COUNTED = dict(  # instructions of the intermediate code (PTX), one line each
    exponentials=r"ex2\.approx",
    multiplications=r"\bmul\.(?:ftz\.)?f32",
    selects=r"\bselp\.",
)


def compile_own(path, cases):
    """A row a case, or None where nothing can be compiled here, with the reason as its text."""
    environment = {name: x for name, x in os.environ.items() if name != "TRITON_INTERPRET"}
    asked = json.dumps([str(path), cases])
    command = [sys.executable, "-c", PROBE, asked]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return None, (done.stderr.strip() or "no answer").splitlines()[-1]
    return json.loads(done.stdout.splitlines()[-1]), ""


def compile_text(text, cases):
    """The same for a kernel's text: a compiler reads files, so it is put into one first."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mine.py")
        file.write_text(text, encoding="utf-8")
        return compile_own(file, cases)


def compile_here(path, cases):
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [one(module, **case) for case in cases]


def one(module, kernel, types, constants, arch, warps=4, stages=3):
    """One compilation: `types` by argument, as Triton names them; pointers divide by 16."""
    from course import compiled

    kernel = getattr(module, kernel)
    done = compiled.compile_kernel(kernel, types, constants, arch, warps, stages)
    counts = {name: len(re.findall(words, done.asm["ptx"])) for name, words in COUNTED.items()}
    return dict(arch=arch, warps=warps, stages=stages) | compiled.kernel_facts(done) | counts
