"""How does an equation come onto a page? As MathML, which browsers draw by themselves.

Nothing has to run for it: it is there without JavaScript, and screen readers walk through it. Where
nothing can be drawn, in the excerpts of the search and in descriptions of shared links, it is read
as letters and signs in one line of text.
"""

import functools
import html
import re
import unicodedata
from xml.etree import ElementTree

EQUATION = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+)\$", flags=re.S)
TEX_SIGNS = dict(
    zip(
        "alpha beta gamma delta varepsilon eta theta lambda pi rho sigma tau varphi Delta "
        "ell sum partial nabla infty cdot times odot circ pm in le leq ge geq ne neq approx propto "
        "leftarrow to longrightarrow Rightarrow Longrightarrow top dots ldots "
        "lVert rVert lvert rvert lceil rceil lfloor rfloor bmod".split(),
        "α β γ δ ε η θ λ π ρ σ τ φ Δ ℓ Σ ∂ ∇ ∞ · × ⊙ ∘ ± ∈ ≤ ≤ ≥ ≥ ≠ ≠ ≈ ∝ ← → → ⇒ ⇒ ⊤ … … "
        "‖ ‖ | | ⌈ ⌉ ⌊ ⌋ mod".split(),
    )
)
ACCENTS = dict(bar="\u0304", hat="\u0302", tilde="\u0303")  # they follow the letter that they mark
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
UNSEEN = re.compile(
    r"\\(?:left|right|bigl?|bigr?|Bigl?|Bigr?|textstyle)(?![a-zA-Z])"
    r"|\\(?:begin|end)\{\w+\}|\\!|(?<!\\)&"
)
SPACE = re.compile(r"\\(?:quad|qquad)(?![a-zA-Z])|\\[,;: ]")
ONE = r"\s*(?:\{([^{}]*)\}|(\\[a-zA-Z]+|\w))"  # what stands in braces, or one sign
LETTERS = re.compile(rf"\\(?:mathrm|mathbf|mathcal|text)(?![a-zA-Z]){ONE}")
WHOLE = re.compile(r"\\[a-zA-Z]+|[\w.']+")  # needs no brackets


def readable(text):
    """A text whose equations, between dollars, have become letters and signs."""
    return EQUATION.sub(lambda found: as_text(found[1] or found[2]), text)


def as_text(tex):
    """One equation: `\\frac{a}{b}` is a/b, `x^2` is x², and `A_{ts}` is A_ts."""
    tex = SPACE.sub(" ", UNSEEN.sub("", re.sub(r",?\s*\\\\", ", ", tex)))
    tex = re.sub(r"\\([%#])", r"\1", re.sub(r"\\[{}]", "", tex))
    tex = re.sub(r"\\([a-zA-Z]+)", lambda found: TEX_SIGNS.get(found[1], found[0]), tex)
    # from the innermost braces outwards
    before = None
    while before != tex:
        before = tex
        tex = LETTERS.sub(lambda found: found[1] or found[2] or "", tex)
        tex = re.sub(rf"\\(bar|hat|tilde){ONE}", marked, tex)
        tex = re.sub(rf"\\t?frac{ONE}{ONE}", divided, tex)
        tex = re.sub(rf"\\sqrt{ONE}", rooted, tex)
        tex = re.sub(rf"([_^]){ONE}", raised_or_lowered, tex)
    tex = " ".join(re.sub(r"[{}\\]", "", tex.replace("^⊤", "⊤")).split())
    return re.sub(r"(?<=[(\[⌈⌊√]) | (?=[)\]⌉⌋,.;:'])", "", tex)


def held(part):
    """In brackets, where it is more than one sign or word."""
    part = part.strip()
    return part if WHOLE.fullmatch(part) else f"({part})"


def marked(found):
    return (found[2] or found[3]) + ACCENTS[found[1]]


def divided(found):
    above, below = found[1] or found[2], found[3] or found[4]
    return f"{held(above)}/{held(below)}"


def rooted(found):
    return f"√{held(found[1] or found[2])}"


def raised_or_lowered(found):
    """Below: A_ts. Above: x², or e^(−x) where there are no such small signs."""
    part = (found[2] or found[3]).strip()
    if found[1] == "_":
        return f"_{held(part)}"
    if re.fullmatch(r"-?\d+", part):
        return part.translate(RAISED)
    return f"^{part}" if len(part) == 1 else f"^({part})"


# ---- drawn ---------------------------------------------------------------------------------------

