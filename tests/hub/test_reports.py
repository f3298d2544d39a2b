"""What a hub tells of its sessions: transcripts, timelines, and which of them came, changed or went."""

from __future__ import annotations

import asyncio
import html
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from antiphon.client import connect as connect_client
from antiphon.engine.events import Event, PromptSent, SessionCreated, Updated, encode_event
from antiphon.hub import Hub
from antiphon.hub.timeline import LIMIT, Timeline
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from antiphon.stores.base import Batch, SessionRecord
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import INFO, Talk
from tests.hub.doors import DEADLINE, doors, refused

TOLD: dict[str, Any] = {"capabilities": {"_meta": {"antiphon": {"sessionUpdates": True}}}}


def ours(answer: dict[str, Any]) -> dict[str, Any]:
    return answer["_meta"]["antiphon"]


async def began(talk: Talk) -> str:
    return str((await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"])


async def worked(talk: Talk, session: str, text: str) -> None:
    talk.prompt(text[:20], session, text)
    await talk.update("state_update", state="idle", stopReason="end_turn")


# --- what a client is told when it comes --------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_is_told_its_role(version: int, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        for role in ("observer", "controller", "owner"):
            async with door.talk(door.token(role[:3], role), version) as talk:
                told = ours((await talk.answer_to("init"))["result"])
                assert told["role"] == role
                assert ("cwd" in told) is (role != "observer")
        async with door.talk(door.token("one", "owner", sessions=["s"]), version) as talk:
            assert "cwd" not in ours((await talk.answer_to("init"))["result"])


async def test_what_a_hub_can_tell_is_announced(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        async with door.talk(**TOLD) as talk:
            able = ours((await talk.answer_to("init"))["result"]["capabilities"])
            assert able["transcript"] == {"format": ["markdown", "html"]}
            assert able["timeline"] is able["link"] is able["sessionUpdates"] is True
        async with door.talk() as talk:
            assert "sessionUpdates" not in ours((await talk.answer_to("init"))["result"]["capabilities"])


# --- transcripts --------------------------------------------------------------------------------------


async def test_a_transcript_is_a_file_of_what_was_said(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = await began(owner)
        await worked(owner, session, "about <violets>")
        await owner.call("t", "session/set_title", sessionId=session, title="On violets: a/b")
        async with door.talk(door.token("eye", "observer")) as eye:  # it need not be attached
            text = await eye.call(1, "_antiphon/transcript", sessionId=session)
            assert (text["name"], text["mimeType"]) == ("On-violets-a-b.md", "text/markdown; charset=utf-8")
            assert "heard about" in text["content"]
            page = await eye.call(2, "_antiphon/transcript", sessionId=session, format="html")
            assert (page["name"], page["mimeType"]) == ("On-violets-a-b.html", "text/html; charset=utf-8")
            assert page["content"].startswith("<!doctype html>")
            assert "<violets>" not in page["content"]
        await owner.call("c", "session/close", sessionId=session)
        assert (await owner.call(3, "_antiphon/transcript", sessionId=session))["content"] == text["content"]


async def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = await began(owner)
        for number_, (method, params, code) in enumerate(
            (
                ("transcript", {"sessionId": session, "format": "pdf"}, -32602),
                ("transcript", {"sessionId": session, "format": {}}, -32602),
                ("transcript", {"sessionId": 1}, -32602),
                ("timeline", {}, -32602),
                ("transcript", {"sessionId": "sess_none"}, -32002),
                ("timeline", {"sessionId": "sess_none"}, -32002),
                ("link", {"role": "god"}, -32602),
                ("link", {"role": []}, -32602),
                ("link", {"sessions": []}, -32602),
                ("link", {"sessions": [1]}, -32602),
                ("nothing", {"sessionId": session}, -32601),
            )
        ):
            error = await refused(owner, number_, f"_antiphon/{method}", **params)
            assert error is not None, (method, params)
            assert error["code"] == code, (method, params, error)


async def test_a_transcript_that_is_too_long_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.hub.reports.LARGEST", 10)
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        error = await refused(owner, 1, "_antiphon/transcript", sessionId=await began(owner))
        assert error is not None
        assert (error["code"], error["data"]["limit"]) == (-32004, "transcript")


# --- timelines ----------------------------------------------------------------------------------------


async def test_a_timeline_has_who_did_what_and_when(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "sessions.db")
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door, door.talk() as owner:
        before = time.time_ns() // 1_000_000
        session = await began(owner)
        owner.prompt("p", session, "ask edit")
        asked = await owner.request("session/request_permission")
        told = await owner.call("t1", "_antiphon/timeline", sessionId=session)
        items = {item["kind"]: item for item in told["items"]}
        assert items["turn"]["status"] == "requires_action"
        assert items["turn"]["end"] is items["tool"]["end"] is items["question"]["end"] is None
        assert (items["question"]["status"], items["question"]["toolCallId"]) == ("open", items["tool"]["id"])
        assert items["client"]["status"] == "here"
        option = asked["params"]["options"][0]
        selected = {"outcome": "selected", "optionId": option["optionId"]}
        owner.send(id=asked["id"], result={"outcome": selected})
        await owner.update("state_update", state="idle")
        await worked(owner, session, "again")
        told = await owner.call("t2", "_antiphon/timeline", sessionId=session)
        items = {(item["kind"], item["title"]): item for item in told["items"]}
        assert set(items) == {
            ("prompt", "ask edit"),
            ("turn", "ask edit"),
            ("tool", "Touch"),
            ("question", items["question", option_title(told)]["title"]),
            ("prompt", "again"),
            ("turn", "again"),
            ("client", "talk"),
        }
        turn, prompt = items["turn", "ask edit"], items["prompt", "ask edit"]
        assert before <= prompt["start"] <= turn["start"] <= turn["end"] <= told["now"]
        assert (turn["status"], turn["by"]["name"]) == ("end_turn", "talk")
        assert turn["messageId"] == prompt["messageId"]
        assert turn["promptRequestId"] == prompt["promptRequestId"] == "p"
        assert items["tool", "Touch"]["status"] == "completed"
        question = items["question", option_title(told)]
        assert (question["status"], question["outcome"], question["by"]["name"]) == (
            "answered",
            option["name"],
            "talk",
        )
        # Closed, and in another life: it is the same, but for who is there.
        await owner.call("c", "session/close", sessionId=session)
    store = SQLiteStore(tmp_path / "sessions.db")
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door, door.talk() as owner:
        again = await owner.call("t3", "_antiphon/timeline", sessionId=session)
        assert again["items"] == [item for item in told["items"] if item["kind"] != "client"]


def option_title(told: dict[str, Any]) -> str:
    return next(item["title"] for item in told["items"] if item["kind"] == "question")


@pytest.mark.parametrize("version", [1, 2])
async def test_turns_are_told_apart_by_the_json_value_of_their_request_ids(
    tmp_path: Path, version: int
) -> None:
    """In the timeline, the journal and the transcripts: a number and its string are two ids."""
    ids: list[Any] = [2, "2", -3, 'a"b', "x" * 300]
    kept: list[Any] = [*ids[:-1], None]
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk(version=version) as owner:
        session = await began(owner)
        for id in ids:
            owner.prompt(id, session, "hi")
            found = await owner.until(lambda frame, id=id: same(frame.get("id"), id))
            if version == 2:
                await owner.update("state_update", state="idle")
            assert "error" not in found
        told = await owner.call("t", "_antiphon/timeline", sessionId=session)
        for kind in ("turn", "prompt"):
            named = [item.get("promptRequestId") for item in told["items"] if item["kind"] == kind]
            assert [*map(json.dumps, named)] == [*map(json.dumps, kept)]
        page = await owner.call("j", "_antiphon/journal", sessionId=session)
        bodies = [json.loads(line)["body"] for line in page["events"]]
        queued = [body.get("request_id") for body in bodies if body["type"] == "prompt_queued"]
        assert [*map(json.dumps, queued)] == [*map(json.dumps, kept)]
        for format in ("markdown", "html"):
            told = await owner.call(format, "_antiphon/transcript", sessionId=session, format=format)
            shown = re.findall(r"request ([^*<]+)[*<]", html.unescape(told["content"]).replace("\\", ""))
            assert shown[:3] == ["2", '"2"', "-3"]


def same(one: Any, other: Any) -> bool:
    return json.dumps(one) == json.dumps(other)


async def test_what_a_fork_took_over_has_no_times(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = await began(owner)
        await worked(owner, session, "first")
        fork = (await owner.call("f", "session/fork", sessionId=session, cwd="/"))["sessionId"]
        await worked(owner, fork, "second")
        told = await owner.call("t", "_antiphon/timeline", sessionId=fork)
        assert {item["title"] for item in told["items"]} == {"second", "talk"}


@pytest.mark.parametrize("later", [0, 5])
def test_what_a_fork_took_over_ends_where_its_own_begins(later: int) -> None:
    """Also where both are of one millisecond."""
    call = Updated.of(v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId("old"), title="Old"))
    new = Updated.of(v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId("new"), title="New"))
    running = Updated.of(v2.SessionStateUpdate(state=v2.State.RUNNING))
    created = SessionCreated(session_id="s", cwd="/", meta={"forkedFrom": {"sessionId": "r"}})
    for own in ([new] if later else [running, new], [PromptSent(message_id="m"), new]):
        timeline = Timeline()
        taken = [Event(seq, 7, body) for seq, body in enumerate([created, call], 1)]
        timeline.add([*taken, *(Event(seq, 7 + later, body) for seq, body in enumerate(own, 3))])
        assert [item.title for item in timeline.items() if item.kind == "tool"] == ["New"]


def test_only_the_last_of_many_items_are_kept() -> None:
    timeline = Timeline()
    calls = [
        Updated.of(v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId(f"c{n}"), title=f"Call {n}"))
        for n in range(LIMIT + 7)
    ]
    timeline.add(Event(seq, seq, body) for seq, body in enumerate(calls, 1))
    items = timeline.items()
    assert (len(items), timeline.omitted, timeline.last) == (LIMIT, 7, LIMIT + 7)
    assert (items[0].title, items[-1].title) == ("Call 7", f"Call {LIMIT + 6}")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (b'{"code":-32603,"message":"No\\n credit"}', "No credit"),
        (b'{"message":"%s"}' % (b"x" * 5_000), "x" * 400),
        (b'{"message":[]}', None),
        (b'"odd"', None),
    ],
)
def test_a_turn_says_why_it_failed(error: bytes, told: str | None) -> None:
    from msgspec import Raw

    timeline = Timeline()
    running = Updated(raw=Raw(b'{"sessionUpdate":"state_update","state":"running"}'))
    idle = b'{"sessionUpdate":"state_update","state":"idle","stopReason":"error","error":%s}' % error
    timeline.add([Event(1, 1, running), Event(2, 2, Updated(raw=Raw(idle)))])
    (turn,) = timeline.items()
    assert (turn.status, turn.error) == ("error", told)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"sessionUpdate":1}',
        b'{"sessionUpdate":"tool_call_update"}',
        b'{"sessionUpdate":"tool_call_update","toolCallId":[]}',
        b'{"sessionUpdate":"tool_call_update","toolCallId":"a","title":{},"status":[]}',
        b'{"sessionUpdate":"state_update","state":{}}',
        b'{"sessionUpdate":"state_update","state":"idle","stopReason":[]}',
        b'{"sessionUpdate":"state_update","state":"dancing"}',
    ],
)
def test_a_timeline_stands_whatever_an_agent_wrote(raw: bytes) -> None:
    from msgspec import Raw

    timeline = Timeline()
    timeline.add([Event(1, 1, Updated(raw=Raw(raw)))])
    assert all(isinstance(item.title, str) for item in timeline.items())


