"""A real MCP server, written with the `mcp` package, on stdin and stdout."""

from __future__ import annotations

import asyncio

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("real")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and tell how far it got."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return "done"


@server.tool()
async def wait() -> str:
    """Never ends by itself."""
    await asyncio.Event().wait()
    return "never"


if __name__ == "__main__":
    server.run("stdio")
