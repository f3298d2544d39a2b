"""The report as JSON: every verdict with its evidence."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.report.expected_failures import Expected, stale_entries
from antiphon.conformance.verdicts import Outcome, Report, Verdict
from antiphon.text_safety import safe_json, safe_text
from antiphon.version import __version__


def to_json(report: Report, expected: Expected) -> bytes:
    """Return the report as one JSON object, with an entry for each requirement, version and scenario."""
    whole = {
        "antiphon": __version__,
        "party": report.party,
        "target": safe_text(report.target),
        "versions": list(report.versions),
        "revision": report.revision,
        "summary": {outcome.value: count for outcome, count in report.counts().items()},
        "faults": [safe_text(fault) for fault in report.faults],
        "staleExpectedFailures": stale_entries(report, expected),
        "verdicts": [_verdict(verdict, expected) for verdict in report.verdicts],
    }
    return safe_json(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()).encode() + b"\n"


def _verdict(verdict: Verdict, expected: Expected) -> dict[str, Any]:
    row = {
        "requirement": verdict.requirement.id,
        "verdict": verdict.outcome.value,
        "scenario": verdict.scenario,
        "version": verdict.version,
        "level": verdict.requirement.level,
        "text": verdict.requirement.text,
        "evidence": {
            "expected": safe_text(verdict.evidence.expected),
            "frames": [_frame(frame) for frame in verdict.evidence.frames],
        },
    }
    if verdict.outcome is Outcome.FAIL and verdict.requirement.id in expected:
        row["expectedFailure"] = expected[verdict.requirement.id]
    return row


def _frame(frame: RecordedFrame) -> dict[str, Any]:
    """Return a frame as in a recording: text, or Base64 if it is no UTF-8."""
    found: dict[str, Any] = {"at": round(frame.at, 6), "from": frame.sender.value}
    if frame.link:
        found["link"] = frame.link
    try:
        found["line"] = frame.raw.decode("utf-8")
    except UnicodeDecodeError:
        found["base64"] = base64.b64encode(frame.raw).decode("ascii")
    return found
