"""Which claims were decided, by runs or by algebra? The tables of the page of claims."""

import pandas as pd

from course import records
from course.markdown import table
from evidence.research import at_best, leads, pairs, verdicts

BY_RUNS = ("statements/",)  # what reads records

# Claims that ask of one size and length; the comparison of two systems at their best rates is of
# the same.
OF_ONE_SIZE = (verdicts.ON_NOVEL, verdicts.SLOW_GAINS, verdicts.UP)
ALSO_CALLED = dict(row3="svformer")


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


def at_best_rates():
    """Claims whose systems all have rates of their own: the verdict with one recipe, and what fresh
    seeds at best rates say, text by text."""
    lines = []
    for claim in records.claims():
        if of_tuned_systems(claim["id"]):
            said = (said_at_best(claim["id"], text) for text in at_best.texts())
            lines.append([f"`{claim['id']}`", claim["verdict"], *said])
    columns = (f"best rates, {at_best.NAMED[text]}" for text in at_best.texts())
    return table(["claim", "one recipe, the novel", *columns], lines)


def of_tuned_systems(claim):
    files, comparisons = verdicts.CLAIMED.get(claim, ((), ()))
    told = {*at_best.told_systems(), "standard"}
    return files in OF_ONE_SIZE and all(set(compared_systems(one)) <= told for one in comparisons)


def compared_systems(comparison):
    """The two systems of "a < b"."""
    first, _, second, *_ = comparison.split()
    return [ALSO_CALLED.get(system, system) for system in (first, second)]


def said_at_best(claim, text):
    """A verdict as runs with one recipe give it, of fresh seeds at best rates; and the leads."""
    holding, told = [], []
    for comparison in verdicts.CLAIMED[claim][1]:
        (ours, theirs), relation = compared_systems(comparison), comparison.split()[1]
        row = at_best.lead(text, ours, theirs)
        little = pairs.LITTLE["loss"]
        holding.append(pairs.holds(relation, -row["high"], -row["low"], little))
        told.append(f"{ours} ahead of {theirs}: {leads.row_in_words(row)}")
    return f"{verdicts.verdict_of(holding)}; {'; '.join(told)}"


def counts():
    """How many claims have each verdict, by what decided it."""
    df = claims_frame()
    found = pd.crosstab(df.verdict, df.by).reindex(records.VERDICTS, fill_value=0)
    return leads.to_markdown(found.rename(columns="by {}".format))


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
