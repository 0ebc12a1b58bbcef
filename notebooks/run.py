"""Does every notebook run: all of it, in order, without an error, in its time?

    python notebooks/run.py --profile laptop    all, two at a time; pages under build/notebooks/
    python notebooks/run.py --profile smoke 00 01       only these
    python notebooks/run.py 01 -p seed 1        with another value in the parameters cell
    python notebooks/run.py --clean             make the sources, decks too, fit to publish:
                                                no outputs, readable cell ids

A quiet papermill run proves little: a cell that leaves by sys.exit(0) ends it with success, a
skipped cell is not missed, a misspelt parameter is only a warning. So every executed copy is
looked at again here.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from minimal.command import command, wait_for_imports

if __name__ == "__main__":
    wait_for_imports()

# a grammar of addresses, for which no notebook is checked: building it takes a second each time
sys.modules.setdefault("rfc3987_syntax", None)

import nbformat  # noqa: E402

from course import checks, folds, formula, owner  # noqa: E402
from minimal.data.files import write_whole  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DECKS = ROOT / "slides"  # whose pages slides/deck.py makes
QUESTIONS = HERE / "evidence" / "questions"  # which read what is recorded, and train nothing
# profile -> seconds of one cell, of a whole notebook
SECONDS = dict(smoke=(120, 300), laptop=(900, 3000), gpu=(3600, 10800))
# tags: the first skips in silence, papermill ignores the second
NOT_RUN = {"skip-execution", "raises-exception"}
# no progress bars in pages
QUIET = dict(CI="true", TQDM_DISABLE="1", PYTHONWARNINGS="ignore::Warning:tqdm.auto")


# ---- one notebook --------------------------------------------------------------------------------


def tags(cell):
    return cell.metadata.get("tags", [])


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def known_parameters(notebook):
    """The names that the parameters cell assigns."""
    found = [cell for cell in code(notebook) if "parameters" in tags(cell)]
    if len(found) != 1:
        raise ValueError(f"wanted one cell tagged parameters, found {len(found)}")
    lines = ast.parse(found[0].source).body
    return [line.target.id for line in lines if isinstance(line, ast.AnnAssign)]


def faults_before(notebook, parameters):
    """What would make a run empty or wrong, seen without running."""
    try:
        names = known_parameters(notebook)
    except (ValueError, SyntaxError) as error:
        return [f"parameters: {error}"]
    unknown = [name for name in parameters if name not in names]
    faults = [f"no parameter {', '.join(unknown)}: it has {', '.join(names)}"] if unknown else []
    for cell in code(notebook):
        faults += [f"cell {cell.id}: tag {tag}" for tag in tags(cell) if tag in NOT_RUN]
    return faults


def broken(cell):
    """The error that this cell ended with, if it did."""
    return next((output for output in cell.outputs if output.output_type == "error"), None)


def faults_after(notebook):
    """Did every code cell run, once, in order, to its end?"""
    faults = []
    for cell in code(notebook):
        error = broken(cell)
        if error:
            faults.append(f"cell {cell.id}: {error.ename}: {error.evalue.strip()[:160]}")

    counts = [cell.execution_count for cell in code(notebook)]
    missed = [cell.id for cell in code(notebook) if cell.execution_count is None]
    if missed:
        faults.append(f"not run: {', '.join(missed)}")
    elif counts != list(range(1, len(counts) + 1)):
        faults.append(f"cells ran in the order {counts}")
    return faults


def asserts(cell):
    """How many asserts a cell that runs to its end must meet: outside of branches and functions."""
    try:
        return checks.asserts(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.M))
    except SyntaxError:  # the run of this cell says so
        return 0


def execute(path, profile, out, parameters=None, limits=None):
    """Run one notebook in this process; its executed copy and page go to `out`; its table row."""
    path, out = Path(path), Path(out)
    cell_seconds, all_seconds = limits or SECONDS[profile]
    parameters = dict(parameters or {})
    if path.resolve().parent != QUESTIONS:
        parameters["profile"] = profile
    start = time.monotonic()

    # look before, run, look after
    try:
        notebook = nbformat.read(path, 4)
        faults = faults_before(notebook, parameters)
    except Exception as error:  # nbformat has many words for a file that is no notebook
        notebook = nbformat.v4.new_notebook()
        faults = [f"{path.name} is no notebook: {type(error).__name__}"]
    if not faults:
        (out / path.name).unlink(missing_ok=True)
        executed, faults = run_cells(path, parameters, cell_seconds)
        if executed:
            notebook = executed
            faults += faults_after(notebook)
            publish(notebook, out / path.name, page=path.resolve().parent != DECKS)

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


def run_cells(path, parameters, cell_seconds):
    """The executed copy, or None where no cell ran, and what ended the run early.

    papermill writes its copy before the first cell, too. That one lies in a folder of its own, so
    that whoever is killed leaves no half-run copy where whole ones are looked for.
    """
    import papermill

    papermill.engines.papermill_engines.register("saves once", saving_once())
    faults = []
    with tempfile.TemporaryDirectory() as folder, our_kernel():
        copy = Path(folder, path.name)
        try:
            papermill.execute_notebook(
                path,
                copy,
                parameters,
                engine_name="saves once",
                kernel_name="python3",
                progress_bar=False,
                cwd=path.parent,
                execution_timeout=cell_seconds,
                start_timeout=120,
            )
        except papermill.PapermillExecutionError:
            pass  # an error output, which faults_after reports
        except Exception as error:  # a dead kernel, a cell out of time, no kernel at all
            faults.append(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160]}")
        return nbformat.read(copy, 4) if copy.exists() else None, faults


def saving_once():
    """papermill's engine, less its saves before and after every cell: each writes all pictures up
    to there, half of what a runner would do. What has run is saved at the end, however it ends."""
    from papermill.engines import NBClientEngine

    class SavesOnce(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, manager, kernel_name, **how):
            save, manager.save = manager.save, lambda: None
            try:
                super().execute_managed_notebook(manager, kernel_name, **how)
            finally:
                manager.save = save

    return SavesOnce


@contextlib.contextmanager
def our_kernel():
    """python3 means the Python that runs this, whatever else is installed; no start-up files, and
    asserts are checked, whatever this Python was told of them."""
    before = dict(os.environ)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "kernels", "python3", "kernel.json")
        spec.parent.mkdir(parents=True)
        about = dict(argv=command, display_name="Python 3", language="python")
        spec.write_text(json.dumps(about), encoding="utf-8")
        places = filter(None, [folder, before.get("JUPYTER_PATH")])
        os.environ.update(QUIET, IPYTHONDIR=folder, JUPYTER_PATH=os.pathsep.join(places))
        os.environ.pop("PYTHONOPTIMIZE", None)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


# ---- pages ---------------------------------------------------------------------------------------

# nbconvert's page, less what it would load from other machines
TEMPLATE = """{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_css -%}
<style>  /* on a phone, what is wide scrolls in a box of its own; nbconvert would cut it */
.jp-InputArea-editor, .jp-CodeMirrorEditor { overflow-x: auto !important; }
.jp-RenderedHTMLCommon pre { overflow-x: auto; white-space: pre; }
.jp-OutputArea-output table { display: block; overflow-x: auto; }
.equation { display: block; overflow-x: auto; overflow-y: hidden; }
</style>
{%- endblock -%}
"""


def publish(notebook, copy, page=True):
    """The executed copy without this machine's paths, and its page."""
    # without the traces of this run
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    write_whole(copy, nbformat.writes(notebook) + "\n")

    # a page that loads nothing from elsewhere
    if not page:
        return
    from nbconvert import HTMLExporter  # a slow import

    words = notebook.cells[0].source.splitlines()
    title = next((line[2:] for line in words if line.startswith("# ")), copy.stem)
    exporter = HTMLExporter(raw_template=TEMPLATE, filters=dict(clean_html=as_it_stands))
    made, _ = exporter.from_notebook_node(notebook, dict(metadata=dict(name=title)))
    write_whole(copy.with_suffix(".html"), formula.drawn(made))


