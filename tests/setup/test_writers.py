"""Does every command that writes leave alone what it did not make, and nothing half made?

Every command is called with a place that holds a folder, a device, somebody's text and the like.
No device of this machine is ever named: each is made in a folder of the test.
"""

import ast
import contextlib
import errno
import functools
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import stat
import tempfile
from types import SimpleNamespace

import pytest
import torch

from course import compiled
from homework import grade, gradescope, marking
from minimal import evaluate
from minimal.bench import __main__ as speed
from minimal.compare import __main__ as compare_command
from minimal.compare import comparison
from minimal.compare.runs import asked_of
from minimal.data import corpora, files, results
from minimal.tasks import core
from minimal.train import main as train
from minimal.training import checkpoint, loop
from tests.lab.writers import of_the_lab
from tests.training.toys import TEXT

ROOT = pathlib.Path(__file__).resolve().parents[2]
NONE = dict(name="none", fingerprint="none", tokens=0)
OLD = dict.fromkeys(results.FIELDS, "") | dict(corpus=NONE, rows=[dict(old=1)])
SOMEBODY = b"my thesis, of which there is no other copy"


# ---- the commands, each with as little work behind it as it can have ----------------------------


def rows(*_, **__):
    row = dict(bits_per_byte=1.0, nats_per_token=1.0, error=None, uniform=1.0, tokens=1, bytes=1)
    row |= dict(window=1, stride=1)
    return [dict(row, domain="x", corpus="f"), dict(row, domain="mean")]


def fake_evaluate(patch):
    patch.setattr(evaluate, "opened", lambda *_: (None, None))
    patch.setattr(evaluate, "table", rows)
    return lambda at: evaluate.main(["--checkpoint", "x", "--domains", "y", "--json", at])


def fake_core(patch):
    patch.setattr(core, "opened", lambda *_: (None, None))
    patch.setattr(core, "chosen", lambda *_: [])
    patch.setattr(core, "causal", lambda model: model)
    patch.setattr(core, "fingerprint", lambda model: "f")
    patch.setattr(core, "evaluate", lambda *_, **__: [dict(task="copa")])
    patch.setattr(core, "report", lambda *_: "")
    return lambda at: core.main(["--checkpoint", "x", "--json", at])


def fake_speed(patch):
    patch.setattr(speed, "machine", lambda: "here")
    patch.setattr(speed, "matmul_rate", lambda: 1e9)
    patch.setitem(speed.PARTS, "train", ("train", lambda asked: [1]))
    return lambda at: speed.main(["--part", "train", "--threads", "1", "--out", at])


def fake_compiled(patch):
    head = results.header("x", "y", NONE)
    patch.setattr(compiled, "report", lambda: head | dict(rows=[dict(kernel="k")]))
    patch.setattr(compiled, "complaints", lambda rows: [])
    return lambda at: compiled.main(["--out", at])


def fake_evidence(patch):
    def one(grid, path, command, until):
        run = next(grid.runs())
        row = dict(plan=run.plan, size=run.size, seed=0, steps=run.steps, asked=asked_of(run))
        results.append(path, row, dict(OLD, what=grid.what))
        return 0, []

    patch.setattr(comparison, "record", one)
    patch.setattr(corpora, "find", lambda name: SimpleNamespace(**NONE))
    patch.setattr(comparison, "print_table", lambda *_: None)
    patch.setattr(comparison, "draw", lambda *_: None)
    patch.setattr(comparison.intervals, "paired", lambda *_, **__: [])
    words = "--size smoke --vocab 300 --batch 4 --plans gqa --match steps --budget 2 --seeds 0"
    return lambda at: compare_command.main([*words.split(), "--out", at])


def fake_grade(patch):
    unit = marking.find("hw03")
    done = [marking.Row(e.name, part.name, part.points, "ok", "") for e, part in unit.parts()]
    patch.setattr(grade, "isolate", lambda *_: None)
    patch.setattr(grade, "grade", lambda *_: done)
    handed = ROOT / "homework" / "solutions" / unit.folder / "reference.py"
    return lambda at: grade.main(["hw03", str(handed), "--isolation", "none", "--out", at])


def fake_gradescope(patch):
    return lambda at: gradescope.main(["hw03", "--out", at])


def fake_train(patch):
    """The log in the folder that is asked for."""
    words = words_of_training()
    patch.setattr(loop, "LOG", "x.json")
    return lambda at: train([*words, "--out", os.path.dirname(at)])


