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
from antiphon.wire import UNREADABLE, LastingTransport, Overlong, Receive, Received, Transport, failure_of

AWAY = {"code": -32603, "message": "The hub is away", "data": {"reason": "away"}}
OPENS = ("session/new", "session/load", "session/resume", "session/fork")
ENDS = ("session/close", "session/delete")
LASTING = ("initialize", "session/prompt", "session/new")
"""What is asked again on the next link where it was not answered."""
OWN = "antiphon:"
"""How the ids of our own requests begin."""
SETUP = ("cwd", "mcpServers", "additionalDirectories", "systemPrompt")

UPDATE = "session/update"
_UPDATE = b'"session/update"'


class _Ours(Struct):
    seq: int | None = None
    part: int | None = None


class _Meta(Struct):
    ours: _Ours | None = field(name=META_KEY, default=None)


class _Params(Struct):
    session_id: str = field(name="sessionId")
    meta: _Meta | None = field(name="_meta", default=None)


class _Update(Struct):
    """A `session/update`, as far as it says how far the editor was told a session."""

    method: str
    params: _Params


_decode_update = msgspec.json.Decoder(_Update).decode


class _Session:
    """A session that is open to the editor, and how far it was told it."""

    def __init__(self, id: str, params: dict[str, Any]) -> None:
        self.id = id
        self.setup = {key: params[key] for key in SETUP if key in params}
        self.cursor: int | None = None
        self._part = (-1, -1)
        self.operations: deque[str] = deque(maxlen=32)

    def take(self, seq: int, part: int | None) -> bool:
        """Whether an update is news to the editor: a piece of an event may have come before the cut."""
        if part is None:
            self.cursor = seq
        elif (seq, part) <= self._part:
            return False
        else:
            self._part = seq, part
        return True

    def resuming(self, *, v1: bool) -> dict[str, Any]:
        params: dict[str, Any] = {"sessionId": self.id, **self.setup}
        if self.cursor is None:
            return {"method": "session/resume", "params": params}
        if v1:
            ours = {"after": self.cursor, "operations": list(self.operations)}
            return {"method": "session/load", "params": {**params, "_meta": {META_KEY: ours}}}
        params["replayFrom"] = {"type": "_antiphon_after", "seq": self.cursor}
        return {"method": "session/resume", "params": params}


class EditorConversation:
    def __init__(self) -> None:
        self.away = False
        self._links = 0
        self._agreed: dict[str, Any] | None = None
        """What the editor has initialized the hub with."""
        self._v1 = False
        self._open: dict[Any, dict[str, Any]] = {}
        """The editor's requests that are not answered, by their ids."""
        self._asked: dict[Any, Any] = {}
        """The hub's, by the ids under which the editor knows them."""
        self._sessions: dict[str, _Session] = {}
        self._late: list[bytes] = []
        """What the editor cancelled while the hub was away."""

    # --- what the editor says ----------------------------------------------------------------------

    def from_editor(self, frame: bytes) -> tuple[bytes | None, bytes | None]:
        """What goes to the hub for a frame, and what comes back to the editor at once."""
        said = read(frame)
        if said is None:
            return frame, None
        if "method" not in said:
            return self._answered(said, frame), None
        if "id" not in said:
            if self.away and said["method"] in ("session/cancel", "$/cancel_request"):
                self._late.append(frame)
            return (None if self.away else frame), None
        if not isinstance(said.get("params"), dict):
            return frame, None
        self._prepare(said)
        if self.away and said["method"] not in LASTING:
            return None, encode({"id": said["id"], "error": AWAY})
        self._open[said["id"]] = said
        return (None if self.away else encode(said)), None

    def _answered(self, said: dict[str, Any], frame: bytes) -> bytes | None:
        if said.get("id") not in self._asked:
            return None  # of a link that is gone
        id = self._asked.pop(said["id"])
        return frame if id == said["id"] else encode({**said, "id": id})

    def _prepare(self, said: dict[str, Any]) -> None:
        method, params = said["method"], said["params"]
        if method == "initialize":
            first = "clientCapabilities" if params.get("protocolVersion") == 1 else "capabilities"
            for name in {first, *({"clientCapabilities", "capabilities"} & params.keys())}:
                if isinstance(params.setdefault(name, {}), dict):
                    _ours(params[name])["seq"] = True
        elif method in LASTING:
            operation = _ours(params).setdefault("operationId", f"op_{secrets.token_hex(12)}")
            session = self._sessions.get(params.get("sessionId", ""))
            if session is not None:
                session.operations.append(operation)

    # --- what the hub says -------------------------------------------------------------------------

    def from_hub(self, frame: bytes) -> bytes | None:
        """What goes to the editor."""
        update = _read_update(frame)
        if update is not None:
            return frame if self._is_news(update.params) else None
        said = read(frame)
        if said is None:
            return frame
        if "method" not in said:
            self._learn(self._open.pop(said.get("id"), None), said.get("result"))
            return frame
        if "id" in said:
            id = said["id"] if not self._links else f"{self._links}:{said['id']}"
            self._asked[id] = said["id"]
            return encode({**said, "id": id})
        if said["method"] == "$/cancel_request" and self._links:
            known = {asked: id for id, asked in self._asked.items()}
            asked = (said.get("params") or {}).get("requestId")
            return encode({**said, "params": {"requestId": known.get(asked, asked)}})
        return frame

    def _is_news(self, params: _Params) -> bool:
        """Whether the editor was not sent this update yet. The place of an update is noted."""
        session = self._sessions.get(params.session_id)
        ours = None if params.meta is None else params.meta.ours
        if session is None or ours is None or ours.seq is None:
            return True
        return session.take(ours.seq, ours.part)

    def _learn(self, asked: dict[str, Any] | None, result: Any) -> None:
        """From the answer to a request of the editor's."""
        if asked is None or not isinstance(result, dict):
            return
        method, params = asked["method"], asked["params"]
        if method == "initialize":
            self._agreed, self._v1 = params, result.get("protocolVersion") == 1
        elif method in OPENS:
            id = result.get("sessionId", params.get("sessionId"))
            session = self._sessions[id] = _Session(id, params)
            session.cursor = _ours(result).get("seq")
        elif method in ENDS:
            self._sessions.pop(params.get("sessionId"), None)

    # --- another link ------------------------------------------------------------------------------

    def cut(self) -> Iterator[bytes]:
        """The link is gone: what the editor is told of that. It is asked again what is still open then."""
        if self.away:
            return
        self.away = True
        self._links += 1
        for id in self._asked:
            yield encode({"method": "$/cancel_request", "params": {"requestId": id}})
        self._asked.clear()
        for id, said in tuple(self._open.items()):
            if said["method"] not in LASTING:
                del self._open[id]
                yield encode({"id": id, "error": AWAY})

    def opening(self) -> dict[str, Any] | None:
        """What opens the next link, where the last one was opened."""
        return None if self._agreed is None else {"method": "initialize", "params": self._agreed}

    def resuming(self) -> list[dict[str, Any]]:
        return [session.resuming(v1=self._v1) for session in self._sessions.values()]

    def back(self) -> Iterator[bytes]:
        """The next link is in use: what goes there first."""
        self.away = False
        yield from map(encode, self._open.values())
        late, self._late = self._late, []
        yield from late


