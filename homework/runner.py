"""How is a learner's file read and called, even when it is broken or hostile?

The public tests use `load` and `answer` in their own process. The grader starts this file alone,
behind a sandbox, and speaks with it in messages: limits, then the source, then one question each.
Every question is answered in its own fork.
"""

import __future__

import ast
import contextlib
import copy
import importlib.util
import io
import json
import linecache
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import types

import numpy as np

MOST = 16 << 20  # bytes of one answer
# What an account leaves behind when its processes have ended: its files in a folder, however deep
# or closed. chmod gets folders only: it would follow a link that it is given.
SWEEP = """
find "$1" -mindepth 1 -maxdepth 1 -user "$(id -u)" -type d -exec chmod -R u+rwx {} +
find "$1" -mindepth 1 -maxdepth 1 -user "$(id -u)" -exec rm -rf {} +
"""
IMPORTS = dict(F="import torch.nn.functional as F", np="import numpy as np")
IMPORTS |= {name: f"import {name}" for name in ("math", "torch", "itertools", "functools")}
REMEDIES = (  # words of an error, what stands in the line that it comes from, what to do
    (
        "Boolean value of",
        "",
        "if, and, or, not, max and min want ONE truth; of tensors write &, |, ~, torch.where and "
        "torch.clamp",
    ),
    ("only one element tensors", r"\bmath\.", "math.… takes one number; torch.… takes a tensor"),
    ("only one element tensors", r"torch\.tensor\(", "torch.stack puts tensors together"),
    (
        "expected scalar type|have the same dtype",
        "",
        "two dtypes meet; y.to(x.dtype) makes them one",
    ),
    ("bitwise_and", "[<>=].*&|&.*[<>=]", "& binds closer than <: write (x < y) & z"),
)
START = re.compile(r"^(@|def |async def |class |import |from |\w+ *=)")


def text_of(data):
    """A learner's file as text, whatever the editor made of it: Windows marks its start."""
    return data.decode("utf-8-sig", "replace")


