"""The options of a session hold in its forks and when it is brought back, or it is said that they do not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import connect
from antiphon.schema import v2
from tests.agent.talk import Talk
from tests.hub.operating import lose_agent
from tests.hub.parrots import EVERYTHING, join, new_session, parrot, prompt, talking, updates
from tests.hub.test_processes import DEADLINE, hub_of

MODES: dict[str, Any] = {
    "currentModeId": "full",
    "availableModes": [{"id": "read", "name": "Read only"}, {"id": "full", "name": "Full access"}],
}
MODELS: dict[str, Any] = {
    "currentModelId": "small",
    "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}],
}
VALUES = [{"value": "read", "name": "Read only"}, {"value": "full", "name": "Full access"}]


def option(value: str, key: str = "configId") -> dict[str, Any]:
    return {
        key: "access", "type": "select", "name": "Access", "category": "mode", "currentValue": value,
        "options": VALUES,
    }  # fmt: skip


def agent_of(kind: str, *, forks: bool, tells: bool = True, **setting: Any) -> list[str]:
    """An agent with a choice of access, `full` at first: in every session, also one that it forks."""
    version = 2 if kind == "v2" else 1
    able = {"session": {"fork": {}}} if version == 2 else {"sessionCapabilities": {"fork": {}}}
    given: dict[str, Any] = {
        "modes": {"modes": MODES, "models": MODELS},
        "options": {"configOptions": [option("full", "id")]},
        "v2": {"configOptions": [option("full")]},
    }[kind]
    key = "configId" if version == 2 else "id"
    answers = {
        "session/set_config_option": {"configOptions": [option("read", key)]},
        "session/set_model": {},
        "session/fork": {"sessionId": "forked", **(given if tells else {})},
        "session/load": given if tells else {},
        "session/resume": given if tells else {},
        **setting.pop("answers", {}),
    }
    return parrot(version, capabilities=able if forks else {}, new=given, answers=answers, **setting)


async def choose(talk: Talk, session: str, kind: str, version: int) -> None:
    """Read only, and the large model where there are models."""
    if kind != "modes":
        type = {} if version == 1 else {"type": "id"}
        wanted = {"sessionId": session, "configId": "access", "value": "read", **type}
        await talk.call("set", "session/set_config_option", **wanted)
    elif version == 1:
        await talk.call("set", "session/set_mode", sessionId=session, modeId="read")
        await talk.call("model", "session/set_model", sessionId=session, modelId="large")
    else:
        for id, value in (("mode", "read"), ("model", "large")):
            wanted = {"sessionId": session, "configId": id, "type": "id", "value": value}
            await talk.call(id, "session/set_config_option", **wanted)


async def asked(talk: Talk, session: str) -> list[tuple[str, Any]]:
    """What the agent of a session was asked to do, in order."""
    heard = (await talk.call(f"h{len(talk.seen)}", "_parrot/heard", sessionId=session))["heard"]
    return [(method, (params or {}).get("modeId") or (params or {}).get("value") or (params or
    {}).get("modelId")) for method, params in heard]  # fmt: skip


SET = {"modes": [("session/set_mode", "read"), ("session/set_model", "large")],
       "options": [("session/set_config_option", "read")],
       "v2": [("session/set_config_option", "read")]}  # fmt: skip


@pytest.mark.parametrize("forks", [True, False], ids=["own", "told"])
@pytest.mark.parametrize("kind", ["modes", "options", "v2"])
@pytest.mark.parametrize("version", [1, 2])
async def test_a_fork_has_the_options_of_its_source_before_anything_is_prompted(
    tmp_path: Path, version: int, kind: str, *, forks: bool
) -> None:
    agent = agent_of(kind, forks=forks)
    async with hub_of(tmp_path, agent) as (hub, _), talking(hub, version) as talk:
        session = await new_session(talk)
        await choose(talk, session, kind, version)
        await prompt(talk, session, {"update": SAID}, id="p0")
        fork = await talk.call("f", "session/fork", sessionId=session, cwd="/", mcpServers=[])
        if version == 1 and kind == "modes":
            assert fork["modes"] == {**MODES, "currentModeId": "read"}
            assert fork["models"] == {**MODELS, "currentModelId": "large"}
        else:
            assert {each["currentValue"] for each in fork["configOptions"]} <= {"read", "large"}
        await prompt(talk, fork["sessionId"], id="p1")
        done = await asked(talk, fork["sessionId"])
        begun = max(at for at, (method, _) in enumerate(done) if method in ("session/fork", "session/new"))
        assert done[begun + 1 :] == [*SET[kind], ("session/prompt", None)]


SAID = {
    "sessionUpdate": "agent_message_chunk",
    "messageId": "a",
    "content": {"type": "text", "text": "hello"},
}


@pytest.mark.parametrize("tells", [True, False], ids=["told", "untold"])
@pytest.mark.parametrize("kind", ["modes", "options", "v2"])
async def test_a_fork_that_cannot_keep_its_options_is_refused_and_ended_at_the_agent(
    tmp_path: Path, kind: str, *, tells: bool
) -> None:
    refuses = {"refuses": ["session/set_mode", "session/set_config_option"], "from": str(tmp_path / "refuse")}
    closes = {"sessionCapabilities": {"fork": {}, "close": {}}}
    agent = agent_of(kind, forks=True, tells=tells, **refuses)
    if kind != "v2":
        agent[-1] = agent[-1].replace('{"sessionCapabilities": {"fork": {}}}', str(closes).replace("'", '"'))
    async with hub_of(tmp_path, agent) as (hub, _), talking(hub, 2) as talk:
        session = await new_session(talk)
        await choose(talk, session, kind, 2)
        (tmp_path / "refuse").touch()
        talk.send(id="f", method="session/fork", params={"sessionId": session, "cwd": "/", "mcpServers": []})
        error = (await talk.answer_to("f"))["error"]
        assert "cannot keep the options" in error["message"]
        assert error["data"]["reason"] == "options_lost"
        assert [each["value"] for each in error["data"]["options"]] == ["read"]
        listed = await talk.call("l", "session/list")
        assert [each["sessionId"] for each in listed["sessions"]] == [session]
        while kind != "v2" and ("session/close", None) not in await asked(talk, session):
            pass
        assert (await prompt(talk, session))["result"]  # the source goes on


@pytest.mark.parametrize("kind", ["modes", "options", "v2"])
async def test_a_fork_that_is_told_what_was_said_refuses_prompts_until_somebody_chooses_anew(
    tmp_path: Path, kind: str
) -> None:
    refuses = {"refuses": ["session/set_mode", "session/set_config_option"], "from": str(tmp_path / "refuse")}
    async with hub_of(tmp_path, agent_of(kind, forks=False, **refuses)) as (hub, _), talking(hub, 2) as talk:
        session = await new_session(talk)
        await choose(talk, session, kind, 2)
        await prompt(talk, session, {"update": SAID}, id="p0")
        fork = (await talk.call("f", "session/fork", sessionId=session, cwd="/", mcpServers=[]))["sessionId"]
        (tmp_path / "refuse").touch()
        for id in ("p1", "p2"):
            talk.prompt(id, fork, "[]")
            error = (await talk.answer_to(id))["error"]
            assert error["data"]["reason"] == "options_lost"
        id = "mode" if kind == "modes" else "access"
        wanted = {"sessionId": fork, "configId": id, "type": "id", "value": "full"}
        talk.send(id="c", method="session/set_config_option", params=wanted)
        await talk.answer_to("c")
        notices = [update["title"] for update in updates(talk, "notice")]
        assert "Options of this session could not be restored" in notices
        assert (await prompt(talk, fork, id="p3"))["result"]


@pytest.mark.parametrize("tells", [True, False], ids=["told", "untold"])
@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("kind", ["modes", "options", "v2"])
@pytest.mark.parametrize("version", [1, 2])
async def test_options_hold_after_the_agent_was_lost_or_a_notice_says_that_they_do_not(
    tmp_path: Path, version: int, kind: str, *, refused: bool, tells: bool
) -> None:
    refuses = {"refuses": ["session/set_mode", "session/set_config_option"], "from": str(tmp_path / "refuse")}
    able = {"clientCapabilities": EVERYTHING} if version == 1 else {}
    agent = agent_of(kind, forks=False, tells=tells, **refuses)
    async with hub_of(tmp_path, agent) as (hub, _), talking(hub, version, **able) as talk:
        session = await new_session(talk)
        await choose(talk, session, kind, version)
        await lose_agent(hub, str(tmp_path))
        if refused:
            (tmp_path / "refuse").touch()
        await prompt(talk, session)
        notices = updates(talk, "notice")
        lost = refused or (kind == "v2" and not tells)
        assert [notice["title"] for notice in notices] == (
            ["Options of this session could not be restored"] if lost else []
        )
        if lost:
            assert "'read'" in notices[0]["description"]
            order = [frame for frame in talk.seen if frame.get("id") == "p" or "notice" in str(frame)]
            assert version == 2 or order[-1].get("id") == "p"
        else:
            done = [each for each in await asked(talk, session) if each[0] != "session/load"]
            assert done[-len(SET[kind]) - 1 :] == [*SET[kind], ("session/prompt", None)]


async def test_options_that_appear_with_another_one_are_restored_too(tmp_path: Path) -> None:
    agent = Agent("worker", version="1")
    agent.config("model", options={"small": "Small", "large": "Large"}, category="model")
    agent.config("mode", options={"full": "Full", "read": "Read"}, category="mode")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(f"{turn.session.config['mode']} {turn.session.config['model']}")

    for version in (1, 2):
        async with hub_of(tmp_path, agent, version=version) as (_, client):
            session = await client.new_session("/")
            await session.set_config("mode", "read")
            await session.set_config("model", "large")
            fork = await session.fork()
            turn = await fork.prompt("which")
            async with asyncio.timeout(DEADLINE):
                await turn.drained()
            assert turn.text == "read large"


@pytest.mark.parametrize("version", [1, 2])
async def test_a_library_agent_s_own_fork_keeps_its_options(version: int) -> None:
    agent = Agent("worker", version="1")
    agent.config("mode", options={"full": "Full", "read": "Read"}, category="mode")
    async with connect(agent, version=version) as client:
        session = await client.new_session("/")
        await session.set_config("mode", "read")
        fork = await session.fork()
        mode = fork.config["mode"]
        assert isinstance(mode, v2.SessionConfigSelect)
        assert mode.current_value == "read"


async def test_a_second_client_sees_what_a_fork_has(tmp_path: Path) -> None:
    async with (
        hub_of(tmp_path, agent_of("modes", forks=True)) as (hub, _),
        talking(hub, 1) as one,
        talking(hub, 2) as two,
    ):
        session = await new_session(one)
        await choose(one, session, "modes", 1)
        fork = (await one.call("f", "session/fork", sessionId=session, cwd="/", mcpServers=[]))["sessionId"]
        await join(two, fork, version=2)
        chosen = updates(two, "config_option_update")[-1]["configOptions"]
        assert [each["currentValue"] for each in chosen] == ["read", "large"]
