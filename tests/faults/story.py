"""What a seed decides: who takes part, what they do and when, and when the agent is killed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from tests.faults.ledger import ChangeKind, Prompt

PROMPTS = 6
CHANGES = 5
FRAMES = 2000
"""About what one client hears of a run without a kill."""


@dataclass(frozen=True)
class Mix:
    name: str
    websocket: bool
    versions: tuple[int, ...]
    """Of the clients; the first one opens the session."""


MIXES = (
    Mix("a v2 client", False, (2,)),
    Mix("a v1 client", False, (1,)),
    Mix("two v2 clients", True, (2, 2)),
    Mix("a v2 and a v1 client", True, (2, 1)),
)


class Presence(StrEnum):
    JOIN = "join"
    LEAVE = "leave"


@dataclass(frozen=True)
class Act:
    """What one client does, once so many frames were heard since the process began."""

    at: int
    client: int
    deed: Prompt | ChangeKind | Presence


@dataclass(frozen=True)
class Kill:
    """Due once so many frames were heard; with `on_answer` it waits for the next answer and then comes at
    once: what was promised in that very moment has to hold."""

    after: int
    on_answer: bool


class Story:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.chance = random.Random(seed)
        self.mix = self.chance.choice(MIXES)
        # Only v2 tells when a turn ends that no request waits for: alone, a v1 client injects nothing.
        self._injects = 2 in self.mix.versions
        self._length = FRAMES * len(self.mix.versions)
        self.kills = [self._kill() for _ in range(self.chance.choice((1, 1, 2)))]

    def acts(self) -> list[Act]:
        """Everything that is done once, however many lives it takes."""
        asked = [self._act(self._prompt(number)) for number in range(PROMPTS)]
        kinds = (ChangeKind.REPLACE, ChangeKind.REPLACE, ChangeKind.MOVE, ChangeKind.REVOKE)
        changes = [self._act(self.chance.choice(kinds)) for _ in range(CHANGES * self._injects)]
        return sorted(asked + changes, key=lambda act: act.at)

    def comings_and_goings(self) -> list[Act]:
        """Of the second client, in one life: it joins late, may lose its connection and may come back."""
        if len(self.mix.versions) == 1:
            return []
        times = sorted(self.chance.randint(0, self._length // 2) for _ in range(3))
        deeds = [Presence.JOIN, Presence.LEAVE, Presence.JOIN][: self.chance.choice((1, 1, 3))]
        return [Act(at, 1, deed) for at, deed in zip(times, deeds, strict=False)]

    def _kill(self) -> Kill:
        on_answer = self.chance.random() < 0.4
        # What is asked is asked in the first half.
        return Kill(self.chance.randint(1, self._length // (2 if on_answer else 1)), on_answer)

    def _act(self, deed: Prompt | ChangeKind) -> Act:
        client = self.chance.randrange(len(self.mix.versions))
        return Act(self.chance.randint(0, self._length // 2), client, deed)

    def _prompt(self, number: int) -> Prompt:
        injected = self._injects and self.chance.random() < 0.5
        ways = ("queue", "queue", "steer") if injected else ("queue", "queue", "steer", "interrupt")
        return Prompt(f"prompt {number} of {self._seed}", self.chance.choice(ways), injected)
