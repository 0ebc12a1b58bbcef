"""A Python that has torch already, for tests that ask what a command says.

`python -m pytest homework/hw03` spends two seconds on importing torch and half a second on its
tests. `run` answers like subprocess.run, from a fork of one process that has imported torch,
pytest, papermill and nbconvert, and nothing of ours. A command that many tests ask has one test
that starts it truly.

A notebook's kernel imports as much before its first cell: within `kernels` it is such a fork too.
"""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace

from notebooks import run as runner

SERVE = """
import atexit, gc, json, os, resource, runpy, signal, socket, traceback
import pytest
sys.modules["rfc3987_syntax"] = None  # as notebooks/run.py does
import nbconvert, papermill
del sys.modules["rfc3987_syntax"]
gc.collect()
gc.freeze()  # pytest collects at its end, and need not look through torch

torch.set_num_threads(1)
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, flush=True)
else:
    sys.exit()

# the child: in the place, the environment and the streams that were asked for
resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["env"])
reading = os.open(os.devnull, os.O_RDONLY)
for number, end in enumerate([reading, *(os.open(name, os.O_WRONLY) for name in asked["said"])]):
    os.dup2(end, number)

# several of it, as torchrun would start them; when time is up, none of them is left
if asked["processes"] > 1:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    team = dict(WORLD_SIZE=asked["processes"], MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    os.setpgrp()
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(0, signal.SIGKILL))
    signal.alarm(asked["seconds"])
    ranks = []
    for rank in range(asked["processes"]):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            signal.alarm(0)
            team |= dict(RANK=rank, LOCAL_RANK=rank)
            os.environ.update((name, str(value)) for name, value in team.items())
            break
    else:
        codes = [os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]
        os._exit(int(any(codes)))

# then what Python does with these words
def carry_out(how, *rest):
    first = {"-m": os.getcwd(), "-c": ""}.get(how, os.path.dirname(how))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [first, *paths, *(path for path in sys.path[1:] if path not in paths)]
    sys.argv = list(rest) if how in ("-m", "-c") else [how, *rest]
    if how == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv[0] = "-c"
        exec(compile(rest[0], "<string>", "exec"), dict(__name__="__main__"))
    else:
        runpy.run_path(how, run_name="__main__")

# and its end, less half a second in which torch would be taken apart
code = 0
try:
    carry_out(*asked["words"])
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
except BaseException:
    traceback.print_exc()
    code = 1
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""

# what most notebooks and commands import; not Triton, which reads its environment as it comes
IMPORTS = """
import sys
import numpy, torch
import matplotlib.backends.backend_agg, matplotlib.figure, matplotlib.font_manager
assert not [name for name in sys.modules if name.startswith("triton")]
"""

KERNELS = """
import contextlib, gc, json, os, select, socket, threading, traceback
from ipykernel import kernelapp
import IPython, ipykernel.debugger, matplotlib_inline.backend_inline
import pandas, scipy.optimize, scipy.stats  # of whatever reads our records: three CPU seconds
import torch.distributed.fsdp  # half of what an optimizer's first step loads
gc.collect()
gc.freeze()

torch.set_num_threads(1)
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen()
print("open", flush=True)
while True:
    if sys.stdin in select.select([door, sys.stdin], [], [])[0]:
        sys.exit()  # whoever started this is gone
    line = door.accept()[0]
    if os.fork() == 0:
        break
    line.close()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass

# between: the parent of one kernel, which tells how it ended
streams = socket.recv_fds(line, 1, 3)[1]
asked = json.loads(line.makefile().readline())
kernel = os.fork()
if kernel:
    line.sendall(b"%8d" % kernel)
    code = os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1])
    line.sendall(b"%8d" % (code if code >= 0 else 128 - code))
    os._exit(0)

# the kernel: in the place, the environment and the streams that were asked for
def until_it_is_killed():
    line.recv(1)
    os._exit(1)

os.setsid()
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["env"])
for number, end in enumerate(streams):
    os.dup2(end, number)
paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
sys.path[:] = [*paths, *(path for path in sys.path[1:] if path not in paths)]  # no path twice
sys.argv = asked["words"]
numpy.random.seed()
threading.Thread(target=until_it_is_killed, daemon=True).start()
code = 0
try:
    kernelapp.launch_new_instance()
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
except BaseException:
    traceback.print_exc()
    code = 1
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""
servers, folders = {}, []


def in_a_fork(work):
    """What work() returns, worked out in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = work()
        except BaseException:
            answer = traceback.format_exc()
        with os.fdopen(writing, "wb") as sheet:
            pickle.dump(answer, sheet)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as sheet:
        told = sheet.read()
    os.waitpid(child, 0)
    return pickle.loads(told) if told else "its process ended without a word"


def server(code, *words, **more):
    """Started by the first who asks; it ends with this process, which holds its standard input."""
    if code not in servers:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        pipe = subprocess.PIPE
        how = dict(stdin=pipe, stdout=pipe, text=True)
        environment |= dict(OMP_NUM_THREADS="1") | more
        command = [sys.executable, "-c", IMPORTS + code, *words]
        servers[code] = subprocess.Popen(command, env=environment, **how)
    return servers[code]


@contextlib.contextmanager
def kernels():
    """Within, a kernel that Jupyter starts is a fork of one that has imported what IMPORTS says."""
    if sys.platform != "linux":
        yield
        return
    if KERNELS not in servers:
        folders.append(tempfile.TemporaryDirectory(prefix="kernels-"))
        os.environ["FORKED_KERNELS"] = str(Path(folders[0].name, "door"))
        # what libraries read as they are imported is what the runner tells its kernels
        told = runner.QUIET | dict(MPLBACKEND="module://matplotlib_inline.backend_inline")
        server(KERNELS, os.environ["FORKED_KERNELS"], **told).stdout.readline()
    before = os.environ.get("PYTHONPATH")
    paths = [str(Path(__file__).with_name("forked")), before]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@contextlib.contextmanager
def runners():
    """Within, the runner that is started for each notebook is a fork; there is one at a time."""
    fork = lambda command, env, **how: run(command[1:], env=env)
    runner.subprocess = SimpleNamespace(run=fork, TimeoutExpired=subprocess.TimeoutExpired)
    try:
        with kernels():
            yield
    finally:
        runner.subprocess = subprocess


def run(words, cwd=".", env=None, seconds=300, processes=1):
    """What `python *words` printed, and how it ended; `seconds` of a processor at most.

    As several `processes` it is one team, and `seconds` are those of the clock.
    """
    words, env = list(map(str, words)), dict(os.environ if env is None else env)
    if sys.platform != "linux":  # elsewhere a process with torch is not safely forked
        team = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *(team if processes > 1 else ()), *words]
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("stdout", "stderr")]
        for path in said:
            path.touch()
        asked = dict(words=words, cwd=str(Path(cwd).resolve()), env=env, seconds=seconds)
        asked["processes"] = processes
        process = server(SERVE)
        process.stdin.write(json.dumps(asked | dict(said=list(map(str, said)))) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        texts = [path.read_text(encoding="utf-8") for path in said]
    return subprocess.CompletedProcess(words, code, *texts)
