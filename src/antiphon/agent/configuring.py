"""Config options, modes and models on the wire: what a client sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon.agent.declaring import options_of
from antiphon.agent.session import AgentSession
from antiphon.bridge import requests as upward
from antiphon.engine.configuration import Value, find_option, takes
from antiphon.errors import InvalidParams, LocalError, StoreError
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1, v2
from antiphon.schema.v1.models import SetSessionModelRequest, SetSessionModelResponse
from antiphon.schema.version import without_ours

if TYPE_CHECKING:
    from antiphon.agent.link import Handlers, Link


def handlers(link: Link) -> Handlers:
    async def set_option(params: Any, inbound: Inbound) -> Any:
        if isinstance(params, dict):
            raise InvalidParams("a value is of type `id` or `boolean`")  # CONF-V2-02
        _, session = link.voice(params.session_id)
        wanted = upward.set_config_option(params) if link.v1 else params
        await _set(session, wanted)
        options = await _as_written(link, session)
        voice, _ = link.voice(session.id)
        result = voice.writer.configured(v2.SetSessionConfigOptionResponse(config_options=options))
        link.connection.answer(inbound, result)
        return result

    async def set_mode(params: v1.SetSessionModeRequest, inbound: Inbound) -> Any:
        _, session = link.voice(params.session_id)
        wanted = upward.set_mode(params, options_of(session.fold))
        await _set(session, wanted)
        await _as_written(link, session)
        return v1.SetSessionModeResponse()

    async def set_model(params: SetSessionModelRequest, inbound: Inbound) -> Any:
        _, session = link.voice(params.session_id)
        await _set(session, upward.set_model(params, options_of(session.fold)))
        await _as_written(link, session)
        return SetSessionModelResponse()

    return {
        "session/set_config_option": set_option,
        "session/set_mode": set_mode,
        "session/set_model": set_model,
    }


async def _set(
    session: AgentSession, wanted: v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean
) -> None:
    """One at a time: what a handler takes its time over is not overtaken by what was asked after it."""
    id, value = wanted.config_id, wanted.value
    async with session.configuring:
        _check(session, id, value)
        declared = session.declared.option(id)
        if declared is not None and declared.handler is not None and session.config[id] != value:
            try:
                await declared.handler(session, value)
            except StoreError:
                raise
            except LocalError:
                raise InvalidParams(f"the agent refuses this value of {id!r}") from None
            _check(session, id, value)  # what is offered may be something else by now
        await session.take_config(id, value, without_ours(wanted.meta))


def _check(session: AgentSession, id: str, value: Value) -> None:
    """CONF-V2-02: refused, and nothing is changed."""
    option = find_option(options_of(session.fold), id)
    if option is None:
        raise InvalidParams(f"the session has no config option {id!r}")
    if not takes(option, value):
        raise InvalidParams(f"the config option {id!r} does not take this value")


async def _as_written(link: Link, session: AgentSession) -> list[v2.SessionConfigOption]:
    """The complete list, once this client has been sent all that led to it: an answer that told more would
    run ahead of the journal, and one that told less would undo what the client knows."""
    while True:
        options = options_of(session.fold)
        await session.live.durable()
        voice, _ = link.voice(session.id)
        await voice.caught_up()
        if options_of(session.fold) == options:
            return options
