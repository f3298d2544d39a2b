"""Config options and modes, as an agent offers them and clients set them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentSession, AgentTurn
from antiphon.agent.options import OptionHandler
from antiphon.errors import InvalidParams, LocalError
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from antiphon.stores.memory import MemoryStore
from tests.agent.talk import Talk, client, session
from tests.agent.test_sessions import Full
from tests.requirements.marks import requirement

LOUD = v2.SessionConfigBoolean(config_id=v2.SessionConfigId("loud"), name="Loud", current_value=False)
BOOLEAN = {"clientCapabilities": {"session": {"configOptions": {"boolean": {}}}}}


def configured(on_model: OptionHandler | None = None, **options: Any) -> Agent:
    """An agent with three options. `on_model` is asked about changes of the first."""
    agent = Agent("configured", version="1.0", **options)
    model = agent.config("model", name="Model", category="model", options={"fast": "Fast", "deep": "Deep"})
    if on_model is not None:
        model(on_model)
    agent.config(
        "mode",
        name="Mode",
        category="mode",
        options={"Careful": {"ask": "Ask first", "plan": "Plan"}, "Free": {"code": "Code"}},
        default="code",
    )
    agent.config("loud", name="Loud", default=False)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        if turn.prompt.text.startswith("set "):
            _, id, value = turn.prompt.text.split()
            await turn.session.set_config(id, value)
        async with turn.message() as message:
            await message.write(str(dict(turn.session.config)))

    return agent


def values(options: list[dict[str, Any]]) -> dict[str, Any]:
    return {option.get("configId", option.get("id")): option["currentValue"] for option in options}


async def refusal(talk: Talk, id: str, method: str, **params: Any) -> tuple[int, str]:
    talk.send(id=id, method=method, params=params)
    error = (await talk.answer_to(id))["error"]
    return error["code"], error["message"]


def option_update(value: str, *, id: str = "model") -> Any:
    def fits(frame: dict[str, Any]) -> bool:
        update = frame.get("params", {}).get("update", {})
        return (
            update.get("sessionUpdate") == "config_option_update"
            and values(update["configOptions"]).get(id) == value
        )

    return fits


DEFAULTS = {"model": "fast", "mode": "code", "loud": False}


# --- what is offered ---------------------------------------------------------------------------------


@requirement("CONF-V2-01", "CONF-V2-04", "CONF-02")
async def test_a_v2_session_begins_with_its_options_and_their_defaults() -> None:
    async with client(configured()) as talk:
        result = await talk.call("new", "session/new", cwd="/", mcpServers=[])
        model, mode, loud = result["configOptions"]
        assert model == {
            "type": "select",
            "configId": "model",
            "name": "Model",
            "category": "model",
            "currentValue": "fast",
            "options": [{"value": "fast", "name": "Fast"}, {"value": "deep", "name": "Deep"}],
        }
        assert [(group["groupId"], len(group["options"])) for group in mode["options"]] == [
            ("Careful", 2),
            ("Free", 1),
        ]
        assert loud == {"type": "boolean", "configId": "loud", "name": "Loud", "currentValue": False}
        assert "modes" not in result, "CONF-V2-06"


@requirement("CONF-V1-01", "CONF-V1-04", "CONF-V1-06")
async def test_a_v1_session_has_modes_beside_its_options() -> None:
    async with client(configured(), 1) as talk:
        result = await talk.call("new", "session/new", cwd="/", mcpServers=[])
        assert [option["id"] for option in result["configOptions"]] == ["model", "mode"], "no boolean unasked"
        assert [group["group"] for group in result["configOptions"][1]["options"]] == ["Careful", "Free"]
        assert result["modes"] == {
            "currentModeId": "code",
            "availableModes": [
                {"id": "ask", "name": "Ask first"},
                {"id": "plan", "name": "Plan"},
                {"id": "code", "name": "Code"},
            ],
        }


@requirement("CONF-V1-06")
async def test_a_v1_client_that_asks_for_booleans_gets_and_sets_them() -> None:
    async with client(configured(), 1, **BOOLEAN) as talk:
        result = await talk.call("new", "session/new", cwd="/", mcpServers=[])
        assert values(result["configOptions"]) == DEFAULTS
        id = result["sessionId"]
        answer = await talk.call(
            1, "session/set_config_option", sessionId=id, configId="loud", type="boolean", value=True
        )
        assert values(answer["configOptions"]) == DEFAULTS | {"loud": True}


async def test_an_agent_without_options_names_none() -> None:
    agent = Agent("plain")
    for version in (1, 2):
        async with client(agent, version) as talk:
            result = await talk.call("new", "session/new", cwd="/", mcpServers=[])
            assert list(result) == ["sessionId"]
            refused = await refusal(
                talk,
                "set",
                "session/set_config_option",
                sessionId=result["sessionId"],
                configId="model",
                type="id",
                value="fast",
            )
            assert refused[0] == -32602


@requirement("CONF-V2-04", "CONF-02")
@pytest.mark.parametrize(
    "declared",
    [
        {"options": {}},
        {"options": {"Group": {}}},
        {"options": {"a": "A"}, "default": "b"},
        {"options": {"One": {"a": "A"}, "Two": {"a": "A"}}},
        {"options": {"One": {"a": "A"}, "b": "B"}},
        {"options": None},
        {"options": None, "default": "yes"},
        {"options": {"a": "A"}, "category": "colour"},
        {"options": ["a"]},
        {"options": "ab"},
        {"options": []},
        {"options": {"a": 1}},
        {"options": {"Group": {"a": None}}},
        {"options": [v2.SessionConfigSelectOption(value=v2.SessionConfigValueId("a"), name="A"), "b"]},
    ],
)
def test_what_could_not_be_offered_is_refused_where_it_is_declared(
    declared: dict[str, Any],
) -> None:
    agent = Agent("wrong")
    with pytest.raises(LocalError):
        agent.config("model", **declared)


def test_an_option_is_declared_once_with_one_handler() -> None:
    agent = Agent("twice")
    option = agent.config("model", options={"fast": "Fast"}, category="_custom")

    @option
    async def first(session: AgentSession, value: str) -> None: ...

    with pytest.raises(LocalError):
        option(first)
    with pytest.raises(LocalError):
        agent.config("model", default=True)


# --- what clients set --------------------------------------------------------------------------------


@requirement("CONF-01", "CONF-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_answer_carries_the_complete_list_and_everyone_gets_it(
    version: int,
) -> None:
    asked: list[tuple[str, str]] = []

    async def changed(session: AgentSession, value: str) -> None:
        asked.append((session.config["model"], value))

    agent = configured(changed)
    typed = {} if version == 1 else {"type": "id"}
    async with agent.serving(), session(agent, version) as (talk, id), client(agent) as other:
        await other.call("load", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        result = await talk.call(
            1, "session/set_config_option", sessionId=id, configId="model", value="deep", **typed
        )
        assert values(result["configOptions"])["model"] == "deep"
        assert len(result["configOptions"]) == (2 if version == 1 else 3)
        await other.until(option_update("deep"))
        assert asked == [("fast", "deep")], "it is asked before anything has changed"
        # What it is already is no change: nobody is asked or told.
        await talk.call(2, "session/set_config_option", sessionId=id, configId="model", value="deep", **typed)
        assert len(asked) == 1
        assert talk.story().count("config_option_update") == 1, "before the answer, in the stream"
        assert talk.story().index("config_option_update") < talk.story().index("= 1")


@requirement("CONF-V1-02", "CONF-V1-03", "CONF-V1-04")
async def test_a_mode_that_is_set_is_told_to_v1_and_v2_alike() -> None:
    agent = configured()
    async with (
        agent.serving(),
        session(agent, 1) as (talk, id),
        client(agent) as new,
        client(agent, 1) as old,
    ):
        await new.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        loaded = await old.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
        assert loaded["modes"]["currentModeId"] == "code"
        assert await talk.call(1, "session/set_mode", sessionId=id, modeId="plan") == {}
        await new.until(option_update("plan", id="mode"))
        assert (await old.update("current_mode_update"))["currentModeId"] == "plan"
        # By the option it is the same thing.
        answer = await old.call(2, "session/set_config_option", sessionId=id, configId="mode", value="ask")
        assert values(answer["configOptions"])["mode"] == "ask"
        assert (await talk.update("current_mode_update", currentModeId="ask")) is not None
        assert (await refusal(talk, "x", "session/set_mode", sessionId=id, modeId="fly"))[0] == -32602
        assert "current_mode_update" not in " ".join(new.story()), "CONF-V2-06"


@requirement("CONF-V2-06")
async def test_there_is_no_set_mode_in_v2() -> None:
    async with session(configured()) as (talk, id):
        assert (await refusal(talk, "x", "session/set_mode", sessionId=id, modeId="plan"))[0] == -32601


@requirement("CONF-V2-02", "CONF-V2-03")
@pytest.mark.parametrize(
    "wanted",
    [
        {"configId": "colour", "type": "id", "value": "red"},
        {"configId": "model", "type": "id", "value": "slow"},
        {"configId": "model", "type": "boolean", "value": True},
        {"configId": "loud", "type": "id", "value": "yes"},
        {"configId": "loud", "type": "boolean", "value": "yes"},
        {"configId": "model", "type": "slider", "value": 3},
        {"configId": "model", "value": "deep"},
    ],
)
async def test_what_cannot_be_set_is_refused_and_changes_nothing(
    wanted: dict[str, Any],
) -> None:
    async with session(configured()) as (talk, id):
        assert (await refusal(talk, "x", "session/set_config_option", sessionId=id, **wanted))[0] == -32602
        result = await talk.call(
            1, "session/set_config_option", sessionId=id, configId="model", type="id", value="fast"
        )
        assert values(result["configOptions"]) == DEFAULTS
        assert "config_option_update" not in talk.story()


@requirement("CONF-V1-07")
async def test_an_unknown_type_with_a_string_reads_as_an_id() -> None:
    async with session(configured(), 1) as (talk, id):
        result = await talk.call(
            1, "session/set_config_option", sessionId=id, configId="model", type="word", value="deep"
        )
        assert values(result["configOptions"])["model"] == "deep"


@requirement("CONF-V2-02")
@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        (InvalidParams("not in your plan"), -32602, "not in your plan"),
        (LocalError("secret"), -32602, "refuses"),
        (RuntimeError("secret"), -32603, "Internal error"),
    ],
)
async def test_a_handler_may_refuse_and_nothing_is_changed(failure: Exception, code: int, says: str) -> None:
    async def refuse(session: AgentSession, value: str) -> None:
        raise failure

    agent = configured(refuse)
    async with session(agent) as (talk, id):
        params = {"sessionId": id, "configId": "model", "type": "id", "value": "deep"}
        found, message = await refusal(talk, "x", "session/set_config_option", **params)
        assert found == code
        assert says in message
        assert "secret" not in message
        live = agent.find(id)
        assert live is not None
        assert dict(live.config) == DEFAULTS
        assert "config_option_update" not in talk.story()


async def test_a_change_that_is_given_up_while_the_handler_decides_changes_nothing() -> None:
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def decide(session: AgentSession, value: str) -> None:
        begun.set()
        await let_go.wait()

    agent = configured(decide)
    async with session(agent) as (talk, id):
        params = {"sessionId": id, "configId": "model", "type": "id", "value": "deep"}
        talk.send(id=1, method="session/set_config_option", params=params)
        await begun.wait()
        talk.send(
            id=2, method="session/set_config_option", params=params | {"configId": "mode", "value": "ask"}
        )
        talk.send(method="$/cancel_request", params={"requestId": 1})
        assert (await talk.answer_to(1))["error"]["code"] == -32800
        second = await talk.answer_to(2)
        assert values(second["result"]["configOptions"]) == DEFAULTS | {"mode": "ask"}


async def test_two_clients_that_set_at_once_end_with_the_same_list() -> None:
    agent = configured()
    async with agent.serving(), session(agent) as (one, id), client(agent) as two:
        await two.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        for number in range(20):
            value = "deep" if number % 2 == 0 else "fast"
            for talk, config, wanted in ((one, "model", value), (two, "mode", ("ask", "plan")[number % 2])):
                params = {"sessionId": id, "configId": config, "type": "id", "value": wanted}
                talk.send(id=number, method="session/set_config_option", params=params)
        for talk in (one, two):
            lists = []
            await talk.answer_to(19)
            for frame in talk.seen:
                update = frame.get("params", {}).get("update", {})
                shown = update.get("configOptions") or frame.get("result", {}).get("configOptions")
                if shown:
                    lists.append(values(shown))
            told = [one for one, before in zip(lists[1:], lists, strict=False) if one != before]
            assert all(
                sum(a[key] != b[key] for key in a) <= 1 for a, b in zip(told[1:], told, strict=False)
            ), "an answer never runs ahead of the updates, nor behind them"


@requirement("RPC-25")
async def test_a_session_that_is_not_open_here_has_no_options() -> None:
    agent = configured()
    async with client(agent) as talk:
        params = {"sessionId": "nowhere", "configId": "model", "type": "id", "value": "deep"}
        assert (await refusal(talk, "x", "session/set_config_option", **params))[0] == -32002


async def test_closing_the_session_while_the_handler_decides_answers_both() -> None:
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def decide(session: AgentSession, value: str) -> None:
        begun.set()
        await let_go.wait()

    agent = configured(decide)
    async with agent.serving(), session(agent) as (talk, id):
        params = {"sessionId": id, "configId": "model", "type": "id", "value": "deep"}
        talk.send(id=1, method="session/set_config_option", params=params)
        await begun.wait()
        await talk.call(2, "session/close", sessionId=id)
        let_go.set()
        assert "error" in await talk.answer_to(1)


# --- what the agent sets, and what is kept ---------------------------------------------------------------


@requirement("CONF-01", "CONF-V1-03")
async def test_the_agent_sets_an_option_itself() -> None:
    agent = configured()
    async with agent.serving(), session(agent, 1) as (old, id), client(agent) as new:
        await new.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        new.prompt(1, id, "set mode ask")
        update = await new.update("config_option_update")
        assert values(update["configOptions"]) == DEFAULTS | {"mode": "ask"}
        assert (await old.update("current_mode_update"))["currentModeId"] == "ask"
        live = agent.find(id)
        assert live is not None
        for wrong in (("mode", "fly"), ("colour", "red"), ("loud", "yes")):
            with pytest.raises(LocalError):
                await live.set_config(*wrong)
        with pytest.raises(KeyError):
            live.config["colour"]
        with pytest.raises(LocalError):
            await live.update(v2.ConfigOptionUpdate(config_options=[LOUD, LOUD]))


@requirement("CONF-V1-01")
@pytest.mark.parametrize("version", [1, 2])
async def test_values_outlive_the_process_and_are_told_on_load_and_resume(
    version: int, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    first = configured(store=SQLiteStore(path))
    async with first.serving(), session(first) as (talk, id):
        params = {"sessionId": id, "type": "id"}
        await talk.call(1, "session/set_config_option", configId="model", value="deep", **params)
        await talk.call(2, "session/set_config_option", configId="mode", value="plan", **params)
    again = configured(store=SQLiteStore(path))
    async with again.serving(), client(again, version) as talk:
        for method in ("session/resume", "session/load" if version == 1 else "session/resume"):
            result = await talk.call(method, method, sessionId=id, cwd="/", mcpServers=[])
            assert values(result["configOptions"])["model"] == "deep"
            if version == 1:
                assert result["modes"]["currentModeId"] == "plan"
        live = again.find(id)
        assert live is not None
        assert live.config["mode"] == "plan"


@pytest.mark.parametrize("history", [{}, {"replayFrom": {"type": "start"}}])
async def test_a_session_keeps_the_values_that_a_later_version_of_the_agent_still_offers(
    history: dict[str, Any],
) -> None:
    store = MemoryStore()
    first = configured(store=store)
    async with client(first) as talk:
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        params = {"sessionId": id, "type": "id"}
        await talk.call(1, "session/set_config_option", configId="model", value="deep", **params)
        await talk.call(2, "session/set_config_option", configId="mode", value="plan", **params)
        await talk.call(3, "session/close", sessionId=id)
    later = Agent("later", store=store)
    later.config("model", options={"deep": "Deeper", "deepest": "Deepest"}, default="deepest")
    later.config("mode", options={"code": "Code", "ask": "Ask"}, category="mode")
    async with client(later) as talk:
        result = await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[], **history)
        assert values(result["configOptions"]) == {"model": "deep", "mode": "code"}
        if history:  # the replay may have shown what was before; then the news follows
            await talk.until(option_update("code", id="mode"))


async def test_what_is_set_with_nobody_there_is_found_by_who_comes_later() -> None:
    agent = configured()
    async with agent.serving():
        async with session(agent) as (_, id):
            pass
        live = agent.find(id)
        assert live is not None
        await live.set_config("mode", "plan")
        async with client(agent, 1) as talk:
            result = await talk.call("l", "session/load", sessionId=id, cwd="/", mcpServers=[])
            assert result["modes"]["currentModeId"] == "plan"


@pytest.mark.parametrize("version", [1, 2])
async def test_a_change_that_cannot_be_kept_is_answered_with_an_error_and_found_undone(version: int) -> None:
    store = Full()
    agent = configured(store=store)
    typed = {} if version == 1 else {"type": "id"}
    async with session(agent, version) as (talk, id):
        store.full = True
        params = {"sessionId": id, "configId": "model", "value": "deep", **typed}
        assert (await refusal(talk, "x", "session/set_config_option", **params))[0] == -32603
        store.full = False
        result = await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        assert values(result["configOptions"])["model"] == "fast"
        assert "config_option_update" not in talk.story()
