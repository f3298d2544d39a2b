"""Who is asked, and what becomes of a question with nobody there, or with nobody who answers in time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import LocalError
from antiphon.hub import QuestionOptions
from tests.agent.talk import Talk
from tests.hub.doors import DEADLINE, Doors, doors, refused

ASK = "session/request_permission"


async def begin(owner: Talk) -> str:
    made: dict[str, Any] = await owner.call("new", "session/new", cwd="/", mcpServers=[])
    return str(made["sessionId"])


async def resume(talk: Talk, session: str) -> None:
    await talk.call(f"resume {session}", "session/resume", sessionId=session, cwd="/", mcpServers=[])


def was_asked(talk: Talk) -> bool:
    return any(frame.get("method") == ASK for frame in talk.seen)


def allow(talk: Talk, asked: dict[str, Any]) -> None:
    option = asked["params"]["options"][0]["optionId"]
    talk.send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": option}})


async def test_everybody_who_may_is_asked_and_the_first_decides(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = await begin(owner)
        async with door.talk(door.token("bob", "controller")) as bob:
            await resume(bob, session)
            owner.prompt("p", session, "ask")
            await owner.request(ASK)
            allow(bob, await bob.request(ASK))
            await owner.request("$/cancel_request")
            await owner.update("state_update", state="idle")
            assert "allowed: True" in str(owner.updates())
            line = door.audit(act="answer", outcome="allowed")[-1]
            assert (line["token"], line["session"]) == ("bob", session)


async def test_only_owners_are_asked_where_that_is_the_rule(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path, asked="owner") as door, door.talk() as owner:
        session = await begin(owner)
        async with door.talk(door.token("bob", "controller")) as bob:
            await resume(bob, session)
            bob.prompt("p", session, "ask")
            asked = await owner.request(ASK)
            await bob.update("state_update", state="requires_action")
            question = asked["params"]["_meta"]["antiphon"]["questionId"]
            answer = {"questionId": question, "outcome": {"outcome": "cancelled"}}
            error = await refused(bob, "a", "_antiphon/answer", sessionId=session, **answer)
            assert error is not None
            assert (error["code"], error["data"]) == (-32003, {"reason": "forbidden"})
            allow(owner, asked)
            await bob.update("state_update", state="idle")
            assert not was_asked(bob)


async def test_who_prompted_is_asked_and_others_once_that_one_is_gone(tmp_path: Path) -> None:
    how = {"asked": "designated"}
    async with asyncio.timeout(DEADLINE), doors(tmp_path, **how) as door, door.talk() as owner:
        session = await begin(owner)
        async with door.talk(door.token("bob", "controller")) as bob:
            await resume(bob, session)
            bob.prompt("p", session, "ask")
            await bob.request(ASK)
            await owner.update("state_update", state="requires_action")
            await owner.call("l", "session/list")  # what was to be sent before has been
            assert not was_asked(owner)
        allow(owner, await owner.request(ASK))  # bob is gone
        await owner.update("state_update", state="idle")
        assert "allowed: True" in str(owner.updates())


@pytest.mark.parametrize(
    ("unattended", "kind", "becomes"),
    [
        ("reject", "read", "allowed: False"),
        ("reject", "edit", "allowed: False"),
        ("allow-read", "read", "allowed: True"),
        ("allow-read", "search", "allowed: True"),
        ("allow-read", "think", "allowed: True"),
        ("allow-read", "fetch", None),
        ("allow-read", "edit", None),
        ("allow-read", "execute", None),
        ("allow-read", "other", None),
        ("wait", "read", None),
    ],
)
async def test_with_nobody_there_who_may_answer(
    unattended: str, kind: str, becomes: str | None, tmp_path: Path
) -> None:
    """An observer who looks on is nobody who may answer."""
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, unattended=unattended) as door,
        door.talk(door.token("eye", "observer")) as eye,
    ):
        session = await prompted_and_left(door, eye, kind)
        if becomes is not None:
            await eye.update("state_update", state="idle")
            assert becomes in str(eye.updates())
            assert door.audit(act="answer", session=session)[0]["outcome"].startswith("unattended: ")
        else:
            await eye.update("state_update", state="requires_action")
            async with door.talk() as owner:
                await resume(owner, session)
                allow(owner, await owner.request(ASK))
                await eye.update("state_update", state="idle")
        assert not was_asked(eye)


async def prompted_and_left(door: Doors, eye: Talk, kind: str) -> str:
    """A prompt, of which the agent asks when nobody but an observer is there."""
    async with door.talk() as owner:
        session = await begin(owner)
        await resume(eye, session)
        owner.prompt("p", session, f"later {kind}")
        await eye.update("state_update", state="running")
    await door.audited(act="disconnect", token="owner")
    door.go.set()
    return session


@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_without_an_answer_expires_and_all_are_told(version: int, tmp_path: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, expiry=0.2) as door,
        door.talk(version=version) as owner,
        door.talk() as other,
    ):
        session = await begin(owner)
        await resume(other, session)
        owner.prompt("p", session, "ask")
        asked = await owner.request(ASK)
        taken = await owner.request("$/cancel_request")
        assert taken["params"]["requestId"] == asked["id"]
        await other.request("$/cancel_request")
        await other.update("state_update", state="idle")
        assert "allowed: False" in str(other.updates())
        question = asked["params"]["_meta"]["antiphon"]["questionId"]
        assert door.audit(act="answer", outcome="expired", question=question)
        told = await other.call("t", "_antiphon/timeline", sessionId=session)
        assert [item["status"] for item in told["items"] if item["kind"] == "question"] == ["expired"]


def test_policies_that_are_none_are_refused() -> None:
    for wrong in ({"asked": "anybody"}, {"unattended": "allow"}):
        with pytest.raises(LocalError, match="one of"):
            QuestionOptions(**wrong)  # type: ignore[arg-type]
