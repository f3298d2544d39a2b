"""An item in pieces folds to the item, wherever it is cut, and shares its text with the session."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine import pieces
from antiphon.engine.events import Event, Updated
from antiphon.engine.items import UnknownUpdate
from antiphon.engine.json_values import encode
from antiphon.engine.pieces import cut, freeze
from antiphon.engine.session import Session

from .journals import JOURNALS, chunk, events, folded, text, update

LARGE = "0123456789abcdef" * (pieces.PIECE // 4)


def in_pieces(session: Session, *, size: int, grows: bool = True) -> Iterator[Any]:
    with patch.object(pieces, "PIECE", size):
        for item in session.items:
            if not isinstance(item, UnknownUpdate):
                yield from freeze(item).updates(grows=grows)


def items(session: Session) -> list[Any]:
    return [item.materialize() for item in session.items if not isinstance(item, UnknownUpdate)]


def replayed(updates: list[Any], *, times: int = 1) -> Session:
    return folded(*map(Updated.of, updates * times))


@given(JOURNALS, st.integers(1, 6), st.booleans(), st.integers(1, 2))
def test_the_pieces_of_every_item_fold_to_the_session(
    journal: list[Event], size: int, grows: bool, times: int
) -> None:
    """SESS-23: also on a client that holds all of it already."""
    session = Session().fold(journal)
    assert items(replayed(list(in_pieces(session, size=size, grows=grows)), times=times)) == items(session)


@pytest.mark.parametrize(
    "told",
    [
        [chunk("m", LARGE)],
        [chunk("m", LARGE[:1000]) for _ in range(3000)],
        [update("user_message", messageId="m", content=[text("a"), text(LARGE)], _meta={"k": 1})],
        [
            update("tool_call_update", toolCallId="t", title="T"),
            *[
                update(
                    "tool_call_content_chunk", toolCallId="t", content={"type": "content", "content": block}
                )
                for block in [text(LARGE[:50_000])] * 20
            ],
        ],
        [
            update("terminal_output_chunk", terminalId="t", data=base64.b64encode(LARGE.encode()).decode())
            for _ in range(3)
        ],
        [
            update("compaction_update", compactionId="c", status="completed"),
            update("compaction_summary_chunk", compactionId="c", content=text(LARGE)),
        ],
        [update("session_message_chunk", messageId="n", content=text(LARGE))],
    ],
    ids=["one", "many", "meta", "tool", "terminal", "compaction", "note"],
)
def test_a_large_item_is_several_updates_of_bounded_size(told: list[Any]) -> None:
    session = folded(*told)
    updates = list(in_pieces(session, size=pieces.PIECE))
    assert len(updates) > 3
    sizes = [len(encode(each)) for each in updates]
    assert max(sizes) < 1.5 * pieces.PIECE, "base64 adds a third"
    assert items(replayed(updates)) == items(session)


def test_blocks_that_no_chunk_could_keep_apart_are_in_one_update() -> None:
    array = [text("a"), text(LARGE), text("b")]
    marked = [text(LARGE, _meta={"k": 1})]
    for content, count in ((array, 1), (marked, 2)):
        session = folded(update("agent_message", messageId="m", content=content))
        updates = list(in_pieces(session, size=pieces.PIECE))
        assert len(updates) == count
        assert items(replayed(updates)) == items(session)


def test_frozen_items_share_the_text_and_do_not_see_what_comes_later() -> None:
    session = folded(*[chunk("m", "x" * 1000) for _ in range(5000)])
    frozen = freeze(session.items[0])
    again = freeze(session.items[0])
    held = {id(part) for part in frozen.texts}  # type: ignore[attr-defined]
    assert len(held) < 1100
    assert held == {id(part) for part in again.texts}  # type: ignore[attr-defined]
    before = items(session)
    session.fold(events(chunk("m", "more"), after=session.last_seq))
    assert session.messages[0].text.endswith("more")
    assert items(replayed(list(frozen.updates(grows=True)))) == before


def test_a_text_is_cut_into_pieces_of_one_size() -> None:
    assert list(cut(["ab", "", "cdefg", "h"], 3)) == ["abc", "def", "gh"]
    assert list(cut([b"abcd"], 2)) == [b"ab", b"cd"]
    assert list(cut([""], 2)) == []
