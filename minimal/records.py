"""What did the sources print, what do they claim, what have we measured? One reader and one writer for all of it."""
import contextlib
import json
import math
import os
import platform
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "notebooks" / "evidence"
FIELDS = ("what", "command", "commit", "hardware", "versions", "corpus", "rows")     # of every evidence file
VERDICTS = ("reproduced", "not reproduced", "not testable at our scale", "wrong", "open")
WRONG = dict(misprint="a formula, number or word that the source's own code, table or another passage corrects",
             summary="said by the summary through which the source is known; its full text was not read",
             statement="a statement that the source itself, or arithmetic, contradicts")  # what a wrong claim is


# ---- what the sources say -------------------------------------------------------------------------------------------

def load(path):
    """A JSON file, or one sentence about what is wrong with it."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(p.name for p in path.parent.glob("*.json"))) or "nothing"
        raise FileNotFoundError(f"wanted {path.name} in {path.parent.name}/, which holds {there}; "
                                "recorded files come with a clone of the repository") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name}, line {error.lineno}: not JSON ({error.msg}); restore it from git") from None


def published(source=None, table=None):
    """A table of one of the five sources as a dict: place, caption, approximate (read off a figure), columns
    ({name: unit}), rows (dicts). Without a table, the names of that source's tables; without a source, the sources."""
    book = load(EVIDENCE / "published.json")
    known = {t["table"]: t for t in book["tables"] if t["source"] == source}
    if source is None:
        return book["sources"]
    if source not in book["sources"]:
        raise KeyError(f"wanted one of {', '.join(book['sources'])}; got {source!r}")
    if table is None:
        return list(known)
    if table not in known:
        raise KeyError(f"{source} has {', '.join(known)}; got {table!r}")
    found, about = dict(known[table]), book["sources"][source]
    found["place"] = f"{about['short']} ({about['arxiv'] or about['year']}), {table}"
    found["approximate"] = found.get("approximate", False)
    found["rows"] = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    return found


def quoted(source, quantity):
    """One number that stands in a source's text or training table, by name: a dict with value, unit and where."""
    rows = {row["quantity"]: row for table in published(source) for row in published(source, table)["rows"]
            if "quantity" in row}
    if quantity not in rows:
        raise KeyError(f"{source} has {'; '.join(rows)}; got {quantity!r}")
    return rows[quantity]


def claims():
    """The sources' claims, one a row: id, source, place, claim, verdict, and the evidence or what would decide."""
    return load(EVIDENCE / "claims.json")


# ---- evidence files -------------------------------------------------------------------------------------------------

def locked(path):
    """One writer at a time: a lock file beside `path`, released by the system even when its holder is killed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name(path.name + ".lock"))


def put(path, text):
    """Whole or not at all: a reader never meets half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}.half")
    half.write_text(text, encoding="utf-8")
    os.replace(half, path)


def write(path, content):
    """An evidence file. Rows stand one a line, so that diffs can be read."""
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in content["rows"])
    head = {name: value for name, value in content.items() if name != "rows"}
    put(path, json.dumps(head, indent=1, ensure_ascii=False)[:-2].rstrip() + f',\n "rows": [\n  {rows}\n ]\n}}\n')


def header(what, command, corpus):
    """The fields that say where the rows of an evidence file come from; corpus = {name, fingerprint, tokens}."""
    import torch
    ask = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True).stdout.strip() if shutil.which("git") else ""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return dict(what=what, command=command, commit=commit or None, corpus=corpus, rows=[],
                hardware=gpu or f"{platform.machine()} CPU, {torch.get_num_threads()} threads",
                versions=dict(python=platform.python_version(), torch=torch.__version__))


def append(path, row, head):
    """Add one finished row at once; the first writer also writes `head`. Rows of another corpus do not belong here."""
    with locked(path):
        content = read(path) if Path(path).exists() else {**head, "rows": []}
        ours, theirs = head["corpus"]["fingerprint"], content["corpus"]["fingerprint"]
        if ours != theirs:
            raise ValueError(f"{Path(path).name} holds runs on corpus {content['corpus']['name']} ({theirs}); "
                             f"this row is from {head['corpus']['name']} ({ours}); give it a file of its own")
        write(path, {**content, "rows": content["rows"] + [row]})