def pieces(source):
    """(first line, text) of the whole file or, if it cannot be read, definition by definition."""
    try:
        ast.parse(source)
        return [(0, source)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        lines = source.splitlines(keepends=True)
        starts = [
            i
            for i, line in enumerate(lines)
            if START.match(line) and not (i and lines[i - 1].startswith("@"))
        ]
        edges = [0, *starts, len(lines)]
        return [(a, "".join(lines[a:b])) for a, b in zip(edges, edges[1:], strict=False) if a < b]


# ---- did a kernel run? ---------------------------------------------------------------------------

STORED = []  # how many numbers each store of a kernel wrote, in Triton's interpreter


def watch_kernels():
    """From now on the interpreter's stores and atomics are counted.

    This tells an honest learner's file from one without kernels. Who wants to cheat can: the count
    is made in the process that runs the submission."""
    builder = getattr(sys.modules.get("triton.runtime.interpreter"), "InterpreterBuilder", None)
    for name in ("create_masked_store", "create_atomic_rmw"):
        plain = getattr(builder, name, None)
        if plain is not None and not hasattr(plain, "counted"):
            setattr(builder, name, counting(plain))


def counting(plain):
    """The same store, counted by the lanes that are on: the mask is its last tile of bools."""

    def store(self, *given, **named):
        data = [np.asarray(x.data) for x in given if hasattr(x, "data")]
        masks = [x for x in data if x.dtype == bool]
        STORED.append(int(np.count_nonzero(masks[-1])) if masks else 0)
        return plain(self, *given, **named)

    store.counted = True
    return store


# ---- a file, and a call --------------------------------------------------------------------------


def load(source, path="submission.py"):
    """(names, problems) of a file: a statement that fails costs only what it would have defined."""
    module = sys.modules["submission"] = types.ModuleType("submission")
    names, problems = vars(module), {}
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    flags = (
        __future__.annotations.compiler_flag
        if "from __future__ import annotations" in source
        else 0
    )
    for first, text in pieces(source):
        lost = re.findall(r"^(?:async )?def (\w+)", text, re.M)
        try:
            body = ast.parse("\n" * first + text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or first + 1
            problem = dict(state="broken", line=line, detail=getattr(error, "msg", str(error)))
            problems |= {name: problem for name in lost or [f"line {line}"]}
            continue
        for node in body:
            try:
                exec(compile(ast.Module([node], []), path, "exec", flags, True), names)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                name = getattr(node, "name", f"line {node.lineno}")
                problems[name] = dict(
                    state="raised", line=node.lineno, error=type(error).__name__, detail=str(error)
                )
    if "triton" in source:
        with contextlib.suppress(Exception):
            importlib.import_module("triton.runtime.interpreter")
    return names, problems


def arrays_of(value):
    """The arrays in what a function returned: tensors, numbers or lists of them, one or several."""
    several = isinstance(value, tuple) or (
        isinstance(value, list)
        and any(isinstance(x, (list, tuple)) or getattr(x, "ndim", 0) for x in value)
    )
    found = []
    for item in value if several else [value]:
        if hasattr(item, "detach"):
            item = item.detach().cpu()
            item = (item.float() if "bfloat16" in str(item.dtype) else item).numpy()
        if isinstance(item, list) and any(getattr(x, "requires_grad", False) for x in item):
            raise TypeError("its numbers are tensors with their history; keep .item() of each")
        item = np.asarray(item)
        if item.dtype.kind not in "fiub":
            got = item.dtype if item.dtype.kind == "c" else type(value).__name__
            raise TypeError(f"got {got}")
        found.append(item)
    return found


def apart(vector):
    """The same numbers, as every second entry of a longer vector: not contiguous."""
    return np.repeat(vector, 2)[::2]


def copied(x):
    """What a function may do with as it likes: an array in the same layout, a list with all that it
    holds. Numbers, words and models are handed out as they are: models share what they train."""
    if isinstance(x, (list, tuple, dict)):
        return copy.deepcopy(x)
    if not isinstance(x, np.ndarray):
        return x
    return apart(x) if x.ndim == 1 and not x.flags.c_contiguous else x.copy(order="K")


def same(before, now):
    """Does an input hold what it held? Types first: what a function has put there is never asked
    whether it is equal."""
    if isinstance(before, np.ndarray):
        return np.array_equal(before, now.detach().numpy())
    if type(before) is not type(now):
        return False
    if isinstance(before, dict):
        before, now = list(before.items()), list(now.items())
    if isinstance(before, (list, tuple)):
        return len(before) == len(now) and all(map(same, before, now))
    return before is now or before == now


def remedy(error, line):
    """The line that is missing, where a known name is, or what an error of PyTorch asks for that
    comes from this line."""
    name = f"{error.name or ''}" if isinstance(error, NameError) else ""
    if name in IMPORTS:
        return f": write `{IMPORTS[name]}` above your function"
    torch = sys.modules.get("torch")
    if len(name) > 2 and callable(getattr(torch, name, None)):
        return f": PyTorch's is torch.{name}"
    fits = (
        f": {text}"
        for words, place, text in REMEDIES
        if re.search(words, str(error)) and re.search(place, line)
    )
    return next(fits, "")


def failure(error, path):
    """The state of a call that raised: not written yet, or the line of the learner's file."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, NotImplementedError) and frames[-1].filename == path and not str(error):
        return dict(state="todo")  # a stub; what it calls may raise this, too, and says why
    walked = zip(traceback.walk_tb(error.__traceback__), frames, strict=True)
    own = [(frame, place) for (frame, _), place in walked if place.filename == path]
    line = own[-1][1].lineno if own else 0
    where = worked_on(*own[-1]) if own else ""
    if type(error).__name__ == "Slow":  # the alarm's
        return dict(state="time", detail=f"it was still in line {line}{where}" if own else "")
    detail = str(error) + remedy(error, linecache.getline(path, line)) + where
    return dict(state="raised", line=line, error=type(error).__name__, detail=detail)


def worked_on(frame, place):
    """The expression that failed in the learner's own last line, and what its names were: most
    errors are two shapes that do not fit, and the error's own words do not say whose."""
    text, local = expression(place), frame.f_locals
    if not 0 < len(text) < 100:
        return ""
    names = dict.fromkeys(re.findall(r"(?<![\w.])[^\W\d]\w*", text))
    known = {name: local[name] for name in names if name in local}
    real = {str(x.dtype) for x in known.values() if arrays(x) and "float" in str(x.dtype)}
    values = {name: in_short(x, len(real) > 1) for name, x in known.items()}
    told = [f"{name} is {value}" for name, value in values.items() if value]
    return f"; in `{text}` {', '.join(told)}" if told else ""


def expression(place):
    """The source of what a frame was computing, in one line; '' where it is not known. What was to
    be stored in `out[i]` failed with it, so it is shown, too."""
    lines = linecache.getlines(place.filename)[place.lineno - 1 : place.end_lineno]
    if not lines or place.end_colno is None:
        return ""
    if not re.match(r"\s*=[^=]", lines[-1][place.end_colno :]):
        lines[-1] = lines[-1][: place.end_colno]
    lines[0] = lines[0][place.colno :]
    return " ".join("".join(lines).split())


def arrays(x):
    import torch

    return isinstance(x, (torch.Tensor, np.ndarray))


def in_short(x, dtypes=False):
    """A tensor by its shape, a list by its length, a number as it is; of all else nothing. That a
    tensor is of float32 is said with other `dtypes` beside it."""
    if arrays(x):
        dtype = str(x.dtype).removeprefix("torch.")
        plain = dtype == "float32" and not dtypes
        return f"{tuple(x.shape)}" if plain else f"{dtype} {tuple(x.shape)}"
    if type(x) in (list, tuple):
        return f"a {type(x).__name__} of {len(x)}"
    known = x is None or type(x) in (bool, float) or (type(x) is int and abs(x) < 10**9)
    return str(x) if known else ""


def answer(names, problems, function, inputs, path="submission.py"):
    """({"state": …}, arrays) of one call, on copies, arrays as tensors. No exception escapes."""
    import torch

    if function in problems:
        return problems[function], []
    if not callable(names.get(function)):
        return dict(state="missing"), []
    given = [copied(x) for x in inputs]
    given = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in given]
    watch_kernels()
    STORED.clear()
    try:
        returned = names[function](*given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return failure(error, path), []
    if returned is None:
        return dict(state="nothing"), []
    try:
        found = arrays_of(returned)
        arrays = [np.array(x) for x in found]
    except BaseException as error:
        return dict(state="type", detail=str(error)), []
    if not all(map(same, inputs, given)):
        return dict(state="changed"), []
    return dict(state="ok") | (dict(stored=sum(STORED)) if STORED else {}), arrays


def pack(head, arrays=()):
    """A message: one line of JSON, then .npy after .npy."""
    body = io.BytesIO()
    body.write(json.dumps(head).encode() + b"\n")
    for array in arrays:
        np.save(body, array, allow_pickle=False)
    return body.getvalue()


def unpack_trusted(message):
    """What the grader packed; the grader's own reader of answers trusts less."""
    body = io.BytesIO(message)
    head = json.loads(body.readline())
    return head, [np.load(body, allow_pickle=False) for _ in range(head.get("arrays", 0))]


def fetch(pipe):
    """The next message of the grader, or None when it has hung up."""
    size = pipe.read(8)
    return pipe.read(struct.unpack(">Q", size)[0]) if len(size) == 8 else None


def limit(name, most):
    """Set one limit, or what is left of it where the system allows less."""
    import resource

    number = getattr(resource, name, None)
    if number is None:
        return  # this system has no such limit
    hard = resource.getrlimit(number)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(number, (most, most))


def confine(limits):
    """Give up what cannot be taken back, before the learner's first line runs."""
    import ctypes
    import resource

    try:
        with open("/proc/self/statm") as file:
            torch_itself = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        torch_itself = 0
    if limits["memory"] <= 0:
        raise ValueError(f"wanted a limit of memory above 0, got {limits['memory']}")

    memory = dict(RLIMIT_AS=torch_itself + (limits["memory"] << 30))
    for name, most in (limits["limits"] | memory).items():
        try:
            limit(name, most)
        except (ValueError, OSError, OverflowError) as error:
            if limits["alone"]:  # a sandbox without its limits is none
                raise RuntimeError(f"{name} could not be set to {most}: {error}") from None
    os.nice(5)

    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # short of memory, the kernel ends this one first
    except OSError:
        pass  # no Linux, or a /proc that is read-only since it has been said already
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: its forks cannot open or trace it
        known = limits["filter"] and libc.prctl(21, 0, 0, 0, 0) == 0  # PR_GET_SECCOMP
        if known:
            libc.syscall(limits["keyctl"], 1, None)  # a key ring of its own, not the instructor's
    except (OSError, AttributeError):
        known = False
    if not known and limits["alone"]:
        raise RuntimeError("this processor or kernel has no filter of system calls (seccomp)")


def compute_only(program):
    """From here on the kernel holds this process to homework/syscalls.py. Called in the fork of a
    part, which cannot fork any more."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = [("steps", ctypes.c_ushort), ("at", ctypes.c_void_p)]

    steps = ctypes.create_string_buffer(program, len(program))
    told = Program(len(program) // 8, ctypes.addressof(steps))
    if ctypes.CDLL(None).prctl(22, 2, ctypes.byref(told)):  # PR_SET_SECCOMP
        raise OSError("the filter of system calls was refused")


def sweep():
    """Nobody else has this account: end and delete whatever the fork left behind."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    command = ["sh", "-c", SWEEP, "sh", tempfile.gettempdir()]
    subprocess.run(command, stdin=0, stdout=1, stderr=2)


def wait(fork, seconds):
    """How a part's process ended: "died" by itself, or "time" was over; "starved" if it had less
    than its share of a processor, as in a crowd."""
    until = time.monotonic() + seconds
    while os.waitpid(fork, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(fork, signal.SIGKILL)
            used = os.wait4(fork, 0)[2]
            return "time" if used.ru_utime + used.ru_stime > 0.7 * seconds else "starved"
        time.sleep(0.002)
    return "died"


def refuse_if_open(folders):
    """What is graded must not find the answers, nor what others handed in: not in these folders,
    nor in a copy of the course that is installed beside torch."""
    try:
        installed = importlib.util.find_spec("homework")
        copies = installed.submodule_search_locations if installed else []
    except PermissionError:
        copies = []  # there is one, and it is closed
    for folder in [*folders, *copies]:
        if os.access(folder, os.X_OK):
            hint = f"chmod 700 {folder}" if os.getuid() else "move it elsewhere, or uninstall it"
            raise SystemExit(f"a submission can enter {folder}: {hint}")


def serve(limits):
    """Answer questions until the grader hangs up. The learner's code runs in forks, which hold no
    pipe to it."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    if limits["closed"]:
        refuse_if_open(limits["closed"])
    import torch

    torch.set_num_threads(1)
    source = text_of(fetch(questions))
    if "triton" in source:  # once here, not again in every fork
        try:
            import triton.language  # noqa: F401
        except ImportError:
            pass
    confine(limits)
    os.dup2(null, 2)  # until here, whoever grades may hear why the sandbox did not start

    def send(message):
        answers.write(struct.pack(">Q", len(message)) + message)
        answers.flush()

    send(b"ready\n")
    while (question := fetch(questions)) is not None:
        with tempfile.TemporaryFile() as sheet:
            if (fork := os.fork()) == 0:
                try:
                    questions.close(), answers.close()
                    if limits["filter"]:
                        compute_only(bytes.fromhex(limits["filter"]))
                    write(sheet, source, question)
                finally:
                    os._exit(0)
            state = wait(fork, limits["seconds"])
            if limits["alone"]:
                sweep()
            sheet.seek(0)
            reply = sheet.read(MOST + 1)
        send(reply if reply and state == "died" else pack([dict(state=state)]))


def write(sheet, source, question):
    """The answers to one question: all cases of one part."""
    head, arrays = unpack_trusted(question)
    names, problems = load(source)
    states, found = [], []
    for inputs in head["cases"]:
        inputs = [
            (apart if x["apart"] else np.asarray)(arrays[x["array"]]) if isinstance(x, dict) else x
            for x in inputs
        ]
        state, more = answer(names, problems, head["function"], inputs)
        if sum(x.nbytes for x in found + more) > MOST // 2:
            state, more = dict(state="size"), []
        states.append(
            {key: state[key] for key in ("state", "line", "error", "stored") if key in state}
            | dict(arrays=len(more))
        )
        found += more
    sheet.write(pack(states, found))
    sheet.flush()


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
