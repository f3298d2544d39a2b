"""Files inside the folders that are offered, and nothing outside of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from antiphon.client.workspace import files as confined
from antiphon.client.workspace.files import ConfinedFiles
from antiphon.errors import AntiphonError, InvalidParams, RequestError, ResourceNotFound
from tests.requirements.marks import requirement


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (tmp_path / "secret").write_text("secret")
    return made


def files(*roots: Path, most: int = 1000) -> ConfinedFiles:
    return ConfinedFiles(map(str, roots), most=most)


def read(root: Path, path: object, line: int | None = None, limit: int | None = None, **options: Any) -> str:
    return files(root, **options).read_text(str(path), line=line, limit=limit)


# --- reading ---------------------------------------------------------------------------------------------


@requirement("FS-02")
@pytest.mark.parametrize(
    ("line", "limit", "text"),
    [
        (None, None, "a\r\nb\n\n\u2028d"),
        (1, None, "a\r\nb\n\n\u2028d"),
        (0, 1, "a\r\n"),
        (1, 1, "a\r\n"),
        (2, 2, "b\n\n"),
        (4, 1, "\u2028d"),
        (4, 99, "\u2028d"),
        (None, 2, "a\r\nb\n"),
        (5, None, ""),
        (2**32 - 1, 2**32 - 1, ""),
        (1, 0, ""),
    ],
)
def test_lines_are_counted_from_one_and_keep_their_ends(
    root: Path, line: int | None, limit: int | None, text: str
) -> None:
    (root / "f").write_bytes("a\r\nb\n\n\u2028d".encode())
    assert read(root, root / "f", line, limit) == text
    assert files(root).select("a\r\nb\n\n\u2028d", line=line, limit=limit) == text


def test_what_is_too_large_is_refused_and_can_be_read_in_parts(root: Path) -> None:
    (root / "f").write_text("0123456789\n" * 100)
    for line, limit in ((None, None), (1, 100), (2, None)):
        with pytest.raises(InvalidParams, match="fewer lines"):
            read(root, root / "f", line, limit, most=500)
    assert read(root, root / "f", 100, 1, most=500) == "0123456789\n"
    (root / "f").write_text("x" * 501)
    with pytest.raises(InvalidParams):
        read(root, root / "f", 1, 1, most=500)
    assert read(root, root / "f", most=501) == "x" * 501


def test_a_line_is_not_looked_for_without_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "SCANNED", 100)
    (root / "f").write_text("\n" * 200)
    with pytest.raises(InvalidParams, match="bytes into the file"):
        read(root, root / "f", 150, 1)


def test_what_is_no_utf_8_is_refused_and_not_replaced(root: Path) -> None:
    (root / "f").write_bytes(b"good\n\xff\xfe\n")
    with pytest.raises(InvalidParams, match="UTF-8"):
        read(root, root / "f")
    assert read(root, root / "f", 1, 1) == "good\n"
    (root / "f").write_bytes("\ufeffwith a mark\0".encode())
    assert read(root, root / "f") == "\ufeffwith a mark\0"


@requirement("FS-04")
def test_a_missing_file_is_told_as_that(root: Path) -> None:
    (root / "f").write_text("")
    for path in ("none", "none/deeper", "f/deeper"):
        with pytest.raises(ResourceNotFound) as raised:
            read(root, root / path)
        assert raised.value.to_wire().code == -32002
        asked = root / path
        assert raised.value.data == {"path": str(asked), "uri": asked.as_uri(), "code": "ENOENT"}


def test_a_file_that_may_not_be_read_is_an_error_without_a_path(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("")

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(root))

    monkeypatch.setattr(os, "stat", denied)
    with pytest.raises(RequestError) as raised:
        read(root, root / "f")
    assert (raised.value.to_wire().code, raised.value.to_wire().message) == (-32603, "Permission denied")


# --- what is refused -------------------------------------------------------------------------------------


def refused(root: Path, path: object) -> None:
    """Neither read nor written, and it makes no difference whether it is there."""
    for act in (lambda: read(root, path), lambda: files(root).write_text(str(path), "no")):
        with pytest.raises(InvalidParams) as raised:
            act()
        assert str(root.parent) not in raised.value.to_wire().message


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "f", "~/f", "{root}/../secret", "{root}/../root/f", "{root}/sub/../f", "{root}\0/f",
        "{root}/f\0", "{root}2/f", "{parent}/secret", "{parent}/none", "/", "/etc/passwd", "/etc/none",
        "/proc/self/environ", "/dev/null", "file://{root}/f",
    ],
)  # fmt: skip
def test_a_path_that_does_not_lie_inside_is_refused(root: Path, path: str) -> None:
    (root / "f").write_text("in")
    (root.parent / "root2").mkdir()
    (root.parent / "root2" / "f").write_text("out")
    refused(root, path.format(root=root, parent=root.parent))
    assert (root.parent / "secret").read_text() == "secret"


def test_links_are_followed_only_to_what_is_inside(root: Path) -> None:
    (root / "f").write_text("in")
    (root / "near").symlink_to("f")
    (root / "folder").symlink_to(root)
    (root / "far").symlink_to(root.parent / "secret")
    (root / "up").symlink_to("..")
    (root / "new").symlink_to(root.parent / "made")
    (root / "loop").symlink_to("loop")
    assert read(root, root / "near") == read(root, root / "folder" / "folder" / "f") == "in"
    for path in ("far", "up/secret", "up/root/../secret", "new", "loop"):
        refused(root, root / path)
    assert not (root.parent / "made").exists()


def test_the_root_itself_may_be_reached_by_a_link(root: Path) -> None:
    (root / "f").write_text("in")
    (root.parent / "link").symlink_to(root)
    assert read(root.parent / "link", root.parent / "link" / "f") == "in"
    assert read(root.parent / "link", root / "f") == "in"


def test_only_plain_files_are_read_and_written(root: Path) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    paths = [root, root / "folder", root / "pipe"]
    if os.geteuid() == 0:
        os.mknod(root / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        paths.append(root / "zero")
    for path in paths:
        refused(root, path)


def test_a_folder_exchanged_for_a_link_after_the_check_leads_nowhere(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "secret").write_text("in")
    real = os.path.realpath

    def exchanged(path: Any, **options: Any) -> str:
        found = real(path, **options)
        if (root / "sub").is_dir() and not (root / "sub").is_symlink():
            (root / "sub").rename(root / "was")
            (root / "sub").symlink_to(root.parent)
        return found

    inside = files(root)
    for act in (
        lambda: inside.read_text(str(root / "sub" / "secret"), line=None, limit=None),
        lambda: inside.write_text(str(root / "sub" / "secret"), "over"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os.path, "realpath", exchanged)
            with pytest.raises(AntiphonError):
                act()
        (root / "sub").unlink()
        (root / "was").rename(root / "sub")
    assert (root.parent / "secret").read_text() == "secret"


def test_a_file_exchanged_for_a_link_after_the_check_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("in")
    real, inside = os.path.realpath, files(root)

    def exchanged(path: Any, **options: Any) -> str:
        found = real(path, **options)
        (root / "f").unlink()
        (root / "f").symlink_to(root.parent / "secret")
        return found

    monkeypatch.setattr(os.path, "realpath", exchanged)
    with pytest.raises(InvalidParams):
        inside.read_text(str(root / "f"), line=None, limit=None)
    with pytest.raises(InvalidParams):
        inside.write_text(str(root / "f"), "over")
    assert (root.parent / "secret").read_text() == "secret"


def test_a_root_that_becomes_a_link_is_not_followed(root: Path) -> None:
    inside = files(root)
    root.rename(root.parent / "was")
    root.symlink_to(root.parent)
    with pytest.raises(AntiphonError):
        inside.read_text(str(root / "secret"), line=None, limit=None)


# --- writing ---------------------------------------------------------------------------------------------


@requirement("FS-03")
def test_a_new_file_is_made_with_the_folders_to_it(root: Path) -> None:
    path = root / "a" / "b" / "new.txt"
    files(root).write_text(str(path), "é\r\n")
    assert path.read_bytes() == "é\r\n".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert [entry.name for entry in path.parent.iterdir()] == ["new.txt"]


def test_a_file_is_replaced_with_its_permissions_and_the_link_to_it_stays(root: Path) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    (root / "link").symlink_to("run.sh")
    before = (root / "run.sh").stat()
    files(root).write_text(str(root / "link"), "new")
    after = (root / "run.sh").stat()
    assert (root / "link").is_symlink()
    assert (root / "run.sh").read_text() == "new"
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (0o750, before.st_uid, before.st_gid)


def test_a_write_that_fails_leaves_the_file_as_it_was_and_nothing_else(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RequestError, match="No space"):
        files(root).write_text(str(root / "f"), "new")
    assert [(entry.name, entry.read_text()) for entry in root.iterdir()] == [("f", "old")]


def test_a_file_that_is_not_to_be_written_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")
    (root / "f").chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as for whoever is not root
    with pytest.raises(RequestError, match="Permission denied"):
        files(root).write_text(str(root / "f"), "new")
    assert (root / "f").read_text() == "old"


def test_too_much_or_no_text_is_not_written(root: Path) -> None:
    for content in ("x" * 1001, "\ud83d"):
        with pytest.raises(InvalidParams):
            files(root).write_text(str(root / "f"), content)
    assert list(root.iterdir()) == []


def test_a_root_that_is_gone_is_not_made_again(root: Path) -> None:
    inside = files(root)
    root.rmdir()
    with pytest.raises(ResourceNotFound):
        inside.write_text(str(root / "sub" / "f"), "x")
    assert not root.exists()


def test_a_folder_to_work_in_lies_inside_and_is_there(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "f").write_text("")
    assert files(root).folder(str(root / "sub")) == str(root / "sub")
    for path, error in (("none", ResourceNotFound), ("f", ResourceNotFound), ("..", InvalidParams)):
        with pytest.raises(error):
            files(root).folder(str(root / path))


def test_everything_may_be_offered(root: Path) -> None:
    assert read(Path("/"), root.parent / "secret") == "secret"
    refused(Path("/"), "/dev/null")
