"""Every exception of Antiphon, and the one function that turns an exception into a wire error.

The type says whose fault it is: `LocalError` is ours or our user's, `RemoteError` is the peer's.
`code` is what goes on the wire when the error answers a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import UNSET, Struct


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """The `error` of a JSON-RPC failure (RPC-21). `data` may be any JSON value (RPC-26)."""

    code: int
    message: str
    data: Any = UNSET


class AntiphonError(Exception):
    """The base of everything Antiphon raises on purpose."""

    code: ClassVar[int] = -32603
    summary: ClassVar[str] = "Internal error"

    def __init__(self, detail: str = "", *, data: Any = UNSET) -> None:
        super().__init__(detail or self.summary)
        self.detail = detail
        self.data = data

    def to_wire(self) -> ErrorObject:
        """What the peer is told. Local faults stay private; see the overrides for what does not."""
        return ErrorObject(self.code, self.summary)


class LocalError(AntiphonError):
    """This side did something wrong: the peer learns only that it failed."""


class RemoteError(AntiphonError):
    """The peer did something wrong, and may be told what (RPC-22: one short line)."""

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
    """Worded alike whatever is forbidden, and whether it is there at all."""

    code = -32003
    summary = "Forbidden"

    def __init__(self) -> None:
        super().__init__(data={"reason": "forbidden"})


class TooLarge(RemoteError):
    """A message is larger than the receiver takes (RPC-38)."""

    code = -32004
    summary = "Too large"

    def __init__(self, size: int, bound: int) -> None:
        super().__init__(
            f"a message of {size} bytes is over the bound of {bound}",
            data={"reason": "limit", "limit": "frame", "most": bound},
        )


class TooDeep(RemoteError):
    """A JSON text has more levels of arrays and objects than the receiver takes."""

    code = -32004
    summary = "Too deep"

    def __init__(self, bound: int) -> None:
        super().__init__(
            f"a message is nested deeper than the bound of {bound} levels",
            data={"reason": "limit", "limit": "depth", "most": bound},
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
    """Raised by a handler to answer with an error of its own choice; all of it reaches the peer."""

    def __init__(self, code: int, message: str, *, data: Any = UNSET) -> None:
        super().__init__(message, data=data)
        self.wire_code = code

    def to_wire(self) -> ErrorObject:
        return ErrorObject(self.wire_code, one_line(self.detail), self.data)


class CallFailed(RemoteError):
    """The peer answered a call of ours with an error."""

    def __init__(self, method: str, error: ErrorObject) -> None:
        super().__init__(f"{method} failed with {error.code}: {error.message}", data=error.data)
        self.method = method
        self.error = error

    @property
    def needs_login(self) -> bool:
        """Whether the agent wants a login first: log in and try again (AUTH-22)."""
        return self.error.code == AuthRequired.code

    def to_wire(self) -> ErrorObject:
        # A failed call of ours is, towards whoever asked us, an internal affair.
        return ErrorObject(AntiphonError.code, AntiphonError.summary)


class InvalidResult(RemoteError):
    """The peer answered a call with a result that does not fit its method."""

    def to_wire(self) -> ErrorObject:
        return ErrorObject(AntiphonError.code, AntiphonError.summary)


class McpError(RemoteError):
    """What an MCP server answers with instead of a result. Inside ACP it is no error of the request
    (MCPACP-04)."""

    def __init__(self, code: int, message: str, *, data: Any = UNSET) -> None:
        super().__init__(message, data=data)
        self.mcp_code = code

    def to_wire(self) -> ErrorObject:
        # Towards whoever asked us for something else, it is an internal affair.
        return ErrorObject(AntiphonError.code, AntiphonError.summary)


class LinkLost(AntiphonError):
    """The link to the peer is gone; every pending call fails with this, and so does every new one.

    `stderr` holds the last lines a child process wrote, where there was one.
    """

    def __init__(self, reason: str, *, stderr: Sequence[str] = ()) -> None:
        self.reason = reason
        self.stderr = tuple(stderr)
        tail = "".join(f"\n    {line}" for line in self.stderr)
        super().__init__(f"{reason}; its last words on stderr:{tail}" if tail else reason)


class LinkRefused(LinkLost):
    """The other side does not let us in; `status` is what it said, as HTTP has it. Asking again is no use."""

    def __init__(self, reason: str, *, status: int) -> None:
        super().__init__(reason)
        self.status = status


class SpawnFailed(LocalError):
    """A command could not be started."""


class StdioClosed(LocalError):
    """Our own stdin or stdout is closed, so nobody can be spoken to over them."""


class CannotAsk(LocalError):
    """None of the clients that are there takes questions of this kind. It is for them to know, too."""

    def to_wire(self) -> ErrorObject:
        return ErrorObject(self.code, one_line(str(self)))


class FormInvalid(LocalError):
    """Values that do not fit the form they answer; `problems` says what is wrong, by field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name!r} {problem}" for name, problem in problems.items()))
        self.problems = dict(problems)