@functools.cache
def words_of_training():
    """A run of one step. What it prepares, pieces and tokens, is there already: it ran once."""
    words = "--size smoke --vocab 300 --context 32 --batch 8 --rows 8 --steps 1 --quiet --corpus"
    text = os.path.join(os.environ["MINIMAL_RUNS"], "animals.txt")
    pathlib.Path(text).write_text(TEXT)
    with tempfile.TemporaryDirectory() as out:
        train([*words.split(), text, "--out", out])
    return [*words.split(), text]


# name -> (how it is called, with what an earlier call has written; None: not named by a user)
EVIDENCE = json.dumps(OLD).encode()
COMMANDS = dict(
    evaluate=(fake_evaluate, json.dumps(OLD | dict(command="python -m minimal.evaluate")).encode()),
    core=(fake_core, json.dumps(OLD | dict(command="python -m minimal.tasks.core")).encode()),
    bench=(fake_speed, EVIDENCE),
    compiled=(fake_compiled, EVIDENCE),
    compare=(fake_evidence, json.dumps(OLD | dict(what="steps-matched at 2", rows=[])).encode()),
    grade=(fake_grade, b'{\n "score": 3'),
    gradescope=(fake_gradescope, None),
    train=(fake_train, b'{"step": 1}\n'),
    **of_the_lab(OLD),
)


# ---- what may be in the place -------------------------------------------------------------------


def folder(at):
    at.mkdir()
    (at / "thesis.txt").write_bytes(SOMEBODY)


