"""Updates of a v1 agent with the bytes they were read from, for who passes them on to v1 clients too."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from antiphon.bridge.originals import UNLIFTED, Originals, is_plain
from antiphon.client.spoken import SpokenV1
from antiphon.schema import v2
from antiphon.schema.updates import written

if TYPE_CHECKING:
    from antiphon.client.client import Client


def keep_originals(client: Client) -> None:
    """From here on events say what the agent wrote, beside what that was lifted to, of those updates that
    lowering would not give back (invariant 8)."""
    client.new_originals = Originals
    client.connection.handlers.on_written = partial(_updated, client)


def _updated(client: Client, read: tuple[Any, bytes | Raw]) -> Awaitable[None] | None:
    params, line = read
    session = client.find(params.session_id)
    if session is None and not client.has_left(params.session_id):
        size = len(bytes(line))
        client.opening.keep(params.session_id, partial(_updated, client, read), size=size)
        client.following.keep(params, size)
        return None
    if session is None or not isinstance(session.spoken, SpokenV1) or is_plain(params.update, line):
        return client.updated(params)
    spoken, originals = session.spoken, session.spoken.originals
    assert originals is not None
    released = spoken.upgrade.release(params.update)
    if released:
        session.receive_read(released, meta=None)
    lifted = spoken.read(params.update)
    original = originals.of(params.update, written(line), lifted)
    if original is not None and all(isinstance(each, v2.StateUpdate) for each in lifted):
        lifted = [UNLIFTED, *lifted]
    session.receive_read(lifted, meta=params.meta, original=original)
    return session.pace()
