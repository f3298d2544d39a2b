"""What a tool call tells beside its output: where it is, and what the tool returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.client import ClientSession, connect
from antiphon.errors import LocalError
from tests.client.driving import WAYS, driven
from tests.requirements.marks import requirement


def agent_that(work: Any) -> Agent:
    agent = Agent("worker")

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        async with turn.tool_call("Work", raw_input={"n": 1}) as call:
            await work(turn, call)

    return agent


async def prompted(session: ClientSession) -> Any:
    await (await session.prompt("go")).drained()
    [call] = session.tool_calls
    return call


@requirement("RPC-43", "TOOL-V1-10")
@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_call_tells_where_it_is(way: str) -> None:
    async def work(turn: AgentTurn, call: Any) -> None:
        await call.locate("song.py", line=7)
        await call.locate("/site/verse/../song.py")
        await call.locate(Path("song.py"), line=7)

    async with driven(agent_that(work), way) as session:
        call = await prompted(session)
    assert [(place.path, place.line) for place in call.locations] == [
        ("/song.py", 7),
        ("/site/song.py", None),
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("output", [{"found": [1, None]}, "text", 0, None, []])
async def test_a_tool_call_tells_what_the_tool_returned(way: str, output: Any) -> None:
    async def work(turn: AgentTurn, call: Any) -> None:
        await call.set_raw_output({"first": True})
        await call.set_raw_output(output)

    async with driven(agent_that(work), way) as session:
        call = await prompted(session)
    if output is None and way.startswith("v1"):
        return  # v1 has no way to take it back
    assert call.raw_output == output
    assert call.raw_input == {"n": 1}


async def test_lines_are_counted_from_1() -> None:
    failed: list[Exception] = []

    async def work(turn: AgentTurn, call: Any) -> None:
        try:
            await call.locate("song.py", line=0)
        except LocalError as error:
            failed.append(error)

    async with driven(agent_that(work)) as session:
        assert not (await prompted(session)).locations
    assert len(failed) == 1


@requirement("SESS-11")
async def test_the_roots_are_the_boundary_links_resolved(tmp_path: Path) -> None:
    root, other, outside = (tmp_path / name for name in ("root", "other", "outside"))
    for folder in (root, other, outside):
        folder.mkdir()
    (root / "link").symlink_to(outside)
    held: dict[str, bool] = {}

    async def work(turn: AgentTurn, call: Any) -> None:
        paths = [
            "a",
            "deep/b",
            ".",
            "link/c",
            "../outside/d",
            "../root2",
            str(other / "e"),
            str(outside),
            "/",
        ]
        held.update({path: turn.session.holds(path) for path in paths})
        assert turn.session.roots == (str(root), str(other))

    async with connect(agent_that(work)) as client:
        await prompted(await client.new_session(root, additional_directories=[other]))
    assert [path for path, inside in held.items() if inside] == ["a", "deep/b", ".", str(other / "e")]
