"""Rules about frames: bytes, JSON-RPC objects, ids, and which response belongs to which request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from antiphon.conformance.recording import RecordedFrame, Recording, Role, parse
from antiphon.conformance.rules.exchanges import Exchanges, exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.shapes import glimpse

rules = Rules()
BOTH = (Role.AGENT, Role.CLIENT)
INT32 = range(-(2**31), 2**31)
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
INT64 = range(-(2**63), 2**63)


def _stray_bytes(recording: Recording, facts: Facts) -> Iterator[Finding]:
    only = "TRANS-03" if facts.judged is Role.AGENT else "TRANS-04"
    frames = [frame for frame in recording.of(facts.judged) if frame.raw]
    for place, frame in enumerate(frames):
        if frame.value is not UNSET:
            continue
        if not _is_utf8(frame.raw):
            yield Finding("TRANS-01", False, "expected UTF-8, got bytes that are not", (frame,))
        elif _is_split(frames, place) or _holds_several(frame.raw):
            text = "expected one whole message per line, got a part of one or several"
            yield Finding("TRANS-02", False, text, (frame,))
        elif not any(_is_split(frames, earlier) for earlier in range(max(0, place - 99), place)):
            yield Finding(only, False, f"expected only ACP messages, got {_start(frame.raw)}", (frame,))
    if any(frame.value is not UNSET for frame in frames):
        for id in ("TRANS-01", "TRANS-02", only):
            yield Finding(id, True, "expected every line to be one message in UTF-8")


rules.add("TRANS-01", "TRANS-02", "TRANS-03", parties=(Role.AGENT,))(_stray_bytes)
rules.add("TRANS-01", "TRANS-02", "TRANS-04", parties=(Role.CLIENT,))(_stray_bytes)


@rules.add("RPC-01", parties=BOTH)
def frames_are_jsonrpc_objects(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Every JSON value is a request, a notification or a response of JSON-RPC 2.0."""
    for frame in recording.of(facts.judged):
        if frame.value is UNSET or isinstance(frame.value, list):
            continue
        fault = _envelope_fault(frame.value)
        yield Finding("RPC-01", not fault, fault or "expected JSON-RPC 2.0 objects", (frame,))


