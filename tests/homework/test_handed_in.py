"""Is each class graded as it comes? Clones, Canvas, Moodle, a folder of names: one command each."""

import json
import os
import zipfile
from datetime import datetime, timedelta

import pytest

from homework import grade, handed_in, marking, reading, roster
from tests.homework.classroom import HONEST, UNIT, table, zipped

CLONED = f"homework/{UNIT.folder}/{UNIT.file}"


def clones(root):
    """`gh classroom clone student-repos`: a repository each, in one folder."""
    for who, text in dict(ann="first", ben="second").items():
        (root / f"hw03-{who}" / ".git").mkdir(parents=True)
        for name, content in {CLONED: text, "README.md": "", "homework/grade.py": "no"}.items():
            (root / f"hw03-{who}" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / f"hw03-{who}" / name).write_text(content)
    return root


def canvas(root):
    """`Download Submissions`: everything in one folder, names made of four parts."""
    texts = {
        "exampleann_123_4567_kv_cache.py": "first",
        "jonesben_LATE_124_4570_kv_cache-1.py": "second",
        "jonesben_124_4560_kv_cache.py": "an attempt before",
        "jonesben_124_4561_notes.pdf": "no",
    }
    return zipped(root / "submissions.zip", **texts)


def moodle(root):
    """`Download all submissions`, in folders."""
    texts = {
        "Ann Example_123_assignsubmission_file_/kv_cache.py": "first",
        "Ann Example_123_assignsubmission_onlinetext_/onlinetext.html": "see my file",
        "Ben Jones_124_assignsubmission_file_/kv_cache (1).py": "second",
    }
    return zipped(root / "hw03.zip", **texts)


def moodle_flat(root):
    texts = {
        "Ann Example_123_assignsubmission_file_kv_cache.py": "first",
        "Ben Jones_124_assignsubmission_file_kv_cache.py": "second",
    }
    return zipped(root / "hw03.zip", **texts)


def names(root):
    (root / "ann").mkdir()
    (root / "ann" / UNIT.file).write_text("first")
    (root / "ben.py").write_text("second")
    return root


CLASSES = {  # how it comes: what to call the two learners, and what is said of the second
    clones: (["hw03-ann", "hw03-ben"], f"{CLONED} was graded"),
    canvas: (["exampleann", "jonesben"], "2 attempts: kv_cache-1.py, the last, was graded"),
    moodle: (["Ann Example", "Ben Jones"], "kv_cache (1).py was graded"),
    moodle_flat: (["Ann Example", "Ben Jones"], ""),
    names: (["ann", "ben"], ""),
}
ROSTERS = {
    clones: "identifier,github_username,name\n1,ann,Ann E.\n2,ben,Ben J.\n3,cy,Cy Young\n",
    canvas: "Student,ID,SIS User ID,SIS Login ID,Section,hw03 (77)\n    Points Possible,,,,,100\n"
    '"Example, Ann",123,s1,ae,A,\n"Jones, Ben",124,s2,bj,A,\n"Young, Cy",125,s3,cy,A,\n',
    moodle: "Identifier,Full name\nParticipant 123,Ann E.\nParticipant 124,Ben J.\n"
    "Participant 125,Cy Young\n",
    moodle_flat: "Full name;Group\nAnn Example;A\nBen Jones;A\nCy Young;A\n",
    names: "name;mail\nann;a@example.org\nBEN;b@example.org\nCy Young;c@example.org\n",
}


@pytest.mark.parametrize("comes", CLASSES)
def test_a_class_is_graded_as_it_comes(comes, tmp_path, stub, capsys):
    (tmp_path / "class").mkdir()
    (tmp_path / "roster.csv").write_text(ROSTERS[comes])
    handed, out = comes(tmp_path / "class"), tmp_path / "out"
    people = ["--roster", str(tmp_path / "roster.csv")]
    assert grade.main(["hw03", str(handed), "--out", str(out), "--jobs", "1", *people]) == 0
    called, note = CLASSES[comes]
    ann, ben, cy = table(out / "grades.csv")
    assert [ann["submission"], ben["submission"]] == called
    assert stub == ["first", "second"] and [ann["score"], ben["score"]] == [str(UNIT.points), "0"]
    assert note in ben["note"] and {f"{who}.json" for who in called} <= {*os.listdir(out)}
    # Who handed in nothing is named, and everybody else is known.
    assert cy["note"] == "handed in nothing" and cy["score"] == "0"
    said = capsys.readouterr().out
    assert "handed in nothing: " in said and "not on the roster" not in said + ann["note"]
    assert ann["learner"] and ben["learner"] and cy["learner"] in ("Cy Young", "Young, Cy")


