"""Frames as evidence: who sent one, when, what it is, and its text. Frames are foreign: all text is safe."""

from __future__ import annotations

import json
from typing import Any

from msgspec import UNSET

from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.verdicts import Verdict
from antiphon.text_safety import safe_line, safe_text

ARROWS = {Role.CLIENT: "client → agent", Role.AGENT: "agent → client"}
LONGEST_TEXT = 20_000
"""Characters of one frame in a file."""


def direction(frame: RecordedFrame) -> str:
    """Return the sender and the receiver, and the connection if a scenario has several."""
    return f"{ARROWS[frame.sender]}{f' ({frame.link})' if frame.link not in ('', 'client 1') else ''}"


def time(frame: RecordedFrame) -> str:
    return f"{frame.at:.3f} s"


def title(frame: RecordedFrame) -> str:
    """Say in a few words what a frame is."""
    if frame.value is UNSET:
        return "bytes that are not JSON" if frame.raw else "an empty or oversized line"
    if frame.update_kind is not None:
        return safe_line(f"{frame.method} {frame.update_kind}", limit=80)
    if frame.is_request:
        return safe_line(f"request {frame.method} {_id(frame.id)}", limit=80)
    if frame.is_notification:
        return safe_line(f"notification {frame.method}", limit=80)
    if frame.is_response:
        kind = "result" if frame.error is UNSET else f"error {frame.error_code}"
        return safe_line(f"{kind} {_id(frame.id)}", limit=80)
    return "JSON that is no JSON-RPC frame"


def line(frame: RecordedFrame, *, limit: int) -> str:
    """Return the text of a frame on one line, cut to `limit` characters, without `"jsonrpc"`."""
    value = frame.value
    if isinstance(value, dict) and value.get("jsonrpc") == "2.0":
        value = {key: each for key, each in value.items() if key != "jsonrpc"}
        return safe_line(_dumps(value), limit=limit)
    return safe_line(frame.raw[: 4 * limit].decode("utf-8", "replace"), limit=limit)


def text(frame: RecordedFrame) -> str:
    """Return the whole text of a frame, JSON with indents, cut where it gets long."""
    raw = frame.raw.decode("utf-8", "replace")
    shown = raw if frame.value is UNSET or len(raw) > LONGEST_TEXT else _dumps(frame.value, indent=2)
    if len(shown) > LONGEST_TEXT:
        shown = f"{shown[:LONGEST_TEXT]}… ({len(shown) - LONGEST_TEXT:,} more characters)"
    return safe_text(shown)


def proof(verdict: Verdict) -> str:
    """Return the evidence of a verdict as plain text: what was expected, the scenario and the frames."""
    lines = [safe_line(verdict.evidence.expected, limit=2_000), f"scenario: {safe_line(verdict.scenario)}"]
    lines += [
        f"{time(frame)}  {direction(frame)}  {line(frame, limit=2_000)}" for frame in verdict.evidence.frames
    ]
    return "\n".join(lines)


def _id(id: Any) -> str:
    return "(no id)" if id is UNSET else f"(id {_dumps(id)})"


def _dumps(value: Any, **options: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, **options)
    except RecursionError:
        return "JSON that is nested too deeply to be shown"
