"""Clients of a hub that is killed, or whose links to it are cut, come back by themselves and miss nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import ClientTurn, LinkState, Permission, Permissions, Reconnect, connect
from antiphon.errors import CallFailed, LinkLost
from antiphon.hub import Access, Hub
from antiphon.hub.access.tokens import create_token, revoke_token
from antiphon.server.method import Role
from tests.client.cutting import becomes, way_to
from tests.hub.running import AGENT, DEADLINE, served
from tests.hub.test_sharing import VERSIONS, heard, settled, told

SOON = Reconnect(first=0.01, longest=0.1, patience=DEADLINE)
CLIENTS = pytest.mark.parametrize(
    "asked", [{"version": 1}, {"version": 2}, {"version": "v2-proposed"}], ids=["v1", "v2", "proposed"]
)


@VERSIONS
@CLIENTS
async def test_a_hub_that_is_killed_and_comes_back_has_its_clients_again(
    tmp_path: Path, version: str, asked: dict[str, Any]
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(2 * DEADLINE), hub.client(reconnect=SOON, **asked) as client:
            session = await client.new_session("/")
            await (await session.prompt("say before")).drained()
            turn = await session.prompt("wait")
            await heard(session, "waiting")
            hub.kill()
            await becomes(client, LinkState.RECONNECTING)
            meanwhile = asyncio.ensure_future(session.prompt("say later"))
            await asyncio.to_thread(hub.restart, port=hub.port)
            end = await turn.drained()
            assert end.cut is None  # the hub says how it ended
            assert end.error is not None
            assert end.error.data == {"reason": "interrupted", "cause": "hub_lost"}
            assert (await (await meanwhile).drained()).stop_reason == "end_turn"
            said = ["say before", "heard say before", "wait", "waiting", "say later", "heard say later"]
            assert sorted(text for _, text in told(session)) == sorted(said)
            assert [text for kind, text in told(session) if kind == "agent"] == said[1::2]
            assert client.link.state is LinkState.CONNECTED
        assert (tmp_path / "agent.log").read_text() == "say before\nwait\nsay later\n"


@CLIENTS
async def test_a_hub_is_found_at_another_port(tmp_path: Path, asked: dict[str, Any]) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        finding = Reconnect(first=0.01, longest=0.1, find=lambda: (hub.acp, hub.token))
        async with asyncio.timeout(2 * DEADLINE), hub.client(reconnect=finding, **asked) as client:
            session = await client.new_session("/")
            hub.kill()
            before = hub.acp
            await asyncio.to_thread(hub.restart)
            assert hub.acp != before
            await (await session.prompt("say again")).drained()
            assert told(session) == [("user", "say again"), ("agent", "heard say again")]


async def test_a_hub_that_is_gone_for_good_is_given_up(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.client(reconnect=Reconnect(patience=0.3)) as client:
            session = await client.new_session("/")
            turn = await session.prompt("wait")
            hub.kill()
            assert "gave up" in ((await turn.drained()).cut or "")
            with pytest.raises(LinkLost, match="gave up"):
                await session.prompt("say more")


@CLIENTS
async def test_a_question_outlives_the_link_of_who_was_asked(asked: dict[str, Any]) -> None:
    hub, asks = Hub({"stand-in": AGENT}), 0

    async def ask(permission: Permission) -> Any:
        nonlocal asks
        asks += 1
        if asks == 1:
            way.cut()
            await asyncio.Event().wait()
        return permission.allow()

    answers = Permissions(ask=ask)
    async with (
        asyncio.timeout(DEADLINE),
        hub.listening(),
        way_to(f"ws://127.0.0.1:{hub.port}/acp") as way,
        connect(way.address, token=hub.token, reconnect=SOON, answers=answers, **asked) as client,
    ):
        session = await client.new_session("/")
        assert (await (await session.prompt("ask")).drained()).stop_reason == "end_turn"
        await settled(session, "allowed: True")
        assert asks == 2


@CLIENTS
async def test_what_others_did_meanwhile_is_told_once(asked: dict[str, Any]) -> None:
    hub = Hub({"stand-in": AGENT})
    async with asyncio.timeout(DEADLINE), hub.listening():
        address = f"ws://127.0.0.1:{hub.port}/acp"
        async with (
            way_to(address) as way,
            connect(way.address, token=hub.token, reconnect=SOON, **asked) as client,
            connect(address, token=hub.token) as other,
        ):
            session = await client.new_session("/")
            await (await session.prompt("say one")).drained()
            theirs = await other.load_session(session.id, "/")
            way.closed = True
            way.cut()
            for text in ("stream 700", "say two"):
                await (await theirs.prompt(text)).drained()
            way.closed = False
            await settled(session, "heard say two")
            assert told(session) == told(theirs)
            assert [message.text for message in session.messages].count("say two") == 1


@CLIENTS
async def test_a_queue_that_was_emptied_meanwhile_is_shown_empty(asked: dict[str, Any]) -> None:
    hub = Hub({"stand-in": AGENT})
    async with asyncio.timeout(DEADLINE), hub.listening():
        address = f"ws://127.0.0.1:{hub.port}/acp"
        async with (
            way_to(address) as way,
            connect(way.address, token=hub.token, reconnect=SOON, **asked) as client,
            connect(address, token=hub.token) as other,
        ):
            session = await client.new_session("/")
            events = session.events()
            theirs = await other.load_session(session.id, "/")
            await theirs.prompt("wait")
            queued = await theirs.queue.add("say later")
            while not session.queue.entries:
                await anext(events)
            way.closed = True
            way.cut()
            await queued.withdraw()
            way.closed = False
            while session.queue.entries:
                await anext(events)


async def test_a_token_that_counts_no_more_ends_it(tmp_path: Path) -> None:
    hub = Hub({"stand-in": AGENT}, access=Access(tokens=tmp_path / "tokens.json"))
    token = create_token(tmp_path / "tokens.json", "guest", Role.CONTROLLER)
    async with (
        asyncio.timeout(DEADLINE),
        hub.listening(),
        way_to(f"ws://127.0.0.1:{hub.port}/acp") as way,
        connect(way.address, token=token, reconnect=SOON) as client,
    ):
        await client.new_session("/")
        revoke_token(tmp_path / "tokens.json", "guest")
        way.cut()
        await becomes(client, LinkState.GONE)
        assert "401" in client.link.reason
        with pytest.raises(LinkLost, match="401"):
            await client.new_session("/")
        assert way.links == 2


async def test_a_prompt_that_was_on_its_way_to_the_agent_is_not_repeated(tmp_path: Path) -> None:
    """What the hub had sent when it died is rejected: nobody knows whether it was read (invariant 6)."""
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, agent=agent) as hub:
        async with asyncio.timeout(2 * DEADLINE), hub.client(reconnect=SOON) as client:
            session = await client.new_session("/")
            for number in range(4):
                prompting = asyncio.ensure_future(session.prompt(f"say {number}"))
                await asyncio.sleep(0.002 * number)
                hub.kill()
                await asyncio.to_thread(hub.restart, port=hub.port)
                refused = await asyncio.gather(prompting, return_exceptions=True)
                if isinstance(refused[0], ClientTurn):
                    await refused[0].drained()
                else:
                    assert isinstance(refused[0], CallFailed)
                    assert refused[0].error.data == {"reason": "interrupted"}
            taken = (tmp_path / "agent.log").read_text().splitlines()
            assert len(set(taken)) == len(taken)