async def test_a_long_session_is_told_and_nobody_else_waits(tmp_path: Path) -> None:
    """100,000 events: while transcript and timeline are made, the loop goes on."""
    store = SQLiteStore(tmp_path / "sessions.db")
    session_id = "sess_long"
    await store.create(SessionRecord(session_id=session_id, cwd="/", created_at=1, updated_at=1))
    first = Event(1, 1, SessionCreated(session_id=session_id, cwd="/"))
    await store.append(session_id, Batch(1, (encode_event(first),)))
    for start in range(2, 100_000, 5_000):
        chunks = [
            v2.AgentMessageChunk(
                message_id=v2.MessageId(f"m{seq // 100}"), content=v2.TextContent(text=f"word {seq} ")
            )
            for seq in range(start, start + 5_000)
        ]
        events = [Event(seq, start, Updated.of(chunk)) for seq, chunk in enumerate(chunks, start)]
        await store.append(session_id, Batch(start, tuple(map(encode_event, events))))
    hub = Hub({}, store=store)
    longest, stop = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not stop.is_set():
            at = time.monotonic()
            await asyncio.sleep(0.005)
            longest = max(longest, time.monotonic() - at)

    async with asyncio.timeout(60), connect_client(hub) as client:
        call = client.connection.call
        watching = asyncio.create_task(watch())
        began = time.monotonic()
        page, told = await asyncio.gather(
            call("_antiphon/transcript", {"sessionId": session_id, "format": "html"}),
            call("_antiphon/timeline", {"sessionId": session_id}),
        )
        took = time.monotonic() - began
        stop.set()
        await watching
    assert "word 99999" in page.content
    assert told.items == []
    assert longest < took / 2, (longest, took)


