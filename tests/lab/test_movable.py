"""Do the pieces to move say what Python says? In a browser, by key, and without any script."""

import itertools
import json
import random
import re

import pytest
import torch

from course import figures, records
from course.movable import PIECES as READY
from course.movable import heads_over, seeds_and_steps, tiles
from course.movable.cache import CACHE_PLANS, CACHE_SIZES, cache_bytes
from course.movable.seeds import place
from minimal import analysis
from minimal.compare import intervals
from minimal.model.count import count
from minimal.variants import build, skeleton
from tests.tasks.toys import tokenizer


def toy_heads():
    """Heads of two small models that nobody has trained, over a sentence."""
    models = {name: build(name, "smoke", seed=1).eval() for name in ("standard", "resformer")}
    return heads_over("def main(self): return self.name", tokenizer(), **models)


PLANS = ("resformer", "vplus", "row9", "svformer", "gqa")


def recorded_seeds():
    """The grid of thirteen rows, some of its plans."""
    return seeds_and_steps(records.rows("thirteen_rows"), PLANS)


PIECES = READY | dict(gathered=lambda: tiles(gather=True), heads=toy_heads, seeds=recorded_seeds)
VIEW = "<meta name=viewport content='width=device-width'>"
REDUCED = "prefers-reduced-motion"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def settings(piece, most=12):
    """Every control at its ends, and some stops between: {control: index}."""
    ends = [sorted({0, c.start, len(c.stops) - 1}) for c in piece.controls]
    every = list(itertools.product(*ends))
    chosen = random.Random(0).sample(every, min(most, len(every)))
    return [dict(zip((c.name for c in piece.controls), at, strict=True)) for at in chosen]


def values_at(piece, indices):
    return {c.name: c.stops[indices[c.name]][0] for c in piece.controls}


def same(ours, theirs):
    """Equal words, and numbers that differ by no more than how a last digit is rounded."""
    numbers = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    close = all(abs(float(a) - float(b)) <= 0.0101 + 1e-9 * abs(float(a)) for a, b in numbers)
    return close and NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_stands_as_python_drew_it_where_no_script_runs(name):
    piece = PIECES[name]()
    page = piece._repr_html_()
    still = page[: page.index("<script>")]
    for key, value in piece.compute(piece.start()).items():
        assert f'data-key="{key}"' in still and str(value) in still.replace("&#x27;", "'"), key
    assert len(piece.alt) >= 40 and piece.alt in still.replace("&#x27;", "'")
    assert not re.search(r"(src|href)=\"http|@import|url\(http|fetch\(|XMLHttpRequest", page)
    assert still.count("<label>") == len(piece.controls), "every control has its words"
    assert repr(piece) == f"[to move: {piece.title}] {piece.alt}", (
        "no address of this machine's memory"
    )
    assert PIECES[name]()._repr_html_() == page


@pytest.mark.parametrize("plan", CACHE_PLANS)
def test_the_calculator_counts_what_variants_counts(plan):
    for size in CACHE_SIZES:
        parts, counted = cache_bytes(plan, size), count(skeleton(plan, size))
        per_token = parts["keys"] + parts["values"] + parts["ids"]
        assert per_token == counted["cache_bytes_per_token"]
        assert parts["tables"] == counted["cache_bytes_fixed"]


def test_what_the_pieces_teach():
    compute = PIECES["even"]().compute
    assert "1.00" in compute(dict(batch=1, tokens=32768, vocabulary=32768))["said"]
    assert "table is smaller" in compute(dict(batch=8, tokens=32768, vocabulary=32768))["said"]
    compute = PIECES["rope"]().compute
    assert compute(dict(base=1e4, distance=0))["score"] == "score 1.00"
    compute = PIECES["mix"]().compute
    alike = [float(NUMBER.findall(compute(dict(share=s))["alike"])[0]) for s in (0.0, 0.5, 1.0)]
    assert alike[0] > 0.9 > alike[1] > alike[2], (
        "a deep layer's words are alike, the first layer's are not"
    )
    compute = PIECES["softmax"]().compute
    ends = {compute(dict(tiles=12, width=w))["output"] for w in (1, 2, 3, 4)}
    assert len(ends) == 1, "the result does not depend on the tiles"
    said = compute(dict(tiles=12, width=1))
    right, wrong = (float(NUMBER.findall(said[key])[0]) for key in ("output", "forgetful"))
    assert abs(right - wrong) > 0.1, "without the correction it would"


