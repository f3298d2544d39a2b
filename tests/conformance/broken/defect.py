"""Defect: one broken peer, and the requirement that it must be failed for.

It imports the standard library alone: a broken client is a program that imports this, and should start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

P = TypeVar("P", bound=type)


class Defect(NamedTuple):
    """`peer` is the class of the broken peer; its docstring says in one line what it does wrong."""

    peer: Any
    requirement: str
    versions: tuple[int, ...]
    also: tuple[str, ...] = ()
    """Requirements that the same behaviour breaks inevitably, because one rule contains the other."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Options of the judge that the defect needs, such as `prompts`."""

    @property
    def name(self) -> str:
        return str(self.peer.__name__)

    @property
    def text(self) -> str:
        return (self.peer.__doc__ or "").strip().splitlines()[0]


class Defects:
    """The broken peers of one module.

    defects = Defects()

    @defects.add("PROMPT-V1-03", versions=(1,))
    class AnswersBeforeItsLastChunk(GoodAgent):
        \"""The response to the prompt comes before the last chunk.\"""
    """

    def __init__(self) -> None:
        self.all: list[Defect] = []

    def add(
        self, requirement: str, *, versions: tuple[int, ...], also: tuple[str, ...] = (), **options: Any
    ) -> Callable[[P], P]:
        def register(peer: P) -> P:
            self.all.append(Defect(peer, requirement, versions, also, options))
            return peer

        return register
