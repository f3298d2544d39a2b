"""The connection between an editor and a hub, which survives a restart of the hub."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct, field

from antiphon.cli.exit_codes import Failure
from antiphon.client import Reconnect
from antiphon.errors import AntiphonError, LinkLost, LinkRefused
from antiphon.schema import META_KEY
from antiphon.schema.antiphon.readers import read_meta
from antiphon.schema.antiphon.sessions import ReplayAfter, SessionMeta
from antiphon.wire import (
    UNREADABLE,
    OversizedFrame,
    Receive,
    Received,
    ReplaceableTransport,
    Transport,
    failure_of,
)

AWAY = {"code": -32603, "message": "The hub is not reachable", "data": {"reason": "away"}}
OPENS = ("session/new", "session/load", "session/resume", "session/fork")
ENDS = ("session/close", "session/delete")
LASTING = ("initialize", "session/prompt", "session/new")
"""Requests that are sent again on the next connection if they were not answered."""
OWN = "antiphon:"
"""The prefix of the ids of our own requests."""
SETUP = ("cwd", "mcpServers", "additionalDirectories", "systemPrompt")

UPDATE = "session/update"
_UPDATE = b'"session/update"'


class _Meta(Struct):
    ours: SessionMeta | None = field(name=META_KEY, default=None)


class _Params(Struct):
    session_id: str = field(name="sessionId")
    meta: _Meta | None = field(name="_meta", default=None)


class _Update(Struct):
    """The position of a `session/update` in the journal."""

    method: str
    params: _Params


_decode_update = msgspec.json.Decoder(_Update).decode


class _Session:
    """A session that the editor has open, and how much of it the editor has."""

    def __init__(self, id: str, params: dict[str, Any]) -> None:
        self.id = id
        self.setup = {key: params[key] for key in SETUP if key in params}
        self.cursor: int | None = None
        self._part = (-1, -1)
        self.operations: deque[str] = deque(maxlen=32)

    def take(self, seq: int, part: int | None) -> bool:
        """Record a position, and return whether it is new: the editor may have parts of an event already."""
        if part is None:
            self.cursor = seq
        elif (seq, part) <= self._part:
            return False
        else:
            self._part = seq, part
        return True

    def resuming(self, *, v1: bool) -> dict[str, Any]:
        params: dict[str, Any] = {"sessionId": self.id, **self.setup}
        if self.cursor is not None and v1:
            ours = {"after": self.cursor, "operations": list(self.operations)}
            return {"method": "session/load", "params": {**params, "_meta": {META_KEY: ours}}}
        if self.cursor is not None:
            params["replayFrom"] = {"type": ReplayAfter.TYPE, "seq": self.cursor}
        return {"method": "session/resume", "params": params}


class EditorConversation:
    """Tracks what the editor and the hub said, to continue on another connection to the hub."""

    def __init__(self) -> None:
        self.away = False
        self._links = 0
        self._agreed: dict[str, Any] | None = None
        """The params of the editor's `initialize`."""
        self._v1 = False
        self._open: dict[Any, dict[str, Any]] = {}
        """The editor's unanswered requests, by id."""
        self._asked: dict[Any, Any] = {}
        """The ids of the hub's unanswered requests, by the ids that the editor has for them."""
        self._sessions: dict[str, _Session] = {}
        self._late: list[bytes] = []
        """Cancels of the editor while the hub was not reachable."""

    # --- from the editor ---------------------------------------------------------------------------

    def from_editor(self, frame: bytes) -> tuple[bytes | None, bytes | None]:
        """Return the frame for the hub, and the immediate answer to the editor."""
        fields = read(frame)
        if fields is None:
            return frame, None
        if "method" not in fields:
            return self._answered(fields, frame), None
        if "id" not in fields:
            if self.away and fields["method"] in ("session/cancel", "$/cancel_request"):
                self._late.append(frame)
            return (None if self.away else frame), None
        if not isinstance(fields.get("params"), dict):
            return frame, None
        self._prepare(fields)
        if self.away and fields["method"] not in LASTING:
            return None, encode({"id": fields["id"], "error": AWAY})
        self._open[fields["id"]] = fields
        return (None if self.away else encode(fields)), None

    def _answered(self, fields: dict[str, Any], frame: bytes) -> bytes | None:
        if fields.get("id") not in self._asked:
            return None  # the question of a lost connection
        id = self._asked.pop(fields["id"])
        return frame if id == fields["id"] else encode({**fields, "id": id})

    def _prepare(self, fields: dict[str, Any]) -> None:
        method, params = fields["method"], fields["params"]
        if method == "initialize":
            first = "clientCapabilities" if params.get("protocolVersion") == 1 else "capabilities"
            for name in {first, *({"clientCapabilities", "capabilities"} & params.keys())}:
                if isinstance(params.setdefault(name, {}), dict):
                    own_meta(params[name])["seq"] = True
        elif method in LASTING:
            operation = own_meta(params).setdefault("operationId", f"op_{secrets.token_hex(12)}")
            session = self._sessions.get(params.get("sessionId", ""))
            if session is not None:
                session.operations.append(operation)

    # --- from the hub ------------------------------------------------------------------------------

    def from_hub(self, frame: bytes) -> bytes | None:
        """Return the frame for the editor."""
        update = _read_update(frame)
        if update is not None:
            return frame if self._is_news(update.params) else None
        fields = read(frame)
        if fields is None:
            return frame
        if "method" not in fields:
            self._learn(self._open.pop(fields.get("id"), None), fields.get("result"))
            return frame
        if "id" in fields:
            id = fields["id"] if not self._links else f"{self._links}:{fields['id']}"
            self._asked[id] = fields["id"]
            return encode({**fields, "id": id})
        if fields["method"] == "$/cancel_request" and self._links:
            known = {asked: id for id, asked in self._asked.items()}
            asked = (fields.get("params") or {}).get("requestId")
            return encode({**fields, "params": {"requestId": known.get(asked, asked)}})
        return frame

    def _is_news(self, params: _Params) -> bool:
        """Record the position of an update, and return whether the editor does not have it yet."""
        session = self._sessions.get(params.session_id)
        ours = None if params.meta is None else params.meta.ours
        if session is None or ours is None or ours.seq is None:
            return True
        return session.take(ours.seq, ours.part)

    def _learn(self, asked: dict[str, Any] | None, result: Any) -> None:
        """Record what the answer to a request of the editor says."""
        if asked is None or not isinstance(result, dict):
            return
        method, params = asked["method"], asked["params"]
        if method == "initialize":
            self._agreed, self._v1 = params, result.get("protocolVersion") == 1
        elif method in OPENS:
            id = result.get("sessionId", params.get("sessionId"))
            session = self._sessions[id] = _Session(id, params)
            session.cursor = read_meta(SessionMeta, result.get("_meta")).seq
        elif method in ENDS:
            self._sessions.pop(params.get("sessionId"), None)

    # --- another connection ------------------------------------------------------------------------

    def cut(self) -> Iterator[bytes]:
        """Handle a lost connection: yield the frames that end open requests at the editor."""
        if self.away:
            return
        self.away = True
        self._links += 1
        for id in self._asked:
            yield encode({"method": "$/cancel_request", "params": {"requestId": id}})
        self._asked.clear()
        for id, fields in tuple(self._open.items()):
            if fields["method"] not in LASTING:
                del self._open[id]
                yield encode({"id": id, "error": AWAY})

    def opening(self) -> dict[str, Any] | None:
        """Return the request that opens the next connection, if the editor had initialized the last one."""
        return None if self._agreed is None else {"method": "initialize", "params": self._agreed}

    def resuming(self) -> list[dict[str, Any]]:
        return [session.resuming(v1=self._v1) for session in self._sessions.values()]

    def back(self) -> Iterator[bytes]:
        """Handle a new connection: yield the frames that are sent first."""
        self.away = False
        yield from map(encode, self._open.values())
        late, self._late = self._late, []
        yield from late


