"""Sections 4 and 4.1 as they bind a client: making, reopening, listing and ending sessions."""

from __future__ import annotations

import os
from typing import Any

import pytest

from antiphon.client import TurnEnd
from antiphon.errors import AntiphonError, CallFailed, LocalError
from antiphon.schema import v2
from tests.requirements.agent_by_hand import (
    ALL_V1,
    ALL_V2,
    opened,
    session,
    story,
    text,
    whole,
)
from tests.requirements.marks import requirement

END = TurnEnd(stop_reason=v2.StopReason.END_TURN)
STDIO = v2.McpServerStdio(
    name="files", command="/bin/files", args=["-v"], env=[v2.EnvVariable(name="A", value="1")]
)
HTTP = v2.McpServerHttp(name="web", url="https://mcp.test/", headers=[v2.HttpHeader(name="X-A", value="1")])
WIRE_STDIO_V1 = {
    "name": "files",
    "command": "/bin/files",
    "args": ["-v"],
    "env": [{"name": "A", "value": "1"}],
}
WIRE_HTTP = {
    "type": "http",
    "name": "web",
    "url": "https://mcp.test/",
    "headers": [{"name": "X-A", "value": "1"}],
}


def without_empty_servers(params: dict[str, Any]) -> dict[str, Any]:
    """In v2 no servers and an empty list of them are the same (SESS-02)."""
    return {key: value for key, value in params.items() if (key, value) != ("mcpServers", [])}


# --- session/new -----------------------------------------------------------------------------------


@requirement("SESS-01")
async def test_a_new_session_of_v1_says_its_folder_and_its_servers_always() -> None:
    async with opened(1) as (client, agent):
        await agent.new_session(client)
        making = agent.meanwhile(client.new_session("/site", additional_directories=["/a", "/b"]))
        agent.answer(await agent.request("session/new"), {"sessionId": "2"})
        await making
        assert agent.sent("session/new") == [
            {"cwd": "/site", "mcpServers": []},
            {"cwd": "/site", "mcpServers": [], "additionalDirectories": ["/a", "/b"]},
        ]


@requirement("SESS-02")
async def test_a_new_session_of_v2_says_its_folder_and_what_else_was_given() -> None:
    async with opened(2) as (client, agent):
        await agent.new_session(client)
        making = agent.meanwhile(client.new_session("/site", additional_directories=["/a"]))
        agent.answer(await agent.request("session/new"), {"sessionId": "2"})
        await making
        assert [without_empty_servers(params) for params in agent.sent("session/new")] == [
            {"cwd": "/site"},
            {"cwd": "/site", "additionalDirectories": ["/a"]},
        ]


@requirement("SESS-04", "RPC-43")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_folder_is_sent_as_an_absolute_path(version: int) -> None:
    async with opened(version) as (client, agent):
        for cwd in (None, "src", "/site/../tmp", os.curdir):
            agent.meanwhile(client.new_session(cwd, additional_directories=["lib"]))
            request = await agent.request("session/new")
            folders = [request["params"]["cwd"], *request["params"]["additionalDirectories"]]
            assert all(os.path.isabs(folder) for folder in folders), folders
        first = [params["cwd"] for params in agent.sent("session/new")]
        assert first == [os.getcwd(), f"{os.getcwd()}/src", "/tmp", os.getcwd()]


@requirement("SESS-09")
@pytest.mark.parametrize("version", [1, 2])
async def test_additional_directories_are_refused_where_they_are_not_offered(version: int) -> None:
    async with opened(version, {} if version == 1 else {"session": {}}) as (client, agent):
        with pytest.raises(LocalError, match="additional directories"):
            await client.new_session("/site", additional_directories=["/a"])
        of = await agent.new_session(client)
        await agent.settled(of)
        assert [without_empty_servers(params) for params in agent.sent("session/new")] == [{"cwd": "/site"}]


@requirement("SESS-07", "SESS-08")
@pytest.mark.parametrize("told", ["before the answer", "behind the answer", "both"])
async def test_what_is_told_around_the_answer_is_kept_and_no_state_is_reset(
    told: str,
) -> None:
    async with opened(2) as (client, agent):
        making = agent.meanwhile(client.new_session("/site"))
        request = await agent.request("session/new")
        if told != "behind the answer":
            agent.says("s", "Welcome. ", messageId="a")
            agent.state("s", "running")
            agent.update("s", "session_info_update", title="Early")
        agent.answer(request, {"sessionId": "s"})
        if told != "before the answer":
            agent.says("s", "Hello.", messageId="a")
            agent.state("s", "running")
        of = await making
        await agent.settled(of)
        words = {"before the answer": "Welcome. ", "behind the answer": "Hello.", "both": "Welcome. Hello."}
        assert story(of) == [("agent", "a", words[told])]
        assert of.state == "running"
        assert of.title == (None if told == "behind the answer" else "Early")
        assert of.turn is not None, "the agent opened it by itself"
        agent.state(of, "idle", stopReason="end_turn")
        assert await of.turn.drained() == END


