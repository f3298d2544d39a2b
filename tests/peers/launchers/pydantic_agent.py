"""pydantic-acp over stdio, with the model at `OPENAI_BASE_URL`. Sessions live in `$HOME/sessions`.

Run it with the Python that holds `pydantic-acp`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pydantic_acp import AdapterConfig, FileSessionStore, run_acp
from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel


def build(session: Any) -> Any:
    """An agent whose tools work in the session's folder; the shell and the pen ask first."""

    async def run_shell_command(command: str) -> str:
        """Run a shell command and return what it printed."""
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=session.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
        return printed.decode("utf-8", "replace")

    def read_file(path: str) -> str:
        """Read a text file."""
        return (Path(session.cwd) / path).read_text()

    def write_file(path: str, content: str) -> str:
        """Write a text file."""
        (Path(session.cwd) / path).write_text(content)
        return f"wrote {len(content)} characters"

    asking = [Tool(tool, takes_ctx=False, requires_approval=True) for tool in (run_shell_command, write_file)]
    tools = [*asking, Tool(read_file, takes_ctx=False)]
    return Agent(OpenAIChatModel("fake-model"), name="pydantic-peer", tools=tools)


if __name__ == "__main__":
    store = FileSessionStore(root=Path.home() / "sessions")
    run_acp(agent_factory=build, config=AdapterConfig(session_store=store))
