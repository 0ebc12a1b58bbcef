"""A warm process that forks a training on demand: killing twenty costs seconds, not minutes."""

import json
import os
import signal
import subprocess
import sys

SERVE = """
import json, os, sys, time, torch
torch.set_num_threads(1)
from minimal import train
from minimal.training.run import Run
measure_once = train.matmul_rate("cpu")
train.matmul_rate = lambda where: measure_once
run = Run(**json.loads(sys.argv[1]))
train.Trainer(run, quiet=True)  # warm: everything is imported, the corpus packed
step_once = train.Trainer.step
train.Trainer.step = lambda self, step: (time.sleep(pace), step_once(self, step))[1]
for line in sys.stdin:
    pace = float(line)
    child = os.fork()
    if child == 0:
        train.Trainer(run, quiet=True).fit()
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


class Worker:
    """with Worker(run) as w: pid = w.start(); w.kill(pid). w.finish() lets the last life end."""

    def __init__(self, run):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, json.dumps(run)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict(OMP_NUM_THREADS="1"),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def start(self, pace=0.0):
        """A life that waits so many seconds before a step: a fast machine must not be at the end
        before it is killed."""
        self.process.stdin.write(f"{pace}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        assert self.process.stdout.readline() == "ended\n"

    def finish(self):
        self.start()
        assert self.process.stdout.readline() == "ended\n"
