"""Does the command that photographs the site see every page, and what should not be there?"""

import pytest

from slides import build, screens

pytestmark = pytest.mark.site
PAGE = (
    '<!doctype html><html lang="en" data-ready="yes">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<body style="margin:0"><main>{}</main>'
)
FOLD = '<details><summary>more</summary><p id="inner" style="height: 4000px">x</p></details>'
WIDE = '<svg width="900" height="10"></svg>'


@pytest.fixture
def folder(tmp_path):
    """A site of three pages: one is fine, one is too wide for a tablet, one asks for strangers."""
    site = tmp_path / "site"
    (site / "deep").mkdir(parents=True)
    (site / "index.html").write_text(PAGE.format(f"<p>fine</p>{FOLD}"), encoding="utf-8")
    (site / "deep" / "wide.html").write_text(PAGE.format(WIDE), encoding="utf-8")
    loud = PAGE.format("<script>console.error('no')</script>")
    (site / "loud.html").write_text(loud, encoding="utf-8")
    return site


def test_every_page_is_photographed_at_three_widths_in_both_themes(folder, tmp_path):
    said = []
    faults = screens.take(folder, tmp_path / "shots", say=said.append)
    shots = {path.name for path in (tmp_path / "shots").glob("*.png")}
    opened = {name for name in shots if name.startswith("index")}
    assert {name.partition("-")[0] for name in shots} == {"index", "deep", "loud"}
    assert {name for name in opened if name.endswith("-1.png")} == {
        f"index-{width}-{theme}-1.png" for width in screens.SIZES for theme in ("light", "dark")
    }
    assert len(opened) == 6 + 3, "dark ones are unfolded, and longer than one picture"
    sheet = (tmp_path / "shots" / "index.html").read_text(encoding="utf-8")
    assert all(f'src="{name}"' in sheet for name in shots) and len(said) == 6

    assert [fault for fault in faults if fault.startswith("index")] == []
    assert "loud.html at 390: console: no" in faults
    assert "deep/wide.html at 390: is 900 px wide in a window of 390" in faults
    assert "deep/wide.html at 820: svg wider than the text: " in faults
    assert not any("wide.html at 1440" in fault for fault in faults)


def test_a_figure_may_move_on_a_phone_and_not_beside_a_wide_text(folder, browser):
    moving = f'<figure class="scrolls" style="overflow-x: auto">{WIDE}</figure>'
    (folder / "index.html").write_text(PAGE.format(moving), encoding="utf-8")
    found = {}
    for width in (390, 820):
        page = browser.page(width, 800, phone=width < 600)
        page.open(folder / "index.html")
        found[width] = page.run(f"{screens.WIDE}({width})")
    assert found == {390: [], 820: ["figure wider than the text: "]}


def test_without_a_site_there_is_nothing_to_photograph(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "BUILD", tmp_path / "build")
    with pytest.raises(SystemExit, match="wanted a site under build/site, found none: make site"):
        build.main(["--screenshots", str(tmp_path / "shots")])
