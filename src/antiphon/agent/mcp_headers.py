"""The headers of an MCP server that is reached over HTTP: what the client configured, without what is the
transport's own."""

from __future__ import annotations

from antiphon.schema import v2

OWNED = frozenset(
    [
        "accept",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    ]
)
"""What MCP's streamable HTTP transport defines, of every revision so far, in small letters."""
OWNED_PREFIX = "mcp-param-"
"""How the headers begin that carry the parameters of a call."""


def mcp_headers(server: v2.McpServerHttp) -> list[tuple[str, str]]:
    """The headers to set up a transport with, in the order in which they were given, of one name several
    perhaps. Those that MCP's transport defines are left out, however they are spelled: it writes its own, and
    a configured one must not stand in their place (MCPCFG-09)."""
    return [(header.name, header.value) for header in server.headers if not _is_owned(header.name)]


def _is_owned(name: str) -> bool:
    spelled = name.strip().lower()
    return spelled in OWNED or spelled.startswith(OWNED_PREFIX)
