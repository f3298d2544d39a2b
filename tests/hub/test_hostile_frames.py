"""Whatever an agent sends, its turn ends, what it said is kept, and the journal can be read back."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.client import connect
from antiphon.engine.events import decode_event
from antiphon.hub import Hub
from antiphon.live.stored_session import read_session
from antiphon.stores import SQLiteStore
from antiphon.transcripts import account, to_html, to_markdown
from tests.hub import frame_agent
from tests.hub.frame_agent import AFTER, BEFORE, Script, on_websocket
from tests.web.nodes import NODE

DEADLINE = 30.0


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


VALUES: dict[str, bytes] = {
    "deep": nested(970),
    "at the bound": nested(120),
    "over the bound": nested(130),
    "very deep": nested(20_000),
    "unclosed": b"[" * 1000,
    "lines": b'{\n"a":\r\n[1,\n2]\r}',
    "separators": '{"a":"\u2028\u2029\u0085 \\n \\u0000"}'.encode(),
    "a raw newline in a string": b'{"a":"x\ny"}',
    "not utf-8": b'{"a":"\xff"}',
    "a surrogate in utf-8": b'{"a":"\xed\xa0\x80"}',
    "a lone surrogate": b'{"a":"\\ud83d"}',
    "the same key twice": b'{"a":1,"a":{"b":2},"a":[]}',
    "a large number": b'{"a":1e999}',
    "a long integer": b'{"a":' + b"9" * 400 + b"}",
    "too long an integer": b'{"a":' + b"9" * 5000 + b"}",
    "no number": b'{"a":NaN,"b":-Infinity}',
    "nothing": b"",
    "too many values": b"[" + b"[]," * 300_000 + b"0]",
    "brackets in strings": b'{"a":"' + b"[{" * 300 + b'"}',
}
UPDATES: dict[str, bytes] = {
    "meta of a chunk": b'"sessionUpdate":"agent_message_chunk","messageId":"a",'
    b'"content":{"type":"text","text":""},"_meta":%b',
    "meta of content": b'"sessionUpdate":"agent_message_chunk","messageId":"a",'
    b'"content":{"type":"text","text":"","_meta":%b}',
    "unknown field of a chunk": b'"sessionUpdate":"agent_message_chunk","messageId":"a",'
    b'"content":{"type":"text","text":""},"vendor":%b',
    "unknown update": b'"sessionUpdate":"_vendor/thing","x":%b',
    "malformed update": b'"sessionUpdate":"tool_call_update","toolCallId":%b',
    "raw input": b'"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","rawInput":%b',
    "unknown field of a call": b'"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","vendor":%b',
    "title": b'"sessionUpdate":"session_info_update","title":%b',
    "meta of a state": b'"sessionUpdate":"state_update","state":"running","_meta":%b',
}
FRAMES: dict[str, bytes] = {
    **{
        name: b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{%b}}}' % update
        for name, update in UPDATES.items()
    },
    "meta beside an update": b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",'
    b'"_meta":%b,"update":{"sessionUpdate":"tool_call_update","toolCallId":"t2","title":"T"}}}',
    "extension": b'{"jsonrpc":"2.0","method":"_vendor/note","params":{"sessionId":"s","x":%b}}',
    "request": b'{"jsonrpc":"2.0","id":"r","method":"_vendor/ask","params":{"sessionId":"s","x":%b}}',
    "permission": b'{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{'
    b'"sessionId":"s","title":"P","options":[{"optionId":"y","name":"Y","kind":"allow_once"}],"vendor":%b,'
    b'"toolCall":{"toolCallId":"t"},"subject":{"type":"tool_call","toolCall":{"toolCallId":"t"}}}}',
    "form": b'{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s",'
    b'"mode":"form","message":"M","requestedSchema":{"type":"object","properties":{"a":%b}}}}',
    "response": b'{"jsonrpc":"2.0","id":4711,"result":%b}',
    "failure": b'{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"m","data":%b}}',
    "alone": b"%b",
}
EVERY = [frame.replace(b"%b", value) for frame in FRAMES.values() for value in VALUES.values()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value, indent=1).encode())
ANY_FRAME = st.builds(
    lambda frame, value: frame.replace(b"%b", value),
    st.sampled_from(list(FRAMES.values())),
    JSON | st.binary(max_size=12) | st.sampled_from(list(VALUES.values())),
)


def refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


@asynccontextmanager
async def reached(script: Script, transport: str, folder: Path) -> AsyncIterator[Any]:
    """The agent of a script as the target of a hub."""
    if transport == "websocket":
        async with on_websocket(script) as address:
            yield address
    else:
        yield [sys.executable, frame_agent.__file__, str(script.save(folder / "script.json"))]


async def play(script: Script, transport: str, folder: Path, *, version: int = 2) -> list[bytes]:
    """Let the agent have two turns with a client behind a hub, and read the journal back; gives its lines."""
    path = folder / "sessions.db"
    async with asyncio.timeout(DEADLINE), reached(script, transport, folder) as target:
        hub = Hub({"agent": target}, store=SQLiteStore(path))
        async with hub.listening():
            address = f"ws://127.0.0.1:{hub.port}/acp"
            async with connect(address, token=hub.token, version=version) as client:
                session = await client.new_session("/")
                for _ in range(2):
                    turn = await session.prompt("go")
                    assert (await turn.drained()).stop_reason == "end_turn"
                said = "".join(message.text for message in session.messages if message.role != "user")
                assert said.count(BEFORE) == said.count(AFTER) == 2
    async with asyncio.timeout(DEADLINE), SQLiteStore(path) as store:
        page = await store.read(session.id, 0, limit_bytes=1 << 30)
        lines = [line for batch in page.batches for line in batch.events]
        assert len(lines) == page.last
        for seq, line in enumerate(lines, start=1):
            assert decode_event(line).seq == seq
            json.loads(line, parse_constant=refuse)
        fold = await read_session(store, session.id)
        assert fold.turn is None
        told = account(fold)
        assert AFTER in "".join(to_markdown(told))
        assert AFTER in "".join(to_html(told))
        kept = "".join(message.text for message in fold.messages)
        assert kept.count(BEFORE) == kept.count(AFTER) == 2
    return lines


@pytest.mark.parametrize("transport", ["pipe", "websocket"])
@pytest.mark.parametrize("version", [1, 2])
async def test_no_frame_of_an_agent_harms_its_session(
    version: int, transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every value at every place, in one turn each; the page's JavaScript reads what was journalled."""
    frames = [frame for frame in EVERY if transport == "websocket" or b"\n" not in frame]
    lines = await play(Script(version, frames), transport, tmp_path)
    assert not [record for record in caplog.records if record.exc_info], "a frame led to a traceback"
    if NODE:
        given = json.dumps([line.decode() for line in lines]).encode()
        reading = await asyncio.create_subprocess_exec(NODE, "-e", READ_ALL, stdin=PIPE, stderr=PIPE)
        _, errors = await reading.communicate(given)
        assert not errors


async def test_a_v1_agent_that_writes_frames_over_several_lines(tmp_path: Path) -> None:
    call = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "T",
        "vendor": {"kept": [1, {"x": None}]},
    }
    frame = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": call}}
    script = Script(1, [json.dumps(frame, indent=2).encode()], pretty=True)
    lines = await play(script, "websocket", tmp_path, version=1)
    assert any(b'"kept"' in line for line in lines), "what the agent wrote is kept for v1 clients"


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 2), st.sampled_from(["websocket", "pipe"]), st.lists(ANY_FRAME, min_size=5, max_size=30)
)
def test_whatever_an_agent_sends_the_journal_can_be_read_back(
    version: int, transport: str, frames: list[bytes]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Script(version, frames), transport, Path(folder)))


READ_ALL = """
const lines = JSON.parse(require("fs").readFileSync(0, "utf8"));
lines.forEach((line, index) => {
  const event = JSON.parse(line);
  if (event.seq !== index + 1) throw new Error(`event ${index + 1} is ${line}`);
});
"""
