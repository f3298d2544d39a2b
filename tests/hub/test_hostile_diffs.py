"""A diff that cannot be read ends no attachment: v1 clients get it as text, and what follows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2
from tests.hub.doors import DEADLINE, doors

PATCH = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -{0} +{0} @@\n+two\n"


@pytest.mark.parametrize("span", ["0,0", "9" * 5000, f"1,{'9' * 5000}", "٣"])
async def test_a_hunk_with_an_odd_number_does_not_end_the_session_for_a_v1_client(
    tmp_path: Path, span: str
) -> None:
    agent = Agent("differ")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        patch = v2.DiffPatch(format=v2.DiffPatchFormat.GIT_PATCH, text=PATCH.format(span))
        diff = v2.Diff(changes=[v2.DiffAdd(path="b/x")], patch=patch)
        call = v2.SessionToolCallUpdate(
            tool_call_id=v2.ToolCallId("t"), title="Write", content=[diff], status=v2.ToolCallStatus.COMPLETED
        )
        await turn.session.update(call)
        await turn.say("written")

    async with (
        asyncio.timeout(DEADLINE),
        doors(tmp_path, agents={"differ": agent}) as at,
        at.talk(version=1) as talk,
    ):
        id = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        talk.prompt("prompt", id, "go")
        assert (await talk.answer_to("prompt"))["result"]["stopReason"] == "end_turn"
        assert talk.text() == "written"
        assert "two" in str(talk.updates())
