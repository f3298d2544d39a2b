"""Roles: every method of both versions, and of our own, for every role, over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import Forbidden
from antiphon.schema.methods import Kind, Sender, methods
from antiphon.server.method import RANKS, Role
from antiphon.server.methods.table import CLOSE_FOR_ALL, EXTENSION, METHODS, method_of
from tests.hub.doors import DEADLINE, doors, is_open, refused

OURS = (
    "_antiphon/add_agent",
    "_antiphon/annotate",
    "_antiphon/attach",
    "_antiphon/answer",
    "_antiphon/find_files",
    "_antiphon/inject",
    "_antiphon/journal",
    "_antiphon/link",
    "_antiphon/hubs",
    "_antiphon/list_folders",
    "_antiphon/list_agents",
    "_antiphon/list_inject",
    "_antiphon/move_inject",
    "_antiphon/push_key",
    "_antiphon/push_subscribe",
    "_antiphon/push_unsubscribe",
    "_antiphon/remove_annotation",
    "_antiphon/replace_inject",
    "_antiphon/resume_queue",
    "_antiphon/revoke_inject",
    "_antiphon/search_sessions",
    "_antiphon/timeline",
    "_antiphon/transcript",
    "_example.com/echo",
    "_antiphon/detach",
)
NAMES_NO_SESSION = (
    "session/list",
    "session/new",
    "auth/status",
    "_antiphon/push_key",
    "_antiphon/push_subscribe",
    "_antiphon/push_unsubscribe",
    "_antiphon/search_sessions",
)
TEXT = [{"type": "text", "text": "hello"}]
PARAMS: dict[str, dict[str, Any]] = {
    "_antiphon/add_agent": {"name": "none"},
    "_antiphon/annotate": {"messageId": "none", "kind": "reaction", "value": "+1"},
    "_antiphon/remove_annotation": {"annotationId": "none"},
    "_antiphon/search_sessions": {"query": "hello"},
    "_antiphon/answer": {"questionId": "none", "outcome": {"outcome": "cancelled"}},
    "_antiphon/inject": {"content": TEXT, "mode": "queue"},
    "_antiphon/list_folders": {"path": "/"},
    "_antiphon/move_inject": {"messageId": "none"},
    "_antiphon/replace_inject": {"messageId": "none", "content": TEXT},
    "_antiphon/revoke_inject": {"messageId": "none"},
    "_antiphon/push_subscribe": {"endpoint": "https://push.example/1", "keys": {"p256dh": "", "auth": ""}},
    "_antiphon/push_unsubscribe": {"endpoint": "https://push.example/1"},
    "auth/login": {"methodId": "none"},
    "authenticate": {"methodId": "none"},
    "providers/disable": {"providerId": "none"},
    "providers/set": {"providerId": "none", "apiType": "openai", "baseUrl": "http://127.0.0.1:1"},
    "proxy/initialize": {"protocolVersion": 1, "info": {"name": "p", "version": "1"}},
    "proxy/successor": {"method": "session/new"},
    "session/fork": {"cwd": "/"},
    "session/load": {"cwd": "/", "mcpServers": []},
    "session/new": {"cwd": "/", "mcpServers": []},
    "session/prompt": {"prompt": TEXT},
    "session/resume": {"cwd": "/", "mcpServers": []},
    "session/set_config_option": {"configId": "model", "type": "id", "value": "large"},
    "session/set_mode": {"modeId": "none"},
    "session/set_model": {"modelId": "none"},
    "session/set_title": {"title": "A title"},
    "terminal/cancel": {"terminalId": "none"},
    "tool_call/cancel": {"toolCallId": "none"},
}
NOT_SERVED = {"proxy/initialize", "proxy/successor", "providers/list", "providers/set", "providers/disable"}
LAST = ("session/archive", "session/unarchive", "session/close", CLOSE_FOR_ALL, "session/delete")


def requests(version: int) -> list[str]:
    """What a client may ask, in an order in which each can be tried; not `initialize`, which opens."""
    named = [
        method.name
        for method in methods(version)
        if method.kind is Kind.REQUEST and method.sender is not Sender.AGENT and method.name != "initialize"
    ]
    first = [method for method in named if method not in LAST]
    opening = [method for method in first if method in ("session/load", "session/resume")]
    rest = [method for method in first if method not in opening]
    return [*opening, *rest, *OURS, *(method for method in LAST if method in (*named, CLOSE_FOR_ALL))]


def test_the_table_names_every_method_of_a_client() -> None:
    known = {
        method.name for version in (1, 2) for method in methods(version) if method.sender is not Sender.AGENT
    }
    ours = {method for method in OURS if method.startswith("_antiphon/")}
    assert known | ours | {CLOSE_FOR_ALL, EXTENSION} == set(METHODS)
    assert method_of("_antiphon/unheard_of").role is method_of("unheard/of").role is Role.OWNER
    assert method_of("_example.com/any").role is Role.CONTROLLER


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("role", RANKS)
async def test_each_role_does_what_the_table_says_and_nothing_else(
    role: Role, version: int, tmp_path: Path
) -> None:
    async with doors(tmp_path) as door, door.talk() as owner:
        made = await owner.call("new", "session/new", cwd="/", mcpServers=[])
        async with door.talk(door.token("somebody", role), version) as talk:
            found = {}
            for method in requests(version):
                params = {"sessionId": made["sessionId"], **PARAMS.get(method, {})}
                if method == CLOSE_FOR_ALL:
                    params["_meta"] = {"antiphon": {"forAll": True}}
                error = await refused(talk, method, method.removesuffix(" for all"), **params)
                if method in NOT_SERVED:
                    assert error is not None
                    assert error["code"] == -32601
                    continue
                found[method] = not (error is not None and error["code"] == Forbidden.code)
                if not found[method]:
                    assert error == {"code": -32003, "message": "Forbidden", "data": {"reason": "forbidden"}}
                    assert door.audit(token="somebody", method=method, outcome="forbidden")
                elif method_of(method).is_act:
                    assert door.audit(token="somebody", method=method, outcome="allowed")
            assert found == {method: role.includes(method_of(method).role) for method in found}


@pytest.mark.parametrize("role", RANKS)
async def test_notifications_of_observers_do_not_count(role: Role, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        owner.prompt("p", session, "wait")
        await owner.update("state_update", state="running")
        async with door.talk(door.token("somebody", role)) as talk:
            await talk.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
            server = {"serverId": "s", "requestId": "r", "method": "m"}
            talk.send(method="mcp/message", params=server)
            talk.send(method="_example.com/echo", params={"sessionId": session})
            talk.send(method="session/cancel", params={"sessionId": session})
            outcome = "allowed" if role.includes(Role.CONTROLLER) else "forbidden"
            line = await door.audited(token="somebody", method="session/cancel")
            assert (line["act"], line["outcome"], line["session"]) == ("cancel", outcome, session)
            if outcome == "forbidden":
                assert door.audit(method="mcp/message", outcome="forbidden")
                assert door.audit(method="_example.com/echo", outcome="forbidden")
                assert (await owner.call("s", "session/status", sessionId=session))["state"][
                    "state"
                ] == "running"
                owner.send(method="session/cancel", params={"sessionId": session})
            await owner.update("state_update", state="idle", stopReason="cancelled")


async def test_an_observer_follows_and_is_asked_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        async with door.talk(door.token("eye", "observer")) as eye:
            await eye.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
            owner.prompt("p", session, "ask")
            asked = await owner.request("session/request_permission")
            question = asked["params"]["_meta"]["antiphon"]["questionId"]
            await eye.update("state_update", state="requires_action")
            answer = {"sessionId": session, "questionId": question, "outcome": {"outcome": "cancelled"}}
            error = await refused(eye, "a", "_antiphon/answer", **answer)
            assert error is not None
            assert error["code"] == Forbidden.code
            # An id that it could have guessed is none of a request that it was sent.
            eye.send(id=asked["id"], result={"outcome": {"outcome": "cancelled"}})
            option = asked["params"]["options"][0]["optionId"]
            owner.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": option}})
            await eye.update("state_update", state="idle")
            assert "allowed: True" in str(eye.updates())
            assert not [frame for frame in eye.seen if "id" in frame and "method" in frame]
            # Its close is its own leaving, also as the last one: the session stays open.
            await owner.call("d", "_antiphon/detach", sessionId=session)
            await eye.call("c", "session/close", sessionId=session)
            status = await owner.call("s", "session/status", sessionId=session)
            assert status["status"] == "open"


async def test_an_observer_sets_nothing_up(tmp_path: Path) -> None:
    """What it brings with a resume is not used: an MCP server is a command that would be run."""
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await owner.call("close", "session/close", sessionId=session)
        server = {"type": "stdio", "name": "evil", "command": "/bin/false", "args": [], "env": []}
        async with door.talk(door.token("eye", "observer")) as eye:
            params = {
                "sessionId": session,
                "cwd": "/",
                "mcpServers": [server],
                "additionalDirectories": ["/e"],
            }
            await eye.call("r", "session/resume", **params)
            await owner.call("a", "_antiphon/attach", sessionId=session)
            owner.prompt("p", session, "setup")
            await owner.update("state_update", state="idle")
            assert "servers [], folders []" in str(owner.updates())


@pytest.mark.parametrize("role", RANKS)
async def test_a_token_for_some_sessions_knows_of_no_other(role: Role, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        mine, other = [
            (await owner.call(id, "session/new", cwd="/", mcpServers=[]))["sessionId"] for id in ("a", "b")
        ]
        async with door.talk(door.token("guest", role, sessions=[mine])) as talk:
            listed = await talk.call("l", "session/list")
            assert [info["sessionId"] for info in listed["sessions"]] == [mine]
            await talk.call("r", "session/resume", sessionId=mine, cwd="/", mcpServers=[])
            for session in (other, "sess_that_is_not"):
                for method in requests(2):
                    if method in NOT_SERVED or method in NAMES_NO_SESSION:
                        continue
                    params = {"sessionId": session, **PARAMS.get(method, {})}
                    error = await refused(
                        talk, f"{session} {method}", method.removesuffix(" for all"), **params
                    )
                    assert error == {"code": -32003, "message": "Forbidden", "data": {"reason": "forbidden"}}
            for id, method, params in (
                ("new", "session/new", {"cwd": "/", "mcpServers": []}),
                ("fork", "session/fork", {"sessionId": mine, "cwd": "/"}),
                ("ext", "_example.com/echo", {}),
            ):
                error = await refused(talk, id, method, **params)
                assert error is not None
                assert error["code"] == Forbidden.code


async def test_an_owner_closes_for_all_and_others_only_leave(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path) as door,
        door.talk() as owner,
        door.talk(door.token("bob", "controller")) as bob,
    ):
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await bob.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
        await bob.call("c", "session/close", sessionId=session)
        assert await is_open(owner, session)
        await bob.call("r2", "session/resume", sessionId=session, cwd="/", mcpServers=[])
        for_all = {"_meta": {"antiphon": {"forAll": True}}}
        error = await refused(bob, "c2", "session/close", sessionId=session, **for_all)
        assert error is not None
        assert error["code"] == Forbidden.code
        await owner.call("c3", "session/close", sessionId=session, **for_all)
        assert not await is_open(owner, session)
        assert [line["outcome"] for line in door.audit(method=CLOSE_FOR_ALL)] == ["forbidden", "allowed"]


async def test_what_an_agent_asks_its_clients_is_not_asked_of_observers(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path) as door,
        door.talk() as owner,
        door.talk(door.token("eye", "observer")) as eye,
    ):
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await eye.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
        owner.prompt("p", session, "consult")
        asked = await owner.request("_example.com/who")
        owner.send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
        await eye.update("state_update", state="idle", stopReason="end_turn")
        assert "nobody knows" in str(eye.updates())
        assert not [frame for frame in eye.seen if "id" in frame and "method" in frame]
