"""How long may an answer compute? An alarm on a clock of the answer's own.

A busy machine is not the answer's fault, and neither are modules that a fresh kernel loads once. So
what counts is the processor's time of the thread that runs the answer, less imports. Whoever only
waits uses none: a longer limit, on the wall's clock, ends that.
"""

import signal
import sys
import threading
import time

PATIENCE = 6  # times the seconds, on the wall's clock
EVERY = 0.5  # seconds between two looks


class Slow(BaseException):
    """What runs has run for too long."""


class alarm:
    """Stops what runs inside after so many seconds; then the list that it yields is not empty.

    Only where the system has such an alarm, and in the main thread; a debugger may take its time.
    It rings again and again, since each case of a part may be endless, and never within an import:
    a module that is loaded by half stays so for the rest of the process.
    """

    def __init__(self, seconds):
        self.left = [seconds, PATIENCE * seconds]
        self.every = min(EVERY, seconds / 4)
        self.rung, self.over = [], False

    def __enter__(self):
        self.outside = sys._getframe(1)
        self.seen = clocks()
        in_main = threading.current_thread() is threading.main_thread()
        self.is_set = hasattr(signal, "SIGALRM") and in_main
        if self.is_set:
            self.ring_before = signal.signal(signal.SIGALRM, self.look)
            self.time_before = signal.setitimer(signal.ITIMER_REAL, self.every, self.every)
        return self.rung

    def __exit__(self, kind, error, trace):
        self.over = True
        if self.is_set:  # an alarm around this one goes on
            signal.setitimer(signal.ITIMER_REAL, *self.time_before)
            signal.signal(signal.SIGALRM, self.ring_before)
        return kind is not None and issubclass(kind, Slow)

    def look(self, number, frame):
        now = clocks()
        spent = [new - old for new, old in zip(now, self.seen)]
        self.seen = now
        leaving = self.over or frame.f_code is alarm.__exit__.__code__
        if leaving or sys.gettrace() or is_importing(frame, self.outside):
            return
        self.left = [left - used for left, used in zip(self.left, spent)]
        if min(self.left) <= 0:
            self.rung.append(True)
            raise Slow


def clocks():
    return time.thread_time(), time.monotonic()


def is_importing(frame, outside):
    """Is a module being loaded, by what runs inside the frame `outside`?"""
    while frame and frame is not outside:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
