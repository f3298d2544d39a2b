"""Sessions: additions to the requests that open, fork and close them; attach and detach."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, UnsetType, field

from antiphon.schema.antiphon.clients import ClientId, Present
from antiphon.schema.antiphon.prompts import OperationId
from antiphon.schema.wire import ClosedEnum, Forgiving, Wire

EventNumber = Annotated[int, Meta(ge=0)]
"""The number of the last event that the client has."""


class NewSessionMeta(Wire, frozen=True, kw_only=True):
    """In the params of `session/new`."""

    agent: str | None = None  #: The agent of a hub; the first one unless given.
    operation_id: OperationId | None = None


class ForkSessionMeta(Wire, frozen=True, kw_only=True):
    """In the params of `session/fork`."""

    message_id: str | None = None  #: The new session ends right after this message.
    operation_id: OperationId | None = None


class LoadSessionMeta(Wire, frozen=True, kw_only=True):
    """In the params of `session/load`."""

    after: EventNumber | UnsetType = UNSET
    operations: list[str] = field(default_factory=list)
    """The operation ids of the client's last prompts, whose messages it shows itself and does not get."""


class ReplayAfter(Wire, frozen=True, kw_only=True, tag_field="type", tag="_antiphon_after"):
    """A `replayFrom` of `session/resume`."""

    TYPE: ClassVar = "_antiphon_after"
    seq: EventNumber


class CloseSessionMeta(Forgiving, frozen=True, kw_only=True):
    """In the params of `session/close`."""

    for_all: bool = False  #: Close the session for all clients. For owners.


class HistoryPolicy(ClosedEnum):
    FULL = "full"
    PENDING_ONLY = "pending_only"
    """The open questions, and the tool calls they are about."""
    NONE = "none"
    AFTER_MESSAGE = "after_message"
    AFTER = "after"


class ClientDetails(Forgiving, frozen=True, kw_only=True):
    name: str | None = None
    version: str | None = None


class AttachRequest(Wire, frozen=True, kw_only=True):
    """Attach to a session without changing anything in it."""

    REASONS: ClassVar = {
        ".historyPolicy": "unknown_history_policy",
        ".after": "bad_cursor",
        ".clientId": "bad_client_id",
    }
    session_id: str  #: The session, open or only stored.
    history_policy: HistoryPolicy = HistoryPolicy.FULL
    """What is sent before the response: `full` (the default), `pending_only`, `none`, `after_message` or
    `after`."""
    after_message_id: str | None = None  #: The last message that the client has, for `after_message`.
    after: EventNumber | None = None  #: The number of the last event that the client has, for `after`.
    client_id: ClientId | None = None
    """Replaces the id that the client gave at `initialize`, for this session."""
    client_info: ClientDetails | None = None
    """Replaces the `name` and `version` that the client gave at `initialize`, for this session."""


class AttachResponse(Wire, frozen=True, kw_only=True):
    session_id: str
    client_id: str  #: The id that the client has in this session.
    history_policy: str
    clients: list[Present]
    state: str  #: `idle`, `running` or `requires_action`.
    seq: int  #: The number to continue from.


class DetachRequest(Wire, frozen=True, kw_only=True):
    """Detach from a session."""

    session_id: str


class DetachResponse(Wire, frozen=True, kw_only=True):
    session_id: str
    status: str  #: `detached`, also when repeated.


class SessionMeta(Forgiving, frozen=True, kw_only=True):
    """In the results of `session/new`, `load`, `resume` and `fork`, and in the params of `session/update`."""

    state: str | None = None  #: `idle`, `running` or `requires_action`, for a client with `turnComplete`.
    agent: str | None = None  #: The name of the session's agent behind a hub.
    agent_forks_at: bool = False
    """Whether that agent can fork the session after a message. Otherwise a fork is a new session in which the
    agent is told the conversation so far."""
    seq: int | None = None  #: The number of the event, or the number to continue from.
    part: int | None = None
    """One event may become several updates in v1: all but the last have their part, from 0. The event counts
    as read with the last."""


class UpdateMeta(Forgiving, frozen=True, kw_only=True):
    """In an update."""

    waiting_for: list[str] | None = None  #: The ids of the open questions, with `requires_action`.
    own_list: bool = False  #: Whether an `available_commands_update` is for this session alone.
    title_chosen: bool = False  #: Whether a client chose the title in a `session_info_update`.


class PatchMeta(Forgiving, frozen=True, kw_only=True):
    """In the patch of a diff."""

    whole: bool = False  #: Whether the patch shows the whole file.


class ConfigOptionMeta(Forgiving, frozen=True, kw_only=True):
    """In a config option."""

    modes: bool = False  #: Whether it was made from the modes of a v1 agent; v1 clients get it as modes only.
    models: str | None = None
    """`made`: it was made from the `models` of a v1 agent; v1 clients get it as `models` only, and
    `session/set_model` sets it. `also`: the agent sent this option and `models`; v1 clients get both."""
