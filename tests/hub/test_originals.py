"""A v1 client behind a hub gets what a v1 agent wrote (invariant 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.transports.processes.child import ChildTransport
from tests.agent.talk import INFO, Talk
from tests.hub.parrots import EVERYTHING, STATES, begin, ended, parrot, prompt, said, updates
from tests.hub.running import served
from tests.requirements.marks import requirement

MODES = {
    "currentModeId": "ask",
    "availableModes": [
        {"id": "ask", "name": "Ask", "description": "first", "_meta": {"k": 1}},
        {"id": "code", "name": "Code"},
    ],
}
WRITTEN: list[dict[str, Any]] = [
    {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Read", "vendor": {"x": None}},
    {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": None, "title": "Read it"},
    {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t1",
        "content": [
            {"type": "diff", "path": "/a b", "oldText": None, "newText": "x\n", "_meta": {"k": [1]}},
            {"type": "content", "content": {"type": "text", "text": "y", "annotations": None}},
            {"type": "terminal", "terminalId": "not-run-here"},
            {"type": "hologram", "data": "z"},
        ],
        "locations": [{"path": "/f", "line": 0}, {"path": "/g"}],
        "rawOutput": {"deep": [None]},
        "_meta": {"vendor.example/x": {"y": None}},
    },
    {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "someday"},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 1.5, "currency": "EUR"}},
    {"sessionUpdate": "usage_update", "used": 2, "size": 2, "cost": None},
    {"sessionUpdate": "plan", "entries": [{"content": "a", "priority": "urgent", "status": "pending"}]},
    {"sessionUpdate": "current_mode_update", "currentModeId": "code"},
    {"sessionUpdate": "current_mode_update", "currentModeId": "unheard of"},
    {"sessionUpdate": "session_info_update", "title": "T", "updatedAt": "yesterday", "_meta": {"a": 1}},
    {"sessionUpdate": "session_info_update", "_meta": {"b": 2}},
    {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "go", "description": "d", "input": None, "icon": "x"}],
    },
    {"sessionUpdate": "_vendor_progress", "percent": 3, "_meta": {"k": 1}},
    {"sessionUpdate": "from_the_future", "x": [1, {"y": None}]},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "data": "z"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "end", "_meta": {"k": 1}}},
]


async def converse(talk: Talk) -> list[Any]:
    await talk.call("i", "initialize", protocolVersion=1, clientInfo=INFO, clientCapabilities=EVERYTHING)
    opened = await talk.call("n", "session/new", cwd="/", mcpServers=[])
    answer = await prompt(talk, opened.pop("sessionId"), *({"update": each} for each in WRITTEN))
    told = updates(talk)
    for update in told:
        update.pop("messageId", None)
    return [opened, *told, answer]


@requirement("EXT-10")
async def test_invariant_8_a_v1_client_gets_what_a_v1_agent_wrote(tmp_path: Path) -> None:
    agent = parrot(1, new={"modes": MODES, "_meta": {"vendor": {"x": None}}})
    direct = await ChildTransport.spawn(agent)
    expected = await converse(Talk(direct))
    await direct.aclose()
    assert expected[1:-1] == WRITTEN
    with served(tmp_path, agent=agent) as hub:
        async with hub.talk(1, clientCapabilities=EVERYTHING) as talk:
            session = await talk.call("n", "session/new", cwd="/", mcpServers=[])
            id = session.pop("sessionId")
            answer = await prompt(talk, id, *({"update": each} for each in WRITTEN))
            told = updates(talk)
    assert all(update.pop("messageId") for update in told if "chunk" in update["sessionUpdate"])
    assert [session, *told, answer] == expected


@requirement("EXT-09", "EXT-10")
async def test_what_nobody_knows_is_kept_over_a_restart_for_those_who_may_know_it(
    tmp_path: Path,
) -> None:
    """A v1 agent's reaches v1 and v2 clients; what v2 has no word for stays among v1 peers."""
    odd = [update for update in WRITTEN if update["sessionUpdate"] in ("_vendor_progress", "from_the_future")]
    mode = {"sessionUpdate": "current_mode_update", "currentModeId": "unheard of"}
    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as one, hub.talk(2) as two:
            id = (await one.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            await prompt(one, id, *({"update": each} for each in [mode, *odd]))
            assert updates(one) == [mode, *odd]
            await two.update("state_update", state="idle", stopReason="end_turn")
            assert [each for each in updates(two) if each["sessionUpdate"] not in STATES] == odd
        hub.kill()
        hub.restart()
        async with hub.talk(1) as one, hub.talk(2) as two:
            await one.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
            start = {"type": "start"}
            await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom=start)
            await prompt(one, id, {"update": odd[0]})
            await two.update("state_update", state="idle", stopReason="end_turn")
            told = [each for each in updates(one) if "message" not in each["sessionUpdate"]]
            assert told == [*odd, odd[0]]
            assert [each for each in updates(two) if each["sessionUpdate"] not in STATES] == [*odd, odd[0]]


