"""Addresses that an agent asks its user to visit: consent, completion, and who is told."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.agent import AgentTurn
from antiphon.engine.questions import CREATE_ELICITATION
from antiphon.errors import LocalError
from tests.agent.talk import client, session
from tests.agent.test_elicitation import BOTH, URL, able, asked, asking
from tests.requirements.marks import requirement


@requirement("ELIC-06", "ELIC-10", "ELIC-11")
@pytest.mark.parametrize("version", [1, 2])
async def test_consent_is_not_completion_and_who_agreed_is_told(version: int) -> None:
    done = asyncio.Event()

    async def ask(turn: AgentTurn) -> object:
        consent = await turn.ask_url("Please log in", "https://example.com/in?state=1")
        assert consent.accepted
        await done.wait()
        await consent.complete()
        await consent.complete()
        return consent

    agent, came = asking(ask)
    async with (
        session(agent, 2, **able(2, BOTH)) as (other, id),
        client(agent, version, **able(version, URL)) as talk,
    ):
        opened = "session/load" if version == 1 else "session/resume"
        await talk.call("open", opened, sessionId=id, cwd="/", mcpServers=[])
        other.prompt("p", id, "go")
        request = await talk.request(CREATE_ELICITATION)
        params = request["params"]
        assert params["mode"] == "url"
        assert params["url"] == "https://example.com/in?state=1"
        assert params["elicitationId"]
        talk.send(id=request["id"], result={"action": "accept", "content": {"token": "no"}})
        await other.request("$/cancel_request")
        assert came == []
        done.set()
        told = await talk.request("elicitation/complete")
        assert told["params"] == {"elicitationId": params["elicitationId"]}
        await other.update("state_update", state="idle")
        assert len(came) == 1
        assert [f for f in other.seen if f.get("method") == "elicitation/complete"] == []
        await talk.call("list", "session/list")
        assert len([f for f in talk.seen if f.get("method") == "elicitation/complete"]) == 1


@requirement("ELIC-06")
async def test_each_address_has_an_id_of_its_own() -> None:
    async def ask(turn: AgentTurn) -> object:
        return await asyncio.gather(*(turn.ask_url("Go", "https://example.com") for _ in range(3)))

    agent, _ = asking(ask)
    async with session(agent, 2, **able(2, URL)) as (talk, id):
        talk.prompt("p", id, "go")
        requests = [await talk.request(CREATE_ELICITATION) for _ in range(3)]
        assert len({request["params"]["elicitationId"] for request in requests}) == 3
        for request in requests:
            talk.send(id=request["id"], result={"action": "cancel"})
        await talk.update("state_update", state="idle")


@requirement("ELIC-11")
async def test_nothing_is_told_where_nobody_agreed_or_who_did_is_gone() -> None:
    agreed = asyncio.Event()
    gone = asyncio.Event()

    async def ask(turn: AgentTurn) -> object:
        refused = await turn.ask_url("Go", "https://example.com")
        assert refused.declined
        assert not refused.cancelled
        with pytest.raises(LocalError):
            await refused.complete()
        consent = await turn.ask_url("Go", "https://example.com")
        agreed.set()
        await gone.wait()
        await consent.complete()
        return consent.accepted

    agent, came = asking(ask)
    async with (
        agent.serving(),
        session(agent, 2, **able(2, URL)) as (talk, id),
        client(agent, 2, **able(2, {})) as other,
    ):
        await other.call("res", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        request = await asked(talk, id)
        talk.send(id=request["id"], result={"action": "decline"})
        request = await talk.request(CREATE_ELICITATION)
        talk.send(id=request["id"], result={"action": "accept"})
        await agreed.wait()
        await talk.transport.aclose()
        gone.set()
        await other.update("state_update", state="idle")
        assert came == [True]
        assert [f for f in other.seen if f.get("method") == "elicitation/complete"] == []


@requirement("ELIC-16")
@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@example.com/",
        "https://me@example.com/",
        "https://example.com/?access_token=x",
        "https://example.com/#id_token=x",
        "https://example.com/?apiKey=x",
        "ftp://example.com/",
        "javascript:alert(1)",
        "https:///nowhere",
        "https://example.com/ x",
        "https://[nonsense/",
        "example.com",
    ],
)
async def test_an_address_without_a_host_or_with_credentials_is_not_asked(url: str) -> None:
    agent, came = asking(lambda turn: turn.ask_url("Go", url))
    async with session(agent, 2, **able(2, URL)) as (talk, id):
        talk.prompt("p", id, "go")
        await talk.update("state_update", state="idle")
        assert isinstance(came[0], LocalError)
        assert [f for f in talk.seen if f.get("method") == CREATE_ELICITATION] == []
