"""Notes of claims that hold numbers of ours: computed from the records, never typed.

A note is a template: {a lead} stands where LEADS has its name, as "0.019 nats (0.003 to 0.034, 3
seeds, clear)", {a change} where CHANGES has it, and any other name is a function of
evidence.research.noted, with its words behind colons: {larger:row11:novel}.
"""

import json
import statistics

from evidence.research import at_d12, noted, pairs
from evidence.research.cells import BARE, DVA
from evidence.research.leads import as_row, between, cell_by_seed, change, number

OLD = "thirteen_rows"  # every system at one budget, on the novel
MATCHED = "dva_matched"


def rates(style, plan, lr, warmup):
    """A side: SVFormer or standard at one rate and warm-up of the grid critical_point."""
    return "critical_point", plan, dict(style=style, lr=lr, warmup=warmup)


def sides_at_rate(style, lr, warmup=0.1):
    """SVFormer's lead there."""
    return tuple(rates(style, plan, lr, warmup) for plan in ("svformer", "standard"))


def at_length(context):
    return tuple(("lengths", plan, dict(context=context)) for plan in ("svformer", "standard"))


# {a lead}: (grid and cell of ours, grid and cell of theirs, what is compared); a side may say what
# else its rows were asked
LEADS = dict(
    skipv1=(("sharing", "skipv1"), (OLD, "standard")),
    sv_gqa=((OLD, "svformer"), (OLD, "gqa")),
    sv_gqa_code=(("stdlib", "svformer"), ("stdlib", "gqa")),
    slow_bov=(("confound", "bov"), (OLD, "standard")),
    slow_bov_fixed=(("confound", "bov"), (OLD, "bov-fixed")),
    slow_bov_row9=(("confound", "bov"), ("confound", "row9")),
    slow_row2=(("confound", "row2"), (OLD, "standard")),
    slim_bov=(("parameters", "bov-fixed, hidden 96"), (OLD, "standard")),
    slow_row13=(("confound", "row13"), (OLD, "row13")),
    slow_13_9=(("confound", "row13"), ("confound", "row9")),
    slow_11_6=(("confound", "row11"), ("confound", "row6")),
    entropy=(("inside", "standard"), ("inside", "resformer"), "entropy_deep"),
    similarity=(("inside", "standard"), ("inside", "resformer"), "similarity_deep"),
    dva_large=((MATCHED, f"{DVA}, width 94"), (OLD, "standard")),
    bare_large=((MATCHED, f"{BARE}, width 116"), (OLD, "standard")),
    dva_long=((MATCHED, DVA), (OLD, "standard")),
    no_net=((MATCHED, f"{DVA}, width 94"), (MATCHED, "dva/many/ffn/wo, hidden 192")),
    llama_slowest=sides_at_rate("llama", 3e-4),
    llama_third=sides_at_rate("llama", 3e-3),
    llama_fastest=sides_at_rate("llama", 1e-2),
    llama_best=sides_at_rate("llama", 1e-2, 0.4),
    d12_bov=((at_d12.TABLES_GRID, "bov"), (at_d12.GRID, "standard")),
    d12_bov_as_large=((at_d12.TABLES_GRID, "bov"), (at_d12.TABLES_GRID, at_d12.WIDE_IN_D12)),
)

# {a change}: (a lead, the lead it is compared with): by how much the first exceeds the second
CHANGED_LEADS = dict(
    longer=(at_length(256), at_length(64)),
    nanochat_slower=(sides_at_rate("nanochat", 3e-4), sides_at_rate("nanochat", 3e-3)),
    llama_slower=(sides_at_rate("llama", 3e-4), sides_at_rate("llama", 3e-3)),
    warm_1=(sides_at_rate("llama", 3e-4, 0.1), sides_at_rate("llama", 3e-4, 0.01)),
    warm_2=(sides_at_rate("llama", 3e-3, 0.1), sides_at_rate("llama", 3e-3, 0.01)),
    long_warm_1=(sides_at_rate("llama", 3e-4, 0.4), sides_at_rate("llama", 3e-4, 0.01)),
    long_warm_2=(sides_at_rate("llama", 3e-3, 0.4), sides_at_rate("llama", 3e-3, 0.01)),
)

