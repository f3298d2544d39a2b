"""Plain text of an agent, for a client that passes everything on: what was read together goes on together."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

from antiphon.bridge.upgrade_messages import as_v1
from antiphon.client.spoken import as_v2
from antiphon.schema import v1, v2
from antiphon.schema.updates import TextChunk

if TYPE_CHECKING:
    from antiphon.client.client import Client


def pass_on_text_chunks(client: Client) -> None:
    """From here on the client's sessions get plain text in runs, in place where nothing is ahead of it."""
    client.connection.handlers.on_text_chunks = partial(_text_came, client)


def _text_came(client: Client, run: tuple[str, list[TextChunk]]) -> Awaitable[None] | None:
    session_id, chunks = run
    session = client.find(session_id)
    if session is None or not session.pass_on_text(chunks):
        for chunk in chunks:  # the session may be about to open, be a subagent's, or replay
            client.updated(_notification(client, session_id, chunk))
    return None if session is None else session.pace()


def _notification(client: Client, session_id: str, chunk: TextChunk) -> Any:
    if client.opening.v1_capabilities is None:
        return v2.UpdateSessionNotification(session_id=v2.SessionId(session_id), update=as_v2(chunk))
    return v1.SessionNotification(session_id=v1.SessionId(session_id), update=as_v1(chunk))
