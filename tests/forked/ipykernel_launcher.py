"""Jupyter's `python -m ipykernel_launcher` where this folder leads PYTHONPATH: a fork of a kernel.

`kernels` of tests/warm.py says why. This process is the one that Jupyter started: it passes signals
on, ends as the kernel ends, and the kernel ends where this is killed or left by who started it.
"""

import json
import os
import select
import signal
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(os.environ["FORKED_KERNELS"])
    socket.send_fds(line, [b"."], [0, 1, 2])
    asked = dict(words=sys.argv, cwd=os.getcwd(), env=dict(os.environ))
    line.sendall(json.dumps(asked).encode() + b"\n")
    answer = lambda: line.recv(8, socket.MSG_WAITALL)
    parent, kernel = os.getppid(), int(answer())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(kernel, number))
    while not select.select([line], [], [], 1)[0]:
        if os.getppid() != parent:
            sys.exit(1)
    code = int(answer() or 1)
sys.exit(code)
