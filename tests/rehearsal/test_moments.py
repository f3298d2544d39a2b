"""The built-in agent when it is cancelled, left without an answer, or asked to misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import ClientSession, ClientTurn, ProcessOptions, connect
from antiphon.rehearsal import make_agent
from tests.rehearsal.driving import COMMAND, DEADLINE, Answers, a_folder, met, opened, prompted, said, shown

UPDATES = (0, 1, 2, 4, 7, 12, 20)
"""How many of them come before the cancel."""


class Silent(Answers):
    """Somebody who is asked, and does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()

    async def _wait(self) -> None:
        self.waiting.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.waiting.clear()

    async def decide(self, permission: Any) -> Any:
        await self._wait()

    async def elicit(self, elicitation: Any) -> Any:
        await self._wait()


async def cancelled_after(session: ClientSession, text: str, updates: int) -> str:
    """The stop reason of a turn that is cancelled behind so many updates."""
    turn = await session.prompt(text)
    with contextlib.suppress(StopAsyncIteration):
        following = turn.updates()
        for _ in range(updates):
            await anext(following)
    await turn.cancel()
    return str((await turn.drained()).stop_reason)


def assert_at_rest(session: ClientSession) -> None:
    assert session.state == "idle"
    assert session.questions == []
    assert {str(call.status) for call in session.tool_calls} <= {"completed", "failed", "cancelled"}


@pytest.mark.parametrize("version", [1, 2])
async def test_it_can_be_cancelled_at_any_moment_and_then_goes_on(version: int, tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    reasons = set()
    async with opened(version, folder, pace="0.2") as session:
        for text in ("/plan", "/edit", "/run", "/find la", "/think", "/subagent", "/compact", "/tour 3"):
            for updates in UPDATES:
                reasons.add(await cancelled_after(session, text, updates))
                assert_at_rest(session)
        assert reasons <= {"cancelled", "end_turn"}
        assert "cancelled" in reasons
        assert "Sentence 1 of 1" in await said(session, "stream 1")
    drafts = [path for path in folder.rglob("*") if path.name.startswith(".song")]
    assert drafts == []


@pytest.mark.parametrize("version", [1, 2])
async def test_a_question_that_nobody_answers_waits_until_the_turn_is_cancelled(
    version: int, tmp_path: Path
) -> None:
    answers = Silent()
    async with opened(version, tmp_path, answers=answers) as session:
        for text in ("/edit", "/run touch made", "/tour", "/form", "/visit"):
            turn = await session.prompt(text)
            await answers.waiting.wait()
            await turn.cancel()
            assert (await turn.drained()).stop_reason == "cancelled"
            assert_at_rest(session)
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "antiphon-tour").exists()


@pytest.mark.parametrize("version", [1, 2])
async def test_a_command_that_runs_is_ended_with_its_turn(version: int, tmp_path: Path) -> None:
    async with opened(version, tmp_path) as session:
        turn = await session.prompt("/run echo $$ > pid; echo begun; exec sleep 600")
        await until(turn, lambda: (tmp_path / "pid").exists())
        await turn.cancel()
        assert (await turn.drained()).stop_reason == "cancelled"
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_one_terminal_or_one_tool_call_is_cancelled_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with opened(2, tmp_path) as session:
        turn = await session.prompt("/run sleep 600")
        await until(turn, lambda: session.terminals)
        await session.cancel_terminal(session.terminals[0].id)
        assert (await turn.drained()).stop_reason == "end_turn"
        assert "ended by signal 15" in turn.text
        turn = await session.prompt("/stuck")
        await until(turn, lambda: "until you cancel" in turn.text)
        await session.cancel_tool_call(session.tool_calls[-1].id)
        assert (await turn.drained()).stop_reason == "end_turn"
        assert "the turn continues" in turn.text


@pytest.mark.parametrize("version", [1, 2])
async def test_it_is_stuck_until_it_is_cancelled(version: int, tmp_path: Path) -> None:
    async with opened(version, tmp_path) as session:
        turn = await session.prompt("/stuck")
        await until(turn, lambda: "until you cancel" in turn.text)
        await turn.cancel()
        assert (await turn.drained()).stop_reason == "cancelled"
        assert_at_rest(session)


@pytest.mark.parametrize("version", [1, 2])
async def test_an_error_tells_the_client_nothing_private_and_the_session_goes_on(
    version: int, tmp_path: Path
) -> None:
    told: list[str] = []
    async with (
        asyncio.timeout(DEADLINE),
        connect(
            COMMAND,
            version=version,
            process=ProcessOptions(env={"ANTIPHON_REHEARSAL_PACE": "0"}, on_stderr=told.append),
        ) as client,
    ):
        session = await client.new_session(tmp_path)
        _, end = await prompted(session, "/error")
        assert end.stop_reason == "error"
        assert end.error is not None
        assert "asked for" not in end.error.message
        assert "Sentence 1" in await said(session, "stream 1")
    assert "this was asked for with /error" in told[-1]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_prompt_that_steers_joins_a_slow_turn(version: int, tmp_path: Path) -> None:
    async with opened(version, tmp_path) as session:
        turn = await session.prompt("/slow 2")
        await until(turn, lambda: "I say nothing" in turn.text)
        other = await session.prompt("hurry up", delivery="steer")
        await turn.drained()
        await other.drained()
        said_all = "\n".join(message.text for message in session.messages)
        assert "I got this while I was working: hurry up" in said_all


async def test_drills_and_greetings_have_no_delay_however_calm_it_is(tmp_path: Path) -> None:
    async with opened(2, tmp_path, pace="10") as session:
        async with asyncio.timeout(10):
            await said(session, "stream 2000")
            await said(session, "plan")
            await said(session, "hello")
        assert session.usage is None, "a drill is its own words and nothing else"
        await met(session, lambda: session.title == "Stream 2000")
        turn = await session.prompt("/stream 100")
        await until(turn, lambda: turn.text)
        assert (await asyncio.wait_for(cancelled(turn), 10)) == "cancelled"
        await session.set_config("pace", "quick")
        async with asyncio.timeout(10):
            await said(session, "/stream 100")


@pytest.mark.parametrize("version", [1, 2])
async def test_who_takes_no_forms_is_told_so(version: int, tmp_path: Path) -> None:
    class Deaf:
        async def decide(self, permission: Any) -> None:
            return None

    async with opened(version, tmp_path, answers=Deaf()) as session:
        assert "does not support forms" in await said(session, "/form")
        assert "does not open addresses" in await said(session, "/visit")


@pytest.mark.parametrize("version", [1, 2])
async def test_it_says_the_same_again(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_REHEARSAL_PACE", "0")
    folder = a_folder(tmp_path)
    told = []
    for _ in range(2):
        async with connect(make_agent(), version=version) as client:
            session = await client.new_session(folder)
            texts = [await said(session, text) for text in ("hello", "/look", "/find la", "/plan", "/help")]
            assert session.usage is not None
            told.append((texts, shown(session), session.title, session.usage.used))
    assert told[0] == told[1]


async def cancelled(turn: ClientTurn) -> str:
    await turn.cancel()
    return str((await turn.drained()).stop_reason)


async def until(turn: ClientTurn, condition: Any) -> None:
    if not condition():
        async for _ in turn.updates():
            if condition():
                return
    assert condition(), "the turn ended before that"