@pytest.mark.parametrize("comes", [clones, canvas])
def test_the_whole_way_from_a_platform_to_a_mark(comes, tmp_path, way, monkeypatch):
    """A folder and an archive with honest work in the first learner's place, behind the sandbox.
    What the others add is how a file is chosen, which the test above asks of all."""
    monkeypatch.setattr(grade, "find", lambda name: UNIT)
    (tmp_path / "class").mkdir()
    handed, out = comes(tmp_path / "class"), tmp_path / "out"
    if handed.is_file():
        with zipfile.ZipFile(handed) as archive:
            texts = {name: archive.read(name) for name in archive.namelist()}
        texts = {name: HONEST if text == b"first" else text for name, text in texts.items()}
        zipped(handed, **texts)
    else:
        for path in [p for p in handed.rglob("*.py") if p.read_text() == "first"]:
            path.write_text(HONEST)
    assert grade.main(["hw03", str(handed), "--out", str(out), "--isolation", way]) == 0
    assert [row["score"] for row in table(out / "grades.csv")] == [str(UNIT.points), "0"]


def test_one_clone_is_one_learner(tmp_path, stub, monkeypatch):
    repository = clones(tmp_path) / "hw03-ann"
    out = tmp_path / "results.json"
    assert grade.main(["hw03", str(repository), "--out", str(out)]) == 0
    assert grade.main(["hw03", str(repository), "--out", str(tmp_path / "r.json")]) == 0
    (repository / "work" / UNIT.folder).mkdir(parents=True)
    (repository / CLONED).rename(repository / "work" / UNIT.folder / UNIT.file)
    assert grade.main(["hw03", str(repository), "--out", str(tmp_path / "s.json")]) == 0
    assert stub == ["first"] * 3 and f'"score": {UNIT.points}' in out.read_text()


def test_a_clone_hands_in_what_is_written_be_it_the_copy_or_where_the_stub_was(tmp_path, stub):
    """The stub in the other place is not graded in its stead; where there is nothing else, it is,
    and the table says so."""
    written = dict(copy=("first", UNIT.stub()), place=(UNIT.stub(), "first"), both=("first", "no"))
    written["nothing"] = (UNIT.stub(), UNIT.stub())
    for who, texts in written.items():
        for room, text in zip(("work", "homework"), texts, strict=True):
            path = tmp_path / "class" / who / room / UNIT.folder / UNIT.file
            path.parent.mkdir(parents=True)
            path.write_text(text)
        (tmp_path / "class" / who / ".git").mkdir()
    assert grade.main(["hw03", str(tmp_path / "class"), "--out", str(tmp_path / "out")]) == 0
    rows = {row["submission"]: row for row in table(tmp_path / "out" / "grades.csv")}
    whole = str(UNIT.points)
    assert {who: row["score"] for who, row in rows.items()} == dict(
        copy=whole, place=whole, both=whole, nothing="0"
    )
    assert f"work/{UNIT.folder}/{UNIT.file} was graded" in rows["copy"]["note"]
    assert f"{CLONED} was graded" in rows["place"]["note"]
    assert "it is the stub, with nothing written in it" in rows["nothing"]["note"]
    assert not [who for who in ("copy", "place", "both") if "the stub" in rows[who]["note"]]


def test_without_a_file_the_learners_own_is_graded(tmp_path, stub, monkeypatch, capsys):
    monkeypatch.setattr(marking, "HERE", tmp_path / "homework")
    UNIT.path.parent.mkdir(parents=True)
    UNIT.path.write_text("first")
    monkeypatch.chdir(tmp_path)
    assert grade.main(["hw03"]) == 0
    assert stub == ["first"] and f"{UNIT.points} of {UNIT.points}" in capsys.readouterr().out


