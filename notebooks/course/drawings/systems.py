"""Where do a layer's values come from? One panel a system, wired from its plan."""

from course.drawings.canvas import Canvas, side_by_side
from minimal.model import attention, depth, latent, ngram, values
from minimal.variants import skeleton

WIDTH, HEIGHT = 250, 330
NAMES = dict(
    standard="standard attention",
    resformer="ResFormer",
    svformer="SVFormer",
    row8="x₀ Wᵥ (row 8)",
    row9="x₀ Wᵥ (row 9)",
    **{"x0-v": "x₀ Wᵥ (the token)"},
    bov="Bank of Values",
    vplus="V + gated table",
    dva="dynamic values (DVA)",
    bypass="value bypass",
    ngram="bank of n-gram values",
    xsa="less the own value (XSA)",
    mla="latent attention (MLA)",
    **{"upstream-2": "V from an earlier stream", "keys-turned": "the key is the value"},
)
COMES_FROM = dict(
    own="from the layer's hidden state",
    layer="from layer 1's values",
    x0="from the token embedding",
    table="from a table by token id",
    input="from the layer's input past W_V",
    slots="from a table by the last ids",
    latent="from a latent that is kept in their place, and of which keys are made, too",
    stream="from the hidden state that enters an earlier layer",
    key="from the keys as they are, turned by their places",
)


def leaves(source, weight=""):
    """[(kind, weight)] of everything that a value source adds up."""
    if isinstance(source, values.Mix):
        a, b = (short(start) for start in source.starts)
        return leaves(source.x, a) + leaves(source.y, b)
    if isinstance(source, values.Gate):
        return leaves(source.x) + leaves(source.y, "g")
    if isinstance(source, depth.Upstream):
        return [(source.mark, weight)]
    kinds = (
        (values.TurnedKey, "key"),
        (values.Input, "x0"),
        (values.Own, "own"),
        (values.Layer, "layer"),
        (ngram.NGram, "slots"),
        (values.Table, "table"),
        (latent.FromLatent, "latent"),
        (values.Bypass, "input"),
    )
    for kind, name in kinds:
        if isinstance(source, kind):
            return [(name, weight)]
    raise ValueError(f"{type(source).__name__} has no drawing: add it to leaves() in drawings")


def short(start):
    """A starting weight as a reader writes it."""
    return {0.5: "½", 1.0: "", 0.0: "b"}.get(start, f"{start:g}")


def wiring(plan, size="tiny"):
    """What a drawing needs to know of a plan, read off the last layer of the model that it "
    "builds."""
    block = skeleton(plan, size).blocks[-1]
    layer = block.attention
    return dict(
        leaves=leaves(layer.value),
        gain=layer.value.gain is not None,
        dynamic=isinstance(layer.read, attention.Dynamic),
        back=isinstance(layer.read, attention.TurnedBack),
        less=isinstance(layer.read, attention.Exclusive),
        network=block.mlp is not None,
    )


def panel_in_words(plan, found):
    """The panel in words, for the alt text."""
    parts = [COMES_FROM[kind] for kind, _ in found["leaves"]]
    sentence = f"{NAMES.get(plan, plan)}: values come {' plus '.join(parts)}"
    if found["dynamic"]:
        sentence += ", a second stream shares the map and is gated by the query"
    if found["back"]:
        sentence += ", and what is read is turned back by the place of the query"
    if found["less"]:
        sentence += ", and what is read loses its share along the query's own value"
    if found["gain"]:
        sentence += ", scaled by a learned gain"
    return sentence


def frame(c, latent=False):
    """What every system shares: the stream, layer 1, layer n, queries and keys that make the map.

    Where keys and values share a latent, its own arrow leads to the keys.
    """
    # the residual stream, from the token up
    c.box(14, 292, 40, 24, "x₀", "box")
    c.path([(34, 292), (34, 40)])
    c.text(34, 29, "stream", kind="soft")
    c.box(92, 294, 40, 22, "id", "quiet")
    c.path([(92, 305), (56, 305)])
    # two layers: the first, which some systems read again, and a deep one
    c.box(62, 238, 185, 42, kind="faint", corner=6)
    c.text(68, 249, "layer 1", 12, "start", "soft")
    c.box(62, 56, 185, 174, kind="faint", corner=6)
    c.text(68, 67, "layer n", 12, "start", "soft")
    # routing: who is heard
    c.path([(34, 218), (84, 218)], tip=False)
    c.path([(84, 218), (84, 164)])
    if not latent:
        c.path([(84, 218), (110, 218), (110, 164)])
    c.box(73, 140, 22, 24, "q", "routing")
    c.box(99, 140, 22, 24, "k", "routing")
    c.path([(84, 140), (84, 118)])
    c.path([(110, 140), (110, 118)])
    c.box(70, 92, 54, 26, "A", "routing", 13)
    c.path([(124, 105), (152, 105)])


def value_box(c, found):
    """V, the product with the map, and the way back to the stream: what is said."""
    c.box(152, 140, 48, 24, "γ V" if found["gain"] else "V", "content", 13)
    c.path([(176, 140), (176, 118)], "value")
    c.box(152, 92, 48, 26, "A V", "content", 13)
    c.path([(176, 92), (176, 78), (44, 78)])
    c.plus(34, 78)


