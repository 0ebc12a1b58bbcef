"""Do learners get solutions when, and only when, their teacher says so?"""

import subprocess

import pytest

from homework import marking, release

UNITS = [marking.find(name) for name in ("hw03", "hw04")]


def git(folder, *arguments):
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A small course with a history, and a teacher whom git knows."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Teacher")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "teacher@example.org")
    texts = {"README.md": "read me", "tests/homework/test_proofs.py": "the SECRET"}
    for unit in UNITS:
        texts[f"homework/{unit.folder}/exercises.py"] = "the oracles"
        texts[f"homework/solutions/{unit.folder}/reference.py"] = f"the SECRET of {unit.short}"
    for name, text in texts.items():
        (tmp_path / "course" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "course" / name).write_text(text)
    release.git(tmp_path / "course", "init", "--quiet")
    release.git(tmp_path / "course", "add", "--all")
    release.git(tmp_path / "course", "commit", "--quiet", "--message", "all of it")
    (tmp_path / "course" / "notes.txt").write_text("not committed")
    monkeypatch.setattr(release, "ROOT", tmp_path / "course")
    return tmp_path


def test_the_history_that_learners_get_holds_a_solution_only_once_it_is_released(course, capsys):
    out = course / "learners"
    release.main([str(out)])
    assert "without homework/solutions and tests/homework" in capsys.readouterr().out
    held = {
        line.partition(" ")[2] for line in git(out, "rev-list", "--objects", "--all").split("\n")
    }
    assert "README.md" in held and not [name for name in held if "solutions" in name]
    assert git(out, "log", "--all", "--format=%s").split("\n") == ["The course", ""]
    assert "SECRET" not in git(out, "log", "--all", "--patch")
    assert not (out / "notes.txt").exists() and not (out / "tests").exists()

    release.main([str(out), "hw03"])
    patches = git(out, "log", "--all", "--patch")
    assert "SECRET of hw03" in patches and "SECRET of hw04" not in patches
    assert git(out, "log", "-1", "--format=%s") == "Solutions of hw03\n"
    assert git(out, "status", "--short") == ""


def test_in_the_learners_repository_git_takes_homework_and_no_notebook_from_their_copies(course):
    (course / "course" / ".gitignore").write_text("work\n*.lock\n")
    release.git(course / "course", "add", ".gitignore")
    release.git(course / "course", "commit", "--quiet", "--message", "keys")
    out = course / "learners"
    release.main([str(out)])
    for place in (
        "01_attention.ipynb",
        ".given.json",
        "slides/01.ipynb",
        "hw03_kv_cache/kv_cache.py",
    ):
        (out / "work" / place).parent.mkdir(parents=True, exist_ok=True)
        (out / "work" / place).write_text("mine")
    git(out, "add", ".")
    assert git(out, "diff", "--cached", "--name-only") == "work/hw03_kv_cache/kv_cache.py\n"


def test_a_folder_that_holds_something_is_left_alone(course):
    (course / "full").mkdir()
    (course / "full" / "thesis").write_text("mine")
    with pytest.raises(SystemExit, match="wanted a new or an empty folder"):
        release.main([str(course / "full")])
    with pytest.raises(SystemExit, match="wanted a course made by this command"):
        release.main([str(course / "full"), "hw03"])
    assert [path.name for path in (course / "full").iterdir()] == ["thesis"]


def test_git_gets_its_say(course, monkeypatch):
    monkeypatch.setattr(release, "ROOT", course)
    with pytest.raises(SystemExit, match="git archive in .* failed: .*not a git repository"):
        release.main([str(course / "new")])


@pytest.fixture
def nobody(course, monkeypatch):
    """A machine on which git was never told who works there."""
    for role in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{what}", raising=False)
    settings = course / "settings"
    settings.write_text("[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return settings


def test_who_is_unknown_to_git_is_told_before_anything_is_written(course, nobody):
    out = course / "learners"
    with pytest.raises(SystemExit, match="git does not know who you are, .* user.name"):
        release.main([str(out)])
    assert not out.exists()
    out.mkdir()
    with pytest.raises(SystemExit, match="git does not know who you are"):
        release.main([str(out)])
    assert list(out.iterdir()) == []

    # told who works there, the second try succeeds; so it is with a unit's solutions
    known = "[user]\n\tname = A Teacher\n\temail = teacher@example.org\n"
    nobody.write_text(known)
    release.main([str(out)])
    nobody.write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(SystemExit, match="git does not know who you are"):
        release.main([str(out), "hw03"])
    assert git(out, "status", "--short") == "" and not (out / "homework" / "solutions").exists()
    nobody.write_text(known)
    release.main([str(out), "hw03"])
    assert git(out, "log", "--format=%s") == "Solutions of hw03\nThe course\n"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_release_that_stops_half_way_leaves_the_folder_as_it_was(course, monkeypatch, error):
    def stop(*given):
        raise error

    monkeypatch.setattr(release, "write_whole", stop)
    with pytest.raises(SystemExit):
        release.main([str(course / "learners")])
    assert not (course / "learners").exists()
