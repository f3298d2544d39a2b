"""Connects the good agent to stdio MCP servers. It greets them, and uses none of their tools."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process

from tests.conformance.good.peer import Json

GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "good-agent", "version": "1.0"},
}


async def connect(server: Json, cwd: str) -> None:
    """Run one server until the caller is cancelled or the server exits."""
    env = {variable["name"]: variable["value"] for variable in server.get("env") or []}
    command = [server["command"], *(server.get("args") or [])]
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, cwd=cwd, env=os.environ | env, stdin=PIPE, stdout=PIPE)
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:  # asyncio would leave a process that has just been started
        await end(await starting)
        raise
    except (OSError, ValueError) as error:
        print(f"MCP server not started: {type(error).__name__}", file=sys.stderr)  # RPC-27
        return
    try:
        await greet(process)
        await process.wait()
    finally:
        await end(process)


async def end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def greet(process: Process) -> None:
    """Do the handshake of MCP."""
    assert process.stdin is not None
    assert process.stdout is not None
    send(process.stdin, {"id": 1, "method": "initialize", "params": GREETING})
    if await process.stdout.readline():
        send(process.stdin, {"method": "notifications/initialized"})


def send(stdin: asyncio.StreamWriter, frame: Json) -> None:
    stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
