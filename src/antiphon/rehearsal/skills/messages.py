"""`/stream`, `/think`, `/markdown`, `/table` and `/image`: what a message can contain."""

from __future__ import annotations

import asyncio
import math
import os
import struct
import zlib
from pathlib import Path

from antiphon.agent import AgentTurn
from antiphon.content import image as image_block
from antiphon.rehearsal.folder import count_lines, root
from antiphon.rehearsal.skill import number, pause, skill, speak, write

WIDTH, HEIGHT = 480, 160
PAPER = (250, 248, 244)
VOICES = (((0, 104, 122), 0.0), ((202, 110, 48), 1.1))
"""The colour of each, and its delay."""
_HALF = 3.0
"""Half the width of a line, in points."""


def draw_voices() -> bytes:
    """Draw two waves, the second behind the first."""
    rows = [bytearray(PAPER * WIDTH) for _ in range(HEIGHT)]
    for colour, lag in VOICES:
        heights = [_height(x, lag) for x in range(WIDTH + 1)]
        for x in range(WIDTH):
            slant = math.hypot(1.0, heights[x + 1] - heights[x])  # a steep line is higher, not thinner
            reach = math.ceil(_HALF * slant) + 1
            middle = round(heights[x])
            for y in range(max(middle - reach, 0), min(middle + reach + 1, HEIGHT)):
                covered = _HALF + 0.5 - abs(y - heights[x]) / slant
                _paint(rows[y], 3 * x, colour, min(max(covered, 0.0), 1.0))
    return png(rows)


def _height(x: int, lag: float) -> float:
    fade = math.sin(math.pi * x / WIDTH)  # they begin and end together
    return HEIGHT / 2 + HEIGHT / 3 * fade * math.sin(x / 28 - lag)


def _paint(row: bytearray, at: int, colour: tuple[int, int, int], covered: float) -> None:
    for offset, value in enumerate(colour, at):
        row[offset] = round(row[offset] + (value - row[offset]) * covered)


def png(rows: list[bytearray]) -> bytes:
    """Return a PNG of rows with three bytes per point: red, green, blue."""
    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + row for row in rows)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, data)
        for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


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


@skill(
    "Think aloud whether a number is prime",
    hint="a number",
    plain=True,
    about="`agent_thought_chunk`: a thought is a separate kind of message, and clients may fold it.",
)
async def think(turn: AgentTurn, rest: str) -> None:
    """Say whether a number is prime, with the divisors as a thought."""
    value = max(number(rest, 391, most=LARGEST), 2)
    factors = await asyncio.to_thread(_factors, value)
    async with turn.thought() as thought:
        await write(turn, thought, f"Is {value} a prime? I try possible divisors.\n\n")
        for divisor in _tried(factors[0]):
            left = value % divisor
            await write(turn, thought, f"{divisor}: {'divides it' if not left else f'remainder {left}'}. ")
            await pause(turn.session, 0.1)
    if factors == [value]:
        await speak(turn, f"{value} is a prime.")
    else:
        await speak(turn, f"{value} is not a prime: {' × '.join(map(str, factors))}.")


def _factors(value: int) -> list[int]:
    factors, divisor = [], 2
    while divisor * divisor <= value:
        while value % divisor == 0:
            factors.append(divisor)
            value //= divisor
        divisor += 1 if divisor == 2 else 2
    return [*factors, value] if value > 1 else factors


def _tried(smallest: int) -> list[int]:
    """Return the first primes, up to the smallest divisor."""
    return [one for one in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37) if one <= smallest]


@skill(
    "Write a message with headings, lists, a table, code and a quote",
    plain=True,
    about="a plain message. Text is Markdown, and the client renders it.",
)
async def markdown(turn: AgentTurn, rest: str) -> None:
    await speak(turn, MARKDOWN)


@skill(
    "Show the files of this folder as a table",
    plain=True,
    about="Markdown again, because messages are for people to read.",
)
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
    """Return the first files of a folder with their sizes."""
    with os.scandir(folder) as entries:
        found = sorted(Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False))
    return {path: path.lstat().st_size for path in found[:MOST_ROWS]}


@skill(
    "Draw a small picture",
    plain=True,
    about="a message with an `image` block between its words. Prompts can hold images, too.",
)
async def image(turn: AgentTurn, rest: str) -> None:
    picture = await asyncio.to_thread(draw_voices)
    async with turn.message() as message:
        await write(
            turn, message, "Two voices, the second a little behind the first, which I have just drawn:\n\n"
        )
        await message.write(image_block(picture, "image/png"))


@skill(
    "Stream a message in pieces",
    hint="how many, and perhaps which words",
    about="`agent_message_chunk`, one for every piece, all with the same `messageId`.",
)
async def stream(turn: AgentTurn, rest: str) -> None:
    count, _, words = rest.partition(" ")
    total = number(count, 20, most=MOST_CHUNKS)
    async with turn.message() as message:
        for n in range(1, total + 1):
            await message.write(f"{words.strip()} " if words.strip() else SENTENCE.format(n=n, total=total))
            await pause(turn.session, 0.06)


SKILLS = (stream, think, markdown, table, image)
