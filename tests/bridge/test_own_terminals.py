"""A terminal that a v1 client runs itself is shown to it by its own id, and told to nobody twice."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from antiphon.bridge.downgrade.session import Downgrade
from antiphon.schema import v1, v2
from tests.requirements.marks import requirement

OURS, THEIRS = v2.TerminalId("term_1"), v1.TerminalId("T")
SHOWN = v2.Terminal(terminal_id=OURS, meta={"k": 1})


def told(down: Downgrade, *updates: v2.SessionUpdate) -> list[Any]:
    return [msgspec.to_builtins(sent) for update in updates for sent in down.apply(update)]


def updates() -> list[v2.SessionUpdate]:
    call = v2.ToolCallId("c")
    return [
        v2.SessionToolCallUpdate(tool_call_id=call, title="Run"),
        v2.TerminalUpdate(terminal_id=OURS, command="ls"),
        v2.ToolCallContentChunk(tool_call_id=call, content=SHOWN),
        v2.TerminalOutputChunk(terminal_id=OURS, data=b64encode(b"out").decode()),
        v2.TerminalUpdate(terminal_id=OURS, exit_status=v2.TerminalExitStatus(exit_code=0)),
        v2.SessionToolCallUpdate(tool_call_id=call, status=v2.ToolCallStatus.COMPLETED),
    ]


@requirement("TOOL-V1-05")
def test_who_runs_it_gets_a_reference_by_its_own_id() -> None:
    lost: list[str] = []
    down = Downgrade(report=lambda loss, _: lost.append(loss.name))
    down.tools.note_client_terminal(OURS, THEIRS)
    sent = told(down, *updates())
    assert [update["content"] for update in sent if update.get("content")] == [
        [{"type": "terminal", "terminalId": "T", "_meta": {"k": 1}}]
    ]
    assert "out" not in str(sent)
    assert lost == []


@requirement("TERMV1-08")
def test_who_does_not_gets_its_output() -> None:
    sent = told(Downgrade(), *updates())
    contents = [update["content"] for update in sent if update.get("content")]
    assert contents[-1][0]["content"]["text"] == "$ ls\nout"


def test_a_terminal_of_another_id_is_not_taken_for_it() -> None:
    down = Downgrade()
    down.tools.note_client_terminal(v2.TerminalId("T"), v1.TerminalId("term_1"))
    sent = told(down, *updates())
    assert [item["type"] for item in sent[-2]["content"]] == ["content"]
