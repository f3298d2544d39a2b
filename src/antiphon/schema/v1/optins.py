"""What a v1 peer sends only where both sides opted in; no pinned schema has it. Written by hand.

The opt-ins are agreed under `_meta["antiphon"]` at `initialize`; readers accept them always.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from antiphon.schema.v1.content import ContentBlock
from antiphon.schema.v1.errors import Error
from antiphon.schema.v1.identifiers import MessageId
from antiphon.schema.v1.prompt import IdleStopReason, StateUpdate
from antiphon.schema.wire import Lenient, Wire


class TurnComplete(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="turn_complete"):
    """The last update of a turn (TC-01). The id is a string rendering of the request's (TC-04); a turn
    that another client or the agent opened has none. A turn that failed has an `error` instead of a
    `stop_reason`: the error that answers its prompt (TC-09)."""

    prompt_request_id: str | int | UnsetType = UNSET
    stop_reason: IdleStopReason | UnsetType = UNSET
    error: Error | UnsetType = UNSET
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class MessageUpdate(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="message_update"):
    """A message that is changed by its id. The content is one block; a list where there are several or none.

    `replace` and `edit` give the message this content; an `edit` without content changes the `_meta` alone.
    `append` adds to its content, and `delete` removes the message."""

    message_id: MessageId
    update_type: Literal["replace", "edit", "append", "delete"]
    content: ContentBlock | list[ContentBlock] | UnsetType | None = UNSET
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class UserMessage(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message"):
    """A user message as v2 reports it, under the future flag; a patch (MSG-13)."""

    message_id: MessageId
    content: list[ContentBlock] | UnsetType | None = UNSET
    meta: dict[str, Any] | UnsetType | None = field(name="_meta", default=UNSET)


class SessionStateUpdate(
    StateUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="state_update"
):
    """The state of the session as v2 reports it, under the future flag."""

    background: list[dict[str, Any]] | None = None


class PromptAccepted(Wire, frozen=True, kw_only=True):
    """The answer to `session/prompt` under the future flag: accepted, not ended. An agent may leave the id to
    the user message (SD-05)."""

    message_id: MessageId | UnsetType = UNSET
    meta: dict[str, Any] | None = field(name="_meta", default=None)


LENIENT: dict[type[Wire], dict[str, Lenient]] = {
    TurnComplete: {"error": Lenient.ERROR},
    UserMessage: {"content": Lenient.ERROR | Lenient.SKIP},
    SessionStateUpdate: {"background": Lenient.ERROR},
}
OPEN_STRUCTS: dict[type[Wire], str] = {}
