"""An agent that shows one of everything, and ends as its prompt says: `refusal`, `max_tokens`, `crash`, …"""

from __future__ import annotations

import asyncio
import sys

from antiphon import Agent, AgentTurn
from antiphon.schema import v2

agent = Agent("showcase", version="1.0")

MESSAGE = """\
# The tests are green

I changed **one line** in `song.py`, and ran them *twice*:

1. once without the change
2. once with it

```python
def sing(voices: int) -> str:
    return "la " * voices
```

> One session, many voices.
"""


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    word = turn.prompt.text.strip()
    if word in ("refusal", "max_tokens", "max_turn_requests"):
        turn.stop(word)
    if word == "fail":
        raise RuntimeError("secret")
    if word == "hang":
        await turn.say("I wait.")
        await asyncio.Event().wait()
    if word == "escape":
        await turn.say("plain \x1b]0;owned\x07\x1b[31mred\x1b[0m text")
        return
    if word == "blocks":
        await turn.say(", ".join(type(block).__name__ for block in turn.prompt.content))
        return
    await (ask if word == "ask" else show)(turn)


async def ask(turn: AgentTurn) -> None:
    """For things that one should look at before one says yes."""
    song = "".join(f"line {n}\n" for n in range(1, 101))
    async with turn.tool_call("Write song.py", kind="edit") as call:
        await call.diff("/site/song.py", old=None, new=song)
        await call.request_permission()
    rm = {"command": ["rm", "-r", "old songs"]}
    async with turn.tool_call("Tidy up", kind="execute", raw_input=rm) as call:
        await call.request_permission()
        await call.write("tidy")
    async with turn.tool_call("mail", raw_input={"to": "ann@example.org", "text": "one\ntwo"}) as call:
        await call.locate("/site/mails", line=3)
        await call.request_permission()


async def show(turn: AgentTurn) -> None:
    async with turn.thought() as thought:
        await thought.write("The build is red, ")
        await thought.write("so I look at the tests first.")
    await turn.plan(["Look", "Change", "Test"])
    async with turn.tool_call("Read song.py", kind="read") as call:
        await call.write("".join(f"line {n}\n" for n in range(1, 41)))
    async with turn.tool_call("Edit song.py", kind="edit") as call:
        await call.diff("/site/song.py", old="def sing():\n    pass\n", new="def sing():\n    return 1\n")
        if not await call.request_permission():
            await call.fail()
    async with turn.tool_call("pytest -q", kind="execute") as call:
        if await call.request_permission(
            options=[
                v2.PermissionOption(option_id="once", name="Run it once", kind="allow_once"),
                v2.PermissionOption(option_id="always", name="Always run pytest", kind="allow_always"),
                v2.PermissionOption(option_id="no", name="Do not run it", kind="reject_once"),
            ]
        ):
            await call.run([sys.executable, "-c", "print('.' * 12); print('12 passed in 0.31s')"])
        else:
            await call.fail()
    done = v2.PlanEntryStatus.COMPLETED
    await turn.plan(
        [
            v2.PlanEntry(content=step, priority=v2.PlanEntryPriority.MEDIUM, status=done)
            for step in ("Look", "Change", "Test")
        ]
    )
    async with turn.message() as message:
        for at in range(0, len(MESSAGE), 7):
            await message.write(MESSAGE[at : at + 7])
    turn.usage = v2.Usage(total_tokens=1292, input_tokens=1204, output_tokens=88)


agent.run()
