"""The model providers of an agent (unstable)."""

from __future__ import annotations

from collections.abc import Mapping

from antiphon.client.protocol.abilities import Abilities
from antiphon.connection import Connection
from antiphon.errors import LocalError
from antiphon.schema import v1, v2


class Providers:
    """`client.providers`: how the agent reaches its models, as far as clients can set that (PROV-01)."""

    def __init__(self, connection: Connection, abilities: Abilities) -> None:
        self._connection = connection
        self._abilities = abilities

    async def list(self) -> list[v2.ProviderInfo]:
        """The providers. One without `current` is disabled. Headers are not reported."""
        self._check()
        answer = await self._connection.call("providers/list", v2.ListProvidersRequest())
        return [_as_v2(info) for info in answer.providers]

    async def set(
        self, id: str, *, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Set one provider. This replaces all of its settings: headers that are not given are removed. Raises
        `LocalError` for a protocol that it does not support, `CallFailed` if the agent refuses."""
        wanted = v2.LlmProtocol(api_type)
        if wanted not in (await self._find(id)).supported:
            raise LocalError(f"the provider {id!r} does not support the protocol {api_type!r}")
        request = v2.SetProviderRequest(
            provider_id=v2.ProviderId(id), api_type=wanted, base_url=base_url, headers=dict(headers or {})
        )
        await self._connection.call("providers/set", request)

    async def disable(self, id: str) -> None:
        """Disable a provider. Raises `LocalError` if the agent requires it."""
        if (await self._find(id)).required:
            raise LocalError(f"the agent requires the provider {id!r}")
        await self._connection.call(
            "providers/disable", v2.DisableProviderRequest(provider_id=v2.ProviderId(id))
        )

    async def _find(self, id: str) -> v2.ProviderInfo:
        for info in await self.list():
            if info.provider_id == id:
                return info
        raise LocalError(f"this agent has no provider {id!r}")

    def _check(self) -> None:
        if not self._abilities.providers:
            raise LocalError("this agent offers no providers to set")


def _as_v2(info: v1.ProviderInfo | v2.ProviderInfo) -> v2.ProviderInfo:
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
