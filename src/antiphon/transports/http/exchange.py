"""Exchange: one HTTP request and its answer.

`HttpSocket` reads requests within limits and does not know what is asked for. A `Handler` answers and does
not know how the answer is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Protocol

from msgspec import Struct, field

from antiphon.jsonrpc.lines import DEFAULT_BOUND

HEAD_BOUND = 64 * 1024
EVENTS = "text/event-stream"
DEFAULT_HELD = 2 * DEFAULT_BOUND


class Limits(Struct, frozen=True, kw_only=True):
    """What a client may take of a server with its requests."""

    head: int = HEAD_BOUND
    """Bytes of a request line and its headers."""
    body: int = DEFAULT_BOUND
    held: int = DEFAULT_HELD
    """Bytes of bodies and WebSocket messages that are not complete yet, of all clients with one token."""
    head_seconds: float = 10.0
    """Until a head that has begun is there."""
    body_seconds: float = 30.0
    """Until a body is there, or the next part of a large one."""
    idle_seconds: float = 75.0
    """That a socket may stay without a request."""

    def body_of(self, head: Head) -> int:
        return self.body if head.most is None else min(head.most, self.body)


class Headers(Mapping[str, str]):
    """By their names, however those are written. What comes several times is one list, with commas."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            before = self._values.get(key)
            between = "; " if key == "cookie" else ", "
            self._values[key] = value if before is None else f"{before}{between}{value}"

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Head(Struct):
    """As much of a request as there is before its body; where it was refused earlier, what there was."""

    method: str = ""
    path: str = ""
    """Without its query."""
    headers: Headers = field(default_factory=lambda: Headers(()))
    who: Any = None
    """Whose request it is, once that was checked."""
    peer: str = ""
    """The address it came from."""
    most: int | None = None
    """Bytes that its body may have at most, where that is less than the server takes of others."""


class Reply(Struct, frozen=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def phrase(self) -> str:
        return HTTPStatus(self.status).phrase

    @property
    def measured(self) -> dict[str, str]:
        """Its headers, with the length of its body; but where there is none, and its length would be that
        of another answer."""
        length = {} if self.status in (204, 304) else {"Content-Length": str(len(self.body))}
        return {**self.headers, **length}


def plain(status: int, text: str = "", **headers: str) -> Reply:
    """A status and a line of text."""
    said = text or HTTPStatus(status).phrase
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Reply(status, f"{said}\n".encode(), {"Content-Type": "text/plain; charset=utf-8", **named})


def json(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, body, {"Content-Type": "application/json", **(headers or {})})


class Exchange(ABC):
    """Answered once, by `reply`, or by `begin` and as many `write` as there are until `end`."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.gone = False
        """Whether nobody is there any more to be answered."""
        self.on_gone: Callable[[], None] = lambda: None
        self.on_room: Callable[[], None] = lambda: None
        """Called when `congested` is over."""

    @abstractmethod
    def reply(self, reply: Reply) -> None: ...

    @abstractmethod
    def begin(self, headers: Mapping[str, str]) -> None:
        """Answer 200, with a body that is still to come."""

    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def end(self) -> None:
        """There is no more of the body."""

    @abstractmethod
    def abort(self) -> None:
        """Break it off: the other side sees that something is missing."""

    @property
    @abstractmethod
    def congested(self) -> bool:
        """Whether more is on its way than is being read."""

    def lose(self) -> None:
        """The other side is gone."""
        if not self.gone:
            self.gone = True
            self.on_gone()


class Handler(Protocol):
    def admit(self, head: Head) -> Reply | None:
        """What can be answered by the head alone, before any of a body is read; `None` to go on."""

    async def answer(self, exchange: Exchange, body: bytes) -> None: ...

    def refused(self, head: Head, status: int) -> None:
        """Somebody who got past the head, or not even that far, took too much of us, or too long."""


def wants_websocket(head: Head) -> bool:
    return head.method == "GET" and head.headers.get("Upgrade", "").strip().lower() == "websocket"