def as_it_stands(told):
    """In place of nbconvert's search for what strangers may have put into coloured code, a third of
    the time of a page: this code has run here already."""
    return told.decode() if isinstance(told, bytes) else told


def joined(outputs):
    """What a cell printed as one piece: the kernel cuts it by the clock."""
    whole = []
    for output in outputs:
        last = whole[-1] if whole else None
        printed = last and output.output_type == "stream" == last.output_type
        if printed and output.name == last.name:
            last.text += output.text
        else:
            whole.append(output)
    return whole


# ---- all of them ---------------------------------------------------------------------------------


def numbered(folder):
    """The notebooks of the course, or its decks, in order."""
    return sorted(folder.glob("[0-9][0-9]*_*.ipynb"))


def questions():
    """The notebooks of the laboratory, one a question."""
    return sorted(QUESTIONS.glob("*.ipynb"))


def chosen(names):
    """The notebooks that these words mean: a number, a stem, a path, or "questions", all of the
    laboratory; without one, the course."""
    ours = numbered(HERE)
    found = []
    for name in names:
        if name.endswith(".ipynb"):
            found.append(Path(name))
            continue
        if name == "questions":
            found += questions()
            continue
        number = [path for path in ours if re.fullmatch(rf"{re.escape(name)}[a-z]?_.*", path.stem)]
        both = [*ours, *questions()]
        meant = number or [path for path in both if path.stem.startswith(name)][:1]
        if not meant:
            stems = ", ".join(path.stem for path in both)
            sys.exit(f"run: no notebook {name!r}: there is {stems}")
        found += meant
    return found or ours


