"""What an agent asks of clients reaches those of its own session that may act there, and nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.hub.access.tokens import revoke_token
from tests.agent.talk import Talk
from tests.hub.doors import DEADLINE, Doors, doors
from tests.hub.parrots import begin, ended, parrot, prompt, said
from tests.hub.test_mcp import ABLE, BETWEEN

OFFERS = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
}
SERVER = {"type": "acp", "name": "theirs", "serverId": "srv-b"}
MCP = {"ask": ["mcp/message", {"serverId": "srv-b", "requestId": "r", **BETWEEN}]}
PERMISSION = {
    "sessionId": "$session",
    "toolCall": {"toolCallId": "t", "title": "Touch"},
    "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
}
FORM = {
    "sessionId": "$session",
    "mode": "form",
    "message": "Your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
ASKED: dict[str, tuple[Any, Any]] = {
    "mcp/message": (MCP["ask"][1], {"result": 1}),
    "fs/read_text_file": ({"sessionId": "$session", "path": "/f"}, {"content": "text"}),
    "fs/write_text_file": ({"sessionId": "$session", "path": "/f", "content": "x"}, {}),
    "terminal/create": ({"sessionId": "$session", "command": "make"}, {"terminalId": "1"}),
    "_example.com/named": ({"sessionId": "$session"}, {"sessionId": "$session"}),
    "_example.com/unnamed": ({}, {}),
    "session/request_permission": (PERMISSION, {"outcome": {"outcome": "selected", "optionId": "yes"}}),
    "elicitation/create": (FORM, {"action": "accept", "content": {"name": "bob"}}),
}
"""What an agent may ask: its params, and an answer of a client."""


def requests(talk: Talk) -> list[str]:
    return [frame["method"] for frame in talk.seen if "id" in frame and "method" in frame]


async def attach(talk: Talk, session: str, *servers: Any) -> None:
    await talk.call("join", "session/resume", sessionId=session, cwd="/", mcpServers=list(servers))


async def settled(*talks: Talk) -> None:
    """Everything that was sent to these clients until now has been received."""
    for number, talk in enumerate(talks):
        await talk.call(f"settled-{number}-{len(talk.seen)}", "session/list")


async def two_sessions(door: Doors, *, servers: Any = (SERVER,)) -> tuple[str, str]:
    """Two sessions that an owner has made, the second with MCP servers of its own, and has left again."""
    async with door.talk(version=1) as owner:
        made = [
            (await owner.call(id, "session/new", cwd="/", mcpServers=list(given)))["sessionId"]
            for id, given in (("a", ()), ("b", servers))
        ]
        for session in made:
            await owner.call(f"leave {session}", "_antiphon/detach", sessionId=session)
    return made[0], made[1]


@pytest.mark.parametrize("share", [False, True], ids=["apart", "shared"])
async def test_only_clients_of_the_session_that_may_act_in_it_are_asked(tmp_path: Path, share: bool) -> None:
    agents = {"parrot": parrot(1, capabilities=ABLE[1])}
    offers = {"clientCapabilities": OFFERS}
    async with asyncio.timeout(DEADLINE), doors(tmp_path, agents=agents, share=share) as door:
        a, b = await two_sessions(door)
        async with (
            door.talk(door.token("bob", "controller", sessions=[b]), 1, **offers) as bob,
            door.talk(door.token("alice", "controller", sessions=[a]), 1, **offers) as alice,
            door.talk(door.token("eve", "observer"), 1, **offers) as eve,
            door.talk(version=1, **offers) as owner,  # it may do everything, and is not attached
        ):
            await attach(bob, b, SERVER)
            await attach(alice, a, SERVER)
            await attach(eve, b, SERVER)
            for method, (params, answer) in ASKED.items():
                begin(bob, b, {"ask": [method, params]}, id=method)
                asked = await bob.request(method)
                answer = {"sessionId": b} if "sessionId" in answer else answer
                bob.send(id=asked["id"], result=answer)
                if share and method == "_example.com/unnamed":
                    # The same process works for both sessions, and does not say which one it means.
                    other = await alice.request(method)
                    alice.send(id=other["id"], error={"code": -32601, "message": "no"})
                await ended(bob, method)
            await settled(alice, eve, owner)
            assert [method for method in requests(alice) if method != "_example.com/unnamed"] == []
            assert requests(eve) == requests(owner) == []


@pytest.mark.parametrize("share", [False, True], ids=["apart", "shared"])
async def test_an_id_of_another_session_s_mcp_server_gives_nothing_when_its_client_has_left(
    tmp_path: Path, share: bool
) -> None:
    agents = {"parrot": parrot(1, capabilities=ABLE[1])}
    async with asyncio.timeout(DEADLINE), doors(tmp_path, agents=agents, share=share) as door:
        a, b = await two_sessions(door)
        async with (
            door.talk(door.token("alice", "controller", sessions=[a]), 1) as alice,
            door.talk(door.token("bob", "controller", sessions=[b]), 1) as bob,
        ):
            await attach(bob, b)
            await attach(alice, a, SERVER)
            await prompt(bob, b, MCP)
            # Nor does the agent of the other session reach it through who has declared it.
            await prompt(alice, a, {"ask": ["mcp/message", {**MCP["ask"][1], "serverId": "srv-a"}]})
            assert [answer["code"] for answer in (*said(bob), *said(alice))] == [-33001, -33001]
            assert requests(alice) == requests(bob) == []


async def test_one_id_in_two_sessions_of_one_process_is_told_apart(tmp_path: Path) -> None:
    agents = {"parrot": parrot(1, capabilities=ABLE[1])}
    async with doors(tmp_path, agents=agents, share=True) as door:
        secret = door.token("x", "controller")
        async with asyncio.timeout(DEADLINE), door.talk(version=1) as first, door.talk(secret, 1) as second:
            made = [
                (await talk.call("n", "session/new", cwd="/", mcpServers=[SERVER]))["sessionId"]
                for talk in (first, second)
            ]
            heard = (await second.call("h", "_parrot/heard", sessionId=made[1]))["heard"]
            ids = [params["mcpServers"][0]["serverId"] for method, params in heard if method == "session/new"]
            assert ids[0] == "srv-b"
            assert len({*ids}) == 2
            for talk, session, told in zip((first, second), made, ids, strict=True):
                begin(talk, session, {"ask": ["mcp/message", {**MCP["ask"][1], "serverId": told}]})
                asked = await talk.request("mcp/message")
                assert asked["params"]["serverId"] == "srv-b"
                talk.send(id=asked["id"], result={"result": session})
                await ended(talk)
                assert said(talk) == [{"result": session}]


async def test_the_token_that_declared_a_server_first_keeps_it(tmp_path: Path) -> None:
    agents = {"parrot": parrot(1, capabilities=ABLE[1])}
    async with asyncio.timeout(DEADLINE), doors(tmp_path, agents=agents) as door:
        ann, bob = door.token("ann", "controller"), door.token("bob", "controller")
        async with door.talk(ann, 1) as old, door.talk(bob, 1) as other, door.talk(ann, 1) as back:
            session = (await old.call("n", "session/new", cwd="/", mcpServers=[SERVER]))["sessionId"]
            await attach(other, session, SERVER)
            await attach(back, session, SERVER)  # the same client again, before its first link is found dead
            begin(other, session, MCP)
            asked = await back.request("mcp/message")
            back.send(id=asked["id"], result={"result": "back"})
            await ended(other)
            await settled(old, other)
            assert requests(old) == requests(other) == []


async def test_mcp_notifications_of_a_token_for_one_session_reach_its_agent(tmp_path: Path) -> None:
    agents = {"parrot": parrot(1, capabilities=ABLE[1])}
    async with asyncio.timeout(DEADLINE), doors(tmp_path, agents=agents) as door:
        _, b = await two_sessions(door)
        async with door.talk(door.token("bob", "controller", sessions=[b]), 1) as bob:
            await attach(bob, b, SERVER)
            begin(bob, b, MCP)
            asked = await bob.request("mcp/message")
            told = {"serverId": "srv-b", "requestId": "r", "method": "notifications/progress", "params": {}}
            bob.send(method="mcp/message", params=told)
            bob.send(id=asked["id"], result={"result": None})
            await ended(bob)
            assert not door.audit(method="mcp/message", outcome="forbidden")


@pytest.mark.parametrize(
    "method", ["mcp/message", "fs/read_text_file", "terminal/create", "_example.com/named"]
)
async def test_an_answer_of_a_token_that_was_revoked_meanwhile_is_not_heard(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "antiphon.hub.access.admission.SWEEP", 60.0
    )  # its link stays open: the answer arrives
    agents = {"parrot": parrot(1, capabilities=ABLE[1])}
    async with asyncio.timeout(DEADLINE), doors(tmp_path, agents=agents, files="editor") as door:
        _, b = await two_sessions(door)
        async with (
            door.talk(version=1) as owner,
            door.talk(door.token("bob", "controller"), 1, clientCapabilities=OFFERS) as bob,
        ):
            await attach(bob, b, SERVER)
            await attach(owner, b)
            params, answer = ASKED[method]
            begin(owner, b, {"ask": [method, params]})
            asked = await bob.request(method)
            if method == "_example.com/named":
                other = await owner.request(method)
                owner.send(id=other["id"], error={"code": -32601, "message": "no"})
            revoke_token(door.tokens, "bob")
            bob.send(id=asked["id"], result=answer)
            await ended(owner)
            (heard,) = said(owner)
            assert "code" in heard or method == "terminal/create", heard
            assert heard != answer


async def test_operation_ids_of_one_session_say_nothing_in_another(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        a, b = [
            (await owner.call(id, "session/new", cwd="/", mcpServers=[]))["sessionId"] for id in ("a", "b")
        ]
        async with (
            door.talk(door.token("alice", "controller", sessions=[a])) as alice,
            door.talk(door.token("bob", "controller", sessions=[b])) as bob,
        ):
            for talk, session in ((alice, a), (bob, b)):
                await attach(talk, session)
                talk.prompt("p", session, f"from {session}", operationId="same")
                await talk.update("state_update", state="idle")
                assert f"heard from {session}" in str(talk.updates())
            # A cancel names a request of its own connection, and nobody else's.
            bob.prompt("same id", b, "wait")
            await bob.update("state_update", state="running")
            alice.send(method="$/cancel_request", params={"requestId": "same id"})
            alice.send(method="session/cancel", params={"sessionId": b})
            await settled(alice)
            assert (await bob.call("s", "session/status", sessionId=b))["state"]["state"] == "running"
            bob.send(method="session/cancel", params={"sessionId": b})
            await bob.update("state_update", state="idle")
