"""AgentDialect: one session of an agent in v2 terms, whatever version the agent speaks.

An `AgentDialect` is given what was sent and received, in order. It returns v2 updates and events about
prompts. `dialect_v1` and `dialect_v2` have the implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import UNSET, Struct

from antiphon.client.protocol.turn_end import TurnEnd
from antiphon.errors import ErrorObject, InvalidResult
from antiphon.schema import v2
from antiphon.schema.updates import TextChunk
from antiphon.schema.v1 import optins
from antiphon.schema.v2.proposed import PromptTaken

STREAMED = frozenset([v2.AgentMessageChunk, v2.AgentThoughtChunk])
"""The most frequent updates. They say nothing about turns or prompts, and all dialects spell them alike."""


USER_UPDATES = (v2.UserMessage, v2.UserMessageChunk)


class PromptNamed(Struct, frozen=True):
    """The message id of the prompt of a call is known."""

    call: int
    message_id: str


class PromptEnded(Struct, frozen=True):
    """The prompt of a call has ended, whatever else the session works on."""

    call: int
    end: TurnEnd


class CompletionReceived(Struct, frozen=True):
    """The `turn_complete` of a call came before its response: that follows at once, or never."""

    call: int


class OtherTurnEnded(Struct, frozen=True):
    """The turn that was open has ended, and it was not the turn of a prompt that is still open."""

    end: TurnEnd


PromptEvent = PromptNamed | PromptEnded | CompletionReceived | OtherTurnEnded
AgentEvent = v2.SessionUpdate | PromptEvent
PROMPT_EVENTS = (PromptNamed, PromptEnded, CompletionReceived, OtherTurnEnded)


class PermissionQuestion(Struct, frozen=True):
    """A permission request in v2 terms. `answer` turns an outcome into a response of the agent's version."""

    params: v2.RequestPermissionRequest | None
    answer: Callable[[v2.RequestPermissionOutcome], Any]
    updates: Sequence[v2.SessionUpdate] = ()


class AgentDialect(Protocol):
    """One session of an agent, in v2 terms."""

    answers_at_end: bool
    """Whether the agent answers a prompt when its turn ends, and not when it accepts the prompt."""

    reports_every_end: bool
    """Whether the agent reports the end of a turn that no request of this client opened."""

    def prompt_params(self, params: v2.PromptRequest) -> Any:
        """The params of `session/prompt` in the agent's version. Raises `LocalError`."""

    def prompt_sent(self, call: int, content: list[v2.ContentBlock]) -> Sequence[AgentEvent]: ...

    def read_update(self, update: Any) -> Sequence[AgentEvent]: ...

    def name_text_chunks(self, chunks: Sequence[TextChunk]) -> bool:
        """Set the message id of each chunk. Returns False if each has to go through `read_update`."""

    def prompt_answered(self, call: int, result: Any) -> Sequence[AgentEvent]: ...

    def prompt_failed(self, call: int, error: ErrorObject) -> Sequence[AgentEvent]: ...

    def cancel_id(self, message_id: str | None) -> str | None:
        """The message id by which the agent knows the turn of a prompt; None if it knows none."""

    def cancel_sent(self) -> None: ...

    def stop_waiting(self, call: int | None = None) -> Sequence[AgentEvent]:
        """End prompts of which only one of response and `turn_complete` came: of one call, or all."""

    def link_lost(self) -> Sequence[AgentEvent]: ...

    def restart(self) -> None:
        """The agent is about to replay the session from its beginning."""

    def permission_asked(self, params: Any) -> PermissionQuestion: ...

    def question_opened(self, question_id: str, tool_call_id: str | None) -> Sequence[AgentEvent]: ...

    def question_closed(self, question_id: str) -> Sequence[AgentEvent]: ...


def text_chunk_v2(chunk: TextChunk) -> v2.AgentMessageChunk | v2.AgentThoughtChunk:
    """A plain text chunk with a message id, as a v2 update."""
    made = v2.AgentMessageChunk if chunk.session_update == "agent_message_chunk" else v2.AgentThoughtChunk
    return made(
        message_id=v2.MessageId(chunk.message_id or ""), content=v2.TextContent(text=chunk.content.text)
    )


def is_acceptance(result: Any) -> bool:
    """Whether an answer to a prompt says that it was accepted, and not that its turn ended."""
    return isinstance(result, v2.PromptResponse | PromptTaken | optins.PromptAccepted)


def check_prompt_answer(result: Any, *, at_end: bool) -> Any:
    """The answer to a prompt, or `InvalidResult`. `{}` is valid only from an agent that answers at
    acceptance."""
    if at_end and isinstance(result, optins.PromptAccepted) and result.message_id is UNSET:
        return InvalidResult("session/prompt: Object missing required field `stopReason`")
    return result
