"""`/tour`: to its end, stopped, unattended, and behind a hub with a crash on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from antiphon.client import ClientSession, Permission
from antiphon.rehearsal.skills.guide import STEPS
from tests.cli.command import prompt
from tests.hub.running import DEADLINE, served
from tests.rehearsal.driving import AT_ONCE, Answers, a_folder, met, opened, said


def heads(session: ClientSession) -> list[str]:
    titles = [call.title or "" for call in session.tool_calls]
    return [title for title in titles if f" of {len(STEPS)}: " in title]


def onwards(permission: Permission) -> str:
    return "on" if any(option.option_id == "on" for option in permission.options) else "allow"


@pytest.mark.parametrize("version", [1, 2])
async def test_the_tour_shows_every_step_and_leaves_nothing_behind(version: int, tmp_path: Path) -> None:
    answers = Answers(onwards, title="Vespers")
    folder = a_folder(tmp_path)
    async with opened(version, folder, answers=answers) as session:
        text = await said(session, "/tour")
        assert heads(session) == [f"{at} of {len(STEPS)}: {step.title}" for at, step in enumerate(STEPS, 1)]
        assert len(answers.asked) == len(STEPS) - 1 + 3, "between the steps, and to edit, undo and run"
        assert len(answers.elicited) == 1
        for step in STEPS:
            assert step.text in text
        assert session.title == "Tour"
        await met(session, lambda: "The practice is over" in session.messages[-1].text)
    assert not (folder / "antiphon-tour").exists()


@pytest.mark.parametrize("version", [1, 2])
async def test_the_tour_stops_where_it_is_told_to_and_goes_on_from_there(
    version: int, tmp_path: Path
) -> None:
    async with opened(version, tmp_path, answers=Answers("stop")) as session:
        assert "`/tour 5` continues with this step" in await said(session, "/tour 4")
        assert len(heads(session)) == 2
        assert session.tool_calls[-1].status == "failed"
    wishes = {"all": 0, "reject": 0}

    def to_the_end(permission: Permission) -> str:
        wish = "all" if permission.options[0].option_id == "on" else "reject"
        wishes[wish] += 1
        return wish

    async with opened(version, tmp_path, answers=Answers(to_the_end)) as session:
        text = await said(session, "give me the tour")
        assert wishes == {"all": 1, "reject": 2}, "no edit, so nothing to undo"
        assert "nothing to undo" in text
        assert STEPS[-1].text in text
        assert STEPS[-1].text in await said(session, "/tour 99")


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [([], "`/tour 2` continues with this step."), (["--allow", "all"], "everything.")],
)
@pytest.mark.parametrize("version", ["1", "2"])
def test_the_tour_does_not_hang_where_nobody_is_there(
    arguments: list[str], ends: str, version: str, tmp_path: Path
) -> None:
    done = prompt("/tour", "--version", version, "--cwd", str(tmp_path), *arguments, **AT_ONCE)
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith(ends)


@pytest.mark.parametrize("version", [1, 2])
async def test_behind_a_hub_it_is_the_same_and_a_crash_is_survived(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_REHEARSAL_PACE", "0")
    folder = a_folder(tmp_path)
    with served(tmp_path / "hub", agent=()) as hub:
        async with (
            asyncio.timeout(DEADLINE),
            hub.client(version=version, answers=Answers(onwards, title="Vespers")) as client,
        ):
            session = await client.new_session(folder)
            assert "`/tour`" in await said(session, "hello")
            assert STEPS[-1].text in await said(session, "/tour")
            assert {"tour", "edit", "crash"} <= {command.name for command in session.commands}
            await met(session, lambda: "The practice is over" in session.messages[-1].text)
            await met(session, lambda: session.state == "idle")
            turn = await session.prompt("/crash")
            end = await turn.drained()
            assert end.stop_reason == "error"
            assert "This process ends now" in turn.text
            assert "Sentence 1 of 1" in await said(session, "stream 1")
