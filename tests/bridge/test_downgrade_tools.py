"""Tool calls towards v1 clients: creation and patches, content that grows, terminals and diffs."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from antiphon.bridge import diffs
from antiphon.bridge.downgrade.tools import EAGER
from tests.bridge.wire import Down, b64, plain, shown, text, update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"


def tool(id: str = "t", **fields: Any) -> Any:
    return update("tool_call_update", toolCallId=id, **fields)


def created(id: str = "t", title: str = "T", **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": id, "title": title, **fields}


def patched(id: str = "t", **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id, **fields}


def test_24_4_the_first_sight_of_a_call_creates_it_and_later_updates_patch_it() -> None:
    down = Down()
    assert down.feed(tool(title="Run", kind="execute", status="pending", rawInput={"a": 1})) == [
        created(title="Run", kind="execute", status="pending", rawInput={"a": 1})
    ]
    assert down.feed(tool(status="in_progress")) == [patched(status="in_progress")]
    assert down.feed(tool(status="completed", content=[shown("ok")], rawOutput=[1])) == [
        patched(status="completed", content=[shown("ok")], rawOutput=[1])
    ]
    assert down.lost == []


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"title": "Run", "name": "run"}, "Run"),
        ({"name": "run"}, "run"),
        ({}, "Tool call"),
        ({"title": ""}, ""),
    ],
)
def test_24_4_the_title_is_the_title_else_the_name_else_a_plain_word(fields: Any, title: str) -> None:
    assert [one["title"] for one in Down().feed(tool(**fields))] == [title]


@pytest.mark.parametrize(
    ("status", "sent", "lost"),
    [
        ("pending", "pending", False),
        ("in_progress", "in_progress", False),
        ("completed", "completed", False),
        ("failed", "failed", False),
        ("cancelled", "failed", True),
        ("paused", "in_progress", True),
        ("_odd", "in_progress", True),
    ],
)
def test_24_4_status(status: str, sent: str, lost: bool) -> None:
    down = Down()
    meta: Any = {"_meta": {ORIGINAL: {"status": status}}} if lost else {}
    assert down.feed(tool(title="T", status=status)) == [created(status=sent, **meta)]
    later = Down()
    later.feed(tool(title="T"))
    assert later.feed(tool(status=status)) == [patched(status=sent, **meta)]
    assert down.lost == later.lost == (["tool_status"] if lost else [])


def test_24_4_the_original_goes_when_it_no_longer_differs() -> None:
    down = Down()
    down.feed(tool(title="T", status="paused", meta={"k": 1}))
    assert down.feed(tool(status="completed")) == [patched(status="completed", _meta={"k": 1})]


@pytest.mark.parametrize(
    ("kind", "sent"), [("read", "read"), ("switch_mode", "switch_mode"), ("_odd", "other")]
)
def test_24_4_kind(kind: str, sent: str) -> None:
    down = Down()
    assert down.feed(tool(title="T", kind=kind))[0]["kind"] == sent
    assert down.lost == (["tool_kind"] if kind == "_odd" else [])


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"kind": None}, {"kind": "other"}),
        ({"status": None}, {"status": "pending"}),
        ({"content": None}, {"content": []}),
        ({"content": []}, {"content": []}),
        ({"locations": None}, {"locations": []}),
        ({"title": None}, {"_meta": {ORIGINAL: {"title": None}}}),
        ({"name": None}, {"_meta": {ORIGINAL: {"name": None}}}),
        ({"rawInput": None}, {"_meta": {ORIGINAL: {"rawInput": None}}}),
        ({"rawOutput": None}, {"_meta": {ORIGINAL: {"rawOutput": None}}}),
    ],
)
def test_24_4_null_is_reset_where_v1_can_say_so_and_announced_where_it_cannot(fields: Any, sent: Any) -> None:
    down = Down()
    down.feed(
        tool(
            title="T", name="n", kind="read", status="failed", content=[shown("a")],
            locations=[{"path": "/a"}], rawInput=1, rawOutput=2,
        )
    )  # fmt: skip
    assert down.feed(tool(**fields)) == [patched(**sent)]
    assert down.lost == (["tool_cleared"] if "_meta" in sent else [])


def test_24_4_null_for_what_never_was_is_no_loss() -> None:
    down = Down()
    down.feed(tool(title="T", name=None, rawInput=None))
    assert down.feed(tool(name=None, rawInput=None)) == []
    assert down.lost == []


def test_24_4_capabilities_are_dropped() -> None:
    down = Down()
    down.feed(tool(title="T"))
    assert down.feed(tool(capabilities={"cancel": {}})) == []
    assert down.lost == ["tool_capabilities"]


def test_24_6_the_merged_meta_is_sent_not_the_patch() -> None:
    down = Down()
    down.feed(tool(title="T", meta={"a": 1, "b": 2}))
    assert down.feed(tool(meta={"a": None, "c": 3})) == [patched(_meta={"b": 2, "c": 3})]
    assert down.feed(tool(meta=None)) == [patched(_meta={})]


def test_24_4_content_chunks_accumulate() -> None:
    down = Down()
    chunks = [update("tool_call_content_chunk", toolCallId="t", content=shown(words)) for words in "abc"]
    assert down.feed(*chunks) == [
        created(title="Tool call", content=[shown("a")]),
        patched(content=[shown("a"), shown("b")]),
        patched(content=[shown("a"), shown("b"), shown("c")]),
    ]
    # TOOL-V2-05: a later update replaces all
    assert down.feed(tool(content=[shown("d")])) == [patched(content=[shown("d")])]
    assert down.lost == []


def test_24_4_resending_a_call_that_grows_costs_linear_not_square() -> None:
    down = Down()
    piece, count = "x" * 100, 3000
    down.feed(tool(title="T"))
    sent = down.feed(
        *(update("tool_call_content_chunk", toolCallId="t", content=shown(piece)) for _ in range(count))
    )
    total = sum(len(item["content"]["text"]) for one in sent for item in one["content"])
    assert total < 12 * count * len(piece) + EAGER * EAGER
    held = down.flush()
    assert len(held[0]["content"]) == count
    assert down.flush() == []


@pytest.mark.parametrize("then", [{"status": "completed"}, {"title": "New"}])
def test_24_4_held_back_content_comes_with_the_next_update(then: dict[str, str]) -> None:
    down = Down()
    down.feed(tool(title="T", content=[shown("x" * 50_000)]))
    assert down.feed(update("tool_call_content_chunk", toolCallId="t", content=shown("y"))) == []
    assert [len(one["content"]) for one in down.feed(tool(**then))] == [2]


def test_24_4_held_back_content_comes_before_the_end_of_the_turn() -> None:
    down = Down()
    down.feed(tool(title="T", content=[shown("x" * 50_000)]))
    assert down.feed(update("tool_call_content_chunk", toolCallId="t", content=shown("y"))) == []
    assert len(down.feed(update("state_update", state="idle", stopReason="end_turn"))) == 1


def test_24_4_content_of_unknown_type_becomes_a_text() -> None:
    down = Down()
    odd = {"type": "_chart", "points": [1, 2]}
    placeholder = {"type": "text", "text": "[_chart]", "_meta": {ORIGINAL: odd}}
    assert down.feed(tool(title="T", content=[odd])) == [
        created(content=[{"type": "content", "content": placeholder}])
    ]
    block = {"type": "content", "content": odd, "_meta": {"k": 1}}
    assert down.feed(tool(content=[block])) == [
        patched(content=[{"type": "content", "content": placeholder, "_meta": {"k": 1}}])
    ]
    assert down.lost == ["tool_content_type", "content_type"]


def terminal_text(sent: list[dict[str, Any]]) -> list[str]:
    return [item["content"]["text"] for one in sent for item in one["content"]]


class TestTerminals:
    REFERENCE: ClassVar = {"type": "terminal", "terminalId": "x"}

    def test_24_4_output_is_folded_into_the_call_that_refers_to_it(self) -> None:
        down = Down()
        down.feed(tool(title="T", content=[shown("before"), self.REFERENCE]))
        sent = down.feed(
            update("terminal_update", terminalId="x", command="make", cwd="/w"),
            update("terminal_output_chunk", terminalId="x", data=b64("one\r\n")),
            update("terminal_output_chunk", terminalId="x", data=b64("\x1b[31mtwo\x1b[0m\n")),
            update("terminal_update", terminalId="x", exitStatus={"exitCode": 2}),
        )
        assert terminal_text(sent)[1::2] == [
            "$ make",
            "$ make\none\n",
            "$ make\none\ntwo\n",
            "$ make\none\ntwo\n[exit code 2]",
        ]
        assert sent[-1]["content"][1]["_meta"] == {
            ORIGINAL: {
                "type": "terminal",
                "terminalId": "x",
                "command": "make",
                "cwd": "/w",
                "exitStatus": {"exitCode": 2},
            }
        }
        assert down.lost == ["terminal"]

    @requirement("TERMV2-02")
    def test_the_terminal_may_come_before_the_reference(self) -> None:
        down = Down()
        assert down.feed(update("terminal_output_chunk", terminalId="x", data=b64("hi"))) == []
        assert terminal_text(down.feed(tool(title="T", content=[self.REFERENCE]))) == ["hi"]
        assert down.lost == ["terminal_alone", "terminal"]

    @requirement("TERMV2-04")
    def test_output_replaces_all_bytes(self) -> None:
        down = Down()
        down.feed(tool(title="T", content=[self.REFERENCE]))
        down.feed(update("terminal_output_chunk", terminalId="x", data=b64("old")))
        assert terminal_text(
            down.feed(
                update("terminal_update", terminalId="x", output={"data": b64("new")}),
                update("terminal_update", terminalId="x", output=None),
            )
        ) == ["new", ""]

    @requirement("TERMV2-05")
    def test_a_character_cut_in_two_is_whole(self) -> None:
        down = Down()
        down.feed(tool(title="T", content=[self.REFERENCE]))
        data = "é".encode()
        assert down.feed(update("terminal_output_chunk", terminalId="x", data=b64(data[:1]))) == []
        assert terminal_text(
            down.feed(update("terminal_output_chunk", terminalId="x", data=b64(data[1:])))
        ) == ["é"]

    def test_a_terminal_no_longer_referred_to_is_no_longer_shown(self) -> None:
        down = Down()
        down.feed(tool(title="T", content=[self.REFERENCE]), tool(content=[shown("done")]))
        assert down.feed(update("terminal_output_chunk", terminalId="x", data=b64("late"))) == []

    def test_two_calls_may_refer_to_one_terminal(self) -> None:
        down = Down()
        down.feed(tool("a", content=[self.REFERENCE]), tool("b", content=[self.REFERENCE]))
        sent = down.feed(update("terminal_output_chunk", terminalId="x", data=b64("hi")))
        assert [one["toolCallId"] for one in sent] == ["a", "b"]

    def test_data_that_is_no_base64_is_reported_and_dropped(self) -> None:
        down = Down()
        down.feed(tool(title="T", content=[self.REFERENCE]))
        assert down.feed(update("terminal_output_chunk", terminalId="x", data="%%%")) == []
        assert down.lost == ["terminal", "terminal_data"]

    def test_nothing_is_sent_when_nothing_changed(self) -> None:
        down = Down()
        down.feed(tool(title="T", content=[self.REFERENCE]))
        down.feed(update("terminal_update", terminalId="x", command="make"))
        assert down.feed(update("terminal_update", terminalId="x", command="make", capabilities=None)) == []


class TestDiffs:
    def test_24_4_both_sides_known_exactly_are_a_v1_diff(self) -> None:
        down = Down()
        diff = plain(diffs.whole_diff("/a.txt", "one\ntwo", "one\n2\n"))
        assert down.feed(tool(title="T", content=[diff])) == [
            created(
                content=[{"type": "diff", "path": "/a.txt", "oldText": "one\ntwo", "newText": "one\n2\n"}]
            )
        ]
        assert down.lost == []

    def test_24_4_a_new_file_has_no_old_text(self) -> None:
        patch = "diff --git /n /n\nnew file mode 100644\n--- /dev/null\n+++ /n\n@@ -0,0 +1 @@\n+hi\n"
        diff = {
            "type": "diff",
            "changes": [{"operation": "add", "path": "/n"}],
            "patch": {"format": "git_patch", "text": patch},
        }
        sent = Down().feed(tool(title="T", content=[diff]))
        assert sent[0]["content"] == [{"type": "diff", "path": "/n", "newText": "hi\n"}]

    @pytest.mark.parametrize(
        ("changes", "patch", "words"),
        [
            ([{"operation": "modify", "path": "/a"}], None, "modify /a"),
            ([{"operation": "move", "oldPath": "/a", "path": "/b"}], None, "move /a -> /b"),
            (
                [{"operation": "delete", "path": "/a"}, {"operation": "_odd", "path": "/c"}],
                None,
                "delete /a\n_odd /c",
            ),
            (
                [{"operation": "modify", "path": "/a"}],
                {"format": "git_patch", "text": "diff --git /a /a\n@@ -5 +5 @@\n-a\n+b\n"},
                "modify /a\n\ndiff --git /a /a\n@@ -5 +5 @@\n-a\n+b\n",
            ),
        ],
    )
    def test_24_4_any_other_diff_is_its_changes_and_patch_as_text(
        self, changes: Any, patch: Any, words: str
    ) -> None:
        down = Down()
        diff: dict[str, Any] = {"type": "diff", "changes": changes, "_meta": {"k": 1}}
        if patch is not None:
            diff["patch"] = patch
        assert down.feed(tool(title="T", content=[diff])) == [
            created(content=[{"type": "content", "content": text(words), "_meta": {"k": 1, ORIGINAL: diff}}])
        ]
        assert down.lost == ["diff"]


def test_a_snapshot_has_all_that_is_known() -> None:
    down = Down()
    down.feed(tool(title="T", status="cancelled", content=[shown("a")]))
    snapshot = down.machine.tools.snapshot("t")
    assert plain(snapshot) == {
        "toolCallId": "t",
        "title": "T",
        "kind": "other",
        "status": "failed",
        "content": [shown("a")],
        "_meta": {ORIGINAL: {"status": "cancelled"}},
    }
    assert down.machine.tools.snapshot("none") is None
