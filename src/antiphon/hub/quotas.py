"""Quotas of a hub: how much may wait in the queues of its sessions."""

from __future__ import annotations

from collections.abc import Mapping

from antiphon.engine.prompt_states import PromptState
from antiphon.hub.access.limits import HubLimits, limited
from antiphon.server.access import PolicySession

Key = tuple[PolicySession, str]
"""A prompt, by its session and its message id."""


class QueuedBytes:
    """How much may wait in the queues of a hub's sessions, per session and per token.

    Queued prompts are kept in memory, and every client that follows the queue gets all of them. A prompt that
    waits alone is bounded by the size of a message only.
    """

    def __init__(self, limits: HubLimits) -> None:
        self._limits = limits
        self._of: dict[str, dict[Key, int]] = {}
        """The prompts that wait, by the names of the tokens that wrote them last."""
        self._elsewhere: dict[str, Mapping[str, int]] = {}
        """By hub: the bytes that wait there, by the names of tokens."""

    def set_elsewhere(self, hub: str, queued: Mapping[str, int]) -> None:
        """Note how many bytes wait at another hub, by the names of tokens."""
        self._elsewhere.pop(hub, None)
        if queued:
            self._elsewhere[hub] = queued

    def waiting(self) -> dict[str, int]:
        """Return the bytes that wait here, by the names of tokens."""
        totals = {
            token: sum(size for key, size in own.items() if _waits(key)) for token, own in self._of.items()
        }
        return {token: total for token, total in totals.items() if total}

    def take(self, token: str, session: PolicySession, message_id: str, size: int) -> None:
        """Count a prompt that is about to wait, or an edit of one. Raises `RequestError` over a limit."""
        limits, waiting = self._limits, session.fold.prompts.queued
        others = [len(entry.raw_content) for entry in waiting if entry.message_id != message_id]
        if len(others) >= limits.queued_prompts:
            raise limited("queued_prompts", f"{len(others)} prompts wait in this session, which is the limit")
        if others and sum(others) + size > limits.queued_bytes:
            raise limited(
                "queued_bytes",
                f"{sum(others)} bytes of prompts wait in this session; with {size} more there would be over "
                f"{limits.queued_bytes}",
            )
        key = (session, message_id)
        own = {each: n for each, n in self._of.get(token, {}).items() if _waits(each) and each != key}
        held = sum(own.values()) + sum(queued.get(token, 0) for queued in self._elsewhere.values())
        if held and held + size > limits.queued_bytes_per_token:
            raise limited(
                "queued_bytes_per_token",
                f"{held} bytes of prompts of this token wait; with {size} more there would be over "
                f"{limits.queued_bytes_per_token}",
            )
        for others_own in self._of.values():
            others_own.pop(key, None)
        self._of[token] = {**own, key: size}
        self._of = {name: prompts for name, prompts in self._of.items() if prompts}


def _waits(key: Key) -> bool:
    session, message_id = key
    entry = session.fold.prompts.get(message_id)
    return not session.gone and entry is not None and entry.state is PromptState.QUEUED
