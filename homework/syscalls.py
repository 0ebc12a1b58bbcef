"""Which system calls may what is graded make? All but these: it is one process that computes.

One process has one limit of memory, so what it cannot start need not be counted. The filter is a
short program that the kernel runs at every call (seccomp); homework/runner.py installs it in the
process of each part. Linux on x86_64 and aarch64.
"""

import errno
import platform
import struct
import sys

REFUSED = {  # name: its number on x86_64, on aarch64
    # another process, or another program
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    # memory, queues and keys that no limit of a process counts, or that outlive it
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "io_setup": (206, 0),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # the network, other namespaces, files by another way
    "socket": (41, 198),
    "socketpair": (53, 199),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # what mostly serves to attack the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "modify_ldt": (154, None),
    "personality": (135, 92),
    "kcmp": (312, 272),
}
CLONE = (56, 220)  # allowed for threads only
THREAD = 0x10000
NEWER = 424  # from here on numbers are the same everywhere: io_uring, pidfd_open, clone3, …
KINDS = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, the kernel's own name

# instructions of the kernel's small machine, and its answers
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
CALL, KIND, FIRST_ARGUMENT = 0, 4, 16  # offsets in what it reads


def number(name, machine=None):
    """The number of a refused call here, or None."""
    which, _ = column(machine)
    return None if which is None else REFUSED[name][which]


def column(machine=None):
    """Which column of numbers a kernel uses, and its own name: None twice if it is not known."""
    known = KINDS if sys.platform == "linux" else {}
    return known.get(machine or platform.machine(), (None, None))


def filter_program(machine=None):
    """The filter as bytes, or b"" for a processor that is not known here.

    What is newer than all of this "does not exist", so that libraries take the older road.
    """
    which, kind = column(machine)
    if kind is None:
        return b""
    refused, missing = ERROR | errno.EPERM, ERROR | errno.ENOSYS
    program = [(LOAD, 0, 0, KIND), (EQUAL, 1, 0, kind), (RETURN, 0, 0, KILL)]
    program += [(LOAD, 0, 0, CALL), (AT_LEAST, 0, 1, NEWER), (RETURN, 0, 0, missing)]
    for numbers in REFUSED.values():
        if numbers[which] is not None:
            program += [(EQUAL, 0, 1, numbers[which]), (RETURN, 0, 0, refused)]
    program += [(EQUAL, 0, 3, CLONE[which]), (LOAD, 0, 0, FIRST_ARGUMENT)]
    program += [(ANY_BIT, 1, 0, THREAD), (RETURN, 0, 0, refused), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in program)
