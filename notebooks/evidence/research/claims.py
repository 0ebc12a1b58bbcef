"""Which claims were decided, by runs or by algebra? The tables of the page of claims."""

import pandas as pd

from course import records
from evidence.research import leads, verdicts

BY_RUNS = ("statements/",)  # what reads records


def by(claim):
    """What decided a claim: recorded runs, or algebra and the sources themselves."""
    evidence = claim["evidence"] or ""
    recorded = evidence.endswith(".json") or any(name in evidence for name in BY_RUNS)
    return "runs" if claim["id"] in verdicts.CLAIMED or recorded else "algebra"


def claims_frame():
    book = records.claims()
    return pd.DataFrame([claim | dict(by=by(claim)) for claim in book])


def quoted():
    return f"{sum('quote' in claim for claim in records.claims())} of {len(records.claims())}"


def after_a_look():
    """The claims whose comparisons were chosen after the records had been looked at."""
    *some, last = (f"`{name}`" for name in verdicts.AFTER_A_LOOK)
    return f"{', '.join(some)} and {last}"


def counts():
    """How many claims have each verdict, by what decided it."""
    df = claims_frame()
    table = pd.crosstab(df.verdict, df.by).reindex(records.VERDICTS, fill_value=0)
    return leads.to_markdown(table.rename(columns="by {}".format))


def sources():
    """(key, title) of every source."""
    return [(key, about["short"]) for key, about in records.published().items()]


def claims_table(source):
    df = claims_frame()
    some = df[df.source == source].set_index("id")
    kind = (" (" + some["kind"] + ")").fillna("")
    said = pd.DataFrame(dict(claim=some.claim, verdict=some.verdict + kind, by=some.by))
    said["claim"] = said["claim"].str.replace("|", "\\|")
    return leads.to_markdown(said.rename("`{}`".format))
