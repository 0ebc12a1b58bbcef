"""The laboratory's commands that write a file, each with as little work behind it as it can have.

tests/setup/test_writers.py calls them as it calls the commands of the package.
"""

import json
import os
import pathlib
from functools import partial

from evidence.bench import rented
from evidence.lab import claims
from evidence.measured import bypass_seeds


def fake_rented(patch):
    """Its file has a name of its own in the folder that is asked for."""
    patch.setattr(rented, "FILE", "x")
    patch.setattr(rented, "plan_in_words", lambda session: "")
    patch.setattr(rented, "carry_out", lambda session: session.keep(dict(part="x", n=1)))
    return lambda at: rented.main(["--dry", "--out", os.path.dirname(at)])


def fake_bypass(old, patch):
    patch.setattr(bypass_seeds, "header_of", lambda settings: dict(old, settings=settings))
    row = dict(plan="standard", size="2x32", seed=0, f1=1.0, seconds=1.0)
    patch.setattr(bypass_seeds, "run", lambda *cell, **changes: (row, 1))
    patch.setattr(bypass_seeds, "table", lambda rows: (None, {}))
    words = "--plans standard --sizes 2x32 --seeds 1 --threads 1 --out".split()
    return lambda at: bypass_seeds.main([*words, at])


def fake_claims(patch):
    """Its files have their places; here they are others."""
    patch.setattr(claims, "verdicts", lambda: {})
    patch.setattr(claims, "page", lambda told: "a page")

    def call(at):
        patch.setattr(claims, "VERDICTS", pathlib.Path(at))
        patch.setattr(claims, "PAGE", pathlib.Path(at).with_name("page.md"))
        claims.main([])

    return call


def of_the_lab(old):
    """{command: (how it is called, what an earlier call has written)}"""
    as_before = lambda **more: json.dumps(old | more).encode()
    return dict(
        rented=(fake_rented, as_before()),
        bypass_seeds=(partial(fake_bypass, old), as_before(settings=None)),
        claims=(fake_claims, None),
    )
