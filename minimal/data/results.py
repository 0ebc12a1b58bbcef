"""How is a measured result written down? One JSON file: what, command, commit, hardware, versions, corpus, rows."""

import json
import platform
import shutil
import subprocess
from pathlib import Path

from minimal.data.files import CHECKOUT, locked, write_whole

FIELDS = (
    "what",
    "command",
    "commit",
    "hardware",
    "versions",
    "corpus",
    "rows",
)  # of every evidence file


def load(path):
    """A JSON file, or one sentence about what is wrong with it."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(p.name for p in path.parent.glob("*.json"))) or "nothing"
        raise FileNotFoundError(
            f"wanted {path.name} in {path.parent.name}/, which holds {there}; "
            "recorded files come with a clone of the repository"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path.name}, line {error.lineno}: not JSON ({error.msg}); restore it from git"
        ) from None


def read(path):
    """An evidence file, or one sentence about what it lacks."""
    content = load(path)
    missing = [name for name in FIELDS if name not in content]
    if missing:
        raise ValueError(
            f"{Path(path).name} is no evidence file: wanted {', '.join(FIELDS)}; it lacks {', '.join(missing)}"
        )
    return content


def write(path, content):
    """An evidence file. Rows stand one a line, so that diffs can be read."""
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in content["rows"])
    head = {name: value for name, value in content.items() if name != "rows"}
    write_whole(
        path,
        json.dumps(head, indent=1, ensure_ascii=False)[:-2].rstrip()
        + f',\n "rows": [\n  {rows}\n ]\n}}\n',
    )


def header(what, command, corpus):
    """The fields that say where the rows of an evidence file come from; corpus = {name, fingerprint, tokens}."""
    import torch

    ask = ["git", "rev-parse", "--short", "HEAD"]
    commit = (
        subprocess.run(ask, cwd=CHECKOUT, capture_output=True, text=True).stdout.strip()
        if shutil.which("git")
        else ""
    )
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return dict(
        what=what,
        command=command,
        commit=commit or None,
        corpus=corpus,
        rows=[],
        hardware=gpu or f"{platform.machine()} CPU, {torch.get_num_threads()} threads",
        versions=dict(python=platform.python_version(), torch=torch.__version__),
    )


def append(path, row, head):
    """Add one finished row at once; the first writer also writes `head`. Rows of another corpus do not belong here."""
    with locked(path):
        content = read(path) if Path(path).exists() else {**head, "rows": []}
        ours, theirs = head["corpus"]["fingerprint"], content["corpus"]["fingerprint"]
        if ours != theirs:
            raise ValueError(
                f"{Path(path).name} holds runs on corpus {content['corpus']['name']} ({theirs}); "
                f"this row is from {head['corpus']['name']} ({ours}); give it a file of its own"
            )
        write(path, {**content, "rows": content["rows"] + [row]})
