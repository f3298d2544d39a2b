"""`message_update` as the seed's future has it: each kind of change, towards v1 and from v1."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.schema.version import OptIns
from tests.bridge.wire import Down, Up, text, update, v1_update

ASKED = OptIns(message_update=True)
DELETED = {"antiphon": {"deleted": True}}


def chunk(id: str, words: str) -> Any:
    return v1_update("agent_message_chunk", messageId=id, content=text(words))


@pytest.mark.parametrize("content", [text("new"), [text("new")]])
@pytest.mark.parametrize("kind", ["replace", "edit"])
def test_one_block_or_a_list_replaces_the_content(kind: str, content: Any) -> None:
    up = Up()
    up.feed(chunk("m", "old"))
    assert up.feed(v1_update("message_update", messageId="m", updateType=kind, content=content)) == [
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [text("new")]}
    ]


def test_the_update_of_the_seed_is_read() -> None:
    id = "ea87d0e7-beb8-484a-a404-94a30b78a5a8"
    up = Up()
    said = text("Actually, let me correct that analysis...")
    up.feed(chunk(id, "wrong"))
    assert up.feed(v1_update("message_update", messageId=id, updateType="replace", content=said)) == [
        {"sessionUpdate": "agent_message", "messageId": id, "content": [said]}
    ]


def test_an_edit_without_content_changes_the_meta_alone() -> None:
    up = Up()
    up.feed(chunk("m", "old"))
    assert up.feed(v1_update("message_update", messageId="m", updateType="edit", meta={"k": 1})) == [
        {"sessionUpdate": "agent_message", "messageId": "m", "_meta": {"k": 1}}
    ]


def test_what_is_appended_are_chunks() -> None:
    up = Up()
    up.feed(chunk("m", "old"))
    more = [text("a"), text("b")]
    assert up.feed(v1_update("message_update", messageId="m", updateType="append", content=more)) == [
        {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": each} for each in more
    ]


def test_a_deletion_empties_and_marks() -> None:
    up = Up()
    thought = v1_update("agent_thought_chunk", messageId="t", content=text("x"))
    up.feed(thought)
    assert up.feed(v1_update("message_update", messageId="t", updateType="delete", meta={"k": 1})) == [
        {"sessionUpdate": "agent_thought", "messageId": "t", "content": [], "_meta": {"k": 1, **DELETED}}
    ]
    again = up.feed(v1_update("agent_thought_chunk", messageId="t", content=text("back")))
    assert [each["messageId"] for each in again] == ["t"]


@pytest.mark.parametrize("kind", ["user_message", "agent_message", "agent_thought"])
def test_a_deleted_message_crosses_and_keeps_its_role_also_in_a_replay(kind: str) -> None:
    gone = update(kind, messageId="m", content=[], meta=DELETED)
    for shown in (True, False):
        down, up = Down(None, ASKED), Up(ASKED)
        if shown:
            said = down.feed(update(f"{kind}_chunk", messageId="m", content=text("a")))
            up.feed(*(v1_update(each.pop("sessionUpdate"), **each) for each in said))
        (sent,) = down.feed(gone)
        assert (sent["sessionUpdate"], sent["updateType"], "content" in sent) == (
            "message_update", "delete", False,
        )  # fmt: skip
        tag, meta = sent.pop("sessionUpdate"), sent.pop("_meta")
        assert up.feed(v1_update(tag, meta=meta, **sent)) == [
            {"sessionUpdate": kind, "messageId": "m", "content": [], "_meta": DELETED}
        ]
        assert down.lost == []


def test_without_the_opt_in_an_undone_deletion_says_nothing_twice() -> None:
    down = Down()
    down.feed(update("agent_message", messageId="m", content=[text("a")]))
    assert down.feed(update("agent_message", messageId="m", content=[], meta=DELETED)) == []
    assert down.lost == ["message_deleted"]
    back = update("agent_message", messageId="m", content=[text("a")], meta={"antiphon": {}})
    assert down.feed(back) == []


def test_with_the_opt_in_an_undone_deletion_is_a_message_again() -> None:
    down = Down(None, ASKED)
    down.feed(update("agent_message", messageId="m", content=[text("a")]))
    down.feed(update("agent_message", messageId="m", content=[], meta=DELETED))
    (back,) = down.feed(update("agent_message", messageId="m", content=[text("a")], meta={"antiphon": {}}))
    assert (back["sessionUpdate"], back["content"]) == ("agent_message_chunk", text("a"))


@pytest.mark.parametrize("asked", [OptIns(), ASKED])
def test_what_follows_an_undone_deletion_does_not_say_that_the_message_is_deleted(asked: OptIns) -> None:
    down = Down(None, asked)
    down.feed(update("agent_message", messageId="m", content=[text("a")]))
    down.feed(update("agent_message", messageId="m", content=[], meta={"k": 1, **DELETED}))
    for words in ("b", "c"):
        (sent,) = down.feed(update("agent_message", messageId="m", content=[text(words)]))
        assert sent["content"] == text(words)
        assert "deleted" not in str(sent.get("_meta"))


def test_the_version_that_a_later_chunk_names_is_that_of_its_message() -> None:
    """An addition, and an undone deletion, are chunks in v1."""
    down, up = Down(None, ASKED), Up(ASKED)
    about = {"about": {"messageId": "u"}}
    for content, ours in (
        ([text("a")], about),
        ([], {**about, "revision": {"at": 1, "last": 1}, "deleted": True}),
        ([text("a")], {**about, "revision": {"at": 0, "last": 1}}),
        ([text("a"), text("b")], {**about, "revision": {"at": 1, "last": 1}}),
    ):
        sent = down.feed(update("agent_message", messageId="m", content=content, meta={"antiphon": ours}))
        crossed = [
            lifted
            for each in sent
            for lifted in up.feed(v1_update(each.pop("sessionUpdate"), meta=each.pop("_meta"), **each))
        ]
        (said,) = [each for each in crossed if each["sessionUpdate"] == "agent_message"]
        assert said["_meta"]["antiphon"] == ours
