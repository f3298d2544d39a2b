"""What a workspace offers to a v1 agent, and the files that the agent reads and writes over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import Workspace, connect
from tests.client.asks import TERMINAL, offered, until
from tests.client.driving import DEADLINE, ByHand, opened
from tests.connection.scripted import V1_ANSWER
from tests.requirements.marks import requirement

# --- what is offered -------------------------------------------------------------------------------------


@requirement("INIT-18")
@pytest.mark.parametrize("version", [1, None])
@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("terminal", [True, False])
async def test_what_is_offered_is_said_and_what_is_not_is_no_method(
    tmp_path: Path, version: int | None, read: bool, write: bool, terminal: bool
) -> None:
    said: list[Any] = []

    class Agent:
        @asynccontextmanager
        async def serving(self) -> AsyncIterator[None]:
            yield

        async def serve(self, transport: Any) -> None:
            agent = ByHand(transport)
            opening = await agent.expect("initialize")
            said.append(opening["params"]["clientCapabilities"])
            agent.send(id=opening["id"], result=V1_ANSWER)
            for number, method in enumerate(
                ["fs/read_text_file", "fs/write_text_file", *(f"terminal/{name}" for name in TERMINAL)]
            ):
                params = {
                    "sessionId": "none",
                    "path": "/f",
                    "content": "",
                    "command": "ls",
                    "terminalId": "t",
                }
                answer = await agent.request(number, method, params)
                said.append(answer["error"]["code"] != -32601)
            await agent.inbox.take()

    offer = Workspace(read=read, write=write, terminal=terminal)
    async with asyncio.timeout(DEADLINE), connect(Agent(), version=version, workspace=offer):
        await until(lambda: len(said) == 8)
    assert said[0]["fs"] == {"readTextFile": read, "writeTextFile": write}
    assert said[0]["terminal"] is terminal
    assert said[1:] == [read, write, *[terminal] * 5]


@requirement("INIT-18")
async def test_without_a_workspace_nothing_is_offered() -> None:
    async with opened(1) as (_, agent):
        assert not {"fs", "terminal"} & agent.opening["clientCapabilities"].keys()
        answer = await agent.request(1, "fs/read_text_file", {"sessionId": "s", "path": "/etc/hosts"})
        assert answer["error"]["code"] == -32601


@requirement("FS-05")
async def test_in_v2_there_are_no_such_methods(tmp_path: Path) -> None:
    async with opened(2, workspace=Workspace()) as (_, agent):
        params = {"sessionId": "s", "path": "/f", "content": "", "command": "ls", "terminalId": "t"}
        for method in (*Workspace().methods,):
            assert (await agent.request(method, method, params))["error"]["code"] == -32601


async def test_only_sessions_that_are_open_have_files(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    async with offered(tmp_path) as asks:
        assert await asks("fs/read_text_file", sessionId="other", path="/f") == -32002
        assert await asks("fs/read_text_file", path=str(tmp_path / "f")) == {"content": "x"}


# --- files -----------------------------------------------------------------------------------------------


@requirement("FS-02", "FS-03", "FS-04")
async def test_files_of_the_session_are_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "out").write_text("secret")
    path = str(tmp_path / "cwd" / "f")
    async with offered(tmp_path / "cwd", also=(tmp_path / "more",)) as asks:
        assert await asks("fs/read_text_file", path=path) == -32002
        assert await asks("fs/write_text_file", path=path, content="one\ntwo\nthree\n") == {}
        assert await asks("fs/read_text_file", path=path) == {"content": "one\ntwo\nthree\n"}
        assert await asks("fs/read_text_file", path=path, line=2, limit=1) == {"content": "two\n"}
        assert await asks("fs/write_text_file", path=str(tmp_path / "more" / "g"), content="") == {}
        for outside in (str(tmp_path / "out"), "f", f"{tmp_path}/cwd/../out", "/etc/passwd"):
            assert await asks("fs/read_text_file", path=outside) == -32602
            assert await asks("fs/write_text_file", path=outside, content="x") == -32602
        for malformed in ({}, {"path": 1}, {"path": path, "line": -1}, {"path": path, "limit": "all"}):
            answer = await asks("fs/read_text_file", **malformed)
            assert answer == -32602 or "line" in malformed or "limit" in malformed, malformed
    assert (tmp_path / "out").read_text() == "secret"


async def test_roots_that_are_given_stand_for_the_session_s_own(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "cwd").mkdir()
    for folder in ("given", "cwd"):
        (tmp_path / folder / "f").write_text(folder)
    async with offered(tmp_path / "cwd", Workspace([tmp_path / "given"])) as asks:
        assert await asks("fs/read_text_file", path=str(tmp_path / "cwd" / "f")) == -32602
        assert await asks("fs/read_text_file", path=str(tmp_path / "given" / "f")) == {"content": "given"}
        assert await asks("terminal/create", command="ls") == -32602
        in_given = await asks("terminal/create", command="ls", cwd=str(tmp_path / "given"))
        assert in_given["terminalId"]


@requirement("FS-02")
async def test_what_an_editor_has_not_saved_is_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("saved")
    (tmp_path / "g").write_text("saved")
    asked: list[str] = []

    def unsaved(path: str) -> str | None:
        asked.append(path)
        return "typed\nmore\n" if path.endswith("/f") else None

    async with offered(tmp_path, Workspace(unsaved=unsaved)) as asks:
        assert await asks("fs/read_text_file", path=str(tmp_path / "f")) == {"content": "typed\nmore\n"}
        assert await asks("fs/read_text_file", path=str(tmp_path / "f"), line=2) == {"content": "more\n"}
        assert await asks("fs/read_text_file", path=str(tmp_path / "g")) == {"content": "saved"}
        assert await asks("fs/read_text_file", path="/etc/passwd") == -32602
    assert asked == [str(tmp_path / "f"), str(tmp_path / "f"), str(tmp_path / "g")]


async def test_what_was_written_first_is_what_is_read_next(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    async with offered(tmp_path) as asks:
        answers = []
        for number in range(50):
            asks.begin("fs/write_text_file", path=path, content=str(number))
            answers.append(asks.begin("fs/read_text_file", path=path))
        contents = [(await answer)["result"]["content"] for answer in answers]
    assert contents == [str(number) for number in range(50)]
