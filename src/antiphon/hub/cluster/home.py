"""Home: the host on which a session works. Its working directory is there."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from antiphon.hub.records import HUB
from antiphon.stores.base import SessionRecord

HOME = "home"


class Home(Struct, frozen=True):
    label: str
    """The label of the host. Hubs with the same label see the same files."""
    movable: bool = False
    """Whether a hub on any other host may work on the session too: its files are on shared storage."""

    def may_own(self, record: SessionRecord) -> bool:
        """Return whether a hub at this home may work on a session."""
        home = recorded_home(record)
        return home is None or home.movable or home.label == self.label


def recorded_home(record: SessionRecord) -> Home | None:
    """Return the home of a session. One that has none, an imported one for example, may be worked on
    anywhere."""
    kept: Any = record.meta.get(HUB)
    try:
        return msgspec.convert(kept.get(HOME), Home) if isinstance(kept, dict) and kept.get(HOME) else None
    except msgspec.ValidationError:
        return None
