"""The values that cross the seam of a store."""

from __future__ import annotations

import pytest
from tests.requirements.marks import requirement

from antiphon.errors import CursorInvalid
from antiphon.stores.base import Batch, RecordPatch, SessionRecord, list_cursor, list_place


def test_a_batch_knows_its_last_number_and_its_part_after_a_cursor() -> None:
    batch = Batch(5, (b"5", b"6", b"7"))
    assert batch.last == 7
    assert batch.after(0) is batch
    assert batch.after(4) is batch
    assert batch.after(6) == Batch(7, (b"7",))


def test_a_batch_without_events_or_before_the_first_number_is_not_made() -> None:
    with pytest.raises(ValueError, match="a batch needs events"):
        Batch(1, ())
    with pytest.raises(ValueError, match="first number >= 1"):
        Batch(0, (b"0",))


def test_a_patch_tells_null_from_absent() -> None:
    assert RecordPatch().changes() == {}
    assert RecordPatch(title=None, state="idle").changes() == {"title": None, "state": "idle"}


@requirement("SESS-35")
def test_a_list_cursor_comes_back_and_a_made_up_one_does_not() -> None:
    record = SessionRecord(session_id="é/1", cwd="/", created_at=-5, updated_at=0)
    assert list_place(list_cursor(record)) == (-5, "é/1")
    for made_up in ("", "?", "WzEsMl0=", "WzE4NDQ2NzQ0MDczNzA5NTUxNjE1LCJhIl0="):
        with pytest.raises(CursorInvalid):
            list_place(made_up)
