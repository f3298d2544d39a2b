"""A session is brought back to its agent: what was chosen holds, and nothing is said twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.operating import sessions_at_agent
from tests.hub.running import AGENT
from tests.hub.test_processes import OLD, hub_of
from tests.hub.test_sharing import told


@pytest.mark.parametrize("how", ["", "--other-ids", "--no-ids"])
async def test_what_a_v1_agent_replays_on_load_is_not_said_twice(tmp_path: Path, how: str) -> None:
    agent = [*OLD, str(tmp_path / "kept.json"), *([how] if how else [])]
    expected = [("user", "one"), ("agent", "ask small heard one")]
    async with hub_of(tmp_path, agent) as (_, client):
        session = await client.new_session("/")
        await (await session.prompt("one")).drained()
        assert told(session) == expected
        turn = await session.prompt("die")
        assert (await turn.drained()).stop_reason == "error"
        expected.append(("user", "die"))
        for word in ("two", "three"):
            await (await session.prompt(word)).drained()
            expected += [("user", word), ("agent", f"ask small heard {word}")]
        assert told(session) == expected
    async with hub_of(tmp_path, agent) as (hub, client):  # another life of the hub
        back = await client.load_session(session.id, "/")
        assert told(back) == expected
        await (await back.prompt("four")).drained()
        assert told(back) == [*expected, ("user", "four"), ("agent", "ask small heard four")]
        ids = [(message.type, message.message_id) for message in back.messages]
        assert len(set(ids)) == len(ids)
        assert await sessions_at_agent(hub, session.id) == ["old-1"]


async def test_a_mode_and_options_that_clients_chose_are_chosen_again(tmp_path: Path) -> None:
    agent = [*OLD, str(tmp_path / "kept.json")]
    async with hub_of(tmp_path, agent) as (_, client):
        session = await client.new_session("/")
        mode = next(id for id, option in session.config.items() if option.category == "mode")
        await session.set_config(mode, "code")
        await session.set_config("model", "large")
        await (await session.prompt("die")).drained()
        turn = await session.prompt("two")
        await turn.drained()
        assert turn.text == "code large heard two"
        assert session.config[mode].current_value == "code"
        assert session.config["model"].current_value == "large"
    async with hub_of(tmp_path, agent) as (_, client):
        back = await client.load_session(session.id, "/")
        turn = await back.prompt("three")
        await turn.drained()
        assert turn.text == "code large heard three"


async def test_what_the_new_agent_does_not_offer_is_left_as_it_is(tmp_path: Path) -> None:
    async with hub_of(tmp_path, [*OLD, str(tmp_path / "kept.json")]) as (_, client):
        session = await client.new_session("/")
        await session.set_config("model", "large")
    async with hub_of(tmp_path, AGENT) as (hub, client):  # another agent altogether
        back = await client.load_session(session.id, "/")
        await (await back.prompt("say hello")).drained()
        assert back.config["model"].current_value == "large"  # it has that one, too
        assert list(back.config) == ["model"]
        assert len(await sessions_at_agent(hub, session.id)) == 2