def test_late_is_counted_in_days_begun_and_told_where_nobody_knows(tmp_path, stub):
    (tmp_path / "class").mkdir()
    due = datetime(2026, 10, 31, 23, 59)
    for name, hours in dict(early=-1, late=1, later=25).items():
        path = tmp_path / "class" / f"{name}.py"
        path.write_text("first")
        when = (due + timedelta(hours=hours)).timestamp()
        os.utime(path, (when, when))
    (tmp_path / "class" / "clone" / ".git").mkdir(parents=True)
    (tmp_path / "class" / "clone" / UNIT.file).write_text("first")
    rule = ["--due", "2026-10-31T23:59", "--late", "10", "--out", str(tmp_path / "out")]
    assert grade.main(["hw03", str(tmp_path / "class"), *rule]) == 0
    rows = {row["submission"]: row for row in table(tmp_path / "out" / "grades.csv")}
    days = {name: row["days late"] for name, row in rows.items()}
    assert days == dict(early="0", late="1", later="2", clone="")
    points = UNIT.points
    assert float(rows["late"]["final"]) == round(points * 0.9, 2)
    assert float(rows["later"]["final"]) == round(points * 0.8, 2)
    assert float(rows["early"]["final"]) == float(rows["clone"]["final"]) == points
    assert {row["score"] for row in rows.values()} == {str(points)}
    assert "when it was handed in is not known" in rows["clone"]["note"]


def test_canvas_gets_its_gradebook_back(tmp_path, stub):
    """Its own columns and number of the assignment; its late mark costs at least one day."""
    (tmp_path / "roster.csv").write_text(ROSTERS[canvas])
    options = ["--canvas", "hw03", "--late", "50", "--out", str(tmp_path / "out")]
    options += ["--roster", str(tmp_path / "roster.csv")]
    archive = zipped(
        tmp_path / "z.zip",
        **{"exampleann_LATE_123_1_kv_cache.py": "first", "jonesben_124_2_kv_cache.py": "first"},
    )
    assert grade.main(["hw03", str(archive), *options]) == 0
    head = "Student,ID,SIS User ID,SIS Login ID,Section,hw03 (77)"
    half = round(UNIT.points * 0.5, 2)
    lines = (tmp_path / "out" / "canvas.csv").read_text().splitlines()
    first, second = '"Example, Ann",123,s1,ae,A', '"Jones, Ben",124,s2,bj,A'
    assert lines == [head, f"{first},{half}", f"{second},{float(UNIT.points)}"]
    # Without a roster, the archive's own names and numbers.
    assert grade.main(["hw03", str(archive), *options[:-2]]) == 0
    lines = (tmp_path / "out" / "canvas.csv").read_text().splitlines()
    assert lines[0].endswith(",hw03") and lines[1] == f"exampleann,123,,,,{half}"


def test_two_learners_of_one_name_are_told_apart_by_their_number(tmp_path, stub):
    texts = {f"jonesben_{n}_{n}9_kv_cache.py": "first" for n in (11, 12)}
    learners, left, twice = handed_in.whole_class(zipped(tmp_path / "z.zip", **texts))
    assert [mine.who for mine in learners] == ["jonesben_11", "jonesben_12"] and not left + twice
    assert roster.find([dict(ID="11", Student="Jones, B")], learners[0])["ID"] == "11"
    assert roster.find([dict(ID="12"), dict(ID="12")], learners[1]) is None


def cloned(*names):
    return [handed_in.HandedIn(name, clone=True, clones=names) for name in names]


def listed(*logins):
    return [dict(identifier=str(n), github_username=who) for n, who in enumerate(logins)]


