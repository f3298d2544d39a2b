"""Model providers that a client may set: by which protocol, where and with which headers the agent reaches
its models (`providers/list`, `providers/set`, `providers/disable`; unstable).

What is set holds for the agent as a whole and for as long as it runs: headers are secrets, so they are kept
in no store and shown to no client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from antiphon.errors import InvalidParams, LocalError
from antiphon.schema import v2


class ProviderSetting(Struct, frozen=True, kw_only=True):
    """How a provider is reached."""

    api_type: v2.LlmProtocol
    base_url: str
    headers: dict[str, str] = {}
    """What goes with every request to it. They are not shown: keys are among them."""

    def __repr__(self) -> str:
        return f"ProviderSetting({self.api_type!s}, {self.base_url!r}, headers of {sorted(self.headers)})"


ProviderHandler = Callable[[ProviderSetting | None], Awaitable[None]]
"""Called with what a client wants set, `None` to disable it, before it holds; `InvalidParams` refuses it."""
H = TypeVar("H", bound=ProviderHandler)


class Provider:
    """What `agent.provider(...)` gives: read `current` for every request to a model. Decorate with it the
    handler that is asked about changes."""

    def __init__(
        self,
        id: str,
        *,
        supports: Collection[str],
        required: bool,
        api_type: str | None,
        base_url: str | None,
        headers: dict[str, str] | None,
    ) -> None:
        """Raises `LocalError` for what could not be offered."""
        self.id = v2.ProviderId(id)
        self.supported = tuple(map(v2.LlmProtocol, supports))
        self.required = required
        """Whether the agent cannot do without it: then it cannot be disabled."""
        self.current: ProviderSetting | None = None
        """How it is reached now; `None` where it is disabled."""
        self._handler: ProviderHandler | None = None
        self._one_at_a_time = asyncio.Lock()
        if not id or not self.supported:
            raise LocalError("a provider has an id and supports some protocol")
        if base_url is not None:
            protocol = v2.LlmProtocol(api_type or self.supported[0])
            self.current = ProviderSetting(api_type=protocol, base_url=base_url, headers=headers or {})
            try:
                self._check(self.current)
            except InvalidParams as error:
                raise LocalError(error.detail) from None

    def __call__(self, handler: H) -> H:
        if self._handler is not None:
            raise LocalError(f"the provider {self.id!r} has one handler")
        self._handler = handler
        return handler

    async def set(self, api_type: v2.LlmProtocol, base_url: str, headers: dict[str, str]) -> None:
        """Replace what was set before. Raises `InvalidParams`."""
        await self._change(ProviderSetting(api_type=api_type, base_url=base_url, headers=headers))

    async def disable(self) -> None:
        """Raises `InvalidParams` where the agent cannot do without it."""
        await self._change(None)

    async def _change(self, wanted: ProviderSetting | None) -> None:
        if wanted is None and self.required:
            raise InvalidParams(f"the provider {self.id!r} is required")
        if wanted is not None:
            self._check(wanted)
        async with self._one_at_a_time:
            if self._handler is not None:
                try:
                    await self._handler(wanted)
                except LocalError:
                    raise InvalidParams(f"the agent refuses this setting of {self.id!r}") from None
            self.current = wanted

    def _check(self, setting: ProviderSetting) -> None:
        if setting.api_type not in self.supported:
            raise InvalidParams(f"the provider does not support the protocol {str(setting.api_type)!r}")
        try:
            address = urlsplit(setting.base_url)
        except ValueError:
            address = urlsplit("")
        if address.scheme not in ("http", "https") or not address.netloc:
            raise InvalidParams("a base URL is an `http:` or `https:` address")