AT_SLOW_GAINS = (
    "At gains' rates of .05 and .005, beside the .031 that the paper's rule of batch sizes gives "
    "for ours."
)
REPORTED = "Reported after the paper, without seeds, of larger models. "
NOTES = {
    "bov-skipv1": "SkipV1Former's abstract (2510.16807) reports better perplexity than standard "
    "attention. Ours: {skipv1} over standard (grid sharing).",
    "sv-gqa-2048": "At 128 tokens SVFormer's lead over GQA is {sv_gqa} on the novel and "
    "{sv_gqa_code} on code (claim sv-gqa).",
    "bov-deep": "BoV also has more parameters, which the paper does not match. With the gain at a "
    "tenth of the recipe's rate its lead over standard is {slow_bov} (grid confound); with the "
    "gain fixed and slimmer MLPs, at equal parameters, {slim_bov} (grid parameters).",
    "bov-scales": "Table 8's budgets check out (bov-table8). At 135M and a fortieth of those FLOPs "
    "tables lead standard by {d12_bov}, and a standard as large by {d12_bov_as_large}.",
    "bov-uneven": "alpha was trained at .005 with decay, beta and gamma at .5 without. With one "
    "slow rate for both, row 13's lead over itself is {slow_row13}; its signs stay: the weight on "
    "x0 W_V is about -1 in every layer and seed.",
    "res-mitigates": "ResFormer's entropy in the upper half exceeds the standard model's: "
    "{entropy}. But the standard model does not concentrate at this size: it lies above the even "
    "map's entropy there, and above that line a higher entropy means nearness (notebook 03).",
    "res-similarity": "Relief from an effect is not tested where the effect is absent: our "
    "standard model's tokens grow less alike with depth ({token_similarity:standard:2} after the "
    "third layer, {token_similarity:standard:11} after the last). In the upper half ResFormer's "
    "are more alike: {similarity}.",
    "sv-surpassed": "Smoothed over 5 recorded values, SVFormer's training loss is overtaken for "
    "good in {crossed:budgets_novels:1000} runs of 1,000 to 4,000 steps on novels and in "
    "{crossed:budgets_code:500} of 500 to 4,000 on code.",
    "sv-longer": "Its lead at 256 tokens less that at 64: {longer}.",
    "sv-rate": "With AdamW, at a warm-up of 10 %. From 3e-4 to 3e-3 the lead shrinks in the "
    "nanochat style, as in the paper (the first less the second: {nanochat_slower}). In the llama "
    "style, the paper's, it grows (the same: {llama_slower}): it is {llama_slowest} at 3e-4 and "
    "{llama_fastest} at 1e-2. Most of that is the standard model's trouble with large rates; each "
    "at its best recorded setting, the lead is {llama_best}. The paper's curves are longer.",
    "sv-warmup": "The paper's warm-ups are 1.2 % (Table 4) or 12 % (text) of the run. From 1 to "
    "10 % the llama lead moves by {warm_1} at 3e-4 and by {warm_2} at 3e-3. From 1 to 40 %, at an "
    "equal sum of rates, it moves by {long_warm_1} and {long_warm_2}.",
    "bov-row2": "A multiplicative scalar trained at rate 0.5 may simply be badly optimised. With "
    "half batches and half the steps, one seed, it is worse (notebook 09), with whole ones not. At "
    "one slow rate its lead over standard is {slow_row2}.",
    "bov-row2-zero": "From 1 to at most {row2_most} in all layers and seeds, within .2 of 0 in "
    "{row2_zero:novel} on the novel and {row2_zero:code} on code. At a tenth of the rate their "
    "mean size is {row2_slow:novel} and {row2_slow:code}.",
    "bov-adding-v": "With one slow rate row 13's lead over row 9 is {slow_13_9}, and row 11's over "
    "row 6 {slow_11_6}.",
    "bov-larger": "In the paper's figure in six of eight layers. In our row 13 in "
    "{larger:row13:novel} on the novel and {larger:row13:code} on code, in row 11 in "
    "{larger:row11:novel} and {larger:row11:code}. The two kinds of coefficient had rates a "
    "hundredfold apart, in the paper and in ours.",
    "bov-toward-zero": "In one of the two additive variants: with V1 (row 11) V's coefficient ends "
    "at {on_v:row11} in all layers on both texts, from a start at 1; with x0 W_V (row 13) at "
    "{on_v:row13}. In the paper's figures one layer of eight is near 0 (.1), and both are in 2c. "
    "Its rate was a hundredth of the other's.",
    "bov-magnitude": "One coefficient alone can trade a factor with its matrix or table (rows 6, "
    "9, Bank of Values), and row 11's two can. Row 13's ratio cannot; in our runs it is 1 in layer "
    "11, with opposite signs, and the token explains less of the mixture ({of_the_token:token}) "
    "than of V alone ({of_the_token:token_own}), since the stream contains the token already.",
    "bov-above-2": "Of our final gains (rows 6 and 9) above 2 are {gains_above_2:novel} on the "
    "novel and {gains_above_2:code} on code. A gain alone is not identified: |gain| times the size "
    "of what it multiplies is.",
    "bov-flops-gap": "At equal tokens and one slow rate BoV's lead over row 9 is {slow_bov_row9}, "
    "so the gap needs no FLOPs. The {arithmetic_saved} of 500. In the paper V1 in the last third "
    "has BoV's FLOPs too, and a CORE of .242, below the baseline.",
    "bov-fixed": "At a tenth of the rate the learned gain's lead over a fixed 1 is "
    "{slow_bov_fixed} (grid confound): what is compared is an optimizer.",
    "bov-keep": "Both with tables in the last third: the gain fixed at 1 and V dropped, against V "
    "kept beside the table with learned weights. The paper's own form, a learned gain at the "
    "recipe's rate, silences layers on the novel and is no fair rival there.",
    "bov-every-layer": AT_SLOW_GAINS,
    "bov-alternate": AT_SLOW_GAINS,
    "bov-shared": AT_SLOW_GAINS,
    "dva-time": "On a CPU a step takes {saved:dva/one/noffn/nowo:gpt2} % less time at GPT-2's size "
    "and {saved:dva/one/noffn/nowo:tiny} % less at tiny; without the modifier "
    "{saved:standard/one/noffn/nowo:gpt2} and {saved:standard/one/noffn/nowo:tiny} % less. So the "
    "modifier costs time, and what saves it is the absence of the feed-forward network, which has "
    "8 of a layer's 12 products.",
    "dva-loss": "As printed .337 nats lower in training, .024 in validation: one seed, one book. "
    "Ours at equal width and steps: behind. At equal parameters DVA's lead over standard is "
    "{dva_large}, and that of the same without a modifier {bare_large}; at equal time DVA's is "
    "{dva_long}.",
    "dva-no-ffn": "At equal width. At equal parameters the lead of DVA without the network over "
    "DVA with it is {no_net}, heads and W_O moving along (dva_matched.json). The network's removal "
    "costs {effect:2:ffn:noffn:standard} without a modifier and {effect:2:ffn:noffn:dva} with a "
    "learned one.",
    "dva-one-head": "'Many' heads are two of 32 at our size. Without a modifier, too, one head is "
    "ahead (it costs {effect:1:many:one:standard}): nothing that dynamic values replace.",
    "dva-learned": "A frozen random modifier costs {effect:0:standard:dva-random} against none, "
    "the learned one {effect:0:standard:dva}, over all 24 corners.",
    "lam-layer0": "The reason is right: equal gradients keep the gap at exactly 1, the initial one "
    "(tested by algebra in test_claims_rest.py). They look alike once they have grown: ours end at "
    "{weights:lambdas:STREAM:0} and {weights:lambdas:X0:0} after 500 steps, and at "
    "{weights:lambdas_long:STREAM:0} and {weights:lambdas_long:X0:0} after the article's 5,960. "
    "How far they grow is a matter of width as well.",
    "lam-unet": "After 500 of 5,960 steps, sixteen layers, three seeds: {weights:lambdas:SKIP:11}, "
    "{weights:lambdas:SKIP:10} and {weights:lambdas:SKIP:9}. After all 5,960, 12M tokens of books: "
    "{weights:lambdas_long:SKIP:11}, {weights:lambdas_long:SKIP:10} and "
    "{weights:lambdas_long:SKIP:9}, the largest where the article has its smallest. Where a weight "
    "settles, width and data decide as well: ours is 64, the article's 1,024.",
    "lam-v": "After 500 of 5,960 steps, sixteen layers: {value_gains:lambdas} from a start of .5. "
    "After all 5,960: {value_gains:lambdas_long}; {reach_6} reach 6 (three seeds). The summed "
    "rates would carry them by 58. Where they settle, width decides as well: ours is 64, the "
    "article's 1,024.",
    "lam-ve-low": "After all 5,960 steps: {weights:lambdas_long:TABLE:0:1:2:13:14} in the first "
    "five layers with a table, {weights:lambdas_long:TABLE:15} in the last. Layer 15 less the mean "
    "of the others {last_table_less:mean}, less the largest of them {last_table_less:max}. After "
    "500 steps: {weights:lambdas:TABLE:0:1:2:13:14:15}.",
    "lam-x0-high": "At the article's 5,960 steps in {outweighs:lambdas_long} of the 15 layers "
    "after the first, so in all but one or two of sixteen; the article's exceptions (8, 14, 15) "
    "are none of ours. After 500 steps in {outweighs:lambdas} of 15, with a constant rate in "
    "{outweighs:lambdas:modded-constant}.",
    "lam-x0-turns": "In {fell:lambdas} of 15 layers after 500 steps, by seed, and in "
    "{fell:lambdas_long} after the article's 5,960; largest after {turn} of that run, so over half "
    "of it rather than most.",
    "lam-early-x0": "After all 5,960 steps layers 1 to 7 less layers 8 to 15: {early_less_late}; "
    "{weights:lambdas_long:X0:1:2} in layers 1 and 2, {weights:lambdas_long:X0:14:15} in 14 and "
    "15. The same without the gap and with the window open. After 500 steps they were alike: "
    "{weights:lambdas:X0:1:2} and {weights:lambdas:X0:14:15}.",
    "lam-layer8": "Said of shares that sum to 1; its author calls the reason speculation. After "
    "all 5,960 steps the stream's share in our layer 8 is {stream_share:8}, less than one half. "
    "The weight itself is the smallest of layers 1 to 15 in {lowest:STREAM} runs: beside the mean "
    "of layers 1 to 13 {layer_8:modded}, and without the gap {layer_8:modded-whole}. The gap moves "
    "it by {gap_on_layer_8}, where the reason wants it raised. At 64 of width, not 1,024.",
    "lam-lowest": "Said of the weights themselves, where lam-layer8 is of shares. Layer 8's weight "
    "on the stream is ours, too: the smallest of layers 1 to 15 in {lowest:STREAM} runs. The rest "
    "is not: its weight on x0 in {lowest:X0}. Of fifteen weights, from the smallest, layer 15's "
    "stands at {rank_of_15:STREAM} on the stream and at {rank_of_15:X0} on x0, by seed.",
    "lam-schedule": "Half of it is reproduced: with a constant rate {fell:lambdas:modded-constant} "
    "of 15 layers turn back where {fell:lambdas} do (500 steps). With a constant window they turn "
    "back all the same: {fell:lambdas:modded-open} after 500 steps, {fell:lambdas_long:modded-open}"
    " where {fell:lambdas_long} do after the article's 5,960, there moved by {turn_moved} of the "
    "run. But our window is one of 128 tokens, the article's of 3,456, and a constant rate has no "
    "run of its length.",
    "lam-loss": "After the first tenth {weights_that_crossed} changes sign, so there is no "
    "crossing to watch. The held-out loss rises with the last opening of the window (by "
    "{rise:modded} in the long runs), and never with a constant one ({rise:modded-open}).",
    "new-after-shared": REPORTED
    + "After 500 steps, from 1 on the stream and 0 on x0, both normed, x0's share of the pair in "
    "the upper half is {x0_share:coef-shared:v}: the larger of the two on code alone, and nowhere "
    "twice the other. Their pair is of the block's whole input, ours stands in front of queries, "
    "keys and values.",
    "new-after-apart": REPORTED
    + "Values do ask for more of x0 than queries and keys, on both texts and in every seed. Its "
    "share in the upper half: values {x0_share:coef-apart:v}, queries {x0_share:coef-apart:q}, "
    "keys {x0_share:coef-apart:k}. Near 0 was foretold as below .2, which queries on code are not; "
    "and twice the stream's, values' is on code alone.",
    "new-after-depth": REPORTED
    + "What is said of values is reproduced: in the upper half the token is "
    "{x0_share:depth-apart:v} of what they read, more than queries and keys read of it, in every "
    "seed. What is said of these two is not: of the last three of the parts, more than if all were "
    "read evenly, queries read {last_read:q} and keys {last_read:k}.",
    "byp-large": "Our largest encoder (0.75M parameters) gains {f1_gain:6x96} points, but it is "
    "some 15 times smaller than the report's small one: nothing about large models.",
    "byp-alpha": "In the smallest encoder, which has one head, so by head is by layer. Of the "
    "dials' intervals against standard {dials_apart} excludes zero, about as chance would have it.",
}

