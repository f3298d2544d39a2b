"""`requires_action` names the open questions of the turn, also through the hub, whatever they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.talk import Talk
from tests.hub.hands import DIALECTS, LATE, end_turn, hand, prompts_heard, say
from tests.hub.parrots import join, new_session
from tests.hub.running import DEADLINE, served

SEEING = [dialect for dialect in DIALECTS if dialect not in LATE]
"""The dialects in which a client sees the state."""
FORM = {"elicitation": {"form": {}}}


def client(dialect: str) -> tuple[int, dict[str, Any]]:
    """A client that can be asked with a form."""
    version, asked = DIALECTS[dialect]
    key = "clientCapabilities" if version == 1 else "capabilities"
    return version, {**asked, key: {**asked[key], **FORM}}


def form(session: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    return {"sessionId": session, "mode": "form", "message": "Who?", "requestedSchema": schema}


def permission(session: str, version: int) -> dict[str, Any]:
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    call = {"toolCallId": "t", "title": "Touch"}
    if version == 1:
        return {"sessionId": session, "toolCall": call, "options": options}
    subject = {"type": "tool_call", "toolCall": call}
    return {"sessionId": session, "title": "Touch?", "subject": subject, "options": options}


def ask(talk: Talk, session: str, method: str, params: dict[str, Any]) -> None:
    talk.send(method="_hand/ask", params={"sessionId": session, "method": method, "params": params})


def waiting(frame: dict[str, Any]) -> list[str] | None:
    """The questions that a state update names, where it says `requires_action` and names some."""
    update = frame.get("params", {}).get("update", {})
    if update.get("state") != "requires_action":
        return None
    named = update.get("_meta", {}).get("antiphon", {}).get("waitingFor")
    assert named != [], "what is not known is left out"
    return None if named is None else list(named)


def replayed(talk: Talk) -> list[str] | None:
    """The questions that the replay names in its last state."""
    return [waiting(frame) for frame in talk.seen if "state" in frame.get("params", {}).get("update", {})][-1]


def names(count: int) -> Callable[[dict[str, Any]], bool]:
    return lambda frame: len(waiting(frame) or ()) == count


@pytest.mark.parametrize("dialect", SEEING)
@pytest.mark.parametrize("kind", ["elicitation", "permission"])
@pytest.mark.parametrize("order", ["asks-first", "says-first"])
async def test_a_question_of_a_v2_agent_is_named(tmp_path: Path, order: str, kind: str, dialect: str) -> None:
    version, asked = client(dialect)
    with served(tmp_path, agent=hand()) as hub:
        async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            talk.prompt("p", session, "first")
            await prompts_heard(talk, session, 1)
            there = "hand-1"
            method, params = {
                "elicitation": ("elicitation/create", form(there)),
                "permission": ("session/request_permission", permission(there, 2)),
            }[kind]
            if order == "asks-first":
                ask(talk, session, method, params)
            say(talk, session, sessionUpdate="state_update", state="requires_action")
            if order == "says-first":
                ask(talk, session, method, params)
            state = await talk.until(names(1))
            async with hub.talk(version, **asked) as late:
                await join(late, session, version=version)
                assert replayed(late) == waiting(state)
            ask(talk, session, "elicitation/create", form(there))
            both = waiting(await talk.until(names(2)))
            assert both is not None
            assert both[:1] == waiting(state)
            first = next(frame for frame in talk.seen if frame.get("method") == method)
            answer = {"action": "decline"} if kind == "elicitation" else {"outcome": {"outcome": "cancelled"}}
            talk.send(id=first["id"], result=answer)
            assert waiting(await talk.until(names(1))) == both[1:]
            end_turn(talk, session)
            await talk.until(lambda frame: "idle" in str(frame))


@pytest.mark.parametrize("dialect", SEEING)
async def test_questions_of_a_v1_agent_are_named(tmp_path: Path, dialect: str) -> None:
    version, asked = client(dialect)
    with served(tmp_path, agent=hand(version=1)) as hub:
        async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            talk.prompt("p", session, "first")
            await prompts_heard(talk, session, 1)
            ask(talk, session, "elicitation/create", form("hand-1"))
            first = waiting(await talk.until(names(1)))
            ask(talk, session, "session/request_permission", permission("hand-1", 1))
            both = waiting(await talk.until(names(2)))
            assert both is not None
            assert both[:1] == first
            async with hub.talk(version, **asked) as late:
                await join(late, session, version=version)
                assert replayed(late) == both


async def test_a_question_of_background_work_is_not_named(tmp_path: Path) -> None:
    version, asked = client("v2")
    with served(tmp_path, agent=hand()) as hub:
        async with hub.talk(version, **asked) as talk, asyncio.timeout(DEADLINE):
            session = await new_session(talk)
            talk.prompt("p", session, "first")
            await prompts_heard(talk, session, 1)
            work = [{"type": "tool_call", "toolCallId": "t"}]
            say(
                talk,
                session,
                sessionUpdate="tool_call_update",
                toolCallId="t",
                title="Touch",
                status="in_progress",
            )
            say(talk, session, sessionUpdate="state_update", state="running", background=work)
            ask(talk, session, "session/request_permission", permission("hand-1", 2))
            await talk.request("session/request_permission")
            state = {"state": "requires_action", "background": work}
            say(talk, session, sessionUpdate="state_update", **state)
            assert waiting(await talk.until(lambda frame: '"requires_action"' in json.dumps(frame))) is None
            ask(talk, session, "elicitation/create", form("hand-1"))
            named = waiting(await talk.until(names(1)))
            assert named is not None
