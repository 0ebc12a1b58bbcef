"""What does this machine have, and what does it lack?

`make doctor`, or `python -m minimal.lab.doctor [--json]`. It runs before set-up too, on any Python 3,
so it imports nothing but the standard library until it looks at a package.
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

HOME = pathlib.Path(__file__).resolve().parents[2]

SETUP = "make -B setup" if (HOME / ".venv/.ready").exists() else "make setup"

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)

WIDTH = 100


def browser():
    """A Chromium for decks, site and screenshots: $CHROME, else a usual name; None if there is none."""
    if os.environ.get("CHROME"):
        return shutil.which(os.environ["CHROME"])
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def pins():
    """constraints.txt as {name: version}; {} when `minimal` was installed away from its repository."""
    path = HOME / "constraints.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(
        line.partition(";")[0].strip().split("==") for line in lines if line and line[0] != "#"
    )


# Each look returns (found, mend): what is there, and what to do about what is not ("" = all is well).
def python():
    here = pathlib.Path(sys.prefix).resolve() == HOME / ".venv"
    place = (
        "in .venv"
        if here
        else "not .venv's: make uses that one"
        if (HOME / ".venv").exists()
        else "no .venv yet"
    )
    fits = (3, 11) <= sys.version_info[:2] <= (3, 14)
    return (
        f"{platform.python_version()}, {place}",
        "" if fits else "make setup PYTHON=… (3.11 to 3.14)",
    )


def packages():
    """The package's own requirements must be there; a version beside the pin is told, not blamed."""
    if not version("minimal"):
        return "not installed", SETUP
    wanted = [line.partition(";") for line in importlib.metadata.requires("minimal")]
    here = [
        need
        for need, _, marker in wanted
        if "extra" not in marker and (sys.platform == "linux" or "linux" not in marker)
    ]
    missing = [
        name for name in (need.partition(">")[0].strip() for need in here) if not version(name)
    ]
    pinned = {name: pin for name, pin in pins().items() if version(name)}
    others = [
        f"{name} {version(name)}"
        for name, pin in pinned.items()
        if version(name).partition("+")[0] != pin
    ]
    if missing:
        return "missing: " + ", ".join(missing), SETUP
    return f"{len(pinned) - len(others)} of {len(pinned)} at their pins" + "".join(
        "; " + o for o in others
    ), ""


def torch():
    torch = importlib.import_module("torch")
    build = "CUDA " + torch.version.cuda if torch.version.cuda else "CPU build"
    return f"{torch.__version__} ({build})", ""


def device():
    torch = importlib.import_module("torch")
    threads = f"{torch.get_num_threads()} threads of {os.cpu_count()} cores"
    if torch.cuda.is_available():
        return (
            f"cuda: {torch.cuda.device_count()} x {torch.cuda.get_device_name()}; cpu: {threads}",
            "",
        )
    if torch.backends.mps.is_available():
        return f"mps, and cpu: {threads}", ""
    if shutil.which("nvidia-smi") and not torch.version.cuda:
        return (
            f"cpu: {threads}; the GPU here is not used by a CPU build of torch",
            "make setup TORCH=cuda",
        )
    if shutil.which("nvidia-smi"):
        return (
            f"CUDA {torch.version.cuda} finds no GPU; cpu: {threads}",
            "update its driver, or make setup TORCH=cpu",
        )
    return f"cpu: {threads}", ""


def triton():
    if sys.platform != "linux":
        return "exists only on Linux; the tile versions in torch run instead", "nothing to do"
    triton, torch = map(importlib.import_module, ("triton", "torch"))
    gpu = torch.cuda.is_available()
    return f"{triton.__version__}, " + (
        "compiles for this GPU" if gpu else "interpreter (no GPU here)"
    ), ""


def kernel():
    spec = pathlib.Path(sys.prefix, "share/jupyter/kernels/python3/kernel.json")
    return (
        ("python3, of this Python", "")
        if spec.exists() and version("ipykernel")
        else ("none", SETUP)
    )


def library():
    """The embedded corpus is Python's own source, so no learner starts without text."""
    files = [
        f
        for f in pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")
        if "site-packages" not in f.parts
    ]
    size = sum(f.stat().st_size for f in files) / 1e6
    found = f"the Python standard library: {len(files):,} files, {size:.0f} MB"
    return found, "" if size > 5 else "a Python with its library's source: make setup PYTHON=…"


def corpus(name, pattern, use):
    def look():
        files = list(pathlib.Path(os.environ.get("MINIMAL_DATA") or "nowhere", name).glob(pattern))
        if not files:
            return "absent", f"{use} set MINIMAL_DATA to a folder with {name}/{pattern}"
        return f"{len(files)} files, {sum(f.stat().st_size for f in files) / 1e6:.1f} MB", ""

    return look


def chromium():
    path = browser()
    return (
        path or "absent",
        "" if path else "for decks and site: install Chromium, or set CHROME to its path",
    )


def npm():
    path = shutil.which("npm")
    return path or "absent", "" if path else "for decks and site: install Node.js"


def parity():
    have = version("transformers")
    mend = "" if have else "to compare with Hugging Face: make setup EXTRAS=parity"
    return f"transformers {have}" if have else "absent", mend


def disk():
    need = 1 if version("torch") else 4
    free = shutil.disk_usage(HOME).free / 1e9
    return (
        f"{free:.0f} GB free here, {need} needed",
        "" if free >= need else "make room; TORCH=cpu needs least",
    )


LOOKS = [  # what, required, look
    ("python", True, python),
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
    ("parity", False, parity),
    ("disk", True, disk),
]


def examine():
    """One row a look; a look that raises has found something broken, and says what."""
    rows = []
    for what, required, look in LOOKS:
        try:
            found, mend = look()
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            found, mend = (f"{type(error).__name__}: {first}", SETUP)
        status = "OK" if not mend else "FAIL" if required else "--"
        rows.append({"what": what, "status": status, "found": found, "mend": mend})
    return rows


def main(arguments):
    rows = examine()
    failed = [row["what"] for row in rows if row["status"] == "FAIL"]
    if "--json" in arguments:
        print(json.dumps({"ok": not failed, "rows": rows}, indent=1))
        return bool(failed)
    for row in rows:
        line = f"{row['status']:>4}  {row['what']:<16}{row['found']}"
        room = WIDTH - len(row["mend"]) - len("  -> ")
        print(
            (line if len(line) <= room else line[: room - 1] + "…")
            + (f"  -> {row['mend']}" if row["mend"] else "")
        )
    print(
        f"\nNot well: {', '.join(failed)}. Each FAIL line ends with its mend."
        if failed
        else "\nEverything needed is here; lines with -- are optional."
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
