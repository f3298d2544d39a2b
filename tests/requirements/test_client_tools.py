"""Sections 8 and 11 as they bind a client: tool calls, their terminals and diffs, and plans."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from antiphon.client import ClientSession
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.requirements.agent_by_hand import AgentByHand, session, story, text, whole
from tests.requirements.marks import requirement

NEW: dict[str, Any] = {
    "sessionUpdate": "tool_call_update",
    "name": None,
    "title": None,
    "kind": "other",
    "status": "pending",
    "content": [],
    "locations": [],
    "rawInput": None,
    "rawOutput": None,
    "capabilities": None,
    "_meta": None,
}
"""A tool call of which nothing was told but its id."""
FULL: dict[str, Any] = {
    "name": "edit_file",
    "title": "Edit a.py",
    "kind": "edit",
    "status": "in_progress",
    "content": [{"type": "content", "content": text("so far")}],
    "locations": [{"path": "/site/a.py", "line": 3}],
    "rawInput": {"path": "/site/a.py", "n": [1, None]},
    "rawOutput": "text",
}


async def held(of: ClientSession, agent: AgentByHand) -> list[Any]:
    await agent.settled(of)
    return [whole(call) for call in of.tool_calls]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@requirement("TOOL-V1-04")
async def test_an_update_of_a_call_never_seen_creates_it() -> None:
    async with session(1) as (of, agent):
        await of.prompt("go")
        agent.update(of, "tool_call_update", toolCallId="t", title="Edit", kind="edit", status="in_progress")
        assert await held(of, agent) == [
            {**NEW, "toolCallId": "t", "title": "Edit", "kind": "edit", "status": "in_progress"}
        ]


@requirement("TOOL-V1-09")
@pytest.mark.parametrize("name", [{}, {"name": None}])
async def test_null_or_no_name_leaves_it_and_so_with_all_of_v1(name: dict[str, None]) -> None:
    async with session(1) as (of, agent):
        await of.prompt("go")
        agent.update(of, "tool_call", toolCallId="t", **FULL)
        made = await held(of, agent)
        assert made == [{**NEW, "toolCallId": "t", **FULL}]
        nothing = dict.fromkeys(["title", "kind", "status", "content", "locations"])
        agent.update(of, "tool_call_update", toolCallId="t", **name, **nothing)
        assert await held(of, agent) == made
        agent.update(of, "tool_call_update", toolCallId="t", name="other_tool")
        assert await held(of, agent) == [{**made[0], "name": "other_tool"}]


@requirement("TOOL-V2-02", "TOOL-V2-03")
async def test_what_is_omitted_stays_null_resets_and_a_value_replaces() -> None:
    async with session() as (of, agent):
        agent.update(of, "tool_call_update", toolCallId="t")
        assert await held(of, agent) == [{**NEW, "toolCallId": "t"}]
        agent.update(of, "tool_call_update", toolCallId="t", **FULL)
        full = {**NEW, "toolCallId": "t", **FULL}
        assert await held(of, agent) == [full]
        agent.update(of, "tool_call_update", toolCallId="t")
        assert await held(of, agent) == [full]
        for field in FULL:
            agent.update(of, "tool_call_update", toolCallId="t", **{field: None})
            full = {**full, field: NEW[field]}
            assert await held(of, agent) == [full]
        agent.update(of, "tool_call_update", toolCallId="t", locations=FULL["locations"])
        agent.update(of, "tool_call_update", toolCallId="t", locations=[])
        assert await held(of, agent) == [{**NEW, "toolCallId": "t"}]


@requirement("TOOL-V2-05", "TOOL-V2-06")
async def test_content_chunks_append_and_create_and_an_update_replaces_all() -> None:
    one, two = ({"type": "content", "content": text(words)} for words in ("one", "two"))
    async with session() as (of, agent):
        agent.update(of, "tool_call_content_chunk", toolCallId="t", content=one)
        agent.update(of, "tool_call_content_chunk", toolCallId="t", content=two)
        assert await held(of, agent) == [{**NEW, "toolCallId": "t", "content": [one, two]}]
        agent.update(of, "tool_call_update", toolCallId="t", content=[two])
        agent.update(of, "tool_call_content_chunk", toolCallId="t", content=one)
        assert await held(of, agent) == [{**NEW, "toolCallId": "t", "content": [two, one]}]


@requirement("TOOL-V2-07", "TOOL-V2-16")
async def test_strange_kinds_statuses_and_items_are_kept_and_still_run() -> None:
    item = {"type": "_chart", "points": [1, 2]}
    async with session() as (of, agent):
        strange = {"kind": "_cook", "status": "_simmering", "content": [item]}
        agent.update(of, "tool_call_update", toolCallId="t", **strange)
        assert await held(of, agent) == [{**NEW, "toolCallId": "t", **strange}]
        assert of.tool_calls[0].content == [Unknown(item)]
        agent.update(of, "tool_call_update", toolCallId="p", status="paused")
        agent.update(of, "tool_call_update", toolCallId="c", status="cancelled")
        await agent.settled(of)
        assert [call.final for call in of.tool_calls] == [False, False, True]


@requirement("TOOL-V2-09")
async def test_a_call_in_idle_changes_no_state_and_opens_no_turn() -> None:
    async with session() as (of, agent):
        for status in ("pending", "in_progress", "completed"):
            agent.update(of, "tool_call_update", toolCallId="t", status=status)
            await agent.settled(of)
            assert (of.state, of.turn) == ("idle", None)


@requirement("DIFF-04")
async def test_a_diff_without_a_patch_is_held_and_is_no_patch() -> None:
    changes = [
        {"operation": "modify", "path": "/site/a.bin"},
        {"operation": "move", "oldPath": "/site/b", "path": "/site/c"},
        {"operation": "_sign", "path": "/site/d"},
    ]
    bare = {"type": "diff", "changes": changes}
    patch = {"format": "git_patch", "text": "--- /site/a\n+++ /site/a\n@@ -1 +1 @@\n-a\n+b\n"}
    patched = {"type": "diff", "changes": changes[:1], "patch": patch}
    async with session() as (of, agent):
        agent.update(of, "tool_call_update", toolCallId="t", content=[bare, patched])
        assert await held(of, agent) == [{**NEW, "toolCallId": "t", "content": [bare, patched]}]
        diffs = of.tool_calls[0].content
        assert [getattr(diff, "patch", 0) is None for diff in diffs] == [True, False]


# --- terminals -------------------------------------------------------------------------------------


@requirement("TERMV2-02")
@pytest.mark.parametrize("first", ["the reference", "the terminal"])
async def test_a_terminal_and_what_refers_to_it_come_in_either_order(first: str) -> None:
    async with session() as (of, agent):
        reference = [{"type": "terminal", "terminalId": "x"}]
        if first == "the reference":
            agent.update(of, "tool_call_update", toolCallId="t", content=reference)
        agent.update(of, "terminal_output_chunk", terminalId="x", data=encoded(b"hi"))
        agent.update(of, "terminal_update", terminalId="x", command="make")
        if first == "the terminal":
            agent.update(of, "tool_call_update", toolCallId="t", content=reference)
        assert await held(of, agent) == [{**NEW, "toolCallId": "t", "content": reference}]
        assert [(shown.id, shown.command, shown.text) for shown in of.terminals] == [("x", "make", "hi")]


@requirement("TERMV2-03", "TERMV2-04", "TERMV2-05", "TERMV2-06")
async def test_a_terminal_is_patched_and_its_bytes_are_exact() -> None:
    async with session() as (of, agent):

        async def shown(kind: str = "terminal_update", **fields: Any) -> Any:
            agent.update(of, kind, terminalId="x", **fields)
            await agent.settled(of)
            return whole(of.terminals[0])

        new = dict.fromkeys(["command", "cwd", "output", "exitStatus", "size", "capabilities", "_meta"])
        expected: dict[str, Any] = {"sessionUpdate": "terminal_update", "terminalId": "x", **new}
        assert await shown() == expected
        expected |= {"command": "make", "cwd": "/site"}
        assert await shown(command="make", cwd="/site") == expected
        smile = "\N{GRINNING FACE}".encode()
        await shown("terminal_output_chunk", data=encoded(b"a" + smile[:2]))
        expected["output"] = {"data": encoded(b"a" + smile)}
        assert await shown("terminal_output_chunk", data=encoded(smile[2:])) == expected
        assert of.terminals[0].text == "a\N{GRINNING FACE}"
        expected["output"] = {"data": encoded(b"anew")}
        assert await shown(output={"data": encoded(b"anew")}) == expected
        assert not of.terminals[0].exited
        expected["exitStatus"] = {}
        assert await shown(exitStatus={}) == expected
        assert of.terminals[0].exited
        expected["exitStatus"] = {"exitCode": -(2**40)}
        assert await shown(exitStatus={"exitCode": -(2**40)}) == expected
        expected |= {"output": None, "exitStatus": None}
        assert await shown(output=None, exitStatus=None) == expected


# --- plans -----------------------------------------------------------------------------------------


def entry(content: str, status: str = "pending") -> dict[str, str]:
    return {"content": content, "priority": "medium", "status": status}


def contents(of: ClientSession) -> list[list[str]]:
    return [[entry["content"] for entry in whole(plan)["plan"]["entries"]] for plan in of.plans]


@requirement("PLAN-V1-02")
async def test_each_plan_of_v1_replaces_the_one_before() -> None:
    async with session(1) as (of, agent):
        turn = await of.prompt("go")
        agent.update(of, "plan", entries=[entry("Look"), entry("Write")])
        await agent.settled(of)
        assert contents(of) == [["Look", "Write"]]
        agent.update(of, "plan", entries=[entry("Write", "completed")])
        agent.answer(await agent.request("session/prompt"), {"stopReason": "end_turn"})
        await turn.drained()
        assert contents(of) == [["Write"]]
        assert whole(of.plans[0])["plan"]["entries"] == [entry("Write", "completed")]


@requirement("PLAN-V2-02", "PLAN-V2-03")
async def test_a_plan_replaces_the_one_of_its_id_and_no_other() -> None:
    async with session() as (of, agent):

        def plans(id: str, kind: str = "items", **fields: Any) -> None:
            agent.update(of, "plan_update", plan={"type": kind, "planId": id, **fields})

        plans("a", entries=[entry("One"), entry("Two")])
        plans("b", entries=[entry("Other")])
        plans("a", entries=[entry("Two")])
        await agent.settled(of)
        assert [plan.id for plan in of.plans] == ["a", "b"]
        assert contents(of) == [["Two"], ["Other"]]
        plans("a", "_tree", roots=["One"])
        await agent.settled(of)
        assert [plan.latest.plan for plan in of.plans] == [
            Unknown({"type": "_tree", "planId": "a", "roots": ["One"]}),
            v2.PlanItems(
                plan_id=v2.PlanId("b"),
                entries=[
                    v2.PlanEntry(
                        content="Other",
                        priority=v2.PlanEntryPriority("medium"),
                        status=v2.PlanEntryStatus("pending"),
                    )
                ],
            ),
        ]


@requirement("PLAN-V2-06")
async def test_plans_in_words_in_a_file_and_removed_are_taken() -> None:
    async with session() as (of, agent):
        words = {"type": "markdown", "planId": "a", "content": "1. Look"}
        file = {"type": "file", "planId": "b", "uri": "file:///site/plan.md"}
        for plan in (words, file):
            agent.update(of, "plan_update", plan=plan)
        agent.says(of, "Planned.", messageId="m")
        await agent.settled(of)
        assert [whole(plan)["plan"] for plan in of.plans] == [words, file]
        agent.update(of, "plan_removed", planId="a")
        agent.update(of, "plan_removed", planId="never there")
        await agent.settled(of)
        assert [plan.id for plan in of.plans] == ["b"]
        assert story(of) == [("agent", "m", "Planned.")]
