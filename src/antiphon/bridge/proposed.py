"""The two spellings of v2: `state_update` and `{messageId}` as published, `state_change` and `{}` as proposed
(SD-01..05).

Readers accept both and continue with the published one; a writer uses one.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TypeVar

from msgspec import structs

from antiphon.bridge.prompts import RequestId, read_message_id
from antiphon.engine.recent import Recent
from antiphon.engine.turn import as_state_update
from antiphon.schema import v2
from antiphon.schema.v2.proposed import PromptTaken, StateChange
from antiphon.schema.wire import Unknown

PUBLISHED = "state_update"
PROPOSED = "state_change"
_State = TypeVar("_State", bound=v2.StateUpdate)


def normalize(update: v2.SessionUpdate) -> v2.SessionUpdate:
    """Return an update in the published spelling."""
    if isinstance(update, v2.SessionStateUpdate):
        return normalize_state(update)
    if isinstance(update, StateChange):
        return as_state_update(update)
    if isinstance(update, v2.SubagentUpdate) and isinstance(update.state, v2.StateUpdate):
        state = normalize_state(update.state)
        return update if state is update.state else structs.replace(update, state=state)
    if isinstance(update, Unknown) and update.get("sessionUpdate") in (PUBLISHED, PROPOSED):
        return _respelled(update, PUBLISHED, "stop_reason", "stopReason")
    return update


def normalize_state(state: _State) -> _State:
    """Return a state with its reason under the published key, which has precedence (SD-02)."""
    if state.proposed_reason is None:
        return state
    reason = state.stop_reason or state.proposed_reason
    return structs.replace(state, stop_reason=reason, proposed_reason=None)


def as_proposed(update: v2.SessionUpdate) -> StateChange | Unknown | None:
    """Return a state update in the proposed spelling; `None` if both spellings are the same."""
    if isinstance(update, v2.SessionStateUpdate):
        return StateChange(
            state=update.state,
            stop_reason=update.stop_reason,
            error=update.error,
            usage=update.usage,
            background=update.background,
            meta=update.meta,
        )
    if isinstance(update, Unknown) and update.get("sessionUpdate") == PUBLISHED:
        return _respelled(update, PROPOSED, "stopReason", "stop_reason")
    return None


SEEN = 4096
"""How many user messages are remembered: a repeated one is not paired again."""


class Insertions:
    """Pairs our prompts with their messages, for an agent that answers `{}` (C-01, SD-05).

    Such an answer names no message: the user message does, before or after it (PROMPT-V2-05). Prompts are
    inserted in the order they were sent (PROMPT-V2-32), so both are paired in their order. A message of
    another client that comes in between cannot be recognized, except from an agent of ours, which names the
    message in the `_meta` of its answer.
    """

    __slots__ = ("_messages", "_open", "_seen", "_unnamed")

    def __init__(self) -> None:
        self._open: dict[RequestId, None] = {}
        """Our prompts that are not paired with a message yet."""
        self._unnamed: deque[RequestId] = deque()
        """The open prompts that were answered with `{}`."""
        self._messages: deque[str] = deque()
        """The user messages since then that belong to no prompt yet."""
        self._seen: Recent[str, None] = Recent(SEEN)

    def sent(self, request: RequestId) -> None:
        self._open[request] = None

    def refused(self, request: RequestId) -> None:
        """A prompt was answered with an error."""
        self._open.pop(request, None)
        self._forget_messages()

    def answered(
        self, request: RequestId, answer: v2.PromptResponse | PromptTaken
    ) -> list[tuple[RequestId, v2.PromptResponse]]:
        """Note an answer; return the prompts whose messages are known by it, with the published answers."""
        named = read_message_id(answer)
        if isinstance(answer, PromptTaken) and named is not None:
            answer = v2.PromptResponse(message_id=v2.MessageId(named), meta=answer.meta)
        if isinstance(answer, PromptTaken):
            self._unnamed.append(request)
            return self._paired()
        self._open.pop(request, None)
        self._seen[answer.message_id] = None
        with suppress(ValueError):
            self._messages.remove(answer.message_id)
        self._forget_messages()
        return [(request, answer)]

    def update_received(self, update: v2.SessionUpdate) -> list[tuple[RequestId, v2.PromptResponse]]:
        """Note an update; return the prompts whose messages are known by it."""
        if not isinstance(update, v2.UserMessage | v2.UserMessageChunk) or update.message_id in self._seen:
            return []
        self._seen[update.message_id] = None
        if self._open:
            self._messages.append(update.message_id)
        return self._paired()

    def _paired(self) -> list[tuple[RequestId, v2.PromptResponse]]:
        pairs = []
        while self._unnamed and self._messages:
            request, id = self._unnamed.popleft(), self._messages.popleft()
            self._open.pop(request, None)
            pairs.append((request, v2.PromptResponse(message_id=v2.MessageId(id))))
        self._forget_messages()
        return pairs

    def _forget_messages(self) -> None:
        if not self._open:
            self._messages.clear()


def _respelled(update: Unknown, tag: str, old: str, new: str) -> Unknown:
    """Return an update of unknown state, whole, in the other spelling."""
    respelled = Unknown(update)
    respelled["sessionUpdate"] = tag
    if old in respelled:
        reason = respelled.pop(old)
        respelled.setdefault(new, reason)
    return respelled
