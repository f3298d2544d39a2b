"""A client lists, closes and deletes sessions."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import ClientSession
from antiphon.errors import CallFailed, LocalError
from antiphon.schema import v2
from tests.requirements.agent_by_hand import (
    AgentByHand,
    session,
)
from tests.requirements.marks import requirement

# --- session/list ----------------------------------------------------------------------------------


async def listed(agent: AgentByHand, of: ClientSession, *pages: dict[str, Any]) -> list[v2.SessionInfo]:
    """Let the client list the sessions, and give it these pages."""

    async def listing() -> list[v2.SessionInfo]:
        return [info async for info in of.client.list_sessions()]

    task = agent.meanwhile(listing())
    for page in pages:
        agent.answer(await agent.request("session/list"), page)
    return await task


@requirement("SESS-34")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_cursor_is_sent_back_as_it_came_until_there_is_none(version: int) -> None:
    odd = 'eyJvIjo1MH0=/%20"\n\u0000é'
    async with session(version) as (of, agent):
        pages: list[dict[str, Any]] = [
            {"sessions": [{"sessionId": "a", "cwd": "/a"}], "nextCursor": odd},
            {"sessions": [], "nextCursor": " "},
            {"sessions": [{"sessionId": "b", "cwd": "/b"}]},
        ]
        infos = await listed(agent, of, *pages)
        assert [(info.session_id, info.cwd) for info in infos] == [("a", "/a"), ("b", "/b")]
        assert agent.sent("session/list") == [{}, {"cursor": odd}, {"cursor": " "}]


@requirement("SESS-34")
async def test_in_v2_null_ends_the_list_and_an_empty_cursor_does_not() -> None:
    async with session(2) as (of, agent):
        infos = await listed(
            agent,
            of,
            {"sessions": [{"sessionId": "a", "cwd": "/a"}], "nextCursor": ""},
            {"sessions": [{"sessionId": "b", "cwd": "/b"}], "nextCursor": None},
        )
        assert [info.session_id for info in infos] == ["a", "b"]
        assert agent.sent("session/list") == [{}, {"cursor": ""}]


@requirement("SESS-34")
@pytest.mark.parametrize("version", [1, 2])
async def test_every_listing_begins_without_a_cursor(version: int) -> None:
    async with session(version) as (of, agent):
        await listed(agent, of, {"sessions": [], "nextCursor": "x"}, {"sessions": []})
        await listed(agent, of, {"sessions": []})
        assert agent.sent("session/list") == [{}, {"cursor": "x"}, {}]


@requirement("SESS-36", "SESS-37")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_list_is_as_it_came_each_time_and_opens_and_changes_nothing(
    version: int,
) -> None:
    async with session(version) as (of, agent):
        entry = {"sessionId": "s", "cwd": "/site", "title": "Mine"}
        one = await listed(agent, of, {"sessions": [{**entry, "additionalDirectories": ["/a", "/b"]}]})
        two = await listed(agent, of, {"sessions": [{**entry, "additionalDirectories": ["/c"]}]})
        three = await listed(agent, of, {"sessions": [entry]})
        assert [info.additional_directories for info in (*one, *two, *three)] == [["/a", "/b"], ["/c"], []]
        assert of.client.sessions == [of]
        assert (of.cwd, of.title, of.messages) == ("/site", None, [])
        assert agent.methods() == ["session/new", *["session/list"] * 3]


# --- session/close and session/delete --------------------------------------------------------------


@requirement("SESS-29")
@pytest.mark.parametrize("version", [1, 2])
async def test_sessions_are_listed_closed_and_deleted_where_that_is_offered(version: int) -> None:
    async with session(version) as (of, agent):
        assert await listed(agent, of, {"sessions": []}) == []
        closing = agent.meanwhile(of.close())
        request = await agent.request("session/close")
        assert request["params"] == {"sessionId": "s"}
        agent.answer(request, {})
        await closing
        assert of.client.sessions == []
        deleting = agent.meanwhile(of.client.delete_session("s"))
        request = await agent.request("session/delete")
        assert request["params"] == {"sessionId": "s"}
        agent.answer(request, {})
        await deleting


@requirement("SESS-29")
@pytest.mark.parametrize("offered", ["list", "close", "delete"])
async def test_in_v1_each_of_the_three_is_offered_on_its_own(offered: str) -> None:
    async with session(1, {"sessionCapabilities": {offered: {}}}) as (of, agent):
        attempts: dict[str, Any] = {
            "list": lambda: anext(of.client.list_sessions()),
            "close": lambda: of.close(),
            "delete": lambda: of.client.delete_session("s"),
        }
        del attempts[offered]
        for attempt in attempts.values():
            with pytest.raises(LocalError):
                await attempt()
        await agent.settled(of)
        assert agent.methods() == ["session/new"]
        assert of.client.sessions == [of]


async def test_a_turn_of_a_session_that_was_closed_ends_whether_or_not_its_agent_says_so() -> None:
    async with session() as (of, agent):
        turn = await agent.working(of, "go")
        closing = agent.meanwhile(of.close())
        agent.answer(await agent.request("session/close"), {})
        await closing
        end = await turn.drained()
        assert (end.stop_reason, end.cut) == ("error", "the session was closed")


@requirement("SESS-45")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_what_is_not_there_any_more_counts_as_closed_and_as_deleted(version: int, method: str) -> None:
    async with session(version) as (of, agent):
        end = of.close() if method == "session/close" else of.client.delete_session("s")
        ending = agent.meanwhile(end)
        agent.refuse(await agent.request(method), -32002, "Resource not found", sessionId="s")
        await ending
        assert of.client.sessions == []


@requirement("SESS-45")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_another_error_is_told_and_the_session_stays(version: int, method: str) -> None:
    async with session(version) as (of, agent):
        end = of.close() if method == "session/close" else of.client.delete_session("s")
        ending = agent.meanwhile(end)
        agent.refuse(await agent.request(method), -32603, "The disk is full")
        with pytest.raises(CallFailed, match="The disk is full"):
            await ending
        assert of.client.sessions == [of]
