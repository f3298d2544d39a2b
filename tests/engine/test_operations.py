"""Operations that are done once, and how long that is remembered."""

from __future__ import annotations

from antiphon.engine import events as e
from antiphon.engine.fold import OPERATIONS
from antiphon.engine.snapshot import parts
from tests.engine.journals import commit, folded, restore


def test_an_operation_is_known_once_it_was_done_also_from_a_snapshot() -> None:
    session = folded()
    assert "op" not in session.operations
    commit(session, session.operations.done("op"))
    assert "op" in session.operations
    assert "op" in restore(parts(session), session.last_seq).operations


def test_an_operation_without_an_id_is_none_to_remember() -> None:
    session = folded()
    assert session.operations.done(None) == ()
    assert None not in session.operations


def test_the_last_ones_are_remembered_and_no_more() -> None:
    session = folded(*(e.OperationDone(operation_id=str(n)) for n in range(OPERATIONS + 10)))
    assert "9" not in session.operations
    assert "10" in session.operations
    assert len(session.operations.part()) == OPERATIONS