def in_a_process(path, profile, out, parameters, jobs):
    """The row of one notebook, run in a process that is ended when it takes far too long."""
    say(f"start {path.stem}")
    task = dict(path=str(path.resolve()), profile=profile, out=str(out), parameters=parameters)
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores() // jobs))
    done = None
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--task", json.dumps(task)],
            text=True,
            capture_output=True,
            timeout=2 * SECONDS[profile][1],
            env=os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
        )
        row = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        row = no_answer(path, "no answer in twice its time")
    except (IndexError, json.JSONDecodeError):
        row = no_answer(path, (done.stderr.strip() or "no answer")[-300:])
    say(f"{'FAILED' if row['faults'] else 'ok':6} {row['name']}, {row['seconds']:.0f} s")
    return row


def no_answer(path, why):
    return dict(name=path.stem, seconds=0.0, ran=0, cells=0, held=0, checks=0, faults=[why])


def cores():
    """How many we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def say(line):
    """A line in one piece: two threads talk."""
    print(line + "\n", end="", flush=True)


def table(rows, profile, seconds, jobs):
    """One line a notebook, and below it what went wrong."""
    width = max(len(row["name"]) for row in rows)
    lines = [f"{'notebook':{width}}  {'seconds':>7}  {'cells':>7}  {'checks':>7}"]
    for row in rows:
        cells, checks = f"{row['ran']}/{row['cells']}", f"{row['held']}/{row['checks']}"
        state = "FAILED" if row["faults"] else "ok"
        lines.append(
            f"{row['name']:{width}}  {row['seconds']:7.1f}  {cells:>7}  {checks:>7}  {state}"
        )
        lines += [f"{'':{width}}    {fault}" for fault in row["faults"]]
    whole = sum(not row["faults"] for row in rows)
    held = sum(row["held"] for row in rows)
    lines.append(
        f"profile {profile}: {whole} of {len(rows)} notebooks whole, {held} checks held, "
        f"{seconds:.0f} s, {jobs} at a time"
    )
    return "\n".join(lines)


# ---- what is published ---------------------------------------------------------------------------

RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4,})*")
KERNEL = dict(
    kernelspec=dict(display_name="Python 3", language="python", name="python3"),
    language_info=dict(name="python"),
)


def clean(notebook, name):
    """The notebook as it is published: no outputs, no traces of a run, ids that can be read, and in
    its head the time that a person needs and a link to its page, where the site has an address."""
    from homework import clock  # slow imports, for this alone

    notebook.cells = [cell for cell in notebook.cells if "injected-parameters" not in tags(cell)]
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(KERNEL)
    if notebook.cells and notebook.cells[0].cell_type == "markdown":
        head = notebook.cells[0]
        head.source = clock.with_time(head.source, clock.time(notebook))
        head.source = owner.with_page(head.source, name)
    heading, taken = "start", {cell.get("id") for cell in notebook.cells}
    for cell, closed in zip(notebook.cells, folds.metadata(notebook.cells), strict=True):
        kept = {key: cell.metadata[key] for key in ("tags", "slideshow") if key in cell.metadata}
        cell.metadata = nbformat.from_dict(closed | kept)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None

        # a random id gives way to the heading above and a number
        if cell.cell_type == "markdown" and cell.source.startswith("#"):
            words = cell.source.splitlines()[0].lower()
            heading = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:32]
        if RANDOM_ID.fullmatch(cell.get("id", "0" * 8)):
            names = (f"{heading}-{i}" for i in range(1, 1000))
            cell.id = next(name for name in names if name not in taken)
            taken.add(cell.id)
    return notebook


# ---- the command ---------------------------------------------------------------------------------


def positive(text):
    """A number of things, one at least."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number above 0, got {text}")
    return int(text)


