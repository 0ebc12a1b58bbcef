"""Front page, evidence, claims and package: is all of it there, in order? Without a browser."""

import html
import re
import shutil

import nbformat

from course import records
from homework import marking
from notebooks import run
from notebooks.run import ROOT
from slides import api, build, claims, deck, front, links, search, shell, tables

# ---- what leads to the pages ---------------------------------------------------------------------


def test_the_front_page_leads_into_the_course_before_it_speaks_of_installing(tmp_path):
    page = front.front({}, set(), {}, tmp_path)
    start, cards, setup = (page.index(word) for word in ('class="button"', "units", "make lab"))
    assert start < cards < page.index("What is found so far") < setup
    titles = re.findall(r'<h3><a href="notebooks/([^"]*)\.html">', page)
    every = [path.stem for path in run.chosen([])]
    aside = {stem for stem in every if stem[:2] in ("03", "07", "08", "13")}
    assert titles == [stem for stem in every if stem not in aside] + sorted(aside)
    assert "GPU is not needed" not in page


def test_a_card_shows_the_first_picture_of_its_executed_notebook(tmp_path):
    drawing = '<img alt="" src="data:image/svg+xml;base64,PHN2Zy8+">'
    shown = nbformat.v4.new_output("display_data", {"text/html": drawing})
    printed = nbformat.v4.new_output("stream", text="1")
    cell = nbformat.v4.new_code_cell("x", outputs=[printed, shown])
    copy = tmp_path / "01_attention.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), copy)
    picture = front.thumbnail(copy, tmp_path / "thumbnails")
    assert 'src="thumbnails/01_attention.svg"' in picture
    assert (tmp_path / "thumbnails" / "01_attention.svg").read_text() == "<svg/>"
    assert front.thumbnail(None, tmp_path) == ""


def test_a_unit_shows_what_is_to_be_filled_in_and_its_exercises_link_there():
    unit = marking.find("hw03")
    shown = re.sub(r"<[^>]+>", "", build.to_fill_in(unit.home))
    assert html.unescape(shown).rstrip().endswith(unit.stub().rstrip())
    ((_, name, words),) = shell.anchored(build.to_fill_in(unit.home))[1]
    assert words == "The file to fill in"
    assert links.address("homework/hw03_kv_cache/exercises.py", "x.html").endswith(f"html#{name}")
    assert build.to_fill_in(ROOT / "homework" / "hw09_open_project") == ""


def test_a_card_of_homework_ends_with_a_sentence():
    for path in links.units():
        heading, said = front.lead(path.read_text(encoding="utf-8"))
        assert heading.startswith(path.parent.name[:4]) and said.rstrip("*_ \n")[-1] in ".?!:"
        assert not re.search(r"^About \d+ minutes", said, flags=re.M), "the question, no more"
    index = front.homework_index()
    assert "at the same time?" in index, "hw05 goes on behind its equation"
    timed = re.findall(r'<p class="links soft">\d+ minutes</p></li>', index)
    assert len(timed) == len(links.units()) - 1, "the open project alone is not counted"


# ---- evidence ------------------------------------------------------------------------------------


def test_no_table_of_recorded_runs_is_empty():
    assert re.findall(r"<h2 id=\"(\w+)\">(?:(?!<h2).)*<tbody></tbody>", tables.recorded()) == []
    assert tables.differences([dict(plan="row2", seed=0, loss=1.0)]) == ""


def test_files_that_put_one_question_to_two_texts_share_a_heading_and_keep_their_addresses():
    found = re.findall(r"<h([23]) id=\"(\w+)\">", tables.recorded())
    addresses = [address for _, address in found]
    files = set(records.recorded_names())
    assert len(addresses) == len(set(addresses)) and files <= set(addresses)
    at = addresses.index("about_dose")
    assert found[at : at + 3] == [("2", "about_dose"), ("3", "dose_code"), ("3", "dose_novel")]
    assert ("2", "critical_point") in found, "a file that is alone has a heading of its own"
    assert ("2", "about_tuning") in found and ("3", "tuning_bank_code") in found


