"""Slash commands, as an agent offers them and prompts name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.agent.declarations import called
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.stores import SQLiteStore
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

REVIEW_V2 = {
    "type": "command",
    "name": "review",
    "description": "Look at the changes",
    "input": {"type": "text", "hint": "which ones"},
}
REVIEW_V1 = {"name": "review", "description": "Look at the changes", "input": {"hint": "which ones"}}


def commanded(**options: Any) -> Agent:
    agent = Agent("commanded", **options)

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say(f"prompt {turn.prompt.text!r}")

    @agent.command("review", description="Look at the changes", hint="which ones")
    async def review(turn: AgentTurn, rest: str) -> str:
        await turn.say(f"review {rest!r} with {len(turn.prompt.content)}")
        return "max_tokens"

    @agent.command("stop", description="Stop")
    async def stop(turn: AgentTurn, rest: str) -> None:
        turn.stop("refusal")

    return agent


async def said(talk: Talk, id: str, text: str, **kind: Any) -> str:
    talk.prompt(text, id, text)
    message = await talk.until(
        lambda frame: (
            frame.get("params", {}).get("update", {}).get("sessionUpdate")
            in ("agent_message", "agent_message_chunk")
        )
    )
    content = message["params"]["update"]["content"]
    return str((content[0] if isinstance(content, list) else content)["text"])


def shown(commands: list[dict[str, Any]]) -> list[str]:
    return [command["name"] for command in commands]


@requirement("CMD-03")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/review", ("review", "")),
        ("/review the  last one ", ("review", "the  last one ")),
        ("/review\n\n two\nlines", ("review", "two\nlines")),
        ("/mcp:review x", ("mcp:review", "x")),
        ("/", None),
        ("/ review", None),
        (" /review", None),
        ("see /review", None),
        ("", None),
    ],
)
def test_the_input_is_all_text_behind_the_name_and_the_whitespace_after_it(
    text: str, found: tuple[str, str] | None
) -> None:
    assert called(text) == found


@requirement("CMD-V2-01", "CMD-V2-02")
async def test_a_v2_session_begins_with_its_commands() -> None:
    async with client(commanded()) as talk:
        result = await talk.call("new", "session/new", cwd="/", mcpServers=[])
        assert result["availableCommands"] == [
            REVIEW_V2,
            {"type": "command", "name": "stop", "description": "Stop"},
        ]
        again = await talk.call("r", "session/resume", sessionId=result["sessionId"], cwd="/", mcpServers=[])
        assert again["availableCommands"] == result["availableCommands"]


@requirement("CMD-V1-01", "CMD-01")
async def test_a_v1_client_is_told_them_behind_the_answer() -> None:
    async with session(commanded(), 1) as (talk, id):
        update = await talk.update("available_commands_update")
        assert update["availableCommands"] == [REVIEW_V1, {"name": "stop", "description": "Stop"}]
        await talk.call("load", "session/load", sessionId=id, cwd="/", mcpServers=[])
        await talk.call("resume", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        await talk.update("available_commands_update")
        assert talk.story() == [
            "= init",
            "= new",
            "available_commands_update",
            "available_commands_update",  # of the replay
            "= load",
            "= resume",
            "available_commands_update",
        ]


@requirement("CMD-02", "CMD-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_that_names_a_command_runs_it(version: int) -> None:
    async with session(commanded(), version) as (talk, id):
        assert await said(talk, id, "/review the last one ") == "review 'the last one ' with 1"
        assert await said(talk, id, "/unknown x") == "prompt '/unknown x'"
        assert await said(talk, id, "look at /review") == "prompt 'look at /review'"
        assert await said(talk, id, "/reviews") == "prompt '/reviews'"
        talk.prompt("stop", id, "/stop")
        if version == 1:
            assert (await talk.answer_to("/review the last one "))["result"]["stopReason"] == "max_tokens"
            assert (await talk.answer_to("stop"))["result"]["stopReason"] == "refusal"
        else:
            await talk.update("state_update", state="idle", stopReason="refusal")


@requirement("CMD-02")
async def test_other_blocks_may_go_with_a_command() -> None:
    async with session(commanded()) as (talk, id):
        link = {"type": "resource_link", "uri": "file:///a.py", "name": "a.py"}
        parts = [link, {"type": "text", "text": "/review this"}, {"type": "text", "text": "and that"}]
        talk.send(id=1, method="session/prompt", params={"sessionId": id, "prompt": parts})
        message = await talk.update("agent_message")
        assert message["content"][0]["text"] == "review 'this\\nand that' with 3"


@requirement("CMD-01")
async def test_a_session_may_offer_others_and_the_list_replaces_the_earlier_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    agent = commanded(store=SQLiteStore(path))
    async with agent.serving(), session(agent) as (talk, id):
        live = agent.find(id)
        assert live is not None
        await live.set_commands(["review", v2.Command(name="deploy", description="Ship it")])
        update = await talk.update("available_commands_update")
        assert update["availableCommands"][0] == REVIEW_V2
        assert shown(update["availableCommands"]) == ["review", "deploy"]
        assert await said(talk, id, "/stop") == "prompt '/stop'", "it is not offered here any more"
        assert await said(talk, id, "/deploy now") == "prompt '/deploy now'"
        assert (await said(talk, id, "/review it")).startswith("review")
    again = commanded(store=SQLiteStore(path))
    async with again.serving(), client(again) as talk:
        result = await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        assert shown(result["availableCommands"]) == ["review", "deploy"], "they were this session's own"


async def test_commands_that_were_declared_are_those_of_the_agent_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    agent = commanded(store=SQLiteStore(path))
    async with agent.serving(), session(agent) as (_, id):
        pass
    later = Agent("later", store=SQLiteStore(path))

    @later.command("explain", description="Explain")
    async def explain(turn: AgentTurn, rest: str) -> None: ...

    async with later.serving(), client(later) as talk:
        result = await talk.call("r", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        assert shown(result["availableCommands"]) == ["explain"]


@requirement("CMD-V2-01")
def test_a_name_has_no_slash_and_no_spaces_and_is_declared_once() -> None:
    agent = commanded()
    for name in ("/review", "two words", "", "tab\t", "review"):
        with pytest.raises(LocalError):
            agent.command(name, description="…")


@requirement("CMD-V2-01")
async def test_a_session_s_own_commands_are_held_to_the_same() -> None:
    agent = commanded()
    async with session(agent) as (talk, id):
        live = agent.find(id)
        assert live is not None
        twice = v2.Command(name="a", description="…")
        for wrong in (["nothing"], [twice, twice], [v2.Command(name="a b", description="…")]):
            with pytest.raises(LocalError):
                await live.set_commands(wrong)
        assert "available_commands_update" not in talk.story()
