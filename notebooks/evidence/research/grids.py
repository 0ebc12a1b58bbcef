"""What does the course want to know, and which runs would tell? Grids in the order in which they
should be answered.

A grid's plans and seeds are committed before its first run, with the reason beside them: whoever
looks first and then adds seeds where it suits will find what suits. One that grew is exploratory.
"""

from dataclasses import dataclass, replace

from evidence.research import (
    doors,
    frontier,
    passes,  # noqa: F401 whose twists of plans are then known
    title,
    value_path,
    why,
)
from evidence.research.cells import (
    AS_LARGE,
    AS_LONG,
    CODE,
    EQUAL,
    FACTORS,
    FIVE,
    SIXTEEN,
    SLIM,
    SLIM_AT,
    SLOWED,
    TEN,
    THIRTEEN,
    UNDECIDED,
    WAR,
    WRITING,
    for_steps,
    of_width,
    plans,
)
from evidence.research.studies import (
    gain_study,
    held_out,
    layer_shares,
    mixin_study,
    own_mixture,
    token_left,
)
from minimal.compare import runs
from minimal.training.run import Run

ASKED, EXPLORATORY = "asked before", "exploratory"


@dataclass
class Grid(runs.Grid):
    """A grid of ours: on War and Peace where it names no other text."""

    base: Run = WAR
    on: str = ""  # what the machine of every row must say of itself
    kind: str = ASKED  # or EXPLORATORY: chosen after looking at other results
    expected: str = ""  # what was written down before its first run

    def row(self, run, result):
        fix = f"{result['folder']} is of another machine, name another folder in MINIMAL_RUNS"
        self.check_machine(result.get("machine", "none"), fix)
        return super().row(run, result)

    def check_machine(self, machine, fix):
        """Refuse rows of a machine on which this grid is not to be recorded."""
        if self.on not in machine:
            raise ValueError(f"wanted a machine that says {self.on}, got {machine}: {fix}")


