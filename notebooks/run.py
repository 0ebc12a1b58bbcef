"""Does every notebook run: all of it, in order, without an error, in its time?

    python notebooks/run.py --profile laptop              all of them, two at a time; copies and pages under build/notebooks/
    python notebooks/run.py --profile smoke 00 01         only these
    python notebooks/run.py 01 -p seed 1                  with another value in the parameters cell
    python notebooks/run.py --clean                       make the sources, decks too, fit to publish: no outputs, readable cell ids

A quiet papermill run proves little: a cell that leaves by sys.exit(0) ends it with success, a skipped cell is not
missed, a misspelt parameter is only a warning. So every executed copy is looked at again here.
"""

import argparse
import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

HERE = Path(__file__).resolve().parent
SECONDS = dict(
    smoke=(120, 300), laptop=(900, 3000), gpu=(3600, 10800)
)  # profile -> one cell, a whole notebook
NOT_RUN = {
    "skip-execution",
    "raises-exception",
}  # tags: the first skips in silence, papermill ignores the second
NARROW = """<style>  /* on a phone, code and equations scroll in their own boxes; nbconvert would cut them off */
.jp-InputArea-editor, .jp-CodeMirrorEditor, .MathJax_Display, .MJXc-display { overflow-x: auto !important; }
.jp-RenderedHTMLCommon pre { overflow-x: auto; white-space: pre; }
</style>"""
QUIET = dict(
    CI="true", TQDM_DISABLE="1", PYTHONWARNINGS="ignore::Warning:tqdm.auto"
)  # no progress bars in pages


# ---- one notebook ----------------------------------------------------------------------------------------------------


def tags(cell):
    return cell.metadata.get("tags", [])


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def known_parameters(notebook):
    """The names that the parameters cell assigns."""
    found = [cell for cell in code(notebook) if "parameters" in tags(cell)]
    if len(found) != 1:
        raise ValueError(f"wanted one cell tagged parameters, found {len(found)}")
    return [
        line.target.id
        for line in ast.parse(found[0].source).body
        if isinstance(line, ast.AnnAssign)
    ]


def faults_before(notebook, parameters):
    """What would make a run empty or wrong, seen without running."""
    try:
        names = known_parameters(notebook)
    except (ValueError, SyntaxError) as error:
        return [f"parameters: {error}"]
    unknown = [name for name in parameters if name not in names]
    faults = [f"no parameter {', '.join(unknown)}: it has {', '.join(names)}"] if unknown else []
    return faults + [
        f"cell {cell.id}: tag {tag}"
        for cell in code(notebook)
        for tag in tags(cell)
        if tag in NOT_RUN
    ]


def broken(cell):
    return next((output for output in cell.outputs if output.output_type == "error"), None)


def faults_after(notebook):
    """Did every code cell run, once, in order, to its end?"""
    faults = [
        f"cell {cell.id}: {error.ename}: {error.evalue.strip()[:160]}"
        for cell in code(notebook)
        if (error := broken(cell))
    ]
    counts = [cell.execution_count for cell in code(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        missed = [cell.id for cell, count in zip(code(notebook), counts) if count is None]
        faults.append(
            f"not run: {', '.join(missed)}" if missed else f"cells ran in the order {counts}"
        )
    return faults


def asserts(cell):
    """How many asserts stand where a cell that runs to its end must meet them: outside of branches and functions."""

    def met(lines):
        return sum(
            isinstance(line, ast.Assert) or isinstance(line, (ast.For, ast.With)) and met(line.body)
            for line in lines
        )

    return met(ast.parse(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.M)).body)


def execute(path, profile, out, parameters=None, limits=None):
    """Run one notebook in this process; write its executed copy and page to `out`; return its row of the table."""
    import papermill

    path, out = Path(path), Path(out)
    cell_seconds, all_seconds = limits or SECONDS[profile]
    parameters = dict(parameters or {}, profile=profile)
    notebook, start = nbformat.read(path, 4), time.monotonic()
    faults = faults_before(notebook, parameters)
    if not faults:
        out.mkdir(parents=True, exist_ok=True)
        copy = out / path.name
        copy.unlink(missing_ok=True)
        try:
            with our_kernel():
                papermill.execute_notebook(
                    path,
                    copy,
                    parameters,
                    kernel_name="python3",
                    progress_bar=False,
                    cwd=path.parent,
                    execution_timeout=cell_seconds,
                    start_timeout=120,
                )
        except papermill.PapermillExecutionError:
            pass  # an error output, which faults_after reports
        except (
            Exception
        ) as error:  # a dead kernel, a cell out of time, a kernel that does not start
            faults.append(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160]}")
        if copy.exists():
            notebook = nbformat.read(copy, 4)
            faults += faults_after(notebook)
            publish(notebook, copy)
    seconds = time.monotonic() - start
    if seconds > all_seconds:
        faults.append(f"took {seconds:.0f} s, more than its {all_seconds} s")
    whole = [cell for cell in code(notebook) if cell.execution_count and not broken(cell)]
    return dict(
        name=path.stem,
        seconds=round(seconds, 1),
        ran=len(whole),
        cells=len(code(notebook)),
        held=sum(map(asserts, whole)),
        checks=sum(map(asserts, code(notebook))),
        faults=faults,
    )


