"""The measured costs that the simulation uses, as `python -m bench.cluster_costs` wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("costs.json")


class Cost(NamedTuple):
    value: float
    unit: str
    about: str


class Costs:
    """Costs by name, and the machine on which they were measured."""

    def __init__(self, machine: Mapping[str, object], table: Mapping[str, Cost]) -> None:
        self.machine = machine
        self.table = table

    def __getitem__(self, name: str) -> float:
        return self.table[name].value


def load(path: Path = FILE) -> Costs:
    read = json.loads(path.read_text())
    return Costs(read["machine"], {name: Cost(**row) for name, row in read["costs"].items()})
