"""Readers take both spellings of the state and go on with the published one (SD-01..03)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.spelling import as_proposed, normalize
from antiphon.schema.wire import Unknown
from tests.bridge.wire import plain, read, update

USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}


def state(**fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "state_update", "state": "idle", **fields}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(stopReason="end_turn"), state(stopReason="end_turn")),
        (state(sessionUpdate="state_change", stop_reason="end_turn"), state(stopReason="end_turn")),
        (state(stop_reason="end_turn"), state(stopReason="end_turn")),
        (state(sessionUpdate="state_change", stopReason="end_turn"), state(stopReason="end_turn")),
        (state(stopReason="refusal", stop_reason="end_turn"), state(stopReason="refusal")),
        (
            state(sessionUpdate="state_change", stopReason="refusal", stop_reason="end_turn"),
            state(stopReason="refusal"),
        ),
        (state(sessionUpdate="state_change", usage=USAGE), state(usage=USAGE)),
        (state(sessionUpdate="state_change", usage={}), state()),
        (state(sessionUpdate="state_change", stop_reason=7), state()),
        (state(), state()),
        (
            state(sessionUpdate="state_change", state="_odd", stop_reason="x", more=1),
            state(state="_odd", stopReason="x", more=1),
        ),
        (state(state="_odd", stopReason="x", stop_reason="y"), state(state="_odd", stopReason="x")),
    ],
)
def test_sd_01_to_03_every_spelling_is_read(given: dict[str, Any], expected: dict[str, Any]) -> None:
    normalized = normalize(read(given), msgspec.json.encode(given))
    assert plain(normalized) == expected
    assert isinstance(normalized, Unknown) is (expected["state"] == "_odd")


def test_sd_01_without_the_bytes_the_name_is_still_normalized() -> None:
    change = update("state_change", state="idle", stop_reason="end_turn")
    assert plain(normalize(change)) == state(stopReason="end_turn")


def test_everything_else_is_left_alone() -> None:
    for other in (update("notice", severity="info", title="t"), update("_odd", stop_reason=1)):
        assert normalize(other) is other
        assert as_proposed(other) is None


def test_sd_01_what_is_written_as_proposed_reads_back_the_same() -> None:
    published = update(
        "state_update", state="idle", stopReason="end_turn", usage=USAGE, background=[], meta={"k": 1}
    )
    written = as_proposed(published)
    assert plain(written)["sessionUpdate"] == "state_change"
    assert normalize(read(plain(written))) == published
