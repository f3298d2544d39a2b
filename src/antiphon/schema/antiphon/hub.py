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
    error: str | None = None  #: The message of the error that a turn ended with, on one line.
    cause: str | None = None
    """What cut the turn short, or ended the question: `hub_stopped`, `hub_lost` or `agent_lost`."""
    message_id: str | None = None  #: The message of the prompt.
    tool_call_id: str | None = None
    prompt_request_id: str | int | float | None = None
    """The id of the `session/prompt` request."""


class TimelineResponse(Wire, frozen=True, kw_only=True):
    items: list[TimelineItem]  #: The last 1000 items.
    now: int  #: The time at the hub, in milliseconds since 1970.
    omitted: int = 0  #: How many earlier items are left out.


class FindFilesRequest(Wire, frozen=True, kw_only=True):
    """Find files below the folder of a session. For those who may prompt in it."""

    session_id: StoredSession
    query: Annotated[str, Meta(max_length=200)] = ""
    """Letters of the path, in their order. Without any, the files that are least deep."""


class FoundFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file below the folder of a session."""

    path: str  #: Relative to that folder, with slashes.
    uri: str


class FindFilesResponse(Wire, frozen=True, kw_only=True):
    files: list[FoundFile]  #: At most 50, the best first.


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
    name: Annotated[str, Meta(max_length=256)] | None = None
    """The name that the browser gives its user, unless the user chose one before."""


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


class AgentStatus(ClosedEnum):
    READY = "ready"
    INSTALLED = "installed"
    NEEDS_LOGIN = "needs_login"
    MISSING = "missing"
    FAILED = "failed"


class ListAgentsRequest(Wire, frozen=True, kw_only=True):
    """Return the agents of a hub, and the known ones that are not installed. For clients that may begin
    sessions."""


class AgentInfo(Forgiving, frozen=True, kw_only=True):
    """An agent of a hub, or one that can be installed."""

    name: str  #: The name for `session/new`.
    title: str | None = None
    status: str
    """`ready` (the hub has started it), `installed` (not started yet), `needs_login`, `missing` (its command
    is not installed) or `failed` (it did not start)."""
    detail: str | None = None  #: The agent's own words about its last failure.
    advice: str | None = None  #: What to do: how to install it, or how to log in.


class ListAgentsResponse(Wire, frozen=True, kw_only=True):
    agents: list[AgentInfo]  #: In the order to offer them.


class AddAgentRequest(Wire, frozen=True, kw_only=True):
    """Add an agent to the running hub, until the hub ends. For owners of all sessions; a `command` needs the
    hub's own token."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    """The name of the agent; without a command, one of the known agents."""
    command: (
        Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(min_length=1, max_length=100)] | None
    ) = None
    """A program and its arguments, or one `ws://` address."""


class AddAgentResponse(Wire, frozen=True, kw_only=True):
    agent: AgentInfo


class SearchRole(ClosedEnum):
    USER = "user"
    AGENT = "agent"
    THOUGHT = "thought"
    TOOL = "tool"
    TITLE = "title"


class SearchSessionsRequest(Wire, frozen=True, kw_only=True):
    """Find words in the contents of the sessions that the client may know of."""

    query: Annotated[str, Meta(max_length=1000)]
    """Words, and phrases in double quotes; the last word may be the beginning of one. All have to be in one
    text. Case and accents do not matter, and nothing is an operator."""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20  #: The most matches of the answer.
    cursor: str | None = None  #: The `nextCursor` of the page before.


class SearchMatch(Wire, frozen=True, kw_only=True):
    """A text that has all the words: a message, the title of a tool call or the title of a session."""

    session_id: str
    title: str | None  #: The title of the session.
    message_id: str | None = None
    tool_call_id: str | None = None
    role: SearchRole
    """`user`, `agent` or `thought` for a message, `tool` for a tool call, `title` for the title of the
    session."""
    seq: int  #: The number of the event with which the text began; 0 for the title of a session.
    at: int  #: The time of that event, in milliseconds since 1970.
    snippet: str  #: One line of the text, of at most 240 characters.
    ranges: list[tuple[int, int]]
    """Where the words are in the snippet, as the first character and the one behind the last. A character is
    a Unicode code point."""


class SearchSessionsResponse(Wire, frozen=True, kw_only=True):
    matches: list[SearchMatch]  #: The newest first.
    next_cursor: str | None = None
    """The cursor of the next page; a page with a cursor may have fewer matches than asked for, or none."""
    incomplete: bool = False
    """Whether the time was over before everything was searched: some sessions may not be indexed yet."""


class PushKeyRequest(Wire, frozen=True, kw_only=True):
    """Return the key with which a browser subscribes to Web Push."""


class PushKeyResponse(Wire, frozen=True, kw_only=True):
    key: str  #: The public key of the hub (RFC 8292), base64url.


class PushKeys(Wire, frozen=True, kw_only=True):
    """The `keys` of a push subscription, as browsers write them."""

    p256dh: Annotated[str, Meta(max_length=200)]  #: The public key of the browser, base64url.
    auth: Annotated[str, Meta(max_length=100)]  #: The secret of the browser, base64url.


class PushSubscribeRequest(Wire, frozen=True, kw_only=True):
    """Send the alerts of the client's sessions to a browser until its token ends. For controllers."""

    endpoint: Annotated[str, Meta(max_length=1000)]
    """The address at the push service. It needs https and a public address."""
    keys: PushKeys
    turns: bool = True  #: Whether it also gets turns that ended, not only questions.


class PushUnsubscribeRequest(Wire, frozen=True, kw_only=True):
    """Send nothing more to a browser that subscribed with the same token."""

    endpoint: Annotated[str, Meta(max_length=1000)]


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
