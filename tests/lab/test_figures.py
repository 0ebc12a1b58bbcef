"""Figures that everybody can read, drawn from the plans."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from course import figures, slim
from course.source_map import (
    SOURCES,
    described,
    sources_map,
    tables_in_stream,
    value_matrices,
)
from minimal.variants import PLANS, skeleton


def test_show_keeps_the_alt_text_as_html(monkeypatch, capsys):
    fig, ax = figures.axes("A takeaway")
    figures.show(fig, "Line of nothing over nothing: an empty pair of axes for a test")
    assert "[figure] Line of nothing" in capsys.readouterr().out


def test_a_figure_that_was_shown_is_not_kept(capsys):
    import matplotlib.pyplot as plt

    plt.close("all")
    fig, ax = figures.axes("A takeaway")
    figures.show(fig, "Line of nothing over nothing: an empty pair of axes for a test")
    figures.figure_bytes(figures.axes("Another")[0], "svg")
    assert plt.get_fignums() == []


def test_a_figure_without_real_alt_text_is_refused():
    fig, ax = figures.axes("A takeaway")
    with pytest.raises(ValueError, match="at least 40"):
        figures.show(fig, "a plot")


def test_lines_differ_in_more_than_colour():
    hands = [figures.line_style(i) for i in range(8)]
    assert len({(str(h["linestyle"]), h["marker"]) for h in hands}) == 8


def test_the_map_of_sources_has_a_row_for_every_plan():
    fig = sources_map("nano")
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == list(PLANS)
    letters = [t.get_text() for t in ax.texts]
    assert letters.count("Eγ") == 2 + 2 + 4 + 2 + 2 + 2 + 2, (
        "bov, shared, every, alternate, half, early and gqa, at four layers"
    )


def test_attention_maps_write_every_weight_into_its_cell():
    once, twice = torch.eye(2), torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    fig = figures.attention_maps({"one": once, "two": twice}, "Two maps", ["hot", "tea"])
    texts = [[t.get_text() for t in panel.texts] for panel in fig.axes]
    assert texts == [["1.00", "", "", "1.00"], ["1.00", "", ".25", ".75"]]
    assert [panel.get_title() for panel in fig.axes] == ["one", "two"]
    (alone,) = figures.attention_maps({"one": once}, "One map", ["hot", "tea"]).axes
    assert alone.get_title() == "one" and alone.get_ylabel() == "looking (query)"


def test_the_map_tells_plain_values_from_changed_ones():
    marks = lambda plan: [block.attention for block in skeleton(plan, "tiny").blocks]
    own = lambda plan: [described(layer) for layer in marks(plan)].count((["own"], ""))
    counts = {name: own(name) for name in ("standard", "vplus", "dva", "modded")}
    assert counts == dict(standard=12, vplus=6, dva=0, modded=0)
    assert described(marks("dva")[0]) == (["query"], "q·"), "not the picture of standard attention"


def test_matrices_of_values_are_counted_by_layer():
    found = {plan: value_matrices(plan) for plan in ("standard", "resformer", "svformer", "row9")}
    assert found == dict(standard=12, resformer=12, svformer=1, row9=12)


@pytest.mark.parametrize(
    "plan, side, letter, layers",
    [
        ("ple", "behind", "e", range(12)),
        ("ple-both", "behind", "e", range(12)),
        ("engram", "before", "n", (1, 6)),
        ("engram-both", "behind", "n", (1, 6)),
        ("ple-v", "", "", ()),
        ("standard", "", "", ()),
    ],
)
def test_the_map_shows_where_a_row_joins_the_stream(plan, side, letter, layers):
    joined = tables_in_stream(skeleton(plan, "tiny"))
    found = {at: (where, SOURCES[mark][2]) for at, (where, mark) in joined.items()}
    assert found == {at: (side, letter) for at in layers}
    ax = sources_map("tiny", [plan]).axes[0]
    narrow = [box for box in ax.patches if box.get_width() < 1]
    assert [int(box.get_x()) for box in narrow] == list(layers)
    told = ax.get_legend().get_title().get_text()
    assert ("joins the hidden\nstate" in told) == bool(layers)


def test_the_map_tells_the_sources_of_the_frontier_apart():
    plans = "standard bov ngram ple-v engram-v mla mudd gated neutreno".split()
    looks = [described(skeleton(plan, "tiny").blocks[-1].attention) for plan in plans[:4]]
    looks += [described(skeleton("engram-v", "tiny").blocks[6].attention)]
    looks += [described(skeleton(plan, "tiny").blocks[-1].attention) for plan in plans[5:]]
    letters = [letters for _, letters in looks]
    assert letters == ["", "Eγ", "nγ", "+e", "+n", "c·", "Σ", "⊙", "·"]


def drawn(svg):
    """All that an SVG draws, in order: tag, words, style, and its places to a tenth."""
    told = dict(re.findall(r"\.(s\d+)\{([^}]*)\}", svg))
    found = []
    for e in ElementTree.fromstring(svg).iter():
        tag = e.tag.rpartition("}")[2]
        if tag not in ("path", "text", "use", "rect"):
            continue
        style = e.get("style") or told.get(e.get("class"), "")
        style = [rule.strip() for rule in style.split(";") if "font-family" not in rule]
        turned = "" if "rotate(-0 " in (at := e.get("transform", "")) else at
        places = " ".join(filter(None, [e.get("d", ""), e.get("x", ""), e.get("y", ""), turned]))
        numbers = [round(float(n), 1) for n in re.findall(r"-?\d+(?:\.\d+)?", places)]
        found.append((tag, e.text and e.text.strip(), style, numbers))
    return found


def test_a_slim_file_shows_the_same():
    fig, ax = figures.axes("A takeaway", "x", "turned")
    ax.bar(range(6), [1, 2, 3, 4, 5, 6], color="#f2b48f", edgecolor="#ffffff")
    ax.plot([0, 5], [1, 6], "--", color="#0b5fa5")
    whole = figures.figure_bytes(fig, "svg").decode()
    small = slim.slim(whole)
    assert len(small) < len(whole) / 2 and "Matplotlib" not in small
    assert [one[:3] for one in drawn(small)] == [one[:3] for one in drawn(whole)]
    for ours, theirs in zip(drawn(small), drawn(whole), strict=True):
        assert ours[3] == pytest.approx(theirs[3], abs=0.11)


def test_a_hatch_that_comes_twice_is_drawn_once():
    way = "M 0 0 " + "L 1.23456 2 " * 60
    hatch = f'<path d="{way}" style="fill: none"/>'
    svg = f'<svg xmlns:xlink="x"><defs><style></style>{hatch}{hatch}</defs></svg>'
    small = slim.slim(svg)
    assert small.count("L1.23 2") == 60
    assert small.count('<use xlink:href="#w0" style="fill: none"/>') == 2


def test_importing_the_package_leaves_the_heavy_ones_alone():
    code = (
        "import torch, sys; before = set(sys.modules); "
        "import minimal.train, minimal.generate, minimal.analysis; "
        "import course.figures, minimal.compare.runs; "
        "heavy = ('datasets', 'matplotlib', 'triton', 'transformers'); "
        "print([m for m in heavy if m in sys.modules and m not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def marked(axis):
    """The lines of a panel that are marks, and those that are bars."""
    marks = [line for line in axis.lines if line.get_marker() not in ("None", None, "")]
    return marks, [line for line in axis.lines if line not in marks]


PANELS = {
    "4x64": dict(base=[50, 51, 52.5], bypass=[55, 49, 60]),
    "6x96": dict(base=[70], bypass=[71, 73]),
}


def test_the_figure_shows_every_run_and_every_mean():
    figure = figures.points(PANELS, "More, and less sure", "F1", spread=True)
    for axis, groups in zip(figure.axes, PANELS.values(), strict=True):
        marks, bars = marked(axis)
        drawn = sorted(y for line in marks for y in line.get_ydata())
        assert drawn == sorted(sum(groups.values(), []))
        means = {round(float(line.get_ydata()[0]), 6) for line in bars}
        assert {round(sum(s) / len(s), 6) for s in groups.values()} <= means
        names = [label.get_text() for label in axis.get_xticklabels()]
        assert names == [f"{name}\nn = {len(scores)}" for name, scores in groups.items()]
        shapes = {line.get_marker() for line in marks}
        assert len(shapes) == len(groups), "told apart without colour"


def test_without_panels_it_is_one_panel_with_plain_names_and_a_baseline():
    figure = figures.points(PANELS["4x64"], "More", "F1", baseline=48.0)
    (axis,) = figure.axes
    marks, bars = marked(axis)
    assert sorted(y for line in marks for y in line.get_ydata()) == [49, 50, 51, 52.5, 55, 60]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["base", "bypass"]
    assert 48.0 in [line.get_ydata()[0] for line in bars]


def test_many_runs_of_one_group_stay_between_its_neighbours():
    figure = figures.points(dict(few=[1.0], many=list(range(40))), "Crowded", "score")
    marks, _ = marked(figure.axes[0])
    spots = marks[1].get_xdata()
    assert len(spots) == 40 and 0.7 < min(spots) < max(spots) < 1.3


def test_a_figure_is_shown_so_wide_that_its_letters_are_those_of_the_text():
    """Letters of 11 points are 11/72 inches high: where the image is so many em wide, one em."""
    page = figures.on_page(b"", "png", "Some words of more than forty characters, for a test", 7.0)
    width = float(re.search(r"max-width:min\(100%,([\d.]+)em\)", page)[1])
    assert width * 11 / 72 == pytest.approx(7.0, abs=0.01)
    assert figures.house_style()["font.size"] == 11
    drawing = figures.on_page(b"", "svg+xml", "Some words of more than forty characters, again")
    assert 'style="max-width:100%"' in drawing


def test_a_title_that_is_wider_than_its_figure_takes_two_lines():
    wide = "One older recipe, the novel: to share values by twos costs less than to share keys"
    fig = figures.lines({"a": [1, 2]}, wide, "x", "y")
    fig.canvas.draw()
    assert fig._suptitle.get_window_extent().x1 <= fig.bbox.x1


def test_what_a_filled_mark_means_stands_below_the_label_of_the_axis_not_on_it():
    row = dict(plan="bov", n=3, difference=-0.1, low=-0.2, high=0.0, clear=False)
    label = "a long name of the axis that takes all of the width of the figure, from edge to edge"
    (ax,) = figures.intervals([row], "A takeaway", label).axes
    assert ax.get_xlabel().splitlines() == [label, "filled: clear of zero"] and not ax.texts
    (ax,) = figures.intervals([row | dict(low=None)], "A takeaway", label).axes
    assert ax.get_xlabel() == label, "without an interval nothing is filled"


def test_bands_may_share_one_legend_a_level_line_and_a_scale_of_doublings():
    panels = {name: {way: [[0.5, 1.5]] for way in "ab"} for name in ("one", "two")}
    plain = figures.bands(panels, "", "", "", x=(1, 2)).axes
    assert all(ax.get_legend() and ax.get_xscale() == "linear" for ax in plain)
    how = dict(x=(1024, 4096), logx=True, baseline=1, one_legend=True)
    fig = figures.bands(panels, "", "", "", **how)
    drawn = fig.axes
    assert [ax.get_legend() for ax in drawn] == [None, None]
    (shared,) = fig.legends
    assert [word.get_text() for word in shared.get_texts()] == ["a", "b"]
    assert shared.get_window_extent().y1 <= min(ax.get_window_extent().y0 for ax in drawn)
    for ax, before in zip(drawn, plain):
        assert ax.get_xscale() == "log" and len(ax.lines) == len(before.lines) + 1
        assert list(ax.lines[-1].get_ydata()) == [1, 1]


def test_three_panels_of_bands_keep_their_letters_on_a_page():
    """A page is 859 pixels wide; the smallest letters are 8.5 points."""
    panels = {name: {"a": [[1, 2], [2, 3]]} for name in "abc"}
    assert 859 / figures.bands(panels, "", "", "").get_figwidth() * 8.5 / 72 > 9.5


def test_the_table_of_what_was_compiled_fits_a_page():
    from course import steps
    from slides.lesson import FITS

    table = steps.as_table({"fixed-point masses": dict.fromkeys(steps.FIELDS, 1)})
    assert max(map(len, table.splitlines())) <= FITS


def test_the_map_tells_a_learned_mixture_from_a_fixed_one_and_counts_layers_from_one():
    looks = {
        plan: described(skeleton(plan, "tiny").blocks[-1].attention)[1]
        for plan in ("row10", "row11", "row12", "row13")
    }
    assert looks == dict(row10="+1", row11="+1γ", row12="+x", row13="+xγ")
    ax = sources_map("tiny", ["standard"]).axes[0]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [str(n) for n in range(1, 13)]


def test_panels_of_intervals_share_their_plans_and_their_scale():
    row = lambda plan, d: dict(
        plan=plan, n=3, difference=d, low=d - 1, high=d + 1, clear=abs(d) > 1
    )
    fig = figures.interval_panels(
        dict(one=[row("a", 2.0), row("b", 0.5)], two=[row("b", -3.0)]), "title", "nats"
    )
    left, right = fig.axes
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["b", "a"]
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim()
    marks = lambda ax: [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert marks(left) == [0, 1] and marks(right) == [0], "a plan has one height in all panels"


def test_a_row_that_is_turned_is_ahead_above_zero():
    row = dict(plan="bov", n=3, difference=-0.2, low=-0.3, high=-0.1, clear=True)
    (turned,) = figures.ahead([row])
    assert turned == row | dict(difference=0.2, low=0.1, high=0.3)
    (alone,) = figures.ahead([dict(plan="bov", difference=None, low=None, high=None)])
    assert alone["difference"] is alone["low"] is None


def name_and_end(fig):
    """{name: (height of the name, height of its line's end)}, as shares of the axes."""
    ax = fig.axes[0]
    fig.canvas.draw()
    to_axes = ax.transAxes.inverted()
    heights = {}
    for text in ax.texts:
        middle = text.get_window_extent().y0 / 2 + text.get_window_extent().y1 / 2
        end = ax.transData.transform(text.xy)
        heights[text.get_text()] = to_axes.transform([(0, middle), end])[:, 1]
    return heights


def test_names_stay_at_the_ends_of_their_lines_when_the_axis_moves_later():
    fig = figures.lines({"low": [1.1, 1.2], "high": [3.0, 3.8]}, "Two lines", "x", "y")
    fig.axes[0].axhline(-1)
    for name, (label, end) in name_and_end(fig).items():
        assert abs(label - end) < 0.02, name


def test_names_stand_apart_at_the_ends_of_lines_on_a_logarithmic_axis():
    far = {"a": [1, 2], "b": [1, 20], "c": [1, 2000], "d": [1, 2000]}
    heights = name_and_end(figures.lines(far, "Four lines", "x", "y", logy=True))
    assert all(abs(label - end) < 0.02 for label, end in map(heights.get, "ab"))
    assert all(abs(label - end) < 0.045 for label, end in map(heights.get, "cd"))
    assert 0.04 < abs(heights["d"][0] - heights["c"][0]) < 0.09


def test_names_at_line_ends_stand_apart_near_their_lines_and_below_the_top():
    places = figures.not_touching([0.2, 0.8, 0.81, 0.82, 0.95], 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in zip(places, places[1:]))
    assert places[0] == 0.2 and places[-1] <= 1.0
    assert figures.not_touching([0.1, 0.5], 0.1) == [0.1, 0.5]
