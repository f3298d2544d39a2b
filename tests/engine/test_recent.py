"""What is remembered is bounded."""

from __future__ import annotations

from antiphon.engine.recent import Recent


def test_only_what_was_noted_last_is_remembered() -> None:
    recent: Recent[str, int] = Recent(2)
    recent["a"], recent["b"] = 1, 2
    recent["a"] = 3
    recent["c"] = 4
    assert recent == {"a": 3, "c": 4}
    recent.pop("a")
    recent["d"] = 5
    assert list(recent) == ["c", "d"]
