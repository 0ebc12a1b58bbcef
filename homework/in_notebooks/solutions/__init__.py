"""The course's own answers to the exercises of the notebooks, as a notebook would write them."""
