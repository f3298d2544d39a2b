"""What a hub offers: reports on stored sessions, login links, and changes of its list of sessions."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from antiphon.schema.antiphon.clients import Who
from antiphon.schema.antiphon.prompts import StoredSession
from antiphon.schema.wire import ClosedEnum, Forgiving, Wire


class TranscriptFormat(ClosedEnum):
    MARKDOWN = "markdown"
    HTML = "html"


class TranscriptRequest(Wire, frozen=True, kw_only=True):
    """Write a session as a document."""

    session_id: StoredSession
    format: TranscriptFormat = TranscriptFormat.MARKDOWN  #: `markdown` (the default) or `html`.


class TranscriptResponse(Wire, frozen=True, kw_only=True):
    name: str
    mime_type: str
    content: str
    missing: list[str] = field(default_factory=list)  #: The parts of the journal that could not be read.


class TimelineRequest(Wire, frozen=True, kw_only=True):
    """Return what took time in a session."""

    session_id: StoredSession


class TimelineItem(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Something that took time."""

    kind: str  #: `turn`, `prompt`, `tool`, `question` or `client`.
    id: str
    title: str
    start: int  #: When it began, in milliseconds since 1970.
    end: int | None  #: When it ended, in milliseconds since 1970; `null` if it is unfinished.
    status: str
    by: Who | None = None  #: The client that prompted or answered, or that is attached.
    outcome: str | None = None  #: How a question was answered.
    message_id: str | None = None  #: The message of the prompt.
    tool_call_id: str | None = None
    prompt_request_id: str | int | float | None = None
    """The id of the `session/prompt` request."""


class TimelineResponse(Wire, frozen=True, kw_only=True):
    items: list[TimelineItem]  #: The last 1000 items.
    now: int  #: The time at the hub, in milliseconds since 1970.
    omitted: int = 0  #: How many earlier items are left out.


class JournalRequest(Wire, frozen=True, kw_only=True):
    """Read a page of the stored events of a session. For owners."""

    session_id: StoredSession
    after: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0  #: The number of the event before the page.


class Damage(Wire, frozen=True, kw_only=True):
    found: str
    resume: int | None = None  #: The number after which events can be read again.


class JournalResponse(Wire, frozen=True, kw_only=True):
    record: dict[str, Any]  #: The stored record of the session, without its events.
    events: list[str]  #: The stored events.
    last: int  #: The number of the last event of the session.
    damage: Damage | None = None  #: Why the page ends early, if events cannot be read.


class ClientRole(ClosedEnum):
    OBSERVER = "observer"
    CONTROLLER = "controller"
    OWNER = "owner"


class LinkRequest(Wire, frozen=True, kw_only=True):
    """Make a login link. For owners; a client with a token for some sessions only may not."""

    role: ClientRole = ClientRole.OWNER
    """The role of the browser: `observer`, `controller` or `owner` (the default)."""
    sessions: Annotated[list[str], Meta(min_length=1)] | None = None
    """The sessions that the browser may use; without it, all."""


class LinkResponse(Wire, frozen=True, kw_only=True):
    code: str
    """The hub's page at `…/#login=CODE` lets a browser in once. With `&session=ID` appended, the page opens
    that session."""
    seconds: float  #: How long the code is valid.
    url: str | None = None  #: The hub's public URL, if it has one.


class HubsRequest(Wire, frozen=True, kw_only=True):
    """Return the hubs that share the store of this one. For owners of all sessions."""


class HubInfo(Forgiving, frozen=True, kw_only=True):
    """A hub, as it described itself last."""

    label: str = ""  #: The place of the hub.
    address: str | None = None  #: The WebSocket address of the hub.
    version: str | None = None
    sessions: int = 0  #: How many sessions it owns and has open.
    clients: int = 0  #: How many clients are connected to it.
    you: bool = False  #: Whether it is the hub that answers.


class HubsResponse(Wire, frozen=True, kw_only=True):
    hubs: list[HubInfo]


class SessionsNotification(Wire, frozen=True, kw_only=True):
    """Entries of `session/list` have changed."""

    sessions: list[Any]
    """The entries of new sessions, and of sessions whose title, state, clients or archiving changed."""
    gone: list[str]  #: The ids of sessions that were deleted.


class Fault(Wire, frozen=True, kw_only=True):
    kind: str
    """`damaged` if a part of the session is missing or unreadable, `newer` if a later version wrote it."""
    found: str


class SessionInfoMeta(Forgiving, frozen=True, kw_only=True):
    """In an entry of `session/list`."""

    agent: str | None = None  #: The name of the session's agent.
    state: str | None = None  #: `idle`, `running` or `requires_action`, if the session is open.
    clients: int | None = None  #: How many clients are attached, if the session is open.
    fault: Fault | None = None  #: Why the session cannot be opened.