@contextlib.contextmanager
def our_kernel():
    """python3 means the Python that runs this, whatever other kernel of that name is installed; no user's start-up files."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "kernels", "python3", "kernel.json")
        spec.parent.mkdir(parents=True)
        spec.write_text(
            json.dumps(
                dict(
                    argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                    display_name="Python 3",
                    language="python",
                )
            )
        )
        os.environ.update(
            QUIET,
            IPYTHONDIR=folder,
            JUPYTER_PATH=os.pathsep.join(filter(None, [folder, before.get("JUPYTER_PATH")])),
        )
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def publish(notebook, copy):
    """The executed copy without this machine's paths, and its page."""
    from nbconvert import HTMLExporter

    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    nbformat.write(notebook, copy)
    title = next(
        (line[2:] for line in notebook.cells[0].source.splitlines() if line.startswith("# ")),
        copy.stem,
    )
    page, _ = HTMLExporter().from_notebook_node(notebook, resources=dict(metadata=dict(name=title)))
    copy.with_suffix(".html").write_text(
        page.replace("</head>", NARROW + "</head>", 1), encoding="utf-8"
    )


def joined(outputs):
    """What a cell printed as one piece: the kernel cuts it by the clock."""
    whole = []
    for output in outputs:
        if (
            whole
            and output.output_type == "stream" == whole[-1].output_type
            and output.name == whole[-1].name
        ):
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


# ---- all of them -----------------------------------------------------------------------------------------------------


