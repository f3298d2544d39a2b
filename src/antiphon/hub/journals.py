"""`_antiphon/journal`: the journal of a session as it is kept, page by page, for who takes it elsewhere. Only
owners may: it has what clients are not told, such as who an answer came from."""

from __future__ import annotations

from typing import Any

import msgspec

from antiphon.agent.keeping import record_of
from antiphon.errors import InvalidParams, StoreCorrupt
from antiphon.stores.base import HIGHEST, Store

PAGE = 256 * 1024
"""Bytes of events in one answer, about: what others are sent is not kept waiting by it."""


async def journal_page(store: Store, params: Any) -> dict[str, Any]:
    asked = params if isinstance(params, dict) else {}
    session_id, after = asked.get("sessionId"), asked.get("after", 0)
    if not isinstance(session_id, str):
        raise InvalidParams("`sessionId` must be a string")
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= HIGHEST:
        raise InvalidParams("`after` must be the number of an event, or 0")
    record = await record_of(store, session_id)
    told: dict[str, Any] = {"record": msgspec.to_builtins(record), "events": [], "last": record.last}
    try:
        page = await store.read(session_id, after, limit_bytes=PAGE)
    except StoreCorrupt as damage:
        resume = {} if damage.resume is None else {"resume": damage.resume}
        return {**told, "damage": {"found": damage.found, **resume}}
    for batch in page.batches:
        for seq, line in enumerate(batch.events, start=batch.first):
            try:
                told["events"].append(line.decode())
            except UnicodeDecodeError as error:
                if not told["events"]:
                    told["damage"] = {"found": f"event {seq}: {error}", "resume": seq}
                return {**told, "last": page.last}  # the next page begins with it
    return {**told, "last": page.last}
