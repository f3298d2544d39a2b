"""Section 9: how the client answers what an agent asks permission for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.client import Permission, Permissions
from antiphon.schema.v2.permissions import PermissionOption, PermissionOptionId, PermissionOptionKind
from antiphon.schema.wire import Unknown
from tests.requirements.agent_by_hand import AgentByHand, session, whole
from tests.requirements.marks import requirement

OPTIONS = [
    {"optionId": "1", "name": "Always", "kind": "allow_always"},
    {"optionId": "2", "name": "Once", "kind": "allow_once"},
    {"optionId": "3", "name": "Not now", "kind": "reject_once"},
    {"optionId": "4", "name": "Not now, and say why", "kind": "reject_once"},
]
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def asks(agent: AgentByHand, version: int, call: dict[str, Any], **more: Any) -> str:
    """Ask about a tool call, in the words of a version."""
    if version == 1:
        asked: dict[str, Any] = {"toolCall": call}
    else:
        asked = {"title": "May I?", "subject": {"type": "tool_call", "toolCall": call}}
    return agent.ask("session/request_permission", **{"sessionId": "s", "options": OPTIONS, **asked, **more})


class Asked:
    """A decision that waits to be made."""

    def __init__(self) -> None:
        self.permission: asyncio.Future[Permission] = asyncio.get_running_loop().create_future()
        self.choice: asyncio.Future[PermissionOption | None] = asyncio.get_running_loop().create_future()
        self.withdrawn = asyncio.Event()

    async def __call__(self, permission: Permission) -> PermissionOption | None:
        if self.permission.done():
            await asyncio.Event().wait()
        self.permission.set_result(permission)
        try:
            return await self.choice
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise


@requirement("PERM-V1-02")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        ({}, {"outcome": "selected", "optionId": "3"}),
        ({"allow": ["edit"]}, {"outcome": "selected", "optionId": "2"}),
        ({"allow": ["read"]}, {"outcome": "selected", "optionId": "3"}),
        ({"allow": "all"}, {"outcome": "selected", "optionId": "2"}),
        ({"ask": 1}, {"outcome": "selected", "optionId": "1"}),
        ({"ask": 4}, {"outcome": "selected", "optionId": "4"}),
        ({"ask": None}, {"outcome": "cancelled"}),
    ],
)
async def test_an_answer_is_the_id_of_an_option_or_cancelled(
    version: int, policy: dict[str, Any], outcome: dict[str, str]
) -> None:
    if "ask" in policy:
        number = policy["ask"]

        async def choose(permission: Permission) -> PermissionOption | None:
            return None if number is None else permission.options[number - 1]

        policy = {"ask": choose}
    async with session(version, answers=Permissions(**policy)) as (of, agent):
        await agent.prompted(of, "go")
        id = asks(agent, version, {"toolCallId": "t", "title": "Write", "kind": "edit"})
        assert await agent.answer_to(id) == {"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}
        assert of.questions == []


@requirement("PERM-V1-02")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_decision_that_fails_is_answered_as_cancelled(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(permission: Permission) -> PermissionOption | None:
        raise RuntimeError("no terminal")

    async with session(version, answers=Permissions(ask=broken)) as (of, agent):
        await agent.prompted(of, "go")
        assert (await agent.answer_to(asks(agent, version, {"toolCallId": "t"})))["result"] == CANCELLED
    assert "no terminal" in caplog.text


@requirement("PERM-V2-02")
async def test_title_and_description_are_the_questions_and_never_the_calls() -> None:
    ask = Asked()
    async with session(answers=Permissions(ask=ask)) as (of, agent):
        await agent.working(of, "go")
        items = [{"type": "content", "content": {"type": "text", "text": "a diff"}}]
        agent.update(of, "tool_call_update", toolCallId="t", title="Edit a.py", content=items)
        await agent.settled(of)
        before = whole(of.tool_calls[0])
        asks(agent, 2, {"toolCallId": "t"}, title="Really?", description="This cannot be undone.")
        permission = await ask.permission
        assert (permission.title, permission.request.description) == ("Really?", "This cannot be undone.")
        assert [whole(call) for call in of.tool_calls] == [before]
        assert permission.tool_call is of.tool_calls[0]


@requirement("PERM-V2-03")
async def test_the_call_is_applied_as_an_update_in_its_place_before_anybody_is_asked() -> None:
    ask = Asked()
    async with session(answers=Permissions(ask=ask)) as (of, agent):
        await agent.working(of, "go")
        agent.update(
            of,
            "tool_call_update",
            toolCallId="t",
            title="Edit",
            kind="edit",
            status="in_progress",
            rawInput=1,
        )
        asks(agent, 2, {"toolCallId": "t", "title": "Edit a.py", "status": "pending", "rawInput": None})
        permission = await ask.permission
        assert permission.tool_call is not None
        assert (permission.tool_call.title, str(permission.tool_call.status)) == ("Edit a.py", "pending")
        assert permission.kind == "edit", "what is omitted is kept"
        assert permission.tool_call.raw_input is None, "null clears"
        agent.update(of, "tool_call_update", toolCallId="t", title="Edit b.py")
        await agent.settled(of)
        assert [call.title for call in of.tool_calls] == ["Edit b.py"]


@requirement("PERM-V2-03")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_call_first_seen_in_a_question_is_created(version: int) -> None:
    ask = Asked()
    async with session(version, answers=Permissions(ask=ask)) as (of, agent):
        await agent.prompted(of, "go")
        asks(agent, version, {"toolCallId": "new", "title": "Run", "kind": "execute"})
        permission = await ask.permission
        assert permission.tool_call is of.tool_calls[0]
        made = whole(of.tool_calls[0])
        assert (made["toolCallId"], made["title"], made["kind"], made["status"]) == (
            "new",
            "Run",
            "execute",
            "pending",
        )


@requirement("PERM-V2-05")
async def test_an_unknown_subject_is_kept_whole_and_decided_by_policy() -> None:
    ask = Asked()
    subject = {"type": "_purchase", "price": {"amount": 5}, "toolCallId": "t"}
    async with session(answers=Permissions(ask=ask)) as (of, agent):
        await agent.working(of, "go")
        id = agent.ask(
            "session/request_permission", sessionId="s", title="Buy it?", subject=subject, options=OPTIONS
        )
        permission = await ask.permission
        assert permission.request.subject == Unknown(subject)
        assert (permission.title, permission.tool_call, permission.kind) == ("Buy it?", None, "other")
        assert of.tool_calls == []
        ask.choice.set_result(permission.reject())
        assert (await agent.answer_to(id))["result"] == {"outcome": {"outcome": "selected", "optionId": "3"}}


@requirement("PERM-V2-05")
async def test_an_unknown_subject_is_declined_by_default_and_by_kinds_that_are_allowed() -> None:
    async with session(answers=Permissions(allow=["edit", "read"])) as (of, agent):
        await agent.working(of, "go")
        id = agent.ask(
            "session/request_permission",
            sessionId="s",
            title="Buy it?",
            subject={"type": "_purchase", "kind": "read"},
            options=OPTIONS,
        )
        assert (await agent.answer_to(id))["result"] == {"outcome": {"outcome": "selected", "optionId": "3"}}


@requirement("PERM-V2-05")
@pytest.mark.parametrize(
    "subject",
    [{"type": "tool_call"}, {"type": "tool_call", "toolCall": {"title": "x"}}, {"type": "command"}, 7, {}],
)
async def test_a_malformed_known_subject_is_an_error_and_nobody_is_asked(subject: Any) -> None:
    ask = Asked()
    async with session(answers=Permissions(ask=ask)) as (of, agent):
        await agent.working(of, "go")
        id = agent.ask(
            "session/request_permission", sessionId="s", title="Hm?", subject=subject, options=OPTIONS
        )
        assert (await agent.answer_to(id))["error"]["code"] == -32602
        assert not ask.permission.done()
        assert (of.questions, of.tool_calls) == ([], [])


@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_the_agent_takes_back_is_answered_cancelled(version: int) -> None:
    ask = Asked()
    async with session(version, answers=Permissions(ask=ask)) as (of, agent):
        await agent.prompted(of, "go")
        id = asks(agent, version, {"toolCallId": "t"})
        await ask.permission
        agent.send(method="$/cancel_request", params={"requestId": id})
        assert await agent.answer_to(id) == {"jsonrpc": "2.0", "id": id, "result": CANCELLED}
        assert of.questions == []
        await ask.withdrawn.wait()
        await agent.settled(of)
        assert [frame for frame in agent.seen if frame.get("id") == id] == [
            {"jsonrpc": "2.0", "id": id, "result": CANCELLED}
        ], "answered once"


@requirement("PERM-V2-10")
async def test_a_cancel_leaves_the_questions_of_background_work_open() -> None:
    ask = Asked()
    async with session(answers=Permissions(ask=ask)) as (of, agent):
        turn = await agent.working(of, "go")
        behind = asks(agent, 2, {"toolCallId": "behind", "status": "in_progress"})
        permission = await ask.permission
        agent.state(of, "running", background=[{"type": "tool_call", "toolCallId": "behind"}])
        front = asks(agent, 2, {"toolCallId": "front"})
        await agent.settled(of)
        await turn.cancel()
        agent.send(method="$/cancel_request", params={"requestId": front})
        agent.state(of, "idle", stopReason="cancelled")
        assert (await turn.drained()).cancelled
        assert (await agent.answer_to(front))["result"] == CANCELLED
        assert [question.tool_call_id for question in of.questions] == ["behind"]
        ask.choice.set_result(permission.allow())
        result = (await agent.answer_to(behind))["result"]
        assert result == {"outcome": {"outcome": "selected", "optionId": "2"}}


@requirement("PERM-V2-09")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_taken_back_before_anybody_was_asked_is_answered_cancelled(
    version: int,
) -> None:
    ask = Asked()
    async with session(version, answers=Permissions(ask=ask)) as (of, agent):
        for n in range(50):
            agent.says(of, f"{n}", messageId="a")
        id = asks(agent, version, {"toolCallId": "t", "title": "Build"})
        agent.send(method="$/cancel_request", params={"requestId": id})
        assert (await agent.answer_to(id))["result"] == CANCELLED
        assert not ask.permission.done()
        assert of.questions == []
        assert [call.title for call in of.tool_calls] == ["Build"], "what it told of the call stands"


@requirement("PERM-V2-09")
@pytest.mark.parametrize("version", [1, 2])
async def test_so_is_one_of_a_session_that_was_left(version: int) -> None:
    async with session(version, answers=Permissions(allow="all")) as (of, agent):
        closing = agent.meanwhile(of.close())
        agent.answer(await agent.request("session/close"), {})
        await closing
        id = asks(agent, version, {"toolCallId": "t"})
        await agent.settled(of)
        agent.send(method="$/cancel_request", params={"requestId": id})
        assert (await agent.answer_to(id))["result"] == CANCELLED


@requirement("PERM-V2-10")
async def test_a_cancel_in_idle_cancels_no_question() -> None:
    """Nothing is foreground then, so it is not known to be; nor in a turn that begins later."""
    async with session(answers=Permissions(ask=Asked())) as (of, agent):
        turn = await agent.working(of, "go")
        agent.state(of, "idle", stopReason="end_turn")
        await turn.drained()
        asks(agent, 2, {"toolCallId": "t", "status": "in_progress"})
        await agent.settled(of)
        await of.cancel()
        await agent.settled(of)
        assert [question.tool_call_id for question in of.questions] == ["t"]
        turn = await agent.working(of, "go", "u2")
        await turn.cancel()
        agent.state(of, "idle", stopReason="cancelled")
        await turn.drained()
        assert [question.tool_call_id for question in of.questions] == ["t"]


@requirement("PERM-V1-03")
async def test_in_v1_every_question_is_cancelled_whenever_it_was_asked() -> None:
    async with session(1, answers=Permissions(ask=Asked())) as (of, agent):
        id = asks(agent, 1, {"toolCallId": "t"})
        await agent.settled(of)
        await of.cancel()
        assert (await agent.answer_to(id))["result"] == CANCELLED


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("end", ["close", "delete"])
async def test_a_question_that_is_open_when_its_session_ends_is_answered_cancelled(
    version: int, end: str
) -> None:
    async with session(version, answers=Permissions(ask=Asked())) as (of, agent):
        id = asks(agent, version, {"toolCallId": "t"})
        await agent.settled(of)
        ending = agent.meanwhile(of.close() if end == "close" else of.client.delete_session(of.id))
        agent.answer(await agent.request(f"session/{end}"), {})
        await ending
        assert (await agent.answer_to(id))["result"] == CANCELLED
        assert of.questions == []


@requirement("PERM-V2-10")
@pytest.mark.parametrize("tied", [{"terminalId": "x"}, {"toolCallId": "t"}])
async def test_a_cancel_leaves_the_question_about_a_background_command_open(tied: Any) -> None:
    async with session(answers=Permissions(ask=Asked())) as (of, agent):
        turn = await agent.working(of, "go")
        agent.update(of, "terminal_update", terminalId="x", command="make")
        agent.update(of, "tool_call_update", toolCallId="t", status="in_progress")
        listed = [{"type": "terminal", "terminalId": "x"}, {"type": "tool_call", "toolCallId": "t"}]
        agent.state(of, "running", background=listed)
        subject = {"type": "command", "command": "make clean", "cwd": "/site", **tied}
        agent.ask(
            "session/request_permission", sessionId="s", title="Go on?", subject=subject, options=OPTIONS
        )
        await agent.settled(of)
        await turn.cancel()
        await agent.request("session/cancel")
        await agent.settled(of)
        assert len(of.questions) == 1


@requirement("PERM-V1-02")
async def test_a_question_of_an_unknown_session_is_an_error() -> None:
    async with session(answers=Permissions(allow="all")) as (of, agent):
        id = asks(agent, 2, {"toolCallId": "t"}, sessionId="somebody else's")
        assert (await agent.answer_to(id))["error"]["code"] in (-32602, -32002)
        assert of.questions == []


@requirement("PERM-V1-02")
async def test_an_option_that_was_not_offered_is_not_sent() -> None:
    async def another(permission: Permission) -> PermissionOption | None:
        return PermissionOption(
            option_id=PermissionOptionId("2b"), name="More", kind=PermissionOptionKind.ALLOW_ONCE
        )

    async with session(answers=Permissions(ask=another)) as (of, agent):
        await agent.working(of, "go")
        assert (await agent.answer_to(asks(agent, 2, {"toolCallId": "t"})))["result"] == CANCELLED


@requirement("PERM-V1-02")
async def test_the_answer_of_an_always_is_by_its_own_id_again() -> None:
    """Options are offered anew with every question: what is remembered is the kind, what is sent the id."""
    asked: list[str] = []

    async def always(permission: Permission) -> PermissionOption | None:
        asked.append(permission.title)
        return permission.options[0]

    async with session(answers=Permissions(ask=always)) as (of, agent):
        await agent.working(of, "go")
        one = asks(agent, 2, {"toolCallId": "a", "kind": "edit"}, title="First")
        assert (await agent.answer_to(one))["result"]["outcome"]["optionId"] == "1"
        other = [{"optionId": "x", "name": "Ever", "kind": "allow_always"}, OPTIONS[2]]
        again = asks(agent, 2, {"toolCallId": "b", "kind": "edit"}, title="First", options=other)
        assert (await agent.answer_to(again))["result"]["outcome"]["optionId"] == "x"
        assert asked == ["First"]
        two = asks(agent, 2, {"toolCallId": "c", "kind": "edit"}, title="Second")
        assert (await agent.answer_to(two))["result"]["outcome"]["optionId"] == "1"
        assert asked == ["First", "Second"]
