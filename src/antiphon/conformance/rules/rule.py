"""Rule: one pure function over a recording, and the facts about the connection that rules need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import UNSET, Struct

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.revisions import PINNED, has


class Facts(Struct, frozen=True):
    """What both sides agreed on, read from the recording itself.

    `judged` is the side whose frames are judged. `version` is that of the `initialize` answer.
    """

    judged: Role
    version: int
    client_capabilities: dict[str, Any]
    agent_capabilities: dict[str, Any]
    revision: str = PINNED

    def has(self, difference: str) -> bool:
        """Whether the revision of the peer has a difference of `revisions.tsv`."""
        return has(self.revision, difference)


class Finding(Struct, frozen=True):
    """One place in a recording where a requirement was kept or broken."""

    requirement: str
    ok: bool
    expected: str = ""
    frames: tuple[RecordedFrame, ...] = ()


class Rule(Struct, frozen=True):
    """`find` yields findings; none if the recording has no occasion for the rule."""

    requirements: tuple[str, ...]
    versions: tuple[int, ...]
    parties: tuple[Role, ...]
    find: Callable[[Recording, Facts], Iterator[Finding]]


class Rules:
    """The rules of one module, in the order in which they are written."""

    def __init__(self) -> None:
        self.all: list[Rule] = []

    def add(
        self, *ids: str, versions: tuple[int, ...] = (1, 2), parties: tuple[Role, ...] = (Role.AGENT,)
    ) -> Callable[
        [Callable[[Recording, Facts], Iterator[Finding]]], Callable[[Recording, Facts], Iterator[Finding]]
    ]:
        """Register a rule for the frames of the given parties."""

        def register(
            find: Callable[[Recording, Facts], Iterator[Finding]],
        ) -> Callable[[Recording, Facts], Iterator[Finding]]:
            self.all.append(Rule(ids, versions, parties, find))
            return find

        return register


def facts_of(recording: Recording, judged: Role, *, revision: str = PINNED) -> Facts | None:
    """Return the facts of a connection; `None` if `initialize` did not succeed on it."""
    for request in recording.of(Role.CLIENT):
        if request.method != "initialize" or not request.is_request:
            continue
        answer = recording.response_to(request)
        if answer is None or not isinstance(answer.result, dict):
            continue
        version = agreed_version(answer.result)
        return Facts(
            judged,
            version,
            _object(request, "params", "capabilities" if version == 2 else "clientCapabilities"),
            _object(answer, "result", "capabilities" if version == 2 else "agentCapabilities"),
            revision,
        )
    return None


def agreed_version(result: dict[str, Any]) -> int:
    """Return the version of an `initialize` result by number and shape: some v1 agents echo any number."""
    return 2 if result.get("protocolVersion") == 2 and "info" in result else 1


def _object(frame: RecordedFrame, *path: str) -> dict[str, Any]:
    value = frame.get(*path)
    return {} if value is UNSET or not isinstance(value, dict) else value
