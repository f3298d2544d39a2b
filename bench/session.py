"""Durable sessions, measured: `make bench-session`, or `python -m bench.session [--quick]`.

The stream is one v1 turn over stdio between two processes of the same make. Ours goes through engine, bridge
and a SQLite journal, each batch committed before it is sent; the official SDK's goes straight to the wire.
Replay is timed from the request for it, on an agent that has not opened the session yet: its snapshot is
loaded, whatever came after it is folded, and every message is sent whole.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from antiphon.transports.base import Inbox
from antiphon.transports.loop import run
from antiphon.transports.memory import memory_pair
from bench import session_store
from bench.harness import Figure, Measurement, Ratio, run_group
from bench.session_agent import FORTY, make_agent
from bench.session_client import INFO
from bench.wire import output, per_second, python_sdk

MESSAGES = 10_000
PIECES = 10  # a coarse chunk is cut into so many
LONG = "long"
CHUNKS_EACH = 100  # of a message of the long session
SESSIONS = 1000
TURNS = 5


async def fill(path: Path, session_id: str, *, messages: int, chunks: list[str]) -> None:
    """A session of so many messages, each streamed in these chunks, with an up-to-date snapshot."""
    async with SQLiteStore(path) as store:
        created = await LiveSession.create(store, session_id=session_id, cwd="/", clock=lambda: 0)
        async with created as live:
            for number in range(messages):
                for text in chunks:
                    chunk = v2.AgentMessageChunk(
                        message_id=v2.MessageId(f"msg-{number}"), content=v2.TextContent(text=text)
                    )
                    live.emit(live.fold.update(chunk))
                    if live.ahead:
                        await live.durable()


async def replay(path: Path, session_id: str) -> float:
    """Seconds from the request until the last byte of the replay, over a memory pair."""
    agent, (ours, theirs) = make_agent(str(path)), memory_pair()
    inbox = Inbox(theirs)

    async def ask(method: str, params: dict[str, Any]) -> int:
        """How many frames came, up to the answer."""
        request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        theirs.send(json.dumps(request).encode())
        answer = b'"id":"%b"' % method.encode()
        frames = 0
        while True:
            for frame in await inbox.take():
                assert isinstance(frame, bytes)
                frames += 1
                if answer in frame:
                    return frames

    async with agent.serving():
        serving = asyncio.ensure_future(agent.serve(ours))
        await ask("initialize", {"protocolVersion": 2, "info": INFO, "capabilities": {}})
        wanted = {"sessionId": session_id, "cwd": "/", "mcpServers": [], "replayFrom": {"type": "start"}}
        gc.collect()
        began = time.perf_counter()
        frames = await ask("session/resume", wanted)
        seconds = time.perf_counter() - began
        await theirs.aclose()
        await serving
    if frames < MESSAGES:
        raise SystemExit(f"{frames} frames for {MESSAGES} messages")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a run of under 50 seconds")
    quick = parser.parse_args().quick
    rounds, count, theirs, long = (3, 100_000, 30_000, 200_000) if quick else (5, 100_000, 100_000, 1_000_000)

    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()
        kept: dict[str, Any] = {}

        def ours(mode: str, what: str, store: Path | None = None) -> dict[str, Any]:
            path = store or Path(folder, f"store-{next(numbers)}.db")
            client = [sys.executable, "-m", "bench.session_client", mode, what, "--"]
            kept[mode] = output([*client, sys.executable, "-m", "bench.session_agent", str(path)])
            return dict(kept[mode])

        def appended() -> float:
            kept["append"] = session_store.measured()
            return float(kept["append"][0])

        def replays() -> float:
            """One replay is short, and the machine's moods are not: a round takes turns, several times."""
            times: dict[str, list[float]] = {"fine": [], "coarse": []}
            for _ in range(TURNS):
                for kind, taken in times.items():
                    taken.append(run(replay(sessions, kind)))
            kept["replay"] = {kind: statistics.median(taken) for kind, taken in times.items()}
            return float(kept["replay"]["fine"])

        def first() -> float:
            """Resuming an idle session adds no event, so every round finds the same store."""
            return float(ours("first", LONG, sessions)["seconds"]) * 1e3

        sessions = Path(folder, "sessions.db")
        print("filling the sessions to replay", flush=True)
        run(fill(sessions, "coarse", messages=MESSAGES, chunks=[FORTY * PIECES]))
        run(fill(sessions, "fine", messages=MESSAGES, chunks=[FORTY] * PIECES))
        run(fill(sessions, LONG, messages=long // CHUNKS_EACH, chunks=[FORTY] * CHUNKS_EACH))

        measurements = [
            Measurement("durable stream antiphon v1", "messages/s", per_second(ours, count)),
            Measurement("stream python-sdk v1, no journal", "messages/s", per_second(python_sdk, theirs)),
            Measurement(
                "agent growth per million chunks",
                "MiB",
                lambda: kept["stream"]["grown"] / count * 1e6 / 2**20,
            ),
            Measurement("append antiphon", "events/s", appended),
            Measurement("append bare executemany", "events/s", lambda: float(kept["append"][1])),
            Measurement("replay 10,000 messages, fine", "s", replays),
            Measurement("replay 10,000 messages, coarse", "s", lambda: float(kept["replay"]["coarse"])),
            Measurement(f"first byte of {long:,} chunks", "ms", first),
            Measurement(f"last byte of {long:,} chunks", "ms", lambda: kept["first"]["whole"] * 1e3),
            Measurement(
                "idle session",
                "KiB",
                lambda: ours("idle", str(SESSIONS))["grown"] / SESSIONS / 1024,
            ),
        ]
        ratios = [
            Ratio(
                "durable_stream_vs_python_sdk",
                "durable stream antiphon v1",
                "stream python-sdk v1, no journal",
                at_least=6,
            ),
            Ratio("append_vs_raw_sqlite", "append antiphon", "append bare executemany", at_least=0.5),
            Ratio(
                "replay_10x_chunks",
                "replay 10,000 messages, fine",
                "replay 10,000 messages, coarse",
                at_most=1.3,
            ),
            Figure("replay_first_byte_ms", f"first byte of {long:,} chunks", at_most=50),
            Figure("idle_session_kib", "idle session", at_most=100),
        ]
        run_group("session", measurements, ratios, rounds=rounds)


if __name__ == "__main__":
    main()
