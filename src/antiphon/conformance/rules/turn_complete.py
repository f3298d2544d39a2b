"""Rules about `turn_complete`, the proposed update that marks the end of a v1 turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.rule import Facts, Finding, Rules

rules = Rules()

TURN_COMPLETE = "turn_complete"
KEY = "turnComplete"


class PromptTurn(Struct, frozen=True):
    """One answered prompt of a v1 client, and the updates of its session until the client's next prompt."""

    prompt: RecordedFrame
    response: RecordedFrame
    updates: list[RecordedFrame]
    is_last_answer: bool
    """Whether the agent answered nothing after it, so that more of the turn may follow."""

    @property
    def completions(self) -> list[RecordedFrame]:
        """Those with its id, else those before the response: a hub sends those of other clients too."""
        all = [frame for frame in self.updates if frame.update_kind == TURN_COMPLETE]
        named = [frame for frame in all if frame.update.get("promptRequestId") == printed(self.prompt.id)]
        return named or [frame for frame in all if frame.index < self.response.index]

    @property
    def failed(self) -> bool:
        return self.response.error is not UNSET


def prompt_turns(recording: Recording) -> Iterator[PromptTurn]:
    """Yield the turns of prompts that do not overlap with another prompt of their session."""
    last_answer = max((frame.index for frame in recording.of(Role.AGENT) if frame.is_response), default=-1)
    by_session: dict[str, list[RecordedFrame]] = {}
    for frame in recording.of(Role.CLIENT):
        if frame.method == "session/prompt" and frame.is_request:
            session = frame.session_id if isinstance(frame.session_id, str) else ""
            by_session.setdefault(session, []).append(frame)
    found: list[PromptTurn] = []
    for prompts in by_session.values():
        ended = -1
        for place, prompt in enumerate(prompts):
            response = recording.response_to(prompt)
            if response is None:
                break  # it is open in all prompts that follow
            until = prompts[place + 1].index if place + 1 < len(prompts) else len(recording.frames)
            if ended < prompt.index and response.index < until:
                updates = [
                    frame for frame in recording.frames[prompt.index : until]
                    if frame.update and frame.session_id == prompt.session_id
                ]  # fmt: skip
                found.append(PromptTurn(prompt, response, updates, response.index == last_answer))
            ended = max(ended, response.index)
    yield from sorted(found, key=lambda turn: turn.prompt.index)


def advertised(facts: Facts) -> bool:
    sessions = facts.agent_capabilities.get("sessionCapabilities")
    return isinstance(sessions, dict) and isinstance(sessions.get(KEY), dict)


def asked_for(capabilities: Any) -> bool:
    """Whether a client asked for `turn_complete`, wherever in its capabilities."""
    if not isinstance(capabilities, dict):
        return False
    return bool(capabilities.get(KEY)) or any(asked_for(value) for value in capabilities.values())


def printed(id: Any) -> str:
    """Return a request id as `promptRequestId` has it."""
    return id if isinstance(id, str) else json.dumps(id)


@rules.add("TC-01", "TC-04", versions=(1,))
def names_its_prompt(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """`turn_complete` has the id of its prompt as a string, and a stop reason or how the turn failed."""
    for turn in prompt_turns(recording):
        for frame in turn.completions:
            id, reason = frame.update.get("promptRequestId"), frame.update.get("stopReason")
            frames = (turn.prompt, frame, turn.response)
            complete = id is not None and (
                isinstance(reason, str) or (turn.failed and "error" in frame.update)
            )
            yield Finding("TC-01", complete, "expected `promptRequestId` and `stopReason`", frames)
            if id is not None:
                wanted = printed(turn.prompt.id)
                expected = f"expected {wanted!r} as `promptRequestId`, got {id!r}"
                yield Finding("TC-04", id == wanted, expected, frames)


@rules.add("TC-02", versions=(1,))
def is_sent_once(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A turn has one `turn_complete`, if the agent advertises them."""
    for turn in prompt_turns(recording):
        found = turn.completions
        if turn.failed or (not found and (not advertised(facts) or turn.is_last_answer)):
            continue
        expected = f"expected one `turn_complete` for the turn of a prompt, got {len(found)}"
        yield Finding("TC-02", len(found) == 1, expected, (turn.prompt, *found, turn.response))


@rules.add("TC-03", versions=(1,))
def is_the_last_update(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """No update of the turn follows its `turn_complete`."""
    for turn in prompt_turns(recording):
        for complete in turn.completions[:1]:
            late = [
                frame for frame in turn.updates
                if frame.index > complete.index and is_of_turn(frame)
                and (frame.index < turn.response.index or complete.index > turn.response.index)
            ]  # fmt: skip
            expected = "expected all other updates of the turn before `turn_complete`"
            yield Finding("TC-03", not late, expected, (turn.prompt, complete, *late, turn.response))


def is_of_turn(frame: RecordedFrame) -> bool:
    """Whether an update is part of a turn; commands, modes, options and titles may change at any time."""
    kind = frame.update_kind or ""
    return kind.endswith("_chunk") or kind.startswith(("tool_call", "plan", "usage"))


@rules.add("TC-05", versions=(1,))
def is_advertised(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An agent that sends `turn_complete` advertises it."""
    for frame in recording.of(Role.AGENT):
        if frame.update_kind == TURN_COMPLETE:
            expected = "expected `sessionCapabilities.turnComplete` from an agent that sends `turn_complete`"
            yield Finding("TC-05", advertised(facts), expected, (*introduction(recording), frame))


@rules.add("TC-08", "TC-09", versions=(1,))
def agrees_with_the_response(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """`turn_complete` comes before the response, and has the same stop reason."""
    for turn in prompt_turns(recording):
        for complete in turn.completions[:1]:
            frames = (turn.prompt, complete, turn.response)
            reason = complete.update.get("stopReason")
            if turn.failed:
                # No text says how the end of a failed turn reads: these are the ways that name no other end.
                expected = "expected no stop reason in the `turn_complete` of a turn that ends with an error"
                yield Finding("TC-09", reason in (None, "_error"), expected, frames)
                continue
            before = complete.index < turn.response.index
            yield Finding("TC-08", before, "expected `turn_complete` before the response", frames)
            ended = turn.response.get("result", "stopReason")
            if isinstance(reason, str) and isinstance(ended, str):
                expected = f"expected {ended!r} as in the response, got {reason!r}"
                yield Finding("TC-09", reason == ended, expected, frames)


@rules.add("TC-10", versions=(1,))
def is_sent_to_those_who_asked(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Only a client that asked gets `turn_complete`, which v1 does not have."""
    for frame in recording.of(Role.AGENT):
        if frame.update_kind == TURN_COMPLETE:
            expected = "expected no `turn_complete` for a client that did not ask for it"
            frames = (*introduction(recording), frame)
            yield Finding("TC-10", asked_for(facts.client_capabilities), expected, frames)


def introduction(recording: Recording) -> Iterator[RecordedFrame]:
    """Yield the frames of `initialize`."""
    for request in recording.of(Role.CLIENT):
        if request.method == "initialize":
            yield request
            if (response := recording.response_to(request)) is not None:
                yield response
            return
