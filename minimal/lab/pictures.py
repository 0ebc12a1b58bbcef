"""Which pictures do README and slides show? Redrawn from plans and records.

python -m minimal.lab.pictures        redraw them into slides/figures/
"""

from pathlib import Path

from minimal.data.files import CHECKOUT
from minimal.lab.figures import picture, recorded, sources_map

FIGURES = CHECKOUT / "slides" / "figures"

PICTURES = {
    "sources.svg": lambda: sources_map(),
    "sources-short.svg": lambda: sources_map(
        plans=[
            "standard",
            "resformer",
            "svformer",
            "row9",
            "bov",
            "vplus",
            "modded",
            "dva",
            "bypass",
        ],
        title="Where do the values come from?",
    ),
    "recorded.svg": lambda: recorded(),
}


def main():
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FIGURES / name).write_bytes(picture(draw(), Path(name).suffix[1:]))
        print(f"drew slides/figures/{name}")


if __name__ == "__main__":
    main()
