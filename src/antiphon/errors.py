"""Every exception of Antiphon, and the function that turns an exception into a wire error.

The type says whose fault it is: `LocalError` is this side's, `RemoteError` is the peer's. `code` is the code
on the wire when the error answers a request.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import UNSET, Struct

__all__ = [
    "AntiphonError", "AuthRequired", "CallFailed", "CannotAsk", "CursorInvalid", "ErrorObject",
    "EventRefused", "Forbidden", "FormInvalid", "IconFailed", "InvalidParams", "InvalidRequest",
    "InvalidResult", "LaneMisuse", "LaneOverflow", "LinkLost", "LinkRefused", "LocalError", "LoginFailed",
    "McpError", "MethodNotFound", "NobodyAnswers", "ParseError", "RemoteError", "RequestCancelled",
    "RequestError", "ResourceNotFound", "SessionClaimed", "SessionDamaged", "SessionExists",
    "SessionTooNew", "SessionUnknown", "SpawnFailed", "StaleWriter", "StdioClosed", "StoreBusy",
    "StoreCorrupt", "StoreError", "StoreFull", "StoreTooNew", "TooComplex", "TooDeep", "TooLarge",
    "TooManyValues", "UnsupportedVersion",
]  # fmt: skip


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """The `error` of a JSON-RPC failure (RPC-21). `data` may be any JSON value (RPC-26)."""

    code: int
    message: str
    data: Any = UNSET


INTERNAL = ErrorObject(-32603, "Internal error")
"""What a peer gets for an error that is none of its business."""


class AntiphonError(Exception):
    """The base of everything Antiphon raises on purpose."""

    code: ClassVar[int] = INTERNAL.code
    summary: ClassVar[str] = INTERNAL.message

    def __init__(self, detail: str = "", *, data: Any = UNSET) -> None:
        super().__init__(detail or self.summary)
        self.detail = detail
        self.data = data

    def to_wire(self) -> ErrorObject:
        """Return the error for the peer. By default it says nothing about the cause."""
        return ErrorObject(self.code, self.summary)


class LocalError(AntiphonError):
    """This side did something wrong. The peer learns only that it failed."""


class RemoteError(AntiphonError):
    """The peer did something wrong. It gets the reason in one short line (RPC-22)."""

    code: ClassVar[int] = -32600
    summary: ClassVar[str] = "Invalid request"

    def to_wire(self) -> ErrorObject:
        message = f"{self.summary}: {self.detail}" if self.detail else self.summary
        return ErrorObject(self.code, one_line(message), self.data)


class ParseError(RemoteError):
    code = -32700
    summary = "Parse error"


class InvalidRequest(RemoteError):
    code = -32600
    summary = "Invalid request"


class MethodNotFound(RemoteError):
    code = -32601
    summary = "Method not found"


class InvalidParams(RemoteError):
    code = -32602
    summary = "Invalid params"


class AuthRequired(RemoteError):
    code = -32000
    summary = "Authentication required"


class ResourceNotFound(RemoteError):
    code = -32002
    summary = "Resource not found"


class Forbidden(RemoteError):
    """The wording does not reveal what is forbidden, or whether it exists."""

    code = -32003
    summary = "Forbidden"

    def __init__(self) -> None:
        super().__init__(data={"reason": "forbidden"})


class TooLarge(RemoteError):
    """A message is larger than the receiver accepts (RPC-38)."""

    code = -32004
    summary = "Too large"

    def __init__(self, size: int, bound: int) -> None:
        super().__init__(
            f"a message of {size} bytes is over the bound of {bound}",
            data={"reason": "limit", "limit": "frame", "most": bound},
        )


class TooComplex(RemoteError):
    """A JSON text has a structure that the receiver does not accept: see the subclasses."""

    code = -32004


class TooDeep(TooComplex):
    """A JSON text has more levels of arrays and objects than the receiver accepts."""

    summary = "Too deep"

    def __init__(self, bound: int) -> None:
        super().__init__(
            f"a message is nested deeper than the bound of {bound} levels",
            data={"reason": "limit", "limit": "depth", "most": bound},
        )


class TooManyValues(TooComplex):
    """A JSON text has more values than the receiver accepts."""

    summary = "Too many values"

    def __init__(self, bound: int) -> None:
        super().__init__(
            f"a message has more values than the bound of {bound}",
            data={"reason": "limit", "limit": "values", "most": bound},
        )


class RequestCancelled(RemoteError):
    """A request ended because it was cancelled, by its sender or by a shutdown (RPC-31, RPC-34)."""

    code = -32800
    summary = "Request cancelled"


class UnsupportedVersion(RemoteError):
    """No protocol version in common (RPC-24, INIT-03)."""

    code = -32022
    summary = "Unsupported protocol version"

    def __init__(self, requested: int, supported: Sequence[int]) -> None:
        super().__init__(
            f"asked for {requested}, supported: {', '.join(map(str, supported)) or 'none'}",
            data={"requested": requested, "supported": list(supported)},
        )


class RequestError(AntiphonError):
    """A handler raises it to respond with any code, message and data. The peer gets all of it."""

    def __init__(self, code: int, message: str, *, data: Any = UNSET) -> None:
        super().__init__(message, data=data)
        self.wire_code = code

    def to_wire(self) -> ErrorObject:
        return ErrorObject(self.wire_code, one_line(self.detail), self.data)


class CallFailed(RemoteError):
    """The peer answered a call with an error."""

    def __init__(self, method: str, error: ErrorObject) -> None:
        super().__init__(f"{method} failed with {error.code}: {error.message}", data=error.data)
        self.method = method
        self.error = error

    @property
    def needs_login(self) -> bool:
        """Whether the agent needs a login first: log in and try again (AUTH-22)."""
        return self.error.code == AuthRequired.code

    def to_wire(self) -> ErrorObject:
        return INTERNAL  # another peer's request led to the call


class InvalidResult(RemoteError):
    """The peer answered a call with a result that does not fit its method."""

    def to_wire(self) -> ErrorObject:
        return INTERNAL


class McpError(RemoteError):
    """An MCP server answered with an error. Inside ACP the request itself succeeds (MCPACP-04)."""

    def __init__(self, code: int, message: str, *, data: Any = UNSET) -> None:
        super().__init__(message, data=data)
        self.mcp_code = code

    def to_wire(self) -> ErrorObject:
        return INTERNAL


class LinkLost(AntiphonError):
    """The link to the peer is lost. Every pending and every new call fails with this.

    `stderr` has the last lines that a child process wrote.
    """

    def __init__(self, reason: str, *, stderr: Sequence[str] = ()) -> None:
        self.reason = reason
        self.stderr = tuple(stderr)
        tail = "".join(f"\n    {line}" for line in self.stderr)
        super().__init__(f"{reason}; last lines on stderr:{tail}" if tail else reason)


class LinkRefused(LinkLost):
    """The peer refused the connection with an HTTP status. Trying again does not help."""

    def __init__(self, reason: str, *, status: int) -> None:
        super().__init__(reason)
        self.status = status


class SpawnFailed(LocalError):
    """A command could not be started."""


class StdioClosed(LocalError):
    """The stdin or stdout of this process is closed."""


class CannotAsk(LocalError):
    """No attached client accepts questions of this mode. The peer gets the reason."""

    def to_wire(self) -> ErrorObject:
        return ErrorObject(self.code, one_line(str(self)))


class FormInvalid(LocalError):
    """Values that do not fit the form that they answer. `problems` has the reason by field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name!r} {problem}" for name, problem in problems.items()))
        self.problems = dict(problems)


