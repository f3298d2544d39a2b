"""The bridge, both ways: whatever a v1 agent or a v2 session says crosses without an exception, and what
comes out is read strictly on the other side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from antiphon.bridge.dialects import V1Writer
from antiphon.bridge.losses import Loss
from antiphon.errors import RemoteError
from antiphon.jsonrpc.frames import decode
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.version import OptIns
from tests.bridge.wire import Up, capabilities, check_v1, read, read_v1
from tests.fuzz.mutation import seeds
from tests.fuzz.running import Check

RECORDED = Path(__file__).parents[1] / "journals" / "1"
WORDS = (
    b'"messageId":"m"',
    b'"_meta":{"k":1}',
    b'"content":null',
    b'"toolCallId":"t1"',
    b"_x",
    b"agent_message",
    b"user_message",
    b"agent_message_chunk",
    b"tool_call_update",
    b'"status":"failed"',
    b"\\u0000",
    b"=",
    b"aGk=",
)
ALL = capabilities(
    plan={}, subagents={}, session={"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}
)
FUTURE = OptIns(turn_complete=True, message_update=True)
REQUEST = "fuzz"


def _recorded() -> list[bytes]:
    """The updates of the kept journals, as v2 has them and as v1 agents wrote them."""
    found = []
    for path in sorted(RECORDED.glob("*.jsonl")):
        bodies = [msgspec.json.decode(line)["body"] for line in path.read_bytes().splitlines()]
        for key in ("update", "origin"):
            updates = [msgspec.json.encode(body[key]) for body in bodies if key in body]
            found += [b"\n".join(updates[at : at + 8]) for at in range(0, len(updates), 8)]
    return found


SEEDS = [*seeds("bridge"), *_recorded()]


@contextlib.contextmanager
def opened() -> Iterator[Check]:
    yield check


def check(data: bytes) -> str:
    lines = [line for line in data.split(b"\n") if line][:50]
    return f"up {_up(lines)}, down {_down(lines)}"


def _up(lines: list[bytes]) -> str:
    """v1, v2, v1."""
    up, lost = Up(FUTURE), list[str]()
    writers = V1Writer(ALL, FUTURE, report=lambda loss, _: lost.append(loss.name)), V1Writer(None)
    told = up.prompted(REQUEST) + [
        lifted for line in lines for each in _read(1, line) for lifted in up.feed(each)
    ]
    told += up.told(up.machine.release()) + up.responded(REQUEST)
    for update in map(read, told):
        for writer in writers:
            for sent in writer.write(update, msgspec.json.encode(update)):
                check_v1(sent)
    for writer in writers:
        for sent in writer.flush():
            check_v1(sent)
    return " ".join(sorted({*up.lost, *lost}))


def _down(lines: list[bytes]) -> str:
    """v2, v1, v2."""
    up, lost = Up(FUTURE), list[str]()

    def report(loss: Loss, original: Any) -> None:
        lost.append(loss.name)

    writer, passing = V1Writer(ALL, FUTURE, report=report), V1Writer(None)
    for line in lines:
        for update in _read(2, line):
            for sent in writer.write(update, msgspec.json.encode(update)):
                up.feed(read_v1(check_v1(sent)))
            for sent in passing.write(update, line):  # as its sender wrote it, unknown fields and all
                _read(1, sent)
    for sent in writer.flush():
        up.feed(read_v1(check_v1(sent)))
    return " ".join(sorted({*up.lost, *lost}))


def _read(version: int, line: bytes) -> list[Any]:
    """The update in a line, where a peer of this version would get it past the codec."""
    frame = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%b}}' % line
    try:
        notification: Any = decode(frame)
        params = codec(version).params(Kind.NOTIFICATION, "session/update", notification.params)
    except RemoteError:
        return []
    return [params.update]
