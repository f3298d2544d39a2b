"""Rules about shapes: params, results and updates fit the types of the pinned schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.shape_requirements import shape_table
from antiphon.conformance.rules.values import at
from antiphon.conformance.shapes import Fault, Problem, keys_of, shapes
from antiphon.schema.methods import Kind, Method, Sender, find

rules = Rules()


def shapes_fit(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Every object of the judged side fits the type that the schema has for it."""
    asked = exchanges_of(recording, facts.judged.other)
    answers = {response.index: request for request, response in asked.answered()}
    passed: set[str] = set()
    for frame in recording.of(facts.judged):
        if frame.method is not None:
            method = method_of(frame, facts.version)
            if method is not None and method.sender in (Sender.EITHER, str(facts.judged)):
                params = {} if frame.params in (UNSET, None) else frame.params
                yield from _findings(facts, method, method.params, params, (frame,), passed)
        elif frame.index in answers and frame.result is not UNSET:
            request = answers[frame.index]
            method = method_of(request, facts.version)
            if method is not None and method.result is not None:
                result = {} if _may_be_null(frame.result, method, facts) else frame.result
                yield from _findings(facts, method, method.result, result, (request, frame), passed)


for party in Role:
    ids = shape_table(1, party).ids | shape_table(2, party).ids
    rules.add(*sorted(ids), parties=(party,))(shapes_fit)


def method_of(frame: RecordedFrame, version: int) -> Method | None:
    """Return the published method of a frame; `None` for extensions and undefined methods."""
    name = frame.method or ""
    kind = Kind.REQUEST if frame.is_request else Kind.NOTIFICATION
    return None if name.startswith("_") else find(kind, name, version)


def _may_be_null(result: Any, method: Method, facts: Facts) -> bool:
    """In v1, `null` may stand for an object without required fields (C-20)."""
    return result is None and facts.version == 1 and method.name != "initialize"


def _findings(
    facts: Facts,
    method: Method,
    type: Any,
    value: Any,
    frames: tuple[RecordedFrame, ...],
    passed: set[str],
) -> Iterator[Finding]:
    """Yield what is wrong with params or a result, and what is right unless it is in `passed`."""
    if method.name == "initialize" and not _is_of_this_version(value, facts):
        return
    table, shape = shape_table(facts.version, facts.judged), shapes(facts.version)
    problems = shape.problems(type, value, path="params" if len(frames) == 1 else "result")
    for id in table.kept_by(frozenset(shape.seen)) - passed:
        passed.add(id)
        yield Finding(id, True, f"expected `{method.name}` to fit its type in the schema")
    for problem in problems:
        if _is_agreed(problem, method, facts):
            continue
        broken = table.broken_by(problem, tagged=shape.tagged, revision=facts.revision)
        if broken is not None:
            yield Finding(broken, False, f"{problem.text} of `{method.name}`", frames)


def _is_of_this_version(value: Any, facts: Facts) -> bool:
    """A client asks in the shape of the version it asks for, which may not be the one that is agreed on."""
    asked = value.get("protocolVersion") if isinstance(value, dict) else None
    return asked == facts.version


def _is_agreed(problem: Problem, method: Method, facts: Facts) -> bool:
    """Whether both sides may have agreed on something that no schema has."""
    if method.name == "initialize" and problem.fault is Fault.UNKNOWN_KEY:
        # Who speaks both versions sends the shapes of both.
        other = find(Kind.REQUEST, "initialize", 3 - facts.version)
        return other is not None and problem.key in keys_of(other.params) | keys_of(other.result)
    if problem.fault is Fault.UNKNOWN_VARIANT and problem.value == "turn_complete":
        return True  # the rules about it say where it may be sent
    # Extensions of the draft are announced under `_meta`: what they add cannot be judged.
    extended = at(facts.client_capabilities, "_meta", "antiphon") is not None
    return extended and problem.fault in (Fault.UNKNOWN_VARIANT, Fault.SNAKE_CASE, Fault.UNKNOWN_KEY)
