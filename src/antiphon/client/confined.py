"""Confined: text files inside a few folders, and nothing outside of them.

A path is resolved, links and all, and has to lie in a folder that is offered. It is then opened from the root
of the file system downwards, one name at a time and following no link: were a folder exchanged for a link in
between, opening it fails. All of this blocks: it is for a thread.
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
"""How far into a file a line is looked for."""
_PIECE = 64 * 1024


def _flags(*names: str) -> int:
    """Those that this system has: the rest of a client is to be had without them."""
    return reduce(or_, (getattr(os, name, 0) for name in names))


_FOLDER = _flags("O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_FILE = _flags("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY")
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_NOFOLLOW", "O_CLOEXEC")
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_OUTSIDE = "the path is outside of what is offered"


class Confined:
    def __init__(self, roots: Iterable[str], *, most: int) -> None:
        """`most` is how many bytes are read or written at once."""
        # Resolved once: what is a folder now may be exchanged for a link later.
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._most = most

    def resolve(self, path: str) -> str:
        """Where a path leads; raises `InvalidParams` unless that is inside. Whether there is something
        outside is told to nobody."""
        if not os.path.isabs(path):
            raise InvalidParams("the path is not absolute")  # RPC-43
        if "\0" in path or ".." in path.split("/"):
            raise InvalidParams("the path has a part that is refused")
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            raise InvalidParams("the path cannot be read") from None
        if not self._holding(real):
            raise InvalidParams(_OUTSIDE)
        return real

    def _holding(self, real: str) -> list[str]:
        """The roots that a resolved path lies in."""
        return [root for root in self._roots if real == root or real.startswith(f"{root.rstrip('/')}/")]

    def folder(self, path: str) -> str:
        """The same for a folder that is there."""
        real = self.resolve(path)
        if not os.path.isdir(real):
            raise ResourceNotFound("no such folder", data={"path": path})
        return real

    # --- reading -----------------------------------------------------------------------------------

    def read_text(self, path: str, *, line: int | None, limit: int | None) -> str:
        """A file's text, or `limit` lines of it from the 1-based `line` on, each with its end."""
        with _told(path), self._parent(self.resolve(path)) as (parent, name):
            _check_plain(os.stat(name, dir_fd=parent, follow_symlinks=False))
            with open(os.open(name, os.O_RDONLY | _FILE, dir_fd=parent), "rb") as file:
                _check_plain(os.fstat(file.fileno()))
                return self._text(file, line, limit)

    def select(self, text: str, *, line: int | None, limit: int | None) -> str:
        """The same of a text that is not in a file."""
        return self._text(io.BytesIO(text.encode(errors="replace")), line, limit)

    def _text(self, file: BinaryIO, line: int | None, limit: int | None) -> str:
        data = self._lines(file, line or 1, limit)
        try:
            return data.decode()
        except UnicodeDecodeError:
            # What was replaced on the way out would be written back as it is: so it is not given at all.
            raise InvalidParams("the file is no UTF-8 text") from None

    def _lines(self, file: BinaryIO, line: int, limit: int | None) -> bytes:
        scanned = 0
        while line > 1:
            piece = file.readline(_PIECE)
            if not piece:
                return b""
            scanned += len(piece)
            if scanned > SCANNED:
                raise InvalidParams("the line is too far into the file")
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
                raise InvalidParams(f"more than {self._most} bytes are not read at once; ask for fewer lines")
            if limit is not None and piece.endswith(b"\n"):
                limit -= 1
        return b"".join(taken)

    # --- writing -----------------------------------------------------------------------------------

    def write_text(self, path: str, text: str) -> None:
        """Put a text in place of a file, all or nothing; a new file is made, with the folders to it."""
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise InvalidParams("the content is no text") from None
        if len(data) > self._most:
            raise InvalidParams(f"more than {self._most} bytes are not written at once")
        with _told(path), self._parent(self.resolve(path), create=True) as (parent, name):
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
        """The folder that a resolved path lies in, open, and its last name."""
        *folders, name = real.split("/")[1:]
        if not name:
            raise IsADirectoryError
        inside = max(len(root.rstrip("/")) for root in self._holding(real))
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
        raise InvalidParams("the path is no plain file")  # a device, a pipe, a link put there just now


def absent(path: str) -> ResourceNotFound:
    """A missing file, as editors answer it (FS-04). Agents find out in different ways: some compare the code,
    some look for `ENOENT` or `No such file` in the message, and some read `data`."""
    data = {"path": path, "uri": Path(path).as_uri(), "code": "ENOENT"}
    return ResourceNotFound(f"ENOENT: No such file or directory: {path}", data=data)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What goes wrong, as the other side is told."""
    try:
        yield
    except AntiphonError:
        raise
    except IsADirectoryError:
        raise InvalidParams("the path is a folder") from None
    except OSError as error:
        if error.errno in _ABSENT:
            raise absent(path) from None
        if error.errno == errno.ELOOP:
            raise InvalidParams(_OUTSIDE) from None
        raise RequestError(AntiphonError.code, f"{error.strerror or 'the file system failed'}") from error
