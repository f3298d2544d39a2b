"""Private files and folders: created with modes 0600 and 0700.

The permissions of existing ones that other users can read are tightened, which is logged. A file of another
user, or a symbolic link that another user made, is refused: in a shared folder it may have been planted.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from antiphon.errors import LocalError

logger = logging.getLogger("antiphon.files")

OTHERS = 0o077
_BASE = os.O_CLOEXEC | os.O_NONBLOCK


class NotPrivate(LocalError):
    """Other users have access to a file or folder, and that cannot be changed."""


def open_private(path: Path, flags: int) -> int:
    """Open a regular file, with mode 0600 if `flags` has `O_CREAT`. Return its descriptor.

    Raises `NotPrivate`, or `OSError` as `os.open` does.
    """
    try:
        fd = os.open(path, flags | _BASE | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        _check_link(path)
        fd = os.open(path, flags | _BASE, 0o600)
    try:
        _tighten(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_private(path: Path) -> bytes | None:
    """Read a file and remove the permissions of other users from it; `None` if it does not exist. Raises
    `NotPrivate`, or `OSError`."""
    try:
        fd = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600. Readers see the old content or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(made, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file inside the block. Without `wait`, raises `BlockingIOError` if it is held elsewhere."""
    fd = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def tighten_file(path: Path) -> None:
    """Remove the permissions of other users from a file, if it exists. Raises `NotPrivate`.

    The file is not opened: to close a database file would release SQLite's locks on it in this process.
    """
    try:
        if path.is_symlink():
            _check_link(path)
        found = os.stat(path)
    except FileNotFoundError:
        return
    mode = _checked_mode(found, path)
    if mode & OTHERS:
        os.chmod(path, mode & ~OTHERS)
        _log_tightened(path, mode)


def make_private_folder(path: Path, *, ours: Collection[str] = ()) -> None:
    """Make a folder with mode 0700, or tighten an existing one. Raises `NotPrivate`, or `OSError`.

    An existing folder that other users can read is tightened if it is empty or has a file with a name in
    `ours`. Otherwise other programs use it too, and it is refused.
    """
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.mkdir(path, 0o700)
        return
    if path.is_symlink():
        _check_link(path)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _BASE)
    try:
        found = os.fstat(fd)
        _check_owner(found, path)
        mode = stat.S_IMODE(found.st_mode)
        if not mode & OTHERS:
            return
        names = os.listdir(fd)
        if mode & stat.S_ISVTX or (names and not set(names) & set(ours)):
            raise NotPrivate(
                f"others can use the folder {path} (mode {mode:04o}), and it has files of other programs: "
                "use a separate folder, or make this one private with `chmod 700`"
            )
        os.fchmod(fd, mode & ~OTHERS)
        logger.warning("folder permissions tightened: %s had mode %04o, now %04o", path, mode, mode & ~OTHERS)
    finally:
        os.close(fd)


def _tighten(fd: int, path: Path) -> None:
    mode = _checked_mode(os.fstat(fd), path)
    if mode & OTHERS:
        os.fchmod(fd, mode & ~OTHERS)
        _log_tightened(path, mode)


def _checked_mode(found: os.stat_result, path: Path) -> int:
    """Return the permissions of a file. Raises `NotPrivate`."""
    if not stat.S_ISREG(found.st_mode):
        raise NotPrivate(f"{path} is not a regular file")
    _check_owner(found, path)
    return stat.S_IMODE(found.st_mode)


def _log_tightened(path: Path, mode: int) -> None:
    logger.warning("file permissions tightened: %s had mode %04o, now %04o", path, mode, mode & ~OTHERS)


def _check_owner(found: os.stat_result, path: Path) -> None:
    if found.st_uid != os.geteuid():
        raise NotPrivate(
            f"{path} belongs to user {found.st_uid}, and this process runs as user {os.geteuid()}: "
            "change its owner, or use another path"
        )


def _check_link(path: Path) -> None:
    """Raise `NotPrivate` for a symbolic link of another user, who chooses where it leads."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode) and found.st_uid != os.geteuid():
        raise NotPrivate(
            f"{path} is a symbolic link of user {found.st_uid}; this process runs as user {os.geteuid()}: "
            "remove it, or use another path"
        )
