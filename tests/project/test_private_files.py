"""Files and folders of the hub are for their owner alone, from the moment they are made."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.errors import LocalError
from antiphon.hub.access.audit import Audit
from antiphon.hub.folder import HubFolder, Running
from antiphon.private_files import NotPrivate, locked, make_private_folder, open_private, tighten_file
from antiphon.stores import SQLiteStore
from antiphon.testing.store_samples import events, session

STRANGER = 65534
"""The second user: `nobody`."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The least careful umask: what is private is so by its mode."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in which everybody may make files, as /tmp."""
    path = Path(tempfile.mkdtemp(prefix="antiphon-shared-"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


def as_stranger(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python code as another user. Skips where this user may not become one."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"import os; os.setgid({STRANGER}); os.setuid({STRANGER})\n{code}",
            *arguments,
        ],  # type: ignore[list-item]
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd="/",
    )


async def test_everything_in_a_hubs_folder_is_private_whatever_the_umask(tmp_path: Path) -> None:
    folder = HubFolder(tmp_path / "data")
    folder.make()
    audit = Audit(folder.audit)
    with folder.held(), locked(folder.tokens.with_name("tokens.json.lock")):
        assert folder.token
        assert folder.mark
        audit.note("read", "allowed")
        async with SQLiteStore(folder.sessions) as store:
            await store.create(session("a"), batch=events(1, 3))
            await store.claim("a", "me")
            with folder.published(Running(url="", acp="", token="t", pid=os.getpid())):
                found = {path.name: mode(path) for path in folder.path.iterdir()}
    audit.close()
    assert mode(folder.path) == 0o700
    assert {
        "sessions.db",
        "sessions.db-wal",
        "sessions.db-shm",
        "hub.lock",
        "tokens.json.lock",
    } <= found.keys()
    assert any(name.startswith("sessions.db-owner-") for name in found)
    assert {name: f"{bits:o}" for name, bits in found.items() if bits != 0o600} == {}


async def test_what_others_could_read_is_tightened_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = HubFolder(tmp_path / "data")
    folder.make()
    async with SQLiteStore(folder.sessions) as store:
        await store.create(session("a"), batch=events(1, 3))
    names = ["hub.lock", "hub.log", "audit.jsonl", "audit.jsonl.1", "mark", "agents.json"]
    for name in names:
        (folder.path / name).touch()
    for name in [*names, "sessions.db"]:
        (folder.path / name).chmod(0o644)
    folder.path.chmod(0o755)
    folder.make()
    assert mode(folder.path) == 0o700
    assert {mode(folder.path / name) for name in [*names, "sessions.db"]} == {0o600}
    assert f"folder permissions tightened: {folder.path} had mode 0755, now 0700" in caplog.text
    assert caplog.text.count("file permissions tightened") == len(names) + 1
    caplog.clear()
    folder.make()
    assert "tightened" not in caplog.text


async def test_a_database_that_others_could_read_is_tightened_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SQLiteStore(path) as store:
        await store.create(session("a"), batch=events(1, 3))
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).chmod(0o666)
        async with SQLiteStore(path) as other:
            assert await other.get("a") is not None
            assert {mode(path.with_name(path.name + ending)) for ending in ("", "-wal", "-shm")} == {0o600}


def test_an_audit_log_that_others_could_read_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    path.chmod(0o644)
    audit = Audit(path)
    audit.note("read", "allowed")
    audit.close()
    assert mode(path) == 0o600
    assert path.read_text().count("\n") == 1


def test_a_shared_folder_and_one_of_other_purposes_are_refused(tmp_path: Path, shared: Path) -> None:
    with pytest.raises(NotPrivate, match=r"others can use the folder .* \(mode 1777\)"):
        HubFolder(shared).make()
    assert mode(shared) == 0o1777
    project = tmp_path / "project"
    project.mkdir(mode=0o755)
    (project / "main.py").touch()
    with pytest.raises(NotPrivate, match="chmod 700"):
        HubFolder(project).make()
    assert mode(project) == 0o755
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o777)
    HubFolder(empty).make()
    assert mode(empty) == 0o700


def test_links_of_ones_own_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    make_private_folder(tmp_path / "link")
    (tmp_path / "log").touch(mode=0o644)
    (tmp_path / "to-log").symlink_to(tmp_path / "log")
    os.close(open_private(tmp_path / "to-log", os.O_WRONLY))
    assert mode(tmp_path / "log") == 0o600


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for flags in (os.O_RDWR, os.O_RDONLY):
        with pytest.raises(NotPrivate, match="not a regular file"):
            open_private(tmp_path / "fifo", flags)
    with pytest.raises(NotPrivate, match="not a regular file"):
        tighten_file(tmp_path / "fifo")


PLANT = """
import os, sys
shared = sys.argv[1]
os.umask(0)
os.mkdir(f"{shared}/folder", 0o777)
os.symlink("/tmp", f"{shared}/link")
open(f"{shared}/file", "w").close()
os.symlink(sys.argv[2], f"{shared}/to-mine")
"""


def test_what_another_user_planted_is_refused(shared: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    planted = as_stranger(PLANT, shared, mine)
    assert planted.returncode == 0, planted.stderr
    for name in ("folder", "link"):
        with pytest.raises(LocalError, match=r"belongs to user 65534|symbolic link of user 65534"):
            HubFolder(shared / name).make()
    for name in ("file", "to-mine"):
        for flags in (os.O_WRONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_RDONLY):
            # The kernel may refuse it before we do (fs.protected_regular, fs.protected_symlinks).
            with pytest.raises((NotPrivate, PermissionError)):
                os.close(open_private(shared / name, flags))
        with pytest.raises((NotPrivate, PermissionError)):
            tighten_file(shared / name)
    assert mine.read_text() == "mine"


LOOK = """
import os, sys
seen = []
for folder, _, files in os.walk(sys.argv[1]):
    for name in files:
        try:
            open(os.path.join(folder, name), "rb").close()
            seen.append(name)
        except PermissionError:
            pass
print(seen)
"""


async def test_another_user_can_read_nothing_of_it(shared: Path) -> None:
    folder = HubFolder(shared / "data")
    folder.make()
    assert folder.token
    async with SQLiteStore(shared / "alone.db") as store:
        await store.create(session("a"), batch=events(1, 3))
        assert (shared / "alone.db-wal").exists()
        looked = as_stranger(LOOK, shared)
    assert looked.returncode == 0, looked.stderr
    assert looked.stdout.strip() == "[]"
