"""Sections 1, 2, 19 and 20 as they bind a client: opening, what it asks for, and how it takes strangers."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import sys
from typing import Any

import pytest

from antiphon.client import ClientSession, Permission, Permissions, ProcessOptions, TurnEnd, connect
from antiphon.errors import CallFailed, LocalError, RemoteError
from antiphon.schema import v2
from antiphon.schema.v2.permissions import PermissionOption
from tests.requirements.agent_by_hand import (
    INFO,
    AgentByHand,
    Scripted,
    opened,
    opening,
    session,
    text,
    unopened,
)
from tests.requirements.marks import requirement

END = TurnEnd(stop_reason=v2.StopReason.END_TURN)
OURS = {"name": "tester", "version": "9"}
TAKEN_IN_V1 = {
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "subagents": {},
}
"""What a v1 agent has to be told that its client takes; v2 has it by itself."""


@requirement("INIT-01", "INIT-10", "INIT-12", "INIT-13", "INIT-18", "INIT-22", "INIT-23")
@pytest.mark.parametrize("version", [None, 2])
async def test_the_first_frame_offers_both_versions(
    version: int | None,
) -> None:
    async with unopened(version=version, name="tester", client_version="9") as (client, agent):
        agent.initializing(client)
        request = await agent.request("initialize")
        asked = {"queueUpdates": True, "presence": True, "annotations": True}
        assert agent.seen == [request]
        assert request == {
            "jsonrpc": "2.0",
            "id": request["id"],
            "method": "initialize",
            "params": {
                "_meta": {"antiphon": {"clientId": client.who.client_id}},
                "protocolVersion": 2,
                "info": OURS,
                "capabilities": {"_meta": {"antiphon": asked}},
                "clientInfo": OURS,
                "clientCapabilities": {
                    **TAKEN_IN_V1,
                    "_meta": {"antiphon": {**asked, "turnComplete": True, "messageUpdate": True}},
                },
            },
        }


@requirement("INIT-01", "INIT-10", "INIT-12")
async def test_a_client_of_v1_alone_asks_for_it_in_its_own_shape() -> None:
    async with unopened(version=1, name="tester", client_version="9") as (client, agent):
        agent.initializing(client)
        params = (await agent.request("initialize"))["params"]
        assert params["protocolVersion"] == 1
        assert params["clientInfo"] == OURS
        assert params.keys() == {"protocolVersion", "clientInfo", "clientCapabilities", "_meta"}
        offered = {key: value for key, value in params["clientCapabilities"].items() if key != "_meta"}
        assert offered == TAKEN_IN_V1, "no files and no terminals"


@requirement("INIT-01")
async def test_nothing_is_sent_before_the_answer_has_come() -> None:
    async with unopened() as (client, agent):
        initializing = agent.initializing(client)
        request = await agent.request("initialize")
        with pytest.raises(LocalError):
            await client.connection.call("session/list", {})
        agent.answer(request, opening(2))
        await initializing
        await agent.new_session(client)
        assert [frame["method"] for frame in agent.seen] == ["initialize", "session/new"]


@requirement("INIT-06")
@pytest.mark.parametrize(
    "answer",
    [
        {"protocolVersion": 3, "info": INFO, "capabilities": {}},
        {"protocolVersion": 0},
        {**opening(1), "protocolVersion": 9999},
        {"protocolVersion": "2", "info": INFO},
        {"protocolVersion": None},
        {},
    ],
)
async def test_an_answer_in_no_version_of_ours_closes_the_link_and_says_which(
    answer: dict[str, Any],
) -> None:
    agent = Scripted(answer)
    with pytest.raises(RemoteError, match="supported here: 1, 2"):
        async with asyncio.timeout(15), connect(agent):
            pytest.fail("it is not connected")
    assert agent.ended


@requirement("INIT-06")
async def test_a_client_that_insists_on_a_version_takes_no_other() -> None:
    agent = Scripted(opening(1))
    with pytest.raises(RemoteError, match="answered protocol version 1; supported here: 2"):
        async with asyncio.timeout(15), connect(agent, version=2):
            pytest.fail("it is not connected")
    assert agent.ended


@requirement("INIT-07", "INIT-08")
@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (opening(1), 1),
        (opening(2), 2),
        ({**opening(1), "protocolVersion": 2}, 1),
        ({"protocolVersion": 1}, 1),
    ],
)
async def test_one_version_is_spoken_from_the_answer_on(answer: dict[str, Any], version: int) -> None:
    """An agent that echoes a number that it does not speak is known by the shape of its answer."""
    async with opened(answer=answer) as (client, agent):
        assert client.agreement.version == version
        of = await agent.new_session(client)
        new = agent.sent("session/new")[0]
        prompting = agent.meanwhile(of.prompt("hi"))
        request = await agent.request("session/prompt")
        if version == 1:
            assert new == {"cwd": "/site", "mcpServers": []}
            turn = await prompting
            agent.update(of, "agent_message_chunk", content=text("Hello."))
            agent.answer(request, {"stopReason": "end_turn"})
        else:
            assert new["cwd"] == "/site"
            assert not prompting.done()
            agent.answer(request, {"messageId": "u"})
            turn = await prompting
            agent.state(of, "running")
            agent.update(of, "agent_message", messageId="a", content=[text("Hello.")])
            agent.state(of, "idle", stopReason="end_turn")
        assert await turn.drained() == END
        assert turn.text == "Hello."


@requirement("INIT-26")
async def test_a_failed_first_initialize_can_be_tried_again_on_the_same_link() -> None:
    async with unopened() as (client, agent):
        first = agent.initializing(client)
        data = {"requested": 2, "supported": [3]}
        agent.refuse(await agent.request("initialize"), -32022, "Unsupported protocol version", **data)
        with pytest.raises(CallFailed) as failure:
            await first
        assert (failure.value.error.code, failure.value.error.data) == (-32022, data)
        with pytest.raises(LocalError):
            await client.connection.call("session/list", {})
        again = agent.initializing(client)
        agent.answer(await agent.request("initialize"), opening(2))
        await again
        of = await agent.new_session(client)
        assert (of.id, client.agreement.version, agent.methods()) == ("s", 2, ["session/new"])


@requirement("INIT-08")
async def test_agents_of_both_versions_are_served_side_by_side() -> None:
    async with session(1) as (old, of_old), session(2) as (new, of_new):
        turns = await of_old.prompted(old, "hi"), await of_new.working(new, "hi")
        of_old.says(old, "Old.")
        of_new.says(new, "New.", messageId="a")
        of_old.answer(await of_old.request("session/prompt"), {"stopReason": "end_turn"})
        of_new.state(new, "idle", stopReason="end_turn")
        assert [await turn.drained() for turn in turns] == [END, END]
        assert [turn.text for turn in turns] == ["Old.", "New."]


async def refused(held: ClientSession, agent: AgentByHand) -> set[str]:
    """What a client refuses to ask for without sending anything."""
    client = held.client

    async def listing() -> None:
        async for _ in client.list_sessions():
            pass

    image = v2.ImageContent(data="aGk=", mime_type="image/png")
    audio = v2.AudioContent(data="aGk=", mime_type="audio/wav")
    resource = v2.EmbeddedResource(resource=v2.TextResourceContents(uri="file:///a", text="a"))
    attempts: dict[str, Any] = {
        "load": lambda: client.load_session("x", "/"),
        "resume": lambda: client.resume_session("x", "/"),
        "list": listing,
        "close": lambda: client.close_session(held),
        "delete": lambda: client.delete_session("x"),
        "additionalDirectories": lambda: client.new_session("/", additional_directories=["/b"]),
        "image": lambda: held.prompt(image),
        "audio": lambda: held.prompt(audio),
        "embeddedContext": lambda: held.prompt(resource),
        "queue": lambda: held.queue.add("later"),
        "steer": lambda: held.prompt("now", delivery="steer"),
    }
    failed = set()
    for name, attempt in attempts.items():
        asking = agent.meanwhile(attempt())
        await agent.settled(held)
        if asking.done() and isinstance(asking.exception(), LocalError):
            failed.add(name)
        asking.cancel()  # otherwise it waits for the answer to what it asked
    return failed


@requirement("INIT-14", "SESS-29")
@pytest.mark.parametrize(
    ("version", "capabilities", "always"),
    [(1, {}, set()), (2, {"session": {}}, {"load", "resume", "list", "close"})],
)
async def test_nothing_is_asked_for_that_was_not_offered(
    version: int, capabilities: Any, always: set[str]
) -> None:
    async with session(version, capabilities) as (of, agent):
        before = len(agent.seen)
        everything = {
            "load", "resume", "list", "close", "delete", "additionalDirectories", "image", "audio",
            "embeddedContext", "queue", "steer",
        }  # fmt: skip
        assert await refused(of, agent) == everything - always
        await agent.settled(of)
        sent = {frame["method"] for frame in agent.seen[before:] if "method" in frame}
        baseline = {"session/resume", "session/list", "session/close", "$/cancel_request"}
        assert sent <= (baseline if always else set())


@requirement("INIT-14")
async def test_an_agent_of_v2_without_sessions_is_asked_for_none() -> None:
    async with opened(2, {}) as (client, agent):
        attempts: list[Any] = [
            lambda: client.new_session("/"),
            lambda: client.load_session("x", "/"),
            lambda: client.resume_session("x", "/"),
            lambda: client.delete_session("x"),
            lambda: anext(client.list_sessions()),
        ]
        for attempt in attempts:
            with pytest.raises(LocalError):
                await attempt()
        await agent.answer_to(agent.ask("_settled"))
        assert agent.methods() == []


@requirement("INIT-15")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_works_with_every_combination_of_capabilities(version: int) -> None:
    prompt, kept = ("image", "audio", "embeddedContext"), ("list", "close", "delete", "resume")
    for chosen in itertools.product([False, True], repeat=len(prompt) + len(kept) + 1):
        takes = dict(zip(prompt, chosen, strict=False))
        keeps = dict(zip(kept, chosen[len(prompt) :], strict=False))
        if version == 1:
            able: dict[str, Any] = {
                "loadSession": chosen[-1],
                "promptCapabilities": takes,
                "sessionCapabilities": {name: {} for name, on in keeps.items() if on},
            }
        else:
            offered: dict[str, Any] = {name: {} for name, on in takes.items() if on}
            session_able: dict[str, Any] = {"prompt": offered if chosen[-1] else None}
            if keeps["delete"]:
                session_able["delete"] = {}
            able = {"session": session_able}
        async with session(version, able) as (of, agent):
            turn = await agent.prompted(of, "hi")
            if version == 1:
                agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
            else:
                agent.state(of, "running")
                agent.state(of, "idle", stopReason="end_turn")
            assert await turn.drained() == END


@requirement("INIT-16")
@pytest.mark.parametrize(
    ("marker", "offered"), [({}, True), ({"more": 1}, True), (None, False), (True, False), (False, False)]
)
async def test_a_marker_is_an_object_and_a_boolean_offers_nothing(marker: Any, offered: bool) -> None:
    able = {"session": {"prompt": {"image": marker}, "delete": marker, "additionalDirectories": marker}}
    async with opened(2, able) as (client, _):
        told = client.abilities
        assert (told.image, told.delete, told.additional_directories) == (offered, offered, offered)


@requirement("INIT-28")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("capabilities", [None, 7, [], "all"])
async def test_strange_auth_methods_and_malformed_capabilities_are_survived(
    version: int, capabilities: Any
) -> None:
    methods = [{"type": "_dance"}, 7, {"id": "key", "name": "A key"}, None]
    answer = opening(version, authMethods=methods)
    answer["agentCapabilities" if version == 1 else "capabilities"] = capabilities
    async with opened(answer=answer) as (client, _):
        assert client.agreement.version == version
        assert (client.abilities.image, client.abilities.delete) == (False, False)


@requirement("RPC-17", "EXT-12")
@pytest.mark.parametrize("version", [1, 2])
async def test_everything_sent_is_one_object_each_and_a_method_the_agent_knows(
    version: int,
) -> None:
    lines: list[bytes] = []

    def tap(direction: str, frame: Any) -> None:
        if direction == "out":
            lines.append(frame)

    async with opened(version, tap=tap) as (client, agent):
        makings = [agent.meanwhile(client.new_session(f"/{n}")) for n in range(3)]
        for n in range(3):
            agent.answer(await agent.request("session/new"), {"sessionId": str(n)})
        sessions = [await making for making in makings]
        prompts = [agent.meanwhile(of.prompt("hi")) for of in sessions]
        requests = [await agent.request("session/prompt") for _ in sessions]
        for request in requests:
            agent.answer(request, {"messageId": "u"} if version == 2 else {"stopReason": "end_turn"})
        turns = [await prompting for prompting in prompts]
        await sessions[0].cancel()
        closing = agent.meanwhile(sessions[1].close())
        agent.answer(await agent.request("session/close"), {})
        await closing
        assert len(turns) == 3
    sent = [json.loads(line) for line in lines]
    assert all(isinstance(frame, dict) and frame["jsonrpc"] == "2.0" for frame in sent)
    assert {frame["method"] for frame in sent if "method" in frame} == {
        "initialize",
        "session/new",
        "session/prompt",
        "session/cancel",
        "session/close",
    }


@requirement("INIT-01")
async def test_what_comes_too_early_is_our_mistake() -> None:
    async with unopened() as (client, agent):
        for early in (client.new_session("/site"), client.resume_session("s"), client.delete_session("s")):
            with pytest.raises(LocalError, match="initialize"):
                await early
        with pytest.raises(LocalError, match="initialize"):
            await anext(client.list_sessions())
        assert agent.seen == []


@requirement("RPC-34")
async def test_a_question_that_is_open_when_the_client_closes_is_still_answered() -> None:
    asked = asyncio.Event()

    async def never(permission: Permission) -> PermissionOption | None:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with session(answers=Permissions(ask=never)) as (of, agent):
        await agent.working(of, "go")
        options = [{"optionId": "1", "name": "Yes", "kind": "allow_once"}]
        id = agent.ask("session/request_permission", sessionId="s", title="May I?", options=options)
        await asked.wait()
        await of.client.connection.aclose()
        assert (await agent.answer_to(id))["error"]["code"] == -32800


@requirement("OBS-04")
async def test_an_agent_gets_the_telemetry_settings_of_its_user_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.test:4318")
    script = (
        "import json, os\n"
        "from antiphon.agent import Agent\n"
        "agent = Agent('child')\n"
        "@agent.on_prompt\n"
        "async def answer(turn):\n"
        "    await turn.say(json.dumps({k: v for k, v in os.environ.items() if k.startswith('OTEL_')}))\n"
        "agent.run()\n"
    )
    started = connect(
        [sys.executable, "-c", script], process=ProcessOptions(env={"OTEL_TRACES_SAMPLER": "always_off"})
    )
    async with asyncio.timeout(30), started as client:
        turn = await (await client.new_session(os.getcwd())).prompt("which?")
        assert await turn.drained() == END
        assert json.loads(turn.text) == {
            "OTEL_SERVICE_NAME": "mine",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.test:4318",
            "OTEL_TRACES_SAMPLER": "always_off",
        }


@requirement("TRANS-05")
async def test_an_agent_is_started_and_spoken_to_over_stdio() -> None:
    script = (
        "from antiphon.agent import Agent\n"
        "agent = Agent('child')\n"
        "@agent.on_prompt\n"
        "async def answer(turn): await turn.say('From a pipe.')\n"
        "agent.run()\n"
    )
    async with asyncio.timeout(30), connect([sys.executable, "-c", script]) as client:
        of = await client.new_session(os.getcwd())
        turn = await of.prompt("hi")
        assert await turn.drained() == END
        assert turn.text == "From a pipe."


@requirement("OBS-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_neither_prompts_nor_output_nor_secrets_are_logged(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "hunter2"
    server = v2.McpServerStdio(name="m", command="/bin/mcp", env=[v2.EnvVariable(name="TOKEN", value=secret)])

    async def choose(permission: Permission) -> PermissionOption | None:
        return permission.allow()

    async with opened(version, answers=Permissions(ask=choose)) as (client, agent):
        making = agent.meanwhile(client.new_session("/site", mcp_servers=[server]))
        agent.answer(await agent.request("session/new"), {"sessionId": "s"})
        of = await making
        turn = await agent.prompted(of, f"my password is {secret}")
        if version == 2:
            agent.state(of, "running")
        agent.says(of, f"I see {secret}", messageId="a")
        agent.update(of, "tool_call_update", toolCallId="t", rawInput={"key": secret}, title=secret)
        agent.update(of, "agent_message_chunk", messageId="a", content={"type": "text", "text": [secret]})
        agent.update(of, "_strange", secret=secret)
        agent.send(method="_strange", params={"secret": secret})
        agent.ask("_strange", secret=secret)
        await agent.settled(of)
        if version == 2:
            agent.state(of, "idle", stopReason="error", error={"code": -1, "message": secret})
        else:
            agent.refuse(await agent.request("session/prompt"), -32603, secret)
        assert (await turn.drained()).stop_reason == "error"
    assert secret not in caplog.text
