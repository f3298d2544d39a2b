"""The timeline of a recording: chunks of a message are one entry, and so are a request and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from antiphon.cli.timeline.entries import Entry, Timeline, content_text, word
from antiphon.conformance import RecordedFrame, Recording, Role

FINAL = ("completed", "failed", "cancelled")
LONGEST_DETAIL = 4000
_WRITERS = {"user_message": "client", "agent_message": "agent", "agent_thought": "agent"}
"""Who wrote the messages of each update."""


def timeline_of(recording: Recording, name: str) -> Timeline:
    """Make the timeline of a recording."""
    builder = _Builder()
    for frame in recording.frames:
        builder.add(frame)
    builder.end()
    return Timeline(name=name, entries=builder.entries)


class _Builder:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._open: dict[tuple[Role, str], Entry] = {}
        """Requests without an answer so far, by their sender and id."""
        self._answers: dict[int, Callable[[Any], str]] = {}
        """How the result of a request is worded, by the identity of its entry."""
        self._messages: dict[tuple[str, str, str], Entry] = {}
        self._texts: dict[int, list[str]] = {}
        """The parts of messages, by the identity of the entry."""
        self._calls: dict[tuple[str, str], Entry] = {}
        self._last: dict[str, Entry] = {}
        """The last entry of each session that an update made. A message without an id goes on until another
        follows."""

    def add(self, frame: RecordedFrame) -> None:
        if frame.value is UNSET:
            self._new(frame, "not JSON", text=frame.raw.decode("utf-8", "replace"))
        elif frame.is_request:
            self._request(frame)
        elif frame.is_response:
            self._response(frame)
        elif frame.update_kind is not None:
            self._update(frame, frame.update, frame.update_kind)
        elif frame.method is not None:
            self._new(frame, "notification", title=frame.method, detail=_json(frame.params))
        else:
            self._new(frame, "not JSON-RPC", text=frame.raw.decode("utf-8", "replace"))

    def end(self) -> None:
        for request in self._open.values():
            request.status = "no answer"
        for entry in self.entries:
            if id(entry) in self._texts:
                entry.text = "".join(self._texts[id(entry)])

    def _new(self, frame: RecordedFrame, kind: str, **fields: Any) -> Entry:
        session = frame.session_id if isinstance(frame.session_id, str) else ""
        entry = Entry(
            at=frame.at, who=fields.pop("who", str(frame.sender)), kind=kind, session=session, **fields
        )
        self.entries.append(entry)
        return entry

    # --- requests ----------------------------------------------------------------------------------

    def _request(self, frame: RecordedFrame) -> None:
        params = frame.params if isinstance(frame.params, dict) else {}
        if frame.method == "session/prompt":
            entry = self._new(frame, "prompt", text=content_text(params.get("prompt")))
        elif frame.method == "session/request_permission":
            entry = self._new(frame, "permission", title=_subject(params))
        else:
            entry = self._new(frame, "request", title=frame.method, detail=_json(frame.params))
        self._open[frame.sender, _key(frame.id)] = entry
        wording = _WORDINGS.get(frame.method or "")
        if wording is not None:
            self._answers[id(entry)] = wording(params)

    def _response(self, frame: RecordedFrame) -> None:
        entry = self._open.pop((frame.sender.other, _key(frame.id)), None)
        if entry is None:
            self._new(frame, "stray response", text=frame.raw.decode("utf-8", "replace"))
            return
        entry.took = frame.at - entry.at
        entry.frames += 1
        answer = self._answers.pop(id(entry), None)
        if frame.error is not UNSET:
            entry.status = f"error {word(frame.error_code)}: {word(frame.get('error', 'message'))}"
        elif answer is not None:
            entry.status = answer(frame.result if isinstance(frame.result, dict) else {})
        entry.status = entry.status or "answered"

    # --- updates -----------------------------------------------------------------------------------

    def _update(self, frame: RecordedFrame, update: dict[str, Any], kind: str) -> None:
        whole = kind.removesuffix("_chunk")
        if whole in _WRITERS:
            entry = self._message(frame, update, whole, replace=whole == kind)
        elif kind in ("tool_call", "tool_call_update") and "toolCallId" in update:
            entry = self._tool_call(frame, update)
        elif kind in ("plan", "plan_update"):
            entry = self._new(frame, "plan", text=_plan(update))
        elif kind in ("state_update", "state_change"):
            reason = update.get("stopReason") or update.get("stop_reason")
            entry = self._new(frame, "state", title=word(update.get("state")), status=word(reason or ""))
        else:
            rest = {key: value for key, value in update.items() if key != "sessionUpdate"}
            entry = self._new(frame, "update", title=kind, detail=_json(rest))
        self._last[_key(frame.session_id)] = entry

    def _message(self, frame: RecordedFrame, update: dict[str, Any], kind: str, *, replace: bool) -> Entry:
        message_id, text = update.get("messageId"), content_text(update.get("content"))
        session = _key(frame.session_id)
        key = session, kind, _key(message_id)
        entry = self._messages.get(key)
        if entry is None or (message_id is None and self._last.get(session) is not entry):
            shown = "thought" if kind.endswith("thought") else "message"
            entry = self._messages[key] = self._new(frame, shown, who=_WRITERS[kind])
            self._texts[id(entry)] = [text]
            return entry
        parts = self._texts[id(entry)]
        if replace and "content" in update:
            parts.clear()
        parts.append(text)
        entry.frames += 1
        entry.took = frame.at - entry.at
        return entry

    def _tool_call(self, frame: RecordedFrame, update: dict[str, Any]) -> Entry:
        key = _key(frame.session_id), _key(update["toolCallId"])
        entry = self._calls.get(key)
        if entry is None:
            entry = self._calls[key] = self._new(
                frame, "tool call", title=word(update["toolCallId"]), status="pending"
            )
        else:
            entry.frames += 1
        if isinstance(update.get("title"), str):
            entry.title = update["title"]
        if isinstance(update.get("content"), list):
            entry.text = content_text(update["content"])
        if isinstance(update.get("status"), str):
            entry.status = update["status"]
            entry.took = frame.at - entry.at if entry.status in FINAL else None
        return entry


# --- words ---------------------------------------------------------------------------------------------


def _json(value: Any) -> str:
    if value is UNSET or value in ({}, None):
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)[:LONGEST_DETAIL]
    except RecursionError:
        return ""


def _key(value: Any) -> str:
    """Return any JSON value as a key. Ids are what peers send, whatever that is."""
    try:
        return json.dumps(value, default=repr)
    except RecursionError:
        return ""


def _subject(params: dict[str, Any]) -> str:
    """Return what a permission request is about, in either version."""
    subject = params.get("subject")
    call = params.get("toolCall") or (subject.get("toolCall") if isinstance(subject, dict) else None)
    titles = [params.get("title"), call.get("title") if isinstance(call, dict) else None]
    return next((title for title in titles if isinstance(title, str)), "")


def _plan(update: dict[str, Any]) -> str:
    plan = update.get("plan") if isinstance(update.get("plan"), dict) else update
    entries = plan.get("entries") if isinstance(plan, dict) else None
    if not isinstance(entries, list):
        return _json(plan)
    rows = [entry for entry in entries if isinstance(entry, dict)]
    return "\n".join(f"[{word(row.get('status', ''))}] {word(row.get('content', ''))}" for row in rows)


def _initialized(params: dict[str, Any]) -> Callable[[Any], str]:
    def initialized(result: dict[str, Any]) -> str:
        info = result.get("info") or result.get("agentInfo")
        name = f", {word(info.get('name'))} {word(info.get('version'))}" if isinstance(info, dict) else ""
        return f"ACP {word(result.get('protocolVersion'))}{name}"

    return initialized


def _chosen(params: dict[str, Any]) -> Callable[[Any], str]:
    """Word the answer to a permission request with the name of the option."""
    options = params.get("options")
    names = {
        word(option.get("optionId")): word(option.get("name"))
        for option in (options if isinstance(options, list) else [])
        if isinstance(option, dict)
    }

    def chose(result: dict[str, Any]) -> str:
        outcome = result.get("outcome")
        if not isinstance(outcome, dict):
            return "no outcome"
        chosen = word(outcome.get("optionId"))
        return names.get(chosen, chosen) if "optionId" in outcome else word(outcome.get("outcome"))

    return chose


def _field(name: str) -> Callable[[dict[str, Any]], Callable[[Any], str]]:
    def make(params: dict[str, Any]) -> Callable[[Any], str]:
        return lambda result: word(result.get(name) or "")

    return make


_WORDINGS: dict[str, Callable[[dict[str, Any]], Callable[[Any], str]]] = {
    "initialize": _initialized,
    "session/new": _field("sessionId"),
    "session/prompt": _field("stopReason"),
    "session/request_permission": _chosen,
}
"""How the result of a method is worded, given the params of the request."""
