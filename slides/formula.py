"""How is an equation read where none can be drawn? As letters and signs, in one line of text.

The excerpts of the search and the descriptions of shared links are such places.
"""

import re

EQUATION = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+)\$", flags=re.S)
SIGNS = dict(
    zip(
        "alpha beta gamma delta varepsilon eta theta lambda pi rho sigma tau varphi Delta "
        "ell sum partial nabla infty cdot times odot circ pm in le leq ge geq ne neq approx propto "
        "leftarrow to longrightarrow Rightarrow Longrightarrow top dots ldots "
        "lVert rVert lvert rvert lceil rceil lfloor rfloor bmod".split(),
        "α β γ δ ε η θ λ π ρ σ τ φ Δ ℓ Σ ∂ ∇ ∞ · × ⊙ ∘ ± ∈ ≤ ≤ ≥ ≥ ≠ ≠ ≈ ∝ ← → → ⇒ ⇒ ⊤ … … "
        "‖ ‖ | | ⌈ ⌉ ⌊ ⌋ mod".split(),
    )
)
MARKS = dict(bar="\u0304", hat="\u0302", tilde="\u0303")  # they follow the letter that they mark
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
    return EQUATION.sub(lambda found: line(found[1] or found[2]), text)


def line(tex):
    """One equation: `\\frac{a}{b}` is a/b, `x^2` is x², and `A_{ts}` is A_ts."""
    tex = SPACE.sub(" ", UNSEEN.sub("", re.sub(r",?\s*\\\\", ", ", tex)))
    tex = re.sub(r"\\([%#])", r"\1", re.sub(r"\\[{}]", "", tex))
    tex = re.sub(r"\\([a-zA-Z]+)", lambda found: SIGNS.get(found[1], found[0]), tex)
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
    return (found[2] or found[3]) + MARKS[found[1]]


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
