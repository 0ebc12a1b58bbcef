"""What does the course want to know, and which runs would tell? Grids in the order in which they should be answered."""

from dataclasses import dataclass, replace
from typing import Callable

from minimal.lab.evidence.curves import mixin_study, token_left
from minimal.training.run import Run

WAR = Run(
    size="tiny", corpus="war-and-peace", steps=500, evaluate=50, rows=371
)  # 1M tokens, all held-out rows


@dataclass
class Grid:
    """A question, and the runs that answer it. `cells` are dicts of Run fields; each is trained for every seed."""

    what: str
    cells: list
    seeds: tuple = (0, 1, 2)
    base: Run = WAR
    also: Callable = lambda result: {}  # more fields of a row, from the run's result

    def runs(self):
        """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
        for seed in self.seeds:
            for cell in self.cells:
                yield replace(self.base, seed=seed, **cell)


def plans(*names, **more):
    return [dict(plan=name, **more) for name in names]


THIRTEEN = (
    "standard",
    *(f"row{i}" for i in range(2, 14)),
    "bov",
    "bov-shared",
    "bov-fixed",
    "bov-every",
    "bov-keep",
    "vplus",
    "resformer",
    "resformer-learned",
    "svformer",
    "neutreno",
    "denseformer",
    "cla",
    "gqa",
    "modded",
    "dva",
    "bypass",
)

EQUAL = dict.fromkeys(
    ("alpha", "beta"), dict(lr=0.05, decay=0.0, betas=(0.9, 0.95))
)  # one treatment for both

SLIM = {
    "bov": 96,
    "bov-fixed": 96,
    "bov-keep": 85,
    "modded": 181,
}  # MLP width of 256 at equal parameters; a test counts

FACTORS = [
    f"{modifier}/{heads}/{ffn}/{wo}"
    for modifier in ("standard", "dva-random", "dva")
    for heads in ("one", "many")
    for ffn in ("ffn", "noffn")
    for wo in ("wo", "nowo")
]

DVA, BARE, FULL = "dva/one/noffn/nowo", "standard/one/noffn/nowo", "dva/many/ffn/wo"

AS_LARGE = {
    DVA: dict(width=94),
    BARE: dict(width=116),
    FULL: dict(hidden=192),
}  # parameters of standard; a test counts

AS_LONG = {
    DVA: 617,
    BARE: 992,
    FULL: 379,
}  # steps in the time of standard's 500: .81, .50 and 1.32 of its time a step

GRIDS = dict(
    thirteen_rows=Grid(
        "All 13 rows of Bank of Values' Table 1, its ablations and the other systems; tiny, 1M tokens",
        plans(*THIRTEEN),
    ),
    stdlib=Grid(
        "The same on the Python standard library",
        plans(*THIRTEEN),
        base=replace(WAR, corpus="stdlib"),
    ),
    confound=Grid(
        "The learning-rate confound: alpha and beta at one rate, without decay",
        plans("row2", "row6", "row9", "row11", "row13", "bov", overrides=EQUAL),
    ),
    parameters=Grid(
        "Are tables worth their parameters? The MLPs narrowed until a plan is as large as standard",
        [dict(plan=plan, changes=dict(hidden=hidden)) for plan, hidden in SLIM.items()],
    ),
    code=Grid(
        "The same two questions on the standard library: tables at equal parameters, gains at a slow rate",
        [dict(plan=plan, changes=dict(hidden=hidden)) for plan, hidden in SLIM.items()]
        + plans("row2", "bov", overrides=EQUAL),
        base=replace(WAR, corpus="stdlib"),
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
        "What makes SVFormer's lead in the llama style? A louder embedding, larger matrices, at one rate",
        [
            dict(plan=plan, recipe="resformer", lr=1e-3, warmup=0.1, style=style)
            for style in ("nanochat", "llama", "llama-loud", "llama-fan-in")
            for plan in ("standard", "svformer")
        ],
        also=token_left,
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
        "DVA, without its modifier, and beside all that it replaces: equal parameters, then equal time",
        [dict(plan=plan, changes=changes) for plan, changes in AS_LARGE.items()]
        + [dict(plan=plan, steps=steps) for plan, steps in AS_LONG.items()],
    ),
    windows=Grid(
        "Windows of 32 in three layers of four",
        plans("standard", "bov", "svformer", "resformer", changes=dict(windows=(32, 32, 32, 0))),
    ),
    lambdas=Grid(
        "The article's sixteen layers: the plain run, the window open, the rate constant, the gap moved, no gap",
        [
            dict(plan="modded", recipe=recipe)
            for recipe in ("modded", "modded-open", "modded-constant")
        ]
        + plans("modded-moved", "modded-whole", recipe="modded"),
        also=mixin_study,
        base=replace(WAR, style="modded", changes=dict(layers=16, windows="LSSSLSSSSSSLSSSL")),
    ),
    residuals=Grid(
        "What to carry upwards, and through which map: ResFormer's Figs 6 and 7",
        plans(
            "cross",
            "cross-mean",
            "cross-all",
            "identity",
            "residual-q",
            "residual-k",
            "resformer-neutreno",
        ),
    ),
    sharing=Grid(
        "What to share between layers: ResFormer's Figs 4, 10, 13 and 14",
        plans(
            "svformer-anchors",
            "svformer-gqa",
            "skipv1",
            "share-q",
            "share-k",
            "share-k2",
            "share-v2",
        ),
    ),
)
