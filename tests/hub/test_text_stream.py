"""Plain text of an agent goes the short way through the hub; what has more to it arrives all the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.hub import Hub
from antiphon.stores import MemoryStore, SQLiteStore
from tests.agent.talk import Talk, client
from tests.hub.habits import Frame, Habit, end_turn, text
from tests.hub.running import DEADLINE
from tests.hub.test_first_words import DIALECTS, begin
from tests.stores.test_in_place import locked

LONG = "long " * 1000
SAID: list[dict[str, Any]] = [
    {"content": text("plain ")},
    {"content": text("and more ")},
    {"content": text('é 😀 \\ " \n ')},
    {"content": {**text("annotated "), "annotations": {"priority": 0.5}}},
    {"content": {**text("described "), "_meta": {"k": [1, None]}}},
    {"content": text("between "), "_meta": {"vendor.example/x": 1}},
    {"content": text("")},
    {"content": text(LONG)},
    {"content": text("the end")},
]
WORDS = "".join(each["content"]["text"] for each in SAID)


def speaker(version: int, *, compact: bool, together: bool = True) -> Habit:
    """Says it all, as lines with or without spaces, read at once or one by one."""

    class Writing(Habit):
        def send(self, **frame: Any) -> None:
            separators = (",", ":") if compact else (", ", ": ")
            written = json.dumps({"jsonrpc": "2.0", **frame}, separators=separators).encode()
            (self.transport.send if together else self.transport.send_now)(written)

    def prompt(agent: Habit, frame: Frame) -> None:
        named = {"messageId": "m"} if version == 2 else {}
        if version == 2:
            agent.answer(frame, messageId="u")
            agent.update("user_message", messageId="u", content=frame["params"]["prompt"])
            agent.update("state_update", state="running")
        for each in SAID:
            agent.update("agent_message_chunk", **each, **named)
        agent.update("agent_thought_chunk", content=text("hm"), **({"messageId": "t"} if named else {}))
        if version == 2:
            agent.update("state_update", state="idle", stopReason="end_turn")
        else:
            end_turn(agent, frame)

    return Writing(version, prompt=prompt)


def chunks(talk: Talk, kind: str = "agent_message_chunk") -> list[dict[str, Any]]:
    updates = [frame.get("params", {}).get("update", {}) for frame in talk.seen]
    return [update for update in updates if update.get("sessionUpdate") == kind]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
@pytest.mark.parametrize("compact", [True, False], ids=["compact", "spaced"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("version", [1, 2])
async def test_every_chunk_arrives_whole_and_in_order(
    version: int, dialect: str, compact: bool, together: bool, store: str, tmp_path: Path
) -> None:
    shape, asked = DIALECTS[dialect]
    kept: Any = MemoryStore() if store == "memory" else SQLiteStore(tmp_path / "s.db")
    hub = Hub({"habit": speaker(version, compact=compact, together=together)}, store=kept)
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, shape, **asked) as talk:
        session = await begin(talk)
        talk.prompt("p", session, "go")
        await talk.update("agent_thought_chunk")
        said = chunks(talk)
        assert "".join(each["content"]["text"] for each in said) == WORDS
        assert len({each["messageId"] for each in said}) == 1, "one message"
        assert chunks(talk, "agent_thought_chunk")[0]["messageId"] != said[0]["messageId"]
        for sent, came in zip(SAID, said, strict=True):
            assert came["content"] == sent["content"]
            assert came.get("_meta") == sent.get("_meta")


async def test_the_file_being_locked_stops_the_text_and_nobody_else(tmp_path: Path) -> None:
    """Another process holds the write lock: nothing is shown that is not kept, and the hub still serves."""
    path = tmp_path / "s.db"
    go = asyncio.Event()

    def prompt(agent: Habit, frame: Frame) -> None:
        agent.say("first ")
        asyncio.get_running_loop().create_task(rest(agent, frame))

    async def rest(agent: Habit, frame: Frame) -> None:
        await go.wait()
        for number in range(50):
            agent.say(f"{number} ")
            await asyncio.sleep(0)
        end_turn(agent, frame)

    hub = Hub({"habit": Habit(1, prompt=prompt)}, store=SQLiteStore(path, patience=DEADLINE))
    async with asyncio.timeout(2 * DEADLINE), hub.serving(), client(hub, 1) as talk:
        session = await begin(talk)
        talk.prompt("p", session, "go")
        await talk.update("agent_message_chunk")
        with locked(path) as other:
            before = len(chunks(talk))
            go.set()
            async with client(hub, 2) as visitor:  # a newcomer is greeted, and reads
                for number in range(20):
                    listed = await visitor.call(f"l{number}", "session/list")
                    assert [each["sessionId"] for each in listed["sessions"]] == [session]
            assert len(chunks(talk)) == before
            other.execute("ROLLBACK")
            answer = await talk.answer_to("p")
        assert answer["result"]["stopReason"] == "end_turn"
        told = "".join(each["content"]["text"] for each in chunks(talk))
        assert told == "first " + "".join(f"{number} " for number in range(50))
