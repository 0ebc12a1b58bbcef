"""Jupyter's `python -m ipykernel_launcher` where this folder leads PYTHONPATH: a fork of a kernel.

`kernels` of tests/warm.py says why. This process is the one that Jupyter started: it passes signals
on, ends with the kernel and as the kernel ends, and the kernel ends where this is killed.
"""

import json
import os
import signal
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(os.environ["FORKED_KERNELS"])
    socket.send_fds(line, [b"."], [0, 1, 2])
    asked = dict(words=sys.argv, cwd=os.getcwd(), env=dict(os.environ))
    line.sendall(json.dumps(asked).encode() + b"\n")
    answers = line.makefile()
    kernel = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(kernel, number))
    code = int(answers.readline() or 1)
sys.exit(code)
