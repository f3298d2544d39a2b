"""Options of a run of the judge."""

from __future__ import annotations

from msgspec import Struct

from antiphon.conformance.prompts import Prompts
from antiphon.conformance.revisions import PINNED


class Options(Struct, frozen=True):
    """How to judge.

    `only`: names of scenarios, areas or requirements; empty for all.
    `timeout`: seconds after which a missing frame counts as missing.
    `deadline`: seconds that one scenario gets; what it has not decided then is not tested.
    `seed`: for the choices that scenarios make at random.
    `jobs`: scenarios that run at the same time.
    """

    revision: str = PINNED
    prompts: Prompts = Prompts()
    only: tuple[str, ...] = ()
    timeout: float = 30.0
    deadline: float = 180.0
    seed: int = 0
    jobs: int = 4
