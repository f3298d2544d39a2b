"""`/think`, `/markdown`, `/table`, `/image` and `/stream`: what a message can be made of."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from antiphon.agent import AgentTurn
from antiphon.content import image as image_block
from antiphon.rehearsal.folder import count_lines, root
from antiphon.rehearsal.pace import rest as pause
from antiphon.rehearsal.pace import speak, write
from antiphon.rehearsal.pictures import draw_voices
from antiphon.rehearsal.skill import Skill, number

MARKDOWN = """\
## Two voices

An *antiphon* is sung by **two choirs in turn**: one begins, the other answers. Here they are `client` and
`agent`.

1. The client sends a prompt.
2. The agent answers in pieces:
   - words and thoughts
   - tool calls, plans, questions

| Voice | Says | In the protocol |
|:------|:-----|:----------------|
| client | a prompt | `session/prompt` |
| agent | words | `agent_message_chunk` |
| agent | work | `tool_call_update` |

```python
async def answer(turn):
    async with turn.message() as message:
        await message.write("la la la")
```

> One session, many voices.

More of it: [the protocol](https://agentclientprotocol.com).
"""
SENTENCE = "Chunk {n} of {total}. "
MOST_CHUNKS = 10_000
LARGEST = 999_999_999_999
MOST_ROWS = 12


async def think(turn: AgentTurn, rest: str) -> None:
    """Whether a number is prime is worth a thought."""
    value = max(number(rest, 391, most=LARGEST), 2)
    factors = await asyncio.to_thread(_factors, value)
    async with turn.thought() as thought:
        await write(turn, thought, f"Is {value} a prime? I try what could divide it.\n\n")
        for divisor in _tried(factors[0]):
            left = value % divisor
            await write(turn, thought, f"{divisor}: {'it does' if not left else f'{left} is left'}. ")
            await pause(turn.session, 0.1)
    if factors == [value]:
        await speak(turn, f"{value} is a prime.")
    else:
        await speak(turn, f"{value} is no prime: {' × '.join(map(str, factors))}.")


def _factors(value: int) -> list[int]:
    factors, divisor = [], 2
    while divisor * divisor <= value:
        while value % divisor == 0:
            factors.append(divisor)
            value //= divisor
        divisor += 1 if divisor == 2 else 2
    return [*factors, value] if value > 1 else factors


def _tried(smallest: int) -> list[int]:
    """A dozen primes, as far as the one that divides."""
    return [one for one in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37) if one <= smallest]


async def markdown(turn: AgentTurn, rest: str) -> None:
    await speak(turn, MARKDOWN)


async def table(turn: AgentTurn, rest: str) -> None:
    try:
        sizes = await asyncio.to_thread(_sizes, root(turn.session))
    except OSError:
        sizes = {}
    lines = await count_lines(list(sizes))
    rows = [
        f"| `{path.name.replace('|', '')}` | {size:,} | {lines.get(path, '–')} |"
        for path, size in sizes.items()
    ]
    head = "| File | Bytes | Lines |\n|:--|--:|--:|"
    body = "\n".join(rows) or "| (no files) | | |"
    await speak(turn, f"The files of this session's folder:\n\n{head}\n{body}\n")


def _sizes(folder: Path) -> dict[Path, int]:
    """The first files of a folder and how long they are."""
    with os.scandir(folder) as entries:
        found = sorted(Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False))
    return {path: path.lstat().st_size for path in found[:MOST_ROWS]}


async def image(turn: AgentTurn, rest: str) -> None:
    picture = await asyncio.to_thread(draw_voices)
    async with turn.message() as message:
        await write(
            turn, message, "Two voices, the second a little behind the first, drawn a moment ago:\n\n"
        )
        await message.write(image_block(picture, "image/png"))


async def stream(turn: AgentTurn, rest: str) -> None:
    count, _, words = rest.partition(" ")
    total = number(count, 20, most=MOST_CHUNKS)
    async with turn.message() as message:
        for n in range(1, total + 1):
            await message.write(f"{words.strip()} " if words.strip() else SENTENCE.format(n=n, total=total))
            await pause(turn.session, 0.06)


SKILLS = (
    Skill(
        name="stream",
        description="Stream a message in pieces",
        hint="how many, and perhaps which words",
        work=stream,
        about="`agent_message_chunk`, one for every piece, all with the same `messageId`.",
    ),
    Skill(
        name="think",
        description="Think aloud whether a number is prime",
        hint="a number",
        work=think,
        plain=True,
        about="`agent_thought_chunk`: a thought is a message of a kind of its own, and clients may fold it.",
    ),
    Skill(
        name="markdown",
        description="Say something with headings, lists, a table, code and a quote",
        work=markdown,
        plain=True,
        about="a plain message. Text is Markdown, and the client draws it.",
    ),
    Skill(
        name="table",
        description="Show the files of this folder as a table",
        work=table,
        plain=True,
        about="Markdown again: a message is made to be read by people.",
    ),
    Skill(
        name="image",
        description="Draw a small picture",
        work=image,
        plain=True,
        about="a message with an `image` block between its words. Prompts can hold images, too.",
    ),
)