LISTED = ("ann", "lee", "anna-lee", "ben")
FOUND = [  # clones in one folder, the GitHub names on the roster, and whose each clone is
    (["hw03-anna-lee", "hw03-ben"], ["lee", "ben"], [None, "ben"]),
    (["hw03-anna-lee", "hw03-lee"], LISTED, ["anna-lee", "lee"]),
    (["kv-cache-anna-lee", "kv-cache-Lee"], LISTED, ["anna-lee", "lee"]),
    (["kv-cache-anna-lee", "kv-cache-Ben"], ["lee", "ben"], [None, "ben"]),
    (["hw03-anna-lee", "hw03-anna-may"], ["lee", "anna-may"], [None, "anna-may"]),
    (["hw03-anna-lee"], ["lee"], [None]),
    (["hw03-ann"], LISTED, ["ann"]),
    (["hw03-ann", "again-ben"], LISTED, ["ann", "ben"]),
]


@pytest.mark.parametrize("names, logins, whose", FOUND)
def test_a_clone_is_found_by_the_whole_of_its_github_name(names, logins, whose):
    """Behind what all clones begin with: an Anna Lee who is not listed is not Lee."""
    people = listed(*logins)
    found = [roster.find(people, mine) for mine in cloned(*names)]
    assert [row and row["github_username"] for row in found] == whose


def test_only_columns_that_say_who_a_learner_is_are_compared():
    """A section, a group or a mark may read like a neighbour's name or number."""
    canvas = [
        {"Student": "Young, Cy", "ID": "125", "Section": "Jones, Ben", "hw02": "124"},
        {"Student": "Jones, Ben", "ID": "124", "Section": "ann", "hw02": "125"},
    ]
    by = lambda who, **more: roster.find(canvas, handed_in.HandedIn(who, **more))
    assert by("jonesben") is by("x", number="124") is canvas[1]
    assert by("x", number="125") is canvas[0] and by("ann") is None
    own = [{"Nachname": "Lee", "Gruppe": "ann"}, {"Nachname": "Ann", "Gruppe": "lee"}]
    assert roster.find(own, handed_in.HandedIn("ann")) is own[1]
    assert roster.find(own, handed_in.HandedIn("anna-lee")) is None, "no clone, and another name"


@pytest.mark.parametrize("who", ["hw03-anna-lee", "hw03-lee"])
def test_an_unlisted_clone_is_named_and_takes_nobodys_line(who, tmp_path, stub, capsys):
    (tmp_path / "class").mkdir()
    clones(tmp_path / "class")
    (tmp_path / "class" / "hw03-ann").rename(tmp_path / "class" / who)
    (tmp_path / "roster.csv").write_text("identifier,github_username\nLee,lee\nBen,ben\n")
    asked = ["--roster", str(tmp_path / "roster.csv"), "--out", str(tmp_path / "out")]
    assert grade.main(["hw03", str(tmp_path / "class"), *asked]) == 0
    is_lee, said = who == "hw03-lee", capsys.readouterr().out
    rows = {row["submission"]: row["learner"] for row in table(tmp_path / "out" / "grades.csv")}
    assert rows == {who: "Lee" if is_lee else "", "hw03-ben": "Ben"} | (
        {} if is_lee else {"": "Lee"}
    )
    told = ("handed in nothing: Lee" in said, f"not on the roster: {who}" in said)
    assert told == (not is_lee, not is_lee)


def test_clones_in_an_archive_are_clones_too(tmp_path):
    texts = {f"hw03-{who}/{name}": "" for who in ("ann", "ben") for name in (".git/HEAD", CLONED)}
    texts["cy-lee/kv_cache.py"] = ""
    learners, *_ = handed_in.whole_class(zipped(tmp_path / "z.zip", **texts))
    found = [roster.find(listed("ann", "ben", "lee"), mine) for mine in learners]
    assert [mine.clone for mine in learners] == [False, True, True]
    assert [row and row["github_username"] for row in found] == [None, "ann", "ben"]


def test_a_line_of_canvas_without_a_learner_is_nobody(tmp_path):
    """Its second line may say how marks are posted, and its test student hands in nothing."""
    text = ROSTERS[canvas].replace("    Points", ",,,,,Manual Posting\n    Points")
    (tmp_path / "roster.csv").write_text(f'{text}"Student, Test",9,,0f3c,A,\n')
    people = roster.read(tmp_path / "roster.csv")
    assert [roster.called(row) for row in people] == ["Example, Ann", "Jones, Ben", "Young, Cy"]


