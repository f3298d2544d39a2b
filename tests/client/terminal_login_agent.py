"""An agent that is logged in once a token lies in the file `$TOKEN_FILE`; a login in a terminal puts it there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from antiphon import Agent, AgentTurn
from antiphon.agent.logins import Login

agent = Agent("terminal login", version="1")
token = Path(os.environ["TOKEN_FILE"])


@agent.terminal_login("console", name="In a terminal", args=["--login", "now"], env={"HOW": "well"})
async def log_in() -> None:
    if os.environ["HOW"] != "well" or os.environ["BASE"] != "kept":
        raise RuntimeError("the environment is wrong")
    if token.with_suffix(".refuse").exists():
        raise RuntimeError("refused")
    if token.with_suffix(".hang").exists():
        token.with_suffix(".pid").write_text(str(os.getpid()))
        import asyncio

        await asyncio.Event().wait()
    token.write_text(" ".join([*sys.argv[1:], os.getcwd()]))


@agent.on_auth_status
async def status(login: Login | None) -> str:
    return "authenticated" if token.exists() else "unauthenticated"


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    await turn.say("in")


agent.run()
