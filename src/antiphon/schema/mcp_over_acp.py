"""MCP over ACP: the MCP revision, its `_meta` keys, and the error codes of ACP requests."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

MESSAGE: Final = "mcp/message"
REVISION: Final = "2026-07-28"
"""The only supported revision of MCP (MCPACP-08)."""
REVISION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"


class McpErrorCode(IntEnum):
    """Errors of the ACP request, besides those of JSON-RPC (MCPACP-05), not those of an MCP server."""

    LIMIT = -33000
    UNKNOWN_SERVER = -33001
    BACKEND_FAILED = -33002


UNSUPPORTED_REVISION: Final = -32022
"""MCP's error code for an unsupported revision."""
INVALID_PARAMS: Final = -32602


def with_inner_meta(
    params: dict[str, Any] | None, *, info: dict[str, Any], capabilities: dict[str, Any]
) -> dict[str, Any]:
    """Return the params of an MCP request with the `_meta` of that revision. Keys of the caller stay."""
    given = (params or {}).get("_meta")
    meta = {
        REVISION_KEY: REVISION,
        CAPABILITIES_KEY: capabilities,
        INFO_KEY: info,
        **(given if isinstance(given, dict) else {}),
    }
    return {**(params or {}), "_meta": meta}


def inner_fault(params: dict[str, Any] | None) -> tuple[int, str, Any] | None:
    """Return the MCP error for an invalid `_meta` of an MCP request, else `None`."""
    meta = (params or {}).get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    revision = meta.get(REVISION_KEY)
    if not isinstance(revision, str):
        return INVALID_PARAMS, f"`_meta` lacks {REVISION_KEY}", None
    if revision != REVISION:
        supported = {"supported": [REVISION], "requested": revision}
        return UNSUPPORTED_REVISION, "Unsupported protocol version", supported
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        return INVALID_PARAMS, f"`_meta` lacks {CAPABILITIES_KEY}", None
    return None
