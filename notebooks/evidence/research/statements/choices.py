"""What do query, key and value choose, where each of them may? Of the grids `own_mixture_…`.

The first three decide the claims `new-after-…`. What their words are taken to say (MUCH_LARGER, …)
was set before the novel's grid was whole.
"""

from statistics import fmean

from evidence.research import own_mixtures
from evidence.research.own_mixtures import ASKING, MUCH_LARGER, NEAR_ZERO, RECENT
from evidence.research.statements import of, said
from evidence.research.title import TEXTS


def of_each_text(found):
    return {text: found(text) for text in TEXTS}


@said
def one_pair_for_all_three_gives_the_token_more_than_the_stream_on_code_alone_and_nowhere_twice():
    code, novel = (own_mixtures.token_shares(text, "coef-shared", "v").values() for text in TEXTS)
    so = max(novel) < 1 / 2 < min(code) and max(*code, *novel) < MUCH_LARGER
    return dict(so=so) | {
        "the token's share, code": of(code),
        "the token's share, novel": of(novel),
    }


@said
def with_a_pair_each_values_ask_most_for_the_token_and_on_code_queries_are_not_near_0():
    shares = of_each_text(lambda text: own_mixtures.mean_shares(text, "coef-apart"))
    so = all(own_mixtures.asks_most(text, "coef-apart") for text in TEXTS)
    so = so and shares["code"][0] >= NEAR_ZERO
    return dict(so=so) | {f"the token's share for q, k, v, {text}": shares[text] for text in TEXTS}


@said
def over_depth_values_read_most_of_the_token_and_queries_and_keys_no_more_of_the_last_layers():
    """Of the last three of the parts that a layer of the upper half may read."""
    more = of_each_text(
        lambda text: [fmean(own_mixtures.of_the_last(text, door).values()) for door in ASKING]
    )
    so = all(own_mixtures.asks_most(text, "depth-apart") for text in TEXTS)
    so = so and max(max(q, k) for q, k, _ in more.values()) <= 0
    about = {f"the last {RECENT}, more than evenly, q, k, v, {text}": more[text] for text in TEXTS}
    return dict(so=so) | about
