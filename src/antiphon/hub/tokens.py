"""Tokens: secrets that let somebody in, each with a role, the sessions it is for, and its end.

Only hashes are kept, in a file for its owner's eyes alone. A hub that runs sees what another process changes
in it. A file that cannot be trusted lets nobody in.
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
from antiphon.hub.roles import Role

PREFIX = "antiphon_"
"""So that those who search for lost secrets know one."""
OWNER_NAME = "owner"
NAME_LIMIT = 64


class Grant(Struct, frozen=True, kw_only=True):
    """Whom a token lets in."""

    name: str
    role: Role
    sessions: frozenset[str] | None = None
    """`None` for all."""
    expires: float | None = None
    """Seconds since 1970."""
    id: str = ""
    """Tells a token from a later one of the same name."""

    def covers(self, session_id: str) -> bool:
        return self.sessions is None or session_id in self.sessions


OWNER = Grant(name=OWNER_NAME, role=Role.OWNER)
"""Who has the hub's own token, or is in its process."""


class Kept(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A token as its file has it."""

    name: str
    hash: str
    role: Role
    id: str
    created: float
    sessions: list[str] | None = None
    expires: float | None = None
    cookie: bool = False
    """Whether a browser has it, as its cookie: it is good as nothing else."""

    @property
    def grant(self) -> Grant:
        sessions = None if self.sessions is None else frozenset(self.sessions)
        return Grant(name=self.name, role=self.role, sessions=sessions, expires=self.expires, id=self.id)


class Untrusted(LocalError):
    """The file of tokens cannot be read, or others can write in it or read it."""


def hashed(secret: str) -> str:
    """The secrets are random and long: there is nothing to guess, and nothing to slow down."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    """Without a path there is the hub's own token, and what is added is gone with the process."""

    def __init__(self, own: str, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._own = hashed(own)
        self._path = path
        self._clock = clock
        self._seen: object = None
        self._kept: list[Kept] = []
        self._trusted = True

    def find(self, secret: str, *, cookie: bool = False) -> Grant | None:
        """Whom it lets in, just now. Every token is compared, in the same time."""
        kept = self._current()
        given = hashed(secret)
        found = OWNER if hmac.compare_digest(given, self._own) and not cookie else None
        for each in kept or ():
            if hmac.compare_digest(given, each.hash) and each.cookie is cookie:
                found = each.grant
        if kept is None or found is None:
            return None
        return found if self._in_time(found) else None

    def stands(self, grant: Grant) -> bool:
        """Whether it still lets in whom it once did."""
        if grant == OWNER:
            return True
        kept = self._current() or ()
        return self._in_time(grant) and any(each.grant == grant for each in kept)

    def admits(self, grant: Grant) -> bool:
        """The same for somebody who is still at the door: with a file that cannot be trusted, nobody."""
        return self._current() is not None and self.stands(grant)

    @contextlib.contextmanager
    def changing(self) -> Iterator[list[Kept]]:
        """What is kept, to be changed. Raises `Untrusted`, and `OSError` where it cannot be written."""
        if self._path is None:
            yield self._kept
        else:
            with _changing(self._path) as kept:
                yield kept

    def _in_time(self, grant: Grant) -> bool:
        return grant.expires is None or self._clock() < grant.expires

    def _current(self) -> list[Kept] | None:
        """`None` where nobody can be let in."""
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
        return self._kept if self._trusted else None


# --- the file -----------------------------------------------------------------------------------------


def read_tokens(path: Path) -> list[Kept]:
    """Raises `Untrusted`. A file that is not there has no tokens."""
    try:
        with open(path, "rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise Untrusted(f"{path} can be read by others: `chmod 600` it, or remove it")
            return msgspec.json.decode(file.read(), type=list[Kept])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Untrusted(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Untrusted(f"{path} is no file of tokens: repair it, or remove it") from error


def create_token(
    path: Path,
    name: str,
    role: Role,
    *,
    sessions: Collection[str] | None = None,
    seconds: float | None = None,
    now: float | None = None,
) -> str:
    """The secret, which is kept nowhere. Raises `LocalError` where the name is taken."""
    if not name or len(name) > NAME_LIMIT or not name.isprintable() or name == OWNER_NAME:
        why = "the hub's own has it" if name == OWNER_NAME else f"it takes 1 to {NAME_LIMIT} letters"
        raise LocalError(f"{name!r} is no name for a token: {why}")
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
    """A secret, and what is to be kept of it."""
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
    """Raises `LocalError` where there is none."""
    if not path.parent.is_dir():
        raise LocalError(f"there is no token {name!r}, nor a folder {path.parent}")
    with _changing(path) as kept:
        if all(each.name != name for each in kept):
            there = ", ".join(each.name for each in kept)
            raise LocalError(f"there is no token {name!r}, but {there or 'none at all'}")
        kept[:] = [each for each in kept if each.name != name]


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[Kept]]:
    """One process at a time changes the file, and the others see it whole."""
    from antiphon.hub.folder import locked, write_private

    with locked(path.with_name(f"{path.name}.lock")):
        kept = read_tokens(path)
        yield kept
        write_private(path, msgspec.json.encode(kept))