ARGUMENTS = dict(STREAM=noted.STREAM, X0=noted.X0, SKIP=noted.SKIP, TABLE=noted.TABLE)
ARGUMENTS |= dict(mean=statistics.fmean, max=max)


def note(claim):
    """The note of a claim from the records, or None where it holds no numbers of ours."""
    if claim not in NOTES:
        return None
    return NOTES[claim].format_map(Computed())


class Words(str):
    """A name whose words stand behind colons, as format's specification."""

    def __format__(self, words):
        try:
            return computed(self, words.split(":") if words else [])
        except noted.NotRecorded:
            return "not recorded"


class Computed(dict):
    """What stands in braces, computed when it is asked for."""

    def __missing__(self, name):
        return Words(name)


def computed(name, words):
    if name in LEADS:
        return lead_with_seeds(*LEADS[name])
    if name in CHANGED_LEADS:
        both = [difference(*sides) for sides in CHANGED_LEADS[name]]
        return with_seeds(change(*both)) if all(map(len, both)) else "not recorded"
    found = getattr(noted, name)(*(int(w) if w.isdigit() else ARGUMENTS.get(w, w) for w in words))
    return found if isinstance(found, str) else noted.of(found)


def lead_with_seeds(ours, theirs, value="loss"):
    """A mean difference in words, with its interval, its seeds, and whether it is clear."""
    differences = difference(ours, theirs, value)
    if not len(differences):
        return "not recorded"
    return with_seeds(differences, " nats" if value == "loss" else "")


def difference(ours, theirs, value="loss"):
    """How far ours lie below theirs, by seed; none where a side is not recorded."""
    sides = [side(*one, value=value) for one in (ours, theirs)]
    return () if any(one is None for one in sides) else between(*sides)


def side(grid, cell, asked=None, value="loss"):
    table = pairs.runs_of(grid)
    if table.empty:
        return None
    if asked:
        rows = table.differs.map(json.loads)
        table = table[[asked.items() <= differs.items() for differs in rows]]
    return cell_by_seed(table, cell, value)


def with_seeds(differences, unit=" nats"):
    """ "0.019 nats (0.003 to 0.034, 3 seeds, clear)"."""
    row = as_row("", differences)
    mean, seeds = number(row["difference"]), f"{row['n']} seeds"
    if row["low"] is None:
        return f"{mean}{unit} ({seeds})"
    clear = "clear" if row["clear"] else "not clear"
    return f"{mean}{unit} ({number(row['low'])} to {number(row['high'])}, {seeds}, {clear})"