def own_arrow(c, several):
    c.path([(110, 218), (176, 218), (176, 187 if several else 164)], "value")
    c.box(160, 193, 32, 18, "Wᵥ", "box")


def input_arrow(c, several):
    c.path([(34, 226), (135, 226), (135, 178), (168, 178)], "value")
    c.box(116, 193, 38, 18, "relu", "box")


def layer_arrow(c, several):
    at = 218 if several else 176
    c.path([(34, 268), (100, 268)])
    c.box(100, 259, 32, 18, "Wᵥ", "box")
    c.path([(132, 268), (at - 20, 268)])
    c.path([(at, 257), (at, 178), (184, 178)] if several else [(at, 257), (at, 164)], "value")
    c.box(at - 18, 257, 36, 20, "V₁", "content", 12)


def table_arrow(c, several):
    c.path([(132, 305), (218, 305), (218, 216)])
    c.path(
        [(218, 192), (218, 178), (184, 178)]
        if several
        else [(218, 192), (218, 178), (176, 178), (176, 164)],
        "value",
    )
    c.table(198, 192, 40, 24)
    c.text(232, 225, "E", 12)


def slots_arrow(c, several):
    c.text(152, 325, "and the id before", kind="soft")
    table_arrow(c, several)


def latent_arrow(c, several):
    c.path([(84, 218), (100, 218)], "value")
    c.box(100, 209, 20, 18, "c", "content", 12)
    c.path([(110, 209), (110, 164)])  # keys are made of it, too
    c.path([(120, 218), (176, 218), (176, 187 if several else 164)], "value")
    c.box(160, 187, 32, 18, "Wᵥ", "box")


def x0_arrow(c, several):
    foot = [(184, 178)] if several else [(176, 178), (176, 164)]
    c.path([(34, 286), (222, 286), (222, 178), *foot], "value")
    c.box(206, 195, 32, 18, "Wᵥ", "box")


def stream_arrow(c, several):
    foot = [(184, 178)] if several else [(176, 178), (176, 164)]
    c.path([(34, 234), (222, 234), (222, 178), *foot], "value")
    c.text(150, 221, "Xⱼ", 12)
    c.box(206, 195, 32, 18, "Wᵥ", "box")


def key_arrow(c, several):
    c.path([(121, 152), (152, 152)], "value")


ARROWS = dict(
    stream=stream_arrow,
    key=key_arrow,
    own=own_arrow,
    input=input_arrow,
    layer=layer_arrow,
    table=table_arrow,
    slots=slots_arrow,
    latent=latent_arrow,
    x0=x0_arrow,
)
WEIGHT_AT = dict.fromkeys(ARROWS, (210, 166)) | dict(own=(157, 184), input=(141, 166))


def second_stream(c):
    """Dynamic values: keys of a second kind pass through the same map, and the query gates them."""
    c.path([(176, 218), (226, 218), (226, 164)])
    c.box(210, 140, 32, 24, "kᴿ", "content", 12)
    c.path([(226, 140), (226, 118)], "value")
    c.box(206, 92, 38, 26, "A kᴿ", "content")
    c.path([(226, 92), (226, 78), (185, 78)], "value")
    c.text(210, 65, "× qᴿ")
    c.plus(176, 78)


def turned_back(c):
    """What is read of turned keys is turned by minus the place of the query."""
    c.box(128, 69, 34, 18, "R⁻¹", "box")


def less_own(c):
    """What lies along the own value goes."""
    c.path([(200, 152), (226, 152), (226, 78), (185, 78)], "value")
    c.text(212, 66, "along v", 11)
    c.plus(176, 78, sign="−")


def panel(plan, title=None, size="tiny"):
    """One system on a canvas, and its wiring."""
    found, c = wiring(plan, size), Canvas(WIDTH, HEIGHT)
    c.text(WIDTH / 2, 10, title or NAMES.get(plan, plan), 15, bold=True)
    frame(c, latent=any(kind == "latent" for kind, _ in found["leaves"]))
    several = len(found["leaves"]) > 1
    for kind, weight in found["leaves"]:
        ARROWS[kind](c, several)
        c.text(*WEIGHT_AT[kind], weight)
    if several:
        c.path([(176, 172), (176, 164)], "value")
        c.plus(176, 178)
    value_box(c, found)
    if found["dynamic"]:
        second_stream(c)
    if found["back"]:
        turned_back(c)
    if found["less"]:
        less_own(c)
    return c, found


def systems(*plans, columns=None, title="Where do the values come from?"):
    """Plans side by side: the same layer each time, and only the value's thick arrow moves."""
    panels = [panel(plan) for plan in plans]
    alt = "Attention layers as boxes and arrows. Queries and keys make the map A, which mixes V. "
    parts = (panel_in_words(plan, found) for plan, (_, found) in zip(plans, panels, strict=True))
    alt += "; ".join(parts) + "."
    whole = side_by_side([canvas for canvas, _ in panels], columns=columns)
    return whole.drawing(alt, title)
