"""What are the systems called, on pages and in pictures? A new one is a line."""

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
}


def name(cell):
    return SYSTEMS.get(cell, cell)
