"""ConfinedFiles: reads and writes text files inside given folders only.

A path is resolved with its links, and has to lie in one of the folders. It is then opened from the root
downwards, one name at a time and following no link: if a folder is exchanged for a link meanwhile, opening it
fails. All of this blocks, so call it in a thread.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from pathlib import Path
from typing import BinaryIO

from antiphon.errors import AntiphonError, InvalidParams, RequestError, ResourceNotFound

SCANNED = 1024 * 1024 * 1024
"""How many bytes of a file are searched for the first line."""
_PIECE = 64 * 1024


def _flags(*names: str) -> int:
    """The flags that this system has. A client works without the others."""
    return reduce(or_, (getattr(os, name, 0) for name in names))


_FOLDER = _flags("O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_FILE = _flags("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY")
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_NOFOLLOW", "O_CLOEXEC")
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_OUTSIDE = "the path is outside of the offered folders"


class ConfinedFiles:
    def __init__(self, roots: Iterable[str], *, most: int) -> None:
        """`most`: how many bytes are read or written at once."""
        # Resolved once: a folder may be exchanged for a link later.
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._most = most

    def resolve(self, path: str) -> str:
        """Resolve a path. Raises `InvalidParams` unless it is inside the folders. The error does not reveal
        whether something exists outside."""
        if not os.path.isabs(path):
            raise InvalidParams("the path must be absolute")  # RPC-43
        if "\0" in path or ".." in path.split("/"):
            raise InvalidParams("the path may not contain '..' or NUL")
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            raise InvalidParams("the path cannot be read") from None
        if not self._roots_of(real):
            raise InvalidParams(_OUTSIDE)
        return real

    def _roots_of(self, real: str) -> list[str]:
        """The roots that a resolved path lies in."""
        return [root for root in self._roots if real == root or real.startswith(f"{root.rstrip('/')}/")]

    def folder(self, path: str) -> str:
        """Resolve the path of an existing folder."""
        real = self.resolve(path)
        if not os.path.isdir(real):
            raise ResourceNotFound("no such folder", data={"path": path})
        return real

    # --- reading -----------------------------------------------------------------------------------

    def read_text(self, path: str, *, line: int | None, limit: int | None) -> str:
        """Read a file, or `limit` lines of it from the 1-based `line` on, each with its line end."""
        with _wire_errors(path), self._parent(self.resolve(path)) as (parent, name):
            _check_plain(os.stat(name, dir_fd=parent, follow_symlinks=False))
            with open(os.open(name, os.O_RDONLY | _FILE, dir_fd=parent), "rb") as file:
                _check_plain(os.fstat(file.fileno()))
                return self._text(file, line, limit)

    def select(self, text: str, *, line: int | None, limit: int | None) -> str:
        """Select lines of a text in the same way."""
        return self._text(io.BytesIO(text.encode(errors="replace")), line, limit)

    def _text(self, file: BinaryIO, line: int | None, limit: int | None) -> str:
        data = self._lines(file, line or 1, limit)
        try:
            return data.decode()
        except UnicodeDecodeError:
            # An agent would write replacement characters back, so the file is not read at all.
            raise InvalidParams("the file is not UTF-8 text") from None

    def _lines(self, file: BinaryIO, line: int, limit: int | None) -> bytes:
        scanned = 0
        while line > 1:
            piece = file.readline(_PIECE)
            if not piece:
                return b""
            scanned += len(piece)
            if scanned > SCANNED:
                raise InvalidParams(f"the line is more than {SCANNED} bytes into the file")
            if piece.endswith(b"\n"):
                line -= 1
        taken: list[bytes] = []
        room = self._most
        while limit is None or limit > 0:
            piece = file.readline(_PIECE) if limit is not None else file.read(room + 1)
            if not piece:
                break
            taken.append(piece)
            room -= len(piece)
            if room < 0:
                raise InvalidParams(f"at most {self._most} bytes are read at once; request fewer lines")
            if limit is not None and piece.endswith(b"\n"):
                limit -= 1
        return b"".join(taken)

    # --- writing -----------------------------------------------------------------------------------

    def write_text(self, path: str, text: str) -> None:
        """Replace a file atomically, or create it, with the folders that it needs."""
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise InvalidParams("the content is not valid Unicode text") from None
        if len(data) > self._most:
            raise InvalidParams(f"at most {self._most} bytes are written at once, got {len(data)}")
        with _wire_errors(path), self._parent(self.resolve(path), create=True) as (parent, name):
            before: os.stat_result | None = None
            with contextlib.suppress(FileNotFoundError):
                before = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if before is not None:
                _check_plain(before)
                if not os.access(name, os.W_OK, dir_fd=parent):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            _replace(parent, name, data, before)

    @contextmanager
    def _parent(self, real: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a resolved path; yields its descriptor and the last name."""
        *folders, name = real.split("/")[1:]
        if not name:
            raise IsADirectoryError
        inside = max(len(root.rstrip("/")) for root in self._roots_of(real))
        fd = os.open("/", _FOLDER)
        try:
            at = 0
            for folder in folders:
                at += 1 + len(folder)
                try:
                    deeper = os.open(folder, _FOLDER, dir_fd=fd)
                except FileNotFoundError:
                    if not create or at <= inside:
                        raise
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=fd)
                    deeper = os.open(folder, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = deeper
            yield fd, name
        finally:
            os.close(fd)


def _replace(parent: int, name: str, data: bytes, before: os.stat_result | None) -> None:
    draft = f".{name[:100]}.{secrets.token_hex(6)}"
    fd = os.open(draft, _DRAFT, 0o666 if before is None else 0o600, dir_fd=parent)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, before.st_uid, before.st_gid)
                os.fchmod(fd, stat.S_IMODE(before.st_mode))
            os.fsync(fd)
        os.replace(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=parent)
        raise


def _check_plain(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise InvalidParams("the path is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidParams("the path is not a regular file")  # a device, a pipe, a new link


def _missing(path: str) -> ResourceNotFound:
    """The error for a missing file, as editors send it (FS-04). Some agents compare the code, some look for
    `ENOENT` or `No such file` in the message, and some read `data`."""
    data = {"path": path, "uri": Path(path).as_uri(), "code": "ENOENT"}
    return ResourceNotFound(f"ENOENT: No such file or directory: {path}", data=data)


@contextmanager
def _wire_errors(path: str) -> Iterator[None]:
    """Turn file system errors into errors for the agent."""
    try:
        yield
    except AntiphonError:
        raise
    except IsADirectoryError:
        raise InvalidParams("the path is a folder") from None
    except OSError as error:
        if error.errno in _ABSENT:
            raise _missing(path) from None
        if error.errno == errno.ELOOP:
            raise InvalidParams(_OUTSIDE) from None
        raise RequestError(AntiphonError.code, f"{error.strerror or 'the file system failed'}") from error
