"""A Python that has torch already, for tests that ask what a command says.

`python -m pytest homework/hw03` spends two seconds on importing torch and half a second on its
tests. `run` answers like subprocess.run, from a fork of one process that has imported torch and
pytest and nothing of ours. A command that many tests ask has one test that starts it truly.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SERVE = """
import atexit, json, os, resource, runpy, signal, socket, sys, traceback
import numpy, pytest, torch

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
    sys.path[:1] = [first, *paths]
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
servers = []


def server():
    """Started by the first who asks; it ends with this process, which holds its standard input."""
    if not servers:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", SERVE]
        how = dict(stdin=pipe, stdout=pipe, text=True, env=environment | dict(OMP_NUM_THREADS="1"))
        servers.append(subprocess.Popen(command, **how))
    return servers[0]


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
        process = server()
        process.stdin.write(json.dumps(asked | dict(said=list(map(str, said)))) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        texts = [path.read_text(encoding="utf-8") for path in said]
    return subprocess.CompletedProcess(words, code, *texts)
