"""The good agent keeps what it promises, and every frame it sends is valid by the pinned schema."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.schema.methods import Kind, find
from antiphon.schema.wire import Unknown, choose
from tests.conformance.good.agent import GoodAgent
from tests.conformance.good.peer import Json
from tests.conformance.good.session import Store
from tests.conformance.good.stdio import LONGEST_LINE

SCRIPT = Path(__file__).parent / "good" / "agent.py"
DEADLINE = 10.0


class Client:
    """The client's end of a connection to an agent in memory. It checks every frame of the agent."""

    def __init__(self, agent_class: type[GoodAgent], version: int, store: Store | None) -> None:
        self.version = version
        self.agent = agent_class(self.take, store)
        self.frames: list[Json] = []
        self.methods: dict[Any, str] = {}
        self.arrived = asyncio.Event()

    def take(self, frame: Json) -> None:
        check_frame(frame, self.version, self.methods)
        self.frames.append(json.loads(json.dumps(frame)))
        self.arrived.set()

    def send(self, frame: Any) -> None:
        self.agent.receive_line(json.dumps(frame).encode())

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, **params: Any) -> int:
        id = len(self.methods) + 1
        self.methods[id] = method
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def respond(self, id: int, result: Json) -> None:
        self.send({"jsonrpc": "2.0", "id": id, "result": result})

    async def until(self, found: Callable[[Json], bool], *, count: int = 1) -> Json:
        """Wait for the `count`th frame that is `found`."""
        async with asyncio.timeout(DEADLINE):
            while True:
                self.arrived.clear()
                hits = [frame for frame in self.frames if found(frame)]
                if len(hits) >= count:
                    return hits[count - 1]
                await self.arrived.wait()

    async def response(self, id: int) -> Json:
        return await self.until(lambda frame: "method" not in frame and frame["id"] == id)

    async def call(self, method: str, **params: Any) -> Any:
        frame = await self.response(self.request(method, **params))
        return frame.get("result", frame.get("error"))

    async def update(self, kind: str, *, count: int = 1, **fields: Any) -> Json:
        """Wait for an update with these fields."""
        wanted = {"sessionUpdate": kind, **fields}
        frame = await self.until(lambda frame: wanted.items() <= update_of(frame).items(), count=count)
        return update_of(frame)

    async def question(self, *, count: int = 1) -> Json:
        asked = "session/request_permission"
        return await self.until(lambda frame: frame.get("method") == asked, count=count)

    async def new_session(self, cwd: str = "/tmp") -> str:
        made = await self.call("session/new", cwd=cwd, mcpServers=[])
        return str(made["sessionId"])

    def prompt(self, session: str, text: str) -> int:
        return self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def turn(self, session: str, text: str) -> list[Json]:
        """Prompt, wait for the end of the turn, and return all updates of the session since."""
        start = len(self.frames)
        id = self.prompt(session, text)
        if self.version == 1:
            await self.response(id)
        else:
            ends = [f for f in self.frames[:start] if update_of(f).get("stopReason")]
            await self.until(lambda frame: "stopReason" in update_of(frame), count=len(ends) + 1)
        return [update_of(frame) for frame in self.frames[start:] if update_of(frame)]


def update_of(frame: Json) -> Json:
    is_update = frame.get("method") == "session/update"
    return dict(frame["params"]["update"]) if is_update else {}


def kinds(updates: list[Json]) -> list[str]:
    return [update.get("state") or update["sessionUpdate"] for update in updates]


def check_frame(frame: Json, version: int, methods: dict[Any, str]) -> None:
    assert frame["jsonrpc"] == "2.0"
    if "method" in frame:
        kind = Kind.REQUEST if "id" in frame else Kind.NOTIFICATION
        method = find(kind, frame["method"], version)
        assert method is not None
        check_value(method.params, frame["params"])
    elif "result" in frame:
        method = find(Kind.REQUEST, methods[frame["id"]], version)
        assert method is not None
        check_value(method.result, frame["result"])
    else:
        assert frame.keys() == {"jsonrpc", "id", "error"}
        assert frame["error"].keys() <= {"code", "message", "data"}
        assert "\n" not in frame["error"]["message"]


