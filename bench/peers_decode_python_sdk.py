"""How long the official Python SDK takes from the bytes of a `session/update` line to its validated object.

Run it with the Python that holds the SDK: `<python> peers_decode_python_sdk.py SMALL_LINE BIG_LINE`, two
files of one line each. It prints one JSON object: `small_us` and `big_ms` are the median over several repeats
of what its connection does to every line (strip it, `json.loads`, tell a notification from the rest, validate
`params` as a `SessionNotification`). `small_routed_us` goes the SDK's way to the end: through its client
router to a handler that does nothing, though still without the task that its connection starts for each line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp.client.router import build_client_router
from acp.schema import SessionNotification

REPEATS = 9


class Listener:
    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        pass


ROUTER = build_client_router(Listener())  # type: ignore[arg-type]


def receive(line: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(line.strip())
    if message.get("method") != "session/update" or "id" in message:
        raise SystemExit("the line is not a session/update notification")
    return message


def decode(line: bytes) -> SessionNotification:
    return SessionNotification.model_validate(receive(line).get("params"))


def route(line: bytes) -> None:
    message = receive(line)
    coroutine = ROUTER(message["method"], message.get("params"), True)
    try:
        coroutine.send(None)  # nothing in it waits, so that one step is all of it
    except StopIteration:
        return
    raise SystemExit("the router waited for something")


def median_seconds(work: Callable[[bytes], object], line: bytes, *, times: int) -> float:
    took = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        for _ in range(times):
            work(line)
        took.append((time.perf_counter() - started) / times)
    return statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("small", type=Path, help="a file with one small session/update line")
    parser.add_argument("big", type=Path, help="a file with one session/update line of about 1 MB")
    files = parser.parse_args()
    small, big = files.small.read_bytes(), files.big.read_bytes()
    if type(decode(small).update).__name__ != "AgentMessageChunk" or not decode(big).update.content:
        raise SystemExit("the lines were not understood as what they are")
    result = {
        "small_us": median_seconds(decode, small, times=5_000) * 1e6,
        "big_ms": median_seconds(decode, big, times=20) * 1e3,
        "small_routed_us": median_seconds(route, small, times=5_000) * 1e6,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