def read(path):
    """An evidence file; a bare name means notebooks/evidence/<name>.json."""
    path = Path(path) if str(path).endswith(".json") else EVIDENCE / f"{path}.json"
    content = load(path)
    missing = [name for name in FIELDS if name not in content]
    if missing:
        raise ValueError(f"{path.name} is no evidence file: wanted {', '.join(FIELDS)}; it lacks {', '.join(missing)}")
    return content


def jsonl(path):
    """The whole lines of a log of JSON objects; a last line cut short by a kill is left out."""
    rows = []
    for line in Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows


def jot(path, rows):
    """Append rows to such a log in one write, after the end of whatever a killed writer left."""
    with locked(path), open(path, "ab+") as log:
        torn = log.tell() and (log.seek(-1, os.SEEK_END), log.read(1))[1] != b"\n"
        log.write((b"\n" if torn else b"") + "".join(json.dumps(row) + "\n" for row in rows).encode())


# ---- differences that seeds can carry -------------------------------------------------------------------------------

def student(t, dof):
    """P(T <= t) of Student's t. With t = sqrt(dof) tan(a) the density is cos(a)^(dof-1): Simpson's rule on a."""
    end, n = math.atan(abs(t) / math.sqrt(dof)), 400
    weight = lambda i: 1 if i in (0, n) else 4 if i % 2 else 2
    area = sum(weight(i) * math.cos(end * i / n) ** (dof - 1) for i in range(n + 1)) * end / n / 3
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(dof / 2) - math.lgamma((dof + 1) / 2))     # from -pi/2 to pi/2
    return 0.5 + math.copysign(area / whole, t)


def t_quantile(p, dof):
    """The t below which a share p lies: 4.303 for p = .975 and two degrees of freedom (three seeds)."""
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student(math.sqrt(dof) * math.tan(middle), dof) < p else (low, middle)
    return math.sqrt(dof) * math.tan((low + high) / 2)


def mean_spread(values):
    """Mean, and standard deviation between runs (n - 1); one run has no spread (None)."""
    n, mean = len(values), math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None


def interval(values, share=0.95):
    """Mean, low, high of a t-interval; low and high are None where one value cannot give them."""
    mean, spread = mean_spread(values)
    if spread is None:
        return mean, None, None
    reach = t_quantile((1 + share) / 2, len(values) - 1) * spread / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def welch(mean1, std1, n1, mean2, std2, n2):
    """Welch's t of the second less the first, from means and deviations: t, degrees of freedom, two-sided p."""
    a, b = std1 ** 2 / n1, std2 ** 2 / n2
    t = (mean2 - mean1) / math.sqrt(a + b)
    dof = (a + b) ** 2 / (a ** 2 / (n1 - 1) + b ** 2 / (n2 - 1))
    return t, dof, 2 * (1 - student(abs(t), dof))


def paired(rows, metric, baseline="standard", share=0.95, plans=None, cells=None):
    """Each plan against the baseline on the same (size, seed): one dict a plan with n, mean, spread, difference, low,
    high, clear (the interval excludes 0) and missing, the cells that plan or baseline lacks. Name `plans` or `cells`
    [(size, seed)] to have absent ones reported too."""
    if rows and not any(metric in row for row in rows):
        raise ValueError(f"no row has a {metric!r}: choose one of {', '.join(rows[0])}")
    grid = {}
    for row in rows:
        cell = grid.setdefault(row["plan"], {})
        key = (row.get("size"), row.get("seed"))
        if key in cell:
            raise ValueError(f"two rows for {row['plan']}, size {key[0]}, seed {key[1]}; "
                             "keep one budget: filter the rows by steps or tokens first")
        value = row.get(metric)
        if value is not None and math.isfinite(value):                               # a run that blew up has no value
            cell[key] = value
    wanted = cells or sorted({(row.get("size"), row.get("seed")) for row in rows}, key=str)
    base = grid.get(baseline, {})
    table = []
    for plan in plans or grid:
        own = {key: value for key, value in grid.get(plan, {}).items() if key in wanted}
        both = [key for key in wanted if key in own and key in base]
        mean, spread = mean_spread(list(own.values())) if own else (None, None)
        change, low, high = interval([own[key] - base[key] for key in both], share) if both else (None, None, None)
        table.append(dict(plan=plan, n=len(both), mean=mean, spread=spread, difference=change, low=low, high=high,
                          clear=low is not None and plan != baseline and not low <= 0 <= high,
                          missing=[key for key in wanted if key not in both]))
    return table
