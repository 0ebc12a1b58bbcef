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
}


def name(cell):
    return SYSTEMS.get(cell, cell)
