"""Tokens, limits and the audit log span the hubs of one store."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from antiphon.engine.session import Session
from antiphon.errors import AntiphonError, RequestError
from antiphon.hub.access.limits import HubLimits
from antiphon.hub.access.tokens import Kept, create_token, make_token, revoke_token
from antiphon.hub.cluster.shared_tokens import Note, merge
from antiphon.hub.quotas import QueuedBytes
from antiphon.server.method import Role
from tests.agent.talk import Talk
from tests.cluster.spanning import DEADLINE, attach, begin, talk_to, two_hubs, until
from tests.hub.running import Served
from tests.stores.nats_servers import SERVER

needs_nats = pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")


def kept(name: str, *, expires: float | None = None) -> Kept:
    return make_token(name, Role.CONTROLLER, sessions=None, seconds=expires, at=0.0)[1]


# --- tokens -------------------------------------------------------------------------------------------


def test_a_token_that_the_store_does_not_know_is_added_to_it() -> None:
    mine = kept("mine")
    assert merge((), [mine], {}, now=1) == ([mine], [mine], [], {mine.id})


def test_a_token_of_another_hub_is_added_here() -> None:
    mine, theirs = kept("mine"), kept("theirs")
    notes = {each.id: Note(each.id, each) for each in (mine, theirs)}
    assert merge({mine.id}, [mine], notes, now=1) == ([mine, theirs], [], [], {mine.id, theirs.id})


def test_a_token_that_was_here_and_is_not_was_revoked_here() -> None:
    mine = kept("mine")
    assert merge({mine.id}, [], {mine.id: Note(mine.id, mine)}, now=1) == ([], [], [mine.id], {mine.id})
    assert merge({mine.id}, [], {mine.id: Note(mine.id)}, now=1) == ([], [], [], set())


def test_a_revocation_wins() -> None:
    mine = kept("mine")
    for known in ((), {mine.id}):
        assert merge(known, [mine], {mine.id: Note(mine.id)}, now=1) == ([], [], [], set())


def test_a_new_store_revokes_nothing() -> None:
    mine, gone = kept("mine"), kept("gone")
    assert merge({mine.id, gone.id}, [mine], {}, now=1) == ([mine], [mine], [], {mine.id})


def test_a_token_that_is_over_goes_nowhere() -> None:
    mine, theirs = kept("mine", expires=5), kept("theirs", expires=5)
    assert merge((), [mine], {theirs.id: Note(theirs.id, theirs)}, now=9) == ([mine], [], [], {mine.id})


async def admitted(stack: AsyncExitStack, hub: Served, token: str) -> Talk | None:
    try:
        return await stack.enter_async_context(talk_to(hub, "guest", token=token))
    except (AntiphonError, OSError):
        return None


async def refused(stack: AsyncExitStack, hub: Served, token: str) -> bool:
    return await admitted(stack, hub, token) is None


@needs_nats
async def test_a_token_of_one_hub_works_at_the_other_until_it_is_revoked_there(
    tmp_path: Path, nats: str
) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), AsyncExitStack() as stack:
            secret = create_token(a.folder / "tokens.json", "guest", Role.CONTROLLER)
            at_b = await until(lambda: admitted(stack, b, secret))
            at_a = await until(lambda: admitted(stack, a, secret))
            assert secret not in (b.folder / "tokens.json").read_text()
            revoke_token(b.folder / "tokens.json", "guest")
            for talk in (at_b, at_a):
                with pytest.raises(AssertionError, match="the link ended"):
                    await talk.until(lambda _: False)
            assert await admitted(stack, a, secret) is None


@needs_nats
async def test_a_token_that_is_revoked_while_a_hub_is_down_stays_revoked(tmp_path: Path, nats: str) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        async with asyncio.timeout(DEADLINE), AsyncExitStack() as stack:
            secret = create_token(a.folder / "tokens.json", "guest", Role.CONTROLLER)
            other = create_token(a.folder / "tokens.json", "other", Role.CONTROLLER)
            at_a = await until(lambda: admitted(stack, a, secret))
            await until(lambda: admitted(stack, b, secret))
            await until(lambda: admitted(stack, b, other))
            b.kill()
            revoke_token(b.folder / "tokens.json", "guest")
            revoke_token(a.folder / "tokens.json", "other")
            b.restart()
            with pytest.raises(AssertionError, match="the link ended"):
                await at_a.until(lambda _: False)
            assert await admitted(stack, b, secret) is None
            await until(lambda: refused(stack, b, other))


@needs_nats
async def test_what_comes_through_another_hub_is_in_the_audit_log_of_the_owner(
    tmp_path: Path, nats: str
) -> None:
    with two_hubs(tmp_path, nats) as (a, b):
        secret = create_token(b.folder / "tokens.json", "guest", Role.CONTROLLER)
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice:
            id = await begin(alice)
            async with talk_to(b, "guest", token=secret) as guest:
                await attach(guest, id)
                guest.prompt("p", id, "say hello")
                await guest.answer_to("p")
                gone = {"sessionId": id, "messageId": "gone"}
                guest.send(id="no", method="_antiphon/revoke_inject", params=gone)
                assert "error" in await guest.answer_to("no")
                guest.send(method="session/cancel", params={"sessionId": id})
                lines = await until(lambda: forwarded(a, acts={"prompt", "cancel"}, count=3))
    about = {"token": "guest", "session": id, "hub": "here"}
    assert [{key: line[key] for key in about} for line in lines] == [about] * 3
    assert sorted((line["act"], line["outcome"].split(":")[0]) for line in lines) == [
        ("cancel", "allowed"),
        ("cancel", "failed"),
        ("prompt", "allowed"),
    ]


async def forwarded(hub: Served, *, acts: set[str], count: int) -> list[dict[str, str]] | None:
    lines = [json.loads(line) for line in (hub.folder / "audit.jsonl").read_text().splitlines()]
    found = [line for line in lines if line["act"] in acts and "hub" in line]
    return found if len(found) == count else None


# --- limits -------------------------------------------------------------------------------------------


@needs_nats
async def test_prompts_of_a_token_count_at_all_hubs(tmp_path: Path, nats: str) -> None:
    most = 20
    with two_hubs(tmp_path, nats, "--prompts-per-minute", str(most)) as (a, b):
        secret = create_token(a.folder / "tokens.json", "guest", Role.CONTROLLER)
        async with asyncio.timeout(DEADLINE), AsyncExitStack() as stack:
            at_a = await until(lambda: admitted(stack, a, secret))
            at_b = await until(lambda: admitted(stack, b, secret))
            one, two = await begin(at_a), await begin(at_b)
            for number in range(most):
                at_a.prompt(number, one, "say a")
            allowed = [await is_allowed(at_a, number) for number in range(most)]
            assert all(allowed)
            for number in range(most):
                at_b.prompt(number, two, "say b")
                if not await is_allowed(at_b, number):
                    return
                await asyncio.sleep(0.2)  # a pace, so that what was used at the other hub is told in between
            raise AssertionError("this hub did not count what was used at the other one")


async def is_allowed(talk: Talk, id: int) -> bool:
    answer = await talk.answer_to(id)
    return "error" not in answer or answer["error"]["data"].get("limit") != "prompts_per_minute"


class EmptySession:
    gone = False

    def __init__(self) -> None:
        self.fold = Session()


def test_queued_bytes_of_a_token_count_at_all_hubs_until_a_hub_is_gone() -> None:
    queued = QueuedBytes(HubLimits(queued_bytes_per_token=100))
    session: Any = EmptySession()
    queued.set_elsewhere("other", {"guest": 60})
    queued.take("someone", session, "m1", 60)
    with pytest.raises(RequestError, match="60 bytes of prompts of this token wait"):
        queued.take("guest", session, "m2", 60)
    queued.set_elsewhere("other", {})
    queued.take("guest", session, "m2", 60)
