"""How turns ended: in words, and where the ends of earlier turns belong."""

from __future__ import annotations

import pytest

from antiphon.errors import CallFailed, ErrorObject, LinkLost
from antiphon.schema import v2
from antiphon.tui.story.endings import Ending, PastTurn, ending_of, places
from antiphon.tui.trouble import Trouble, trouble_of


def ended(reason: str, message: str = "", data: object = None) -> v2.StateUpdate:
    error = v2.Error(code=v2.ErrorCode.INTERNAL_ERROR, message=message, data=data) if message else None
    return v2.StateUpdate(state=v2.State.IDLE, stop_reason=v2.StopReason(reason), error=error)


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        (ended("end_turn"), None),
        (ended("cancelled"), Ending("cancelled", "wait")),
        (ended("refusal"), Ending("the agent refused", "wait")),
        (ended("error", "No credit"), Ending("the turn failed: No credit", "bad")),
        (
            ended("error", "The turn was interrupted", {"reason": "interrupted"}),
            Ending("interrupted", "bad"),
        ),
        (
            ended(
                "error", "Stopped", {"reason": "interrupted", "cause": "hub_stopped", "stderr": "one\ntwo"}
            ),
            Ending("interrupted: the hub was stopped\nLast output of the agent:\none\ntwo", "bad"),
        ),
        (
            ended("error", "The turn was interrupted", {"cause": "hub_stopped"}),
            Ending("the turn failed: The turn was interrupted", "bad"),
        ),
        (
            ended(
                "error",
                "Internal error",
                {"details": "log in\x1b[2J", "stderr": "one\ntwo", "advice": "Run it"},
            ),
            Ending(
                "the turn failed: Internal error\nlog in⟨U+001B⟩[2J\n"
                "Last output of the agent:\none\ntwo\nRun it.",
                "bad",
            ),
        ),
    ],
)
def test_an_end_says_why(state: v2.StateUpdate, ending: Ending | None) -> None:
    assert ending_of(state) == ending


def test_the_ends_of_earlier_turns_stand_before_the_next_prompt() -> None:
    keys = [
        "message/user/1",
        "message/agent/a",
        "message/user/2",
        "message/user/3",
        "tool/x",
        "message/user/4",
    ]
    turns = [
        PastTurn("0", "cancelled"),
        PastTurn("1", "cancelled"),
        PastTurn("2", "end_turn"),
        PastTurn("3", "error", "No credit"),
        PastTurn("4", "refusal"),
    ]
    lost = [PastTurn("1", "error", "The turn was interrupted: the hub ended unexpectedly", "hub_lost")]
    shown = [(2, Ending("interrupted: the hub ended unexpectedly", "bad"))]
    earlier = [
        (2, Ending("cancelled", "wait")),
        (5, Ending("the turn failed: No credit", "bad")),
    ]
    last = (6, Ending("the agent refused", "wait"))
    assert places(keys, turns, before=6, open=False, closed=False) == [*earlier, last]
    assert places(keys, turns, before=6, open=False, closed=True) == earlier
    assert places(keys, turns, before=6, open=True, closed=False) == earlier
    assert places(keys, turns, before=5, open=False, closed=True) == earlier[:1]
    assert places(keys, lost, before=2, open=False, closed=False) == shown
    assert places([], turns, before=0, open=False, closed=False) == []


class WithLogins:
    auth_methods: tuple[v2.AuthMethod, ...] = (
        v2.AuthMethodAgent(method_id="key", name="API key", description="Set KEY"),
    )


def test_an_error_says_what_to_do() -> None:
    login = CallFailed("session/new", ErrorObject(-32000, "Authentication required"))
    assert trouble_of(login, WithLogins()) == Trouble(
        "Authentication required", advice="Log in to the agent: API key (Set KEY). Then try again."
    )
    told = CallFailed(
        "session/new", ErrorObject(-32603, "No key", {"details": "No key", "advice": "Get one"})
    )
    assert trouble_of(told) == Trouble("No key", advice="Get one.")
    odd = CallFailed(
        "session/new", ErrorObject(-32603, "Odd", {"details": 3, "stderr": ["x"], "advice": None})
    )
    assert trouble_of(odd) == Trouble("Odd", stderr="x")
    traced = CallFailed(
        "session/new",
        ErrorObject(-32603, "Error", {"error": {"message": "no\nkey"}, "stderr": "In:\n\n  a.py\n"}),
    )
    assert trouble_of(traced) == Trouble("Error", "no\nkey", stderr="In:\n  a.py")
    lost = LinkLost("it exited with 1", stderr=["line 1", "line 2"])
    assert trouble_of(lost) == Trouble("the connection was lost: it exited with 1", stderr="line 1\nline 2")
