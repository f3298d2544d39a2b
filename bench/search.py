"""Search over the contents of sessions: time to index and to search, size of the index, cost for appends.

python -m bench.search [--messages 100000]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from statistics import median

import msgspec

from antiphon.stores import Batch, SessionRecord, SQLiteStore
from antiphon.stores.sqlite import search

SESSIONS = 100
WORDS = 60
APPENDS = 20_000
TURNS = 5


def vocabulary() -> list[str]:
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(20_000)]


def event(seq: int, at: int, text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    update = {"sessionUpdate": "agent_message", "messageId": f"m{seq}", "content": content}
    return msgspec.json.encode({"seq": seq, "at": at, "body": {"type": "update", "update": update}})


async def fill(store: SQLiteStore, messages: int, words: list[str]) -> None:
    chance = random.Random(2)
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))  # as in natural language
    each = messages // SESSIONS
    for number in range(SESSIONS):
        at = 1_700_000_000_000 + number * 100_000_000
        lines = [
            event(seq, at + seq * 10_000, " ".join(chance.choices(words, cum_weights=weights, k=WORDS)))
            for seq in range(1, each + 1)
        ]
        record = SessionRecord(session_id=f"s{number}", cwd="/site", created_at=at, updated_at=at)
        await store.create(record, batch=Batch(1, tuple(lines)))


async def appends(folder: Path, turn: int, *, indexed: bool) -> float:
    """Appends in a second, one event each, without an index or while one catches up that is never idle."""
    search.IDLE, search.MOST_WAIT = (0.05, 0.0) if indexed else (1e6, 1e6)
    async with SQLiteStore(folder / f"appends-{turn}-{indexed}.db") as store:
        await store.create(SessionRecord(session_id="a", cwd="/site", created_at=1, updated_at=1))
        began = time.perf_counter()
        for seq in range(1, APPENDS + 1):
            await store.append("a", Batch(seq, (event(seq, seq, "some words of a message"),)))
        return APPENDS / (time.perf_counter() - began)


async def main(messages: int) -> None:
    words = vocabulary()
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "sessions.db"
        async with SQLiteStore(path) as store:
            await fill(store, messages, words)
        before = path.stat().st_size
        async with SQLiteStore(path) as store:
            began = time.perf_counter()
            while not (await store.search("nothing at all", seconds=60)).complete:
                pass
            print(f"index {messages:,} messages      {time.perf_counter() - began:8.2f} s")
            queries = {
                "a word of most messages": words[0],
                "a rare word": words[15_000],
                "two words": f"{words[40]} {words[90]}",
                "a phrase": f'"{words[0]} {words[1]}"',
                "two letters": words[5][:2],
            }
            for name, query in queries.items():
                took = []
                for _ in range(9):
                    began = time.perf_counter()
                    await store.search(query)
                    took.append(time.perf_counter() - began)
                print(f"search: {name:26} {median(took) * 1000:8.1f} ms")
        added = path.stat().st_size - before
        print(f"size: journals {before / 2**20:.1f} MiB, index {added / 2**20:.1f} MiB")
        ratios = []
        for turn in range(TURNS):
            without = await appends(Path(made), turn, indexed=False)
            ratios.append(await appends(Path(made), turn, indexed=True) / without)
        print(f"appends while the index catches up: {median(ratios):.2f} of those without an index")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--messages", type=int, default=100_000)
    asyncio.run(main(asked.parse_args().messages))
