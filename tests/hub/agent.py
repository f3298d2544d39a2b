"""An agent to stand behind a hub: `python agent.py [--store FILE] [--story]`. What it does is in the
prompt's text.

`say TEXT`, `wait` (until it is cancelled), `ask`, `speak` (a turn of its own, later), `count` (how many
prompts it got), `child` (leaves a process behind that has left its group), `stream N [SIZE [PAUSE]]`,
`flood N SIZE` (of what no session keeps), `story` (its whole prompt; with `--story` also as a command).
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.schema import v2
from antiphon.stores import SQLiteStore

store = SQLiteStore(Path(sys.argv[2])) if sys.argv[1:2] == ["--store"] else None
agent = Agent("stand-in", version="1", store=store)
agent.config("model", options={"small": "Small", "large": "Large"}, default="small")
INFO = v2.NoticeSeverity.INFO
log = Path(sys.argv[2]).with_suffix(".log") if store else None


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    if log is not None:
        with log.open("a") as out:
            out.write(turn.prompt.text + "\n")
    text = turn.prompt.text.splitlines()[-1]
    word, _, rest = text.partition(" ")
    if word == "wait":
        await turn.say("waiting")
        await asyncio.Event().wait()
    elif word == "ask":
        async with turn.tool_call("Touch", kind="edit") as call:
            allowed = await call.request_permission()
        await turn.say(f"allowed: {allowed}")
    elif word == "speak":
        turn.session.soon(_speak(turn.session))
    elif word == "child":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        await turn.say("left behind")
        await asyncio.Event().wait()
    elif word == "stream":
        count, size, pause, *_ = (*rest.split(), "0", "0")
        async with turn.message() as message:
            for number in range(int(count)):
                await message.write(f"{number} {'x' * int(size)}")
                if float(pause):
                    await asyncio.sleep(float(pause))
    elif word == "flood":
        count, size = map(int, rest.split())
        for number in range(count):
            await turn.session.update(v2.Notice(severity=INFO, title=f"{number} {'x' * size}"))
    elif word == "story":
        await turn.say(turn.prompt.text)
    else:
        await turn.say(f"heard {text}")


async def _story(turn: AgentTurn, rest: str) -> None:
    await turn.say(turn.prompt.text)


if "--story" in sys.argv:
    agent.command("story", description="Say what the prompt is")(_story)


async def _speak(session: AgentSession) -> None:
    await asyncio.sleep(0.05)
    async with session.turn() as turn:
        await turn.say("by myself")


agent.run()
