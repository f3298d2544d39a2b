"""The journals of a hub that is reached over its address, to be read as those of a store are."""

from __future__ import annotations

from typing import Any

import msgspec

from antiphon.client import Client
from antiphon.errors import CallFailed, ResourceNotFound, StoreCorrupt
from antiphon.stores.base import PAGE_BYTES, Batch, Page, SessionRecord

JOURNAL = "_antiphon/journal"


class HubJournals:
    """As much of a store as an export needs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, session_id: str) -> SessionRecord | None:
        try:
            page = await self._page(session_id, 0)
        except CallFailed as error:
            if error.error.code == ResourceNotFound.code:
                return None
            raise
        return msgspec.convert(page["record"], SessionRecord)

    async def read(self, session_id: str, after: int, *, limit_bytes: int = PAGE_BYTES) -> Page:
        """Pages are as large as the hub makes them."""
        page = await self._page(session_id, after)
        damage = page.get("damage")
        if isinstance(damage, dict):
            found, resume = str(damage.get("found")), damage.get("resume")
            raise StoreCorrupt(
                f"session {session_id} is damaged: {found}",
                found=found,
                resume=resume if isinstance(resume, int) else None,
            )
        events = tuple(line.encode() for line in page["events"])
        batches = (Batch(after + 1, events),) if events else ()
        return Page(batches, after + len(events), page["last"])

    async def _page(self, session_id: str, after: int) -> dict[str, Any]:
        page = await self._client.connection.call(JOURNAL, {"sessionId": session_id, "after": after})
        assert isinstance(page, dict)
        return page