GRIDS = dict(
    thirteen_rows=Grid(
        "All 13 rows of Bank of Values' Table 1, its ablations and the other systems; "
        "tiny, 1M tokens",
        plans(*THIRTEEN),
    ),
    stdlib=Grid(
        "The same on the Python standard library",
        plans(*THIRTEEN),
        base=CODE,
    ),
    confound=Grid(
        "The learning-rate confound: alpha and beta at one rate, without decay",
        plans("row2", "row6", "row9", "row11", "row13", "bov", overrides=EQUAL),
        kind=EXPLORATORY,
    ),
    parameters=Grid(
        "Are tables worth their parameters? The MLPs narrowed until a plan is as large as standard",
        [dict(plan=plan, changes=dict(hidden=hidden)) for plan, hidden in SLIM.items()],
        kind=EXPLORATORY,
    ),
    code=Grid(
        "The same two questions on the standard library: tables at equal parameters, gains at a "
        "slow rate",
        [dict(plan=plan, changes=dict(hidden=hidden)) for plan, hidden in SLIM.items()]
        + plans("row2", "bov", overrides=EQUAL),
        base=CODE,
        kind=EXPLORATORY,
    ),
    one_layer=Grid("x0 W_V in one layer at a time", plans(*(f"row9@{at}" for at in range(12)))),
    critical_point=Grid(
        "SVFormer against standard: learning rates, warm-ups, styles",
        [
            dict(plan=plan, recipe="resformer", lr=lr, warmup=warmup, style=style)
            for style in ("nanochat", "llama")
            for lr in (3e-4, 1e-3, 3e-3, 1e-2)
            for warmup in (0.01, 0.1, 0.4)
            for plan in ("standard", "svformer")
        ],
    ),
    start=Grid(
        "What makes SVFormer's lead in the llama style? A louder embedding, larger matrices, at "
        "one rate",
        [
            dict(plan=plan, recipe="resformer", lr=1e-3, warmup=0.1, style=style)
            for style in ("nanochat", "llama", "llama-loud", "llama-fan-in")
            for plan in ("standard", "svformer")
        ],
        also=token_left,
        kind=EXPLORATORY,
    ),
    lengths=Grid(
        "ResFormer and SVFormer at three lengths, constant tokens a batch",
        [
            dict(plan=plan, context=context, batch=2048 // context)
            for context in (64, 128, 256)
            for plan in ("standard", "resformer", "svformer")
        ],
    ),
    sizes=Grid(
        "ResFormer at four depths",
        [
            dict(plan=plan, changes=dict(layers=layers))
            for layers in (3, 6, 12, 18)
            for plan in ("standard", "resformer")
        ],
    ),
    dva_factorial=Grid(
        "What causes DVA's gain? Modifier x heads x feed-forward net x W_O, equal width and tokens",
        plans(*FACTORS),
    ),
    dva_matched=Grid(
        "DVA, without its modifier, and beside all that it replaces: equal parameters, then equal "
        "time",
        [dict(plan=plan, changes=changes) for plan, changes in AS_LARGE.items()]
        + [dict(plan=plan, steps=steps) for plan, steps in AS_LONG.items()],
    ),
    windows=Grid(
        "Windows of 32 in three layers of four",
        plans("standard", "bov", "svformer", "resformer", changes=dict(windows=(32, 32, 32, 0))),
    ),
    lambdas=Grid(
        "The article's sixteen layers: the plain run, the window open, the rate constant, the gap "
        "moved, no gap",
        [
            dict(plan="modded", recipe=recipe)
            for recipe in ("modded", "modded-open", "modded-constant")
        ]
        + plans("modded-moved", "modded-whole", recipe="modded"),
        also=mixin_study,
        base=SIXTEEN,
    ),
    residuals=Grid(
        "What to carry upwards, and through which map: ResFormer's Figs 6 and 7",
        [
            *plans("cross", "cross-mean", "cross-all", "identity"),
            *plans("residual-q", "residual-k", "resformer-neutreno"),
        ],
    ),
    sharing=Grid(
        "What to share between layers: ResFormer's Figs 4, 10, 13 and 14",
        [
            *plans("svformer-anchors", "svformer-gqa", "skipv1"),
            *plans("share-q", "share-k", "share-k2", "share-v2"),
        ],
    ),
    ten_seeds_code=Grid(
        "The undecided systems with ten seeds, on the Python standard library",
        plans(*UNDECIDED),
        seeds=TEN,
        base=CODE,
    ),
    ten_seeds_novel=Grid(
        "The undecided systems with ten seeds, on War and Peace", plans(*UNDECIDED), seeds=TEN
    ),
    # What is rounding worth? Runs of ten_seeds_code again, with sums in another order: PyTorch's
    # kernels for AVX2 in place of AVX512. Fifteen twins tell a root mean square to a fifth.
    noise_code=Grid(
        "Three systems of ten_seeds_code again with another order of sums: the noise floor",
        plans("standard", "bov-fixed", "resformer"),
        seeds=FIVE,
        base=CODE,
        on="AVX2",
    ),
    # All systems, five seeds: ten_seeds_novel was made on a GPU, and the gains of the novel on a
    # processor, where their rivals at the rate 0.5 have to come from.
    noise_novel=Grid(
        "The systems of ten_seeds_novel, five seeds again on another machine: the noise floor",
        plans(*UNDECIDED),
        seeds=FIVE,
        on="AVX512",
    ),
    # Is it the value, or the gradient's short way home? ResFormer's first layer and row 9's x0 with
    # that way cut. Five seeds: half of ResFormer's lead on code is .03, and three just tell that.
    controls_code=Grid(
        "Is it the value, or the gradient's short way home? ResFormer, row 9 with it cut; code",
        plans("standard", "resformer", "resformer/detached", "row9", "x0-detach"),
        seeds=FIVE,
        base=CODE,
    ),
    controls_novel=Grid(
        "ResFormer and ResFormer with the gradient through the first layer's values cut; novel",
        plans("standard", "resformer", "resformer/detached"),
        seeds=FIVE,
        expected="as on code: detached, ResFormer keeps less than half of its lead",
    ),
    # Five seeds: with three the gains of the two texts lay 5 to 13 standard errors apart, which is
    # plenty; but the losses go with them, and their intervals are half as wide with five.
    gains_code=Grid(
        "Do learned gains stay open at a tenth and a hundredth of their rate? On code",
        SLOWED,
        seeds=FIVE,
        base=CODE,
        also=gain_study,
    ),
    gains_novel=Grid(
        "Do learned gains stay open at a tenth and a hundredth of their rate? On War and Peace",
        SLOWED,
        seeds=FIVE,
        also=gain_study,
    ),
    # A gain alone is not identified: how much does attention write at the rate 0.5? Asked after
    # the gains were seen; the runs are those of other grids, measured again.
    shares_code=Grid(
        "How much does attention write where a gain was learned at the rate 0.5? On code",
        plans(*WRITING),
        base=CODE,
        kind=EXPLORATORY,
        also=layer_shares,
    ),
    shares_novel=Grid(
        "How much does attention write where a gain was learned at the rate 0.5? On the novel",
        plans(*WRITING),
        kind=EXPLORATORY,
        also=layer_shares,
    ),
    # Three seeds: what is asked is the shape of a curve over an eightfold budget. 4,000 steps read
    # the library 2.4 times and half of the books; War and Peace they would read 7 times.
    budgets_code=Grid(
        "Do leads melt? 500 to 4,000 steps on code", for_steps(500, 1000, 2000, 4000), base=CODE
    ),
    budgets_novels=Grid(
        "Do leads melt? 500 to 4,000 steps on the folder of books",
        for_steps(500, 1000, 2000, 4000),
        base=replace(WAR, corpus="books"),
    ),
    # Three seeds, and code alone: tables pay there, and what is asked is whether that shrinks as
    # blocks outgrow tables. Rates stay those of d12 at every width.
    widths_code=Grid(
        "Do tables pay in wider models? 12 layers of 64, 128 and 192 on code",
        [cell for width in SLIM_AT for cell in of_width(width)],
        base=CODE,
    ),
    # Three seeds: a run costs twelve of the others, and gap and window have no rival to be paired
    # with but each other. 12M tokens are three quarters of one pass over the books.
    lambdas_long=Grid(
        "The article's sixteen layers for its 5,960 steps: plain, without the gap, the window open",
        [
            *plans("modded", "modded-whole", recipe="modded"),
            *plans("modded", recipe="modded-open"),
        ],
        also=mixin_study,
        base=replace(SIXTEEN, corpus="books", steps=5960, evaluate=298),
    ),
)

# Three seeds, as the grids of all plans have: what is looked for is larger than the .03 nats that
# three tell apart, and what they leave undecided goes to ten. 500 steps, so that the rivals' runs
# are those that are recorded already.
for name, (what, cells) in frontier.QUESTIONS.items():
    for text, base in dict(code=CODE, novel=WAR).items():
        also = frontier.depth_study
        kind = EXPLORATORY if name in frontier.AFTER_LOOKING else ASKED
        GRIDS[f"{name}_{text}"] = Grid(f"{what}; {text}", cells, base=base, also=also, kind=kind)

# Three seeds: the prediction is an order of nine texts, and each text counts once, by its mean; the
# leads lay .12 nats apart on the two texts that were seen, several times what three seeds tell
# apart. A run that two of these grids share is trained once.
for name, corpus in why.CORPUS_OF.items():
    GRIDS[f"why_text_{name}"] = Grid(
        why.question(name),
        why.ON_A_TEXT,
        base=replace(WAR, corpus=corpus),
        kind=EXPLORATORY if name in why.SEEN else ASKED,
    )
for name in why.SEEN:
    GRIDS[f"why_vocab_{name}"] = Grid(
        f"Do tables pay by vocabulary? 258, 1,024 and 4,096 on {name}; exploratory",
        why.IN_VOCABULARIES,
        base=replace(WAR, corpus=why.CORPUS_OF[name]),
        kind=EXPLORATORY,
    )

# Three seeds choose a rate: neighbours differ by less than seeds do, and then the choice hardly
# matters; what is decided at the chosen rates gets five.
RATES_TRIED = dict(
    tuning=(
        "A fair start: matrices and what a plan adds at half, once and twice the rate",
        title.TUNING,
        title.EXPECTED,
    ),
    tuning_third=(
        "The rates of x0 W_V in the last third: half, once and twice the recipe's",
        title.TUNING_THIRD,
        title.EXPECTED_THIRD,
    ),
    tuning_half=(
        "The rates of half of V beside x0 W_V in the last third: half, once and twice the recipe's",
        title.TUNING_HALF,
        title.EXPECTED_HALF,
    ),
    tuning_bank=(
        "The rates of Bank of Values: matrices, tables and learned gains",
        title.TUNING_BANK,
        title.EXPECTED_BANK,
    ),
    tuning_first=(
        "The rates of row5 and NeuTRENO, which use the first layer's V: half, once and twice",
        title.TUNING_FIRST,
        title.EXPECTED_FIRST,
    ),
    tuning_keep=(
        "The rates of tables beside V: matrices, tables and learned weights",
        title.TUNING_KEEP,
        title.EXPECTED_KEEP,
    ),
    tuning_gain=(
        "The rates of x0 W_V with a learned gain in the last third: matrices and gains",
        title.TUNING_GAIN,
        title.EXPECTED_GAIN,
    ),
    tuning_v1_gain=(
        "The rates of the first layer's V with a learned gain in the last third",
        title.TUNING_V1_GAIN,
        title.EXPECTED_V1_GAIN,
    ),
    tuning_own_gain=(
        "The rates of V with a learned gain in the last third: matrices and gains",
        title.TUNING_OWN_GAIN,
        title.EXPECTED_OWN_GAIN,
    ),
    tuning_open=(
        "The rates of V with learned weights beside V1 and beside x0 W_V (row11, row13)",
        title.TUNING_OPEN,
        title.EXPECTED_OPEN,
    ),
    tuning_engram=(
        "The rates of Engram, which reads a table into the stream: matrices and tables",
        title.TUNING_ENGRAM,
        title.EXPECTED_ENGRAM,
    ),
)
for question, (what, cells, expected) in RATES_TRIED.items():
    for name, base in title.BASE_OF.items():
        GRIDS[f"{question}_{name}"] = Grid(
            f"{what}; {name}", cells, base=base, also=held_out, expected=expected
        )

AROUND_THE_CHOSEN = dict(
    tuning_beyond=(
        "One rate beyond the last that was tried, where the last was the best",
        title.ONE_FURTHER,
        title.EXPECTED_BEYOND,
    ),
    tuning_finer=(
        "Half a step of rates to both sides of what standard and x0 W_V chose",
        title.FINER,
        title.EXPECTED_FINER,
    ),
)
for name, base in title.BASE_OF.items():
    for question, (what, cells, expected) in AROUND_THE_CHOSEN.items():
        GRIDS[f"{question}_{name}"] = Grid(
            f"{what}; {name}", cells[name], base=base, also=held_out, expected=expected
        )

for plan, by_text in title.FURTHER_LATER.items():
    for name, cells in by_text.items():
        GRIDS[f"tuning_beyond_{plan}_{name}"] = Grid(
            f"One rate beyond the last that was tried for {plan}; {name}",
            cells,
            base=title.BASE_OF[name],
            also=held_out,
            expected=title.EXPECTED_FURTHER[plan],
        )

# On other seeds than those that chose the rates: a choice favours whom their noise favoured. Ten
# where three left both leads open; five of these for the main table of systems, each at its own
# best, and for their comparison with tables at equal parameters.
AT_CHOSEN_RATES = dict(
    fair=(
        "A fair start, decided: standard and x0 W_V, each at the rates that it chose",
        title.FAIR,
        title.FRESH,
        title.EXPECTED_FAIR,
    ),
    fair_finer=(
        "A fair start, decided: standard and x0 W_V at rates half a step finer",
        title.FINER_FAIR,
        title.FRESH,
        title.EXPECTED_FINER,
    ),
    at_its_best=(
        "Systems, each at the rates that it chose",
        title.AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_AT_ITS_BEST,
    ),
    as_wide=(
        "Standard as large as tables in the last third, at standard's own best rates",
        title.AS_WIDE,
        title.FRESH[:5],
        title.EXPECTED_AS_WIDE,
    ),
    third_at_its_best=(
        "x0 W_V in the last third, at the rates that it chose",
        title.THIRD_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_THIRD_AT_ITS_BEST,
    ),
    half_at_its_best=(
        "Half of V beside x0 W_V in the last third, at the rates that it chose",
        title.HALF_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_HALF_AT_ITS_BEST,
    ),
    bank_at_its_best=(
        "Bank of Values, at the rates that it chose",
        title.BANK_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_BANK_AT_ITS_BEST,
    ),
    first_at_its_best=(
        "row5 and NeuTRENO, which use the first layer's V, at the rates that they chose",
        title.FIRST_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_FIRST_AT_ITS_BEST,
    ),
    keep_at_its_best=(
        "Tables beside V, at the rates that they chose",
        title.KEEP_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_KEEP_AT_ITS_BEST,
    ),
    gain_at_its_best=(
        "x0 W_V with a learned gain in the last third, at the rates that it chose",
        title.GAIN_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_GAIN_AT_ITS_BEST,
    ),
    v1_gain_at_its_best=(
        "The first layer's V with a learned gain in the last third, at the rates that it chose",
        title.V1_GAIN_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_V1_GAIN_AT_ITS_BEST,
    ),
    own_gain_at_its_best=(
        "V with a learned gain in the last third, at the rates that it chose",
        title.OWN_GAIN_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_OWN_GAIN_AT_ITS_BEST,
    ),
    open_at_its_best=(
        "V with learned weights beside V1 and beside x0 W_V, at the rates that they chose",
        title.OPEN_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_OPEN_AT_ITS_BEST,
    ),
    engram_at_its_best=(
        "Engram, which reads a table into the stream, at the rates that it chose",
        title.ENGRAM_AT_ITS_BEST,
        title.FRESH[:5],
        title.EXPECTED_ENGRAM_AT_ITS_BEST,
    ),
)
for question, (what, cells, seeds, expected) in AT_CHOSEN_RATES.items():
    for name, base in title.BASE_OF.items():
        GRIDS[f"{question}_{name}"] = Grid(
            f"{what}; {name}",
            cells[name],
            seeds=seeds,
            base=base,
            also=held_out,
            expected=expected,
        )

# Five seeds: first looks lie .03 nats apart on the novel, and five tell .02. At the recipe's rates.
ANSWERS = dict(
    dose=("In how many layers may values be of the token alone?", title.DOSE, title.EXPECTED_DOSE),
    content_gradient=(
        "Is it what the value says, or the gradient's way home? V1 and x0, straight through",
        title.CONTENT_GRADIENT,
        title.EXPECTED_CONTENT,
    ),
    who_needs=(
        "Query, key or value: who needs the stream? In all layers and in the last third",
        title.WHO_NEEDS,
        title.EXPECTED_WHO,
    ),
)
for question, (what, cells, expected) in ANSWERS.items():
    for name, base in title.BASE_OF.items():
        GRIDS[f"{question}_{name}"] = Grid(
            f"{what}; {name}", cells, seeds=FIVE, base=base, also=held_out, expected=expected
        )

# Three seeds, since a run costs four of the others; code alone, where 500 steps showed something.
GRIDS["content_gradient_long_code"] = Grid(
    f"Content or gradient after {title.LONGER:,} steps; code",
    title.CONTENT_GRADIENT_LONG,
    base=title.BASE_OF["code"],
    also=held_out,
    expected=title.EXPECTED_CONTENT_LONG,
)

# On a GPU: `python -m evidence.research --record answer_d12`, two of them side by side, so that one
# trains while the other compiles.
GRIDS["answer_d12"] = Grid(
    "Values of the token alone in d12, 46M tokens of code",
    title.ANSWER_AT_D12,
    base=title.AT_D12,
    on="NVIDIA",
    expected=title.EXPECTED_AT_D12,
)
for name, (what, cells, expected) in title.MORE_AT_D12.items():
    GRIDS[name] = Grid(what, cells, base=title.AT_D12, on="NVIDIA", expected=expected)

# The two ends of the dose alone. Five seeds where a run is short, three where it costs eight.
for name, (where, corpus, shared, seeds) in title.ELSEWHERE.items():
    GRIDS[name] = Grid(
        f"Does the lead of values of the token hold elsewhere? {where}",
        plans("standard", "x0-v", **shared),
        seeds=range(seeds),
        base=replace(title.BASE_OF["code"], corpus=corpus),
        also=held_out,
        expected=title.EXPECTED_ELSEWHERE,
    )

# Five seeds, as the others have. Plans of our own: no checkpoint holds their code.
for name, base in title.BASE_OF.items():
    GRIDS[f"own_mixture_{name}"] = Grid(
        "Does each of query, key and value choose its own mixture of stream and token, or of the "
        f"layers below? {name}",
        doors.CELLS,
        seeds=FIVE,
        base=base,
        also=own_mixture,
        expected=doors.EXPECTED,
    )

# The frontier of the value path: five seeds, as the answers have. Foretold by intervals, as data.
for question, (what, cells) in value_path.VALUE_PATH.items():
    for name, base in title.BASE_OF.items():
        GRIDS[f"{question}_{name}"] = Grid(
            f"{what}; {name}",
            cells,
            seeds=FIVE,
            base=base,
            also=held_out,
            expected=value_path.expected(question, name),
        )
