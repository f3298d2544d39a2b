"""Files of a session's folder are found by what is typed of their paths, and none outside of it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from antiphon import MemoryStore
from antiphon.hub.folders import file_search
from antiphon.hub.folders.file_search import FileSearch, best, files_below
from antiphon.hub.folders.ignored import Ignored
from antiphon.schema.antiphon.hub import FindFilesRequest
from antiphon.stores import Batch, SessionRecord
from tests.hub.doors import doors
from tests.hub.running import DEADLINE


def tree(folder: Path, *paths: str) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def test_files_are_listed_without_hidden_folders_and_what_is_ignored(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "README.md", ".env", ".git/config", "src/app.py", "src/app.pyc", "src/keep.pyc", "build/out.js",
        "docs/build/page.md", "docs/a/b/deep.log", "docs/a/kept.txt", "node_modules/x/index.js",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("# no\n*.pyc\n!keep.pyc\n/build/\nnode_modules\ndocs/**/*.log\n\n")
    (tmp_path / "docs/.gitignore").write_text("kept.txt\n")
    assert sorted(files_below(str(tmp_path))) == [
        ".env", ".gitignore", "README.md", "docs/.gitignore", "docs/build/page.md", "src/app.py",
        "src/keep.pyc",
    ]  # fmt: skip


def test_nothing_outside_the_folder_is_found(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    tree(outside, "secret.txt", "below/secret.txt")
    tree(inside, "mine.txt")
    (inside / "link").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret.txt")
    (inside / "ring").symlink_to(inside)
    (inside / ".gitignore").symlink_to(outside / "secret.txt")
    os.mkfifo(inside / "pipe")
    assert files_below(str(inside)) == ["mine.txt"]
    assert files_below(str(inside / "mine.txt")) == files_below(str(inside / "none")) == []
    assert files_below("/a\0b") == []


def test_a_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, *(f"{number}.txt" for number in range(30)), "a/b/c/d/deep.txt")
    monkeypatch.setattr(file_search, "DEEPEST", 2)
    assert len(files_below(str(tmp_path))) == 30
    monkeypatch.setattr(file_search, "MOST", 10)
    assert len(files_below(str(tmp_path))) == 10
    monkeypatch.setattr(file_search, "SECONDS", -1.0)
    assert files_below(str(tmp_path)) == []
    (tmp_path / ".gitignore").write_text("\n".join(["*a" * 90 + "b", "**/" * 60 + "x"] * 200))
    long = "a" * 200
    tree(tmp_path, long)
    began = time.process_time()
    monkeypatch.undo()
    files_below(str(tmp_path))
    assert time.process_time() - began < 5


def test_no_folder_is_read_after_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of patterns may take long, and there may be thousands."""
    tree(tmp_path, *(f"{number}/.gitignore" for number in range(20)))
    read: list[str] = []
    now = 0.0

    def within(self: Ignored, descriptor: int, prefix: str) -> Ignored:
        nonlocal now
        read.append(prefix)
        now += 0.4
        return self

    monkeypatch.setattr(Ignored, "within", within)
    monkeypatch.setattr(file_search, "time", SimpleNamespace(monotonic=lambda: now))
    files_below(str(tmp_path))
    assert read == ["", "0/", "1/"]


async def test_a_folder_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, real = Event(), file_search.files_below

    def hang(folder: str) -> list[str]:
        gate.wait()
        return real(folder)

    monkeypatch.setattr(file_search, "files_below", hang)
    store = MemoryStore()
    record = SessionRecord(session_id="s", cwd="/", title=None, created_at=1, updated_at=1)
    created = b'{"seq":1,"at":1,"body":{"type":"session_created","session_id":"s","cwd":"/","format":1}}'
    await store.create(record, batch=Batch(1, (created,)))
    search = FileSearch(store)
    search.threads.patience = 0.05
    try:
        async with asyncio.timeout(DEADLINE):
            assert (await search.find(FindFilesRequest(session_id="s"))).files == []
            await search.aclose()
    finally:
        gate.set()


def test_the_best_come_first() -> None:
    paths = ["docs/app.md", "src/app.py", "src/my_app.py", "application/x.py", "lib/a_p_p.py", "zebra"]
    assert best(paths, "app") == [
        "src/app.py", "docs/app.md", "src/my_app.py", "application/x.py", "lib/a_p_p.py",
    ]  # fmt: skip
    assert best(paths, "src/m") == ["src/my_app.py"]
    assert best(paths, "")[:3] == ["zebra", "src/app.py", "docs/app.md"]


async def test_a_client_finds_files_of_its_session(tmp_path: Path) -> None:
    work = tmp_path / "work"
    tree(work, "src/näme one.py", "other.txt")
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as talk:
        able = (await talk.answer_to("init"))["result"]["capabilities"]["_meta"]["antiphon"]
        assert able["findFiles"] == {}
        session = (await talk.call("n", "session/new", cwd=str(work), mcpServers=[]))["sessionId"]
        found = await talk.call("f", "_antiphon/find_files", sessionId=session, query="nä")
        uri = (work / "src/näme one.py").as_uri()
        assert found == {"files": [{"path": "src/näme one.py", "uri": uri}]}
        refused = {
            "none": ({"sessionId": "none"}, -32002),
            "long": ({"sessionId": session, "query": "x" * 201}, -32602),
        }
        for id, (params, code) in refused.items():
            talk.send(id=id, method="_antiphon/find_files", params=params)
            assert (await talk.answer_to(id))["error"]["code"] == code
