"""How do the items of a task come from the network? Through `datasets`, or one sentence."""

from minimal.data.files import DataError
from minimal.data.hub import fetched, the_library


def downloaded(what, instead, path, split, address=None):
    """All rows of one split of a public set. `address`: of one file, where `path` is its format.
    `what` and `instead` are for the sentence: what was wanted, and what can be named instead."""
    datasets = the_library(what)
    try:
        files = None if address is None else fetched(address)
        return list(datasets.load_dataset(path, data_files=files, split=split))
    except Exception as error:  # no network, no such set: each library has its own class
        raise DataError(
            f"{what} did not come through `datasets` ({type(error).__name__}): "
            f"go online once, or name {instead}"
        ) from error
