"""Do the drawings say what the plans are? Read off the plan, with alt text, no words cut off."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from course.drawings import addresses, block, ideas, machine, systems
from course.drawings.canvas import Canvas, Drawing

SYSTEMS = ("standard", "resformer", "svformer", "row9", "bov", "vplus", "dva", "bypass")
DRAWINGS = dict(
    systems=lambda: systems.systems(*SYSTEMS, columns=4),
    cache=lambda: machine.cache_grid("standard", "gqa", "svformer", "bov"),
    tiles=lambda: machine.tile_map(16, 4, 4),
    window=lambda: machine.tile_map(16, 4, 4, window=5),
    rope=ideas.rope_clocks,
    muon=ideas.muon_circle,
    block=block.one_layer,
    memory=machine.memory_levels,
    pipeline=lambda: addresses.pipeline(2, 3, 5),
    split=addresses.split_keys,
    modded=ideas.modded_layers,
    look_up=ideas.look_up,
    cross=ideas.cross_layer,
)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_whole_svg_with_alt_text_light_and_dark_and_the_same_each_time(name):
    drawing = DRAWINGS[name]()
    root = ElementTree.fromstring(drawing.svg)
    assert root.find(f"{SVG}desc").text == drawing.alt
    assert len(drawing.alt) > 80 and drawing.alt.endswith(".")
    assert "prefers-color-scheme: dark" in drawing.svg
    assert "http" not in drawing.svg.replace("http://www.w3.org/2000/svg", ""), "loads nothing"
    assert f'alt="{drawing.alt[:20]}' in drawing._repr_html_()
    assert DRAWINGS[name]().svg == drawing.svg
    assert repr(drawing) == f"[drawing] {drawing.alt}"


def test_drawings_of_one_page_share_no_id_and_every_reference_finds_its_own():
    """Two kinds of drawings, and two drawings of one kind: tips are named after their drawing."""
    drawings = [make() for make in (*DRAWINGS.values(), lambda: systems.systems("gqa"))]
    every, referred = [], 0
    for drawing in drawings:
        ids = re.findall(r'\bid="([^"]+)"', drawing.svg)
        found = set(re.findall(r"url\(#([^)]+)\)", drawing.svg))
        assert found <= set(ids), "a drawing refers to nothing but what is in it"
        assert re.findall(r'\bid="([^"]+)"', drawing.for_slide().svg) == ids
        every, referred = every + ids, referred + len(found)
    assert len(every) == len(set(every)) and referred > len(drawings) / 2


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_word_leaves_the_page(name):
    """By the widths of a wide sans serif, two thirds of the size a letter."""
    root = ElementTree.fromstring(DRAWINGS[name]().svg)
    width = float(root.get("width"))

    def walk(node, shift):
        move = re.match(r"translate\(([\d.]+)", node.get("transform", ""))
        shift += float(move[1]) if move else 0
        if node.tag == f"{SVG}text":
            size, x = float(node.get("font-size")), float(node.get("x")) + shift
            long = 0.62 * size * len(node.text or "")
            start = x - dict(start=0, middle=long / 2, end=long)[node.get("text-anchor")]
            assert -4 <= start and start + long <= width + 4, node.text
        for child in node:
            walk(child, shift)

    walk(root, 0.0)


WIRED = dict(
    standard=["own"],
    resformer=["own", "layer"],
    svformer=["layer"],
    row9=["x0"],
    bov=["table"],
    vplus=["own", "table"],
    dva=["own"],
    bypass=["own", "input"],
)


@pytest.mark.parametrize("plan", SYSTEMS)
def test_the_wiring_is_read_off_the_plan(plan):
    found = systems.wiring(plan)
    assert [kind for kind, _ in found["leaves"]] == WIRED[plan]
    assert found["dynamic"] == (plan == "dva") and found["gain"] == (plan in ("row9", "bov"))
    words = systems.panel_in_words(plan, found)
    assert all(systems.COMES_FROM[kind] in words for kind in WIRED[plan])


@pytest.mark.parametrize(
    "plan, kind, mark, said",
    [
        ("upstream-2", "stream", None, "the hidden state that enters an earlier layer"),
        ("keys-turned", "key", "R⁻¹", "turned back by the place of the query"),
        ("xsa", "own", "−", "loses its share along the query's own value"),
    ],
)
def test_the_moves_of_the_frontier_are_read_off_the_plan(plan, kind, mark, said):
    canvas, found = systems.panel(plan)
    assert [leaf for leaf, _ in found["leaves"]] == [kind]
    assert said in systems.panel_in_words(plan, found)
    assert (
        mark is None
        or f">{mark}<" in canvas.drawing("A layer of attention as boxes and arrows.").svg
    )
    other = systems.panel_in_words("standard", systems.wiring("standard"))
    assert said not in other
    assert systems.wiring("upstream-11")["leaves"] == [("own", "")], "the last layer reads its own"


def test_a_source_without_a_drawing_says_where_to_add_one():
    with pytest.raises(ValueError, match="Slots has no drawing: add it to leaves"):
        systems.wiring("move")


def test_a_layer_beside_its_stream_is_read_off_the_plan():
    drawn = block.one_layer("standard", "d12")
    assert drawn.alt.startswith("One of 12 layers") and "from 768 features to 3072" in drawn.alt
    assert drawn.svg.count('class="value"') == 2, "thick: the value's way, and only that"
    with pytest.raises(ValueError, match="wanted a layer with values of its own stream .* got bov"):
        block.one_layer("bov")


def test_names_of_keys_and_values_stand_above_their_columns():
    """Fewer heads, narrower squares: the letters stand over their middle, clear of the name."""
    for plan in ("standard", "gqa", "svformer"):
        canvas, _ = machine.cache_column(plan, "tiny")
        drawing = canvas.drawing("A grid of squares, a column for keys and one for values.")
        root = ElementTree.fromstring(drawing.svg)
        at = {word.text: word for word in root.iter(f"{SVG}text")}
        squares = list(root.iter(f"{SVG}rect"))[1:3]
        for letter, square in zip("KV", squares, strict=True):
            middle = float(square.get("x")) + float(square.get("width")) / 2
            assert float(at[letter].get("x")) == middle, plan
        assert float(at["K"].get("y")) - float(at[plan].get("y")) > 19, "as large as on a slide"


def test_the_cache_is_drawn_and_weighed_from_what_is_kept():
    alt = machine.cache_grid("standard", "gqa", "svformer", "bov").alt
    assert "standard 3,072 bytes, gqa 1,536 bytes, svformer 1,664 bytes, bov 2,564 bytes" in alt
    # 12 layers of 64 at two bytes; svformer keeps the values of one layer, bov of eight, and the id
    assert (
        (12 + 12) * 64 * 2 == 3072 and (12 + 1) * 64 * 2 == 1664 and (12 + 8) * 64 * 2 + 4 == 2564
    )


TILED = [(16, 4, 4, 0), (16, 4, 4, 5), (13, 4, 3, 0), (13, 5, 2, 4)]


@pytest.mark.parametrize("length, rows, columns, window", TILED)
def test_tiles_are_what_the_mask_says(length, rows, columns, window):
    seen = lambda t, s: s <= t and (not window or t - s <= window)  # noqa: E731
    for (row, column), kind in machine.tile_kinds(length, rows, columns, window).items():
        inside = [
            seen(t, s)
            for t in range(row * rows, min(length, (row + 1) * rows))
            for s in range(column * columns, min(length, (column + 1) * columns))
        ]
        wanted = "whole" if all(inside) else "masked" if any(inside) else "skipped"
        assert kind == wanted, (row, column)


def test_alt_text_that_says_nothing_is_refused():
    with pytest.raises(ValueError, match="wanted an alt text of at least 40 characters, got 9"):
        Drawing("<svg/>", "a drawing")
    assert Canvas(10, 10).drawing("A page of ten by ten with nothing at all drawn on it.").svg


@pytest.mark.parametrize("name", DRAWINGS)
def test_on_a_slide_a_drawing_fits_and_no_word_is_below_20_pixels(name):
    drawing = DRAWINGS[name]()
    small, slide = (ElementTree.fromstring(one.svg) for one in (drawing, drawing.for_slide()))
    shown = [float(slide.get(side)) for side in ("width", "height")]
    drawn = [float(slide.get("viewBox").split()[at]) for at in (2, 3)]
    assert shown[0] <= 660 and shown[1] <= 500 and (shown[0] == 660 or shown[1] == 500)
    assert slide.get("viewBox") == small.get("viewBox") and drawing.for_slide().alt == drawing.alt
    words = list(slide.iter(f"{SVG}text"))
    letters = [float(word.get("font-size")) * shown[0] / drawn[0] for word in words]
    assert min(letters) > 19.9 and len(words) == len(list(small.iter(f"{SVG}text")))


def test_the_words_between_ellipse_and_circle_touch_neither():
    """By the width of DejaVu Sans, 0.55 of its size a letter on average."""
    svg = ideas.muon_circle().for_slide(640).svg
    ellipse = 105 + 68 * 0.9  # its right end, turned by half a radian
    circle = float(re.search(r'<circle cx="(\S+)"', svg)[1]) - 58
    found = re.findall(r'<text x="(\S+)" y="\S+" font-size="(\S+)"[^>]*>(same|equal)(.*?)<', svg)
    assert len(found) == 2
    for x, size, *words in found:
        half = 0.55 * float(size) * len("".join(words)) / 2
        assert ellipse < float(x) - half and float(x) + half < circle, words


@pytest.mark.parametrize("splits", [3, 6])
def test_words_of_the_split_stay_in_their_boxes(splits):
    """On a page six programs, on a slide three, since no letter there is below 20 pixels."""
    drawing = addresses.split_keys(splits)
    svg = drawing.svg if splits == 6 else drawing.for_slide().svg
    width = float(re.search(r'viewBox="-6 -6 (\S+)', svg)[1]) - 12
    boxes = [
        (float(x), float(wide))
        for x, wide in re.findall(r'<rect x="(\S+)" y="\S+" width="(\S+)"', svg)
    ]
    words = re.findall(
        r'<text x="(\S+)" y="\S+" font-size="(\S+)" text-anchor="(\w+)"[^>]*>(.*?)<', svg
    )
    assert len(words) == 2 * splits + 3
    for x, size, anchor, told in words:
        long, x = 0.6 * float(size) * len(told), float(x)  # DejaVu Sans, a letter on average
        if anchor == "middle":
            room = max(wide for left, wide in boxes if abs(left + wide / 2 - x) < 1)
            assert long <= room, told
        else:
            assert x + long <= width + 6, told


@pytest.mark.parametrize("plan", systems.NAMES)
def test_no_box_lies_on_the_lines_to_queries_and_keys(plan):
    canvas, _ = systems.panel(plan)
    whole = "\n".join(canvas.parts)
    boxes = re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)" rx="4"', whole)
    for x, y, width, height in (map(float, box) for box in boxes):
        between = y < 218 and y + height > 164  # from the stream's branch up to q and k
        lines = (84,) if plan == "mla" else (84, 110)  # its keys come from the latent
        hides = [at for at in lines if between and x < at < x + width]
        assert hides == [], f"a box at {x:g}, {y:g} hides a line"
