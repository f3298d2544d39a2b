"""Rules about turns: the order of updates and responses, and how a turn ends."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.conformance.recording import Recording, Role
from antiphon.conformance.rules.rule import Facts, Finding, Rules

rules = Rules()
STOP_REASONS_V1 = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")


@rules.add("PROMPT-V1-05", versions=(1,))
def stop_reason_is_known(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The stop reason of a v1 response is one of five."""
    for prompt in recording.of(Role.CLIENT):
        answer = recording.response_to(prompt) if prompt.method == "session/prompt" else None
        if answer is not None and isinstance(answer.result, dict) and "stopReason" in answer.result:
            reason = answer.result["stopReason"]
            expected = f"expected one of {', '.join(STOP_REASONS_V1)} as `stopReason`, got {reason!r}"
            yield Finding("PROMPT-V1-05", reason in STOP_REASONS_V1, expected, (prompt, answer))