def check_value(type: Any, value: Json) -> None:
    """The value fits strictly, and has no field and no variant that the schema does not name."""
    decoded = msgspec.json.decode(msgspec.json.encode(value), type=type, dec_hook=choose)
    assert not isinstance(decoded, Unknown)
    assert without_defaults(json.loads(msgspec.json.encode(decoded))) == without_defaults(value)


def without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        stripped = {key: without_defaults(item) for key, item in value.items()}
        return {key: item for key, item in stripped.items() if item not in (None, False, [], {})}
    return [without_defaults(item) for item in value] if isinstance(value, list) else value


@asynccontextmanager
async def connect(
    version: int,
    agent_class: type[GoodAgent] = GoodAgent,
    *,
    store: Store | None = None,
    capabilities: Json | None = None,
) -> AsyncIterator[Client]:
    client = Client(agent_class, version, store)
    name, info = ("clientCapabilities", "clientInfo") if version == 1 else ("capabilities", "info")
    params = {name: capabilities or {}, info: {"name": "test", "version": "1"}}
    answer = await client.call("initialize", protocolVersion=version, **params)
    assert answer["protocolVersion"] == version
    try:
        yield client
    finally:
        await client.agent.aclose()


BOTH = pytest.mark.parametrize("version", [1, 2])


# --- turns ---


async def test_a_v1_turn_sends_its_updates_before_the_response() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        updates = await client.turn(session, "Hello")
        assert kinds(updates) == [
            *["agent_thought_chunk"] * 2, *["agent_message_chunk"] * 3, "session_info_update", "usage_update",
        ]  # fmt: skip
        assert client.frames[-1]["result"] == {"stopReason": "end_turn"}
        assert len({update["messageId"] for update in updates[:2]}) == 1
        assert len({update["messageId"] for update in updates[:5]}) == 2


async def test_a_v2_prompt_is_answered_then_shown_then_worked_on() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        start = len(client.frames)
        updates = await client.turn(session, "Hello")
        message = client.frames[start]["result"]["messageId"]
        assert updates[0] == {
            "sessionUpdate": "user_message",
            "messageId": message,
            "content": [{"type": "text", "text": "Hello"}],
        }
        assert kinds(updates)[1:] == [
            "running", *["agent_thought_chunk"] * 2, *["agent_message_chunk"] * 3,
            "session_info_update", "usage_update", "idle",
        ]  # fmt: skip
        assert updates[-1]["stopReason"] == "end_turn"
        assert all("background" in update for update in updates if "state" in update)


@BOTH
@pytest.mark.parametrize(
    "text", ["Count slowly", "Raise when cancelled", "Read the file slowly", "Ask twice"]
)
async def test_a_cancelled_turn_ends_with_cancelled_after_its_last_update(version: int, text: str) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        id = client.prompt(session, text)
        await client.until(lambda frame: "toolCallId" in str(frame) or "chunk" in str(frame))
        client.notify("session/cancel", sessionId=session)
        client.notify("session/cancel", sessionId=session)
        if version == 1:
            assert (await client.response(id))["result"] == {"stopReason": "cancelled"}
        else:
            await client.update("state_update", state="idle", stopReason="cancelled")
        assert await client.call("_barrier") == {"code": -32601, "message": "the method does not exist"}
        end = {1: client.frames[-2], 2: update_of(client.frames[-2])}[version]
        assert "cancelled" in str(end)


@BOTH
async def test_a_turn_that_is_cancelled_before_it_begins_ends_with_cancelled(version: int) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        id = client.prompt(session, "Hello")
        client.notify("session/cancel", sessionId=session)
        if version == 1:
            assert (await client.response(id))["result"] == {"stopReason": "cancelled"}
        else:
            await client.update("state_update", state="idle", stopReason="cancelled")


