"""Rules about messages: their ids, and what is not echoed."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.sessions import steps
from antiphon.conformance.rules.values import objects
from antiphon.conformance.shapes import glimpse

rules = Rules()
CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")


@rules.add("MSG-07", versions=(1,))
def ids_name_one_message(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A v1 message id belongs to one message: never to messages of two kinds."""
    known: dict[tuple[str, str], RecordedFrame] = {}
    for step in steps(recording):
        if not step.update:
            known = {key: value for key, value in known.items() if key[0] != step.session}
            continue
        id = step.update.get("messageId")
        if step.kind in CHUNKS and isinstance(id, str):
            first = known.setdefault((step.session, id), step.frame)
            text = f"expected the message id {glimpse(id)} for one message, got it for one of another kind"
            yield Finding("MSG-07", first.update_kind == step.kind, text, (first, step.frame))


@rules.add("PROMPT-V2-08", versions=(2,))
def prompts_get_different_ids(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Every v2 prompt of a session becomes a message of its own."""
    known: dict[tuple[str, str], RecordedFrame] = {}
    for request, answer in exchanges_of(recording, Role.CLIENT).answered("session/prompt"):
        id, session = answer.get("result", "messageId"), request.session_id
        if isinstance(id, str) and isinstance(session, str):
            first = known.setdefault((session, id), answer)
            text = f"expected different message ids of two prompts, got {glimpse(id)} twice"
            yield Finding("PROMPT-V2-08", first is answer, text, (first, request, answer))


@rules.add("PROMPT-V1-22", versions=(1,))
def prompts_are_not_echoed(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A v1 agent does not send the user's own prompt back during its turn."""
    for exchange in exchanges_of(recording, Role.CLIENT).all:
        prompt, end = exchange.request, exchange.response
        if prompt.method != "session/prompt" or end is None:
            continue
        turn = recording.frames[prompt.index : end.index]
        if any(frame.method == "session/load" for frame in turn):
            continue
        texts = [block.get("text") for block in objects(prompt.get("params", "prompt"))]
        for frame in turn:
            if frame.session_id == prompt.session_id and frame.update_kind == "user_message_chunk":
                text = frame.get("params", "update", "content", "text")
                ok = not (isinstance(text, str) and text in texts)
                expected = "expected no `user_message_chunk` with the prompt's own text during its turn"
                yield Finding("PROMPT-V1-22", ok, expected, (prompt, frame))
        yield Finding("PROMPT-V1-22", True, "expected no echo of the prompt")
