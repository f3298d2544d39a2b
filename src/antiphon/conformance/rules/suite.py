"""Every rule, for all parties."""

from __future__ import annotations

from antiphon.conformance.rules import (
    configuration,
    frames,
    messages,
    methods,
    questions,
    shapes,
    states,
    tool_calls,
    turn_complete,
    turns,
)

_MODULES = (
    frames, shapes, methods, turns, turn_complete, states, messages, tool_calls, questions, configuration,
)  # fmt: skip
RULES = [rule for module in _MODULES for rule in module.rules.all]
