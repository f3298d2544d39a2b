"""Tokens: secrets that authenticate clients. Each has a role, an optional list of sessions and an expiry.

The token file holds hashes only and is readable by its owner alone. A running hub notices changes that
another process makes to the file. While the file cannot be trusted, the hub admits nobody.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.errors import LocalError
from antiphon.private_files import locked, write_private
from antiphon.server.method import Role

PREFIX = "antiphon_"
"""Lets secret scanners recognize a token."""
OWNER_NAME = "owner"
NAME_LIMIT = 64


class Grant(Struct, frozen=True, kw_only=True):
    """The rights that a token gives."""

    name: str
    role: Role
    sessions: frozenset[str] | None = None
    """`None` means all sessions."""
    expires: float | None = None
    """Unix time in seconds."""
    id: str = ""
    """Distinguishes a token from a later token of the same name."""

    def covers(self, session_id: str) -> bool:
        return self.sessions is None or session_id in self.sessions


OWNER = Grant(name=OWNER_NAME, role=Role.OWNER)
"""The grant of the hub's own token, and of clients in the hub's process."""


class Kept(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A token as the token file stores it."""

    name: str
    hash: str
    role: Role
    id: str
    created: float
    sessions: list[str] | None = None
    expires: float | None = None
    cookie: bool = False
    """Whether this is the secret of a browser cookie. It is accepted as a cookie only."""

    @property
    def grant(self) -> Grant:
        sessions = None if self.sessions is None else frozenset(self.sessions)
        return Grant(name=self.name, role=self.role, sessions=sessions, expires=self.expires, id=self.id)