def test_numbers_of_a_table_stay_on_one_line_and_words_do_not():
    kept = ["3.420 ± 0.010", "**", "−0.119 to −0.060", "<strong>−0.090</strong>", "12 %"]
    kinds = ["number" in tables.numbers_whole(f"<td>{cell}</td>") for cell in kept]
    assert kinds == [True, False, True, True, True]
    assert "number" not in tables.table_cell("row 9 of Table 1")
    assert "number" in tables.table_cell("6e-05") and "number" not in tables.table_cell("e")


def test_numbers_are_written_as_a_reader_reads_them():
    values = [-0.039, 1.5e18, 478 * 10**18, [8, 14, 15], 6e-05, 32_768, 2048, -2, None, True]
    told = ["−0.039", "1.5e18", "4.78e20", "8, 14, 15", "6e-05", "32,768", "2048", "−2", "", "True"]
    assert list(map(tables.shown, values)) == told
    assert "number" in tables.table_cell(tables.shown(1.5e18))


def test_numbers_of_one_measure_keep_their_last_zeros():
    assert tables.measured([6e-05, 6e-05]) == ["6e-05", "6e-05"]
    assert tables.measured([0.26, 0.334, -0.3, None]) == ["0.260", "0.334", "−0.300", ""]
    assert tables.measured([3, 0.02, 8_390_000_000]) == ["3", "0.02", "8,390,000,000"]
    assert tables.measured([16, 4]) == ["16", "4"] and tables.measured(["V", 0.5]) == ["V", "0.5"]
    page = tables.published()
    assert ">0.260<" in page and ">12.4<" in page, "as printed; what was read off a figure, as read"


def test_a_published_number_is_shown_with_the_digits_that_are_printed():
    """Of ResFormer's Table 5, which has four decimals, the last was rounded away."""
    assert tables.measured([3.3595, 2.8, 12.25]) == ["3.3595", "2.8000", "12.2500"]
    assert tables.measured([250.375, "none"]) == ["250.375", "none"]
    rounded = []
    for source, name in all_published():
        table = records.published(source, name)
        for column in zip(*(row.values() for row in table["rows"])):
            for value, told in zip(column, tables.measured(column)):
                if tables.is_number(value) and not table["approximate"] and read(told) != value:
                    rounded.append(value)
    assert rounded == [1 / 3], "a share in words, held in full"


def all_published():
    return [(source, name) for source in records.published() for name in records.published(source)]


def read(told):
    """The number that a cell shows."""
    return float(told.replace("−", "-").replace(",", ""))


def test_a_table_on_a_phone_parts_names_at_underscores_and_leaves_room_for_words():
    assert tables.table_cell("5 min") == '<td class="number">5 min</td>'
    assert tables.table_cell("<code>a_b</code>") == "<td><code>a_<wbr>b</code></td>"
    long = "what a whole sentence in a cell says"
    assert tables.numbers_whole(f"<td>{long}</td>") == f'<td class="words">{long}</td>'
    assert search.words(tables.table_cell("<code>a_b</code>")) == "a_b"


def test_a_recorded_command_can_be_given_today_and_says_what_it_was():
    told = tables.command("python -m minimal.evidence --record sizes")
    assert "<code>python -m evidence.lab.record sizes</code>" in told
    assert told.endswith("at that commit <code>minimal.evidence --record</code>")
    same = "python -m evidence.lab.record frontier_code"
    assert tables.command(same) == f"<code>{same}</code>"
    for name in records.recorded_names():
        told = tables.command(records.read(name)["command"]).partition("at that commit")[0]
        assert ".lab.record " in told or name not in records.recordings()
        for module in re.findall(r"-m ([\w.]+)", told):
            folder = "" if module.startswith("minimal.") else "notebooks"
            now = ROOT / folder / module.replace(".", "/")
            assert now.with_suffix(".py").exists() or (now / "__main__.py").exists(), module


def test_what_reads_no_text_names_none():
    file = dict(command="make bench", commit="1", hardware="CPU, 1 threads", versions={})
    none = tables.facts(file | dict(corpus=dict(name="none", fingerprint="none", tokens=0)))
    some = tables.facts(file | dict(corpus=dict(name="a", fingerprint="b", tokens=1000)))
    assert "corpus" not in none and "a (b), 1,000 tokens" in some and "1 thread<" in none
    assert tables.sentence("speed, <1") == "Speed, &lt;1"


