"""Does the search find what a reader means? Fifty questions, each with the page that answers it."""

import json

import pytest

from course import formula
from notebooks.run import ROOT
from slides import search

pytestmark = pytest.mark.site
FIRST = 3  # places that a reader looks at
ASKED = {
    # with a slip
    "sofmax": "notebooks/01_attention",
    "atention mask": "notebooks/01_attention",
    "embeding table": "notebooks/06_value_embeddings",
    "lernable weights": "notebooks/06_value_embeddings",
    "cahce": "notebooks/05_svformer",
    "resfromer": "notebooks/04_resformer",
    "optimzer": "notebooks/02_transformer",
    # other forms of a word, with and without its hyphen
    "kvcache": "notebooks/05_svformer",
    "KV-cache": "notebooks/05_svformer",
    "kv caches": "notebooks/05_svformer",
    "caching keys": "notebooks/05_svformer",
    "feedforward": "homework/hw05_dva",
    "multi-head": "notebooks/01_attention",
    "dynamic values": "notebooks/07_dynamic_value_attention",
    "tokenization": "notebooks/00_start_here",
    "tokeniser": "notebooks/00_start_here",
    # other words for one thing
    "positional encoding": "notebooks/01_attention",
    "backprop": "notebooks/11a_write_a_kernel",
    "apple silicon": "beside",
    "macbook": "beside",
    "windows": "beside",
    "graphics card": "notebooks/11a_write_a_kernel",
    "lookup table": "notebooks/06_value_embeddings",
    "multi-head latent attention": "notebooks/13_what_came_next",
    "grouped query attention": "notebooks/05_svformer",
    "confidence interval": "notebooks/00_start_here",
    "value residual": "notebooks/04_resformer",
    "license": "index",
    "install": "beside",
    "MHA": "notebooks/01_attention",
    "perplexity": "notebooks/00_start_here",
    "speedrun": "evidence/claims",
    "rotary embedding": "notebooks/01_attention",
    "softmax(QK^T/sqrt(d))V": "notebooks/01_attention",
    "p value": "notebooks/12_scale_and_evidence",
    "p-value": "notebooks/12_scale_and_evidence",
    "copyright": "index",
    # whole questions; a question mark is no letter
    "what is a token?": "notebooks/00_start_here",
    "how do I cite this?": "index",
    "where do the values come from?": "notebooks/00_start_here",
    "how many bytes does a cache take?": "notebooks/05_svformer",
    "causal mask": "notebooks/01_attention",
    # titles before the rows of the package, and a name of code before all
    "bits per byte": "notebooks/00_start_here",
    "tokenizer": "notebooks/00_start_here",
    "bank of values": "notebooks/10_bank_of_values",
    "flash attention": "notebooks/11a_write_a_kernel",
    "gather_attention": "api/kernels.gather",
    "optimizer": "notebooks/02_transformer",
    "muon": "notebooks/02_transformer",
    # who teaches
    "gradescope": "homework/instructors",
    "canvas csv": "homework/instructors",
}


def finder(browser, rows):
    """A page that holds the search and an index of these rows, and nothing else."""
    page = browser.page()
    script = (ROOT / "slides" / "theme" / "find.js").read_text(encoding="utf-8")
    page.run(f"{script}; window.find = searchIn({json.dumps(rows)}); true")
    return lambda asked: page.run(
        f"(({{places, whole}}) => ({{whole, at: places.map(row => row[0])}}))"
        f"(window.find({json.dumps(asked)}))"
    )


@pytest.fixture(scope="module")
def find(browser, site):
    text = (site[0] / "assets" / "index.js").read_text(encoding="utf-8")
    rows = text[text.index("[") : text.rindex("]") + 1]
    return finder(browser, json.loads(rows))


def test_of_fifty_questions_each_has_its_page_among_the_first_three(find):
    assert len(ASKED) >= 50
    missed = {}
    for asked, page in ASKED.items():
        first = [at.partition(".html")[0] for at in find(asked)["at"][:FIRST]]
        if page not in first:
            missed[asked] = first
    assert missed == {}


def test_what_no_page_has_finds_nothing(find):
    assert find("zzyzx")["at"] == [] and find("?!")["at"] == [] and find("")["at"] == []


ROWS = [
    ("a.html", "A", "", "A gradient, a table."),
    ("b.html", "B", "", "Of the rest."),
    ("c.html", "C", "", "The KV cache & its bytes."),
    ("d.html", "D", "KV-cache", "Rope."),
    ("e.html", "E", "", "Values that were cached; normalised."),
    ("api/f.html", "f", "cache", "A function of the package."),
]


@pytest.mark.parametrize(
    "asked, pages",
    [
        ("the gradient of the table", ["a"]),
        ("of the", ["b", "api/f"]),
        ("gradient?", ["a"]),
        ("gradeint", ["a"]),  # two letters swapped
        ("KV-cache", ["d", "c"]),  # a hyphen parts words
        ("kvcache", ["d", "c"]),
        ("positional encoding", ["d"]),
        ("bytes amp", ["c"]),  # &amp; is a sign, not a word
        ("caching", ["d", "c", "e", "api/f"]),
        ("normalization", ["e"]),
        ("cach", ["d", "c", "e", "api/f"]),  # still typing
    ],
)
def test_in_a_small_course_every_place_is_found_and_no_other(browser, asked, pages):
    found = finder(browser, ROWS)(asked)
    assert found["at"] == [f"{page}.html" for page in pages]
    assert found["whole"] == (asked != "bytes amp"), "no place has both words, and that is said"


SYMBOLS = [
    search.words(text)
    for text in (
        "<p>A first value, $V_1$.</p>",
        "<p>V₁ beside x<sub>0</sub>.</p>",
        "<p>x₀ W<sub>V</sub></p>",
        r"<p>$x_0 W_V$ with its gain $\gamma$</p>",
        "<p>The lambdas, <code>wv</code> and <code>x0</code></p>",
        r"<p>$\eta\lambda_1$ of $\lambda$</p>",
        "<p>An A of V.</p>",
        "<p>$A_n$</p>",
    )
]


@pytest.mark.parametrize(
    "spellings, places",
    [
        ("V1 V₁ V_1 v1", {0, 1}),
        ("x0 x₀ x_0 X₀", {1, 2, 3, 4}),
        ("wv w_v Wᵥ W_V", {2, 3, 4}),
        ("gamma γ Γ", {3}),
        ("lambda λ Λ lambdas", {4, 5}),
        ("λ₁ λ1 λ_1 lambda_1 lambda1", {5}),
        ("A_n Aₙ", {7}),
    ],
)
def test_a_symbol_is_found_in_every_spelling(browser, spellings, places):
    find = finder(browser, [(str(at), "A page", "", text) for at, text in enumerate(SYMBOLS)])
    first, *others = [find(spelling)["at"] for spelling in spellings.split()]
    assert set(map(int, first)) == places
    assert all(found == first for found in others), "in the same order, too"


def test_a_letter_that_equations_show_is_found_by_its_name(browser):
    letters = {name: sign for name, sign in formula.TEX_SIGNS.items() if "α" <= sign.lower() <= "ω"}
    del letters["sum"]  # its sign is a sigma, too
    find = finder(browser, [(name, "A page", "", sign) for name, sign in letters.items()])
    lost = []
    for name, sign in letters.items():
        by_name, by_sign = find(name.lower().removeprefix("var"))["at"], find(sign)["at"]
        if name not in by_name or by_name != by_sign:
            lost.append(name)
    assert len(letters) > 10 and lost == []