# --- which came, changed or went ----------------------------------------------------------------------


async def news(talk: Talk, **wanted: Any) -> dict[str, Any]:
    """The next entry of a session that has all of this."""
    while True:
        told = (await talk.until(lambda frame: frame.get("method") == "_antiphon/sessions"))["params"]
        for entry in told["sessions"]:
            known = {**entry, **ours(entry)}
            if wanted.items() <= known.items():
                return known


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_is_told_which_sessions_came_changed_and_went(version: int, tmp_path: Path) -> None:
    asked = TOLD if version == 2 else {"clientCapabilities": TOLD["capabilities"]}
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path) as door,
        door.talk() as owner,
        door.talk(door.token("eye", "observer"), version, **asked) as eye,
    ):
        session = await began(owner)
        entry = await news(eye, sessionId=session)
        assert (entry["agent"], entry["archived"]) == ("worker", False)
        await eye.call("at", "_antiphon/attach", sessionId=session)
        await news(eye, sessionId=session, clients=2)
        owner.prompt("p", session, "wait")
        await news(eye, sessionId=session, state="running")
        owner.send(method="session/cancel", params={"sessionId": session})
        await news(eye, sessionId=session, state="idle")
        await owner.call("t", "session/set_title", sessionId=session, title="A title")
        await news(eye, sessionId=session, title="A title")
        await owner.call("a", "session/archive", sessionId=session)
        await news(eye, sessionId=session, archived=True)
        await owner.call("d", "session/delete", sessionId=session)
        frame = await eye.until(lambda frame: frame.get("params", {}).get("gone") == [session])
        assert frame["params"]["sessions"] == []
        assert not [frame for frame in owner.seen if frame.get("method") == "_antiphon/sessions"]


