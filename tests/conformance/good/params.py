"""Checks of what a client sends, strict where the schema is strict (RPC-40).

A refusal repeats no value, which may be a secret (RPC-27).
"""

from __future__ import annotations

import binascii
import os
from typing import Any

from tests.conformance.good.peer import INVALID_PARAMS, Json, Refused

BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
    "resource": (),
}
"""The required strings of each content block."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(INVALID_PARAMS, message)


def text(params: Json, key: str) -> str:
    value = params.get(key)
    require(isinstance(value, str), f"`{key}` is a string")
    return str(value)


def absolute_path(params: Json, key: str) -> str:
    value = text(params, key)
    require(os.path.isabs(value), f"`{key}` is an absolute path")
    return value


def items(params: Json, key: str) -> list[Any]:
    """Return a list that may be missing or `null`."""
    value = params.get(key)
    require(value is None or isinstance(value, list), f"`{key}` is an array")
    return value or []


def directories(params: Json) -> list[str]:
    found = items(params, "additionalDirectories")
    require(
        all(isinstance(path, str) and os.path.isabs(path) for path in found),
        "every one of `additionalDirectories` is an absolute path",
    )
    return found


def content(params: Json, version: int) -> list[Json]:
    """Return the content blocks of a prompt (PROMPT-V2-01, PROMPT-V2-09)."""
    blocks = params.get("prompt")
    require(isinstance(blocks, list), "`prompt` is an array")
    assert isinstance(blocks, list)
    require(version == 1 or bool(blocks), "`prompt` has at least one content block")
    for block in blocks:
        require(
            isinstance(block, dict) and block.get("type") in tuple(BLOCKS), "a content block has a known type"
        )
        for key in BLOCKS[block["type"]]:
            text(block, key)
        if block["type"] == "resource":
            resource(block.get("resource"), version)
        elif "data" in BLOCKS[block["type"]] and version == 2:
            base64(block["data"])
    return blocks


def resource(value: Any, version: int) -> None:
    require(isinstance(value, dict) and isinstance(value.get("uri"), str), "`resource` has a `uri`")
    has_content = any(isinstance(value.get(key), str) for key in ("text", "blob"))
    require(has_content, "`resource` has `text` or `blob`")
    if version == 2 and isinstance(value.get("blob"), str):
        base64(value["blob"])


def base64(data: str) -> None:
    """Check base64, which v2 wants in its standard form (CONT-04)."""
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        raise Refused(INVALID_PARAMS, "binary data is standard base64") from None


def servers(params: Json, version: int, *, needed: bool) -> list[Json]:
    """Return the MCP servers: stdio is supported, which v1 does not write (MCPCFG-01, MCPCFG-05)."""
    require("mcpServers" in params or not needed, "`mcpServers` is an array")
    found = items(params, "mcpServers")
    for server in found:
        require(isinstance(server, dict), "an MCP server is an object")
        transport = server.get("type") if version == 2 else server.get("type", "stdio")
        require(transport == "stdio", "an MCP server has a supported transport")
        text(server, "name")
        absolute_path(server, "command")
        for key in ("args", "env"):
            require(version == 2 or key in server, f"an MCP server has `{key}`")
        require(all(isinstance(item, str) for item in items(server, "args")), "`args` are strings")
        for variable in items(server, "env"):
            require(isinstance(variable, dict), "a variable is an object")
            text(variable, "name")
            text(variable, "value")
    names = [server["name"] for server in found]
    require(version == 1 or len(set(names)) == len(names), "MCP servers have different names")  # MCPCFG-06
    return found


def replay_from_start(params: Json) -> bool:
    """Return whether a resume asks for the history (SESS-17, SESS-19)."""
    cursor = params.get("replayFrom")
    require(
        cursor is None or (isinstance(cursor, dict) and cursor.get("type") == "start"),
        "`replayFrom` is a known cursor",
    )
    return cursor is not None
