"""Terminals show every byte, however it was cut."""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.tools import Terminal
from antiphon.schema.v2.terminals import TerminalExitStatus, TerminalOutput, TerminalUpdate
from tests.requirements.marks import requirement

from .journals import folded, update


def shown(*pieces: bytes | dict[str, Any]) -> Terminal:
    """A terminal after chunks of bytes and patches."""
    bodies = [
        update("terminal_update", terminalId="x", **piece)
        if isinstance(piece, dict)
        else update("terminal_output_chunk", terminalId="x", data=base64.b64encode(piece).decode())
        for piece in pieces
    ]
    (terminal,) = folded(*bodies).terminals
    return terminal


@requirement("TERMV2-05")
@given(st.text(max_size=20), st.lists(st.integers(0, 80), max_size=6))
def test_output_is_exact_wherever_its_characters_were_cut(value: str, cuts: list[int]) -> None:
    data = value.encode(errors="replace")
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    terminal = shown(*(data[a:b] for a, b in pairwise(edges)))
    assert terminal.output == data
    assert terminal.text == data.decode()


@requirement("TERMV2-03")
def test_a_new_terminal_is_unknown_and_not_empty() -> None:
    assert shown({}).output is None
    assert shown(b"").output == b""
    assert shown(b"x", {"output": None}).output is None


@requirement("TERMV2-04")
def test_a_whole_output_replaces_all_bytes_and_chunks_go_on() -> None:
    assert shown(b"old", {"output": {"data": "bmV3"}}, b"+").output == b"new+"


@requirement("TERMV2-06")
@pytest.mark.parametrize("status", [{}, {"exitCode": -9}, {"signal": "SIGKILL"}])
def test_any_exit_status_means_it_has_exited(status: dict[str, Any]) -> None:
    assert shown({"exitStatus": status}).exited
    assert not shown({"exitStatus": status}, {"exitStatus": None}).exited


@requirement("TERMV2-03")
def test_fields_are_patched_and_a_snapshot_says_all_of_them() -> None:
    terminal = shown(
        {"command": "ls", "cwd": "/", "size": {"cols": 80, "rows": 24}, "_meta": {"k": 1}},
        b"\xe2\x82",
        {"size": None, "exitStatus": {"exitCode": 0}, "_meta": {"j": 2}},
        b"\xac",
    )
    assert terminal.text == "€"
    assert terminal.materialize() == TerminalUpdate(
        terminal_id=terminal.id,
        command="ls",
        cwd="/",
        output=TerminalOutput(data="4oKs"),
        exit_status=TerminalExitStatus(exit_code=0),
        size=None,
        capabilities=None,
        meta={"k": 1, "j": 2},
    )


def test_what_is_not_base64_is_passed_over_and_what_was_there_stays() -> None:
    bad = [update("terminal_output_chunk", terminalId="x", data=data) for data in ("a", "é")]
    whole = update("terminal_update", terminalId="x", output={"data": "a"}, command="ls")
    (terminal,) = folded(update("terminal_output_chunk", terminalId="x", data="aGk="), *bad, whole).terminals
    assert (terminal.output, terminal.command) == (b"hi", "ls")


@requirement("TERMV2-02")
def test_a_reference_may_come_before_the_terminal() -> None:
    item = {"type": "terminal", "terminalId": "x"}
    session = folded(update("tool_call_update", toolCallId="t", content=[item]))
    assert list(session.terminals) == []
    assert session.terminals.get("x") is None