class LoginFailed(AntiphonError):
    """A login in a terminal failed."""


class IconFailed(AntiphonError):
    """An icon may not be shown, or could not be fetched."""


class LaneMisuse(LocalError):
    """A handler waited for something that comes only after the handler has returned."""


class LaneOverflow(LocalError):
    """More frames arrived during a handler than its lane may hold."""


class EventRefused(LocalError, ValueError):
    """An event could not be read back from a journal. Nothing of it was stored."""


class StoreError(LocalError):
    """A store operation failed. The stored data is unchanged."""


class StaleWriter(StoreError):
    """Another writer changed the journal or the snapshot."""

    def __init__(self, session_id: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"session {session_id} is at event {actual}, expected {expected}: another process wrote it"
        )
        self.session_id = session_id
        self.expected = expected
        self.actual = actual


class StoreFull(StoreError):
    """The disk is full. Nothing of this write was stored; a later one may succeed."""


class StoreBusy(StoreError):
    """Another process locked the file of the store for too long."""


class NobodyAnswers(StoreError):
    """No store serves requests under an id: its process has ended or has lost its connection."""

    def __init__(self, store_id: str) -> None:
        super().__init__(f"store {store_id} does not answer: it is closed or not connected")
        self.store_id = store_id


class StoreCorrupt(StoreError):
    """A part of the store cannot be read; other parts may be readable.

    `found` says what is wrong without naming a file of this machine, so clients may see it. `resume` is the
    cursor after the damage in a journal, if one was found.
    """

    def __init__(self, detail: str, *, found: str = "", resume: int | None = None) -> None:
        super().__init__(detail)
        self.found = found or detail
        self.resume = resume


