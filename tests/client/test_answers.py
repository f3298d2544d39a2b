"""Policies: what is approved without asking, what is asked, and what is remembered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from antiphon.client import Permission, Permissions
from antiphon.engine.items import ById
from antiphon.engine.tools import ToolCall
from antiphon.errors import LocalError
from antiphon.schema import v2

KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


def asked(
    kind: str = "edit",
    *,
    session: str = "s",
    options: tuple[str, ...] = KINDS,
    title: str = "May I?",
    call_title: str = "Act",
) -> Permission:
    call = v2.ToolCallUpdate(tool_call_id=v2.ToolCallId("t"), kind=v2.ToolKind(kind), title=call_title)
    tools = ById(ToolCall)
    tools.find(call.tool_call_id, position=1).patch(call)
    request = v2.RequestPermissionRequest(
        session_id=v2.SessionId(session),
        title=title,
        subject=v2.ToolCallPermissionSubject(tool_call=call),
        options=[
            v2.PermissionOption(
                option_id=v2.PermissionOptionId(f"{number}"), name=of, kind=v2.PermissionOptionKind(of)
            )
            for number, of in enumerate(options)
        ],
    )
    held: Any = SimpleNamespace(id=session, fold=SimpleNamespace(tools=tools))
    return Permission(held, "question-1", request)


def about_command(command: str) -> Permission:
    permission = asked(title="Run it?")
    subject = v2.CommandPermissionSubject(command=command, cwd="/")
    return Permission(permission.session, "q", structs.replace(permission.request, subject=subject))


def kind(option: v2.PermissionOption | None) -> str | None:
    return None if option is None else str(option.kind)


async def test_what_nobody_approves_is_rejected() -> None:
    assert kind(await Permissions().decide(asked())) == "reject_once"


@pytest.mark.parametrize("allow", [["edit", "read"], "edit", "all", ["all"]])
async def test_an_allowed_kind_is_allowed_once(allow: Any) -> None:
    assert kind(await Permissions(allow=allow).decide(asked("edit"))) == "allow_once"


async def test_another_kind_is_not() -> None:
    assert kind(await Permissions(allow=["read"]).decide(asked("edit"))) == "reject_once"
    assert kind(await Permissions(allow="read").decide(asked("a"))) == "reject_once"


async def test_nothing_to_reject_with_is_cancelled() -> None:
    assert await Permissions().decide(asked(options=("allow_once",))) is None


async def test_always_is_taken_only_where_nothing_less_allows() -> None:
    only = asked(options=("allow_always", "reject_once"))
    assert kind(await Permissions(allow="all").decide(only)) == "allow_always"


async def test_a_callback_decides_by_option_or_by_id() -> None:
    async def by_id(permission: Permission) -> str:
        return "3"

    async def by_option(permission: Permission) -> v2.PermissionOption | None:
        return permission.options[2]

    assert kind(await Permissions(ask=by_id).decide(asked())) == "reject_always"
    assert kind(await Permissions(ask=by_option).decide(asked())) == "reject_once"


async def test_an_option_that_was_not_offered_is_a_mistake_of_the_callback() -> None:
    async def wrong(permission: Permission) -> str:
        return "17"

    with pytest.raises(LocalError, match="not an offered option"):
        await Permissions(ask=wrong).decide(asked())


@pytest.mark.parametrize("always", ["allow_always", "reject_always"])
async def test_an_always_answers_the_same_question_of_the_same_session_again(always: str) -> None:
    questions: list[Permission] = []

    async def ask(permission: Permission) -> v2.PermissionOption | None:
        questions.append(permission)
        return permission.option(always)

    policy = Permissions(ask=ask)
    for _ in range(2):
        assert kind(await policy.decide(asked("edit"))) == always
    assert len(questions) == 1
    await policy.decide(asked("execute"))
    await policy.decide(asked("edit", session="another"))
    assert len(questions) == 3
    await policy.decide(asked("edit", options=("allow_once", "reject_once")))  # it is not offered again
    assert len(questions) == 4


async def test_an_always_is_for_what_was_asked_and_not_for_all_of_its_kind() -> None:
    questions: list[Permission] = []

    async def ask(permission: Permission) -> v2.PermissionOption | None:
        questions.append(permission)
        return permission.option("allow_always")

    policy = Permissions(ask=ask)
    different = [
        asked("execute", title="Run it?", call_title="ls"),
        asked("execute", title="Run it?", call_title="rm -r /"),
        asked("execute", title="Remove all?", call_title="ls"),
        about_command("make"),
        about_command("make clean"),
    ]
    for permission in different:
        for _ in range(2):
            await policy.decide(permission)
    assert questions == different, "each once"


async def test_nothing_is_remembered_where_that_is_not_wanted() -> None:
    questions: list[Permission] = []

    async def ask(permission: Permission) -> v2.PermissionOption | None:
        questions.append(permission)
        return permission.option("allow_always")

    policy = Permissions(ask=ask, remember=False)
    for _ in range(2):
        await policy.decide(asked())
    assert len(questions) == 2


def test_the_kind_of_what_is_unknown_is_other_and_a_command_is_executed() -> None:
    permission = asked()
    subject = v2.CommandPermissionSubject(command="ls", cwd="/")
    for given, expected in ((None, "other"), (subject, "execute")):
        request = v2.RequestPermissionRequest(
            session_id=permission.request.session_id, title="?", subject=given, options=permission.options
        )
        assert Permission(permission.session, "q", request).kind == expected