async def test_a_token_for_some_sessions_is_told_of_no_other(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        mine = await began(owner)
        async with door.talk(door.token("guest", "observer", sessions=[mine]), **TOLD) as guest:
            other = (await owner.call("o", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await owner.call("d", "session/delete", sessionId=other)
            await owner.call("t", "session/set_title", sessionId=mine, title="Mine")
            await news(guest, sessionId=mine, title="Mine")
            assert other not in str(guest.seen)


async def test_what_changes_often_is_told_a_few_times(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk(**TOLD) as owner:
        session = await began(owner)
        began_at = time.monotonic()
        for number_ in range(60):
            await owner.call(number_, "session/set_title", sessionId=session, title=f"Title {number_}")
        await news(owner, title="Title 59")
        told = [frame for frame in owner.seen if frame.get("method") == "_antiphon/sessions"]
        assert len(told) <= 2 + (time.monotonic() - began_at) / 0.25


def room_of_a_socket() -> int:
    """The bytes that the kernel keeps at most for a peer that does not read: at both ends."""
    ends = [Path(f"/proc/sys/net/ipv4/tcp_{end}mem").read_text().split() for end in "rw"]
    return sum(int(most) for _, _, most in ends)


async def test_who_does_not_read_is_told_the_last_of_it_once_it_does(tmp_path: Path) -> None:
    much = "x" * 900_000
    async with asyncio.timeout(2 * DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = await began(owner)
        headers = {"Authorization": f"Bearer {door.hub.token}"}
        async with connect(door.address, additional_headers=headers, max_queue=1, max_size=None) as slow:
            for id, method, params in (
                (1, "initialize", {"protocolVersion": 2, "info": INFO, **TOLD}),
                (2, "session/resume", {"sessionId": session, "cwd": "/", "mcpServers": []}),
            ):
                await slow.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
                while json.loads(await slow.recv()).get("id") != id:
                    pass
            for _ in range(2 + room_of_a_socket() // len(much)):  # more than the kernel takes for it
                await worked(owner, session, much)
            for number_ in range(40):
                await owner.call(f"t{number_}", "session/set_title", sessionId=session, title=f"{number_}")
            titles: list[str] = []
            while titles[-1:] != ["39"]:
                frame = json.loads(await slow.recv())
                if frame.get("method") == "_antiphon/sessions":
                    titles += [entry.get("title", "") for entry in frame["params"]["sessions"]]
        assert len(titles) < 40


async def test_a_store_that_fails_tells_of_nothing_that_is_gone(tmp_path: Path) -> None:
    from antiphon.errors import StoreError

    class Failing(MemoryStore):
        failing = False
        failed = asyncio.Event()

        async def get(self, session_id: str) -> SessionRecord | None:
            if self.failing:
                self.failed.set()
                raise StoreError("no")
            return await super().get(session_id)

    store = Failing()
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door, door.talk(**TOLD) as owner:
        session = await began(owner)
        await worked(owner, session, "begin")  # it has an agent
        await news(owner, sessionId=session)
        store.failing = True
        owner.prompt("p", session, "hello")  # the entry of the session changes
        await store.failed.wait()
        store.failing = False
        await owner.call("t", "session/set_title", sessionId=session, title="There")
        await news(owner, title="There")
        told = [frame["params"] for frame in owner.seen if frame.get("method") == "_antiphon/sessions"]
        assert not [each for each in told if each["gone"]]
