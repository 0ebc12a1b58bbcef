"""What are the systems called, on pages and in pictures? A new one is a line."""

import re

SYSTEMS = {
    "standard": "standard",
    "standard, hidden 416": "standard as large as tables in the last third",
    "x0-v": "x0 W_V in all layers",
    "bov-fixed": "tables in the last third, gain fixed",
    "bov": "Bank of Values, gain learned",
    "bov-keep": "tables beside V, weights learned",
    "row8": "x0 W_V in the last third",
    "row9": "x0 W_V in the last third, gain learned",
    "row12": "half V, half x0 W_V, in the last third",
    "row13": "V beside x0 W_V, weights learned",
    "resformer": "ResFormer",
    "row5": "the first layer's V in the last third",
    "row6": "the first layer's V in the last third, gain learned",
    "row11": "V beside the first layer's V, weights learned",
    "neutreno": "NeuTRENO",
    "denseformer": "DenseFormer",
    "engram": "Engram, a table read into the stream",
    "row2": "V in the last third, gain learned",
    "svformer": "SVFormer",
    "standard, hidden 8448": "standard as large as Bank of Values",
    # in how many layers
    "x0-v@10,11": "x0 W_V in the top 2 layers",
    "x0-v@8,9,10,11": "x0 W_V in the top 4 layers",
    "x0-v@4,5,6,7,8,9,10,11": "x0 W_V in the top 8 layers",
    "x0-v@0,1,2,3,4,5,6,7,8,9,10,11": "x0 W_V in all 12 layers",
    "x0-v@0,1": "x0 W_V in the bottom 2 layers",
    "x0-v@0,1,2,3": "x0 W_V in the bottom 4 layers",
    "x0-v@0,1,2,3,4,5,6,7": "x0 W_V in the bottom 8 layers",
    "x0-v@1,3,5,7,9,11": "x0 W_V in every second layer",
    "row12@8,9,10,11": "half V, half x0 W_V, in the top 4 layers",
    "row12@0,1,2,3,4,5,6,7,8,9,10,11": "half V, half x0 W_V, in all 12 layers",
    "bov-fixed@8,9,10,11": "tables in the top 4 layers",
    "bov-fixed@0,1,2,3,4,5,6,7,8,9,10,11": "tables in all 12 layers",
    "standard, hidden 736": "standard as large as tables in all layers",
    # who needs the stream
    "x0-q": "queries from x0, all layers",
    "x0-k": "keys from x0, all layers",
    "x0-qk": "queries and keys from x0, all layers",
    "x0-qv": "queries and values from x0, all layers",
    "x0-kv": "keys and values from x0, all layers",
    "x0-qkv": "queries, keys and values from x0, all layers",
    "x0-q@8,9,10,11": "queries from x0, last third",
    "x0-k@8,9,10,11": "keys from x0, last third",
    "x0-qk@8,9,10,11": "queries and keys from x0, last third",
    "x0-qv@8,9,10,11": "queries and values from x0, last third",
    "x0-kv@8,9,10,11": "keys and values from x0, last third",
    "x0-qkv@8,9,10,11": "queries, keys and values from x0, last third",
    "coef-shared": "weights, one pair for all three",
    "coef-apart": "weights, a pair for each",
    "depth-shared": "over depth, one choice for all three",
    "depth-apart": "over depth, a choice for each",
    # what passes of half of the value
    "standard/v1-both": "V1, number and gradient",
    "standard/v1-forward": "V1, the number alone",
    "standard/v1-gradient": "V1, the gradient alone",
    "standard/v1-neither": "V1, neither",
    "standard/v1-other": "V1, another text's number",
    "standard/x0-both": "x0 W_V, number and gradient",
    "standard/x0-forward": "x0 W_V, the number alone",
    "standard/x0-gradient": "x0 W_V, the gradient alone",
    "standard/x0-neither": "x0 W_V, neither",
    "standard/x0-other": "x0 W_V, another text's number",
    # others with gains
    "row4": "the first layer's V in every second layer, gain learned",
    "row7": "x0 W_V in every second layer, gain learned",
    "bov-every": "Bank of Values in every layer",
    "bov-shared": "Bank of Values, one table for all layers",
    # how deep a value may read
    **{f"upstream-{j}": f"V from the stream that enters layer {j}" for j in (1, 2, 4, 6, 8)},
    **{
        f"upstream-{j}@8,9,10,11": f"V from the stream that enters layer {j}, in the last third"
        for j in (1, 2, 4, 6, 8)
    },
    # the key as the value
    "gqa": "GQA",
    "mqa": "MQA",
    "keys-turned": "the turned key as the value",
    "keys-turned-gqa": "the turned key as the value, with GQA",
    "keys-plain": "the plain key as the value",
    # what is taken out of what is heard
    "xsa": "XSA, attention less the own value",
    "xsa-learned": "XSA with a learned share",
    "xsa-x0": "XSA over x0 W_V, all layers",
    "xsa-x0-learned": "XSA with a learned share over x0 W_V",
    "xsa-v1": "XSA over ResFormer",
    "xsa-v1-learned": "XSA with a learned share over ResFormer",
    "xsa-bank": "XSA over tables in the last third",
    "xsa-bank-learned": "XSA with a learned share over tables in the last third",
    # values made of several layers
    "resformer-learned": "ResFormer, weights learned",
    "depth-attention": "Depth-Attention",
    "attnres": "V by attention over what the blocks have added",
    "mudd": "V from a mixture of all streams (MUDD)",
    "exo": "ExoFormer, one V1 outside the stack",
    "mudd-stream": "streams added to V past W_V",
}


# The name of a system within a sentence: the longest first, and none within a longer word
PLAN = rf"(?<![\w-])({'|'.join(map(re.escape, sorted(SYSTEMS, key=len, reverse=True)))})(?![\w@-])"


def name(cell):
    return SYSTEMS.get(cell, cell)


def with_names(sentence):
    """The sentence with each system called as on the pages. "XSA over tables" is a system's name,
    so "x over y" becomes "x ahead of y"."""
    sentence = re.sub(rf"(?<=\w) over (?={PLAN})", " ahead of ", sentence)
    sentence = re.sub(r", heads (\d+)", r" with \1 heads", sentence)
    return re.sub(PLAN, lambda found: name(found[0]), sentence)
