"""Extension methods of others, under names that begin with `_` (EXT-01): how clients are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from antiphon.errors import CallFailed, LinkLost, MethodNotFound
from antiphon.server.connection import ClientConnection


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
            each.cancel()  # a call that is given up tells its peer
        if asked:
            await asyncio.wait(asked)