@requirement("EXT-10")
async def test_what_only_v2_has_does_not_reach_v1_clients(tmp_path: Path) -> None:
    with served(tmp_path, "--acp-version", "2", agent=parrot(2)) as hub:
        async with hub.talk(1) as one, hub.talk(2) as two:
            id = (await two.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await one.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
            odd = {"sessionUpdate": "_vendor_progress", "percent": 3}
            await prompt(two, id, {"update": odd})
            assert updates(two, "_vendor_progress") == [odd]
            await prompt(one, id)
            assert updates(one, "_vendor_progress") == []


async def test_inv_10_a_v1_client_gets_nothing_as_written_that_it_did_not_ask_for(tmp_path: Path) -> None:
    """A notice, a compaction, a plan by its id and a switch are lowered, each in its way."""
    notice = {"sessionUpdate": "notice", "severity": "info", "title": "N", "vendor": 1}
    compaction = {
        "sessionUpdate": "compaction_update",
        "compactionId": "c",
        "status": "completed",
        "vendor": 1,
    }
    entries = [{"content": "a", "priority": "low", "status": "pending"}]
    plan = {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": entries}}
    switch = {"id": "s", "name": "S", "type": "boolean", "currentValue": True, "vendor": 1}
    options = {"sessionUpdate": "config_option_update", "configOptions": [switch]}
    written = [notice, compaction, plan, options]
    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as plain, hub.talk(1, clientCapabilities=EVERYTHING) as able:
            id = (await plain.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await able.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
            await prompt(plain, id, *({"update": each} for each in written))
            assert [each["sessionUpdate"] for each in updates(plain)] == [
                "agent_message_chunk", "plan", "config_option_update",
            ]  # fmt: skip
            assert updates(plain)[2]["configOptions"] == []
            await prompt(able, id)
            assert [each for each in updates(able) if "message" not in each["sessionUpdate"]] == written


ASKED = {
    "toolCall": {"toolCallId": "t9", "kind": "edit", "rawInput": {"deep": [None]}, "_meta": {"k": 1}},
    "options": [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once", "_meta": {"k": 2}},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ],
    "_meta": {"vendor": {"x": None}},
}


async def test_invariant_8_a_question_of_a_v1_agent_reaches_v1_clients_as_it_was_put(tmp_path: Path) -> None:
    """With nothing told of its tool call but that it is there, and with the answer as it was given."""
    asks = {"ask": ["session/request_permission", {"sessionId": "$session", **ASKED}]}
    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as one, hub.talk(2) as two, hub.talk(1) as late:
            id = (await one.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            begin(one, id, asks)
            request = await one.request("session/request_permission")
            params = request["params"]
            params["_meta"].pop("antiphon", None)
            assert params == {"sessionId": id, **ASKED}
            announced = [(each["sessionUpdate"], each["toolCallId"]) for each in updates(one)]
            assert announced == [("tool_call", "t9")]
            lifted = (await two.request("session/request_permission"))["params"]
            assert lifted["subject"]["toolCall"]["rawInput"] == {"deep": [None]}
            await late.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
            again = (await late.request("session/request_permission"))["params"]
            assert again["toolCall"] == ASKED["toolCall"]
            outcome = {"outcome": "selected", "optionId": "no", "_meta": {"why": 1}}
            one.send(id=request["id"], result={"outcome": outcome})
            await ended(one)
            assert said(one) == [{"outcome": outcome}]


async def test_invariant_7_made_ids_are_the_same_for_all_chunks_on_replay_and_over_a_restart(
    tmp_path: Path,
) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    thought = {**chunk, "sessionUpdate": "agent_thought_chunk"}
    steps = [{"update": each} for each in (thought, thought, chunk, chunk)]

    def ids(talk: Talk) -> list[str]:
        """Of the agent's messages, each once, in their order."""
        told = [each for each in updates(talk) if each["sessionUpdate"] in CHUNKS]
        return list(dict.fromkeys(each["messageId"] for each in told))

    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as one:
            id = (await one.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await prompt(one, id, *steps, id="1")
            live = ids(one)
            assert len(live) == 2
        hub.kill()
        hub.restart()
        async with hub.talk(1) as one, hub.talk(2) as two:
            await one.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
            assert ids(one) == live
            await prompt(one, id, *steps, id="2")
            await two.call(
                "r", "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom={"type": "start"}
            )
            folded = [each["messageId"] for each in updates(two) if each["sessionUpdate"] in WHOLE]
            assert folded == ids(one)
            assert len(set(folded)) == 4


CHUNKS = ("agent_message_chunk", "agent_thought_chunk")
WHOLE = ("agent_message", "agent_thought")


@requirement("OBS-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_what_stands_beside_an_update_reaches_everybody_and_is_kept(
    tmp_path: Path, version: int
) -> None:
    beside = {"_meta": {"traceparent": "00-6", "deep": [None]}}
    chunk = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x"},
        "messageId": "m",
    }
    tool = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "T"}
    steps = [{"update": chunk, "beside": beside}, {"update": tool, "beside": beside}, {"update": chunk}]
    numbers = {"capabilities": {"_meta": {"antiphon": {"seq": True}}}}

    def metas(talk: Talk) -> list[Any]:
        told = [frame["params"] for frame in talk.seen if "update" in frame.get("params", {})]
        told = [each for each in told if each["update"]["sessionUpdate"] not in STATES]
        return [
            {key: value for key, value in each.get("_meta", {}).items() if key != "antiphon"} for each in told
        ]

    expected = [beside["_meta"], beside["_meta"], {}]
    with served(tmp_path, "--acp-version", str(version), agent=parrot(version)) as hub:
        async with hub.talk(1) as one, hub.talk(2, **numbers) as two:
            id = (await one.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            await prompt(one, id, *steps)
            assert metas(one) == expected
            await two.update("state_update", state="idle", stopReason="end_turn")
            assert metas(two) == expected
        hub.kill()
        hub.restart()
        async with hub.talk(2, **numbers) as two:
            after = {"type": "_antiphon_after", "seq": 1}
            await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[], replayFrom=after)
            assert metas(two)[:3] == expected
            told = [frame["params"] for frame in two.seen if "update" in frame.get("params", {})]
            assert all("seq" in each["_meta"]["antiphon"] for each in told)


NONSENSE: list[Any] = [
    [],
    "x",
    None,
    {},
    {"sessionUpdate": []},
    {"sessionUpdate": 5},
    {"sessionUpdate": None},
    {"sessionUpdate": ""},
    {"sessionUpdate": "agent_message_chunk"},
    {"sessionUpdate": "agent_message_chunk", "content": []},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": 5}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "odd"}, "messageId": 5, "_meta": []},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}},
    {"sessionUpdate": "tool_call"},
    {"sessionUpdate": "tool_call_update", "toolCallId": {}},
    {"sessionUpdate": "state_update", "state": []},
    {"sessionUpdate": "user_message", "messageId": []},
    {"sessionUpdate": "_antiphon_v1"},
    {"sessionUpdate": "_antiphon_queue", "entries": 5},
    {"sessionUpdate": "config_option_update", "configOptions": {}},
]


@requirement("RPC-39")
async def test_nonsense_costs_nothing_but_itself(tmp_path: Path) -> None:
    last = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "still here"}}
    with served(tmp_path, agent=parrot(1)) as hub:
        async with hub.talk(1) as one, hub.talk(2) as two:
            id = (await one.call("n", "session/new", cwd="/", mcpServers=[]))["sessionId"]
            await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
            answer = await prompt(one, id, *({"update": each} for each in [*NONSENSE, last]))
            assert answer["result"] == {"stopReason": "end_turn"}
            told = updates(one)
            assert told[-1]["content"] == last["content"]
            assert not [each for each in told if each["sessionUpdate"].startswith("_antiphon")]
            await two.update("state_update", state="idle", stopReason="end_turn")
            kept = [each for each in updates(two) if each["sessionUpdate"] not in STATES]
            assert [each.get("content") for each in kept][-1] == last["content"]
            assert not [each for each in kept if each["sessionUpdate"].startswith("_antiphon")]
