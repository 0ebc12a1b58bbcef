"""Is what git publishes clean? No machine's paths, no outputs, no large or binary files.

And nothing that fetches code from a fixed address, and nothing heavy on import.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINE = re.compile(r"(?<![\w.~-])/(work|root|home|Users|tmp/[\w.-]+)/")  # somebody's folders
REGISTRY = re.compile(r"(files\.pythonhosted|registry\.npmjs|conda\.anaconda)\.|//pypi\.")
BESIDE = re.compile(r"\.\./" + "shared")  # only .ci/run knows of it
REMOTE = r"(https?://|git\+|git@|ssh://)"
FETCHES = re.compile(rf"\bclone\b.{{0,60}}?{REMOTE}|\binstall\b.{{0,80}}?{REMOTE}", re.S)
READ = re.compile(r".*\.ipynb|.*\.md|(minimal|slides|homework)/.*\.py|notebooks/run\.py").fullmatch
KERNEL = re.compile(
    r"kernels\.(forward|backward|decode)$|bench\.(gpu|gpu_decode|graphs|hot)$"
).search  # Triton code, and its bench: loaded only where they are used
HEAVY = {"datasets", "matplotlib", "triton", "transformers"}


def lines_with(pattern, tree, but=()):
    return [
        f"{name}:{at}: {line.strip()[:80]}"
        for name, text in tree.items()
        if text and name not in but
        for at, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_a_set_up_that_is_a_link_is_ignored_as_a_folder_is(tmp_path):
    """.venv/ with its slash would match a folder only, and a link to one would be published."""
    shutil.copy(ROOT / ".gitignore", tmp_path)
    (tmp_path / ".venv").symlink_to("elsewhere")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    told = subprocess.run(["git", "check-ignore", ".venv"], cwd=tmp_path, capture_output=True)
    assert told.stdout == b".venv\n"


def test_no_file_names_a_path_of_somebodys_machine_or_a_registry_host(tree):
    assert len(tree) > 10
    assert lines_with(MACHINE, tree) == []
    assert lines_with(REGISTRY, tree) == []
    assert lines_with(BESIDE, tree, but=[".ci/run"]) == []


def test_the_patterns_above_catch_what_they_are_for():
    slash = "/"
    bad = {
        "a.py": f"open('{slash}home{slash}me/x')",
        "b.md": f"see ..{slash}shared{slash}data",
        "c.py": f"https:{slash}{slash}example.com{slash}home{slash}x",
    }
    assert [line[:4] for line in lines_with(MACHINE, bad)] == ["a.py"]
    assert [line[:4] for line in lines_with(BESIDE, bad)] == ["b.md"]


def test_nothing_that_is_read_or_run_fetches_code_from_a_fixed_address(tree):
    """Whoever owned such an address would own every reader: each fork gives its own, by hand."""
    read = {name: text for name, text in tree.items() if text and READ(name)}
    assert len(read) > 100
    assert {name: found[0] for name, text in read.items() if (found := FETCHES.search(text))} == {}
    for bad in (
        '["git", "clone", "--depth=1", "https://example.com/a/b", home]',
        "!pip install -q git+https://example.com/a/b",
        "git clone git@example.com:a/b",
        "pip install --editable https://example.com/a.zip",
    ):
        assert FETCHES.search(bad), bad
    assert not FETCHES.search("!git clone ADDRESS course && pip install -e course")


def test_notebooks_and_decks_are_stripped(tree):
    for name, text in tree.items():
        if not name.endswith(".ipynb"):
            continue
        notebook = json.loads(text)
        assert "papermill" not in notebook["metadata"], name
        for cell in notebook["cells"]:
            assert not cell.get("outputs") and cell.get("execution_count") is None, (
                f"{name}: cell {cell.get('id')}"
            )
            assert "papermill" not in cell["metadata"] and "execution" not in cell["metadata"], name


def test_files_are_small_and_text(published, tree):
    assert [name for name, text in tree.items() if text is None] == [], "binary files"
    assert [name for name in tree if (published / name).stat().st_size > 1_000_000] == [], (
        "over 1 MB"
    )


def fresh(code):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_minimal_and_its_modules_leaves_heavy_packages_unloaded():
    paths = sorted((ROOT / "minimal").rglob("[a-z]*.py"))
    names = [".".join(path.relative_to(ROOT / "minimal").with_suffix("").parts) for path in paths]
    modules = [name for name in names if not KERNEL(name)]
    tell = f"print(*({HEAVY!r} & set(sys.modules)))"
    with_torch = fresh("import sys, torch;" + tell)
    with_all = fresh(
        "import sys, torch, " + ", ".join(f"minimal.{name}" for name in modules) + ";" + tell
    )
    assert with_all <= with_torch
    assert fresh("import sys, minimal; print(*{'torch'} & set(sys.modules))") == set(), (
        "the doctor runs without torch"
    )


def test_training_on_a_cpu_begins_without_the_compiler(tmp_path):
    """Loading torch.compile takes two seconds, in which a learner waits for the first step."""
    what = dict(size="smoke", steps=2, corpus="stdlib", out=str(tmp_path / "run"), device="cpu")
    code = f"""
        import sys
        from minimal import Run, train
        train(Run("bov", **{what!r}))
        print(*sys.modules)
    """
    loaded = fresh(textwrap.dedent(code))
    assert "torch" in loaded and "torch._dynamo" not in loaded