STUBS = dict(
    canvas={"ann_1_2_kv_cache.py": 0, "ben_2_3_kv_cache.py": 1, "ben_2_4_kv_cache-1.py": 0},
    moodle={
        "Ann_1_assignsubmission_file_/kv_cache.py": 0,
        "Ben_2_assignsubmission_file_kv_cache.py": 0,
    },
)


@pytest.mark.parametrize("platform", STUBS)
def test_whose_file_is_the_stub_is_told_from_every_platform(platform, tmp_path):
    texts = {name: "first" if there else UNIT.stub() for name, there in STUBS[platform].items()}
    learners, *_ = handed_in.whole_class(zipped(tmp_path / "z.zip", **texts))
    notes = [mine.choose(UNIT)[1] for mine in learners]
    says = "it is the stub, with nothing written in it"
    several = "2 attempts: kv_cache-1.py, the last, was graded; "
    assert notes == [says, (several if platform == "canvas" else "") + says]


def test_a_file_with_two_names_is_graded_for_nobody(tmp_path, stub, capsys):
    """A hard link to a neighbour's file: not a hundred for one, and not a zero for the other."""
    (tmp_path / "class" / "ann").mkdir(parents=True)
    (tmp_path / "class" / "mallory").mkdir()
    (tmp_path / "class" / "ann" / UNIT.file).write_text("first")
    os.link(tmp_path / "class" / "ann" / UNIT.file, tmp_path / "class" / "mallory" / UNIT.file)
    (tmp_path / "class" / "ben.py").write_text("first")
    os.link(tmp_path / "class" / "ben.py", tmp_path / "kept")  # nobody else's
    assert grade.main(["hw03", str(tmp_path / "class"), "--out", str(tmp_path / "out")]) == 2
    rows = {row["submission"]: row for row in table(tmp_path / "out" / "grades.csv")}
    assert rows["ann"]["score"] == rows["mallory"]["score"] == "grader error"
    assert "a hard link, is also ann's" in rows["mallory"]["note"]
    assert rows["ben"]["score"] == str(UNIT.points) and stub == ["first"]


