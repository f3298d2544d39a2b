"""Sections 8 and 9: tool calls, diffs and permissions, against a real agent on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.bridge.diffs import whole_diff
from antiphon.schema import v1, v2
from tests.agent.talk import Talk, client, session
from tests.requirements.marks import requirement

ONCE = ("allow_once", "reject_once")


def updates(talk: Talk, *kinds: str) -> list[dict[str, Any]]:
    found = [frame["params"]["update"] for frame in talk.seen if frame.get("method") == "session/update"]
    return [update for update in found if update["sessionUpdate"] in kinds]


def calls(talk: Talk) -> list[dict[str, Any]]:
    return updates(talk, "tool_call", "tool_call_update")


def reporting(*reports: v2.SessionToolCallUpdate) -> Agent:
    """An agent whose turns report exactly this."""
    agent = Agent("reporting")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        for report in reports:
            await turn.session.update(report)

    return agent


def call(id: str = "c", **fields: Any) -> v2.SessionToolCallUpdate:
    return v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId(id), **fields)


async def report(agent: Agent, version: int) -> list[dict[str, Any]]:
    """The tool calls that a client of this version sees in one turn."""
    async with session(agent, version) as (talk, id):
        talk.prompt(1, id, "go")
        if version == 1:
            await talk.answer_to(1)
        else:
            await talk.update("state_update", state="idle")
        return calls(talk)


@requirement("TOOL-V1-03")
async def test_only_the_four_statuses_of_v1_are_sent_to_a_v1_client() -> None:
    told = [v2.ToolCallStatus(status) for status in ("pending", "in_progress", "paused", "_stuck", "failed")]
    told += [v2.ToolCallStatus.COMPLETED, v2.ToolCallStatus.CANCELLED]
    agent = reporting(*(call(title="T", status=status) for status in told))
    assert [update["status"] for update in await report(agent, 2)] == told
    sent = [update["status"] for update in await report(agent, 1)]
    assert sent == [
        "pending", "in_progress", "in_progress", "in_progress", "failed", "completed", "failed",
    ]  # fmt: skip
    assert set(sent) <= set(v1.ToolCallStatus)


@requirement("TOOL-V1-07")
async def test_only_the_kinds_of_v1_are_sent_to_a_v1_client() -> None:
    kinds = [*v1.ToolKind, "_mine"]
    agent = reporting(*(call(f"c{n}", title="T", kind=v2.ToolKind(kind)) for n, kind in enumerate(kinds)))
    assert [update["kind"] for update in await report(agent, 2)] == kinds
    assert [update["kind"] for update in await report(agent, 1)] == [*v1.ToolKind, "other"]


@requirement("TOOL-V1-02")
async def test_in_v1_an_update_has_what_changed_and_whole_collections() -> None:
    agent = Agent("changing")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("T", kind="read") as writer:
            await writer.write("one")
            await writer.write("two")
            await turn.session.update(
                v2.SessionToolCallUpdate(
                    tool_call_id=writer.tool_call_id, locations=[v2.ToolCallLocation(path="/f")]
                )
            )

    created, *later = await report(agent, 1)
    id = created["toolCallId"]
    assert created == {
        "sessionUpdate": "tool_call", "toolCallId": id, "title": "T", "kind": "read", "status": "in_progress",
    }  # fmt: skip
    shown = [{"type": "content", "content": {"type": "text", "text": words}} for words in ("one", "two")]
    same = {"sessionUpdate": "tool_call_update", "toolCallId": id}
    assert later == [
        {**same, "content": shown[:1]},
        {**same, "content": shown},
        {**same, "locations": [{"path": "/f"}]},
        {**same, "status": "completed"},
    ]


@requirement("TOOL-V1-05")
async def test_what_a_tool_call_shows_in_v1() -> None:
    items = [
        v2.Content(content=v2.TextContent(text="text")),
        whole_diff("/new", None, "all of it\n"),
        whole_diff("/old", "before\n", "after\n"),
        v2.Diff(changes=[v2.DiffMove(old_path="/from", path="/to")]),
        v2.Terminal(terminal_id=v2.TerminalId("the agent's own")),
    ]
    (created,) = await report(reporting(call(title="T", content=items)), 1)
    text, new, old, moved, terminal = created["content"]
    assert text == {"type": "content", "content": {"type": "text", "text": "text"}}
    assert new == {"type": "diff", "path": "/new", "newText": "all of it\n"}
    assert old == {"type": "diff", "path": "/old", "oldText": "before\n", "newText": "after\n"}
    # What v1 has no item for is text: a terminal there would be one that the client made.
    assert [moved["type"], terminal["type"]] == ["content", "content"]
    assert moved["content"]["type"] == terminal["content"]["type"] == "text"


@requirement("TOOL-V1-06")
@pytest.mark.parametrize("version", [1, 2])
async def test_every_tool_call_of_a_session_has_its_own_id(version: int) -> None:
    agent = Agent("tools")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async def one() -> None:
            async with turn.tool_call("the same"):
                pass

        await asyncio.gather(one(), one())

    async with session(agent, version) as (talk, id):
        for number in (1, 2):
            talk.prompt(number, id, "go")
            if version == 1:
                await talk.answer_to(number)
            else:
                await talk.update("state_update", state="idle")
        begun = [update["toolCallId"] for update in calls(talk) if "title" in update]
        assert len(begun) == len(set(begun)) == 4


@requirement("TOOL-V2-01")
async def test_in_v2_the_first_update_creates_a_call() -> None:
    agent = Agent("tools")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Look", kind="read", name="look", raw_input={"at": 1}):
            pass

    first, last = await report(agent, 2)
    assert first.pop("toolCallId") == last.pop("toolCallId")
    assert first == {
        "sessionUpdate": "tool_call_update", "title": "Look", "kind": "read", "name": "look",
        "status": "in_progress", "rawInput": {"at": 1},
    }  # fmt: skip
    assert last == {"sessionUpdate": "tool_call_update", "status": "completed"}


@requirement("TOOL-V2-08")
@pytest.mark.parametrize("raised", [None, ValueError, asyncio.CancelledError])
async def test_a_call_ends_in_a_final_status_and_only_once(
    raised: type[BaseException] | None,
) -> None:
    agent = Agent("tools")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("T") as writer:
            if raised is None:
                await writer.fail()
            else:
                raise raised

    statuses = [update["status"] for update in await report(agent, 2)]
    assert statuses == ["in_progress", "failed"]


# --- diffs ---------------------------------------------------------------------------------------------


@requirement("DIFF-01")
async def test_a_diff_is_its_changes_and_a_patch_that_agrees() -> None:
    with pytest.raises(TypeError, match="changes"):
        v2.Diff()  # type: ignore[call-arg]
    bare = v2.Diff(changes=[v2.DiffDelete(path="/gone")])
    (created,) = await report(reporting(call(title="T", content=[bare, whole_diff("/a", "x\n", "y\n")])), 2)
    without, with_patch = created["content"]
    assert without == {"type": "diff", "changes": [{"operation": "delete", "path": "/gone"}]}
    assert with_patch["changes"] == [{"operation": "modify", "path": "/a", "fileType": "text"}]
    assert with_patch["patch"]["format"] == "git_patch"
    assert with_patch["patch"]["text"].splitlines() == [
        "diff --git /a /a", "--- /a", "+++ /a", "@@ -1,1 +1,1 @@", "-x", "+y",
    ]  # fmt: skip


ONE_PATH = [("add", v2.DiffAdd), ("delete", v2.DiffDelete), ("modify", v2.DiffModify)]
TWO_PATHS = [("move", v2.DiffMove), ("copy", v2.DiffCopy)]


@requirement("DIFF-02")
@pytest.mark.parametrize(("operation", "kind"), ONE_PATH + TWO_PATHS)
@pytest.mark.parametrize("file_type", [None, *v2.DiffFileType])
async def test_each_operation_has_the_paths_it_needs(
    operation: str, kind: Any, file_type: v2.DiffFileType | None
) -> None:
    paths = {"path": "/p"} if (operation, kind) in ONE_PATH else {"old_path": "/o", "path": "/p"}
    for needed in paths:
        with pytest.raises(TypeError, match=needed):
            kind(**{name: path for name, path in paths.items() if name != needed})
    change = kind(**paths, file_type=file_type, mime_type=None if file_type is None else "text/x-python")
    (created,) = await report(reporting(call(title="T", content=[v2.Diff(changes=[change])])), 2)
    wanted = {"operation": operation, "path": "/p"}
    if "old_path" in paths:
        wanted["oldPath"] = "/o"
    if file_type is not None:
        wanted |= {"fileType": file_type, "mimeType": "text/x-python"}
    assert created["content"] == [{"type": "diff", "changes": [wanted]}]


# --- permissions ---------------------------------------------------------------------------------------


def asking(options: Sequence[str]) -> Agent:
    """An agent that asks with an option of each of these kinds."""
    agent = Agent("asking")
    offered = [
        v2.PermissionOption(
            option_id=v2.PermissionOptionId(f"{kind}!"), name=f"To {kind}", kind=v2.PermissionOptionKind(kind)
        )
        for kind in options
    ]

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Act", kind="execute") as writer:
            await writer.request_permission(options=offered)

    return agent


async def question(agent: Agent, version: int) -> tuple[Talk, dict[str, Any]]:
    """The params of the question, after all of it has been played through."""
    async with session(agent, version) as (talk, id):
        talk.prompt(1, id, "go")
        asked = await talk.request("session/request_permission")
        talk.send(id=asked["id"], result={"outcome": {"outcome": "cancelled"}})
        await talk.update("tool_call_update", status="completed")
        assert asked["params"]["sessionId"] == id
        return talk, asked["params"]


def options(*kinds: str) -> list[dict[str, str]]:
    return [{"optionId": f"{kind}!", "name": f"To {kind}", "kind": kind} for kind in kinds]


@requirement("PERM-V1-01")
async def test_a_question_in_v1_is_about_a_tool_call_with_options() -> None:
    talk, params = await question(asking(ONCE), 1)
    assert params.keys() == {"sessionId", "toolCall", "options", "_meta"}
    assert params["options"] == options(*ONCE)
    created = calls(talk)[0]
    assert params["toolCall"]["toolCallId"] == created["toolCallId"]
    assert params["toolCall"]["title"] == "Act"
    assert talk.story().index("tool_call") < talk.story().index("? session/request_permission")


@requirement("PERM-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_each_option_has_an_id_a_name_and_a_kind(version: int) -> None:
    kinds = [*v1.PermissionOptionKind]
    _, params = await question(asking([*kinds, "_for_a_day"]), version)
    assert params["options"] == options(*kinds, *(["_for_a_day"] if version == 2 else []))


@requirement("PERM-V2-07", "PERM-V2-08")
async def test_a_question_answered_with_an_error_is_no_approval_for_anyone() -> None:
    agent = Agent("asking")
    allowed: list[bool] = []

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        async with turn.tool_call("Act") as writer:
            allowed.append(await writer.request_permission())

    async with session(agent) as (talk, id), client(agent, 1) as other:
        await other.call("join", "session/resume", sessionId=id, cwd="/", mcpServers=[])
        talk.prompt(1, id, "go")
        asked = await talk.request("session/request_permission")
        await other.request("session/request_permission")
        talk.send(id=asked["id"], error={"code": -32603, "message": "no window"})
        await talk.update("state_update", state="idle")
        assert allowed == [False]
