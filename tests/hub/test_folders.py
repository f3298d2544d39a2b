"""`_antiphon/list_folders`: what a client may know of the folders of the hub's machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from antiphon.errors import Forbidden
from antiphon.hub.folders import lister
from antiphon.hub.folders.lister import LOOKED_AT, SHOWN, FolderLister, list_folders
from antiphon.schema.antiphon.folders import FolderState, ListFoldersRequest
from antiphon.server.method import Role
from tests.hub.doors import DEADLINE, doors, refused


def names(path: Path, prefix: str = "") -> tuple[FolderState, list[str], bool]:
    found = list_folders(str(path), prefix)
    return found.state, found.folders, found.truncated


def test_a_folder_is_listed_with_the_folders_in_it_alone(tmp_path: Path) -> None:
    for name in ("src", "Docs", ".git", "docs-old"):
        (tmp_path / name).mkdir()
    (tmp_path / "readme.md").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "src")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    (tmp_path / os.fsdecode(b"no-text-\xff")).mkdir()
    assert names(tmp_path) == (FolderState.OK, ["Docs", "docs-old", "link", "src"], False)
    assert names(tmp_path, "doc") == (FolderState.OK, ["Docs", "docs-old"], False)
    assert names(tmp_path, ".") == (FolderState.OK, [".git"], False)


def test_a_path_that_no_agent_can_work_in_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert names(tmp_path / "none")[0] is FolderState.MISSING
    assert names(tmp_path / "file" / "below")[0] is FolderState.MISSING
    assert names(Path("/nul\0byte"))[0] is FolderState.MISSING
    assert names(tmp_path / "file")[0] is FolderState.NOT_A_FOLDER
    assert names(tmp_path / "loop")[0] is FolderState.UNREADABLE
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read everything
    assert names(tmp_path) == (FolderState.UNREADABLE, [], False)


def test_a_large_folder_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(SHOWN + 5):
        (tmp_path / f"folder-{number:03}").mkdir()
    assert names(tmp_path) == (FolderState.OK, [f"folder-{n:03}" for n in range(SHOWN)], True)
    assert names(tmp_path, "folder-20") == (FolderState.OK, [f"folder-20{n}" for n in range(5)], False)
    assert SHOWN < LOOKED_AT
    monkeypatch.setattr(lister, "LOOKED_AT", 3)
    _, found, truncated = names(tmp_path)
    assert (len(found), truncated) == (3, True)


async def test_paths_are_those_that_a_user_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "site" / "docs").mkdir(parents=True)
    lister = FolderLister(str(tmp_path / "site"))
    site = tmp_path / "site"
    for given, meant in (
        ("", site), (".", site), ("docs", site / "docs"), ("..", tmp_path), ("~", tmp_path), ("~/site", site),
    ):  # fmt: skip
        found = await lister.answer(ListFoldersRequest(path=given))
        assert (found.path, found.state) == (str(meant), FolderState.OK)


async def test_a_drive_that_hangs_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, real = Event(), lister.list_folders

    def hang(path: str, prefix: str = "") -> Any:
        if path == "/hung":
            gate.wait(DEADLINE)
        return real(path, prefix)

    monkeypatch.setattr(lister, "list_folders", hang)
    monkeypatch.setattr(lister, "THREADS", 2)
    shown = FolderLister("/")

    async def state(path: str, patience: float) -> FolderState:
        shown.threads.patience = patience
        return (await shown.answer(ListFoldersRequest(path=path))).state

    try:
        assert await state("/hung", 0.05) is FolderState.UNREADABLE
        assert await state("/", DEADLINE) is FolderState.OK
        assert await state("/hung", 0.05) is FolderState.UNREADABLE
        assert await state("/", 0.05) is FolderState.UNREADABLE  # both threads hang
    finally:
        gate.set()
    assert await state("/", DEADLINE) is FolderState.OK


async def test_folders_are_for_clients_that_may_begin_sessions_anywhere(tmp_path: Path) -> None:
    (tmp_path / "here" / "docs").mkdir(parents=True)
    where = {"path": str(tmp_path / "here")}
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        assert await owner.call("f", "_antiphon/list_folders", **where) == {
            **where, "state": "ok", "folders": ["docs"], "truncated": False,
        }  # fmt: skip
        for role, sessions in ((Role.OBSERVER, None), (Role.OWNER, [session]), (Role.CONTROLLER, [session])):
            async with door.talk(door.token(f"{role} {sessions}", role, sessions=sessions)) as talk:
                for named in ({}, {"sessionId": session}):
                    error = await refused(talk, f"f{named}", "_antiphon/list_folders", **where, **named)
                    assert error is not None
                    assert error["code"] == Forbidden.code
