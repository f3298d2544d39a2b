"""Annotations in the fold: added, replaced, removed; malformed ones and those of unknown messages pass by."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.engine.annotations import check_value
from antiphon.engine.events import Updated
from antiphon.engine.session import forked
from antiphon.engine.snapshot import parts, take_dirty
from antiphon.engine.transcript import MessageType
from antiphon.schema.antiphon.messages import AnnotationKind
from tests.engine.journals import chunk, folded, restore, update
from tests.requirements.marks import requirement


def reaction(id: str, message: str, value: str = "+1", **fields: Any) -> Updated:
    given = {"role": "agent", "kind": "reaction", "by": {"clientId": "c", "name": "Ann"}, "at": "now"}
    return update("_antiphon_annotation", annotationId=id, messageId=message, value=value, **(given | fields))


def removed(id: str) -> Updated:
    return update("_antiphon_annotation_removed", annotationId=id, messageId="m", role="agent")


def test_a_message_has_its_annotations() -> None:
    session = folded(chunk("m", "a"), reaction("1", "m"), reaction("2", "m", "x", kind="note"), removed("1"))
    message = session.message(MessageType.AGENT, "m")
    assert message is not None
    (note,) = message.annotations
    assert (note.kind, note.value, note.by.name, note.at) == (AnnotationKind.NOTE, "x", "Ann", "now")
    assert len(session.annotations) == 1


@requirement("MSG-08")
def test_the_role_tells_messages_apart_that_share_an_id() -> None:
    session = folded(
        chunk("m", "a"), chunk("m", "b", tag="user_message_chunk"), reaction("1", "m", role="user")
    )
    assert [len(message.annotations) for message in session.messages] == [0, 1]


def test_what_cannot_be_read_or_names_nothing_passes_by() -> None:
    before = folded(chunk("m", "a"))
    for odd in (
        reaction("1", "unknown"),
        reaction("1", "m", role="_odd"),
        reaction("1", "m", kind="_odd"),
        reaction("1", "m", by="Ann"),
        reaction("1", "m", at=3),
        removed("1"),
        update("_antiphon_annotation"),
    ):
        session = folded(chunk("m", "a"), odd)
        assert session.items[0].materialize() == before.items[0].materialize()
        assert len(session.items) == 1


def test_an_annotation_does_not_move_to_another_message() -> None:
    session = folded(chunk("m", "a"), chunk("n", "b"), reaction("1", "m"), reaction("1", "n"))
    assert [len(message.annotations) for message in session.messages] == [1, 0]


def test_a_removed_one_leaves_the_snapshot() -> None:
    session = folded(chunk("m", "a"), reaction("1", "m"))
    take_dirty(session)
    again = folded(chunk("m", "a"), reaction("1", "m"), removed("1"))
    assert "item/000000000000002" in parts(session)
    assert take_dirty(again)["item/000000000000002"] is None
    restored = restore(parts(session), session.last_seq)  # type: ignore[arg-type]  # a number is a cursor
    assert [len(message.annotations) for message in restored.messages] == [1]


def test_a_fork_takes_the_annotations_of_its_messages_along() -> None:
    session = folded(chunk("m", "a"), chunk("n", "b"), reaction("1", "n"), reaction("2", "m"))
    made = forked(session, at="m")
    assert made is not None
    assert [each.get("annotationId") for each in made if isinstance(each, dict)] == ["2"]


@pytest.mark.parametrize("value", ["👍", "👍🏽", "👨‍👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "+1", "ok", "x" * 64])
def test_signs_that_a_reaction_may_be(value: str) -> None:
    assert check_value(AnnotationKind.REACTION, value) == value


@pytest.mark.parametrize("value", ["", " ", " a", "a\n", "\u202e", "x" * 65, 3, None])
def test_what_no_reaction_is(value: Any) -> None:
    with pytest.raises(ValueError, match="`value`"):
        check_value(AnnotationKind.REACTION, value)