CODE = "pre|code|script|style|textarea|svg|math"  # what they hold is shown or read as it stands
KEPT = re.compile(rf"(<(?:{CODE})\b.*?</(?:{CODE})>|<!--.*?-->|<[^>]*>)", flags=re.S)
DRAWN = re.compile(r'<math [^>]*?alttext="([^"]*)"[^>]*>.*?</math>', flags=re.S)
NEXT_LINE = re.compile(r"\s*\\\\\s*")
WORD = re.compile(r"\\mathrm\{(\w{2,})\}")  # norm is one name, not four letters side by side
THOUSANDS = re.compile(r"\d{1,3}(?:\{,\}\d{3})+")
FENCES = set("|‖⌈⌉⌊⌋")
PRIMES = {"′", "″"}
NO_ROOM = dict(lspace="0", rspace="0")


def drawn(markup):
    """A page whose equations, between dollars in its text, have become MathML."""
    parts = KEPT.split(markup)  # text, what is kept, text, …
    parts[::2] = [EQUATION.sub(element, text) for text in parts[::2]]
    return "".join(parts)


def undrawn(markup):
    """A page whose drawn equations have become one line of text each."""
    return DRAWN.sub(lambda found: found[1], markup)


def element(found):
    """An equation with lines of its own may be wider than a phone: it moves in a box."""
    made = mathml(html.unescape(found[1] or found[2]).strip(), bool(found[1]))
    return f'<span class="equation">{made}</span>' if found[1] else made


@functools.cache
def mathml(tex, display=False):
    """One equation as MathML Core; as an attribute it carries its line of text."""
    from latex2mathml.converter import convert  # only pages need it

    words = WORD.sub(r"\\operatorname{\1}", tex)
    words = THOUSANDS.sub(lambda found: rf"\text{{{found[0].replace('{,}', ',')}}}", words)
    look = "block" if display else "inline"
    lines = [words] if r"\begin" in words else NEXT_LINE.split(words)
    rows = [tidied(ElementTree.fromstring(convert(one, display=look))) for one in lines]
    inner = rows[0]
    if len(rows) > 1:
        inner = "".join(f"<mtr><mtd>{row}</mtd></mtr>" for row in rows)
        inner = f'<mtable displaystyle="true">{inner}</mtable>'
    read = html.escape(as_text(tex), quote=True)
    return f'<math display="{look}" alttext="{read}">{inner}</math>'


def tidied(root):
    """What latex2mathml makes, as browsers draw it like a book: names, fences, primes, spaces."""
    nodes = list(root.iter())
    for node in nodes:
        node.tag = node.tag.rpartition("}")[2]  # without its namespace
        signed(node)
    for node in nodes:
        node[:] = map(primed, node)
        if node.tag in ("math", "mrow", "msqrt", "mstyle", "mtd"):
            spaced(node)
    return "".join(ElementTree.tostring(node, encoding="unicode") for node in root)


def signed(node):
    """Letters are letters, signs are signs, and a fence is as high as a letter."""
    text = node.text or ""
    if node.tag == "mi" and text in FENCES | set(":;"):
        node.tag = "mo"
    if node.tag == "mo" and len(text) > 1 and text.isalpha() and text != "mod":
        node.tag = "mi"
    if node.tag == "mo" and (text == "/" or text in FENCES and node.get("stretchy") != "true"):
        node.attrib |= dict(NO_ROOM, stretchy="false")
    if node.tag == "mi" and "Α" <= text <= "Ω":
        node.set("mathvariant", "normal")
    if node.get("mathvariant") == "script":
        node.text = unicodedata.lookup(f"MATHEMATICAL SCRIPT CAPITAL {text}")
        del node.attrib["mathvariant"]


def primed(node):
    """A prime is a raised sign already: it stands beside its letter, not above it once more."""
    if node.tag not in ("msup", "msubsup") or node[-1].text not in PRIMES:
        return node
    row = ElementTree.Element("mrow")
    mark = ElementTree.Element("mo", NO_ROOM)
    mark.text = node[-1].text
    row[:] = [node[0], mark]
    if node.tag == "msup":
        return row
    lowered = ElementTree.Element("msub")
    lowered[:] = [row, node[1]]
    return lowered


def spaced(row):
    """log Z, but log(Z); and a minus behind a sign belongs to what follows."""
    made, before = [], None
    for node in row:
        after_sign = before is None or before.tag == "mo" and before.text not in ")]}|‖⌉⌋′″"
        if node.tag == "mo" and node.text in ("−", "+") and after_sign:
            node.set("form", "prefix")
        touches = made and made[-1].tag != "mspace" and node.tag not in ("mo", "mspace")
        if touches and not after_sign and (is_function(before) or is_function(node)):
            made.append(ElementTree.Element("mspace", width="0.167em"))
        made.append(node)
        before = node if node.tag != "mspace" else before
    row[:] = made


def is_function(node):
    """A name of several letters, with its index or power."""
    inner = node[0] if node.tag in ("msub", "msup", "msubsup", "munder") else node
    return inner.tag == "mi" and len(inner.text or "") > 1
