"""What MCP over ACP adds to the schema: the MCP revision inside, its `_meta` keys, the outer error codes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

MESSAGE: Final = "mcp/message"
REVISION: Final = "2026-07-28"
"""The one revision of MCP that is spoken inside (MCPACP-08)."""
REVISION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"


class BindingError(IntEnum):
    """Outer errors, beside those of JSON-RPC (MCPACP-05); what an MCP server answers is never one."""

    LIMIT = -33000
    UNKNOWN_SERVER = -33001
    BACKEND_FAILED = -33002


UNSUPPORTED_REVISION: Final = -32022
"""What MCP itself answers to a revision that it does not speak."""
INVALID_PARAMS: Final = -32602


def with_inner_meta(
    params: dict[str, Any] | None, *, info: dict[str, Any], capabilities: dict[str, Any]
) -> dict[str, Any]:
    """`params` of an MCP request as that revision wants them; what the caller gave stays."""
    given = (params or {}).get("_meta")
    meta = {
        REVISION_KEY: REVISION,
        CAPABILITIES_KEY: capabilities,
        INFO_KEY: info,
        **(given if isinstance(given, dict) else {}),
    }
    return {**(params or {}), "_meta": meta}


def inner_fault(params: dict[str, Any] | None) -> tuple[int, str, Any] | None:
    """What is wrong with the `_meta` of an MCP request, as the inner error that answers it."""
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
