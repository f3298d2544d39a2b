"""Extension methods: what client and agent agree on between themselves (EXT-01)."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Raw

from antiphon.connection.sessions import session_of
from antiphon.engine.json_values import encode
from antiphon.schema.methods import OWN
from antiphon.server.control.operations import CallAgent
from antiphon.server.distant.session import DistantSession
from antiphon.server.request import Request
from antiphon.server.session import ServedSession


async def call(request: Request) -> Any:
    method = request.inbound.method
    distant = await _distant(request, method)
    if distant is None:
        result = await request.server.call_extension(partial(_session, request), method, request.params)
    else:
        asked = CallAgent(method=method, params=Raw(encode(request.params)))
        result = await distant.control.perform(asked, request.client.policy)
    voice = request.client.voices.get(session_of(request.params) or "")
    if voice is not None:
        await voice.caught_up()  # the answer comes behind the updates that the agent sent before it
    request.answer(result)  # `null` is a result like any other
    return result


async def notified(request: Request, method: str) -> None:
    distant = await _distant(request, method)
    if distant is None:
        await request.server.extension_notified(partial(_session, request), method, request.params)
    else:
        asked = CallAgent(method=method, params=Raw(encode(request.params)), notify=True)
        await distant.control.perform(asked, request.client.policy)


def _session(request: Request) -> ServedSession | None:
    """Return the session that params name, which the client has to be attached to (RPC-25)."""
    session_id = _session_id(request)
    session = None if session_id is None else request.attachment(session_id)[1]
    assert not isinstance(session, DistantSession)  # its owner is asked
    return session


async def _distant(request: Request, method: str) -> DistantSession | None:
    """Return the session that params name, if another server owns it and its agent is to be asked."""
    session_id = _session_id(request)
    if session_id is None or method.startswith(OWN):
        return None
    session = await request.registry.distant.served(session_id)
    if not isinstance(session, DistantSession):
        return None
    request.attachment(session_id)
    return session


def _session_id(request: Request) -> str | None:
    session_id = request.params.get("sessionId") if isinstance(request.params, dict) else None
    return session_id if isinstance(session_id, str) else None