@requirement("SESS-07")
async def test_a_new_session_is_idle_until_it_is_told_otherwise() -> None:
    async with session() as (of, agent):
        assert of.state == "idle"
        agent.says(of, "Hello.", messageId="a")
        agent.update(of, "tool_call_update", toolCallId="t", status="in_progress")
        await agent.settled(of)
        assert (of.state, of.turn) == ("idle", None), "no other update is a state"


@requirement("SESS-08")
async def test_early_updates_wait_for_the_session_they_name() -> None:
    async with opened(2) as (client, agent):
        one, two = agent.meanwhile(client.new_session("/1")), agent.meanwhile(client.new_session("/2"))
        requests = [await agent.request("session/new"), await agent.request("session/new")]
        agent.says("second", "Two", messageId="a")
        agent.says("first", "One", messageId="a")
        agent.says("second", "!", messageId="a")
        agent.says("nobody's", "?", messageId="a")
        agent.answer(requests[1], {"sessionId": "second"})
        agent.answer(requests[0], {"sessionId": "first"})
        first, second = await one, await two
        assert (first.id, first.cwd, story(first)) == ("first", "/1", [("agent", "a", "One")])
        assert (second.id, second.cwd, story(second)) == ("second", "/2", [("agent", "a", "Two!")])
        assert client.sessions == [second, first]


@requirement("SESS-08")
async def test_the_early_updates_of_v1_are_kept_too() -> None:
    async with opened(1) as (client, agent):
        making = agent.meanwhile(client.new_session("/site"))
        request = await agent.request("session/new")
        command = {"name": "plan", "description": "Plan it"}
        agent.update("s", "available_commands_update", availableCommands=[command])
        agent.answer(request, {"sessionId": "s"})
        of = await making
        assert of.commands == [v2.Command(name="plan", description="Plan it")]


# --- session/load and session/resume ---------------------------------------------------------------


@requirement("SESS-12")
async def test_a_v1_session_is_loaded_only_where_offered_and_its_history_is_there_at_once() -> None:
    async with opened(1) as (client, agent):
        loading = agent.meanwhile(client.load_session("old", "/there"))
        request = await agent.request("session/load")
        assert request["params"] == {"sessionId": "old", "cwd": "/there", "mcpServers": []}
        agent.update("old", "user_message_chunk", content=text("hi"))
        agent.update("old", "agent_message_chunk", content=text("Hello."))
        agent.answer(request, None)  # as the documentation shows it
        of = await loading
        assert [(role, words) for role, _, words in story(of)] == [("user", "hi"), ("agent", "Hello.")]
        assert of.state == "idle"


@requirement("SESS-12", "SESS-14")
async def test_an_agent_of_v1_that_offers_neither_is_asked_for_neither() -> None:
    async with session(1, {"loadSession": False, "sessionCapabilities": {"resume": None}}) as (of, agent):
        with pytest.raises(LocalError, match="load"):
            await of.client.load_session("old", "/there")
        with pytest.raises(LocalError, match="resume"):
            await of.client.resume_session("old", "/there")
        await agent.settled(of)
        assert agent.methods() == ["session/new"]
        assert of.client.sessions == [of]


@requirement("SESS-14")
@pytest.mark.parametrize(
    ("able", "method"),
    [
        ({"sessionCapabilities": {"resume": {}}}, "session/resume"),
        ({"loadSession": True, "sessionCapabilities": {"resume": {}}}, "session/resume"),
        ({"loadSession": True}, "session/load"),
    ],
)
async def test_a_v1_session_is_resumed_only_where_that_is_offered(able: dict[str, Any], method: str) -> None:
    async with opened(1, able) as (client, agent):
        resuming = agent.meanwhile(client.resume_session("old", "/there"))
        request = await agent.request(method)
        assert without_empty_servers(request["params"]) == {"sessionId": "old", "cwd": "/there"}
        assert method == "session/resume" or "mcpServers" in request["params"]
        agent.answer(request, {})
        assert (await resuming).id == "old"
        assert agent.methods() == [method]