def hashed(secret: str) -> str:
    """Hash a secret. Secrets are long and random, so a fast hash without salt is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    """The hub's own token and those of the token file. Without a path, further tokens stay in memory."""

    def __init__(self, own: str, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._own = hashed(own)
        self._path = path
        self._clock = clock
        self._seen: object = None
        self._kept: list[Kept] = []
        self._trusted = True

    def find(self, secret: str, *, cookie: bool = False) -> Grant | None:
        """Return the grant of a valid secret. The comparison takes the same time for every token."""
        kept = self._current()
        given = hashed(secret)
        found = OWNER if hmac.compare_digest(given, self._own) and not cookie else None
        for each in kept or ():
            if hmac.compare_digest(given.encode(), each.hash.encode()) and each.cookie is cookie:
                found = each.grant
        if kept is None or found is None:
            return None
        return found if self._in_time(found) else None

    def is_valid(self, grant: Grant) -> bool:
        """Return whether a grant is neither revoked nor expired."""
        if grant == OWNER:
            return True
        kept = self._current() or ()
        return self._in_time(grant) and any(each.grant == grant for each in kept)

    def identity(self, grant: Grant) -> str:
        """Return what distinguishes the token of a grant from every other one, also after a restart."""
        return hashed(self._own)[:16] if grant == OWNER else grant.id

    def holder(self, identity: str) -> Grant | None:
        """Return the grant of the valid token with an `identity`. `None` if it was revoked or has expired."""
        if identity == self.identity(OWNER):
            return OWNER
        kept = self._current() or ()
        found = next((each.grant for each in kept if each.id == identity), None)
        return found if found is not None and self._in_time(found) else None

    def admits(self, grant: Grant) -> bool:
        """Return whether a grant may open a connection: it is valid and the token file can be trusted."""
        return self._current() is not None and self.is_valid(grant)

    @property
    def path(self) -> Path | None:
        """The token file."""
        return self._path

    def stored(self) -> list[Kept] | None:
        """Return the stored tokens, or `None` while the file cannot be trusted."""
        kept = self._current()
        return None if kept is None else list(kept)

    @contextlib.contextmanager
    def changing(self) -> Iterator[list[Kept]]:
        """Yield the stored tokens to be changed in place. Raises `LocalError`, or `OSError` on write."""
        if self._path is None:
            yield self._kept
        else:
            with _changing(self._path) as kept:
                yield kept

    def _in_time(self, grant: Grant) -> bool:
        return grant.expires is None or self._clock() < grant.expires

    def _current(self) -> list[Kept] | None:
        """Return the stored tokens, or `None` while the file cannot be trusted."""
        if self._path is None:
            return self._kept
        try:
            found = self._path.stat()
            seen: object = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
        except FileNotFoundError:
            seen = None
        except OSError:
            return None
        if seen != self._seen or seen is None:
            self._seen = seen
            try:
                self._kept, self._trusted = read_tokens(self._path), True
            except LocalError:
                self._trusted = False
                self._seen = None  # it may be readable the next time: file descriptors had run out
        return self._kept if self._trusted else None


# --- the hub's own token ------------------------------------------------------------------------------


def new_token() -> str:
    return secrets.token_urlsafe(32)


def load_own_token(path: Path) -> str:
    """Return the token in a file. If the file is missing, make it with a new token, readable by its owner
    alone."""
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            raise LocalError(
                f"{path} can be read by others: `chmod 600` it, or remove it to get another token"
            ) from None
        token = path.read_text(errors="replace").strip()
        if not (token and token.isascii() and token.isprintable()):
            raise LocalError(f"{path} is empty or damaged: remove it to get a token") from None
        return token
    with os.fdopen(made, "w") as file:
        file.write(token := new_token())
    return token


# --- the token file -----------------------------------------------------------------------------------


def read_tokens(path: Path) -> list[Kept]:
    """Read the token file. A missing file has no tokens. Raises `LocalError`."""
    try:
        with open(path, "rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise LocalError(f"{path} can be read by others: `chmod 600` it, or remove it")
            return msgspec.json.decode(file.read(), type=list[Kept])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LocalError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LocalError(f"{path} is not a token file: repair it, or remove it") from error


def create_token(
    path: Path,
    name: str,
    role: Role,
    *,
    sessions: Collection[str] | None = None,
    seconds: float | None = None,
    now: float | None = None,
) -> str:
    """Store a new token and return its secret, which is not stored. Raises `LocalError` for a bad or taken
    name."""
    if not name or len(name) > NAME_LIMIT or not name.isprintable() or name == OWNER_NAME:
        usable = f"use 1 to {NAME_LIMIT} printable characters"
        why = "the hub's own token has it" if name == OWNER_NAME else usable
        raise LocalError(f"{name!r} cannot name a token: {why}")
    at = time.time() if now is None else now
    secret, made = make_token(name, role, sessions=sessions, seconds=seconds, at=at)
    with _changing(path) as kept:
        if any(each.name == name and (each.expires is None or each.expires > at) for each in kept):
            raise LocalError(f"there is a token {name!r} already: revoke it, or take another name")
        kept[:] = [*(each for each in kept if each.name != name), made]
    return secret


def make_token(
    name: str,
    role: Role,
    *,
    sessions: Collection[str] | None,
    seconds: float | None,
    at: float,
    cookie: bool = False,
) -> tuple[str, Kept]:
    """Make a secret and the entry to store for it."""
    secret = f"{PREFIX}{secrets.token_urlsafe(32)}"
    return secret, Kept(
        name=name,
        hash=hashed(secret),
        role=role,
        id=secrets.token_hex(8),
        created=at,
        sessions=None if sessions is None else sorted(sessions),
        expires=None if seconds is None else at + seconds,
        cookie=cookie,
    )


def revoke_token(path: Path, name: str) -> None:
    """Remove the token of a name. Raises `LocalError` if there is none."""
    if not path.parent.is_dir():
        raise LocalError(f"there is no token {name!r}, nor a folder {path.parent}")
    with _changing(path) as kept:
        if all(each.name != name for each in kept):
            there = ", ".join(each.name for each in kept)
            raise LocalError(f"there is no token {name!r}, but {there or 'none at all'}")
        kept[:] = [each for each in kept if each.name != name]


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[Kept]]:
    """Yield the tokens of a file to be changed in place. One process at a time may, and the write is
    atomic."""
    with locked(path.with_name(f"{path.name}.lock")):
        kept = read_tokens(path)
        yield kept
        write_private(path, msgspec.json.encode(kept))