def test_intervals_of_seeds_are_those_of_the_evidence():
    """At the end, with all seeds, the piece says what `paired` says; with two, almost nothing."""
    piece, rows = (
        recorded_seeds(),
        records.rows("thirteen_rows"),
    )
    said = piece.compute(piece.start())
    last = [row | dict(loss=row["valid"][-1][1]) for row in rows]  # of the curve that is shown
    table = figures.ahead(intervals.paired(last, "loss", plans=PLANS))
    clear = [row["plan"] for row in table if row["clear"]]
    assert said["clear"] == f"clear of zero: {', '.join(clear) or 'none'}" and clear
    most = max(table, key=lambda row: row["difference"])
    assert said["best"].startswith(f"furthest ahead on average: {most['plan']}, ")
    for at, row in enumerate(table):
        left, y, right = map(float, NUMBER.findall(said[f"line{at}"]))
        assert left == pytest.approx(place(row["low"]), abs=1)
        assert right == pytest.approx(place(row["high"]), abs=1)
    one = piece.compute(piece.start() | dict(seeds=1))
    assert one["clear"] == "clear of zero: none" and one["line0"] == "", "one seed, no interval"


@pytest.mark.parametrize("M, N, read", [(4, 4, 10), (8, 4, 6), (4, 8, 6), (2, 2, 36)])
def test_the_tiles_are_those_up_to_the_diagonal_and_their_sum_is_the_softmax(M, N, read):
    """After its last tile a row's output is that of all its keys; uncorrected, some differ."""
    compute = tiles().compute
    assert f"tile {read} of {read};" in compute(dict(step=99, M=M, N=N))["count"]
    differ = 0
    for step in range(1, read + 1):
        said = compute(dict(step=step, M=M, N=N))
        m, total, output = map(float, NUMBER.findall(said["state"])[1:])
        whole, forgetful = map(float, NUMBER.findall(said["truth"]))
        last = step == read or "keys 1 to" in compute(dict(step=step + 1, M=M, N=N))["where"]
        assert not last or output == whole, step
        differ += last and forgetful != whole
    assert differ >= 1


def test_a_gathered_tile_names_each_row_once():
    said = tiles(gather=True).compute(dict(step=1, M=4, N=4))
    assert said["rows"] == "4 keys name 3 rows: the, cat, saw"
    said = tiles(gather=True).compute(dict(step=99, M=8, N=8))
    assert said["loads"].count("M") == 8


def test_the_heads_are_the_models_own():
    """A row of the piece against the analysis, for one layer and head of each model."""
    piece, sentence = toy_heads(), "def main(self): return self.name"
    ids = torch.tensor([tokenizer().encode(sentence)])
    values = dict(layer=1, head=0, word=ids.shape[1] - 1)
    said = piece.compute(values)
    for at, name in enumerate(("standard", "resformer")):
        model = build(name, "smoke", seed=1).eval()
        tape = analysis.observe(model, ids)
        row = analysis.attention_map(model, tape, 1)[0, 0, -1]
        share, word = NUMBER.findall(said[f"said{at}"])
        assert float(share) == pytest.approx(row.max().item(), abs=0.006)
        assert int(word) == row.argmax().item() + 1
        v = tape.values[1].dense()[0, :, 0]
        alike = torch.cosine_similarity(v[-1], v[0], dim=0).item()
        drawn = float(NUMBER.findall(said[f"alike{at}_0"])[-1])
        assert drawn == pytest.approx(30 * alike, abs=0.05)
    assert "h0.00" in piece.compute(values | dict(word=0))["weight0_1"], "no word sees the next"


MOVE = """<script>
function move(piece, indices) {
  for (const [name, at] of Object.entries(indices)) {
    const control = document.querySelector(`#movable-${piece} [data-control="${name}"]`);
    control.value = String(at);
    control.dispatchEvent(new Event("input", {bubbles: true}));
  }
}
</script>"""


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    place = tmp_path_factory.mktemp("movable") / "all.html"
    pieces = "".join(make()._repr_html_() for make in PIECES.values())
    place.write_text(
        f"<!doctype html><html data-ready='yes'><meta charset=utf-8>{VIEW}{pieces}{MOVE}</html>",
        encoding="utf-8",
    )
    page = browser.page(width=390, height=2400, phone=True)
    page.open(place)
    return page