class LoginFailed(AntiphonError):
    """A login in a terminal did not end well."""


class IconFailed(AntiphonError):
    """An icon may not be shown, or could not be had."""


class LaneMisuse(LocalError):
    """A handler waited for something that only comes after the handler itself has returned."""


class LaneOverflow(LocalError):
    """A handler waited for a call while more arrived behind it than its lane may hold."""


class EventRefused(LocalError, ValueError):
    """An event cannot be written to the journal so that it can be read back; nothing of it was kept."""


class StoreError(LocalError):
    """A store could not do what it was asked; what it held before is unharmed."""


class StaleWriter(StoreError):
    """Somebody else has written since: the journal or the snapshot is not where the writer thought it was."""

    def __init__(self, session_id: str, *, expected: int, actual: int) -> None:
        super().__init__(f"session {session_id} is at {actual}, not at {expected}: it was written elsewhere")
        self.session_id = session_id
        self.expected = expected
        self.actual = actual


class StoreFull(StoreError):
    """There is no room: nothing of this write was kept, and a later one may succeed."""


class StoreBusy(StoreError):
    """Another process held the store's file for longer than we wait."""


class StoreCorrupt(StoreError):
    """A part of the store cannot be read. What is readable elsewhere in it still is.

    `found` says what is wrong without naming a file of this machine, so clients may be told. Where a journal
    is damaged, `resume` is the cursor after the damage, if one could be found.
    """

    def __init__(self, detail: str, *, found: str = "", resume: int | None = None) -> None:
        super().__init__(detail)
        self.found = found or detail
        self.resume = resume


class SessionDamaged(StoreCorrupt):
    """A session cannot be opened, because a part of its journal or its record is missing or unreadable.

    Nothing of it was changed. What is readable can be exported.
    """

    def __init__(self, session_id: str, found: str) -> None:
        advice = f"`antiphon sessions export {session_id}` writes what is readable"
        super().__init__(f"session {session_id} is damaged: {found}; {advice}", found=found)
        self.session_id = session_id

    def to_wire(self) -> ErrorObject:
        about = {"reason": "damaged", "sessionId": self.session_id, "found": one_line(self.found)}
        return ErrorObject(self.code, one_line(f"The {self.detail}", limit=600), about)


class StoreTooNew(StoreError):
    """The store was written by a later version of Antiphon."""


class SessionTooNew(StoreTooNew):
    """A session has events of a kind or a format that this version does not know. It is not damaged."""

    def __init__(self, session_id: str, found: str) -> None:
        super().__init__(f"session {session_id} was written by a later Antiphon: {found}; update to open it")
        self.session_id = session_id
        self.found = found

    def to_wire(self) -> ErrorObject:
        about = {"reason": "newer", "sessionId": self.session_id, "found": one_line(self.found)}
        return ErrorObject(self.code, one_line(f"The {self.detail}", limit=600), about)


class SessionExists(StoreError):
    """A session with this id is already there."""


class SessionClaimed(StoreError):
    """The session is open elsewhere; `owner` and `pid` say by whom."""

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
    """A page of a list was asked for with a cursor that no list gave out (SESS-35)."""


def one_line(text: str, *, limit: int = 300) -> str:
    """`text` as a wire error message: one short, non-empty line (RPC-22)."""
    line = " ".join(text.split()) or AntiphonError.summary
    return line if len(line) <= limit else line[: limit - 1] + "…"


def to_wire_error(error: BaseException) -> ErrorObject:
    """What a peer is told about `error`. Strangers' exceptions tell it nothing."""
    if isinstance(error, AntiphonError):
        return error.to_wire()
    return ErrorObject(AntiphonError.code, AntiphonError.summary)


__all__ = [name for name, value in list(globals().items()) if isinstance(value, type) and name[0].isupper()]