@requirement("SESS-14")
async def test_a_resume_that_was_offered_and_is_not_there_is_a_load() -> None:
    async with opened(1, {"loadSession": True, "sessionCapabilities": {"resume": {}}}) as (client, agent):
        resuming = agent.meanwhile(client.resume_session("old", "/there"))
        agent.refuse(await agent.request("session/resume"), -32601, "Method not found")
        request = await agent.request("session/load")
        assert request["params"]["cwd"] == "/there"
        agent.says("old", "Before.")
        agent.answer(request, {})
        assert [message.text for message in (await resuming).messages] == ["Before."]
        agent.meanwhile(client.resume_session("old"))
        await agent.request("session/load")
        assert agent.methods() == ["session/resume", "session/load", "session/load"], "it is asked once"


@requirement("SESS-14")
@pytest.mark.parametrize(
    ("version", "able", "code"),
    [
        (1, {"sessionCapabilities": {"resume": {}}}, -32601),
        (1, {"loadSession": True, "sessionCapabilities": {"resume": {}}}, -32602),
        (2, None, -32601),
    ],
)
async def test_where_it_cannot_be_loaded_or_another_error_came_that_is_told(
    version: int, able: Any, code: int
) -> None:
    async with opened(version, able) as (client, agent):
        resuming = agent.meanwhile(client.resume_session("old", "/there"))
        agent.refuse(await agent.request("session/resume"), code)
        with pytest.raises(CallFailed):
            await resuming
        assert client.sessions == []
        assert agent.methods() == ["session/resume"]


@requirement("SESS-27")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("known", ["made", "opened", "listed"])
async def test_the_folder_of_a_session_that_is_known_need_not_be_given(version: int, known: str) -> None:
    async with opened(version) as (client, agent):
        if known == "listed":
            listing = agent.meanwhile(anext(client.list_sessions()))
            listed = [{"sessionId": "s", "cwd": "/site"}]
            agent.answer(await agent.request("session/list"), {"sessions": listed})
            await listing
        elif known == "opened":
            opening = agent.meanwhile(client.resume_session("s", "/site"))
            agent.answer(await agent.request("session/resume"), {})
            await opening
        else:
            of = await agent.new_session(client)
            closing = agent.meanwhile(of.close())
            agent.answer(await agent.request("session/close"), {})
            await closing
        again = agent.meanwhile(client.resume_session("s", "/elsewhere"))
        agent.refuse(await agent.request("session/resume"), -32602, "Another folder")
        with pytest.raises(CallFailed, match="Another folder"):
            await again
        agent.meanwhile(client.resume_session("s"))
        assert (await agent.request("session/resume"))["params"]["cwd"] == "/site"
        agent.meanwhile(client.load_session("s"))
        method = "session/load" if version == 1 else "session/resume"
        assert (await agent.request(method))["params"]["cwd"] == "/site"
        attached = client.attach("s")
        agent.meanwhile(attached.__aenter__())
        assert (await agent.request(method))["params"]["cwd"] == "/site"


@requirement("SESS-27")
async def test_a_session_that_was_deleted_is_not_known() -> None:
    async with session() as (of, agent):
        deleting = agent.meanwhile(of.client.delete_session("s"))
        agent.answer(await agent.request("session/delete"), {})
        await deleting
        agent.meanwhile(of.client.resume_session("s"))
        assert (await agent.request("session/resume"))["params"]["cwd"] == os.getcwd()


async def test_a_session_of_v2_is_resumed_in_the_folder_it_has() -> None:
    async with opened(2) as (client, agent):
        loading = agent.meanwhile(client.load_session("old", "/there"))
        request = await agent.request("session/resume")
        params = without_empty_servers(request["params"])
        assert params == {"sessionId": "old", "cwd": "/there", "replayFrom": {"type": "start"}}
        agent.state("old", "idle")
        agent.answer(request, {})
        of = await loading
        assert of.cwd == "/there"
        resuming = agent.meanwhile(client.resume_session("old", of.cwd))
        request = await agent.request("session/resume")
        assert without_empty_servers(request["params"]) == {"sessionId": "old", "cwd": "/there"}
        agent.state("old", "running")
        agent.answer(request, {})
        again = await resuming
        assert (again.cwd, again.state) == ("/there", "running")


async def test_a_refused_folder_is_told_and_leaves_the_session_as_it_was() -> None:
    async with session(2) as (of, agent):
        resuming = agent.meanwhile(of.client.resume_session("s", "/elsewhere"))
        agent.refuse(await agent.request("session/resume"), -32602, "Another folder")
        with pytest.raises(CallFailed, match="Another folder"):
            await resuming
        assert of.client.sessions == [of]
        agent.says(of, "Still here.", messageId="a")
        await agent.settled(of)
        assert story(of) == [("agent", "a", "Still here.")]