def shown(page, name):
    """{key: what the page shows} of one piece."""
    return page.run(f"""Object.fromEntries(
        [...document.querySelectorAll("#movable-{name} [data-key]")].map((e) => [
            e.dataset.key,
            e.dataset.attribute ? e.getAttribute(e.dataset.attribute) : e.textContent]))""")


@pytest.mark.site
@pytest.mark.parametrize("name", PIECES)
def test_a_moved_piece_shows_what_python_computes(name, page):
    piece = PIECES[name]()
    for indices in settings(piece):
        page.run(f"move({json.dumps(name)}, {json.dumps(indices)})")
        wanted = piece.compute(values_at(piece, indices))
        found = shown(page, name)
        assert found.keys() == wanted.keys()
        wrong = {
            key: (str(wanted[key]), found[key])
            for key in wanted
            if not same(str(wanted[key]), found[key])
        }
        assert not wrong, (indices, wrong)
    assert page.errors == [] and page.strangers() == []


LIGHTNESS = """(() => {
    const grey = (style) => {
        const [r, g, b] = style.match(/\\d+/g).map(Number);
        return (r + g + b) / 3;
    };
    const fill = (what) => grey(getComputedStyle(document.querySelector(what)).fill);
    return ["paper", "content", "routing"].map((kind) => fill("#movable-cache ." + kind))
        .concat(fill("#movable-cache text"));
})()"""


@pytest.mark.site
@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize(
    "theme", ["", "data-theme=dark", "data-theme=light", "data-jp-theme-light=false"]
)
def test_a_piece_is_as_dark_as_its_page(page, system, theme):
    """The site and JupyterLab decide; a page without a theme is as the system asks."""
    scheme = [dict(name="prefers-color-scheme", value=system)]
    page.call("Emulation.setEmulatedMedia", features=scheme)
    name, _, value = theme.partition("=")
    place = "documentElement" if name == "data-theme" else "body"
    if theme:
        page.run(f"document.{place}.setAttribute('{name}', '{value}')")
    *grounds, letters = page.run(LIGHTNESS)
    if theme:
        page.run(f"document.{place}.removeAttribute('{name}')")
    page.call("Emulation.setEmulatedMedia", features=[])
    dark = value in ("dark", "false") if theme else system == "dark"
    assert all((ground < 100) == dark for ground in grounds), grounds
    assert letters > 200 if dark else letters < 60, "letters stand out from every ground"


@pytest.mark.site
def test_a_slider_moves_by_key_and_says_its_value(page):
    page.run("move('rope', {distance: 3, base: 2})")
    page.run("document.querySelector('#movable-rope [data-control=distance]').focus()")
    before = shown(page, "rope")["score"]
    for _ in range(3):
        page.press("ArrowRight")
    control = "document.querySelector('#movable-rope [data-control=distance]')"
    assert page.run(f"{control}.getAttribute('aria-valuetext')").endswith(" tokens")
    assert shown(page, "rope")["score"] != before


@pytest.mark.site
def test_a_list_to_choose_from_says_its_value_by_itself(page):
    """aria-valuetext belongs to sliders; on a list it is an error of accessibility."""
    assert page.run("document.querySelectorAll('select[data-control]').length") > 0
    assert page.run("document.querySelectorAll('select[aria-valuetext]').length") == 0


@pytest.mark.site
def test_a_button_runs_to_the_end_and_steps_where_less_motion_is_wanted(page):
    step = "Number(document.querySelector('#movable-tiles [data-control=step]').value)"
    press = "document.querySelector('#movable-tiles [data-run]').click()"
    page.run("move('tiles', {step: 7, M: 1, N: 1})")
    page.call("Emulation.setEmulatedMedia", features=[dict(name=REDUCED, value="reduce")])
    page.run(press)
    page.run("new Promise((done) => setTimeout(done, 900))")
    assert page.run(step) == 8, "one step a press"
    page.call("Emulation.setEmulatedMedia", features=[])
    page.run(press)
    page.wait(
        lambda: page.run("document.querySelector('#movable-tiles [data-run]').innerText") == "Run"
    )
    assert page.run(step) == 10 and shown(page, "tiles")["count"].startswith("tile 10 of 10")
    page.run(press)
    page.run(press)
    assert page.run(step) == 0, "and starts again, and stops when asked"


@pytest.mark.site
def test_nothing_leaves_a_phone_and_a_finger_finds_every_control(page):
    assert page.run("document.documentElement.scrollWidth") <= 390
    small = page.run("""[...document.querySelectorAll(".movable label")]
        .filter((e) => e.getBoundingClientRect().height < 44).length""")
    assert small == 0