def numbered(folder):
    """The notebooks of the course, or its decks, in order."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def chosen(names):
    """The notebooks that these words mean: a number, a stem, or a path."""
    ours = numbered(HERE)
    if not names:
        return ours
    found = [
        Path(name)
        if name.endswith(".ipynb")
        else next((path for path in ours if path.stem.startswith(name)), None)
        for name in names
    ]
    if None in found:
        sys.exit(
            f"run: no notebook {names[found.index(None)]!r}: there is {', '.join(path.stem for path in ours)}"
        )
    return found


def in_a_process(path, profile, out, parameters, jobs):
    """The row of one notebook, run in a process of its own that is ended when it takes far too long."""
    say(f"start {path.stem}")
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )  # those we may use
    threads = os.environ.get("OMP_NUM_THREADS") or str(
        max(1, cores // jobs)
    )  # one word for both libraries
    task = json.dumps(
        dict(path=str(path.resolve()), profile=profile, out=str(out), parameters=parameters)
    )
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--task", task],
            text=True,
            capture_output=True,
            timeout=2 * SECONDS[profile][1],
            env=os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
        )
        row = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, json.JSONDecodeError) as error:
        why = (
            "no answer in twice its time"
            if isinstance(error, subprocess.TimeoutExpired)
            else (done.stderr.strip() or "no answer")[-300:]
        )
        row = dict(name=path.stem, seconds=0.0, ran=0, cells=0, held=0, checks=0, faults=[why])
    say(f"{'FAILED' if row['faults'] else 'ok':6} {row['name']}, {row['seconds']:.0f} s")
    return row


def say(line):
    """A line in one piece: two threads talk."""
    print(line + "\n", end="", flush=True)


def table(rows, profile, seconds, jobs):
    """One line a notebook, and below it what went wrong."""
    width = max(len(row["name"]) for row in rows)
    lines = [f"{'notebook':{width}}  {'seconds':>7}  {'cells':>7}  {'checks':>7}"]
    for row in rows:
        cells, checks = f"{row['ran']}/{row['cells']}", f"{row['held']}/{row['checks']}"
        lines.append(
            f"{row['name']:{width}}  {row['seconds']:7.1f}  {cells:>7}  {checks:>7}  {'FAILED' if row['faults'] else 'ok'}"
        )
        lines += [f"{'':{width}}    {fault}" for fault in row["faults"]]
    failed = sum(bool(row["faults"]) for row in rows)
    return "\n".join(
        lines
        + [
            f"profile {profile}: {len(rows) - failed} of {len(rows)} notebooks whole, {sum(row['held'] for row in rows)} checks held, "
            f"{seconds:.0f} s, {jobs} at a time"
        ]
    )


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python notebooks/run.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask.add_argument(
        "names", nargs="*", metavar="NAME", help="a number, a stem, or a path; default: all"
    )
    ask.add_argument("--profile", choices=SECONDS, default="laptop")
    ask.add_argument(
        "-p",
        nargs=2,
        action="append",
        default=[],
        metavar=("PARAMETER", "VALUE"),
        help="as papermill's -p",
    )
    ask.add_argument(
        "--out",
        type=Path,
        default=HERE.parent / "build" / "notebooks",
        help="where <profile>/ is written",
    )
    ask.add_argument("--jobs", type=int, default=2, help="notebooks at a time")
    ask.add_argument(
        "--clean", action="store_true", help="clean the sources instead of running them"
    )
    ask.add_argument("--task", help=argparse.SUPPRESS)
    asked = ask.parse_args(argv)
    if asked.task:
        print(json.dumps(execute(**json.loads(asked.task))))
        return 0
    paths, start = chosen(asked.names), time.monotonic()
    if asked.clean:
        for path in paths if asked.names else [*paths, *numbered(HERE.parent / "slides")]:
            nbformat.write(clean(nbformat.read(path, 4)), path)
        return 0
    parameters = {name: value_of(text) for name, text in asked.p}
    out = asked.out.resolve() / asked.profile
    with ThreadPoolExecutor(asked.jobs) as pool:
        rows = list(
            pool.map(
                lambda path: in_a_process(path, asked.profile, out, parameters, asked.jobs), paths
            )
        )
    print("\n" + table(rows, asked.profile, time.monotonic() - start, asked.jobs))
    return int(any(row["faults"] for row in rows))


def value_of(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


# ---- what is published ------------------------------------------------------------------------------------------------

FIND = """\
# Finds the course: the checkout around this notebook or, on Colab, a fresh copy. The same in every notebook.
import subprocess, sys
from pathlib import Path

here = Path.cwd()
places = [here, *here.parents, here / "minimal-course"]
home = next((p for p in places if (p / "minimal").is_dir() and (p / "pyproject.toml").is_file()), None)
if home is None:
    home = here / "minimal-course"
    subprocess.run(["git", "clone", "--depth=1", "PROJECT", home], check=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--editable", home], check=True)
sys.path.insert(0, str(home))"""
RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4,})*")


def find_cell():
    """The first code cell, with the address that pyproject.toml gives to the project: a copy made here, typed nowhere."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return FIND.replace("PROJECT", project["urls"]["Homepage"])


def clean(notebook):
    """The notebook as it is published: no outputs, no traces of a run, the shared first cell, ids that can be read."""
    notebook.cells = [cell for cell in notebook.cells if "injected-parameters" not in tags(cell)]
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(
        dict(
            kernelspec=dict(display_name="Python 3", language="python", name="python3"),
            language_info=dict(name="python"),
        )
    )
    heading, taken = "start", {cell.get("id") for cell in notebook.cells}
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {key: value for key, value in cell.metadata.items() if key in ("tags", "slideshow")}
        )
        first = cell.source.splitlines()[0] if cell.source else ""
        if cell.cell_type == "markdown" and first.startswith("#"):
            heading = re.sub(r"[^a-z0-9]+", "-", first.lower()).strip("-")[:32]
        if RANDOM_ID.fullmatch(cell.get("id", "0" * 8)):
            cell.id = next(name for i in range(1, 1000) if (name := f"{heading}-{i}") not in taken)
            taken.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if cell.id == "find-minimal":
                cell.source = find_cell()
    return notebook


if __name__ == "__main__":
    sys.exit(main())
