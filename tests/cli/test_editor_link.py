"""What `antiphon acp` keeps of a conversation: how far the editor was told each session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.cli.editor_link import EditorConversation

OURS = {"antiphon": {"seq": 7}}
BESIDE = pytest.mark.parametrize(
    "meta",
    [
        OURS,
        {"vendor": {"x": 1}, **OURS},
        {**OURS, "vendor": {"x": 1}},
        {"vendor": [{"antiphon": {"seq": 3}}], **OURS, "other": '"_meta":{"antiphon":{"seq":9}}}}'},
        {"antiphon": {"later": {"seq": 1}, "seq": 7, "word": "x" * 200}},
    ],
    ids=["alone", "behind the agent's", "before the agent's", "among look-alikes", "among more of ours"],
)


def _line(**frame: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **frame}).encode()


def _opened(version: int) -> EditorConversation:
    talk = EditorConversation()
    for id, method, params, result in (
        (0, "initialize", {"protocolVersion": version}, {"protocolVersion": version}),
        (1, "session/new", {"cwd": "/"}, {"sessionId": "s", "_meta": {"antiphon": {"seq": 1}}}),
    ):
        talk.from_editor(_line(id=id, method=method, params=params))
        talk.from_hub(_line(id=id, result=result))
    return talk


def _cursor(talk: EditorConversation) -> Any:
    (asked,) = talk.resuming()
    params = asked["params"]
    return params["replayFrom"]["seq"] if "replayFrom" in params else params["_meta"]["antiphon"]["after"]


def _update(meta: Any, *, order: tuple[str, ...] = ("sessionId", "update", "_meta")) -> bytes:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
    params = {"sessionId": "s", "update": update, "_meta": meta}
    return _line(method="session/update", params={key: params[key] for key in order})


@pytest.mark.parametrize("version", [1, 2])
@BESIDE
def test_the_cursor_is_read_wherever_it_stands_beside_an_update(meta: dict[str, Any], version: int) -> None:
    for order in (("sessionId", "update", "_meta"), ("_meta", "update", "sessionId")):
        talk = _opened(version)
        frame = _update(meta, order=order)
        assert talk.from_hub(frame) == frame
        assert _cursor(talk) == 7


def test_a_piece_of_an_event_is_passed_on_once_and_moves_no_cursor() -> None:
    talk = _opened(2)
    piece = _update({"vendor": 1, "antiphon": {"seq": 7, "part": 0}})
    assert talk.from_hub(piece) == piece
    assert talk.from_hub(piece) is None
    assert _cursor(talk) == 1


@pytest.mark.parametrize("meta", [None, {}, {"antiphon": None}, {"antiphon": {}}, {"vendor": {"seq": 7}}])
def test_an_update_without_a_number_moves_no_cursor(meta: Any) -> None:
    talk = _opened(2)
    frame = _update(meta)
    assert talk.from_hub(frame) == frame
    assert _cursor(talk) == 1


def test_what_only_looks_like_an_update_is_passed_on() -> None:
    talk = _opened(2)
    for frame in (
        _line(method="_vendor/note", params={"sessionId": "s", "text": "session/update", "_meta": OURS}),
        _line(method="session/update", params={"sessionId": 3, "_meta": OURS}),
        b'"session/update"',
    ):
        assert talk.from_hub(frame) == frame
    assert _cursor(talk) == 1
