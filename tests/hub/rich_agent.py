"""An agent that uses what its clients offer: `python rich_agent.py [--store FILE] [--login]`.

What it does is in the prompt's text: `read PATH`, `write PATH TEXT`, `run COMMAND…` (in a terminal of the
client), `form`, `visit` (an address), `child` (a subagent, which waits until it is cancelled), `child ask`,
`child form`, `child work` (it works and ends), `hold FILE` (until the file exists; then `form`), `say`.
`--login` wants one: `key`, `form` or `visit`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from msgspec import Struct

from antiphon.agent import Agent, AgentTurn
from antiphon.agent.logins import Login
from antiphon.errors import AntiphonError, AuthRequired
from antiphon.stores import SQLiteStore

store = SQLiteStore(Path(sys.argv[2])) if sys.argv[1:2] == ["--store"] else None
agent = Agent("rich", version="1", store=store)


class Name(Struct):
    name: str


if "--login" in sys.argv:

    @agent.on_login("key", name="A key", description="It opens the door")
    async def by_key(login: Login) -> None:
        if login.meta.get("key") == "wrong":
            raise AuthRequired("this key does not fit")

    @agent.on_login("form", name="A form")
    async def by_form(login: Login) -> None:
        answer = await login.ask("Who are you?", Name)
        if answer.value is None or answer.value.name != "ann":
            raise AuthRequired("that is nobody")

    @agent.on_login("visit", name="A page")
    async def by_page(login: Login) -> None:
        consent = await login.ask_url("Log in there", "https://login.example/")
        if not consent.accepted:
            raise AuthRequired("nobody went there")
        await consent.complete()


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    word, _, rest = turn.prompt.text.splitlines()[-1].partition(" ")
    try:
        await WAYS.get(word, say)(turn, rest)
    except AntiphonError as error:
        await turn.say(f"failed: {error}")


async def say(turn: AgentTurn, rest: str) -> None:
    await turn.say(f"heard {rest}")


async def read(turn: AgentTurn, path: str) -> None:
    await turn.say(await turn.client.read(path))


async def write(turn: AgentTurn, rest: str) -> None:
    path, _, text = rest.partition(" ")
    await turn.client.write(path, text)
    await turn.say("written")


async def run(turn: AgentTurn, command: str) -> None:
    async with (
        turn.tool_call("Run", kind="execute") as call,
        turn.client.terminal(command.split(), call=call) as terminal,
    ):
        status = await terminal.wait()
        shown = await terminal.output()
    await turn.say(f"{status.exit_code}: {shown.text.strip()}")


async def form(turn: AgentTurn, _: str) -> None:
    given = await turn.ask("Who are you?", Name)
    await turn.say(f"{given.action} {None if given.value is None else given.value.name}")


async def visit(turn: AgentTurn, _: str) -> None:
    consent = await turn.ask_url("Look there", "https://page.example/")
    await turn.say(f"{consent.action}")
    if consent.accepted:
        await consent.complete()


async def hold(turn: AgentTurn, file: str) -> None:
    await turn.say("holding")
    while not Path(file).exists():  # noqa: ASYNC110,ASYNC240 # another process makes it
        await asyncio.sleep(0.01)
    await form(turn, "")


async def child(turn: AgentTurn, rest: str) -> None:
    async with turn.subagent("Helper", description="helps", cancellable=True) as helper:
        await helper.instruct("Help!")
        await helper.say("on it")
        if rest == "ask":
            async with helper.tool_call("Touch", kind="edit") as call:
                allowed = await call.request_permission()
            await helper.say(f"allowed: {allowed}")
        elif rest == "form":
            given = await helper.ask("Whose child?", Name)
            await helper.say(f"{given.action} {None if given.value is None else given.value.name}")
        elif rest != "work":
            await asyncio.Event().wait()
        await helper.report("Done")
    await turn.say("the child is done")


WAYS = {
    "read": read,
    "write": write,
    "run": run,
    "form": form,
    "visit": visit,
    "child": child,
    "hold": hold,
    "say": say,
}

agent.run()
