"""The versions of a message, found in a journal; hypothesis: undo and redo are those of an editor."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.events import Updated
from antiphon.engine.revisions import Revision, VersionSearch, meta_patch, revision_in
from antiphon.engine.session import Session
from antiphon.engine.transcript import MessageType
from antiphon.schema import v2
from tests.engine.journals import AT, chunk, events, number

ID = v2.MessageId("m")


def test_a_revision_that_cannot_be_is_the_first() -> None:
    for odd in (None, 3, {}, {"at": 1}, {"at": 2, "last": 1}, {"at": -1, "last": 0}, {"at": True, "last": 1}):
        assert revision_in({"antiphon": {"revision": odd}}) == Revision()


STEPS = st.lists(st.sampled_from(["edit", "delete", "undo", "redo", "stream", "other"]), max_size=25)


@given(STEPS)
def test_undo_and_redo_from_the_journal_are_those_of_a_list(steps: list[str]) -> None:
    journal = events(chunk("m", "first"))
    session = Session().fold(journal)
    versions, at = ["first"], 0

    def add(*bodies: Updated) -> None:
        made = number(bodies, after=session.last_seq, at=AT)
        session.fold(made)
        journal.extend(made)

    def show(revision: Revision, text: str) -> None:
        message = session.message(MessageType.AGENT, "m")
        meta = meta_patch(message, revision, deleted=text == "")
        content: list[Any] = [v2.TextContent(text=text)] if text else []
        add(Updated.of(v2.AgentMessage(message_id=ID, content=content, meta=meta)))

    for count, step in enumerate(steps):
        message = session.message(MessageType.AGENT, "m")
        assert message is not None
        now = revision_in(message.meta)
        assert (message.text, now, message.deleted) == (
            versions[at], Revision(at, len(versions) - 1), versions[at] == "",
        )  # fmt: skip
        if step in ("edit", "delete"):
            text = "" if step == "delete" else f"edit {count}"
            versions[at + 1 :] = [text]
            at += 1
            show(now.next(), text)
        elif step in ("undo", "redo"):
            wanted = at + (1 if step == "redo" else -1)
            search = VersionSearch(MessageType.AGENT, "m", wanted)
            for event in journal:
                search.read(event)
            if 0 <= wanted < len(versions):
                assert search.found is not None
                at = wanted
                said = "".join(getattr(block, "text", "") for block in search.found.content)
                show(Revision(wanted, now.last), said)
        elif step == "stream" and versions[at]:
            versions[at] += "+"
            add(chunk("m", "+"))
        elif step == "other":
            add(chunk("m", "a thought of the same id", tag="agent_thought_chunk"))
