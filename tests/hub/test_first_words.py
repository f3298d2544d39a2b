"""An agent that speaks first is heard by the client that began the session, behind the answer that names
it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.hub import Hub
from antiphon.transports.processes.child import ChildTransport
from tests.agent.talk import INFO, Talk, client
from tests.hub.habits import Frame, Habit, end_turn, text
from tests.hub.running import ANTIPHON, DEADLINE, ROOT, served

EVERYTHING: dict[str, Any] = {"session": {"notices": {}}, "plan": {}}
V1 = {"clientCapabilities": EVERYTHING}
DIALECTS: dict[str, tuple[int, dict[str, Any]]] = {
    "v1": (1, V1),
    "turn_complete": (
        1,
        {"clientCapabilities": {**EVERYTHING, "_meta": {"antiphon": {"turnComplete": True}}}},
    ),
    "lifecycle": (1, {"clientCapabilities": {**EVERYTHING, "_meta": {"antiphon": {"promptLifecycle": 2}}}}),
    "v2": (2, {}),
    "proposed": (2, {"_meta": {"antiphon": {"dialect": "proposed"}}}),
}
MOMENTS = ("before", "around", "behind")
IN_EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS)
AT_EVERY_MOMENT = pytest.mark.parametrize("moment", MOMENTS)
Say = Callable[[Habit], Any]

COMMAND = {"name": "go", "description": "d"}
ENTRY = {"content": "a", "priority": "high", "status": "pending"}
V1_THINGS: dict[str, tuple[Say, tuple[str, ...]]] = {
    "thought": (lambda a: a.update("agent_thought_chunk", content=text("hm")), ("agent_thought_chunk",)),
    "commands": (
        lambda a: a.update("available_commands_update", availableCommands=[COMMAND]),
        ("available_commands_update",),
    ),
    "usage": (lambda a: a.update("usage_update", used=1, size=2), ("usage_update",)),
    "title": (lambda a: a.update("session_info_update", title="T"), ("session_info_update",)),
    "plan": (lambda a: a.update("plan", entries=[ENTRY]), ("plan", "plan_update")),
    "unknown": (lambda a: a.update("_vendor_kind", x=1), ("_vendor_kind",)),
    "tool": (
        lambda a: a.update("tool_call", toolCallId="t", title="Read"),
        ("tool_call", "tool_call_update"),
    ),
    "question": (
        lambda a: a.ask_permission({"toolCallId": "t", "title": "Read"}),
        ("session/request_permission",),
    ),
    "note": (lambda a: a.notify("_vendor/note", sessionId="s", x=1), ("_vendor/note",)),
    "plain note": (lambda a: a.notify("_vendor/note", x=1), ("_vendor/note",)),
}
V2_THINGS: dict[str, tuple[Say, tuple[str, ...]]] = {
    "commands": V1_THINGS["commands"],
    "usage": V1_THINGS["usage"],
    "title": V1_THINGS["title"],
    "plan": (
        lambda a: a.update("plan_update", plan={"type": "items", "planId": "p", "entries": [ENTRY]}),
        ("plan", "plan_update"),
    ),
    "unknown": (lambda a: a.update("_vendor_kind", x=1), ("_vendor_kind",)),
    "notice": (lambda a: a.update("notice", severity="info", title="Hello"), ("notice",)),
    "welcome": (
        lambda a: a.update("agent_message", messageId="w", content=[text("welcome")]),
        ("agent_message", "agent_message_chunk"),
    ),
    "tool": (lambda a: a.update("tool_call_update", toolCallId="t", title="Read"), V1_THINGS["tool"][1]),
    "question": V1_THINGS["question"],
    "note": V1_THINGS["note"],
    "plain note": V1_THINGS["plain note"],
}
ONLY_V2 = ("unknown",)
"""What a v2 agent says that reaches no v1 client (EXT-10)."""
THINGS = [
    (version, kind, dialect)
    for version, things in ((1, V1_THINGS), (2, V2_THINGS))
    for kind in things
    for dialect in DIALECTS
    if not (version == 2 and kind in ONLY_V2 and DIALECTS[dialect][0] == 1)
]


def speaker(version: int, say: Say, moment: str) -> Habit:
    """Says `1`, a thing and `2`, in other messages each."""

    def new(agent: Habit, frame: Frame) -> None:
        if moment == "behind":
            agent.answer(frame, sessionId="s")
        agent.say("1", "m1", **({"messageId": "m1"} if version == 1 else {}))
        if moment == "around":
            agent.answer(frame, sessionId="s")
        say(agent)
        agent.say("2", "m2", **({"messageId": "m2"} if version == 1 else {}))
        if moment == "before":
            agent.answer(frame, sessionId="s")

    return Habit(version, new=new)


@asynccontextmanager
async def talking(agent: Any, dialect: str) -> AsyncIterator[Talk]:
    version, asked = DIALECTS[dialect]
    hub = Hub({"habit": agent})
    async with asyncio.timeout(DEADLINE), hub.serving(), client(hub, version, **asked) as talk:
        yield talk


def story(talk: Talk) -> list[str]:
    """What came behind the answer to `session/new`: kinds, states and texts."""
    told = []
    at = next(at for at, frame in enumerate(talk.seen) if frame.get("id") == "new" and "method" not in frame)
    assert not any("update" in frame.get("params", {}) for frame in talk.seen[:at])
    for frame in talk.seen[at + 1 :]:
        update = frame.get("params", {}).get("update")
        if update is None:
            told.append(frame.get("method", "="))
            continue
        content = update.get("content")
        said = content.get("text") if isinstance(content, dict) else None
        if isinstance(content, list) and content and "text" in content[0]:
            said = content[0]["text"]
        told.append(said or update.get("state") or update["sessionUpdate"])
    return told


async def begin(talk: Talk, **more: Any) -> str:
    opened = await talk.call("new", "session/new", cwd="/", mcpServers=[], **more)
    return str(opened["sessionId"])


@AT_EVERY_MOMENT
@pytest.mark.parametrize(("version", "kind", "dialect"), THINGS)
async def test_what_an_agent_sends_around_its_answer_reaches_the_client_that_began_the_session(
    version: int, kind: str, moment: str, dialect: str
) -> None:
    say, kinds = (V1_THINGS if version == 1 else V2_THINGS)[kind]
    async with talking(speaker(version, say, moment), dialect) as talk:
        await begin(talk)
        while "2" not in story(talk):
            await talk.until(lambda _: True)
        told = story(talk)
        late = (
            kind == "question" and moment != "behind"
        )  # it may be asked as soon as the session has its name
        if late and not set(kinds) & set(told):
            await talk.request(kinds[0])
            told = story(talk)
    assert told.index("1") < told.index("2")
    said = [each for each in told if each in kinds or each in ("hm", "welcome")]
    assert len(said) == 1 or kind in ("question",), told
    if not late:
        assert told.index("1") < told.index(said[0]) < told.index("2"), told


def _turn(agent: Habit) -> None:
    agent.update("state_update", state="running")
    agent.say("mine", "m3")
    agent.update("state_update", state="idle", stopReason="end_turn")


@IN_EVERY_DIALECT
@AT_EVERY_MOMENT
async def test_a_turn_that_the_agent_opens_first_is_told_and_the_next_prompt_works(
    moment: str, dialect: str
) -> None:
    async with talking(speaker(2, _turn, moment), dialect) as talk:
        session = await begin(talk)
        while "2" not in story(talk):
            await talk.until(lambda _: True)
        told = story(talk)
        tells = dialect not in ("v1", "turn_complete")
        assert [each for each in told if each in ("1", "running", "mine", "idle", "2")] == [
            "1", *(["running"] if tells else []), "mine", *(["idle"] if tells else []), "2",
        ]  # fmt: skip
        talk.prompt("p", session, "hello")
        assert "error" not in await talk.answer_to("p")


@IN_EVERY_DIALECT
async def test_what_the_answer_says_is_not_said_again(dialect: str) -> None:
    """Config options and commands of the agent's answer are in the hub's; a v1 client gets commands once."""
    option = {
        "configId": "mode", "name": "Mode", "type": "select", "currentValue": "a", "category": "mode",
        "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
    }  # fmt: skip

    def new(agent: Habit, frame: Frame) -> None:
        agent.answer(frame, sessionId="s", configOptions=[option], availableCommands=[COMMAND])
        agent.say("hello", "m")

    async with talking(Habit(2, new=new), dialect) as talk:
        opened = await talk.call("new", "session/new", cwd="/", mcpServers=[])
        while "hello" not in story(talk):
            await talk.until(lambda _: True)
        told = story(talk)
        assert "config_option_update" not in told
        assert "current_mode_update" not in told
        assert len(opened["configOptions"]) == 1
        assert told.count("available_commands_update") == (1 if DIALECTS[dialect][0] == 1 else 0)


@IN_EVERY_DIALECT
@pytest.mark.parametrize("version", [1, 2])
@AT_EVERY_MOMENT
async def test_what_an_agent_sends_around_its_answer_to_a_fork_reaches_the_client_that_forked(
    moment: str, version: int, dialect: str
) -> None:
    able = {"sessionCapabilities": {"fork": {}}} if version == 1 else {"session": {"fork": {}}}

    def fork(agent: Habit, frame: Frame) -> None:
        agent.session = "forked"
        if moment == "behind":
            agent.answer(frame, sessionId="forked")
        agent.say("1", "f1")
        if moment == "around":
            agent.answer(frame, sessionId="forked")
        agent.update("usage_update", used=1, size=2)
        agent.notify("_vendor/note", sessionId="forked")
        agent.say("2", "f2")
        if moment == "before":
            agent.answer(frame, sessionId="forked")

    def prompt(agent: Habit, frame: Frame) -> None:
        agent.say("first", "a1")
        end_turn(agent, frame)

    async with talking(Habit(version, prompt=prompt, fork=fork, able=able), dialect) as talk:
        session = await begin(talk)
        talk.prompt("p", session, "hello")
        await talk.answer_to("p")
        behind = len(talk.seen)
        opened = await talk.call("new2", "session/fork", sessionId=session, cwd="/", mcpServers=[])
        assert opened["sessionId"] != session
        while not any(
            "2" in str(frame.get("params", {}).get("update", {}).get("content"))
            for frame in talk.seen[behind:]
        ):
            await talk.until(lambda _: True)
        came = [
            frame for frame in talk.seen if frame.get("params", {}).get("sessionId") == opened["sessionId"]
        ]
    assert [
        frame["params"].get("update", frame)["sessionUpdate" if "update" in frame["params"] else "method"]
        for frame in came
    ] == ["agent_message_chunk", "usage_update", "_vendor/note", "agent_message_chunk"]


@IN_EVERY_DIALECT
async def test_a_session_begun_under_an_operation_id_is_heard_from_its_beginning(dialect: str) -> None:
    async with talking(speaker(2, V2_THINGS["notice"][0], "before"), dialect) as talk:
        await begin(talk, _meta={"antiphon": {"operationId": "op"}})
        while "2" not in story(talk):
            await talk.until(lambda _: True)
        assert [each for each in story(talk) if each in ("1", "2", "notice")] == ["1", "notice", "2"]


@IN_EVERY_DIALECT
@pytest.mark.parametrize("moment", ["before", "behind"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("version", [1, 2])
async def test_an_extension_request_waits_for_the_client_that_begins_the_session(
    version: int, named: bool, moment: str, dialect: str
) -> None:
    asked = {"sessionId": "s", "n": 1} if named else {"n": 1}
    answers: list[Frame] = []

    def new(agent: Habit, frame: Frame) -> None:
        if moment == "behind":
            agent.answer(frame, sessionId="s")
        agent.send(id="early", method="_vendor/x", params=asked)
        if moment == "before":
            agent.answer(frame, sessionId="s")

    agent = Habit(version, new=new)
    agent.on_answer = lambda _, frame: answers.append(frame)
    async with talking(agent, dialect) as talk:
        session = await begin(talk)
        request = await talk.request("_vendor/x")
        assert request["params"] == ({"sessionId": session, "n": 1} if named else {"n": 1})
        talk.send(id=request["id"], result={"told": True})
        talk.prompt("p", session, "hello")
        await talk.answer_to("p")
    assert answers == [{"jsonrpc": "2.0", "id": "early", "result": {"told": True}}]


async def test_an_agent_that_needs_an_answer_to_open_its_session_is_not_kept_waiting_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon.hub.upstream.agent_extensions.LONGEST_WAIT", 0.01)
    opening: list[Frame] = []

    def new(agent: Habit, frame: Frame) -> None:
        opening.append(frame)
        agent.send(id="early", method="_vendor/x", params={"sessionId": "s"})

    def go_on(agent: Habit, frame: Frame) -> None:
        assert frame["error"]["code"] == -32601
        agent.answer(opening[0], sessionId="s")

    agent = Habit(1, new=new)
    agent.on_answer = go_on
    async with talking(agent, "v1") as talk:
        await begin(talk)


EXAMPLE = [str(ANTIPHON[0]), str(ROOT / "examples" / "first_words_agent.py")]


@pytest.mark.parametrize("dialect", ["v1", "turn_complete", "lifecycle", "v2", "proposed"])
async def test_the_example_is_heard_over_stdio_and_websocket(tmp_path: Path, dialect: str) -> None:
    version, asked = DIALECTS[dialect]
    shape = {"clientInfo": INFO} if version == 1 else {"info": INFO, "capabilities": {}}
    with served(tmp_path, agent=EXAMPLE) as hub:
        async with asyncio.timeout(2 * DEADLINE), hub.talk(version, **asked) as talk:
            await begin(talk)
            await talk.until(lambda frame: "Good morning" in str(frame))
            assert "Good morning. What shall we do?" in "".join(story(talk))
        transport = await ChildTransport.spawn([*ANTIPHON, "acp", "--data", str(tmp_path)])
        editor = Talk(transport)
        await editor.call("i", "initialize", protocolVersion=version, **{**shape, **asked})
        await begin(editor)
        await editor.until(lambda frame: "Good morning" in str(frame))
        assert "Good morning. What shall we do?" in "".join(story(editor))
        await transport.aclose()
