"""What does this machine have, and what does it lack? Each line that is not OK says what to do.

`make doctor`, or `python -m course.doctor [--json]`. It runs before set-up too, on any
Python 3, so it imports nothing but the standard library until it looks at a package.
"""

import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import sys
import sysconfig

from course import CHECKOUT, beside
from minimal.command import command

SETUP = "make -B setup" if (CHECKOUT / ".venv/.ready").exists() else "make setup"

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)

COLUMNS = 100


def browser():
    """A Chromium for decks, site and screenshots: $CHROME, else one of the usual names, or None."""
    if os.environ.get("CHROME"):
        return shutil.which(os.environ["CHROME"])
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def pins():
    """constraints.txt as {name: version}; {} where `minimal` is installed without its checkout."""
    path = CHECKOUT / "constraints.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    pinned = [line.partition(";")[0].strip() for line in lines if line and line[0] != "#"]
    return dict(line.split("==") for line in pinned)


# ---- looks: each returns (what is there, the fix for what is not; "" = all is well) --------------


def in_venv():
    """Is this Python the one of .venv, which may be a link to elsewhere?"""
    return pathlib.Path(sys.prefix).resolve() == (CHECKOUT / ".venv").resolve()


def python():
    place = "no .venv yet"
    if in_venv():
        place = "in .venv"
    elif (CHECKOUT / ".venv").exists():
        place = "not .venv's: make uses that one"
    fits = (3, 11) <= sys.version_info[:2] <= (3, 14) and sys.version_info[:3] != (3, 14, 1)
    found = f"{platform.python_version()}, {place}"
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        return f"{found}, on an Intel Mac, for which PyTorch ends at 2.2.2", "Docker or Colab"
    return found, "" if fits else "make setup PYTHON=… (3.11 to 3.14, not 3.14.1)"


def folder():
    """A .venv knows its course by address: one that was renamed or copied is set up once more."""
    named = beside.addressed()
    if named in ("", str(CHECKOUT)):
        return str(CHECKOUT), ""
    found = f"this Python imports homework and notebooks of {named}"
    if not in_venv():
        return f"{found}; make uses those of {CHECKOUT}", ""
    ready = CHECKOUT / ".venv/.ready"
    told = ready.exists() and ready.read_text(encoding="utf-8").strip() not in ("", str(CHECKOUT))
    return found, "make setup" if told else SETUP


def required():
    """Names of the packages that `minimal` needs on this system, as its metadata say."""
    names = []
    for line in importlib.metadata.requires("minimal"):
        need, _, marker = line.partition(";")
        elsewhere = "linux" in marker and sys.platform != "linux"
        if "extra" not in marker and not elsewhere:
            names.append(need.partition(">")[0].strip())
    return names


def packages():
    """The package's requirements must be there; a version beside the pin is only reported."""
    if not version("minimal"):
        return "not installed", SETUP
    missing = [name for name in required() if not version(name)]
    if missing:
        return "missing: " + ", ".join(missing), SETUP
    pinned = {name: pin for name, pin in pins().items() if version(name)}
    others = []
    for name, pin in pinned.items():
        if version(name).partition("+")[0] != pin:
            others.append(f"; {name} {version(name)}")
    return f"{len(pinned) - len(others)} of {len(pinned)} at their pins" + "".join(others), ""


def card():
    """Is there an NVIDIA card that its driver knows?"""
    places = ("/dev/nvidiactl", "/usr/lib/wsl/lib/nvidia-smi")
    return bool(shutil.which("nvidia-smi")) or any(map(os.path.exists, places))


def build_of_torch():
    """Which build set-up takes where nobody says: "" is whatever the package index offers."""
    return "cpu" if sys.platform == "linux" and not card() else ""


def torch():
    torch = importlib.import_module("torch")
    build = "CUDA " + torch.version.cuda if torch.version.cuda else "CPU build"
    return f"{torch.__version__} ({build})", ""


def device():
    torch = importlib.import_module("torch")
    cpu = f"cpu: {torch.get_num_threads()} threads of {os.cpu_count()} cores"
    if torch.cuda.is_available():
        cuda = f"cuda: {torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
        return f"{cuda}; {cpu}", ""
    if torch.backends.mps.is_available():
        return f"mps, and {cpu}", ""
    if not card():
        if os.path.exists("/dev/kfd"):
            return f"{cpu}; an AMD card is not used", "nothing to do: there is no ROCm set-up here"
        return cpu, ""
    if not torch.version.cuda:
        return f"{cpu}; the GPU here is not used by a CPU build of torch", "make setup TORCH=cuda"
    found = f"CUDA {torch.version.cuda} finds no GPU; {cpu}"
    return found, "update its driver, or make setup TORCH=cpu"