def task_of(text):
    """What the runner tells the process of one notebook; no option for people."""
    with contextlib.suppress(json.JSONDecodeError):
        task = json.loads(text)
        if isinstance(task, dict) and task.keys() == {"path", "profile", "out", "parameters"}:
            return task
    raise argparse.ArgumentTypeError("this is how run.py calls itself; name notebooks instead")


def value_of(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@command("notebooks/run.py", __doc__)
def main(parser, argv):
    add = parser.add_argument
    names = "a number, a stem, a path, or questions; default: all"
    add("names", nargs="*", metavar="NAME", help=names)
    add("--profile", choices=SECONDS, default="laptop")
    names = ("PARAMETER", "VALUE")
    add("-p", nargs=2, action="append", default=[], metavar=names, help="as papermill's -p")
    build = ROOT / "build" / "notebooks"
    add("--out", type=Path, default=build, help="where <profile>/ is written")
    add("--jobs", type=positive, default=2, help="notebooks at a time")
    add("--clean", action="store_true", help="clean the sources instead of running them")
    add("--task", type=task_of, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)

    # one notebook, for the runner above this process
    if asked.task:
        print(json.dumps(execute(**asked.task)))
        return 0

    paths, start = chosen(asked.names), time.monotonic()
    if not asked.names:
        paths = [*paths, *questions()]
    if asked.clean:
        decks = [] if asked.names else numbered(DECKS)
        for path in [*paths, *decks]:
            made = nbformat.writes(clean(nbformat.read(path, 4), path.stem)) + "\n"
            if made != path.read_text(encoding="utf-8"):
                write_whole(path, made)
        readme = ROOT / "README.md"
        told = readme.read_text(encoding="utf-8")
        if owner.with_site(told) != told:
            write_whole(readme, owner.with_site(told))
        return 0

    parameters = {name: value_of(text) for name, text in asked.p}
    if "profile" in parameters:
        parser.error(f"the profile is an option of its own: --profile {parameters['profile']}")
    out = asked.out.resolve() / asked.profile
    with ThreadPoolExecutor(asked.jobs) as pool:
        one = lambda path: in_a_process(path, asked.profile, out, parameters, asked.jobs)
        rows = list(pool.map(one, paths))
    print("\n" + table(rows, asked.profile, time.monotonic() - start, asked.jobs))
    return int(any(row["faults"] for row in rows))


if __name__ == "__main__":
    sys.path.append(str(ROOT))  # slides is a folder of the course and not installed
    sys.exit(main())
