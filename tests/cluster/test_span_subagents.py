"""Subagents of a session that another hub owns: clients here follow them as clients of the owner do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.agent.talk import Talk
from tests.cluster.spanning import DEADLINE, attach, begin, talk_to, two_hubs, until
from tests.cluster.test_span_status import metrics
from tests.hub.running import Served
from tests.hub.test_logins import RICH
from tests.requirements.marks import requirement
from tests.stores.nats_servers import one_server


@contextmanager
def rich_hubs(folder: Path) -> Iterator[tuple[Served, Served]]:
    with one_server(folder) as nats, two_hubs(folder, nats, agent=RICH) as (a, b):
        yield a, b


async def child_of(talk: Talk) -> str:
    """Wait until a subagent is announced that is at work, and return its id."""

    def fits(frame: dict[str, Any]) -> bool:
        update = frame.get("params", {}).get("update", {})
        return update.get("sessionUpdate") == "subagent_update" and "title" in update

    return str((await talk.until(fits))["params"]["update"]["sessionId"])


async def said(talk: Talk, session_id: str, text: str) -> None:
    await seen(talk, session_id, lambda update: text in str(update.get("content")))


async def is_idle(talk: Talk, session_id: str, reason: str) -> None:
    await seen(talk, session_id, lambda update: update.get("stopReason") == reason)


async def seen(talk: Talk, session_id: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Wait for an update of a session, unless it has come already."""

    def fits(frame: dict[str, Any]) -> bool:
        params = frame.get("params", {})
        return params.get("sessionId") == session_id and holds(params.get("update", {}))

    if not any(map(fits, talk.seen)):
        await talk.until(fits)


async def follows_nothing(hub: Served) -> bool:
    return not (await asyncio.to_thread(metrics, hub))["sessions_followed"]


def messages(talk: Talk, session_id: str) -> list[str]:
    """Return what a client was told of a session, without what is told to late joiners alone."""
    told = [f["params"]["update"] for f in talk.seen if f.get("params", {}).get("sessionId") == session_id]
    return [f"{update['sessionUpdate']} {update.get('content')}" for update in told if "content" in update]


@requirement("SUB-01")
async def test_a_subagent_that_begins_is_followed_at_another_hub_from_its_announcement_on(
    tmp_path: Path,
) -> None:
    with rich_hubs(tmp_path) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            await attach(bob, id)
            for number in range(3):
                for talk in (alice, bob):
                    talk.forget()
                bob.prompt(f"p{number}", id, "child work")
                child = await child_of(bob)
                for talk in (alice, bob):
                    await said(talk, child, "on it")
                    await said(talk, id, "the child is done")
                    await is_idle(talk, child, "end_turn")
                named = [frame["params"] for frame in bob.seen if child in str(frame.get("params"))]
                assert named[0]["sessionId"] == id, "the parent announces it before anything of it comes"
                assert messages(bob, child) == messages(alice, child)


@requirement("SUB-02")
async def test_a_client_that_joins_at_another_hub_follows_a_subagent_and_may_cancel_it(
    tmp_path: Path,
) -> None:
    with rich_hubs(tmp_path) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            alice.prompt("p", id, "child")
            child = await child_of(alice)
            await attach(bob, id)
            await said(bob, child, "on it")
            bob.send(method="session/cancel", params={"sessionId": child})
            await is_idle(bob, child, "cancelled")
            await said(bob, id, "the child is done")
            bob.prompt("no", child, "say no")
            assert "works for another one" in str(await bob.answer_to("no"))
            await bob.call("leave", "_antiphon/detach", sessionId=id)
            await until(lambda: follows_nothing(b))


async def test_a_subagent_is_over_at_another_hub_when_its_owner_dies(tmp_path: Path) -> None:
    with rich_hubs(tmp_path) as (a, b):
        async with asyncio.timeout(DEADLINE), talk_to(b, "bob") as bob:
            async with talk_to(a, "alice") as alice:
                id = await begin(alice)
                await attach(bob, id)
                bob.prompt("p", id, "child")
                child = await child_of(bob)
                await said(bob, child, "on it")
                a.kill()
            await is_idle(bob, id, "error")
            await is_idle(bob, child, "error")
            bob.prompt("next", id, "child work")
            second = await child_of(bob)
            await said(bob, second, "on it")
            status = await bob.call("status", "session/status", sessionId=child)
            while status["status"] != "saved":
                status = await bob.call(f"status {len(bob.seen)}", "session/status", sessionId=child)
