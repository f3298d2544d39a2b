"""Agents for the tests of `antiphon check`: the good one with a difference each."""

from __future__ import annotations

from typing import Any

from tests.conformance.good.agent import GoodAgent


class StopsStrangely(GoodAgent):
    """Its v1 stop reason is none that the protocol has: PROMPT-V1-05."""

    def answer_prompt(self, prompt: Any, reason: str) -> None:
        strange = "tired \x1b[31m" if reason == "end_turn" else reason
        self.answer(prompt.request_id, {"stopReason": strange})


class Mute(GoodAgent):
    """It answers nothing, not even `initialize`."""

    def receive_line(self, line: bytes) -> None:
        pass
