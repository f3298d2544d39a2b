"""deepagents-acp over stdio, with the model at `OPENAI_BASE_URL`. Sessions live in `$HOME/sessions.sqlite`.

Run it with the Python that holds `deepagents-acp`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import acp
from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents_acp.server import AgentServerACP, AgentSessionContext
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

ASK_FIRST = {"execute": True, "write_file": True, "edit_file": True}


async def main() -> None:
    model = ChatOpenAI(model="fake-model", max_retries=0)
    async with AsyncSqliteSaver.from_conn_string(str(Path.home() / "sessions.sqlite")) as saver:

        def build(context: AgentSessionContext) -> Any:
            backend = LocalShellBackend(root_dir=context.cwd, virtual_mode=False, inherit_env=True)
            return create_deep_agent(
                model=model, backend=backend, interrupt_on=dict(ASK_FIRST), checkpointer=saver
            )

        await acp.run_agent(AgentServerACP(build, load_sessions=True))


if __name__ == "__main__":
    asyncio.run(main())