async def test_questions_of_a_cancelled_turn_are_withdrawn() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        client.prompt(session, "Ask twice")
        asked = [(await client.question(count=count))["id"] for count in (1, 2)]
        client.notify("session/cancel", sessionId=session)
        await client.update("state_update", state="idle", stopReason="cancelled")
        withdrawn = [
            frame["params"]["requestId"]
            for frame in client.frames
            if frame.get("method") == "$/cancel_request"
        ]
        assert withdrawn == asked
        client.respond(asked[0], {"outcome": {"outcome": "selected", "optionId": "allow"}})
        await client.call("_barrier")
        assert update_of(client.frames[-2])["stopReason"] == "cancelled"


async def test_failed_work_is_an_error_response_in_v1_and_an_idle_in_v2() -> None:
    async with connect(1) as client:
        id = client.prompt(await client.new_session(), "Fail")
        assert (await client.response(id))["error"]["code"] == -32603
    async with connect(2) as client:
        updates = await client.turn(await client.new_session(), "Fail")
        assert updates[-1]["stopReason"] == "error"
        assert updates[-1]["error"]["code"] == -32603


@BOTH
async def test_a_tool_call_is_pending_then_in_progress_then_completed(version: int, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("It is about bells.")
    async with connect(version) as client:
        updates = await client.turn(await client.new_session(str(tmp_path)), "Read the file README.md")
    calls = [update for update in updates if "toolCallId" in update]
    assert [call["status"] for call in calls] == ["pending", "in_progress", "completed"]
    assert calls[0]["sessionUpdate"] == ("tool_call" if version == 1 else "tool_call_update")
    assert calls[2]["content"][0]["content"]["text"] == "It is about bells."


@BOTH
async def test_a_plan_is_whole_each_time(version: int) -> None:
    async with connect(version) as client:
        updates = await client.turn(await client.new_session(), "Plan")
    plans = [update.get("plan", update) for update in updates if "plan" in update["sessionUpdate"]]
    assert [len(plan["entries"]) for plan in plans] == [3, 3, 3, 3]


# --- permissions ---

ALLOWED = {"outcome": {"outcome": "selected", "optionId": "allow"}}
NOT_ALLOWED = [
    {"outcome": {"outcome": "selected", "optionId": "reject"}},
    {"outcome": {"outcome": "selected", "optionId": "foreign"}},
    {"outcome": {"outcome": "cancelled"}},
    {"outcome": {"outcome": "_perhaps", "optionId": "allow"}},
    {"outcome": "allow"},
    {},
]


@BOTH
@pytest.mark.parametrize("result", [ALLOWED, *NOT_ALLOWED])
async def test_only_an_offered_allow_option_lets_it_go_on(version: int, result: Json) -> None:
    async with connect(version) as client:
        id = client.prompt(await client.new_session(), "Ask for permission")
        client.respond((await client.question())["id"], result)
        if version == 1:
            await client.response(id)
        else:
            await client.update("state_update", stopReason="end_turn")
        statuses = [update_of(f)["status"] for f in client.frames if "status" in update_of(f)]
        if result == ALLOWED:
            assert statuses == ["pending", "in_progress", "completed"]
        else:
            assert statuses == ["pending", "failed"]


async def test_one_answer_of_two_does_not_mean_running() -> None:
    async with connect(2) as client:
        client.prompt(await client.new_session(), "Ask twice")
        asked = [(await client.question(count=count))["id"] for count in (1, 2)]
        client.respond(asked[1], ALLOWED)
        await client.call("_barrier")
        assert kinds([update_of(f) for f in client.frames if "state" in update_of(f)]) == [
            "running", "requires_action",
        ]  # fmt: skip
        client.respond(asked[0], ALLOWED)
        await client.update("state_update", stopReason="end_turn")
        states = [update_of(f)["state"] for f in client.frames if "state" in update_of(f)]
        assert states == ["running", "requires_action", "running", "idle"]


# --- held prompts and background work ---


async def test_held_v2_prompts_are_answered_when_they_are_inserted() -> None:
    class Short(GoodAgent):
        steps = 3

    async with connect(2, Short) as client:
        session = await client.new_session()
        ids = [client.prompt(session, text) for text in ("Count slowly", "Second", "Third")]
        answers = [(await client.response(id))["result"]["messageId"] for id in ids]
        await client.update("state_update", stopReason="end_turn", count=3)
        shown = [
            update["messageId"]
            for update in map(update_of, client.frames)
            if update.get("sessionUpdate") == "user_message"
        ]
        assert answers == shown
        first_end = next(
            index for index, frame in enumerate(client.frames) if "stopReason" in update_of(frame)
        )
        assert client.frames[first_end + 1]["id"] == ids[1]


async def test_a_cancel_fails_held_v2_prompts_and_spares_later_ones() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        client.prompt(session, "Count slowly")
        held = client.prompt(session, "Second")
        withdrawn = client.prompt(session, "Third")
        client.notify("$/cancel_request", requestId=withdrawn)
        assert (await client.response(withdrawn))["error"]["code"] == -32800
        client.notify("session/cancel", sessionId=session)
        later = client.prompt(session, "Fourth")
        assert (await client.response(held))["error"]["code"] == -32800
        assert "result" in await client.response(later)
        await client.update("state_update", stopReason="end_turn")


async def test_queued_v1_prompts_are_worked_on_in_order() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        ids = [client.prompt(session, text) for text in ("/echo one", "/echo two")]
        for id in ids:
            await client.response(id)
        order = [
            frame["id"] if "id" in frame else update_of(frame)["content"]["text"]
            for frame in client.frames
            if frame.get("id") in ids or "content" in update_of(frame)
        ]
        assert order == ["one", ids[0], "two", ids[1]]


async def test_a_cancel_spares_background_work_and_a_close_ends_it() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        idle = (await client.turn(session, "Work in background"))[-1]
        call = idle["background"][0]["toolCallId"]
        client.notify("session/cancel", sessionId=session)
        await client.update("tool_call_content_chunk", toolCallId=call, count=5)
        assert await client.call("session/close", sessionId=session) == {}
        ended, state = (update_of(frame) for frame in client.frames[-3:-1])
        assert ended["status"] == "cancelled"
        assert state == {"sessionUpdate": "state_update", "state": "idle", "background": []}


async def test_only_a_tool_call_that_says_so_can_be_cancelled() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        idle = (await client.turn(session, "Work in background"))[-1]
        call = idle["background"][0]["toolCallId"]
        assert await client.call("tool_call/cancel", sessionId=session, toolCallId=call) == {}
        await client.update("tool_call_update", toolCallId=call, status="cancelled", capabilities=None)
        for method, key in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            assert (await client.call(method, sessionId=session, **{key: call}))["code"] == -32602


# --- sessions ---


async def test_v1_load_replays_before_it_answers_and_resume_does_not() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        live = await client.turn(session, "Read the file README.md")
        start = len(client.frames)
        await client.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        replayed = [update_of(frame) for frame in client.frames[start:]]
        assert kinds(replayed[:5]) == [
            "user_message_chunk", "agent_thought_chunk", "tool_call", *["agent_message_chunk"] * 2,
        ]  # fmt: skip
        assert replayed[1]["messageId"] == live[0]["messageId"]
        assert "result" in client.frames[start + 5]
        start = len(client.frames)
        await client.call("session/resume", sessionId=session, cwd="/tmp")
        assert len(client.frames) == start + 1


async def test_v2_resume_replays_if_asked_and_always_ends_with_the_state() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        live = await client.turn(session, "Hello")
        start = len(client.frames)
        await client.call("session/resume", sessionId=session, cwd="/tmp")
        assert kinds([update_of(frame) for frame in client.frames[start:-1]]) == ["idle"]
        start = len(client.frames)
        await client.call("session/resume", sessionId=session, cwd="/tmp", replayFrom={"type": "start"})
        replayed = [update_of(frame) for frame in client.frames[start:-1]]
        assert replayed[0] == live[0]
        assert replayed[1]["content"] == replayed[4]["content"] == []
        assert [u for u in replayed if "chunk" in u["sessionUpdate"]] == live[2:7]
        assert kinds(replayed)[-1] == "idle"


@BOTH
async def test_a_running_session_is_replayed_so_far_and_goes_on(version: int) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        client.prompt(session, "Count slowly")
        await client.update("agent_message_chunk", count=3)
        start = len(client.frames)
        if version == 1:
            await client.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        else:
            await client.call("session/resume", sessionId=session, cwd="/tmp", replayFrom={"type": "start"})
            assert update_of(client.frames[-2])["state"] == "running"
        replayed = [update_of(frame) for frame in client.frames[start:]]
        texts = [u["content"]["text"] for u in replayed if u.get("sessionUpdate") == "agent_message_chunk"]
        assert texts[:3] == ["1\n", "2\n", "3\n"]
        await client.update("agent_message_chunk", content={"type": "text", "text": f"{len(texts) + 1}\n"})


@BOTH
async def test_a_close_during_work_ends_the_turn_before_its_answer(version: int) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        prompt = client.prompt(session, "Ask for permission")
        await client.question()
        assert await client.call("session/close", sessionId=session) == {}
        closed = len(client.frames)
        if version == 1:
            assert client.frames[-2] == {
                "jsonrpc": "2.0",
                "id": prompt,
                "result": {"stopReason": "cancelled"},
            }
        else:
            assert update_of(client.frames[-2])["stopReason"] == "cancelled"
        assert (await client.call("session/prompt", sessionId=session, prompt=[]))["data"] == {
            "sessionId": session
        }
        assert len(client.frames) == closed + 1


@BOTH
async def test_sessions_are_listed_in_pages_until_they_are_deleted(version: int) -> None:
    class Small(GoodAgent):
        page_size = 2

    async with connect(version, Small) as client:
        made = [await client.new_session(cwd) for cwd in ("/a", "/b", "/a", "/a", "/a/sub")]
        first = await client.call("session/list", cwd="/a")
        second = await client.call("session/list", cwd="/a", cursor=first["nextCursor"])
        assert [row["sessionId"] for row in first["sessions"]] == [made[3], made[2]]
        assert [row["sessionId"] for row in second["sessions"]] == [made[0]]
        assert "nextCursor" not in second
        assert (await client.call("session/list", cursor="nonsense"))["code"] == -32602
        for _ in range(2):
            assert await client.call("session/delete", sessionId=made[1]) == {}
        assert await client.call("session/list", cwd="/b") == {"sessions": []}


SERVER = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.sendall(sys.stdin.readline().encode())
print("{}", flush=True)
link.sendall(sys.stdin.readline().encode())
sys.stdin.read()
"""
"""An MCP server that shows what it gets, and exits with its client."""


@BOTH
async def test_an_mcp_server_is_greeted_and_ends_with_its_session(version: int) -> None:
    links: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await links.put((reader, writer))

    async with await asyncio.start_server(accept, "127.0.0.1") as listener, connect(version) as client:
        port = str(listener.sockets[0].getsockname()[1])
        server = {"name": "shown", "command": sys.executable, "args": ["-c", SERVER, port], "env": []}
        if version == 2:
            server["type"] = "stdio"
        made = await client.call("session/new", cwd="/", mcpServers=[server])
        async with asyncio.timeout(DEADLINE):
            link, writer = await links.get()
            assert json.loads(await link.readline())["method"] == "initialize"
            assert json.loads(await link.readline())["method"] == "notifications/initialized"
            await client.call("session/close", sessionId=made["sessionId"])
            assert await link.read() == b""
            writer.close()
            await writer.wait_closed()


async def test_a_v2_agent_refuses_transports_it_lacks_and_names_used_twice() -> None:
    stdio = {"type": "stdio", "name": "one", "command": "/bin/true"}
    async with connect(2) as client:
        for servers in ([{"type": "http", "name": "h", "url": "http://h"}], [{"name": "x"}], [stdio, stdio]):
            assert (await client.call("session/new", cwd="/", mcpServers=servers))["code"] == -32602


async def test_a_mode_and_its_option_stay_equal() -> None:
    async with connect(1) as client:
        session = await client.new_session()
        assert await client.call("session/set_mode", sessionId=session, modeId="code") == {}
        options = (await client.update("config_option_update"))["configOptions"]
        assert options[0]["currentValue"] == "code"
        await client.call("session/set_config_option", sessionId=session, configId="mode", value="ask")
        await client.update("current_mode_update", currentModeId="ask")


async def test_a_v2_option_takes_offered_values_only() -> None:
    async with connect(2) as client:
        session = await client.new_session()

        async def set_option(**params: Any) -> Any:
            return await client.call("session/set_config_option", sessionId=session, **params)

        answer = await set_option(configId="verbose", type="boolean", value=True)
        assert [option["currentValue"] for option in answer["configOptions"]] == ["ask", "small", True]
        for wrong in (
            {"configId": "model", "type": "id", "value": "huge"},
            {"configId": "model", "type": "boolean", "value": True},
            {"configId": "model", "value": "large"},
            {"configId": "other", "type": "id", "value": "large"},
        ):
            assert (await set_option(**wrong))["code"] == -32602


async def test_boolean_options_are_for_v1_clients_that_advertise_them() -> None:
    async with connect(1) as client:
        assert len((await client.call("session/new", cwd="/", mcpServers=[]))["configOptions"]) == 2
    advertised: Json = {"session": {"configOptions": {"boolean": {}}}}
    async with connect(1, capabilities=advertised) as client:
        assert len((await client.call("session/new", cwd="/", mcpServers=[]))["configOptions"]) == 3


# --- turn_complete ---


@pytest.mark.parametrize("text", ["Hello", "Count slowly"])
async def test_turn_complete_is_sent_once_and_last_to_a_client_that_asked(text: str) -> None:
    async with connect(1, capabilities={"_meta": {"antiphon": {"turnComplete": True}}}) as client:
        session = await client.new_session()
        id = client.prompt(session, text)
        if text == "Count slowly":
            client.notify("session/cancel", sessionId=session)
        reason = (await client.response(id))["result"]["stopReason"]
        complete = {"sessionUpdate": "turn_complete", "promptRequestId": str(id), "stopReason": reason}
        assert update_of(client.frames[-2]) == complete
        assert sum("turn_complete" in str(frame) for frame in client.frames) == 1


# --- initialization and JSON-RPC ---


@pytest.mark.parametrize(("requested", "selected"), [(1, 1), (2, 2), (3, 2), (65535, 2)])
async def test_the_highest_version_that_is_not_above_is_selected(requested: int, selected: int) -> None:
    client = Client(GoodAgent, selected, None)
    info = {"info": {"name": "test", "version": "1"}} if requested == 2 else {}
    answer = await client.call("initialize", protocolVersion=requested, **info)
    assert answer["protocolVersion"] == selected


async def test_initialize_is_checked_and_comes_first() -> None:
    client = Client(GoodAgent, 2, None)
    refusal = await client.call("initialize", protocolVersion=0)
    assert refusal["code"] == -32022
    assert refusal["data"] == {"requested": 0, "supported": [1, 2]}
    assert (await client.call("initialize", protocolVersion=2))["code"] == -32602
    assert (await client.call("initialize", protocolVersion="2"))["code"] == -32602
    assert (await client.call("session/new", cwd="/"))["code"] == -32600
    for _ in range(2):
        await client.call("initialize", protocolVersion=2, info={"name": "test", "version": "1"})
    await client.new_session()
    again = await client.call("initialize", protocolVersion=2, info={"name": "test", "version": "1"})
    assert again["code"] == -32600


LINES = [
    (b"{", -32700, None),
    (b"\xff", -32700, None),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"_x"}', -32700, None),
    (b"[" * 100_000, -32700, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":9,"method":"_x"}]', -32600, None),
    (b'"text"', -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"1.0","id":9,"method":"_x"}', -32600, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":7}', -32600, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":"_x"}', -32601, 9),
    (b'{"jsonrpc":"2.0","id":"9","method":"session/update","params":{}}', -32601, "9"),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/new","params":[]}', -32602, 9),
    (b'{"jsonrpc":"2.0","id":null,"method":"_x"}', {1: -32601, 2: -32600}, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"_x"}', {1: -32601, 2: -32600}, {1: 1.5, 2: None}),
    (b'{"jsonrpc":"2.0","id":true,"method":"_x"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/load"}', {1: -32602, 2: -32601}, 9),
    (b'{"jsonrpc":"2.0","id":9,"method":"session/set_mode"}', {1: -32602, 2: -32601}, 9),
]


@BOTH
@pytest.mark.parametrize(("line", "code", "id"), LINES)
async def test_a_bad_line_gets_one_error_and_harms_nothing(
    version: int, line: bytes, code: Any, id: Any
) -> None:
    async with connect(version) as client:
        client.agent.receive_line(line)
        expected = {"code": code[version] if isinstance(code, dict) else code}
        answer = client.frames[-1]
        assert answer["id"] == (id[version] if isinstance(id, dict) else id)
        assert expected.items() <= answer["error"].items()
        assert len(client.frames) == 2
        await client.new_session()


SILENT = [
    b"",
    b"  \r",
    b'{"jsonrpc":"2.0","method":"session/prompt","params":{}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":["x"]}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":7}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}',
    b'{"jsonrpc":"2.0","method":"_unknown"}',
    b'{"jsonrpc":"2.0","id":77,"result":{}}',
    b'{"jsonrpc":"2.0","id":[],"error":7}',
]


@BOTH
@pytest.mark.parametrize("line", SILENT)
async def test_a_notification_or_response_is_never_answered(version: int, line: bytes) -> None:
    async with connect(version) as client:
        client.agent.receive_line(line)
        assert len(client.frames) == 1


PROMPTS = [
    "text",
    [{"type": "_unknown"}],
    [{"type": "text"}],
    [{"type": "image", "data": "AAAA"}],
    [{"type": "resource", "resource": {"uri": "file:///x"}}],
    ["text"],
    [{"type": ["text"]}],
]


@BOTH
@pytest.mark.parametrize("content", PROMPTS)
async def test_an_invalid_prompt_gets_an_error(version: int, content: Any) -> None:
    async with connect(version) as client:
        session = await client.new_session()
        start = len(client.frames)
        assert (await client.call("session/prompt", sessionId=session, prompt=content))["code"] == -32602
        assert len(client.frames) == start + 1


async def test_v2_wants_content_and_standard_base64() -> None:
    async with connect(2) as client:
        session = await client.new_session()
        broken = {"type": "image", "data": "A-_", "mimeType": "image/png"}
        for content in ([], [broken]):
            answer = await client.call("session/prompt", sessionId=session, prompt=content)
            assert answer["code"] == -32602


# --- as a process ---


def run(lines: list[Json], *arguments: str) -> list[Json]:
    """Run the agent on these frames until it exits, and return what it wrote."""
    return run_bytes(b"\n".join(json.dumps(line).encode() for line in lines), *arguments)


def run_bytes(data: bytes, *arguments: str) -> list[Json]:
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], input=data, capture_output=True, timeout=30, check=True, cwd="/"
    )
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": 1, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


def test_a_restarted_process_keeps_its_sessions(tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
    session = run([INITIALIZE, new], "--state", state)[1]["result"]["sessionId"]
    params = {"sessionId": session, "cwd": "/tmp", "mcpServers": []}
    load = {"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params}
    prompt = {
        "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "Count slowly"}]},
    }  # fmt: skip
    written = run([INITIALIZE, load, prompt], "--state", state)
    assert written[-1]["error"]["code"] == -32800  # aborted by the end of input
    replayed = run([INITIALIZE, load], "--state", state)
    assert replayed[1]["params"]["update"]["content"] == {"type": "text", "text": "Count slowly"}


def test_a_line_that_is_too_long_is_refused_and_the_next_one_read() -> None:
    data = b"[" * (LONGEST_LINE + 1) + b"\n" + json.dumps(INITIALIZE).encode()
    refused, answer = run_bytes(data)
    assert refused["error"]["code"] == -32600
    assert answer["result"]["protocolVersion"] == 1


class Nameless(GoodAgent):
    """A broken agent, as the tests of the judge make them."""

    def info(self) -> Json:
        return {**super().info(), "name": ""}


def test_a_broken_agent_is_started_by_its_name() -> None:
    answer = run([INITIALIZE], "--agent", f"{__name__}:Nameless")[0]
    assert answer["result"]["agentInfo"]["name"] == ""
