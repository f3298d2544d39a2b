"""Files and terminals for a v1 agent behind the hub: an editor's that offers its own, else the hub's."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import ClientSession, connect
from antiphon.client.workspace import Workspace
from antiphon.errors import LocalError
from antiphon.hub import Hub, HubOptions
from tests.agent.talk import Talk
from tests.hub.doors import doors
from tests.hub.habits import Frame, Habit
from tests.hub.parrots import begin, ended, new_session, parrot, prompt, said, talking
from tests.hub.test_logins import RICH
from tests.hub.test_processes import DEADLINE, hub_of
from tests.hub.test_sharing import settled, told
from tests.requirements.marks import requirement


async def done(session: ClientSession, text: str) -> str:
    turn = await session.prompt(text)
    async with asyncio.timeout(DEADLINE):
        assert (await turn.drained()).stop_reason == "end_turn"
    return turn.text


@requirement("FS-02")
async def test_an_editor_s_unsaved_text_is_what_the_agent_reads(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved")
    editing = Workspace(unsaved=lambda path: "not saved yet" if path.endswith("a.txt") else None)
    async with hub_of(tmp_path, RICH, version=1) as (hub, thin):
        async with connect(hub, version=1, workspace=editing) as editor:
            session = await editor.new_session(tmp_path)
            other = await thin.load_session(session.id, tmp_path)
            assert await done(session, f"read {tmp_path}/a.txt") == "not saved yet"
            assert await done(other, f"read {tmp_path}/a.txt") == "not saved yet"  # whoever prompts
            assert await done(session, f"write {tmp_path}/b.txt hello") == "written"
            assert (tmp_path / "b.txt").read_text() == "hello"
            assert "failed: " in await done(session, f"read {tmp_path}/none.txt")  # the editor's word
        assert await done(other, f"read {tmp_path}/a.txt") == "saved"  # it has left


async def test_the_hub_s_own_files_can_be_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved")
    editing = Workspace(unsaved=lambda _: "not saved yet")
    async with (
        hub_of(tmp_path, RICH, version=1, files="hub") as (hub, _),
        connect(hub, version=1, workspace=editing) as editor,
    ):
        session = await editor.new_session(tmp_path)
        assert await done(session, f"read {tmp_path}/a.txt") == "saved"
        assert "failed: " in await done(session, "read /etc/hostname")  # outside of the session's folders


def by_hand(hub: Hub, **offered: Any) -> AbstractAsyncContextManager[Talk]:
    """An editor of v1, frame by frame."""
    return talking(hub, 1, clientCapabilities=offered)


async def run_there(editor: Talk, session: str, *, leaves: bool = False) -> None:
    """The editor runs what the agent wants run, in a terminal that it calls `1`."""
    asked = await editor.request("terminal/create")
    assert asked["params"]["sessionId"] == session
    assert asked["params"]["command"] == "make"
    editor.send(id=asked["id"], result={"terminalId": "1"})
    if leaves:
        await editor.request("terminal/wait_for_exit")
        return
    shown = {"output": "built\n", "truncated": False, "exitStatus": {"exitCode": 0}}
    while True:
        asked = await editor.until(lambda frame: str(frame.get("method", "")).startswith("terminal/"))
        assert asked["params"]["terminalId"] == "1"
        match asked["method"]:
            case "terminal/output":
                editor.send(id=asked["id"], result=shown)
            case "terminal/wait_for_exit":
                editor.send(id=asked["id"], result={"exitCode": 0})
            case "terminal/release":
                editor.send(id=asked["id"], result={})
                return


async def test_a_terminal_of_the_editor_is_shown_to_it_by_its_own_id_and_to_others_as_it_was_read(
    tmp_path: Path,
) -> None:
    async with hub_of(tmp_path, RICH, version=1) as (hub, other), by_hand(hub, terminal=True) as editor:
        session = (await editor.call("n", "session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        following = await other.load_session(session, tmp_path)
        for number in range(2):  # the editor calls each of them `1`
            editor.prompt(number, session, "run make all")
            await run_there(editor, session)
            assert (await editor.answer_to(number))["result"]["stopReason"] == "end_turn"
        await settled(following, "0: built")
        shown = [frame for frame in editor.seen if '"type": "terminal"' in str(frame).replace("'", '"')]
        assert shown
        assert all("'terminalId': '1'" in str(frame) for frame in shown)
        assert [text for kind, text in told(following) if kind == "agent"] == ["0: built", "0: built"]
        assert len(following.terminals) == 2
        for terminal in following.terminals:
            assert terminal.exited
            assert "built" in terminal.text


async def test_a_terminal_of_an_editor_that_leaves_is_gone_and_the_next_is_the_hub_s(tmp_path: Path) -> None:
    async with hub_of(tmp_path, RICH, version=1) as (hub, other):
        async with by_hand(hub, terminal=True) as editor:
            session = (await editor.call("n", "session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
            following = await other.load_session(session, tmp_path)
            editor.prompt(1, session, "run make all")
            await run_there(editor, session, leaves=True)
        await settled(following, "failed: ")
        assert all(terminal.exited for terminal in following.terminals)
        assert await done(following, f"run {sys.executable} -c print(6*7)") == "0: 42"


async def test_an_editor_that_does_not_do_what_it_offers_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved")
    async with (
        hub_of(tmp_path, RICH, version=1) as (hub, _),
        by_hand(hub, fs={"readTextFile": True}) as editor,
    ):
        session = (await editor.call("n", "session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        editor.prompt(1, session, f"read {tmp_path}/a.txt")
        asked = await editor.request("fs/read_text_file")
        editor.send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
        await editor.answer_to(1)
        assert "saved" in str(editor.seen)
        editor.prompt(2, session, f"read {tmp_path}/a.txt")
        asked = await editor.request("fs/read_text_file")
        editor.send(id=asked["id"], error={"code": -32002, "message": "it is locked"})
        await editor.answer_to(2)
        assert "it is locked" in str(editor.seen)


async def test_an_observer_s_files_and_terminals_are_never_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("saved")
    offered = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    hub_folder = tmp_path / "hub"
    hub_folder.mkdir()
    async with (
        doors(hub_folder, agents={"rich": RICH}, version=1) as door,
        door.talk(version=1) as owner,
        door.talk(door.token("eye", "observer"), 1, clientCapabilities=offered) as eye,
    ):
        session = (await owner.call("n", "session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        await eye.call("l", "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        said = (
            f"read {tmp_path}/a.txt",
            f"write {tmp_path}/b.txt hello",
            f"run {sys.executable} -c print(6*7)",
        )
        for number, text in enumerate(said):
            owner.prompt(number, session, text)
            assert (await owner.answer_to(number))["result"]["stopReason"] == "end_turn"
        for expected in ("saved", "written", "0: 42"):
            assert expected in str(owner.seen)
        assert (tmp_path / "b.txt").read_text() == "hello"
        await eye.until(lambda frame: "0: 42" in str(frame))
        assert not [frame for frame in eye.seen if "id" in frame and "method" in frame]


@requirement("FS-05")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_v2_client_has_no_files_to_offer_and_the_hub_s_are_used(tmp_path: Path, version: int) -> None:
    (tmp_path / "a.txt").write_text("saved")
    async with hub_of(tmp_path, RICH, version=1) as (hub, _), connect(hub, version=version) as client:
        session = await client.new_session(tmp_path)
        assert await done(session, f"read {tmp_path}/a.txt") == "saved"


CAPABLE = {"readTextFile": True, "writeTextFile": True}


def create(path: str) -> list[Any]:
    """What an agent does that creates a file through its client: it reads it first."""
    return [
        {"ask": ["fs/read_text_file", {"sessionId": "$session", "path": path}]},
        {"ask": ["fs/write_text_file", {"sessionId": "$session", "path": path, "content": "new"}]},
        {"ask": ["fs/read_text_file", {"sessionId": "$session", "path": path}]},
    ]


@requirement("FS-04")
@pytest.mark.parametrize("files", ["editor", "hub"])
@pytest.mark.parametrize("version", [1, 2])
async def test_a_missing_file_is_told_by_code_message_and_data_and_can_then_be_written(
    tmp_path: Path, files: str, version: int
) -> None:
    path = str(tmp_path / "folder" / "new file.txt")
    async with hub_of(tmp_path, parrot(1), files=files) as (hub, _), talking(hub, version) as client:
        session = await new_session(client, cwd=str(tmp_path))
        await prompt(client, session, *create(path))
        missing, *done = said(client)
        assert missing["code"] == -32002
        for words in ("Resource not found", "ENOENT", "No such file"):
            assert words in missing["message"]
        uri = f"{tmp_path.as_uri()}/folder/new%20file.txt"
        assert missing["data"] == {"path": path, "uri": uri, "code": "ENOENT"}
        assert done == [{}, {"content": "new"}]


async def test_a_missing_file_of_an_editor_is_told_as_the_editor_tells_it(tmp_path: Path) -> None:
    path = str(tmp_path / "new.txt")
    word = {"code": -32603, "message": "Internal error", "data": {"details": "ENOENT: no such file"}}
    async with hub_of(tmp_path, parrot(1)) as (hub, _), by_hand(hub, fs=CAPABLE) as editor:
        session = await new_session(editor, cwd=str(tmp_path))
        begin(editor, session, *create(path))
        answers: list[dict[str, Any]] = [{"error": word}, {"result": {}}, {"result": {"content": "unsaved"}}]
        for answer in answers:
            asked = await editor.until(lambda frame: str(frame.get("method")).startswith("fs/"))
            assert asked["params"]["sessionId"] == session
            editor.send(id=asked["id"], **answer)
        await ended(editor)
        assert said(editor) == [word, {}, {"content": "unsaved"}]
        assert "new.txt" not in os.listdir(tmp_path)  # the editor has it


async def test_with_no_files_an_agent_is_offered_neither_files_nor_terminals(tmp_path: Path) -> None:
    create_terminal = {"ask": ["terminal/create", {"sessionId": "$session", "command": "true"}]}
    async with hub_of(tmp_path, parrot(1), files="none") as (hub, _), by_hand(hub, fs=CAPABLE) as editor:
        session = await new_session(editor, cwd=str(tmp_path))
        offered = (await editor.call("o", "_parrot/opening", sessionId=session))["clientCapabilities"]
        assert offered.get("fs", {}).get("readTextFile", False) is False
        assert offered.get("fs", {}).get("writeTextFile", False) is False
        assert offered.get("terminal", False) is False
        await prompt(editor, session, *create(str(tmp_path / "new.txt")), create_terminal)
        assert [answer["code"] for answer in said(editor)] == [-32601] * 4
        assert not [
            frame for frame in editor.seen if str(frame.get("method")).startswith(("fs/", "terminal/"))
        ]


@pytest.mark.parametrize(("moment", "read"), [("needed", "saved"), ("behind", "unsaved")])
async def test_files_and_terminals_are_there_while_a_session_begins(
    tmp_path: Path, moment: str, read: str
) -> None:
    """An agent that needs them to open the session gets the hub's. Once it has answered, an editor that
    offers its own is waited for."""
    path = tmp_path / "a.txt"
    path.write_text("saved")
    opening: list[Frame] = []
    answers: dict[str, Frame] = {}

    def new(agent: Habit, frame: Frame) -> None:
        opening.append(frame)
        if moment == "behind":
            agent.answer(frame, sessionId="s")
        agent.ask("fs/read_text_file", path=str(path))
        agent.ask("terminal/create", command=sys.executable, args=["-c", "print(6*7)"], cwd=str(tmp_path))

    def go_on(agent: Habit, frame: Frame) -> None:
        answers[frame["id"]] = frame["result"]
        if moment == "needed" and len(answers) == 2:
            agent.answer(opening[0], sessionId="s")

    agent = Habit(1, new=new)
    agent.on_answer = go_on
    async with hub_of(tmp_path, agent) as (hub, _), by_hand(hub, fs=CAPABLE) as editor:
        session = await new_session(editor, cwd=str(tmp_path))
        if moment == "behind":
            asked = await editor.request("fs/read_text_file")
            assert asked["params"] == {"sessionId": session, "path": str(path)}
            editor.send(id=asked["id"], result={"content": "unsaved"})
        while len(answers) < 2:
            editor.prompt(f"p{len(editor.seen)}", session, "hello")
            await editor.until(lambda frame: "stopReason" in frame.get("result", {}))
        assert answers["q1"] == {"content": read}
        assert answers["q2"]["terminalId"]
        async with talking(hub, 2) as other:
            await other.call(
                "l",
                "session/resume",
                sessionId=session,
                cwd=str(tmp_path),
                mcpServers=[],
                replayFrom={"type": "start"},
            )
            terminals = [each for each in other.updates() if each["sessionUpdate"] == "terminal_update"]
            assert {each["terminalId"] for each in terminals} == {answers["q2"]["terminalId"]}


def test_files_of_nobody_known_are_refused() -> None:
    with pytest.raises(LocalError, match="files must be one of editor, hub, none, got 'all'"):
        Hub(["agent"], options=HubOptions(files="all"))
