"""An agent that is logged in once there is a token in `$TOKEN_FILE`; a login in a terminal puts it there."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from antiphon import Agent, AgentTurn
from antiphon.agent.logins import Login

agent = Agent("terminal login", version="1")
token = Path(os.environ["TOKEN_FILE"])
refused = token.with_suffix(".refuse").exists()
hangs = token.with_suffix(".pid")
"""A pipe, where it should wait for ever."""


def keep_token() -> None:
    token.write_text(" ".join([*sys.argv[1:], os.getcwd()]))


def has_token() -> bool:
    return token.exists()


@agent.terminal_login("console", name="In a terminal", args=["--login", "now"], env={"HOW": "well"})
async def log_in() -> None:
    if (os.environ["HOW"], os.environ["BASE"]) != ("well", "kept"):
        raise RuntimeError("the environment is wrong")
    if refused:
        raise RuntimeError("refused")
    if hangs.exists():
        hangs.write_text(str(os.getpid()))
        await asyncio.Event().wait()
    keep_token()


@agent.on_auth_status
async def status(login: Login | None) -> str:
    return "authenticated" if has_token() else "unauthenticated"


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    await turn.say("in")


agent.run()
