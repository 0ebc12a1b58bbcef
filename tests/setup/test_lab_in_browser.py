"""What does a learner see who opens JupyterLab? In a real browser: 00 to its end, and an answer.

The notebooks are copies: JupyterLab saves what it shows.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course import work
from tests.setup import own_lab
from tests.setup.conftest import git

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "for-this-test-only"
NAMES = ("00_start_here", "01_attention")
OWN = ("CONFIG", "DATA", "RUNTIME", "workspaces", "settings", "ipython", "log")  # JupyterLab's here

pytestmark = pytest.mark.site

LANDING = "work/00_start_here.ipynb"

# what the notebook in front shows: (cell id, kind of output, its text), and helpers
SCRIPT = """
window.book = () => window.jupyterapp?.shell.currentWidget;
window.cells = () => [...book().content.widgets];
window.cell = (id) => cells().findIndex((cell) => cell.model.id === id);
window.told = () => cells().filter((cell) => cell.model.type === "code").flatMap((cell) =>
  cell.model.sharedModel.outputs.map((output) => [
    cell.model.id,
    output.output_type === "stream" ? output.name : output.output_type,
    [].concat(output.text ?? output.evalue ?? output.data?.["text/html"] ?? "").join(""),
  ]));
window.source = (id) => cells()[cell(id)].model.sharedModel.source;
window.counted = (id) => cells()[cell(id)].model.sharedModel.execution_count;
window.run = (which) => {
  window.ran = false;
  jupyterapp.commands.execute("notebook:run-" + which).then(() => { window.ran = true; });
};
window.edit = (id) => {
  const notebook = book().content;
  notebook.activeCellIndex = cell(id);
  notebook.mode = "edit";
  const editor = notebook.activeCell.editor;
  const last = editor.lineCount - 1;
  const end = { line: last, column: editor.getLine(last).length };
  editor.setSelection({ start: { line: 0, column: 0 }, end });
  editor.focus();
};
"""


def smoke(name, folder):
    """A notebook with the smallest models."""
    source = (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    small = source.replace('profile: str = \\"laptop\\"', 'profile: str = \\"smoke\\"')
    assert small != source
    (folder / f"{name}.ipynb").write_text(small, encoding="utf-8")


def clone(home):
    """A repository with two notebooks, and a learner's copies of them."""
    (home / "notebooks").mkdir()
    for name in NAMES:
        smoke(name, home / "notebooks")
    shutil.copytree(ROOT / "slides" / "figures", home / "slides" / "figures")  # which 00 shows
    keys = (ROOT / ".gitignore").read_text(encoding="utf-8") + "".join(f"{one}\n" for one in OWN)
    (home / ".gitignore").write_text(keys, encoding="utf-8")
    git(home, "init", "-q")
    git(home, "add", ".")
    git(home, "commit", "-q", "-m", "the course")
    work.update(home, home / "work")
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return clone(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def address(home):
    """A JupyterLab as `make lab` starts it, on copies of a clone, with folders of its own."""
    port = own_lab.free_port()
    folders = own_lab.folders(home) | {
        "JUPYTER_CONFIG_PATH": str(ROOT / "notebooks" / "lab"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": str(ROOT),
    }
    options = f"""--no-browser --allow-root --ip=127.0.0.1 --port={port}
        --ServerApp.port_retries=0 --ServerApp.root_dir={home} --IdentityProvider.token={TOKEN}
        --LabApp.expose_app_in_browser=True
        --LabApp.default_url=/lab/tree/{LANDING}""".split()
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            cwd=home,
            env=os.environ | folders,
            stdout=log,
            stderr=log,
        )
    try:
        end = time.monotonic() + 60
        while not own_lab.listens(port):
            assert server.poll() is None, (home / "log").read_text()
            assert time.monotonic() < end, "JupyterLab did not start in 60 s"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def opened(page, url, name):
    """The page when this notebook is in front, drawn, and its kernel waits."""
    before = page.loads
    page.call("Page.navigate", url=f"{url}?token={TOKEN}")
    page.wait(lambda: page.loads > before)
    page.run(SCRIPT)
    page.wait(lambda: page.run(f"book()?.context?.path === 'work/{name}.ipynb'"))
    page.run("book().context.ready")
    page.wait(lambda: page.run("book().sessionContext.session?.kernel?.status === 'idle'"))
    page.wait(lambda: page.run("!!book().node.querySelector('.jp-RenderedMarkdown h1')"))
    return page


@pytest.fixture(scope="module")
def page(browser, address):
    return opened(browser.page(1440, 900), address + "/", "00_start_here")


def told_by(page, which):
    """What all outputs say when these cells have run: all-cells, all-above."""
    page.run(f"run('{which}')")
    page.wait(lambda: page.run("ran"), f"the run of {which}", 240)
    return page.run("told()")


def test_it_lands_on_notebook_00_with_its_contents_and_without_a_question(page):
    assert page.run("location.pathname") == f"/lab/tree/{LANDING}"
    assert page.run("document.querySelector('.jp-TableOfContents').getClientRects()[0].width") > 150
    contents = page.run("document.querySelector('.jp-TableOfContents').textContent")
    assert "00 · Start here" in contents and "Twelve symbols" in contents
    toasts = page.run("[...document.querySelectorAll('.Toastify__toast')].map(e => e.textContent)")
    assert toasts == []


def test_no_tab_opens_unsaved(page):
    """The kernel has answered, and what JupyterLab then writes of it stands in the copy already."""
    page.run("book().sessionContext.session.kernel.info.then(() => true)")
    page.run("new Promise(done => setTimeout(done, 500))")
    assert page.run("book().context.model.dirty") is False


def test_on_a_tablet_nothing_but_code_moves_sideways(page):
    """Its first line may be long, and that of a hidden cell is no code."""
    tablet = dict(width=820, height=1180, deviceScaleFactor=1, mobile=False)
    page.call("Emulation.setDeviceMetricsOverride", **tablet)
    moves = """[...book().node.querySelectorAll("*")].filter((e) => e.clientWidth > 30
        && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible"
        && !e.closest(".jp-Placeholder")).map((e) => e.classList[0])"""
    page.wait(lambda: page.run("book().node.clientWidth < 600"), "the narrow window")
    assert page.run("!!document.querySelector('.jp-Placeholder')")
    assert set(page.run(moves)) <= {"cm-scroller"}
    page.call("Emulation.setDeviceMetricsOverride", **dict(tablet, width=1440, height=900))
    page.wait(lambda: page.run("book().node.clientWidth > 600"), "the wide window")


def test_predict_is_the_loudest_box_before_anything_has_run(page):
    quiet, loud = page.run("""["p", ".course-predict"].map((what) => {
        const e = document.querySelector(".jp-RenderedMarkdown " + what);
        const style = getComputedStyle(e);
        return [style.backgroundColor, style.borderLeftWidth];
    })""")
    assert quiet == ["rgba(0, 0, 0, 0)", "0px"]
    assert loud[0] != quiet[0] and loud[1] == "8px"


def test_code_that_draws_and_what_goes_deeper_open_closed(page):
    hidden = "(id) => cells()[cell(id)].isHidden"
    assert page.run(f"['ready', 'doctor', 'profile-chosen', 'text'].map({hidden})") == [
        False,
        True,
        True,
        False,
    ], "a section that goes deeper shows its heading alone"
    folded = "(id) => cells()[cell(id)].inputHidden"
    assert page.run(f"['picture-sweep', 'sweep'].map({folded})") == [True, False]


def test_00_runs_to_its_end_without_an_error_and_without_pink(page):
    told = told_by(page, "all-cells")
    assert [output for output in told if output[1] in ("error", "stderr")] == []
    assert any(id == "checks" and "checks hold" in text for id, _, text in told), "and it says so"
    faults = [error for error in page.errors if "favicon" not in error]
    away = [url for url in page.strangers() if "//127.0.0.1:" not in url]
    assert faults == [] and away == []


def test_what_ran_and_was_saved_leaves_git_clean(page, home):
    page.run("jupyterapp.commands.execute('docmanager:save')")
    saved = home / "work" / "00_start_here.ipynb"
    page.wait(lambda: '"output_type"' in saved.read_text(encoding="utf-8"), "the saved copy")
    assert git(home, "status", "--porcelain") == ""
    assert work.update(home, home / "work") == [], "to run is not to change"


SLIDER = ".movable input[type=range]"
PIECE = """from course.movable import PIECES
PIECES["rope"]()"""


def test_a_movable_piece_obeys_arrows_home_and_end_as_on_the_site(page):
    """By a click on it and by Tab: the notebook keeps its place, and no key is lost to it."""
    page.run("book().content.activeCellIndex = cell('map')")
    page.run("jupyterapp.commands.execute('notebook:insert-cell-below')")
    page.run(f"book().content.activeCell.model.sharedModel.setSource({json.dumps(PIECE)})")
    page.run("jupyterapp.commands.execute('notebook:run-cell')")
    page.wait(lambda: page.run(f"!!document.querySelector({json.dumps(SLIDER)})"), "the piece")
    page.run("jupyterapp.commands.execute('notebook:enter-command-mode')")
    at = page.run("book().content.activeCellIndex")
    value = lambda: int(page.run(f"document.querySelector({json.dumps(SLIDER)}).value"))
    page.run(f"document.querySelector({json.dumps(SLIDER)}).scrollIntoView({{block: 'center'}})")
    for how in ("click", "focus"):
        if how == "click":
            page.touch(SLIDER)
        else:
            page.run(f"document.querySelector({json.dumps(SLIDER)}).focus()")
        found = []
        for key in ("Home", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "End"):
            page.press(key)
            found.append(value())
        assert found == [0, 1, 2, 1, 0, 256], how
    assert page.run("book().content.activeCellIndex") == at, "the notebook kept its place"
    page.run("jupyterapp.commands.execute('docmanager:save')")  # or the page asks before it goes


def test_the_letters_of_a_figure_are_those_of_the_text(page):
    page.run("book().content.scrollToItem(cell('map'))")
    image = '.jp-OutputArea img[src^="data:image/png"]'
    page.wait(lambda: page.run(f"document.querySelector({json.dumps(image)})?.naturalWidth > 0"))
    shown, drawn, letter = page.run(f"""(() => {{
        const e = document.querySelector({json.dumps(image)});
        const size = parseFloat(getComputedStyle(e.closest(".jp-OutputArea-output")).fontSize);
        return [e.getBoundingClientRect().width, e.naturalWidth, size];
    }})()""")
    assert shown / drawn * 22 == pytest.approx(letter, rel=0.03), "11 points at 144 an inch are 22"


# ---- an answer -----------------------------------------------------------------------------------

ANSWER = """def causal_mask(T, S):
    return torch.arange(S) {} torch.arange(T)[:, None] + S - T
"""


@pytest.fixture(scope="module")
def turn(page, address):
    """Notebook 01 with everything run that stands above its first exercise."""
    name = "01_attention"
    opened(page, f"{address}/lab/tree/{Path('work', name)}.ipynb", name)
    page.run("book().content.activeCellIndex = cell('turn-causal-mask')")
    told = told_by(page, "all-above")
    assert [output for output in told if output[1] in ("error", "stderr")] == []
    return page


def answered(page, text):
    """Type into the learner's cell, run it and the one below, and what that one says."""
    page.run("book().content.scrollToItem(cell('turn-causal-mask'))")
    page.wait(lambda: page.run("!!cells()[cell('turn-causal-mask')].editor"))
    page.run("edit('turn-causal-mask')")
    page.type(text)
    before = page.run("counted('turn-causal-mask-check')")
    page.press("Enter", shift=True)
    page.press("Enter", shift=True)
    page.wait(lambda: page.run("counted('turn-causal-mask-check')") != before, "the verdict")
    assert page.run("source('turn-causal-mask')") == text
    told = lambda: [words for id, _, words in page.run("told()") if id == "turn-causal-mask-check"]
    page.wait(told, "its words")  # they come after the count
    return "\n".join(told())


def test_your_turn_is_a_loud_box_too(turn):
    turn.run("book().content.scrollToItem(cell('turn-causal-mask-say'))")
    turn.wait(lambda: turn.run("!!document.querySelector('.course-turn')"))
    words = turn.run("document.querySelector('.course-turn').textContent.trim()")
    assert words.startswith("Your turn · easy")


def test_a_wrong_answer_is_told_why_and_a_right_one_that_it_is_right(turn):
    wrong = answered(turn, ANSWER.format("<"))
    assert "your positions do not see themselves" in wrong and "○</span> not yet" in wrong
    right = answered(turn, ANSWER.format("<="))
    assert "✓</span> right</strong> causal_mask: right" in right and "see themselves" not in right


ABOVE = """(() => {
  const top = (node) => node.getBoundingClientRect().top;
  const card = cells()[cell("turn-causal-mask-check")].node.querySelector("[role=status]");
  return top(book().content.node) - top(card);
})()"""


def test_a_long_card_leaves_its_verdict_in_the_window(turn):
    answered(turn, ANSWER.format("<="))
    turn.run("book().content.scrollToItem(cell('turn-causal-mask'), 'start')")
    assert "your positions" in answered(turn, ANSWER.format("<"))
    assert turn.run(ABOVE) < 0, "what stands below the card moves down, not the card up"


def test_a_library_that_misses_widgets_does_not_apologise_on_pink(turn):
    said = turn.run("""(async () => {
        const said = [], code = "from tqdm.auto import tqdm\\nprint('done')";
        const asked = book().sessionContext.session.kernel.requestExecute({ code });
        asked.onIOPub = (message) => said.push(message.content.name ?? message.header.msg_type);
        await asked.done;
        return said;
    })()""")
    assert "stdout" in said and "stderr" not in said and "error" not in said
