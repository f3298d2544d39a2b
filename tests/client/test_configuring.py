"""Config options, modes and commands as a client sees, sets and runs them; what else an agent tells."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.client import ClientSession, arranged
from antiphon.errors import CallFailed, InvalidParams, InvalidResult, LinkLost, LocalError
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.client.driving import WAYS, ByHand, driven, opened
from tests.requirements.marks import requirement

MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "Write"}],
}
MODEL = {
    "type": "select",
    "configId": "model",
    "name": "Model",
    "category": "model",
    "currentValue": "fast",
    "options": [{"value": "fast", "name": "Fast"}, {"value": "deep", "name": "Deep"}],
}
SLIDER = {"type": "slider", "configId": "heat", "name": "Heat", "currentValue": 3}


def in_v1(option: dict[str, Any]) -> dict[str, Any]:
    return {("id" if key == "configId" else key): value for key, value in option.items()}


def values(session: ClientSession) -> dict[str, Any]:
    return {
        id: option["currentValue"] if isinstance(option, dict) else option.current_value
        for id, option in session.config.items()
    }


async def begun(client: Any, agent: ByHand, **result: Any) -> ClientSession:
    new = asyncio.ensure_future(client.new_session("/"))
    agent.send(id=(await agent.expect("session/new"))["id"], result={"sessionId": "s", **result})
    session: ClientSession = await new
    return session


def complete() -> Agent:
    agent = Agent("complete")

    @agent.config("model", name="Model", category="model", options={"fast": "Fast", "deep": "Deep"})
    async def change(session: AgentSession, value: str) -> None:
        if session.config["loud"]:
            raise InvalidParams("not while it is loud")

    agent.config("mode", category="mode", options={"ask": "Ask", "code": "Code"})
    agent.config("loud", default=False)

    @agent.command("review", description="Review", hint="what")
    async def review(turn: AgentTurn, rest: str) -> None:
        await turn.say(f"reviewed {rest} in {turn.session.config['mode']}")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        session = turn.session
        await session.set_title("A title")
        await session.report_usage(used=5, size=10, cost=0.5)
        await session.notice("Careful", severity="warning")
        async with session.compaction() as compaction:
            await compaction.write("All of it")
        await session.set_config("mode", "code")

    return agent


@requirement("CONF-01")
@pytest.mark.parametrize("way", WAYS)
async def test_options_are_seen_and_set_the_same_way_in_every_version(way: str) -> None:
    async with driven(complete(), way) as session:
        assert values(session) == {"model": "fast", "mode": "ask", "loud": False}
        await session.set_config("model", "deep")
        await session.set_config("mode", "code")
        await session.set_config("loud", True)
        assert values(session) == {"model": "deep", "mode": "code", "loud": True}
        with pytest.raises(CallFailed, match="not while it is loud"):
            await session.set_config("model", "fast")
        assert values(session)["model"] == "deep"
        for id, value in (("model", "slow"), ("model", True), ("loud", "yes"), ("colour", "red")):
            with pytest.raises(LocalError):
                await session.set_config(id, value)


@requirement("CMD-02", "INIT-18")
@pytest.mark.parametrize("way", WAYS)
async def test_commands_and_all_that_an_agent_tells(way: str) -> None:
    async with driven(complete(), way) as session:
        events = session.events()
        turn = await session.prompt("go")
        await turn.drained()
        assert session.title == "A title"
        usage = session.usage
        assert usage is not None
        assert (usage.used, usage.size, usage.cost) == (5, 10, v2.Cost(amount=0.5, currency="USD"))
        [compaction] = session.compactions
        assert compaction.status == v2.CompactionStatus.COMPLETED
        assert compaction.summary == [v2.TextContent(text="All of it")]
        assert values(session)["mode"] == "code"
        notices = 0
        async for event in events:
            notices += isinstance(event.update, v2.Notice)
            if isinstance(event.update, v2.ConfigOptionUpdate) and values(session)["mode"] == "code":
                break
        assert notices == 1
        assert turn.text == "", "a notice is no message"
        assert [command.name for command in session.commands if isinstance(command, v2.Command)] == ["review"]
        turn = await session.command("review", "the tests")
        await turn.drained()
        assert turn.text == "reviewed the tests in code"
        assert session.messages[-2].text == "/review the tests"
        turn = await session.command("review", "", v2.ResourceLink(uri="file:///a", name="a"))
        await turn.drained()
        assert turn.prompt is not None
        assert [type(block) for block in turn.prompt] == [v2.TextContent, v2.ResourceLink]
        with pytest.raises(LocalError):
            await session.command("deploy")


# --- agents by hand ------------------------------------------------------------------------------------


@requirement("CONF-V2-01")
async def test_a_value_is_sent_with_its_type_and_the_answer_is_the_list() -> None:
    async with opened() as (client, agent):
        switch = {"type": "boolean", "configId": "loud", "name": "Loud", "currentValue": False}
        session = await begun(client, agent, configOptions=[MODEL, switch, SLIDER])
        assert session.config["heat"] == Unknown(SLIDER)
        for id, value, kind in (("model", "deep", "id"), ("loud", True, "boolean")):
            setting = asyncio.ensure_future(session.set_config(id, value))
            request = await agent.expect("session/set_config_option")
            assert request["params"] == {"sessionId": "s", "configId": id, "type": kind, "value": value}
            # An agent may change others with it, and the list of the answer is what counts.
            changed = [MODEL | {"currentValue": "deep"}, switch | {"currentValue": value is True}, SLIDER]
            agent.send(id=request["id"], result={"configOptions": changed})
            await setting
            assert values(session) == {"model": "deep", "loud": value is True, "heat": 3}
        with pytest.raises(LocalError):
            await session.set_config("heat", "4")  # CONF-V2-05: ignored


async def test_the_answer_has_its_place_among_the_updates() -> None:
    async with opened() as (client, agent):
        session = await begun(client, agent, configOptions=[MODEL])
        setting = asyncio.ensure_future(session.set_config("model", "deep"))
        request = await agent.expect("session/set_config_option")
        agent.told("config_option_update", configOptions=[MODEL | {"currentValue": "fast", "name": "Older"}])
        agent.send(id=request["id"], result={"configOptions": [MODEL | {"currentValue": "deep"}]})
        await setting
        assert values(session) == {"model": "deep"}
        assert getattr(session.config["model"], "name", None) == "Model"
        setting = asyncio.ensure_future(session.set_config("model", "fast"))
        request = await agent.expect("session/set_config_option")
        agent.send(id=request["id"], result={"configOptions": [MODEL]})
        agent.told("config_option_update", configOptions=[MODEL | {"currentValue": "deep"}])
        await setting
        await agent.settled(session)
        assert values(session) == {"model": "deep"}


@requirement("CONF-V1-02", "CONF-V1-03")
async def test_modes_are_an_option_that_is_set_by_set_mode() -> None:
    async with opened(1) as (client, agent):
        session = await begun(client, agent, modes=MODES, configOptions=[in_v1(MODEL)])
        assert values(session) == {"model": "fast", "mode": "ask"}
        with pytest.raises(LocalError):
            await session.set_config("mode", "fly")
        setting = asyncio.ensure_future(session.set_config("mode", "code"))
        request = await agent.expect("session/set_mode")
        assert request["params"] == {"sessionId": "s", "modeId": "code"}
        agent.send(id=request["id"], result={})
        await setting
        assert values(session) == {"model": "fast", "mode": "code"}
        agent.told("current_mode_update", currentModeId="ask")
        await agent.settled(session)
        assert values(session)["mode"] == "ask"
        setting = asyncio.ensure_future(session.set_config("model", "deep"))
        request = await agent.expect("session/set_config_option")
        assert request["params"] == {"sessionId": "s", "configId": "model", "value": "deep"}, "C-08"
        agent.send(id=request["id"], result={"configOptions": [in_v1(MODEL) | {"currentValue": "deep"}]})
        await setting
        assert values(session) == {"model": "deep", "mode": "ask"}


@requirement("CONF-V1-05")
async def test_an_option_of_category_mode_is_set_as_an_option() -> None:
    async with opened(1) as (client, agent):
        mode = in_v1(MODEL) | {"id": "how", "category": "mode", "currentValue": "fast"}
        session = await begun(client, agent, modes=MODES, configOptions=[mode])
        assert values(session) == {"how": "fast"}
        setting = asyncio.ensure_future(session.set_config("how", "deep"))
        request = await agent.expect("session/set_config_option")
        agent.send(id=request["id"], error={"code": -32602, "message": "no"})
        with pytest.raises(CallFailed):
            await setting
        assert values(session) == {"how": "fast"}


async def test_a_change_that_is_given_up_is_cancelled_at_the_agent_and_a_lost_link_ends_it() -> None:
    async with opened() as (client, agent):
        session = await begun(client, agent, configOptions=[MODEL])
        setting = asyncio.ensure_future(session.set_config("model", "deep"))
        request = await agent.expect("session/set_config_option")
        setting.cancel()
        cancelled = await agent.expect("$/cancel_request")
        assert cancelled["params"] == {"requestId": request["id"]}
        agent.send(id=request["id"], error={"code": -32800, "message": "Request cancelled"})
        setting = asyncio.ensure_future(session.set_config("model", "deep"))
        await agent.expect("session/set_config_option")
        await agent.transport.aclose()
        with pytest.raises(LinkLost):
            await setting
        assert values(session) == {"model": "fast"}


@pytest.mark.parametrize("result", [{}, {"configOptions": "many"}, {"configOptions": None}])
async def test_an_answer_that_is_no_list_changes_nothing(result: Any) -> None:
    async with opened() as (client, agent):
        session = await begun(client, agent, configOptions=[MODEL])
        setting = asyncio.ensure_future(session.set_config("model", "deep"))
        request = await agent.expect("session/set_config_option")
        agent.send(id=request["id"], result=result)
        with pytest.raises(InvalidResult):
            await setting
        assert values(session) == {"model": "fast"}


async def test_what_an_answer_tells_on_resume_is_newer_than_what_was_replayed() -> None:
    async with opened(capabilities={"session": {}}) as (client, agent):
        loading = asyncio.ensure_future(client.load_session("s", "/"))
        request = await agent.expect("session/resume")
        agent.told("config_option_update", configOptions=[MODEL])
        agent.told("available_commands_update", availableCommands=[{"name": "a", "description": "A"}])
        commands = [{"type": "command", "name": "b", "description": "B"}]
        answer = {"configOptions": [MODEL | {"currentValue": "deep"}], "availableCommands": commands}
        agent.send(id=request["id"], result=answer)
        session = await loading
        assert values(session) == {"model": "deep"}
        assert session.commands == [v2.Command(name="b", description="B")]


@requirement("CMD-V2-03")
async def test_a_command_of_an_unknown_type_is_kept_and_not_run() -> None:
    async with opened() as (client, agent):
        strange = {"type": "menu", "name": "pick", "description": "Pick one"}
        session = await begun(client, agent, availableCommands=[strange])
        assert session.commands == [Unknown(strange)]
        with pytest.raises(LocalError):
            await session.command("pick")


@requirement("CONF-04")
def test_options_are_shown_in_the_agent_s_order_with_what_belongs_to_the_model_beside_it() -> None:
    def option(id: str, category: str | None = None) -> v2.SessionConfigOption:
        return v2.SessionConfigBoolean(
            config_id=v2.SessionConfigId(id),
            name=id,
            current_value=False,
            category=None if category is None else v2.SessionConfigOptionCategory(category),
        )

    given = [
        option("context", "model_config"),
        option("mode", "mode"),
        option("model", "model"),
        option("other"),
        option("second", "model"),
        option("speed", "model_config"),
        Unknown(SLIDER),
    ]
    ids = ["mode", "model", "context", "speed", "other", "second", "heat"]
    shown = [each["configId"] if isinstance(each, dict) else each.config_id for each in arranged(given)]
    assert shown == ids
    assert arranged(given[:2]) == given[:2], "without a model nothing moves"
