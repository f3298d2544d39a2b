"""What one client was told of one session from its join on, as it came over the wire, link after link."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from antiphon.client import ClientSession
from antiphon.jsonrpc.lines import Received


@dataclass
class Record:
    client: str
    dialect: str
    joined: int
    """The last event that was there when it joined."""
    session: ClientSession
    whole: bool = False
    """Whether it goes to the end: a client that left has it as far as it came."""
    told: list[tuple[int, int | None, dict[str, Any]]] = field(default_factory=list)
    """Number, piece and update of everything that had a number."""


class Ear:
    """A tap that keeps every numbered update by its session, and counts what comes."""

    def __init__(self) -> None:
        self.told: dict[str, list[tuple[int, int | None, dict[str, Any]]]] = {}
        self.heard = 0

    def __call__(self, way: str, frame: Received) -> None:
        if way != "in":
            return
        self.heard += 1
        if not isinstance(frame, bytes) or b'"session/update"' not in frame:
            return
        params = json.loads(frame)["params"]
        ours = (params.get("_meta") or {}).get("antiphon") or {}
        if isinstance(ours.get("seq"), int):
            told = self.told.setdefault(params["sessionId"], [])
            told.append((ours["seq"], ours.get("part"), params["update"]))
