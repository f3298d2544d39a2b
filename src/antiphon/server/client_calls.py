"""What a server asks of clients: extension methods (EXT-01), and files and terminals on their machines
(v1; FS, TERMV1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from antiphon.connection import Connection
from antiphon.errors import CallFailed, LinkLost, MethodNotFound
from antiphon.schema import v1
from antiphon.server.connection import ClientConnection

Can = Callable[[v1.ClientCapabilities], bool]


def reads(able: v1.ClientCapabilities) -> bool:
    return able.fs.read_text_file


def writes(able: v1.ClientCapabilities) -> bool:
    return able.fs.write_text_file


def runs(able: v1.ClientCapabilities) -> bool:
    return able.terminal


async def create_terminal(connection: Connection, params: v1.CreateTerminalRequest) -> v1.TerminalId:
    """Call `terminal/create`. If the caller gives up, a terminal that is made nevertheless is released
    (TERMV1-07)."""
    made: asyncio.Future[v1.TerminalId] = asyncio.get_running_loop().create_future()

    def answered(outcome: Any) -> None:
        if made.cancelled():
            if isinstance(outcome, v1.CreateTerminalResponse):
                send_release(connection, params.session_id, outcome.terminal_id)
        elif isinstance(outcome, Exception):
            made.set_exception(outcome)
        else:
            made.set_result(outcome.terminal_id)

    connection.begin("terminal/create", params, answered)
    return await made


def send_release(
    connection: Connection, session_id: v1.SessionId, terminal_id: v1.TerminalId
) -> asyncio.Event:
    """Call `terminal/release`. The event is set when it was answered, whatever the answer is."""
    params = v1.ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal_id)
    answered = asyncio.Event()
    try:
        connection.begin("terminal/release", params, lambda _: answered.set())
    except LinkLost:
        answered.set()  # it went with the client
    return answered


async def ask_first(
    clients: Sequence[ClientConnection], session_id: str | None, method: str, params: Any
) -> Any:
    """Ask these clients; the first result counts, and the other requests are cancelled. Raises
    `MethodNotFound` where no client is there or none knows the method; else the first error of one that
    does."""

    async def ask(client: ClientConnection) -> Any:
        voice = None if session_id is None else client.voices.get(session_id)
        if voice is not None:
            await voice.caught_up()
        return await client.ask(method, params)

    asked = [asyncio.ensure_future(ask(client)) for client in clients]
    refusal: BaseException = MethodNotFound(method)
    try:
        for answered in asyncio.as_completed(asked):
            try:
                return await answered
            except CallFailed as error:
                if error.error.code != MethodNotFound.code and isinstance(refusal, MethodNotFound):
                    refusal = error
            except LinkLost:
                pass  # it has gone
        raise refusal
    finally:
        for each in asked:
            each.cancel()  # the client gets a `$/cancel_request`
        if asked:
            await asyncio.wait(asked)