class SessionDamaged(StoreCorrupt):
    """A session cannot be opened: a part of its journal or its record is missing or unreadable.

    Nothing of it was changed. The readable part can be exported.
    """

    def __init__(self, session_id: str, found: str) -> None:
        advice = f"`antiphon sessions export {shlex.quote(session_id)}` writes what is readable"
        super().__init__(f"session {session_id} is damaged: {found}; {advice}", found=found)
        self.session_id = session_id

    def to_wire(self) -> ErrorObject:
        return _session_error(self, self.session_id, reason="damaged", found=self.found)


class StoreTooNew(StoreError):
    """A later version of Antiphon wrote the store."""


class SessionTooNew(StoreTooNew):
    """A session has events that only a later version of Antiphon knows. It is not damaged."""

    def __init__(self, session_id: str, found: str) -> None:
        super().__init__(f"session {session_id} was written by a later Antiphon: {found}; update to open it")
        self.session_id = session_id
        self.found = found

    def to_wire(self) -> ErrorObject:
        return _session_error(self, self.session_id, reason="newer", found=self.found)


class SessionExists(StoreError):
    """A session with this id exists already."""


class SessionClaimed(StoreError):
    """Another process has the session open: `owner` with the process id `pid`."""

    def __init__(self, session_id: str, *, owner: str, pid: int) -> None:
        super().__init__(f"session {session_id} is open in {owner} (process {pid})")
        self.session_id = session_id
        self.owner = owner
        self.pid = pid


class SessionUnknown(ResourceNotFound):
    """There is no session with this id, or it was deleted."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id}")
        self.session_id = session_id


class CursorInvalid(InvalidParams):
    """A list was requested with a cursor that no earlier page returned (SESS-35)."""


def one_line(text: str, *, limit: int = 300) -> str:
    """Return `text` as a wire error message: one short, non-empty line (RPC-22)."""
    line = " ".join(text.split()) or AntiphonError.summary
    return line if len(line) <= limit else line[: limit - 1] + "…"


def to_wire_error(error: BaseException) -> ErrorObject:
    """Return the error for a peer. An exception that is not Antiphon's tells it nothing."""
    return error.to_wire() if isinstance(error, AntiphonError) else INTERNAL


def _session_error(error: StoreError, session_id: str, *, reason: str, found: str) -> ErrorObject:
    about = {"reason": reason, "sessionId": session_id, "found": one_line(found)}
    return ErrorObject(error.code, one_line(f"The {error.detail}", limit=600), about)
