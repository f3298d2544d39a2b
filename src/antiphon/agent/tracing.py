"""Trace context: the root keys of `_meta` that are handed on with whatever a prompt leads to."""

from __future__ import annotations

from typing import Any

TRACE = ("traceparent", "tracestate", "baggage", "requestId")
"""W3C trace context (EXT-05), and the id by which a client knows what belongs together (OBS-01)."""


def trace_of(meta: dict[str, Any]) -> dict[str, Any]:
    """Those of the keys that are there."""
    return {key: meta[key] for key in TRACE if key in meta}