def _read_update(frame: bytes) -> _Update | None:
    """Return the position of a `session/update`, or `None` for any other frame.

    The frame is decoded, because the agent's own content may contain the same words.
    """
    if _UPDATE not in frame:
        return None
    try:
        update = _decode_update(frame)
    except UNREADABLE:
        return None
    return update if update.method == UPDATE else None


def own_meta(holder: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta["antiphon"]` of an object. Create it if it is missing."""
    if not isinstance(holder.get("_meta"), dict):
        holder["_meta"] = {}
    if not isinstance(holder["_meta"].get(META_KEY), dict):
        holder["_meta"][META_KEY] = {}
    ours: dict[str, Any] = holder["_meta"][META_KEY]
    return ours


def read(frame: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def encode(fields: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}, separators=(",", ":")).encode()


class ReconnectingHub(ReplaceableTransport):
    """A transport to the hub that reconnects. `reach` opens a connection to its current address."""

    def __init__(
        self, first: Transport, reach: Callable[[], Awaitable[Transport]], policy: Reconnect
    ) -> None:
        super().__init__(first, on_cut=self._cut)
        self._reach = reach
        self._policy = policy
        self._talk = EditorConversation()
        self._lost = asyncio.Event()
        self._own: dict[str, asyncio.Future[Any]] = {}
        self._editor: Receive

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Reconnect inside the block whenever the connection is lost."""
        task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    # --- frames ------------------------------------------------------------------------------------

    def start(self, receive: Receive, ended: Callable[[], None]) -> None:
        self._editor = receive
        super().start(self._received, ended)

    def _received(self, frames: list[Received]) -> None:
        passed_on: list[Received] = []
        for frame in frames:
            if isinstance(frame, OversizedFrame):
                failure = failure_of(frame)
                if not frame.answers:
                    super().send(failure)
                    continue
                frame = failure
            if self._is_own(frame):
                continue
            passed = self._talk.from_hub(frame)
            if passed is not None:
                passed_on.append(passed)
        if passed_on:
            self._editor(passed_on)

    def _is_own(self, frame: bytes) -> bool:
        fields = read(frame) if self._own and f'"{OWN}'.encode() in frame else None
        answer = None if fields is None else self._own.pop(str(fields.get("id")), None)
        if fields is None or answer is None:
            return False
        if not answer.done():
            answer.set_result(fields.get("result"))
        return True

    def send(self, frame: bytes) -> None:
        onward, back = self._talk.from_editor(frame)
        if onward is not None:
            super().send(onward)
        if back is not None:
            self._editor([back])

    # --- reconnecting ------------------------------------------------------------------------------

    def _cut(self, reason: str) -> None:
        frames: list[Received] = [*self._talk.cut()]
        if frames:
            self._editor(frames)
        own, self._own = self._own, {}
        for answer in own.values():
            if not answer.done():
                answer.set_exception(LinkLost(reason))
        self._lost.set()

    async def _run(self) -> None:
        while True:
            await self._lost.wait()
            try:
                await self._return()
            except (AntiphonError, Failure) as error:
                self.end(str(error))
                return

    async def _return(self) -> None:
        loop = asyncio.get_running_loop()
        until, attempt = loop.time() + self._policy.patience, 0
        while True:
            self._lost.clear()
            await asyncio.sleep(self._policy.delay(attempt))
            attempt += 1
            try:
                async with asyncio.timeout(self._policy.deadline):
                    self.put(await self._reach())
                    await self._resume()
                return
            except LinkRefused:
                raise
            except (LinkLost, OSError, TimeoutError) as error:
                await self.drop()
                if loop.time() >= until:
                    raise LinkLost(f"gave up after {self._policy.patience:g} s: {error}") from error

    async def _resume(self) -> None:
        opening = self._talk.opening()
        if opening is not None:
            await self._ask(opening)
            await asyncio.gather(*map(self._ask, self._talk.resuming()))
        for frame in self._talk.back():
            super().send(frame)

    async def _ask(self, fields: dict[str, Any]) -> Any:
        """Send a request. A refusal is ignored: the editor gets it with its own next request."""
        id = f"{OWN}{len(self._own)}:{fields['method']}"
        answer = self._own[id] = asyncio.get_running_loop().create_future()
        super().send(encode({"id": id, **fields}))
        return await answer
