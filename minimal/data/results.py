"""How is a measured result written down? An evidence file: JSON with its command and its rows."""

import json
import platform
import shutil
import subprocess
from pathlib import Path

from minimal.data import files
from minimal.data.files import locked, write_whole

FIELDS = ("what", "command", "commit", "hardware", "versions", "corpus", "rows")


def load(path):
    """A JSON file, or one sentence about what is wrong with it."""
    path = Path(path)
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ValueError(f"wanted a file of JSON, got {path}, which is none: name another file")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(p.name for p in path.parent.glob("*.json"))) or "nothing"
        raise FileNotFoundError(
            f"wanted {path.name} in {path.parent.name}/, which holds {there}; "
            "name one of these, or bring the file back"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{path.name} is not UTF-8: wanted JSON; bring it back as it was"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path.name}, line {error.lineno}: not JSON ({error.msg}); bring it back as it was"
        ) from None


def read(path):
    """An evidence file, or one sentence about what it lacks."""
    content = load(path)
    missing = FIELDS
    if isinstance(content, dict):
        missing = [name for name in FIELDS if name not in content]
    if missing:
        raise ValueError(
            f"{Path(path).name} is no evidence file: wanted {', '.join(FIELDS)}; "
            f"it lacks {', '.join(missing)}"
        )
    rows = content["rows"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(
            f"{Path(path).name} is no evidence file: wanted rows that are objects, got "
            f"{json.dumps(rows)[:40]}; bring it back as it was"
        )
    return content


def is_evidence(path):
    """Is this a file that `write` may replace?"""
    try:
        return bool(read(path))
    except ValueError:
        return False


def check_evidence(path):
    """Say before anything is measured that it could not be written down at `path`."""
    if path:
        files.check_target(path, is_evidence)


def write(path, content):
    """An evidence file. Rows stand one a line, so that diffs can be read."""
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in content["rows"])
    head = {name: value for name, value in content.items() if name != "rows"}
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    write_whole(path, f'{text},\n "rows": [\n  {rows}\n ]\n}}\n', is_evidence)


def cpu_model():
    """The name of this machine's processor, as the system has it."""
    return cpu_says("model name") or platform.processor() or platform.machine()


def cpu_says(name, told=Path("/proc/cpuinfo")):
    """What the system says of the first processor under this name, if it says anything."""
    for line in told.read_text().splitlines() if told.exists() else []:
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return ""


def header(what, command, corpus):
    """Where the rows of an evidence file come from; corpus = {name, fingerprint, tokens}."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    kernels = torch.backends.cpu.get_cpu_capability()  # AVX2, AVX512 and the like
    threads = torch.get_num_threads()
    cpu = f"{platform.machine()} CPU ({cpu_model()}, {kernels}), {threads} threads"
    return dict(
        what=what,
        command=command,
        commit=commit(),
        corpus=corpus,
        rows=[],
        hardware=gpu or cpu,
        versions=dict(python=platform.python_version(), torch=torch.__version__),
    )


def commit():
    """The commit of this checkout, or None: without git, and for an installed package, around
    which may lie a repository of somebody else."""
    if not files.in_checkout() or not shutil.which("git"):
        return None
    ask = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(ask, cwd=files.CHECKOUT, capture_output=True, text=True)
    return done.stdout.strip() or None


def check_corpus(path, corpus):
    """Refuse a file that holds runs on another corpus; corpus = {name, fingerprint, …}."""
    if not Path(path).exists() or not Path(path).stat().st_size:
        return
    theirs = read(path)["corpus"]
    if theirs["fingerprint"] != corpus["fingerprint"]:
        raise ValueError(
            f"{Path(path).name} holds runs on corpus {theirs['name']} ({theirs['fingerprint']}); "
            f"this row is from {corpus['name']} ({corpus['fingerprint']}); "
            "give it a file of its own"
        )


def append(path, row, head, there=lambda row: False):
    """Add one finished row at once; the first writer also writes `head`. Nothing is added where
    another writer's row is `there` already."""
    check_evidence(path)
    with locked(path):
        check_corpus(path, head["corpus"])
        there_already = Path(path).exists() and Path(path).stat().st_size
        content = read(path) if there_already else {**head, "rows": []}
        if not any(map(there, content["rows"])):
            write(path, {**content, "rows": content["rows"] + [row]})
