"""What do query, key and value choose, where each of them may? Of the grids `own_mixture_…`."""

from statistics import fmean

from evidence.research import own_mixtures
from evidence.research.own_mixtures import ASKING, LAST, NEAR_ZERO, TWICE
from evidence.research.statements import of, said

# What decides the claims `new-after-…` is set by these three before the novel's grid is whole.


@said
def one_pair_for_all_three_gives_the_token_more_than_the_stream_and_less_than_twice_as_much():
    found = {
        text: own_mixtures.token_shares(text, "coef-shared", "v").values()
        for text in own_mixtures.texts()
    }
    every = [share for shares in found.values() for share in shares]
    so = min(every) > 1 / 2 and max(every) < TWICE
    return dict(so=so) | {f"the token's share, {text}": of(found[text]) for text in found}


@said
def with_a_pair_each_values_ask_most_for_the_token_and_queries_are_not_near_0():
    so, about = True, {}
    for text in own_mixtures.texts():
        q, _, _ = shares = own_mixtures.mean_shares(text, "coef-apart")
        so = so and own_mixtures.asks_most(text, "coef-apart") and q >= NEAR_ZERO
        about[f"the token's share for q, k, v, {text}"] = shares
    return dict(so=so) | about


@said
def over_depth_values_read_the_token_and_queries_and_keys_no_more_of_the_last_layers_than_if_evenly():
    """Of the last three of the parts that a layer of the upper half may read."""
    so, about = True, {}
    for text in own_mixtures.texts():
        *_, v = own_mixtures.mean_shares(text, "depth-apart")
        more = [fmean(own_mixtures.of_the_last(text, door).values()) for door in ASKING]
        so = so and v > 1 / 2 and max(more[:2]) <= 0
        about[f"the token's share for v, {text}"] = v
        about[f"of the last {LAST} more than evenly, q, k, v, {text}"] = more
    return dict(so=so) | about
