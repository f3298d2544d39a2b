"""Staging: a small project to work on, and a hub that serves it, in a folder that is gone afterwards."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

DEADLINE = 60.0
ANTIPHON = (sys.executable, "-m", "antiphon")
DEMO = (sys.executable, "-m", "tools.shots.demo_agent")
ROOT = Path(__file__).parents[2]

FILES = {
    "README.md": """# Evensong

An antiphon for four voices. One begins, the others answer, and whoever comes late still hears it all.
""",
    "rehearse.sh": "echo All voices, from the top.\nuntil [ -e done ]; do sleep 0.05; done\n",
    "score.py": '''"""Who sings when."""

VOICES = ["soprano", "alto", "tenor", "bass"]


def order(first):
    """The voices, beginning with one of them."""
    at = VOICES.index(first)
    return VOICES[at:] + VOICES[:at]


def verse(first, words):
    """Each word of a verse, with the voice that sings it."""
    voices = order(first)
    return [(voices[n % len(voices)], word) for n, word in enumerate(words.split())]
''',
    "test_score.py": """import unittest

from score import order, verse


class Score(unittest.TestCase):
    def test_the_first_voice_begins(self):
        self.assertEqual(order("tenor"), ["tenor", "bass", "soprano", "alto"])

    def test_every_word_has_a_voice(self):
        self.assertEqual(len(verse("alto", "let all the world sing")), 5)
""",
}


class Stage(Struct, frozen=True):
    folder: Path
    """Where the agent works."""
    data: Path

    @property
    def home(self) -> Path:
        return self.data.parent

    async def link(self) -> str:
        """Lets one more browser in."""
        process = await asyncio.create_subprocess_exec(
            *ANTIPHON, "link", "--data", str(self.data), stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        found = re.search(r"http\S+", printed.decode())
        assert found, printed
        return found[0]


def chat_command(stage: Stage, *words: str) -> tuple[str, ...]:
    """Return the command line of Carol's terminal."""
    chat = (*ANTIPHON, "chat", *words, "--data", str(stage.data), "--name", "Carol")
    return ("env", f"HOME={stage.home}", *chat)


def shell_command(stage: Stage) -> tuple[str, ...]:
    """Return the command line of a shell in which `antiphon` is Carol's."""
    antiphon = shlex.join([*ANTIPHON, "chat", "--data", str(stage.data), "--name", "Carol"])
    (stage.home / ".bashrc").write_text(f"PS1='$ '\nantiphon() {{ {antiphon}; }}\n")
    return ("env", f"HOME={stage.home}", "bash", "--rcfile", str(stage.home / ".bashrc"))


@asynccontextmanager
async def staged(*, pace: float = 0.0) -> AsyncIterator[Stage]:
    """pace: the seconds between two words of the demo agent"""
    with tempfile.TemporaryDirectory(prefix="antiphon-") as place:
        folder = Path(place) / "songs" / "evensong"
        folder.mkdir(parents=True)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        stage = Stage(folder, Path(place) / "data")
        async with _serving(stage, pace):
            yield stage


@asynccontextmanager
async def _serving(stage: Stage, pace: float) -> AsyncIterator[None]:
    environment = {
        **os.environ,
        "HOME": str(stage.home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = await asyncio.create_subprocess_exec(
        *ANTIPHON, "serve", "--port", "0", "--data", str(stage.data),
        "--agent", f"demo={shlex.join([*DEMO, str(pace)])}",
        stderr=asyncio.subprocess.PIPE, env=environment, cwd=stage.folder,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE):
            while b"Ctrl-C stops the hub" not in (line := await process.stderr.readline()):
                assert line, "the hub has ended"
        yield
    finally:
        process.terminate()
        await process.communicate()
