"""Extension methods: what client and agent agree on between themselves (EXT-01)."""

from __future__ import annotations

from functools import partial
from typing import Any

from antiphon.connection.sessions import session_of
from antiphon.server.request import Request
from antiphon.server.session import ServedSession


async def call(request: Request) -> Any:
    find, method = partial(_session, request), request.inbound.method
    result = await request.server.call_extension(find, method, request.params)
    voice = request.client.voices.get(session_of(request.params) or "")
    if voice is not None:
        await voice.caught_up()  # the answer comes behind the updates that the agent sent before it
    request.answer(result)  # `null` is a result like any other
    return result


async def notified(request: Request, method: str) -> None:
    await request.server.extension_notified(partial(_session, request), method, request.params)


def _session(request: Request) -> ServedSession | None:
    """Return the session that params name, which the client has to be attached to (RPC-25)."""
    params = request.params
    session_id = params.get("sessionId") if isinstance(params, dict) else None
    return request.attached(session_id)[1] if isinstance(session_id, str) else None
