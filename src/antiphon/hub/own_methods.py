"""OwnMethods: the methods that a hub answers itself, without a session's worker and without an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any, NamedTuple

from antiphon.errors import MethodNotFound


class OwnMethod(NamedTuple):
    name: str
    answer: Callable[[Any], Any | Awaitable[Any]]
    """Called with the params; returns the result."""
    announced: Mapping[str, Any] = {}
    """What the hub's capabilities say about it."""


class OwnMethods:
    def __init__(self, methods: Iterable[OwnMethod]) -> None:
        self._methods = {method.name: method for method in methods}

    @property
    def announced(self) -> dict[str, Any]:
        """What the hub's capabilities say about all of them."""
        return {key: value for method in self._methods.values() for key, value in method.announced.items()}

    async def answer(self, name: str, params: Any) -> Any:
        """Answer a request. Raises `MethodNotFound`."""
        method = self._methods.get(name)
        if method is None:
            raise MethodNotFound(name)
        result = method.answer(params)
        return await result if isawaitable(result) else result
