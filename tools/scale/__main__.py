"""Simulate a cluster with the measured costs: `make sim-scale`, or `python -m tools.scale [--seed N]`.

Prints the tables, writes the plots to docs/scale/ and renews the tables in docs/scale.md. With another seed
or other costs it only prints.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.scale.costs import FILE, load
from tools.scale.report import SEED, renewed, report

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "scale.md"
PLOTS = DOCS / "scale"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.scale")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--costs", type=Path, default=FILE, metavar="FILE")
    asked = parser.parse_args()
    made = report(load(asked.costs), seed=asked.seed)
    for name, text in made.tables.items():
        print(f"{name}\n\n{text}")
    if (asked.seed, asked.costs) == (SEED, FILE):
        PLOTS.mkdir(exist_ok=True)
        for name, picture in made.plots.items():
            (PLOTS / f"{name}.svg").write_text(picture)
        PAGE.write_text(renewed(PAGE.read_text(), made.tables))
        print(f"written to {PLOTS.relative_to(DOCS.parent)} and {PAGE.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
