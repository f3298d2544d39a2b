"""ClientExtensions: methods that the protocol does not have, in both directions (EXT-01)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from antiphon.connection import Connection
from antiphon.errors import LocalError, MethodNotFound
from antiphon.jsonrpc.peer import Inbound

Extension = Callable[[Any], Awaitable[Any]]
"""Gets the params, any JSON value, and returns the result."""
E = TypeVar("E", bound=Extension)


class ClientExtensions:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._handlers: dict[str, Extension] = {}

    def register(self, method: str) -> Callable[[E], E]:
        """Decorate the handler of a method."""
        _check_extension(method)

        def keep(handler: E) -> E:
            self._handlers[method] = handler
            self._connection.handlers.on_extension = self._requested
            self._connection.handlers.on_extension_notified = self._notified
            return handler

        return keep

    async def call(self, method: str, params: dict[str, Any] | None) -> Any:
        _check_extension(method)
        return await self._connection.call(method, params)

    async def notify(self, method: str, params: dict[str, Any] | None) -> None:
        _check_extension(method)
        await self._connection.notify(method, params)

    async def _requested(self, params: Any, inbound: Inbound) -> Any:
        handler = self._handlers.get(inbound.method)
        if handler is None:
            raise MethodNotFound(inbound.method)
        result = await handler(params)
        self._connection.answer(inbound, result)  # `null` is a valid result
        return result

    async def _notified(self, method: str, params: Any) -> None:
        handler = self._handlers.get(method)
        if handler is not None:  # EXT-02
            await handler(params)


def _check_extension(method: str) -> None:
    if not method.startswith("_"):
        raise LocalError(f"an extension method begins with `_`, got {method!r}")  # EXT-12