def triton():
    if sys.platform != "linux":
        return "exists only on Linux; the tile versions in torch run instead", "nothing to do"
    triton, torch = map(importlib.import_module, ("triton", "torch"))
    gpu = torch.cuda.is_available()
    how = "compiles for this GPU" if gpu else "interpreter (no GPU here)"
    return f"{triton.__version__}, {how}", ""


def kernel():
    spec = pathlib.Path(sys.prefix, "share/jupyter/kernels/python3/kernel.json")
    if spec.exists() and version("ipykernel"):
        return "python3, of this Python", ""
    return "none", SETUP


def library():
    """The embedded corpus is Python's own source, so no learner starts without text."""
    paths = pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")
    files = [path for path in paths if "site-packages" not in path.parts]
    size = sum(path.stat().st_size for path in files) / 1e6
    found = f"the Python standard library: {len(files):,} files, {size:.0f} MB"
    return found, "" if size > 5 else "a Python with its library's source: make setup PYTHON=…"


def corpus(name, pattern, use):
    def look():
        folder = pathlib.Path(os.environ.get("MINIMAL_DATA") or "nowhere", name)
        files = list(folder.glob(pattern))
        if not files:
            return "absent", f"{use} set MINIMAL_DATA to a folder with {name}/{pattern}"
        size = sum(path.stat().st_size for path in files) / 1e6
        return f"{len(files)} files, {size:.1f} MB", ""

    return look


def chromium():
    path = browser()
    if path:
        return path, ""
    return "absent", "for decks and site: install Chromium, or set CHROME to its path"


def npm():
    path = shutil.which("npm")
    return (path, "") if path else ("absent", "for decks and site: install Node.js")


def hub():
    have = version("datasets")
    return (
        (f"datasets {have}", "")
        if have
        else ("absent", "for texts from a hub: make setup EXTRAS=hub")
    )


def parity():
    have = version("transformers")
    if have:
        return f"transformers {have}", ""
    return "absent", "to compare with Hugging Face: make setup EXTRAS=parity"


def disk():
    needed = 1 if version("torch") else 4
    free = shutil.disk_usage(CHECKOUT).free / 1e9
    fix = "" if free >= needed else "make room; make setup TORCH=cpu needs least"
    return f"{free:.0f} GB free here, {needed} needed", fix


LOOKS = [  # what, required, look
    ("python", True, python),
    ("folder", True, folder),
    ("packages", True, packages),
    ("torch", True, torch),
    ("device", False, device),
    ("triton", sys.platform == "linux", triton),
    ("notebook kernel", True, kernel),
    ("text: embedded", True, library),
    ("text: books", False, corpus("books", "*.txt", "for War and Peace:")),
    ("tasks: core", False, corpus("core", "*.jsonl", "for CORE scores:")),
    ("tasks: squad", False, corpus("squad", "*.json", "for real questions:")),
    ("browser", False, chromium),
    ("npm", False, npm),
    ("hub", False, hub),
    ("parity", False, parity),
    ("disk", True, disk),
]


def examine():
    """One row a look; a look that raises has found something broken, and says what."""
    rows = []
    for what, required, look in LOOKS:
        try:
            found, fix = look()
        except Exception as error:
            first_line = (str(error).splitlines() or [""])[0]
            found, fix = f"{type(error).__name__}: {first_line}", SETUP
        status = "OK"
        if fix:
            status = "FAIL" if required else "--"
        rows.append({"what": what, "status": status, "found": found, "fix": fix})
    return rows


def line_of(row):
    """One line of the screen; where it is too narrow, what was found is cut and the fix is not."""
    line = f"{row['status']:>4}  {row['what']:<16}{row['found']}"
    fix = f"  -> {row['fix']}" if row["fix"] else ""
    room = COLUMNS - len(fix)
    if len(line) > room:
        line = line[: room - 1] + "…"
    return line + fix


@command("course.doctor", __doc__)
def main(parser, argv):
    parser.add_argument("--json", action="store_true", help="the same as one JSON object")
    build = "only name the build of torch that set-up takes by itself: cpu, or nothing"
    parser.add_argument("--torch", action="store_true", help=build)
    asked = parser.parse_args(argv)
    if asked.torch:
        print(build_of_torch())
        return 0
    rows = examine()
    failed = [row["what"] for row in rows if row["status"] == "FAIL"]
    if asked.json:
        print(json.dumps({"ok": not failed, "rows": rows}, indent=1))
        return bool(failed)
    for row in rows:
        print(line_of(row))
    if failed:
        print(f"\nNot well: {', '.join(failed)}. Each FAIL line ends with its fix.")
    else:
        print("\nEverything needed is here; lines with -- are optional.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