@rules.add("RPC-13", parties=BOTH)
def arrays_are_not_sent(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Nobody sends an array. A peer of an older revision may answer one with one (RPC-15)."""
    asked = any(isinstance(frame.value, list) for frame in recording.of(facts.judged.other))
    for frame in recording.of(facts.judged):
        if frame.value is not UNSET and not (asked and isinstance(frame.value, list)):
            text = "expected one object per message, got an array"
            yield Finding("RPC-13", not isinstance(frame.value, list), text, (frame,))


@rules.add("RPC-02", "RPC-03", parties=BOTH)
def request_ids_are_usable(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A request id is text or an integer; in v1 also `null` or a fraction."""
    for frame in recording.of(facts.judged):
        if not frame.is_request:
            continue
        if facts.version == 1:
            ok = frame.id is None or (_is_number(frame.id) or isinstance(frame.id, str))
            text = f"expected text, a number or `null` as id, got {glimpse(frame.id)}"
            yield Finding("RPC-02", ok, text, (frame,))
        else:
            ok = isinstance(frame.id, str) or (type(frame.id) is int and frame.id in INT64)
            yield Finding("RPC-03", ok, f"expected text or an int64, got {glimpse(frame.id)}", (frame,))


@rules.add("RPC-05", "RPC-08", "RPC-09", parties=BOTH)
def responses_answer_requests(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Every response has the id of an open request, with its JSON type."""
    exchanges = exchanges_of(recording, facts.judged.other)
    for request, response in exchanges.answered():
        text = f"expected the id {glimpse(request.id)} in the response"
        yield Finding("RPC-05", True, text, (request, response))
    for stray in exchanges.strays:
        yield from _stray(stray, recording, exchanges, facts)


def _stray(
    stray: RecordedFrame, recording: Recording, exchanges: Exchanges, facts: Facts
) -> Iterator[Finding]:
    others = [frame for frame in recording.frames[: stray.index] if frame.sender is not stray.sender]
    withdrawn = {
        glimpse(frame.get("params", "requestId"))
        for frame in recording.of(facts.judged)
        if frame.method == "$/cancel_request"
    }
    matched = {
        response.index
        for request, response in exchanges_of(recording, facts.judged).answered()
        if glimpse(request.id) not in withdrawn
    }
    unreadable = [
        frame for frame in others if frame.index not in matched and not _is_readable(frame, facts.version)
    ]
    if stray.id is None or stray.id is UNSET:
        earlier = [
            frame for frame in exchanges.strays if frame.index < stray.index and frame.id in (None, UNSET)
        ]
        if stray.result is UNSET and len(earlier) < len(unreadable):
            if facts.version == 2:
                yield Finding("RPC-09", True, "expected `id: null` only for a request without a usable id")
            return
        notifications = [frame for frame in others if frame.is_notification]
        if notifications:
            text = f"expected no response to the notification `{notifications[-1].method}`"
            yield Finding("RPC-08", False, text, (notifications[-1], stray))
        else:
            id = "RPC-09" if facts.version == 2 else "RPC-05"
            yield Finding(id, False, "expected the id of a request in the response, got none", (stray,))
    elif not any(_mentions(_read_leniently(frame), stray.id) for frame in unreadable):
        same = [each.request for each in exchanges.all if str(each.request.id) == str(stray.id)]
        text = f"expected the id of an open request, got {glimpse(stray.id)}"
        if same and type(same[-1].id) is not type(stray.id):
            text = f"expected the id {glimpse(same[-1].id)}, got {glimpse(stray.id)}"
        elif same:
            text = f"expected one response to the request {glimpse(stray.id)}, got another"
        yield Finding("RPC-05", False, text, (*same[-1:], stray))


def _read_leniently(frame: RecordedFrame) -> Any:
    """Return the value of a frame. A reader may replace bytes that are not UTF-8."""
    if frame.value is not UNSET:
        return frame.value
    return parse(frame.raw.decode("utf-8", "replace").encode())


@rules.add("RPC-06", versions=(2,), parties=BOTH)
def open_ids_are_not_reused(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A sender does not use an id again while its request is open."""
    exchanges = exchanges_of(recording, facts.judged)
    for earlier, again in exchanges.reused:
        text = f"expected a new id, got {glimpse(again.id)} again before its response"
        yield Finding("RPC-06", False, text, (earlier, again))
    if len(exchanges.all) > 1:
        yield Finding("RPC-06", True, "expected a new id for every open request")


@rules.add("RPC-21", "RPC-22", "RPC-23", parties=BOTH)
def errors_are_well_formed(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An error has an integer code and a message of one line."""
    for frame in recording.of(facts.judged):
        if frame.error is UNSET or frame.method is not None:
            continue
        code, message = frame.get("error", "code"), frame.get("error", "message")
        ok = type(code) is int and isinstance(message, str)
        text = "expected an error with an integer `code` and a text `message`"
        yield Finding("RPC-21", ok, text, (frame,))
        if type(code) is int:
            yield Finding("RPC-23", code in INT32, f"expected a code of 32 bits, got {code}", (frame,))
        if isinstance(message, str):
            one_line = bool(message.strip()) and len(message.splitlines()) == 1
            text = f"expected a message of one line, got {glimpse(message)}"
            yield Finding("RPC-22", one_line, text, (frame,))


@rules.add("EXT-05", parties=BOTH)
def trace_keys_hold_traces(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """`traceparent` in `_meta` should be a W3C trace context."""
    for frame in recording.of(facts.judged):
        for path in (("params", "_meta"), ("result", "_meta"), ("params", "update", "_meta")):
            parent = frame.get(*path, "traceparent")
            if parent is not UNSET:
                ok = isinstance(parent, str) and _TRACE_PARENT.fullmatch(parent) is not None
                text = f"expected a W3C trace context in `traceparent`, got {glimpse(parent)}"
                yield Finding("EXT-05", ok, text, (frame,))


def _envelope_fault(value: Any) -> str:
    """Return what is wrong with a frame; empty if nothing is."""
    if not isinstance(value, dict):
        return f"expected an object, got {glimpse(value)}"
    if value.get("jsonrpc") != "2.0":
        return f'expected `"jsonrpc":"2.0"`, got {glimpse(value.get("jsonrpc"))}'
    outcome = [key for key in ("result", "error") if key in value]
    if "method" in value:
        if not isinstance(value["method"], str):
            return "expected text as `method`"
        return f"expected no `{outcome[0]}` beside `method`" if outcome else ""
    if len(outcome) != 1:
        said = "both" if outcome else "none"
        return f"expected `method`, or exactly one of `result` and `error`, got {said}"
    return "" if "id" in value else "expected an `id` in the response"


def _is_readable(frame: RecordedFrame, version: int) -> bool:
    """Whether the receiver of a frame can know which request it is, or that it is none."""
    value = frame.value
    if not isinstance(value, dict) or _envelope_fault(value):
        return False
    if not frame.is_request:
        # A response that answers nothing is not answered (RPC-12), and whoever does is judged for that.
        return frame.is_notification
    return version == 1 or isinstance(frame.id, str) or type(frame.id) is int


def _mentions(value: Any, id: Any) -> bool:
    """Whether a malformed frame has an id, or one of its entries."""
    entries = value if isinstance(value, list) else [value]
    return any(isinstance(entry, dict) and entry.get("id") == id for entry in entries)


def _is_number(id: Any) -> bool:
    return isinstance(id, (int, float)) and not isinstance(id, bool)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_split(frames: list[RecordedFrame], place: int) -> bool:
    """Whether a message begins here and is spread over this line and the next."""
    joined = frames[place].raw
    if frames[place].value is not UNSET or not joined.lstrip().startswith((b"{", b"[")):
        return False
    for frame in frames[place + 1 : place + 100]:
        joined += b"\n" + frame.raw
        if isinstance(parse(joined), (dict, list)):
            return True
    return False


def _holds_several(raw: bytes) -> bool:
    text, decoder, at, found = raw.decode("utf-8").strip(), json.JSONDecoder(), 0, 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        found += 1
        while at < len(text) and text[at].isspace():
            at += 1
    return found > 1


def _start(raw: bytes) -> str:
    return glimpse(raw[:80].decode("utf-8", "replace"))
