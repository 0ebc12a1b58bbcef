"""What do query, key and value ask for where each may choose? From the two grids `own_mixture_…`.

Two observations that Bank of Values' authors reported after their paper: of learned weights on the
stream and on x0, and of attention over what the layers below have added. What was foretold stands
in doors.EXPECTED; here each of its sentences meets what came.
"""

from statistics import fmean

from course.markdown import table
from evidence.research import asked, pairs
from evidence.research.asked import NAMED, above, below, named_if_alone, so
from evidence.research.leads import mean_and_range, row_in_words
from evidence.research.title import LAYERS

UPPER_HALF = range(LAYERS // 2, LAYERS)
ASKING = dict(q="queries", k="keys", v="values")
CHOICES = {  # plan: in words
    "coef-shared": "weights, one pair for all three",
    "coef-apart": "weights, a pair for each",
    "depth-shared": "over depth, one choice for all three",
    "depth-apart": "over depth, a choice for each",
}
APART = {"coef-apart": "with learned weights", "depth-apart": "over depth"}

# What the posts' words are taken to say, of a share; set before the second grid was whole.
MUCH_LARGER = 2 / 3  # "much larger": at least twice the other of a pair
NEAR_ZERO = 0.2  # as foretold in doors.EXPECTED
RECENT = 3  # "the recent layers": as many of the parts over depth

texts, lead = asked.of_question("own_mixture")


# ---- how much of the token -----------------------------------------------------------------------


def in_upper_half(text, plan, door, of_layer):
    """{seed: what of_layer finds in a door's mixtures, as the mean of the upper half}."""
    found = {}
    for row in pairs.whole_rows(f"own_mixture_{text}"):
        if row["plan"] == plan:
            by_layer = row["mixed"][door]
            found[row["seed"]] = fmean(of_layer(by_layer[at]) for at in UPPER_HALF)
    return found


def token_shares(text, plan, door):
    """{seed: the token's share in what a door reads}."""
    return in_upper_half(text, plan, door, of_token)


def of_token(mixed):
    """x0's weight beside the stream's; or the shares of all parts, the embedding first."""
    return mixed[0] if isinstance(mixed, list) else mixed


def of_the_last(text, door):
    """{seed: what a door reads over depth of the last parts, more than if it read all evenly}."""
    more_than_evenly = lambda shares: sum(shares[-RECENT:]) - RECENT / len(shares)
    return in_upper_half(text, "depth-apart", door, more_than_evenly)


def asks_most(text, plan):
    """Do values ask for more of the token than queries and keys, in every seed?"""
    q, k, v = (token_shares(text, plan, door) for door in ASKING)
    return all(v[seed] > max(q[seed], k[seed]) for seed in v)


def mean_shares(text, plan):
    """The mean over seeds, for q, k and v in turn."""
    return [fmean(token_shares(text, plan, door).values()) for door in ASKING]


def shares_in_words(text, plan):
    shares = zip(ASKING.values(), mean_shares(text, plan))
    return ", ".join(f"{words} {share:.2f}" for words, share in shares)


# ---- the answer ----------------------------------------------------------------------------------


def heading():
    found = {asks_most(text, plan) for text in texts() for plan in APART}
    if found == {True}:
        claim = "Left to choose, values ask for more of the token than queries and keys"
    elif found == {False}:
        claim = "Left to choose, values do not ask for more of the token than queries and keys"
    else:
        claim = (
            "Whether values ask for more of the token depends on what may be chosen, or on the text"
        )
    return named_if_alone(claim, texts())


def cells():
    """Every system: how far it is ahead of standard, and what its doors ask for; then how far a
    mixture for each door is ahead of one for all three."""
    heads = []
    for text in texts():
        heads += [f"ahead, {text}", f"of the token: q, k, v, {text}"]
    lines = []
    for plan, words in CHOICES.items():
        line = [words]
        for text in texts():
            line += [row_in_words(lead(text, plan)), asked_for(text, plan)]
        lines.append(line)
    for kind, words in dict(coef="weights", depth="over depth").items():
        line = [f"{words}: for each, ahead of one for all"]
        for text in texts():
            line += [row_in_words(lead(text, f"{kind}-apart", f"{kind}-shared")), ""]
        lines.append(line)
    return table(["chosen", *heads], lines)


def asked_for(text, plan):
    """One number where one choice serves all three."""
    doors = ASKING if plan in APART else ["q"]
    return ", ".join(f"{fmean(token_shares(text, plan, door).values()):.2f}" for door in doors)


# ---- did it come as foretold? --------------------------------------------------------------------


def foretold():
    """What was written before the first run, and what came."""
    return table(
        ["foretold", "came"], [*of_values(), *of_queries_and_keys(), *of_leads(), our_mind()]
    )


def of_values():
    for plan, words in APART.items():
        for text in texts():
            yield [
                f"{words} v asks for more of the token than q and k, every seed, on {NAMED[text]}",
                f"{so(asks_most(text, plan))}: {shares_in_words(text, plan)}",
            ]


def of_queries_and_keys():
    for text in texts():
        q, k, v = mean_shares(text, "coef-apart")
        yield [
            f"weights of q and k below .2 on {NAMED[text]}",
            f"{so(max(q, k) < NEAR_ZERO)}: {q:.2f}, {k:.2f}",
        ]
        shared = token_shares(text, "coef-shared", "q").values()
        near = abs(fmean(shared) - v) < abs(fmean(shared) - q)
        yield [
            f"the one pair lies nearer to v's than to q's on {NAMED[text]}",
            f"{so(near)}: {mean_and_range(shared)}; q {q:.2f}, v {v:.2f}",
        ]


def of_leads():
    if "code" not in texts():
        return
    for plan, words in CHOICES.items():
        yield [
            f"{words}: ahead of standard by .02 or more on code",
            above(lead("code", plan), 0.02),
        ]
    row = lead("code", "coef-apart", "coef-shared")
    yield ["weights: apart ahead of shared by less than .01 on code", below(row, 0.01)]
    row = lead("code", "depth-apart", "depth-shared")
    yield ["over depth: apart ahead of shared by .01 or more on code", above(row, 0.01)]


def our_mind():
    """The condition under which the answer would be another."""
    less = []
    for text in texts():
        q, k, v = mean_shares(text, "coef-apart")
        if v <= max(q, k):
            less.append(NAMED[text])
    word = f"it did, on {' and '.join(less)}" if less else "it did not"
    return ["our mind changes: v's weight of x0 not above those of q and k, on either text", word]
