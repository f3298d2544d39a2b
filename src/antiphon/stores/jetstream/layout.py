"""The streams and subjects of one installation, and the options of the store.

NAME-index       NAME.index.session.HASH     which sessions exist; each subject keeps its last message only
                 NAME.index.arrival.ID       imports that are complete
NAME-journal-N   NAME.journal.N.KEY          the batches of one session, one message each
                 NAME.journal.N.KEY.piece    pieces of batches that are larger than a message
NAME-snapshot-N  NAME.snapshot.N.KEY         the saves of one session's snapshot
                 NAME.snapshot.N.KEY.piece   pieces of them
NAME-claims      NAME.claim.session.KEY      which store writes a session
                 NAME.claim.store.ID         the lease of a store, which expires if it is not renewed
NAME-notes       NAME.note.TOPIC.KEY         small values that all stores share; each subject keeps its last

No stream keeps what stores say to each other:

                 NAME.request.ID             requests to a store
                 NAME.piece.ID               requests for pieces of a body that a store has sent
                 NAME.announce.TOPIC         announcements to all stores

KEY is new for every session that is created, so a session that is created again has nothing of the deleted
one.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import Literal

from msgspec import Struct

from antiphon.errors import LocalError

PIECE_BYTES = 512 * 1024
"""The most bytes of a batch or a snapshot in one message; a server takes 1 MiB unless it is configured."""
OLDEST_SERVER = (2, 11)
"""Reading several messages in one request and messages that expire need it."""
Kind = Literal["journal", "snapshot"]


class JetStreamOptions(Struct, frozen=True, kw_only=True):
    """How sessions are kept.

    name: the prefix of all streams and subjects; installations with other names are apart.
    replicas: the servers that keep each stream, 1 to 5.
    shards: the number of journal streams; it is fixed when the streams are made.
    lease: seconds after which a store that no longer answers loses its claims.
    credentials: a file with the credentials of the NATS account.
    ca: a file with the certificate authority of the servers, for `tls://` addresses.
    patience: seconds that a write waits for the cluster to have a leader again.
    create: whether streams that are missing are made; otherwise they are an error.
    """

    name: str = "antiphon"
    replicas: int = 1
    shards: int = 8
    lease: float = 10.0
    credentials: str | None = None
    ca: str | None = None
    patience: float = 30.0
    create: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", self.name):
            raise LocalError(f"store name must be 1 to 32 letters, digits, - or _, got {self.name[:60]!r}")
        if not 1 <= self.replicas <= 5:
            raise LocalError(f"replicas must be 1 to 5, got {self.replicas}")
        if not 1 <= self.shards <= 1024:
            raise LocalError(f"shards must be 1 to 1024, got {self.shards}")
        if self.lease < 1:
            raise LocalError(f"lease must be >= 1 s, got {self.lease:g}")


class Layout:
    """The names of one installation."""

    def __init__(self, options: JetStreamOptions) -> None:
        self._name = options.name
        self._shards = options.shards
        self.index = f"{self._name}-index"
        self.claims = f"{self._name}-claims"
        self.notes = f"{self._name}-notes"
        self.every_note = f"{self._name}.note.>"
        self.every_index_subject = f"{self._name}.index.>"
        self.every_claim_subject = f"{self._name}.claim.>"
        self.every_claim = f"{self._name}.claim.session.*"
        self.every_lease = f"{self._name}.claim.store.*"

    def streams(self, kind: Kind) -> dict[str, str]:
        """Return the streams of one kind, with the subject filter of each."""
        return {f"{self._name}-{kind}-{n}": f"{self._name}.{kind}.{n}.>" for n in range(self._shards)}

    def entry(self, session_id: str) -> str:
        """Return the index subject of a session. Ids may have characters that subjects cannot have."""
        return f"{self._name}.index.session.{hashlib.sha256(session_id.encode()).hexdigest()[:40]}"

    def arrival(self, arrival_id: str) -> str:
        return f"{self._name}.index.arrival.{arrival_id}"

    def place(self, kind: Kind, key: str) -> tuple[str, str]:
        """Return the stream and the subject of a session's journal or snapshot."""
        shard = zlib.crc32(key.encode()) % self._shards
        return f"{self._name}-{kind}-{shard}", f"{self._name}.{kind}.{shard}.{key}"

    def claim(self, key: str) -> str:
        return f"{self._name}.claim.session.{key}"

    def lease(self, store_id: str) -> str:
        return f"{self._name}.claim.store.{store_id}"

    def request(self, store_id: str) -> str:
        return f"{self._name}.request.{store_id}"

    def piece(self, store_id: str) -> str:
        return f"{self._name}.piece.{store_id}"

    def announcement(self, topic: str) -> str:
        """Return the subject of a topic. Raises `LocalError` if it cannot be part of a subject."""
        return f"{self._name}.announce.{_word('topic', topic)}"

    def note(self, topic: str, key: str) -> str:
        """Return the subject of a note, or with the key `*` of all notes of a topic."""
        return f"{self._name}.note.{_word('topic', topic)}.{key if key == '*' else _word('key', key)}"

    def owns(self, stream: str) -> bool:
        """Whether a stream of the servers is one of this installation."""
        return re.fullmatch(rf"{self._name}-(index|claims|notes|(journal|snapshot)-\d+)", stream) is not None


def _word(kind: str, text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise LocalError(f"{kind} must be letters, digits, - or _, got {text[:60]!r}")
    return text
