"""The exercises that stand in the notebooks: short ones, on the piece that a notebook is about.

`nb01.py` holds those of notebook 01, defined like a homework's (see marking.py), and
`solutions/nb01.py` their solutions. `python -m homework.cells nb01` writes stubs and solutions
into the notebook.
"""
