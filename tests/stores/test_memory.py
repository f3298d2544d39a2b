"""What the memory store promises beside the contract."""

from __future__ import annotations

from antiphon.stores import Batch, MemoryStore, SessionRecord


async def test_a_batch_is_kept_as_the_object_it_is() -> None:
    store = MemoryStore()
    await store.create(SessionRecord(session_id="a", cwd="/", created_at=0, updated_at=0))
    batch = Batch(1, (b"1", b"2"))
    await store.append("a", batch)
    assert (await store.read("a", 0)).batches[0] is batch


async def test_parts_that_were_loaded_are_the_callers_own() -> None:
    store = MemoryStore()
    await store.create(SessionRecord(session_id="a", cwd="/", created_at=0, updated_at=0))
    await store.save_parts("a", 0, {"m": b"one"})
    (await store.load_parts("a")).parts["m"] = b"changed"
    assert await store.load_parts("a") == (0, {"m": b"one"}, None)
