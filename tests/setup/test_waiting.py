"""Does torch hear how long its threads may spin? It asks once, as it is loaded.

The set-up tells it: a line of course.pth, which Python reads at its start. The package itself sets
nothing for the process that imports it."""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there torch stands on libgomp")

RUN = (
    "import pytest; pytest.main(['-q', '-s', '-p', 'no:cacheprovider', 'homework/hw01_attention'])"
)
STARTS = dict(  # how the course is started
    command="import minimal.train",
    notebook="from course.drawings.systems import systems; import torch",
    homework=RUN,
    tests="import tests.conftest, torch",
)


def spins(code, *flags, **told):
    """What libgomp says that it was told, when it is loaded by this code."""
    environment = dict(os.environ, OMP_DISPLAY_ENV="verbose", PYTHONPATH=str(ROOT))
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        environment.pop(name, None)
    how = dict(cwd=ROOT, env=environment | told, capture_output=True, text=True)
    done = subprocess.run([sys.executable, *flags, "-c", code], **how)
    assert done.returncode == 0, done.stderr[-2000:]
    return re.findall(r"GOMP_SPINCOUNT = '(.+)'", done.stderr)


def libgomp():
    """Code that loads torch's own, and nothing else of it: that takes two seconds less."""
    packages = sysconfig.get_path("purelib")
    own = sorted(pathlib.Path(packages, "torch", "lib").glob("libgomp*"))
    return f"import ctypes; ctypes.CDLL({str(own[0])!r})" if own else "import torch"


def until_torch(code):
    """The same code up to where it asks for torch: there libgomp is loaded, and it ends."""
    return f"""
import os, sys
class Torch:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            sys.meta_path.remove(Torch)
            exec({libgomp()!r})
            os._exit(0)
sys.meta_path.insert(0, Torch)
{code}
raise SystemExit("torch was not asked for")
"""


def test_without_us_libgomp_would_spin_for_long():
    packages = sysconfig.get_path("purelib")
    counts = spins(f"import minimal; {libgomp()}", "-S", PYTHONPATH=f"{ROOT}:{packages}")
    assert counts and all(int(count) >= 100_000 for count in counts)


@pytest.mark.parametrize("code", STARTS.values(), ids=STARTS)
def test_threads_spin_for_a_moment_however_the_course_is_started(code):
    assert set(spins(until_torch(code))) == {"2000"}


def test_torch_itself_is_told_so():
    assert set(spins("import torch")) == {"2000"}


def test_what_the_user_says_of_waiting_stands():
    assert set(spins(libgomp(), GOMP_SPINCOUNT="77")) == {"77"}
    assert set(spins(libgomp(), OMP_WAIT_POLICY="passive")) == {"0"}
