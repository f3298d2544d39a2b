"""Extension methods: what peers agree on between themselves, under names that begin with `_` (EXT-01)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from antiphon.connection import Connection
from antiphon.errors import LocalError, MethodNotFound
from antiphon.jsonrpc.peer import Inbound

Extension = Callable[[Any], Awaitable[Any]]
"""Gets the params, any JSON value; gives the result."""

E = TypeVar("E", bound=Extension)


class Extending:
    connection: Connection

    def __init__(self) -> None:
        self._extensions: dict[str, Extension] = {}

    def extension(self, method: str) -> Callable[[E], E]:
        """Decorate what answers requests of a method of your own, such as `_example.com/pick`, and hears its
        notifications. Raise `InvalidParams`, or any `RequestError`, to refuse."""
        _check(method)

        def keep(handler: E) -> E:
            self._extensions[method] = handler
            self.connection.handlers.on_extension = self._extended
            self.connection.handlers.on_extension_notified = self._extension_notified
            return handler

        return keep

    async def call_extension(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Ask the agent something that the protocol does not have. Raises `CallFailed`, `LinkLost`."""
        _check(method)
        return await self.connection.call(method, params)

    async def notify_extension(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell the agent something that the protocol does not have."""
        _check(method)
        await self.connection.notify(method, params)

    async def _extended(self, params: Any, inbound: Inbound) -> Any:
        handler = self._extensions.get(inbound.method)
        if handler is None:
            raise MethodNotFound(inbound.method)
        result = await handler(params)
        self.connection.answer(inbound, result)  # `null` is a result like any other
        return result

    async def _extension_notified(self, method: str, params: Any) -> None:
        handler = self._extensions.get(method)
        if handler is not None:  # EXT-02
            await handler(params)


def _check(method: str) -> None:
    if not method.startswith("_"):
        raise LocalError(f"{method!r} is no extension method: its name begins with `_`")  # EXT-12
