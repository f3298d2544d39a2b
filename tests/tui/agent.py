"""An agent to look at: `python agent.py`. What it does is in the prompt's text.

`say TEXT`, `markdown`, `think`, `edit` (a diff, after a question), `run` (colours in a terminal), `plan`,
`delete` (what it said last), `hold` (until it is cancelled), `form` (a field of every kind), `visit`, `fail`,
`refuse`, `many N` (messages), `choose` (a question with options of every kind), `patch` (a diff of Python),
`picture` (a small PNG).
"""

from __future__ import annotations

import asyncio
import base64
import struct
import sys
import zlib

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2

agent = Agent("scene", version="1", busy="queue")
agent.config(
    "mode", name="Mode", options={"ask": "Ask first", "auto": "Just do it"}, default="ask", category="mode"
)


def png(rows: list[list[tuple[int, int, int]]]) -> bytes:
    """A picture of these pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + bytes(part for pixel in row for part in pixel) for row in rows)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


CHOICES = [
    v2.PermissionOption(option_id=v2.PermissionOptionId(name), name=name, kind=v2.PermissionOptionKind(kind))
    for name, kind in [
        ("Never", "reject_always"),
        ("Always this tool", "allow_always"),
        ("Just this once", "allow_once"),
        ("Always this server", "allow_always"),
        ("Not now", "reject_once"),
    ]
]
"""In an order of its own, and with two options of one kind."""
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2},
        "voices": {"type": "integer", "title": "Voices", "minimum": 1, "maximum": 8, "default": 4},
        "tempo": {"type": "number", "title": "Tempo", "default": 1.5},
        "loud": {"type": "boolean", "title": "Loud", "default": False},
        "mode": {
            "type": "string",
            "title": "Mode",
            "oneOf": [{"const": "dorian", "title": "Dorian"}, {"const": "phrygian", "title": "Phrygian"}],
        },
        "parts": {
            "type": "array",
            "title": "Parts",
            "items": {"type": "string", "enum": ["alto", "bass"]},
        },
    },
    "required": ["name"],
}
SONG = 'def sing(voice: str) -> str:\n    """A song."""\n    return f"la {voice}"  # loud\n'
PICTURE = base64.b64encode(png([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (255, 255, 255)]])).decode()
MARKDOWN = """# A title

Some **bold** words, `code` and a [link](https://example.org/).

- one
- two

```python
def sing(voice):
    return "la"
```
"""


@agent.on_prompt
async def answer(turn: AgentTurn) -> str | None:
    word, _, rest = turn.prompt.text.partition(" ")
    if word == "markdown":
        async with turn.message() as message:
            for at in range(0, len(MARKDOWN), 9):
                await message.write(MARKDOWN[at : at + 9])
    elif word == "think":
        async with turn.thought() as thought:
            await thought.write("Let me see what there is to think about.")
        await turn.say("Thought.")
    elif word == "edit":
        async with turn.tool_call("Edit song.txt", kind="edit") as call:
            await call.diff("/songs/song.txt", old="la\nla\nle\n", new="la\nla\nlu\n")
            allowed = await call.request_permission()
        await turn.say(f"allowed: {allowed}")
    elif word == "choose":
        async with turn.tool_call(f"Choose {rest}", kind="other") as call:
            await call.request_permission(options=CHOICES)
        await turn.say("chosen")
    elif word == "patch":
        async with turn.tool_call("Edit song.py", kind="edit") as call:
            await call.diff("/songs/song.py", old=SONG, new=SONG.replace("la", "lu"))
    elif word == "picture":
        await turn.say("a picture:")
        async with turn.message() as message:
            await message.write(v2.ImageContent(data=PICTURE, mime_type="image/png"))
    elif word == "run":
        async with turn.tool_call("Sing", kind="execute") as call:
            script = "print('\\x1b[31mred\\x1b[0m and plain', end='\\r\\n')"
            await call.run([sys.executable, "-c", script])
    elif word == "plan":
        steps = [("Tune", "completed"), ("Sing", "in_progress"), ("Listen", "pending")]
        await turn.plan(
            [
                v2.PlanEntry(
                    content=step,
                    priority=v2.PlanEntryPriority.MEDIUM,
                    status=v2.PlanEntryStatus(status),
                )
                for step, status in steps
            ]
        )
    elif word == "delete":
        last = [message for message in turn.session.fold.messages if message.role == "agent"][-1]
        await turn.session.delete_message(last.id)
    elif word == "hold":
        await turn.say("holding")
        await asyncio.Event().wait()
    elif word == "form":
        given = await turn.ask("How shall we sing?", FORM)
        await turn.say(f"{given.action}: {given.value}")
    elif word == "visit":
        consent = await turn.ask_url("Look there", "https://page.example/path")
        await turn.say(f"visit: {consent.action}")
    elif word == "fail":
        raise RuntimeError("something private")
    elif word == "refuse":
        return "refusal"
    elif word == "many":
        for number in range(int(rest)):
            await turn.say(f"message {number}")
    else:
        await turn.say(f"heard {turn.prompt.text}")
    return None


@agent.command("tune", description="Tune the voices")
async def tune(turn: AgentTurn, rest: str) -> None:
    await turn.say(f"tuned {rest}")


if __name__ == "__main__":
    agent.run()