def at_width(page, width):
    """The page in a window of this width, and [scrolls sideways, how] of every picture."""
    screen = dict(width=width, height=2400, deviceScaleFactor=1, mobile=width < 600)
    page.call("Emulation.setDeviceMetricsOverride", **screen)
    return page.run("""[...document.querySelectorAll(".movable .picture")]
        .map((e) => [e.scrollWidth > e.clientWidth, getComputedStyle(e).overflowX])""")


CUT = """(name) => {
    const svg = document.querySelector(`#movable-${name} svg`), all = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text, path, rect:not(.paper), circle")]
        .map((e) => [e, e.getBoundingClientRect()])
        .filter(([e, at]) => at.width || at.height)
        .filter(([e, at]) => at.left < all.left || at.right > all.right ||
                             at.top < all.top || at.bottom > all.bottom)
        .map(([e]) => e.textContent || e.dataset.key || e.outerHTML);
}"""
MEET = """(name) => {
    const words = [...document.querySelectorAll(`#movable-${name} svg text`)]
        .map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, at]) => at.width);
    const meet = (a, b) => a.left < b.right && b.left < a.right &&
        a.top + 2 < b.bottom - 2 && b.top + 2 < a.bottom - 2;
    return words.flatMap(([told, a], i) => words.slice(i + 1)
        .filter(([, b]) => meet(a, b)).map(([other]) => `${told} on ${other}`));
}"""


@pytest.mark.site
@pytest.mark.parametrize("width", [360, 390, 600, 820, 1440])
def test_a_picture_has_room_where_it_stands_and_no_letter_is_small(page, width):
    """What stands side by side on a desk stands one below the other on a phone."""
    moved = at_width(page, width)
    try:
        assert moved == [[False, "auto"]] * len(PIECES), "nothing to move sideways"
        sizes = page.run("""[...document.querySelectorAll(".movable svg text")]
            .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)""")
        assert min(sizes) >= 11.99
        for name, make in PIECES.items():
            for indices in settings(make(), most=4):
                page.run(f"move({json.dumps(name)}, {json.dumps(indices)})")
                for fault in (CUT, MEET):
                    assert page.run(f"({fault})({json.dumps(name)})") == [], (name, indices)
    finally:
        at_width(page, 390)


@pytest.mark.site
def test_letters_of_a_picture_are_as_large_on_a_phone_as_on_a_desk(page):
    """Whoever sees a part of it, on a watch, moves it sideways."""
    letters = """[...document.querySelectorAll(".movable svg text")]
        .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"""
    moved, small = at_width(page, 280), page.run(letters)
    at_width(page, 390)
    assert all(one == [True, "auto"] for one in moved)
    assert small == page.run(letters)


@pytest.mark.site
def test_no_two_elements_share_an_id_and_every_reference_finds_one(page):
    ids = page.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    named = page.run("""[...document.querySelectorAll("[marker-end]")]
        .map((e) => [e.closest(".movable").id, e.getAttribute("marker-end").slice(5, -1)])""")
    assert {piece for piece, _ in named} >= {"movable-rope", "movable-mix"}
    assert all(tip in ids and tip.startswith(piece[8:]) for piece, tip in named)


def test_the_rules_of_a_piece_reach_nothing_outside_of_it():
    """Each selector of each rule, those for the dark and those that share a line, too."""
    from course.drawings.canvas import STYLE
    from course.movable.piece import scoped

    told = re.findall(r"([^{}]+)\{", scoped(STYLE))
    rules = [one.strip() for rule in told if "@" not in rule for one in rule.split(",")]
    # the page's theme may stand before the piece, and nothing else
    theme = r'\[data-[\w-]+="\w+"\] |:root:not\(\[[\w-]+\]\) body:not\(\[[\w-]+\]\) '
    inside = re.compile(rf"({theme})?\.movable ").match
    assert [one for one in rules if not inside(one)] == []
    assert not inside(".paper") and not inside("body .movable .paper")
    # none is lost: the light ones once, the dark ones for two kinds of page and for the system
    light, dark = (re.findall(r"([^{}]+)\{", part) for part in STYLE.partition("@media")[::2])
    light, dark = (
        sum(len(rule.split(",")) for rule in part if "prefers-color-scheme" not in rule)
        for part in (light, dark)
    )
    assert dark and len(rules) == light + 3 * dark
