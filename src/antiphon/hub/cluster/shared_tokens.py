"""SharedTokens: a token that is made or revoked at one hub works, or stops, at every hub.

The shared store has a note for each token, with its hash and its rights, and for each revoked one that it
was. Each hub merges them with its token file, which so has the tokens of all hubs. A hub's own token is in no
file, and stays at that hub.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from antiphon.errors import LocalError, StoreError
from antiphon.hub.access.tokens import Kept, Tokens
from antiphon.private_files import write_private
from antiphon.server.tasks import Tasks
from antiphon.stores.shared import SharedStore

logger = logging.getLogger("antiphon.hub")

TOPIC = "tokens"


class Note(Struct, frozen=True, omit_defaults=True):
    """What the shared store has of a token."""

    id: str
    token: Kept | None = None
    """`None`: it was revoked."""


class Merged(NamedTuple):
    """What to do so that a hub and the shared store have the same tokens."""

    local: list[Kept]
    """The tokens of the hub."""
    added: list[Kept]
    """Tokens that the store has to get."""
    revoked: list[str]
    """The ids of tokens that were revoked here, which the store has to get."""
    known: set[str]
    """The ids of tokens whose absence from the token file will mean that they were revoked here."""


def merge(known: Collection[str], local: Sequence[Kept], notes: Mapping[str, Note], *, now: float) -> Merged:
    """Merge the tokens of a hub with those of the store, each by its id. A revocation wins: nothing brings a
    revoked token back. A token that the store does not know is new, not revoked: the store may be new.

    known: the `known` of the last time
    """
    here = {each.id for each in local}
    revoked_here = [
        id for id, note in notes.items() if note.token is not None and id in known and id not in here
    ]
    kept = [each for each in local if each.id not in notes or notes[each.id].token is not None]
    come = [
        note.token
        for id, note in notes.items()
        if note.token is not None and id not in here and id not in known and not _is_over(note.token, now)
    ]
    merged = [*kept, *come]
    return Merged(
        local=merged,
        added=[each for each in kept if each.id not in notes and not _is_over(each, now)],
        revoked=revoked_here,
        known={each.id for each in merged} | set(revoked_here),  # until the store has them as revoked
    )


def _is_over(token: Kept, now: float) -> bool:
    return token.expires is not None and token.expires <= now


class SharedTokens:
    def __init__(
        self, store: SharedStore, tokens: Tokens, tasks: Tasks, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._tasks = tasks
        self._clock = clock
        path = tokens.path
        self._path: Path | None = None if path is None else path.with_name(f"{path.name}.shared")
        """Keeps `known` while the hub does not run: a token may be revoked meanwhile."""
        self._known = _read(self._path)

    async def begin(self) -> None:
        await self._store.listen(TOPIC, lambda _, __: self._merge_soon())
        await self.merge()

    def _merge_soon(self) -> None:
        self._tasks.start_soon(self.merge())

    async def merge(self) -> None:
        """Make this hub and the store have the same tokens. What fails is tried again at the next time."""
        try:
            await self._tasks.share(TOPIC, self._merge)
        except (StoreError, LocalError, OSError) as error:
            logger.warning("tokens of the hubs not merged: %s", error)

    async def _merge(self) -> None:
        notes = await self._notes()
        local = self._tokens.stored()
        if local is None:
            return  # the file cannot be trusted
        merged = merge(self._known, local, notes, now=self._clock())
        if merged.local != local:
            with self._tokens.changing() as kept:  # it may have changed since it was read
                merged = merge(self._known, kept, notes, now=self._clock())
                kept[:] = merged.local
        self._remember(merged.known)
        for token in merged.added:
            left = None if token.expires is None else token.expires - self._clock()
            note = Note(token.id, token)
            await self._store.add_note(TOPIC, token.id, msgspec.json.encode(note), seconds=left)
        for id in merged.revoked:
            of = notes[id].token
            left = None if of is None or of.expires is None else max(1.0, of.expires - self._clock())
            await self._store.replace_note(TOPIC, id, msgspec.json.encode(Note(id)), seconds=left)
        if merged.added or merged.revoked:
            await self._store.announce(TOPIC, b"")

    async def _notes(self) -> dict[str, Note]:
        found: dict[str, Note] = {}
        for data in await self._store.notes(TOPIC):
            try:
                note = msgspec.json.decode(data, type=Note)
            except msgspec.MsgspecError as error:
                logger.warning("token of another hub ignored: %s", error)
            else:
                found[note.id] = note
        return found

    def _remember(self, known: set[str]) -> None:
        if known != self._known:
            if self._path is not None:
                write_private(self._path, msgspec.json.encode(sorted(known)))
            self._known = known


def _read(path: Path | None) -> set[str]:
    try:
        return set() if path is None else msgspec.json.decode(path.read_bytes(), type=set[str])
    except FileNotFoundError:
        return set()
    except (OSError, msgspec.DecodeError) as error:
        logger.warning(
            "%s cannot be read, so tokens revoked meanwhile stay valid at other hubs: %s", path, error
        )
        return set()