@requirement("MSG-20")
async def test_meta_is_patched_by_its_keys_in_a_replay_too() -> None:
    async with opened(2) as (client, agent):
        loading = agent.meanwhile(client.load_session("old", "/there"))
        request = await agent.request("session/resume")
        agent.update("old", "agent_message", messageId="a", content=[], _meta={"x": 1, "y": {"deep": 1}})
        agent.update("old", "agent_message_chunk", messageId="a", content=text("Hi"), _meta={"chunk": 1})
        agent.update("old", "agent_message", messageId="a", _meta={"x": None, "y": {"other": 2}, "z": 3})
        agent.update("old", "agent_message", messageId="a", _meta={})
        agent.update("old", "tool_call_update", toolCallId="t", _meta={"x": 1})
        agent.update("old", "tool_call_update", toolCallId="t", _meta=None)
        agent.state("old", "idle")
        agent.answer(request, {})
        of = await loading
        assert whole(of.messages[0]) == {
            "sessionUpdate": "agent_message",
            "messageId": "a",
            "content": [text("Hi")],
            "_meta": {"y": {"other": 2}, "z": 3},
        }
        assert of.tool_calls[0].meta == {}


# --- MCP servers -----------------------------------------------------------------------------------


@requirement("MCPCFG-02")
@pytest.mark.parametrize("offers", ["http", "sse", "none"])
async def test_in_v1_an_http_server_is_named_only_where_that_is_offered(offers: str) -> None:
    able = {**ALL_V1, "mcpCapabilities": {offers: True}}
    async with opened(1, able) as (client, agent):
        if offers == "http":
            making = agent.meanwhile(client.new_session("/site", mcp_servers=[STDIO, HTTP]))
            agent.answer(await agent.request("session/new"), {"sessionId": "s"})
            await making
            expected = [{"cwd": "/site", "mcpServers": [WIRE_STDIO_V1, WIRE_HTTP]}]
        else:
            with pytest.raises(AntiphonError, match="http"):
                await client.new_session("/site", mcp_servers=[STDIO, HTTP])
            of = await agent.new_session(client)
            await agent.settled(of)
            expected = [{"cwd": "/site", "mcpServers": []}]
        assert agent.sent("session/new") == expected


@requirement("MCPCFG-04")
async def test_in_v2_every_server_says_its_type() -> None:
    async with opened(2) as (client, agent):
        making = agent.meanwhile(client.new_session("/site", mcp_servers=[STDIO, HTTP]))
        agent.answer(await agent.request("session/new"), {"sessionId": "s"})
        await making
        servers = [{"type": "stdio", **WIRE_STDIO_V1}, WIRE_HTTP]
        assert agent.sent("session/new") == [{"cwd": "/site", "mcpServers": servers}]


@requirement("MCPCFG-04")
@pytest.mark.parametrize("offers", ["http", "stdio", None])
@pytest.mark.parametrize(("server", "kind"), [(STDIO, "stdio"), (HTTP, "http")])
async def test_in_v2_a_server_is_named_only_where_its_type_is_offered(
    offers: str | None, server: Any, kind: str
) -> None:
    able = {"session": {**ALL_V2["session"], "mcp": None if offers is None else {offers: {}}}}
    async with opened(2, able) as (client, agent):
        making = agent.meanwhile(client.new_session("/site", mcp_servers=[server]))
        if offers == kind:
            agent.answer(await agent.request("session/new"), {"sessionId": "s"})
            await making
        else:
            with pytest.raises(AntiphonError, match=kind):
                await making
            assert agent.methods() == []


@requirement("MCPCFG-08")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("command", ["files", "./files", ""])
async def test_a_command_that_is_no_absolute_path_is_not_sent(version: int, command: str) -> None:
    server = v2.McpServerStdio(name="files", command=command)
    async with opened(version) as (client, agent):
        making = agent.meanwhile(client.new_session("/site", mcp_servers=[server]))
        with pytest.raises(AntiphonError, match="absolute path"):
            await making
        assert agent.methods() == []


@requirement("MCPCFG-07")
async def test_a_variable_is_named_once() -> None:
    twice = [v2.EnvVariable(name="A", value="1"), v2.EnvVariable(name="A", value="2")]
    server = v2.McpServerStdio(name="files", command="/bin/files", env=twice)
    async with opened() as (client, agent):
        making = agent.meanwhile(client.new_session("/site", mcp_servers=[server]))
        with pytest.raises(AntiphonError, match="files"):
            await making
        assert agent.methods() == []
