"""Does every command of the project end in a sentence: at Ctrl-C, at a closed pipe, on a console
that lacks letters?"""

import ast
import importlib
import io
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

from minimal import command, variants

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_ONE = {
    "homework/runner.py": "what runs inside the sandbox",
    "notebooks/course/beside.py": "what the set-up asks once",
}


def commands():
    """{file: what follows python} of every file that can be started."""
    found = {}
    for room in ("minimal", "homework", "notebooks", "slides"):
        for path in sorted((ROOT / room).rglob("*.py")):
            at = path.relative_to(ROOT)
            if "solutions" in at.parts or at.as_posix() in NOT_ONE:
                continue
            if '\nif __name__ == "__main__":\n' in path.read_text(encoding="utf-8"):
                parts = at.with_suffix("").parts
                beside = parts[0] == "notebooks" and len(parts) > 2  # found from notebooks/
                found[at.as_posix()] = ".".join(parts[beside:])
    return found


COMMANDS = commands()


@pytest.fixture(params=COMMANDS)
def main(request):
    if request.param.startswith("slides"):
        pytest.importorskip("nbformat")
    before = dict(variants.PLANS)  # the open project registers plans as it is imported
    command = importlib.import_module(COMMANDS[request.param]).main
    for name in variants.PLANS.keys() - before.keys():
        del variants.PLANS[name]
    return command


def test_all_of_them_are_found():
    assert len(COMMANDS) > 30
    assert {"minimal.variants", "minimal.generate", "homework.grade"} <= set(COMMANDS.values())


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_has_its_parser_from_the_one_home(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    mains = [node for node in tree.body if getattr(node, "name", "") == "main"]
    decorators = [ast.unparse(one) for node in mains for one in node.decorator_list]
    assert len(decorators) == 1 and decorators[0].startswith("command(")
    assert "ArgumentParser" not in ast.unparse(tree)
    named = ast.literal_eval(re.match(r"command\(('[^']+')", decorators[0])[1])
    module = COMMANDS[path].removesuffix(".__main__")
    assert named in (module, path, path.replace("build.py", "site.py"))


def opened_by_the_locale(tree):
    """The lines that read or write text without naming its encoding; /proc is numbers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            words = ast.unparse(node)
            text = name in ("read_text", "write_text") or (
                isinstance(node.func, ast.Name)
                and name == "open"
                and not re.search("'[rwa]b[+]?'", words)
            )
            if text and "encoding=" not in words and "'/proc/" not in words:
                yield node.lineno


def test_files_are_utf_8_whatever_the_locale():
    found = {}
    for room in ("minimal", "homework", "notebooks", "slides"):
        for path in (ROOT / room).rglob("*.py"):
            lines = list(opened_by_the_locale(ast.parse(path.read_text(encoding="utf-8"))))
            found |= {f"{path.relative_to(ROOT)}:{line}": "name encoding=" for line in lines}
    assert found == {}


def ended(main, *words):
    """The status, or the sentence, with which a command ends."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code


def test_help_is_printed_on_a_console_that_lacks_letters(main, monkeypatch):
    for encoding in ("cp1252", "ascii"):
        made = io.BytesIO()
        console = io.TextIOWrapper(made, encoding=encoding, errors="strict")
        monkeypatch.setattr(sys, "stdout", console)
        assert ended(main, "--help") == 0
        assert made.getvalue().startswith(b"usage: python ")


def test_a_reader_that_has_gone_is_no_error_to_speak_of(main, monkeypatch, capfd):
    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr(sys, "stdout", os.fdopen(write, "w", encoding="utf-8"))
    assert ended(main, "--help") == 1
    sys.stdout.close()  # as Python does at its exit
    assert capfd.readouterr().err == ""


def test_a_disk_that_is_full_below_what_is_printed_is_a_sentence(monkeypatch):
    """`python -m … > /mnt/full/table.txt`: what cannot be printed ends it, too."""

    class Full(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            raise OSError(28, "No space left on device")

        def fileno(self):
            return handle

    handle = os.open(os.devnull, os.O_WRONLY)
    full = io.TextIOWrapper(io.BufferedWriter(Full()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", full)
    told = ended(variants.main, "--size", "nano", "--plans", "standard")
    assert told.startswith("variants: No space left on device")


def test_what_prints_into_a_closed_stream_prints_nowhere(monkeypatch):
    """`python -m … >&-`: Python then has no sys.stdout at all."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    variants.main(["--size", "nano", "--plans", "standard"])


def test_ctrl_c_is_a_sentence(main, monkeypatch):
    def interrupted(self, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Parser, "parse_args", interrupted)
    assert re.fullmatch(r"\w+: interrupted before anything was finished", ended(main))


def test_a_table_with_greek_letters_is_printed_where_there_are_none(monkeypatch):
    made = {}
    for encoding in ("utf-8", "cp1252", "ascii"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        variants.main(["--size", "nano", "--plans", "row2", "row4"])
        variants.main(["--size", "nano", "--plans", "row2", "row4", "--json"])
        made[encoding] = raw.getvalue().decode(encoding)
    assert "γ" in made["utf-8"] and "\\u03b3" in made["cp1252"]
    listed = [text[text.index("\n[") :] for text in made.values()]
    assert ast.literal_eval(listed[1].strip()) == ast.literal_eval(listed[0].strip())
    assert listed[1] == listed[2]


# ---- while Python imports -----------------------------------------------------------------------

EARLY = [
    "-m minimal.train",
    "-m homework.grade",
    "-m course.work",
    "-m evidence.lab.record",
    "-m evidence.bench",
    "-m evidence.measured.states",
    "notebooks/run.py",
    "-m slides.build",
]
QUICK = ("-m course.work", "-m evidence.measured.states")  # may be done before the first moment


@pytest.mark.parametrize("words", EARLY)
def test_ctrl_c_during_the_imports_is_a_sentence(words):
    """At several moments, from the first at which anything of ours has run."""
    ours = "notebooks/run.py" if words.endswith(".py") else words.split()[1].split(".")[0]
    for wait in (0.0, 0.1, 0.3):
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", *words.split(), "--help"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        for line in process.stderr:
            if line.endswith(" minimal.command\n"):
                break
        assert "minimal.command" in line, f"{ours} has not begun"
        time.sleep(wait + 0.05)
        process.send_signal(signal.SIGINT)
        rest = [line for line in process.stderr if not line.startswith("import time:")]
        if (wait or words in QUICK) and process.wait(60) in (0, -signal.SIGINT):
            assert not any("Traceback" in line for line in rest)
            continue
        process.wait(60)
        assert process.returncode == 1
        assert rest == [f"{command.INTERRUPTED}\n"] or rest[0].endswith(
            f": {command.INTERRUPTED}\n"
        )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to it")
def test_a_limit_below_which_torch_has_no_room_is_a_sentence():
    """At 200 MB an import fails; nearer to what it needs its C++ may end the process itself."""
    limit = (200 << 20, 200 << 20)
    done = subprocess.run(
        [sys.executable, "-m", "minimal.variants"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.endswith(f"{command.NO_ROOM}\n")


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it():
    """As nohup and a shell's & want it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command.wait_for_imports()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_package_that_is_only_imported_leaves_ctrl_c_alone():
    code = "import signal, minimal; print(signal.getsignal(signal.SIGINT).__name__)"
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it
    how = dict(cwd=ROOT, capture_output=True, text=True, preexec_fn=heard)
    told = subprocess.run([sys.executable, "-c", code], **how)
    assert told.stdout == "default_int_handler\n"