def test_an_interval_may_stand_below_its_number_and_is_not_parted():
    made = tables.table_cell("<strong>+0.193</strong> (+0.168 to +0.228)")
    kept = re.findall(r'<span class="whole">(.*?)</span>', made)
    assert kept == ["<strong>+0.193</strong>", "(+0.168 to +0.228)"] and "number" in made
    assert "whole" not in tables.table_cell("row 9 (of 13)")


def test_each_part_of_a_measurement_has_its_own_columns():
    made = tables.every([dict(part="memory", gb_s=3), dict(part="decode", ms=0.5, over=[1])])
    assert made.count("<table>") == 2 and ">ms<" in made and ">0.5<" in made
    assert "All 2 rows" in made and ">over<" not in made
    assert "All 0 rows" in tables.every([])


def test_a_field_that_only_later_rows_have_is_a_column_too():
    """Else two rows that differ in it alone look the same."""
    rows = [dict(plan="bov", over=[1]), dict(plan="bov", rate=0.5), dict(plan="bov", over=2)]
    made = tables.every([row | dict(part="train") for row in rows])
    names = re.findall(r'<th scope="col">(\w+)</th>', made)
    lines = re.findall(r"<tr>(<td.*?)</tr>", made)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in lines]
    assert names == ["plan", "part", "rate", "over"]
    assert cells == [
        ["bov", "train", "", ""],
        ["bov", "train", "0.5", ""],
        ["bov", "train", "", "2"],
    ]


def test_every_scalar_of_a_record_is_shown():
    page = tables.recorded()
    for name in records.recorded_names():
        rows = records.read(name)["rows"]
        flat = {key for row in rows for key, value in row.items() if tables.scalar(value)}
        told = re.search(rf'id="{name}">.*?<details class="rows">(.*?)</details>', page, re.S)[1]
        assert flat == set(re.findall(r'<th scope="col">(\w+)</th>', told)), name


def test_signs_of_recorded_numbers_are_minus_signs():
    made = tables.recorded() + claims.claims(lambda path, words: words)
    assert re.findall(r"(?<=[ (>])-\.?\d[^<]{0,20}", made) == []


def test_a_claim_that_a_test_decides_says_so():
    claim = dict(note="As printed.", evidence="tests/a.py::test_eq_3_is_eq_4")
    assert claims.grounds(claim, lambda path, words: words) == "Test: eq 3 is eq 4. As printed."


def test_the_first_notebook_leads_to_every_other_one():
    road = (ROOT / "notebooks" / "00_start_here.ipynb").read_text(encoding="utf-8")
    road = road.partition("The road")[2].partition('"cell_type"')[0]
    assert [path.name for path in run.chosen([])[1:] if path.name not in road] == []


def test_a_deck_names_the_homework_of_its_notebook():
    lost = []
    for path in deck.decks():
        talk = path.read_text(encoding="utf-8")
        for unit in front.unit(ROOT / "notebooks" / path.name)["homework"]:
            if f"homework {unit[2:4]}" not in talk:
                lost.append(f"{path.stem}: {unit}")
    assert lost == []


def test_the_front_page_has_the_claims_that_readers_ask_about(tmp_path):
    made, book = claims.asked_about(), {claim["id"]: claim for claim in records.claims()}
    lines = re.findall(r"<li>(.*?)</li>", made)
    assert len(lines) == 12 and made in front.front({}, set(), {}, tmp_path)
    for line, name in zip(lines, records.asked_about(), strict=True):
        assert html.escape(book[name]["claim"]) in line and claims.word(book[name]) in line


def test_every_claim_is_a_card_with_its_verdict_and_can_be_asked_for():
    book = records.claims()
    page = claims.claims(lambda path, words: words)
    cards = re.findall(r'<li data-verdict="([^"]*)">', page)
    assert sorted(cards) == sorted(map(claims.word, book)) and "<table" not in page
    for claim in book:
        said = claims.grounds(claim, lambda path, words: words)
        assert said and ".." not in said, f"the card of {claim['id']} says nothing of its grounds"
        assert claim["evidence"] or "Would decide: " in said
    asked = dict(re.findall(r'data-show="([^"]+)"[^>]*>\D+(\d+)<', page))
    assert asked == {verdict: str(cards.count(verdict)) for verdict in set(cards)}