def test_an_archive_writes_nothing_and_swells_to_nothing(tmp_path, stub):
    """Names that climb out, a file of a gigabyte, and what macOS adds."""
    path = tmp_path / "z.zip"
    texts = {"../../escaped.py": "first", "__MACOSX/ann/._kv_cache.py": "no"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        archive.writestr("bomb/kv_cache.py", bytes(reading.MOST + 1))
    before = {*tmp_path.rglob("*")}
    learners, left, _ = handed_in.whole_class(path)
    assert {*tmp_path.rglob("*")} == before
    bomb = next(mine for mine in learners if mine.who == "bomb")
    assert "larger than 1 MB" in bomb.choose(UNIT)[0].none
    assert not [mine for mine in learners if "MACOSX" in mine.who]
    assert [mine.who for mine in learners] == ["bomb", "escaped"]


def test_what_is_no_file_has_a_line(tmp_path, stub):
    """A pipe in the place of a file holds nobody up."""
    (tmp_path / "class" / "ann").mkdir(parents=True)
    os.mkfifo(tmp_path / "class" / "ann" / UNIT.file)
    assert grade.main(["hw03", str(tmp_path / "class"), "--out", str(tmp_path / "out")]) == 0
    (row,) = table(tmp_path / "out" / "grades.csv")
    assert row["score"] == "0" and "kv_cache.py is no file" in row["note"] and stub == []


NAMES = {  # of a file: what the table says, what the terminal says
    "a;=HYPERLINK(1)": ("a;'=HYPERLINK(1)", "a;=HYPERLINK(1)"),
    "a|＋1": ("a|'＋1", "a|＋1"),
    "＝1+1": ("'＝1+1", "＝1+1"),
    "\u3164": ("\\u3164", "\\u3164"),
    "~~~": ("~~~", "~~~"),
    "# a": ("# a", "# a"),
    "1. a": ("1. a", "1. a"),
    ".ann": (".ann", ".ann"),
    "__bob": ("__bob", "__bob"),
}


def test_every_name_has_a_line_and_speaks_to_no_program(tmp_path, stub, capsys):
    """Formulas behind a separator or in wide letters, blank letters, marks of Markdown, and names
    that are merely hidden. What systems and editors leave has none."""
    handed, out = tmp_path / "class", tmp_path / "out"
    for name in NAMES:
        handed.mkdir(exist_ok=True)
        (handed / f"{name}.py").write_text("first")
    for folder in ("__eve", "__MACOSX", ".git", ".ipynb_checkpoints"):
        (handed / folder).mkdir()
        (handed / folder / UNIT.file).write_text("first")
    (handed / "._ann.py").write_text("")
    assert grade.main(["hw03", str(handed), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    rows = [row["submission"] for row in table(out / "grades.csv")]
    assert sorted(rows) == sorted([*(in_table for in_table, _ in NAMES.values()), "__eve"])
    for name, (_, on_terminal) in NAMES.items():
        assert f"\n{on_terminal} " in f"\n{said}"
        head = (out / "cards" / f"{name}.md").read_text().splitlines()[2]
        assert head.endswith(f"{UNIT.points} of {UNIT.points} points**")
        assert not head.startswith(("~", "#", "1. ", " ")) and head[0].isprintable()


# ---- dates and rosters that do not fit -----------------------------------------------------------


def test_a_day_is_due_at_its_end(tmp_path, stub):
    """Noon of the due day is in time; the first second of the next is one day late."""
    (tmp_path / "class").mkdir()
    for name, when in dict(noon=(31, 12), last=(31, 23, 59, 59), next=(32, 0, 0, 1)).items():
        day, *clock = when
        at = datetime(2026, 10, 1, *clock) + timedelta(days=day - 1)
        (tmp_path / "class" / f"{name}.py").write_text("first")
        os.utime(tmp_path / "class" / f"{name}.py", (at.timestamp(), at.timestamp()))
    rule = ["--due", "2026-10-31", "--late", "10", "--out", str(tmp_path / "out")]
    assert grade.main(["hw03", str(tmp_path / "class"), *rule]) == 0
    rows = table(tmp_path / "out" / "grades.csv")
    assert {row["submission"]: row["days late"] for row in rows} == dict(
        noon="0", last="0", next="1"
    )


def test_who_is_late_in_canvas_is_what_canvas_says(tmp_path, stub):
    """Its archive has no times; whom it does not mark was in time."""
    names = ["exampleann_LATE_123_1_kv_cache.py", "jonesben_124_2_kv_cache.py"]
    archive = zipped(tmp_path / "z.zip", **dict.fromkeys(names, "first"))
    out = tmp_path / "out"
    rule = ["--due", "2026-10-31", "--late", "10", "--out", str(out)]
    assert grade.main(["hw03", str(archive), *rule]) == 0
    rows = table(out / "grades.csv")
    assert [row["days late"] for row in rows] == ["1", "0"]
    assert not [row for row in rows if "not known" in row["note"]]


ANN = {"ann.py": "first", "Ben Jones.py": "first"}
REFUSED = {  # a class, its roster, options: what is said before anything runs
    "late without due": (ANN, "", ["--late", "10"], "say when it was due"),
    "a roster of others": (ANN, "name\nCy\nDi\n", [], "knows nobody who handed in (Ben Jones, ann"),
    "canvas from nothing": (
        ANN,
        "",
        ["--canvas", "hw03"],
        "wants Canvas' archive, or its gradebook",
    ),
    "canvas from logins": (ANN, "name,login\nann,a\n", ["--canvas", "hw03"], "has name, login"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_would_mark_nobody_is_refused(why, tmp_path, stub, capsys):
    texts, listed, asked, told = REFUSED[why]
    (tmp_path / "class").mkdir()
    for name, text in texts.items():
        (tmp_path / "class" / name).write_text(text)
    if listed:
        (tmp_path / "roster.csv").write_text(listed)
        asked = [*asked, "--roster", str(tmp_path / "roster.csv")]
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / "class"), *asked, "--out", str(tmp_path / "out")])
    assert told in capsys.readouterr().err and not stub


@pytest.mark.parametrize("option", [["--late", "5"], ["--due", "2026-10-31"], ["--canvas", "hw03"]])
def test_what_is_for_a_class_is_refused_for_one_learner(option, tmp_path, stub, capsys):
    (tmp_path / UNIT.file).write_text("first")
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / UNIT.file), *option])
    assert f"{option[0]} is for a class" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["2026-13-01", "0001-01-01", "tomorrow"])
