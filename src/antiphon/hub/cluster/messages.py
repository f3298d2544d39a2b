"""What hubs send to each other: operations on sessions, and the replies."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from antiphon.errors import RequestError, to_wire_error
from antiphon.server.control.operations import Operation

NULL = Raw(b"null")


class Asked(Struct, frozen=True, kw_only=True):
    """An operation on a session, for the hub that owns it. It is sent again under the same id until a reply
    comes."""

    id: str
    session_id: str
    operation: Operation
    credential: str | None = None
    """The name of the token of the client that asks."""
    label: str = ""
    """The label of the hub that asks."""
    home: str | None = None
    """The label of the session's host, if the session has no owner and only a hub there may be it. The hub
    that gets this opens the session."""


class Failure(Struct, frozen=True, kw_only=True):
    """Why an operation was refused."""

    code: int
    message: str
    data: Any = UNSET


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an operation ended."""

    owned: bool = True
    """Whether this hub owns the session; if not, nothing was done."""
    seq: int = 0
    """The last event that the session had by then. Whoever gets the reply waits for it."""
    result: Raw = NULL
    failure: Failure | None = None

    def value(self) -> Any:
        """Return the result. Raises `RequestError` if the operation was refused."""
        if self.failure is not None:
            raise RequestError(self.failure.code, self.failure.message, data=self.failure.data)
        return msgspec.json.decode(self.result)


NOT_OWNED = Reply(owned=False)


def failed(error: Exception, *, seq: int) -> Reply:
    wire = to_wire_error(error)
    return Reply(seq=seq, failure=Failure(code=wire.code, message=wire.message, data=wire.data))


encode = msgspec.json.Encoder().encode
decode_asked = msgspec.json.Decoder(Asked).decode
decode_reply = msgspec.json.Decoder(Reply).decode
