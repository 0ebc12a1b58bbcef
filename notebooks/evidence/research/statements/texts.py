"""What page and notebooks say of nine texts and of three vocabularies, after their prediction."""

from evidence.research import text_leads, vocab_leads, why
from evidence.research.leads import with_interval
from evidence.research.statements import ahead, average, said

NOVELS = ("novel", "dombey", "miserables")
SMALL, MIDDLE, LARGE = why.VOCABS


def clearly(words):
    return words.startswith("**")


# ---- nine texts ----------------------------------------------------------------------------------


@said
def the_prediction_of_nine_texts_held():
    verdict = text_leads.verdict_on_nine()
    return dict(so=verdict.startswith("held"), verdict=verdict)


@said
def that_a_name_comes_again_has_an_effect_and_what_it_is_called_is_not_decided():
    called, again = (text_leads.beyond("renamed", other) for other in ("bare", "fresh"))
    return dict(so=clearly(again) and not clearly(called), called=called, again=again)


@said
def little_more_than_a_quarter_of_the_lead_is_left_with_fresh_names():
    left = {of: text_leads.left_of("fresh", of=of) for of in ("bare", "renamed")}
    so = all(25 <= int(some) < 33 for some in left.values())
    return dict(so=so) | {f"per cent of {of}": some for of, some in left.items()}


@said
def without_comments_the_lead_is_larger():
    more = text_leads.beyond("bare", "code")
    return dict(so=clearly(more), more=more)


@said
def of_three_novels_one_lead_is_clear():
    found = {name: with_interval(text_leads.leads_on(name)) for name in NOVELS}
    return dict(so=sum(map(clearly, found.values())) == 1) | found


@said
def after_the_runs_the_rival_guess_correlates_more_with_the_leads():
    """By the registration their order cannot tell the two guesses apart."""
    order = [text_leads.agreement(), text_leads.agreement("farther")]
    size = [text_leads.line(), text_leads.line("farther")]
    so = float(order[1]) > float(order[0]) and float(size[1]) > float(size[0])
    return dict(so=so, order=order, size=size)


@said
def resformer_leads_in_nearly_the_order_of_the_rival_guess():
    found = text_leads.agreement("farther", "resformer", None)
    return dict(so=float(found) > 0.8, found=found)


@said
def dombey_is_a_step_in_both():
    guessed = [text_leads.guessed(name, "farther") for name in ("dombey", "miserables")]
    leads = [text_leads.mean_on(name) for name in ("dombey", "miserables")]
    so = guessed[0] < guessed[1] and float(leads[0]) < float(leads[1])
    return dict(so=so, guessed=guessed, leads=leads)


@said
def the_four_texts_of_code_in_order_lead():
    guessed = {name for name in why.FORETOLD if text_leads.guessed(name, "farther") > 0}
    leads = {name: float(text_leads.mean_on(name)) for name in why.FORETOLD}
    largest = sorted(leads, key=leads.get, reverse=True)[:4]
    so = guessed == set(largest) == {"bare", "renamed", "code", "fresh"}
    return dict(so=so) | {name: leads[name] for name in largest}


# ---- three vocabularies --------------------------------------------------------------------------


def on_code_beyond(vocab):
    pairs_of_seeds = zip(*(vocab_leads.leads_at(text, vocab) for text in why.SEEN), strict=True)
    return [code - novel for code, novel in pairs_of_seeds]


def means(text):
    return [average(vocab_leads.leads_at(text, vocab)) for vocab in why.VOCABS]


@said
def code_is_clearly_ahead_of_the_novel_but_at_the_smallest_vocabulary():
    """The texts lie furthest apart in the middle."""
    sides = [ahead(on_code_beyond(vocab)) for vocab in why.VOCABS]
    so = sides == [0, 1, 1] and min(on_code_beyond(MIDDLE)) > max(
        on_code_beyond(SMALL) + on_code_beyond(LARGE)
    )
    return dict(so=so) | {
        f"at {vocab}": with_interval(on_code_beyond(vocab)) for vocab in why.VOCABS
    }


@said
def on_code_the_lead_is_largest_in_the_middle_and_on_the_novel_it_grows():
    code, novel = means("code"), means("novel")
    so = code[1] > code[2] > code[0] and novel == sorted(novel)
    return dict(so=so, on_code=code, on_the_novel=novel)


@said
def both_leads_grow_from_the_smallest_vocabulary_to_the_largest():
    found = {text: vocab_leads.largest_less_smallest(text) for text in why.SEEN}
    return dict(so=all(words.startswith("**+") for words in found.values())) | found


@said
def at_the_smallest_vocabulary_tables_gain_nothing_on_code_and_lose_on_the_novel():
    found = {text: vocab_leads.leads_at(text, SMALL) for text in ("code", "novel")}
    so = [ahead(some) for some in found.values()] == [0, -1]
    return dict(so=so) | {text: with_interval(some) for text, some in found.items()}
