"""The rule that makes alerts of events, and the queue of one receiver."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from antiphon.engine.events import Event, QuestionClosed, QuestionEnd, QuestionOpened, Updated
from antiphon.engine.turn import INTERRUPTED
from antiphon.hub.alerts.alert import (
    Alert,
    AlertKind,
    AlertOption,
    AlertQuestion,
    AlertSession,
    AlertTurn,
    News,
    SessionRule,
)
from antiphon.hub.alerts.channel import AlertCounts, Channel, DeliveryFailed
from antiphon.schema import v2
from antiphon.server.tasks import Tasks

SESSION = AlertSession.of("sess_1", title=None, cwd="/home", agent="worker")


def state(name: str, **more: Any) -> Updated:
    return Updated.of(v2.SessionStateUpdate(state=v2.State(name), **more))


def permission(**fields: Any) -> QuestionOpened:
    options = [
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No\x1b[2J", "kind": "reject_once"},
    ]
    asked = {"sessionId": "s", "title": "Touch it", "options": options, **fields}
    params = Raw(json.dumps(asked).encode())
    return QuestionOpened(question_id="q", method="session/request_permission", params=params)


def news(*bodies: Any, working: bool = False) -> list[News]:
    """The news of events that are a second apart."""
    rule = SessionRule(working=working)
    events = [Event(seq, seq * 1000, body) for seq, body in enumerate(bodies, start=1)]
    return [found for event in events if (found := rule.news_of(event)) is not None]


def ended(reason: str, seconds: float | None = None, error: str = "") -> AlertTurn:
    return AlertTurn(reason=reason, seconds=seconds, error=error)


def test_a_turn_ends_once_whatever_states_are_repeated() -> None:
    stop = v2.StopReason.END_TURN
    told = news(
        state("idle"),
        state("running"),
        state("running"),
        state("requires_action"),
        state("running"),
        state("idle", stop_reason=stop),
        state("idle", stop_reason=stop),
    )
    assert told == [News(kind=AlertKind.TURN_ENDED, at=6000, turn=ended("end_turn", 4.0))]


def test_the_reason_of_an_end_says_whether_the_agent_failed_or_was_lost() -> None:
    cut = state("idle", stop_reason=v2.StopReason.ERROR, error=INTERRUPTED)
    error = v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message="no model")
    failed = state("idle", stop_reason=v2.StopReason.ERROR, error=error)
    told = news(cut, state("running"), failed, state("running"), state("idle"), working=True)
    assert [each.turn for each in told] == [
        ended("interrupted", error="The turn was interrupted"),
        ended("error", 1.0, "no model"),
        ended("end_turn", 1.0),
    ]
    texts = [Alert(id="a", news=each, session=SESSION).text for each in told]
    assert texts == ["Interrupted: the agent, or the hub, has ended", "Failed: no model", "Finished"]


def test_a_question_is_told_with_its_command_and_its_end_without_the_answer() -> None:
    command = {"type": "command", "command": "rm -r x", "cwd": "/"}
    closed = QuestionClosed(question_id="q", end=QuestionEnd.ANSWERED, result=Raw(b'{"secret":1}'))
    opened = AlertQuestion(
        id="q",
        kind="permission",
        title="Touch it",
        details="rm -r x",
        options=(
            AlertOption(id="y", name="Yes", kind="allow_once"),
            AlertOption(id="n", name="No⟨U+001B⟩[2J", kind="reject_once"),
        ),
    )
    assert news(permission(subject=command), closed) == [
        News(kind=AlertKind.QUESTION_OPENED, at=1000, question=opened),
        News(kind=AlertKind.QUESTION_CLOSED, at=2000, question=AlertQuestion(id="q", end="answered")),
    ]


def test_what_cannot_be_read_is_told_plainly_or_not_at_all() -> None:
    broken = QuestionOpened(question_id="q", method="session/request_permission", params=Raw(b"{}"))
    unread = Updated(raw=Raw(b'{"sessionUpdate":"state_update","state":7}'))
    [told] = news(broken, unread)
    assert told.question == AlertQuestion(id="q", kind="elicitation", title="The agent asks")


def test_receivers_get_a_bounded_object() -> None:
    [opened] = news(permission(title="t" * 5000, description="d" * 5000))
    alert = Alert(id="a", news=opened, session=AlertSession.of("s", title="x\n" * 999, cwd="/", agent="w"))
    told = json.loads(alert.to_json())
    assert (told["type"], told["timestamp"]) == ("question.opened", "1970-01-01T00:00:01.000Z")
    assert told["data"]["session"]["title"] == ("x " * 60)[:119] + "…"
    assert len(alert.to_json()) < 4000


@pytest.mark.parametrize(
    ("reason", "needs"), [("end_turn", True), ("cancelled", False), ("interrupted", True)]
)
def test_a_person_is_needed_unless_a_person_has_ended_it(reason: str, needs: bool) -> None:
    told = News(kind=AlertKind.TURN_ENDED, at=0, turn=ended(reason))
    assert Alert(id="a", news=told, session=SESSION).needs_user is needs


def numbered(number: int) -> Alert:
    return Alert(
        id=str(number), news=News(kind=AlertKind.TURN_ENDED, at=0, turn=ended("end_turn")), session=SESSION
    )


async def test_a_queue_keeps_the_newest_alerts_and_counts_the_others() -> None:
    tasks, counts, taken, go = Tasks("the test", grace=1.0), AlertCounts(), list[str](), asyncio.Event()

    async def deliver(alert: Alert) -> None:
        await go.wait()
        taken.append(alert.id)
        if alert.id == "9":
            raise DeliveryFailed("no")

    channel = Channel("webhook", deliver, tasks, counts, bound=3)
    channel.offer(numbered(0))
    await asyncio.sleep(0)  # it is being delivered
    for number in range(1, 10):
        channel.offer(numbered(number))
    go.set()
    await tasks.drain()
    assert taken == ["0", "7", "8", "9"]
    assert (counts.delivered["webhook"], counts.failed["webhook"], counts.dropped["webhook"]) == (3, 1, 6)
    channel.offer(numbered(10))
    await tasks.drain()
    assert taken[-1] == "10"
    await tasks.aclose()
