"""Model providers that a client may set: `providers/list`, `providers/set` and `providers/disable`."""

from __future__ import annotations

from typing import Any

from antiphon.errors import InvalidParams
from antiphon.schema import v2
from antiphon.server.providers import Provider
from antiphon.server.request import Request


async def list_providers(request: Request) -> Any:
    types, providers = request.client.types, request.server.providers.values()
    return types.ListProvidersResponse(providers=[_info(provider, types) for provider in providers])


async def set_provider(request: Request) -> Any:
    params = request.params
    await _find(request).set(v2.LlmProtocol(params.api_type), params.base_url, params.headers)
    return {}


async def disable(request: Request) -> Any:
    await _find(request).disable()
    return {}


def _find(request: Request) -> Provider:
    id, providers = request.params.provider_id, request.server.providers
    if id not in providers:
        raise InvalidParams(f"there is no provider {id!r}")
    return providers[id]


def _info(provider: Provider, types: Any) -> Any:
    current = provider.current
    return types.ProviderInfo(
        provider_id=types.ProviderId(provider.id),
        supported=list(map(types.LlmProtocol, provider.supported)),
        required=provider.required,
        current=None
        if current is None
        else types.ProviderCurrentConfig(
            api_type=types.LlmProtocol(current.api_type), base_url=current.base_url
        ),
    )
