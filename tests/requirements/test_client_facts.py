"""Sections 12 to 15 as they bind a client: commands, options, usage, info, notices and compactions."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.client import ClientSession, TurnEnd
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.requirements.agent_by_hand import Heard, opened, session, story, text, whole
from tests.requirements.marks import requirement

# --- commands --------------------------------------------------------------------------------------


@requirement("CMD-V2-03")
async def test_strange_commands_and_inputs_are_kept_whole_beside_the_known() -> None:
    strange = {"type": "_macro", "name": "deploy", "description": "Ship it", "keys": ["d"]}
    form = {"type": "_form", "fields": [1]}
    async with session() as (of, agent):
        agent.update(
            of,
            "available_commands_update",
            availableCommands=[
                {"type": "command", "name": "plan", "description": "Plan it"},
                strange,
                {"type": "command", "name": "ask", "description": "Ask", "input": form},
                {
                    "type": "command",
                    "name": "say",
                    "description": "Say",
                    "input": {"type": "text", "hint": "x"},
                },
            ],
        )
        await agent.settled(of)
        assert of.commands == [
            v2.Command(name="plan", description="Plan it"),
            Unknown(strange),
            v2.Command(name="ask", description="Ask", input=Unknown(form)),
            v2.Command(name="say", description="Say", input=v2.TextCommandInput(hint="x")),
        ]


@requirement("CMD-V2-03")
async def test_commands_come_with_the_session_and_one_without_a_type_is_a_command() -> None:
    """C-07: the older drafts have no type."""
    async with opened() as (client, agent):
        command = {"name": "plan", "description": "Plan it"}
        of = await agent.new_session(client, availableCommands=[{"type": "command", **command}])
        assert of.commands == [v2.Command(name="plan", description="Plan it")]
        agent.update(of, "available_commands_update", availableCommands=[{**command, "name": "ask"}])
        await agent.settled(of)
        assert of.commands == [v2.Command(name="ask", description="Plan it")]


@requirement("CMD-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_command_is_ordinary_text_of_a_prompt_and_other_blocks_go_with_it(
    version: int,
) -> None:
    async with session(version) as (of, agent):
        image = v2.ImageContent(data="aGk=", mime_type="image/png")
        agent.meanwhile(of.prompt("/plan the release", image))
        assert (await agent.request("session/prompt"))["params"] == {
            "sessionId": "s",
            "prompt": [
                text("/plan the release"),
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            ],
        }


# --- options ---------------------------------------------------------------------------------------


def option(id: str, version: int, **category: Any) -> dict[str, Any]:
    name = "id" if version == 1 else "configId"
    values = [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]
    return {name: id, "name": id, "type": "select", "currentValue": "a", "options": values, **category}


@requirement("CONF-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_option_is_there_whatever_its_category_and_in_the_agents_order(version: int) -> None:
    async with session(version) as (of, agent):
        options = [
            option("z", version, category="_mine"),
            option("m", version, category="model"),
            option("none", version),
            option("null", version, category=None),
            option("new", version, category="not_yet_defined"),
            option("t", version, category="thought_level"),
        ]
        agent.update(of, "config_option_update", configOptions=options)
        await agent.settled(of)
        assert [(each.config_id, each.category) for each in of.config_options] == [
            ("z", "_mine"),
            ("m", "model"),
            ("none", None),
            ("null", None),
            ("new", "not_yet_defined"),
            ("t", "thought_level"),
        ]


@requirement("CONF-V2-05")
async def test_an_option_of_an_unknown_type_is_kept_whole() -> None:
    slider = {"configId": "heat", "name": "Heat", "type": "_slider", "currentValue": 7, "max": 9}
    async with opened() as (client, agent):
        of = await agent.new_session(client, configOptions=[option("m", 2), slider])
        assert [getattr(each, "config_id", None) for each in of.config_options] == ["m", None]
        assert of.config_options[1] == Unknown(slider)


MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}


def chosen(of: ClientSession) -> list[tuple[str, str]]:
    return [(each.config_id, each.current_value) for each in of.config_options]


@requirement("CONF-V1-05")
async def test_where_modes_and_options_are_given_the_options_are_used() -> None:
    async with opened(1) as (client, agent):
        options = [option("how", 1, category="mode"), option("m", 1, category="model")]
        of = await agent.new_session(client, modes=MODES, configOptions=options)
        assert chosen(of) == [("how", "a"), ("m", "a")]


@requirement("CONF-V1-05")
@pytest.mark.parametrize("key", ["currentModeId", "modeId"])
async def test_modes_alone_are_an_option_and_either_name_of_the_current_one_is_read(
    key: str,
) -> None:
    """C-19: the documentation calls it otherwise than the schema."""
    async with opened(1) as (client, agent):
        of = await agent.new_session(client, modes=MODES)
        assert chosen(of) == [("mode", "ask")]
        agent.update(of, "current_mode_update", **{key: "code"})
        await agent.settled(of)
        assert chosen(of) == [("mode", "code")]


# --- usage and info --------------------------------------------------------------------------------


@requirement("USAGE-04")
async def test_a_cost_that_is_not_told_stays_and_null_clears_it() -> None:
    async with session() as (of, agent):

        async def told(**fields: Any) -> tuple[int, int, Any]:
            agent.update(of, "usage_update", **fields)
            await agent.settled(of)
            assert of.usage is not None
            return of.usage.used, of.usage.size, of.usage.cost

        assert of.usage is None
        cost = {"amount": 0.25, "currency": "EUR"}
        money = v2.Cost(amount=0.25, currency="EUR")
        assert await told(used=1, size=9) == (1, 9, None)
        assert await told(used=2, size=9, cost=cost) == (2, 9, money)
        assert await told(used=3, size=8) == (3, 8, money)
        assert await told(used=4, size=8, cost=None) == (4, 8, None)


@requirement("USAGE-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_tokens_of_a_turn_and_the_window_of_the_session_are_two_things(
    version: int,
) -> None:
    tokens = {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}
    usage = v2.Usage(total_tokens=30, input_tokens=20, output_tokens=10)
    async with session(version) as (of, agent):
        turn = await agent.prompted(of, "hi")
        if version == 2:
            agent.state(of, "running")
        agent.update(of, "usage_update", used=100, size=1000)
        if version == 2:
            agent.state(of, "idle", stopReason="end_turn", usage=tokens)
            agent.state(of, "idle", stopReason="end_turn", usage=tokens)
        else:
            agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn", "usage": tokens})
        assert await turn.drained() == TurnEnd(stop_reason=v2.StopReason.END_TURN, usage=usage)
        await agent.settled(of)
        assert turn.end == TurnEnd(stop_reason=v2.StopReason.END_TURN, usage=usage)
        assert of.usage is not None
        assert (of.usage.used, of.usage.size) == (100, 1000)


@requirement("INFO-01")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_title_that_is_not_told_stays_and_null_clears_it(version: int) -> None:
    async with session(version) as (of, agent):

        async def told(**fields: Any) -> Any:
            agent.update(of, "session_info_update", **fields)
            await agent.settled(of)
            info = of.fold.facts.info
            assert info is not None
            return of.title, info.updated_at

        at = "2026-11-15T10:00:00Z"
        assert await told(title="Fix it", updatedAt=at) == ("Fix it", at)
        assert await told() == ("Fix it", at)
        assert await told(title=None) == (None, at)
        assert await told(title="Again", updatedAt=None) == ("Again", None)


@requirement("INFO-01")
async def test_in_v2_the_meta_of_the_session_is_patched_by_its_keys() -> None:
    async with session() as (of, agent):
        agent.update(of, "session_info_update", _meta={"a": 1, "b": {"deep": 1}})
        agent.update(of, "session_info_update", _meta={"a": None, "b": {"other": 1}, "c": 2})
        agent.update(of, "session_info_update", title="T", _meta={})
        await agent.settled(of)
        info = of.fold.facts.info
        assert info is not None
        assert whole(info) == {
            "sessionUpdate": "session_info_update",
            "title": "T",
            "updatedAt": None,
            "_meta": {"b": {"other": 1}, "c": 2},
        }


# --- notices and compactions -----------------------------------------------------------------------


@requirement("NOTE-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_equal_notices_are_two_events_and_none_is_answered(version: int) -> None:
    async with session(version) as (of, agent):
        heard = Heard(of, agent)
        await agent.settled(of)
        before = len(agent.seen)
        for _ in range(2):
            agent.update(of, "notice", severity="warning", title="Slow today")
        agent.says(of, "Anyway.", messageId="a")
        await heard.until(lambda event: isinstance(event.update, v2.AgentMessageChunk))
        slow = v2.Notice(severity=v2.NoticeSeverity.WARNING, title="Slow today")
        assert [event.update for event in heard.events[:-1]] == [slow, slow]
        assert len(agent.seen) == before
        assert story(of) == [("agent", "a", "Anyway.")], "a notice is no message"


@requirement("COMP-03", "COMP-04")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_compaction_keeps_its_place_and_is_patched_there(version: int) -> None:
    async with session(version) as (of, agent):

        def compacted() -> Any:
            return [whole(compaction) for compaction in of.fold.compactions]

        agent.update(of, "compaction_summary_chunk", compactionId="c", content=text("We "))
        agent.says(of, "Going on.", messageId="a")
        agent.update(of, "compaction_summary_chunk", compactionId="c", content=text("talked."))
        await agent.settled(of)
        expected = {
            "sessionUpdate": "compaction_update",
            "compactionId": "c",
            "status": "in_progress",
            "summary": [text("We talked.")],
            "error": None,
            "_meta": None,
        }
        assert compacted() == [expected]
        agent.update(of, "compaction_update", compactionId="c", status="completed")
        await agent.settled(of)
        assert compacted() == [{**expected, "status": "completed"}]
        assert [item.key for item in of.fold.items] == ["compaction/c", "message/agent/a"]
        agent.update(of, "compaction_update", compactionId="c", status="completed", summary=None)
        await agent.settled(of)
        assert compacted() == [{**expected, "status": "completed", "summary": None}]