def _read_update(frame: bytes) -> _Update | None:
    """The place of a `session/update`; `None` for any other frame. An agent may have written anything beside
    our keys, so the frame is decoded; the fields that are not needed are skipped."""
    if _UPDATE not in frame:
        return None
    try:
        update = _decode_update(frame)
    except UNREADABLE:
        return None
    return update if update.method == UPDATE else None


def _ours(holder: dict[str, Any]) -> dict[str, Any]:
    """The `_meta["antiphon"]` of an object, which is made if it is not there."""
    if not isinstance(holder.get("_meta"), dict):
        holder["_meta"] = {}
    if not isinstance(holder["_meta"].get(META_KEY), dict):
        holder["_meta"][META_KEY] = {}
    ours: dict[str, Any] = holder["_meta"][META_KEY]
    return ours


def read(frame: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def encode(said: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **said}, separators=(",", ":")).encode()


class ReconnectingHub(LastingTransport):
    """`reach` opens a link to the hub, wherever that is now."""

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
        """Come back inside the block, whenever the hub is lost."""
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
        told: list[Received] = []
        for frame in frames:
            if isinstance(frame, Overlong):
                failure = failure_of(frame)
                if not frame.answers:
                    super().send(failure)
                    continue
                frame = failure
            if self._is_own(frame):
                continue
            passed = self._talk.from_hub(frame)
            if passed is not None:
                told.append(passed)
        if told:
            self._editor(told)

    def _is_own(self, frame: bytes) -> bool:
        said = read(frame) if self._own and f'"{OWN}'.encode() in frame else None
        answer = None if said is None else self._own.pop(str(said.get("id")), None)
        if said is None or answer is None:
            return False
        if not answer.done():
            answer.set_result(said.get("result"))
        return True

    def send(self, frame: bytes) -> None:
        onward, back = self._talk.from_editor(frame)
        if onward is not None:
            super().send(onward)
        if back is not None:
            self._editor([back])

    # --- coming back -------------------------------------------------------------------------------

    def _cut(self, reason: str) -> None:
        told: list[Received] = [*self._talk.cut()]
        if told:
            self._editor(told)
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
                    raise LinkLost(f"given up after {self._policy.patience:g} s: {error}") from error

    async def _resume(self) -> None:
        opening = self._talk.opening()
        if opening is not None:
            await self._ask(opening)
            await asyncio.gather(*map(self._ask, self._talk.resuming()))
        for frame in self._talk.back():
            super().send(frame)

    async def _ask(self, said: dict[str, Any]) -> Any:
        """What the hub refuses, the editor finds out when it wants something of it."""
        id = f"{OWN}{len(self._own)}:{said['method']}"
        answer = self._own[id] = asyncio.get_running_loop().create_future()
        super().send(encode({"id": id, **said}))
        return await answer
