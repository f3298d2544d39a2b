"""The model providers of an agent, as a client sets them (unstable)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.errors import LocalError
from antiphon.schema import v1, v2

if TYPE_CHECKING:
    from antiphon.client.client import Client


class Providers:
    """`client.providers`: where the agent lets itself be told how to reach its models (PROV-01)."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> list[v2.ProviderInfo]:
        """What there is to set. One that has no `current` is disabled. Headers are not told."""
        self._check()
        told = await self._client.connection.call("providers/list", v2.ListProvidersRequest())
        return [_lifted(info) for info in told.providers]

    async def set(
        self, id: str, *, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Set one provider, in place of all that was set of it before: headers that are not given are gone.
        Raises `LocalError` for what it does not support, `CallFailed` where the agent refuses."""
        wanted = v2.LlmProtocol(api_type)
        if wanted not in (await self._find(id)).supported:
            raise LocalError(f"the provider {id!r} does not support the protocol {api_type!r}")
        request = v2.SetProviderRequest(
            provider_id=v2.ProviderId(id), api_type=wanted, base_url=base_url, headers=dict(headers or {})
        )
        await self._client.connection.call("providers/set", request)

    async def disable(self, id: str) -> None:
        """Have it not used any more. Raises `LocalError` for one that the agent requires."""
        if (await self._find(id)).required:
            raise LocalError(f"the agent requires the provider {id!r}")
        await self._client.connection.call(
            "providers/disable", v2.DisableProviderRequest(provider_id=v2.ProviderId(id))
        )

    async def _find(self, id: str) -> v2.ProviderInfo:
        for info in await self.list():
            if info.provider_id == id:
                return info
        raise LocalError(f"this agent has no provider {id!r}")

    def _check(self) -> None:
        if not self._client.abilities.providers:
            raise LocalError("this agent lets no providers be set")


def _lifted(info: v1.ProviderInfo | v2.ProviderInfo) -> v2.ProviderInfo:
    if isinstance(info, v2.ProviderInfo):
        return info
    current = info.current
    return v2.ProviderInfo(
        provider_id=v2.ProviderId(info.provider_id),
        supported=list(map(v2.LlmProtocol, info.supported)),
        required=info.required,
        current=None
        if current is None
        else v2.ProviderCurrentConfig(
            api_type=v2.LlmProtocol(current.api_type), base_url=current.base_url, meta=current.meta
        ),
        meta=info.meta,
    )
