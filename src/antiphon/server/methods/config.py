"""Config options, modes and models: what a client sets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from antiphon.bridge.upgrade import requests as upward
from antiphon.errors import AntiphonError, InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelResponse
from antiphon.schema.version import without_ours
from antiphon.server.control.operations import Configure
from antiphon.server.distant.session import AnySession
from antiphon.server.request import Request
from antiphon.server.session_facts import options_of

Wanted = v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean


async def set_option(request: Request) -> Any:
    params = request.params
    if isinstance(params, dict):
        raise InvalidParams("a value is of type `id` or `boolean`")  # CONF-V2-02
    _, session = await request.attached(params.session_id)
    options = await _set(request, session, upward.set_config_option(params) if request.client.v1 else params)
    voice, _ = await request.attached(session.id)
    result = voice.writer.configured(v2.SetSessionConfigOptionResponse(config_options=options))
    request.answer(result)
    return result


async def set_mode(request: Request) -> Any:
    await _set_v1(request, upward.set_mode)
    return v1.SetSessionModeResponse()


async def set_model(request: Request) -> Any:
    await _set_v1(request, upward.set_model)
    return SetSessionModelResponse()


async def _set_v1(request: Request, upgrade: Callable[[Any, list[v2.SessionConfigOption]], Wanted]) -> None:
    _, session = await request.attached(request.params.session_id)
    await _set(request, session, upgrade(request.params, options_of(session.fold)))


async def _set(request: Request, session: AnySession, wanted: Wanted) -> list[v2.SessionConfigOption]:
    asked = Configure(option_id=wanted.config_id, value=wanted.value, meta=without_ours(wanted.meta))
    try:
        await request.perform(session, asked)
    except AntiphonError:
        with suppress(AntiphonError):  # the client may be detached by now
            await _as_written(request, session)  # a notice about what failed comes before the error
        raise
    return await _as_written(request, session)


async def _as_written(request: Request, session: AnySession) -> list[v2.SessionConfigOption]:
    """Return the complete list, once this client has been sent all that led to it: an answer that said more
    would run ahead of the journal, and one that said less would undo what the client knows."""
    while True:
        voice, session = await request.attached(session.id)
        options = options_of(session.fold)
        await session.feed.durable()
        await voice.caught_up()
        if options_of(session.fold) == options:
            return options