def test_a_date_that_is_none_is_refused(option, tmp_path, stub, capsys):
    (tmp_path / UNIT.file).write_text("first")
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / UNIT.file), "--due", option])
    assert "wanted a time like 2026-10-31T23:59" in capsys.readouterr().err


def test_a_name_is_found_in_either_order(tmp_path, stub):
    """Folders of first and last names, and a gradebook of last and first ones, or the reverse."""
    people = [dict(Student="Lee, Anna"), dict(Student="Öz, Ben"), dict(Student="Cy Young")]
    whose = lambda who: roster.find(people, handed_in.HandedIn(who))
    assert [whose(who) for who in ("Anna Lee", "ben_öz", "Young, Cy")] == people
    people.append(dict(Student="Anna, Lee"))
    assert whose("Anna Lee") is None, "two learners may be meant"


def test_two_hand_ins_of_one_learner_are_told_and_marked_for_nobody(tmp_path, stub, capsys):
    (tmp_path / "class").mkdir()
    names = ["Ann Lee", "ann-lee", "\uff21nn Lee", "Ben"]
    for name in names:
        (tmp_path / "class" / f"{name}.py").write_text("first")
    (tmp_path / "roster.csv").write_text('Student,ID\n"Lee, Ann",1\n"Ben",2\n')
    asked = ["--roster", str(tmp_path / "roster.csv"), "--canvas", "hw03"]
    asked += ["--out", str(tmp_path / "out")]
    assert grade.main(["hw03", str(tmp_path / "class"), *asked]) == 0
    rows = {row["submission"]: row for row in table(tmp_path / "out" / "grades.csv")}
    assert len(rows) == 4 and rows["Ben"]["note"] == ""
    told = "one learner of the roster is Ann Lee, \uff21nn Lee, too: which one counts?"
    assert rows["ann-lee"]["note"] == told
    assert "handed in twice: Ann Lee, ann-lee, \uff21nn Lee" in capsys.readouterr().out
    lines = (tmp_path / "out" / "canvas.csv").read_text().splitlines()
    assert lines[1:] == [f"Ben,2,,,,{UNIT.points}"]


def test_a_stranger_in_canvas_gradebook_has_no_line_without_a_number(tmp_path, stub):
    (tmp_path / "class").mkdir()
    for name in ("Ann", "Nobody"):
        (tmp_path / "class" / f"{name}.py").write_text("first")
    (tmp_path / "roster.csv").write_text("Student,ID\nAnn,1\n")
    asked = ["--roster", str(tmp_path / "roster.csv"), "--canvas", "hw03"]
    asked += ["--out", str(tmp_path / "out")]
    assert grade.main(["hw03", str(tmp_path / "class"), *asked]) == 0
    lines = (tmp_path / "out" / "canvas.csv").read_text().splitlines()
    assert lines[1:] == [f"Ann,1,,,,{UNIT.points}"]


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_a_roster_that_is_no_file_is_refused_and_not_waited_for(kind, tmp_path, stub, capsys):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "ann.py").write_text("first")
    os.mkfifo(tmp_path / "roster.csv") if kind == "a pipe" else (tmp_path / "roster.csv").mkdir()
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / "class"), "--roster", str(tmp_path / "roster.csv")])
    assert "wanted a roster, a .csv in UTF-8" in capsys.readouterr().err


def test_a_learner_reads_what_was_found_instead(tmp_path, stub):
    """Gradescope shows the results, not the instructor's table."""
    (tmp_path / "handed").mkdir()
    (tmp_path / "handed" / "my_cache.py").write_text("first")
    out = tmp_path / "results.json"
    assert grade.main(["hw03", str(tmp_path / "handed"), "--out", str(out)]) == 0
    (why,) = {test["output"] for test in json.loads(out.read_text())["tests"]}
    assert why == f"{UNIT.file} was not handed in; found my_cache.py"