# ---- the package ---------------------------------------------------------------------------------


def test_the_package_is_listed_whole_in_reading_order():
    listed = [api.inside(path) for path in api.modules()]
    files = [path for path in (api.ROOT / "minimal").rglob("*.py") if path.read_text().strip()]
    assert sorted(listed) == sorted(map(api.inside, files)) and len(set(listed)) == len(listed)
    assert listed[:2] == ["__init__.py", "gpt.py"]
    rooms = list(dict.fromkeys(name.split("/")[0] for name in listed if "/" in name))
    assert rooms == ["model", "kernels", "training", "data", "encoder", "tasks", "compare", "bench"]
    assert next(name for name in listed if name.startswith("model/")) == "model/values.py"
    lost = [
        f"{room}/{name}"
        for room, names in api.READ_FIRST.items()
        for name in names.split()
        if not (api.ROOT / "minimal" / room / f"{name}.py").exists()
    ]
    assert lost == []


def test_a_page_of_the_package_has_the_source_and_docstrings_as_paragraphs():
    path = api.ROOT / "minimal" / "model" / "values.py"
    page = api.module(path)
    folds = re.findall(r'<details class="code">(.*?)</details>', page, flags=re.S)
    whole = html.unescape(re.sub(r"<[^>]+>", "", folds[0]))
    assert path.read_text(encoding="utf-8").strip() in whole
    assert len(folds) == 1 + len(re.findall("<h2 ", page))
    assert api.block_html("One line\nand its end.") == "<p>One line and its end.</p>"
    assert api.block_html("name    what\nother   more").startswith("<pre>")
    assert '--in:8ch">name    what\n<' in api.block_html("name    what\nother   more")
    assert '--in:2ch">- one of a list\n<' in api.block_html("- one of a list")


def test_only_some_notebooks_are_executed_and_all_pages_are_there(monkeypatch, tmp_path):
    ran, made = [], {}

    def executed(paths, profile, folder, jobs=2):
        ran.append(([path.name for path in paths], profile))
        return {path: path for path in paths}, []

    def built(out, copies, profile, talks, printing):
        made.update(copies=copies, talks=talks, printing=printing)
        out.mkdir()

    monkeypatch.setattr(deck, "at_hand", deck.decks)  # as with npm packages, which are an extra
    monkeypatch.setattr(deck, "executed", executed)
    monkeypatch.setattr(build, "build", built)
    monkeypatch.setattr(build, "BUILD", build.ROOT / "build" / tmp_path.name)
    build.BUILD.mkdir(parents=True)
    try:
        assert build.main(["--profile", "smoke", "--no-pdf", "--only", "00", "01"]) == 0
    finally:
        shutil.rmtree(build.BUILD)
    only = ["00_start_here.ipynb", "01_attention.ipynb"]
    assert ran == [(only, "smoke"), (only[1:], "smoke")]
    assert [path.name for path in made["copies"]] == only
    assert list(made["talks"]) == deck.decks() and made["printing"] is False


def test_commands_of_a_docstring_are_lines_of_code():
    made = api.block_html("python -m minimal.train --plan bov\ntorchrun -m minimal.train …")
    assert made.startswith("<pre>") and made.count('class="line"') == 2
    assert ">make lab" in api.block_html("    make lab      opens\n    make test     tests")
    assert api.block_html("Make of it\nwhat you will.") == "<p>Make of it what you will.</p>"
    train = api.module(ROOT / "minimal" / "train.py")
    assert ">python -m minimal.train --plan bov" in train and ">torchrun --nproc" in train


def test_on_what_a_claim_rests_is_folded_below_what_is_claimed():
    """All of it open was 47,510 pixels high on a phone."""
    cards = re.findall(r"<li data-verdict.*?</li>", claims.claims(lambda path, words: words), re.S)
    for card in cards:
        assert card.count("<details>") == 1 and 'class="said"' in card.partition("<details>")[0]
