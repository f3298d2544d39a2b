"""`_antiphon/search_sessions`: what a client finds, and what it must not find."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from antiphon.hub import HubLimits
from antiphon.stores import Batch, SessionRecord, SQLiteStore
from antiphon.stores.search.base import Matches
from antiphon.testing.store_searches import said
from tests.hub.doors import DEADLINE, doors, refused

METHOD = "_antiphon/search_sessions"


async def kept(store: SQLiteStore, session_id: str, *lines: bytes, **record) -> None:
    made = SessionRecord(session_id=session_id, cwd="/site", created_at=1, updated_at=1, **record)
    await store.create(made, batch=Batch(1, lines))


async def test_each_client_finds_what_it_may_know_of(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "sessions.db")
    await kept(store, "a", said(1, "The needle is here", id="m1", who="user"), title="Hay")
    await kept(store, "b", *(said(seq, f"needle {seq}", id=f"m{seq}") for seq in range(1, 30)))
    await kept(store, "s", said(1, "needle of a subagent", id="m1"), meta={"subagentOf": "a"})
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door:
        async with door.talk(door.token("all", "observer")) as talk:
            hello = await talk.answer_to("init")
            assert hello["result"]["capabilities"]["_meta"]["antiphon"]["searchSessions"] == {}
            page = await talk.call(1, METHOD, query="needle", limit=20)
            assert {match["sessionId"] for match in page["matches"]} == {"b"}
            rest = await talk.call(2, METHOD, query="needle", limit=20, cursor=page["nextCursor"])
            assert [match["sessionId"] for match in rest["matches"]] == ["b"] * 9 + ["a"]
            assert rest.get("nextCursor") is None
            (match,) = (await talk.call(3, METHOD, query="here needle"))["matches"]
            assert match == {
                "sessionId": "a",
                "title": "Hay",
                "messageId": "m1",
                "role": "user",
                "seq": 1,
                "at": match["at"],
                "snippet": "The needle is here",
                "ranges": [[4, 10], [14, 18]],
            }
        async with door.talk(door.token("one", "observer", sessions=["a"])) as talk:
            page = await talk.call(1, METHOD, query="needle", limit=1)
            assert [match["sessionId"] for match in page["matches"]] == ["a"]
            assert page.keys() == {"matches"}, "neither a cursor nor a count tells of other sessions"
            assert await talk.call(2, METHOD, query="needle 5") == {"matches": []}
            for number, wrong in enumerate(
                ({}, {"query": 1}, {"query": "x" * 1001}, {"query": "x", "limit": 0})
            ):
                error = await refused(talk, f"w{number}", METHOD, **wrong)
                assert error is not None, wrong
                assert error["code"] == -32602, wrong
            error = await refused(talk, "c", METHOD, query="needle", cursor="made up")
            assert error is not None
            assert error["code"] == -32602
        async with door.talk() as owner:
            await owner.call("d", "session/delete", sessionId="b")
            page = await owner.call(1, METHOD, query="needle")
            assert [match["sessionId"] for match in page["matches"]] == ["a"]


async def test_a_token_that_searches_too_much_is_slowed_down(tmp_path: Path) -> None:
    limits = HubLimits(searches_per_minute=2)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        for number in range(2):
            assert await talk.call(number, METHOD, query="anything") == {"matches": []}
        error = await refused(talk, "more", METHOD, query="anything")
        assert error is not None
        assert (error["code"], error["data"]["limit"]) == (-32004, "searches_per_minute")


async def test_many_searches_of_one_token_do_not_go_before_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun, searched = asyncio.Event(), asyncio.Event(), SQLiteStore.search
    queries: list[str] = []
    store = SQLiteStore(tmp_path / "sessions.db")

    async def search(self: SQLiteStore, query: str, **given) -> Matches:
        queries.append(query)
        begun.set()
        if query.startswith("busy"):
            await gate.wait()
        return await searched(self, query, **given)

    monkeypatch.setattr(SQLiteStore, "search", search)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door, AsyncExitStack() as stack:
        busy = door.token("busy", "observer")
        talks = [await stack.enter_async_context(door.talk(busy)) for _ in range(4)]
        for number, talk in enumerate(talks):
            await talk.call("l", "session/list")
            talk.send(id=1, method=METHOD, params={"query": f"busy {number}"})
        await begun.wait()
        other = await stack.enter_async_context(door.talk(door.token("other", "observer")))
        await other.call(1, METHOD, query="other")
        assert [query[:5] for query in queries] == ["busy ", "other"]
        gate.set()
        for talk in talks:
            await talk.answer_to(1)


async def test_a_hub_whose_store_cannot_search_does_not_offer_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SQLiteStore, "can_search", False)
    store = SQLiteStore(tmp_path / "sessions.db")
    async with asyncio.timeout(DEADLINE), doors(tmp_path, store=store) as door, door.talk() as talk:
        hello = msgspec.json.encode(await talk.answer_to("init"))
        assert b"searchSessions" not in hello
        error = await refused(talk, 1, METHOD, query="needle")
        assert error is not None
        assert error["code"] == -32601
