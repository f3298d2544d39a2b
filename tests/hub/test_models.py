"""A v1 agent's models through the hub: models for v1 clients, a config option for v2 clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.client import ClientSession
from antiphon.errors import LocalError
from tests.hub.doors import doors, refused
from tests.hub.operating import lose_agent
from tests.hub.parrots import join, new_session, parrot, talking, updates
from tests.hub.test_processes import hub_of

MODELS: dict[str, Any] = {
    "currentModelId": "small",
    "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}],
}
LARGE: list[dict[str, Any]] = [
    {
        "configId": "model",
        "type": "select",
        "name": "Model",
        "category": "model",
        "currentValue": "large",
        "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
        "_meta": {"antiphon": {"models": "made"}},
    }
]
ANSWERS = {"session/set_model": {}}


def heard(frames: dict[str, Any], method: str) -> list[dict[str, Any]]:
    return [params for name, params in frames["heard"] if name == method]


def value(session: ClientSession) -> Any:
    return getattr(session.config["model"], "current_value", None)


async def chosen(talk: Any, session: str) -> list[str]:
    """The models that were chosen at the agent."""
    frames = await talk.call(f"heard-{len(talk.seen)}", "_parrot/heard", sessionId=session)
    return [params["modelId"] for params in heard(frames, "session/set_model")]


async def test_models_pass_to_v1_clients_and_are_an_option_for_v2_clients(tmp_path: Path) -> None:
    agent = parrot(1, new={"models": MODELS}, answers=ANSWERS)
    async with (
        hub_of(tmp_path, agent) as (hub, client),
        talking(hub, 1) as old,
        talking(hub, 2) as new,
    ):
        opened = await old.call("n", "session/new", cwd="/", mcpServers=[])
        assert opened["models"] == MODELS
        assert "configOptions" not in opened
        session = opened["sessionId"]
        await join(new, session, version=2)
        follower = await client.resume_session(session, "/")
        assert value(follower) == "small"
        assert await old.call("m", "session/set_model", sessionId=session, modelId="large") == {}
        await new.update("config_option_update", configOptions=LARGE)
        set_back = {"sessionId": session, "configId": "model", "type": "id", "value": "small"}
        answer = await new.call("c", "session/set_config_option", **set_back)
        assert answer["configOptions"][0]["currentValue"] == "small"
        assert await chosen(old, session) == ["large", "small"]
        await follower.set_config("model", "large")
        assert await chosen(old, session) == ["large", "small", "large"]
        loaded = await old.call("l", "session/load", sessionId=session, cwd="/", mcpServers=[])
        assert loaded["models"] == {**MODELS, "currentModelId": "large"}
        with pytest.raises(LocalError):
            await follower.set_config("model", "none")


@pytest.mark.parametrize("method", ["session/set_model", "session/set_config_option"])
async def test_a_model_that_is_not_there_is_refused_and_the_agent_does_not_hear_of_it(
    tmp_path: Path, method: str
) -> None:
    agent = parrot(1, new={"models": MODELS}, answers=ANSWERS)
    async with hub_of(tmp_path, agent) as (hub, _), talking(hub, 1) as old:
        session = await new_session(old)
        wanted = {"modelId": "none"} if method.endswith("model") else {"configId": "model", "value": "none"}
        old.send(id="m", method=method, params={"sessionId": session, **wanted})
        assert (await old.answer_to("m"))["error"]["code"] == -32602
        assert await chosen(old, session) == []


async def test_an_agent_that_refuses_a_model_keeps_the_one_it_has(tmp_path: Path) -> None:
    refusal = {"error": {"code": -32010, "message": "no quota"}}
    agent = parrot(1, new={"models": MODELS}, answers={"session/set_model": refusal})
    async with hub_of(tmp_path, agent) as (hub, _), talking(hub, 1) as old:
        session = await new_session(old)
        old.send(id="m", method="session/set_model", params={"sessionId": session, "modelId": "large"})
        assert (await old.answer_to("m"))["error"]["message"] == "no quota"
        loaded = await old.call("l", "session/load", sessionId=session, cwd="/", mcpServers=[])
        assert loaded["models"] == MODELS


async def test_an_agent_that_has_both_is_set_by_its_option_and_shown_once_to_v2(tmp_path: Path) -> None:
    values = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]
    option = {
        "id": "llm", "type": "select", "name": "Model", "category": "model", "currentValue": "small",
        "options": values,
    }  # fmt: skip
    changed = {"configOptions": [{**option, "currentValue": "large"}]}
    answers = {"session/set_config_option": changed}
    agent = parrot(1, new={"models": MODELS, "configOptions": [option]}, answers=answers)
    async with hub_of(tmp_path, agent) as (hub, _), talking(hub, 1) as old, talking(hub, 2) as new:
        opened = await old.call("n", "session/new", cwd="/", mcpServers=[])
        assert (opened["models"], opened["configOptions"]) == (MODELS, [option])
        session = opened["sessionId"]
        await join(new, session, version=2)
        assert await old.call("m", "session/set_model", sessionId=session, modelId="large") == {}
        assert updates(old, "config_option_update")[-1]["configOptions"] == changed["configOptions"]
        shown: list[Any] = []
        while [each["currentValue"] for each in shown] != ["large"]:
            shown = (await new.update("config_option_update"))["configOptions"]
        assert [each["configId"] for each in shown] == ["llm"]


async def test_a_library_agent_s_model_option_is_set_by_set_model_and_observers_set_none(
    tmp_path: Path,
) -> None:
    agent = Agent("worker", version="1")
    agent.config("model", options={"small": "Small", "large": "Large"}, category="model")
    async with doors(tmp_path, agents={"worker": agent}) as at, at.talk(version=1) as old:
        opened = await old.call("n", "session/new", cwd="/", mcpServers=[])
        assert "models" not in opened  # it has config options, which are v1's own
        wanted = {"sessionId": opened["sessionId"], "modelId": "large"}
        async with at.talk(at.token("eve", "observer"), version=1) as eve:
            await join(eve, opened["sessionId"], version=1)
            assert (await refused(eve, "m", "session/set_model", **wanted) or {})["code"] == -32003
        assert await old.call("m", "session/set_model", **wanted) == {}
        assert updates(old, "config_option_update")[-1]["configOptions"][0]["currentValue"] == "large"


async def test_the_model_is_chosen_again_after_the_agent_was_lost(tmp_path: Path) -> None:
    load = {"models": MODELS}
    agent = parrot(1, new={"models": MODELS}, answers={**ANSWERS, "session/load": load})
    async with hub_of(tmp_path, agent) as (hub, client):
        session = await client.new_session("/")
        await session.set_config("model", "large")
        await lose_agent(hub, str(tmp_path))
        frames = await client.call_extension("_parrot/heard", {"sessionId": session.id})
        assert [params["modelId"] for params in heard(frames, "session/set_model")] == ["large"]
        assert value(session) == "large"
