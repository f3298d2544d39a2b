"""Calls of an agent whose answers need more than the result: a place in the lane, or a tolerated error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from antiphon.connection import Connection
from antiphon.errors import CallFailed, ResourceNotFound

T = TypeVar("T")


async def call_in_lane(
    connection: Connection,
    method: str,
    params: Any,
    answered: Callable[[Any], T],
    *,
    first: bool = False,
    lasting: bool = False,
) -> T:
    """Call the agent, and return what `answered` makes of the result. It runs in the lane of the session:
    everything that the agent sent before its answer has been applied. `first` and `lasting` are those of
    `Connection.begin`."""
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def receive(outcome: Any) -> None:
        if done.done():
            return
        try:
            if isinstance(outcome, Exception):
                raise outcome
            done.set_result(answered(outcome))
        except Exception as error:
            done.set_exception(error)

    call = connection.begin(method, params, receive, first=first, lasting=lasting)
    try:
        return await done
    except asyncio.CancelledError:
        connection.abandon(call)
        raise


async def call_end(connection: Connection, method: str, params: Any) -> None:
    """Call a method that ends a session. A session that does not exist counts as ended (SESS-45)."""
    try:
        await connection.call(method, params)
    except CallFailed as error:
        if error.error.code != ResourceNotFound.code:
            raise
