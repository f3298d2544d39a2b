"""The same operation id has the same outcome: over other connections, with agents of both versions, and after
kill -9 of the hub."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.agent.talk import Talk
from tests.hub.running import AGENT, DEADLINE, agents_of, served
from tests.hub.test_sharing import VERSIONS


def ours(operation: str) -> dict[str, Any]:
    return {"antiphon": {"operationId": operation}}


async def new(talk: Talk, n: Any, operation: str = "begin") -> str:
    params = {"cwd": "/", "mcpServers": [], "_meta": ours(operation)}
    return str((await talk.call(n, "session/new", **params))["sessionId"])


@VERSIONS
@pytest.mark.parametrize("client", [1, 2])
async def test_every_operation_has_its_outcome_again_after_kill_9(
    tmp_path: Path, version: str, client: int
) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(client) as talk:
            session = await new(talk, 1)
            talk.prompt("said", session, "say a", operationId="said")
            first = await talk.answer_to("said")
            if client == 2:
                await talk.update("state_update", state="idle")
            stop = {"sessionId": session, "_meta": ours("stop")}
            talk.send(method="session/cancel", params=stop)
            talk.prompt("cut", session, "wait", operationId="cut")
            await talk.until(lambda frame: "waiting" in str(frame))
        hub.kill()
        hub.restart()
        async with asyncio.timeout(DEADLINE), hub.talk(client) as talk:
            assert await new(talk, 2) == session
            talk.prompt("said again", session, "say a", operationId="said")
            talk.prompt("cut again", session, "wait", operationId="cut")
            said, cut = [await talk.answer_to(n) for n in ("said again", "cut again")]
            if client == 1:
                assert said["result"]["stopReason"] == first["result"]["stopReason"] == "end_turn"
                assert cut["error"]["data"] == {"reason": "interrupted", "cause": "hub_lost"}
            else:
                assert said["result"]["messageId"] == first["result"]["messageId"]
                assert said["result"]["_meta"]["antiphon"]["stopReason"] == "end_turn"
                assert cut["result"]["_meta"]["antiphon"]["error"]["data"] == {
                    "reason": "interrupted",
                    "cause": "hub_lost",
                }
            talk.prompt("next", session, "say b")
            talk.send(method="session/cancel", params=stop)
            talk.prompt("last", session, "say c")
            await talk.until(lambda frame: "heard say b" in str(frame))
            await talk.until(lambda frame: "heard say c" in str(frame))
            assert "result" in await talk.answer_to("next")
        assert (tmp_path / "agent.log").read_text() == "say a\nwait\nsay b\nsay c\n"


@VERSIONS
async def test_a_prompt_is_joined_by_its_copy_while_the_agent_has_it(tmp_path: Path, version: str) -> None:
    agent = [*AGENT, "--store", str(tmp_path / "agent.db")]
    with served(tmp_path, "--acp-version", version, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(2) as one, hub.talk(1) as two:
            session = await new(one, "new")
            await two.call("load", "session/load", sessionId=session, cwd="/", mcpServers=[])
            for talk in (one, two, one):
                talk.prompt(f"p{talk is two}{len(talk.seen)}", session, "ask", operationId="op")
            for talk in (one, two):
                request = await talk.request("session/request_permission")
            question = request["params"]["_meta"]["antiphon"]["questionId"]
            option = request["params"]["options"][0]["optionId"]
            answer = {
                "sessionId": session,
                "questionId": question,
                "outcome": {"outcome": "selected", "optionId": option},
            }
            async with hub.talk(2) as phone:
                for n in (1, 2):
                    assert await phone.call(n, "_antiphon/answer", **answer, operationId="yes") == {}
                phone.send(id=3, method="_antiphon/answer", params=answer)
                assert (await phone.answer_to(3))["error"]["data"] == {"reason": "already_answered"}
            await two.until(lambda frame: frame.get("result", {}).get("stopReason") == "end_turn")
            await one.update("state_update", state="idle", stopReason="end_turn")
            named = {f["result"]["messageId"] for f in one.seen if "messageId" in f.get("result", {})}
            assert len(named) == 1
        assert (tmp_path / "agent.log").read_text() == "ask\n"


async def test_a_session_is_begun_by_one_agent_however_often_it_is_asked_for(tmp_path: Path) -> None:
    with served(tmp_path, agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(2) as one, hub.talk(1) as two:
            params = {"cwd": "/", "mcpServers": [], "_meta": ours("begin")}
            for talk in (one, two):
                for n in (1, 2):
                    talk.send(id=n, method="session/new", params=params)
            begun = [(await talk.answer_to(n))["result"]["sessionId"] for talk in (one, two) for n in (1, 2)]
            assert len(set(begun)) == 1
            assert len(agents_of(hub)) == 1
            listed = await one.call("list", "session/list")
            assert [info["sessionId"] for info in listed["sessions"]] == begun[:1]


async def test_what_failed_with_its_agent_can_be_begun_again(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    agent = ["sh", "-c", f'test ! -e {broken} && exec "$@"', "sh", *AGENT]
    with served(tmp_path, agent=agent) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(2) as talk:
            params = {"cwd": "/", "_meta": ours("begin")}
            for n in (1, 2):
                talk.send(id=n, method="session/new", params=params)
                assert (await talk.answer_to(n))["error"]["data"] == {"reason": "agent"}
            broken.unlink()
            session = await new(talk, 3)
            talk.prompt(4, session, "say a")
            await talk.until(lambda frame: "heard say a" in str(frame))


async def test_the_agent_that_was_chosen_is_kept_from_the_first_moment(tmp_path: Path) -> None:
    other = [*AGENT, "--store", str(tmp_path / "other.db")]
    with served(tmp_path, "--agent", f"other={' '.join(other)}", agent=AGENT) as hub:
        async with asyncio.timeout(DEADLINE), hub.talk(2) as talk:
            meta = {"antiphon": {"operationId": "begin", "agent": "other"}}
            begun = [await talk.call(n, "session/new", cwd="/", mcpServers=[], _meta=meta) for n in (1, 2)]
            assert begun[0] == begun[1]
            talk.prompt(3, begun[0]["sessionId"], "say a")
            await talk.until(lambda frame: "heard say a" in str(frame))
        assert (tmp_path / "other.log").read_text() == "say a\n"
