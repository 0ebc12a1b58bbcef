"""Does a fork of the warm Python answer as a Python that was started for the question?"""

import contextlib
import os
import subprocess
import sys

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from notebooks.run import our_kernel
from tests import warm
from tests.setup.test_lab import wait_for

TELL = """
import atexit, os, sys
print(__name__, sys.argv, sys.path[:2], os.getcwd(), os.environ.get('ASKED'), sys.stdin.read())
print('aside', file=sys.stderr)
atexit.register(print, 'at the end')
"""
ENDS = {"sys.exit(3)": 3, "sys.exit('a word')": 1, "pass": 0}


@pytest.mark.parametrize(
    "how, end", [("-c", "sys.exit(3)"), ("-m", "sys.exit('a word')"), ("a script", "pass")]
)
def test_it_says_what_a_new_python_says_and_ends_as_it_does(tmp_path, how, end):
    for name in ("tell.py", "first/other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TELL + end)
    starts = {"-c": ["-c", TELL + end], "-m": ["-m", "tell"], "a script": [tmp_path / "tell.py"]}
    words = [*starts[how], "--option", "value"]
    env = os.environ | dict(ASKED="yes", PYTHONPATH=str(tmp_path / "first"))
    pipes = dict(stdin=subprocess.DEVNULL, capture_output=True, text=True)
    truly = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, **pipes)
    quickly = warm.run(words, cwd=tmp_path, env=env)
    assert truly.returncode == quickly.returncode == ENDS[end]
    assert quickly.stdout == truly.stdout and "yes" in truly.stdout
    assert quickly.stderr == truly.stderr and truly.stderr.startswith("aside\n")


def test_nothing_of_one_question_is_there_in_the_next():
    leave = "import os, sys, torch; os.environ['LEFT'] = '1'; sys.modules['left'] = torch"
    assert warm.run(["-c", leave]).returncode == 0
    look = "import os, sys; print('LEFT' in os.environ, 'left' in sys.modules)"
    assert warm.run(["-c", look]).stdout == "False False\n"
    ours = (
        "import sys; print([name for name in sys.modules if name.startswith(('minimal', 'home'))])"
    )
    assert warm.run(["-c", ours]).stdout == "[]\n"


def test_a_team_has_its_ranks_and_fails_if_one_of_it_fails():
    say = "import os; print(os.environ['RANK'] + ' of ' + os.environ['WORLD_SIZE'] + '\\n', end='')"
    done = warm.run(["-c", say], processes=2)
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["0 of 2", "1 of 2"]
    fail = "import os, sys; sys.exit(os.environ['RANK'] == '1' and 'no')"
    assert warm.run(["-c", fail], processes=2).returncode == 1
    hang = "import os, time; time.sleep(60 * int(os.environ['RANK']))"
    assert warm.run(["-c", hang], processes=2, seconds=1).returncode < 0


def test_an_error_is_told_and_an_endless_loop_is_ended():
    done = warm.run(["-c", "1 / 0"])
    assert done.returncode == 1 and done.stderr.endswith("ZeroDivisionError: division by zero\n")
    if sys.platform == "linux":
        assert warm.run(["-c", "while True: pass"], seconds=1).returncode < 0


# ---- kernels -------------------------------------------------------------------------------------

LOOK = """
import os, sys, matplotlib, tqdm
print('left' in globals(), __name__, sys.argv[0][-21:], os.environ['ASKED'], os.getcwd())
print([path for path in sys.path if not path.endswith('forked')])
print(matplotlib.get_backend(), tqdm.tqdm([]).disable, sys.warnoptions, 'triton' in sys.modules)
left = 'of the one before'
"""


def looked(folder):
    """What a kernel of the runner prints, and its processes."""
    cells = [nbformat.v4.new_code_cell(text) for text in (LOOK, "print(os.getppid(), os.getpid())")]
    where = dict(metadata=dict(path=str(folder)))
    notebook = nbformat.v4.new_notebook(cells=cells)
    with our_kernel():
        NotebookClient(notebook, timeout=60, kernel_name="python3", resources=where).execute()
    return ["".join(output.text for output in cell.outputs) for cell in notebook.cells]


def test_a_forked_kernel_says_what_a_kernel_says_and_nothing_of_the_one_before(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ASKED", "yes")
    (truly, parents), first, second = looked(tmp_path), *forked_twice(tmp_path)
    assert truly.startswith("False __main__ ipykernel") and " yes " in truly
    assert "inline True ['ignore::Warning:tqdm.auto'] False" in truly, "told by the runner"
    assert first[0] == second[0] == truly
    ours = str(os.getpid())
    assert parents.split()[0] == ours, "outside of the block a kernel is a Python of its own"
    if sys.platform == "linux":
        assert ours not in (first[1].split()[0], second[1].split()[0]) and first[1] != second[1]


def forked_twice(folder):
    with warm.kernels():
        return looked(folder), looked(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
@pytest.mark.parametrize("killed", ["the launcher", "whoever started it"])
def test_a_forked_kernel_ends_with_the_process_that_jupyter_started_and_its_parent(
    tmp_path, killed
):
    file = tmp_path / "connection.json"
    launcher = [sys.executable, "-m", "ipykernel_launcher", "-f", str(file)]
    wait = f"import subprocess; subprocess.run({launcher})"
    command = launcher if killed == "the launcher" else [sys.executable, "-c", wait]
    with warm.kernels():
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started = subprocess.Popen(command, cwd=tmp_path, **quiet)

    def there():
        found = set()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.cwd() == str(tmp_path):
                    found.add(process.pid)
        return found - {started.pid}

    try:
        wait_for(file.exists)
        # the kernel, and its launcher; for a moment, as they start, there may be one more
        wait_for(lambda: len(there()) == 1 + (killed != "the launcher"))
    finally:
        started.kill()
        started.wait()
    wait_for(lambda: not there(), 20)
