"""How a client reads updates for a hub: plain text in runs, and updates of a v1 agent with their bytes."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any, Protocol

from msgspec import Raw

from antiphon.bridge.upgrade.messages import as_v1
from antiphon.bridge.upgrade.originals import NOT_UPGRADED, Originals, is_plain
from antiphon.client.protocol.dialect import text_chunk_v2
from antiphon.client.protocol.dialect_v1 import AgentDialectV1
from antiphon.client.protocol.session_opener import SessionOpener
from antiphon.client.session.session import ClientSession
from antiphon.client.subagents import SubagentSessions
from antiphon.connection import Connection
from antiphon.schema import v1, v2
from antiphon.schema.updates import TextChunk, written


class RelayClient(Protocol):
    """The client, as far as this module uses it."""

    _opener: SessionOpener
    _subagents: SubagentSessions

    @property
    def connection(self) -> Connection: ...

    def find(self, session_id: str) -> ClientSession | None: ...

    def _has_left(self, session_id: str) -> bool: ...

    def _updated(self, params: Any) -> Awaitable[None] | None: ...


def read_for_relay(client: RelayClient) -> None:
    """From here on plain text comes in runs, and updates of a v1 agent with the lines they were read from."""
    handlers = client.connection.handlers
    handlers.on_text_chunks = partial(_text_received, client)
    if client._opener.v1_capabilities is not None:
        handlers.on_written = partial(_line_received, client)


def new_originals(client: RelayClient) -> Originals | None:
    """Finds updates of a v1 agent that downgrading would not give back (invariant 8)."""
    return None if client.connection.handlers.on_written is None else Originals()


def _text_received(client: RelayClient, run: tuple[str, list[TextChunk]]) -> Awaitable[None] | None:
    session_id, chunks = run
    session = client.find(session_id)
    if session is None or not session._core.receive_text(chunks):
        for chunk in chunks:  # the session may be opening, be a subagent's, or replay
            client._updated(_notification(client, session_id, chunk))
    return None if session is None else session._core.pace()


def _notification(client: RelayClient, session_id: str, chunk: TextChunk) -> Any:
    if client._opener.v1_capabilities is None:
        return v2.UpdateSessionNotification(session_id=v2.SessionId(session_id), update=text_chunk_v2(chunk))
    return v1.SessionNotification(session_id=v1.SessionId(session_id), update=as_v1(chunk))


def _line_received(client: RelayClient, read: tuple[Any, bytes | Raw]) -> Awaitable[None] | None:
    params, line = read
    session = client.find(params.session_id)
    if session is None and not client._has_left(params.session_id):
        size = len(bytes(line))
        client._opener.keep(params.session_id, partial(_line_received, client, read), size=size)
        client._subagents.keep(params, size)
        return None
    dialect = None if session is None else session._core.dialect
    if session is None or not isinstance(dialect, AgentDialectV1) or is_plain(params.update, line):
        return client._updated(params)
    originals = dialect.originals
    assert originals is not None
    released = dialect.upgrade.release(params.update)
    if released:
        session._core.receive_events(released, meta=None)
    events = dialect.read_update(params.update)
    original = originals.of(params.update, written(line), events)
    if original is not None and all(isinstance(each, v2.StateUpdate) for each in events):
        events = [NOT_UPGRADED, *events]
    session._core.receive_events(events, meta=params.meta, original=original)
    return session._core.pace()
