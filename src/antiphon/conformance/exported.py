"""Exported sessions as recordings: what their events say, written as the v2 frames of one client.

The events are read by the description of the file in `docs/moving.md`, without the code that writes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from antiphon.conformance.recording import Recording, RecordingRefused, Role, parse

FORMAT = b'"format":"antiphon session"'
LATEST = 1e15
"""Milliseconds. What is further from zero is no time."""
LARGEST = 256 * 1024 * 1024
"""Bytes of a body, inflated."""
_CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "auth": {"terminal": {}}}
"""A journal does not know what its clients offered, so nothing may be held against the agent for that."""
_AREAS = (
    "PROMPT", "MSG", "TOOL", "TERMV2", "DIFF", "PERM", "PLAN", "CONF", "CMD", "USAGE", "INFO", "NOTE", "COMP",
    "CONT", "RPC-43", "RPC-44", "EXT-03", "EXT-04", "EXT-06", "EXT-08",
)  # fmt: skip
_encode = msgspec.json.Encoder().encode


def decides(requirement: str) -> bool:
    """Whether an exported session can show a requirement: it has updates and questions, and no frames."""
    return requirement.startswith(_AREAS)


def is_exported(data: bytes) -> bool:
    """Whether a file begins like a session that `antiphon sessions export` wrote."""
    head = data[: data.find(b"\n")]
    return head.startswith(b'{"part":"session"') and FORMAT in head


def read_exported(data: bytes) -> Recording:
    """Return the first session of the file as a recording. Raises `RecordingRefused`."""
    events = _events(data)
    frames = _Frames()
    for event in events:
        body = event.get("body")
        if isinstance(body, dict):
            frames.add(body, event.get("at", 0))
    return frames.recording


def _events(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of the first session: a subagent's is a conversation of its own."""
    at, sessions = 0, 0
    while at < len(data):
        end = data.find(b"\n", at)
        head = parse(data[at:end].rpartition(b" ")[0]) if end > 0 else None
        size = head.get("size") if isinstance(head, dict) else None
        if not isinstance(head, dict) or not isinstance(size, int) or size < 0:
            raise RecordingRefused(f"the exported session has no readable part at byte {at}")
        body = data[end + 1 : end + 1 + size]
        at = end + size + 2
        sessions += head.get("part") == "session"
        if sessions > 1:
            return
        if head.get("part") == "events":
            for line in _inflated(body).split(b"\n"):
                event = parse(line)
                if isinstance(event, dict):
                    yield event


def _inflated(body: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        return inflate.decompress(body, LARGEST)
    except zlib.error as error:
        raise RecordingRefused(f"the exported session is damaged: {error}") from None


class _Frames:
    """Writes the frames that events stand for. Ids are numbers of the recording's own."""

    def __init__(self) -> None:
        self.recording = Recording(lambda: 0.0)
        self._began: float | None = None
        self._at = 0.0
        self._ids = 0
        self._session = ""
        self._open: dict[str, int] = {}
        """Ids of open prompts and questions, by the name of their event."""

    def add(self, body: dict[str, Any], at: Any) -> None:
        seconds = at / 1000 if isinstance(at, (int, float)) and abs(at) < LATEST else 0.0
        self._began = seconds if self._began is None else self._began
        self._at = seconds - self._began
        match body.get("type"):
            case "session_created":
                self._create(str(body.get("session_id")), body.get("cwd"))
            case "update" | "translated":
                self._update(body)
            case "prompt_queued":
                params = {"sessionId": self._session, "prompt": body.get("content")}
                self._request(Role.CLIENT, f"prompt {body.get('message_id')}", "session/prompt", params)
            case "prompt_accepted":
                id = body.get("message_id")
                self._result(Role.AGENT, f"prompt {id}", {"messageId": body.get("became") or id})
            case "prompt_withdrawn":
                error = {"code": -32800, "message": "Request cancelled"}
                self._refuse(Role.AGENT, f"prompt {body.get('message_id')}", error)
            case "prompt_rejected":
                self._refuse(Role.AGENT, f"prompt {body.get('message_id')}", body.get("error"))
            case "question_opened":
                name = f"question {body.get('question_id')}"
                self._request(Role.AGENT, name, str(body.get("method")), body.get("params"))
            case "question_closed" if body.get("result") is not None:
                self._result(Role.CLIENT, f"question {body.get('question_id')}", body["result"])

    def _create(self, session: str, cwd: Any) -> None:
        info = {"name": "recorded", "version": "1"}
        initialize = {"protocolVersion": 2, "info": info, "capabilities": _CAPABILITIES}
        self._request(Role.CLIENT, "initialize", "initialize", initialize)
        answer = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
        self._result(Role.AGENT, "initialize", answer)
        self._request(Role.CLIENT, "session", "session/new", {"cwd": cwd})
        self._result(Role.AGENT, "session", {"sessionId": session})
        self._session = session

    def _update(self, body: dict[str, Any]) -> None:
        params = {"sessionId": self._session, "update": body.get("update")}
        if isinstance(body.get("meta"), dict):
            params["_meta"] = body["meta"]
        self._add(Role.AGENT, {"method": "session/update", "params": params})

    def _request(self, sender: Role, name: str, method: str, params: Any) -> None:
        self._ids += 1
        self._open[name] = self._ids
        self._add(sender, {"id": self._ids, "method": method, "params": params})

    def _result(self, sender: Role, name: str, result: Any) -> None:
        if name in self._open:
            self._add(sender, {"id": self._open.pop(name), "result": result})

    def _refuse(self, sender: Role, name: str, error: Any) -> None:
        if name in self._open:
            self._add(sender, {"id": self._open.pop(name), "error": error})

    def _add(self, sender: Role, frame: dict[str, Any]) -> None:
        self.recording.add(sender, _encode({"jsonrpc": "2.0", **frame}), at=self._at)