def device(at):
    try:
        os.mknod(at, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")


def a_socket(at):
    here = os.getcwd()
    os.chdir(at.parent)  # its address has little room
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(at.name)
    os.chdir(here)


def link(to):
    def make(at):
        target = at.with_name("target")
        to(target)
        at.symlink_to("target")

    return make


def text(at):
    at.write_bytes(SOMEBODY)


THINGS = dict(
    folder=folder,
    device=device,
    pipe=os.mkfifo,
    socket=a_socket,
    text=text,
    link_to_text=link(text),
    link_to_folder=link(folder),
    link_to_device=link(device),
    link_to_pipe=link(os.mkfifo),
    link_to_nowhere=lambda at: at.symlink_to("nowhere"),
)
OF_ROOT = ("device", "link_to_device")  # nobody else makes a device
EVERY_THING = [pytest.param(at, marks=pytest.mark.root if at in OF_ROOT else ()) for at in THINGS]
INSIDE = ("folder", "link_to_folder")  # the grader puts results into a folder that is named


def seen(place):
    """{path: what it is and holds} of everything below, less the lock files, which stay."""
    found = {}
    for path in sorted(place.rglob("*")):
        if path.suffix != ".lock":
            mode = path.lstat().st_mode
            told = os.readlink(path) if path.is_symlink() else ""
            held = path.read_bytes() if stat.S_ISREG(mode) else told
            found[str(path.relative_to(place))] = (stat.S_IFMT(mode), path.lstat().st_ino, held)
    return found


def refused(name, call, at, capsys):
    """The one sentence of a command that ends without success."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        call(str(at))
    said = capsys.readouterr().err
    if isinstance(ended.value.code, str):
        said += ended.value.code
    assert ended.value.code not in (0, None)
    (sentence,) = [line for line in said.splitlines() if line.startswith(f"{name}: ")]
    assert "Traceback" not in said and "Errno" not in sentence
    return sentence


@pytest.fixture
def place(tmp_path):
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def at_of(name, place):
    return place / dict(gradescope="x.zip").get(name, "x.json")


def skip_where_it_does_not_apply(name, thing):
    if name == "grade" and thing in INSIDE:
        pytest.skip("results go into a folder that is named, under the learner's name")
    if name == "claims" and thing in ("text", "link_to_text"):
        pytest.skip("the file has a fixed name, and git has it")


@pytest.mark.parametrize("thing", EVERY_THING)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_command_did_not_make_is_refused_and_left_as_it_is(
    name, thing, place, monkeypatch, capsys
):
    skip_where_it_does_not_apply(name, thing)
    at = at_of(name, place)
    THINGS[thing](at)
    before = seen(place)
    sentence = refused(name, COMMANDS[name][0](monkeypatch), at, capsys)
    assert str(at) in sentence or at.name in sentence
    after = seen(place)
    if name == "train":  # a checkpoint of its own beside the log that is somebody's
        after.pop("last.safetensors", None)
    assert after == before


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_an_empty_file_and_what_it_wrote_before_are_written(name, place, monkeypatch):
    call, old = COMMANDS[name][0](monkeypatch), COMMANDS[name][1]
    at = at_of(name, place)
    call(str(at))
    once = at.read_bytes()
    assert once and not list(place.glob(".*.part"))
    if name in ("bypass_seeds", "rented", "train"):
        return  # what goes on with its file has tests of its own
    at.write_bytes(b"")
    call(str(at))
    at.write_bytes(old or once)
    call(str(at))
    assert at.read_bytes() not in (b"", old)
    # a link to it stays a link
    at.rename(place / "target")
    at.symlink_to("target")
    call(str(at))
    assert at.is_symlink() and (place / "target").is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(name, place, monkeypatch, capsys):
    """Where blocks are only counted as they are written out, it is fsync that says so."""
    at, call = at_of(name, place), COMMANDS[name][0](monkeypatch)

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    sentence = refused(name, call, at, capsys)
    assert "No space left" in sentence and str(place) in sentence
    log = {"x.json"} if name == "train" else set()
    assert set(seen(place)) <= log, "a log has no second name: its lines are added one by one"


@contextlib.contextmanager
def as_nobody():
    """As an account without rights, where we are root; else as ourselves."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def closed():
    """A folder that this account may enter and not write to, with a file that it may not change."""
    with tempfile.TemporaryDirectory() as home:
        for path in (pathlib.Path(home), pathlib.Path(home, "here")):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        os.chmod(path, 0o555)
        with as_nobody():
            if not os.access(path, os.X_OK, effective_ids=True):
                pytest.skip("an account without rights cannot reach the folder of temporary files")
            if not os.access(ROOT, os.X_OK, effective_ids=True):
                pytest.skip("an account without rights cannot reach this checkout")
        yield path
        os.chmod(path, 0o755)


@pytest.mark.parametrize("protected", ["folder", "file"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_without_permission_is_said_and_left_as_it_is(
    name, protected, closed, monkeypatch, capsys
):
    call, at = COMMANDS[name][0](monkeypatch), at_of(name, closed)
    if protected == "file":
        if COMMANDS[name][1] is None:
            pytest.skip("the folder's row says it")
        os.chmod(closed, 0o755)
        at.write_bytes(COMMANDS[name][1])
        at.chmod(0o444)
        os.chmod(closed, 0o777)
    before = seen(closed)
    runs = os.environ["MINIMAL_RUNS"]
    os.chmod(runs, 0o755)
    with as_nobody():
        sentence = refused(name, call, at, capsys)
    assert "ermission" in sentence and str(closed) in sentence
    after = seen(closed)
    assert after == before


def test_what_a_command_prints_into_is_no_place_for_its_results(place, monkeypatch, capsys):
    """`--json out.txt > out.txt`, and /dev/stdout: the table would go to a file without a name."""
    call, at = fake_evaluate(monkeypatch), place / "out.txt"
    at.write_bytes(b"")
    kept = os.dup(2)
    try:
        with open(at, "a") as file:
            os.dup2(file.fileno(), 2)
        sentence = refused("evaluate", call, at, capsys)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert "which is where this command prints" in sentence and at.read_bytes() == b""
    assert "got -, which is where this command prints" in refused("evaluate", call, "-", capsys)


def test_a_pipe_of_the_shell_is_not_replaced(place, monkeypatch, capsys):
    """`--json >(jq .)` names it through a link below /proc."""
    read, write = os.pipe()
    at = place / "x.json"
    at.symlink_to(f"/proc/self/fd/{write}")
    told = refused("evaluate", fake_evaluate(monkeypatch), at, capsys)
    os.close(read)
    os.close(write)
    assert "which is a link to a pipe" in told and at.is_symlink()


# ---- the writer alone ---------------------------------------------------------------------------


def test_a_file_that_may_not_grow_leaves_the_old_one_and_no_part(place):
    """A limit of the system on the size of files: the write itself fails, half way."""
    at = place / "x.json"
    files.write_whole(at, "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(files.DataError, match="cannot write .*x.json .File too large"):
            files.write_whole(at, "new" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in place.iterdir()] == ["x.json"] and at.read_text() == "old"


def test_the_rights_of_a_file_outlive_its_content(place):
    files.write_whole(place / "x", "old")
    os.chmod(place / "x", 0o600)
    files.write_whole(place / "x", "new")
    assert (place / "x").stat().st_mode & 0o777 == 0o600 and (place / "x").read_text() == "new"


@pytest.mark.parametrize("thing", ["folder", "pipe", "link_to_text", "link_to_folder"])
def test_what_lies_where_a_part_would_be_written_is_not_deleted(place, thing):
    at = place / ".last.safetensors.part"
    THINGS[thing](at)
    before = seen(place)
    with pytest.raises(checkpoint.CheckpointError, match="no file of ours: move it away"):
        checkpoint.save(place / "last.safetensors", dict(x=torch.zeros(2)), {})
    assert seen(place) == before


@pytest.mark.parametrize("thing", ["link_to_folder", "pipe"])
def test_a_cache_is_never_made_through_a_link_or_a_pipe(place, thing):
    at = place / "cache.part"
    THINGS[thing](at)
    before = seen(place)
    with pytest.raises(files.DataError, match="no file of ours: move it away"):
        files.once(place / "cache", lambda part: part.mkdir())
    assert seen(place) == before


@pytest.mark.parametrize("thing", ["folder", "device", "pipe", "link_to_pipe"])
def test_a_log_that_is_no_file_is_neither_waited_for_nor_written(place, thing):
    at = place / "log.jsonl"
    THINGS[thing](at)
    before = seen(place)
    assert files.read_lines(at) == []
    with pytest.raises(files.DataError, match="wanted a file to write"):
        files.append_lines(at, [dict(n=1)])
    assert seen(place) == before


# ---- nobody else writes or deletes --------------------------------------------------------------

WRITES = {"write_text", "write_bytes", "unlink", "rename", "rmtree", "rmdir"}
MAY = {  # file -> why it may write, or delete, by itself
    "minimal/data/files.py": "the writer",
    "minimal/data/documents.py": "in a part that the writer handed over",
    "minimal/data/packing.py": "in such a part",
    "minimal/data/hub.py": "in such a part",
    "minimal/compare/comparison.py": "in such a part",
    "slides/book.py": "a page of its own, between writing and printing it",
    "notebooks/course/beside.py": "in the environment that make setup makes",
    "notebooks/course/work.py": "keeps a learner's copy aside, under a new name",
    "notebooks/course/own.py": "in a folder of its own below the temporary ones",
    "notebooks/run.py": "in such a folder; and a copy that it executed earlier",
    "homework/reset.py": "keeps aside whatever is there, under a new name",
    "homework/runner.py": "inside the sandbox",
    "homework/sandbox.py": "the kernel's own files",
    "slides/build.py": "below build/, which make clean removes",
    "slides/deck.py": "below build/",
    "slides/preview.py": "below build/",
    "slides/browser.py": "pictures, under names that screens makes",
}


def writes(source):
    """The lines that write or delete a file without the writer."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        owner = ast.unparse(node.func.value) if name else ""
        if name in WRITES or (name in ("replace", "remove") and owner == "os"):
            yield node.lineno
        elif ast.unparse(node.func) == "open" or name == "open":
            modes = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            if any(isinstance(mode, str) and re.fullmatch("[wax]b?[+]?", mode) for mode in modes):
                yield node.lineno


def test_only_the_writer_writes_and_deletes():
    found = {}
    for room in ("minimal", "homework", "slides", "notebooks"):
        for path in sorted((ROOT / room).rglob("*.py")):
            lines = list(writes(path.read_text(encoding="utf-8")))
            if lines and "solutions" not in path.parts:
                found[path.relative_to(ROOT).as_posix()] = lines
    strangers = {path: lines for path, lines in found.items() if path not in MAY}
    assert strangers == {}, "write with minimal.data.files, or say here why not"
    assert set(MAY) <= set(found), "these write nothing any more"


def test_make_clean_removes_what_was_made_and_nothing_else(tmp_path, make):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_bytes(SOMEBODY)
    (tmp_path / "build").symlink_to("mine")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "log").write_text("kept")
    (tmp_path / "deep" / "__pycache__").mkdir(parents=True)
    assert make(tmp_path, "clean").returncode == 0
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == [
        "Makefile", "deep", "mine", "mine/thesis.txt", "runs", "runs/log",
    ]  # fmt: skip
