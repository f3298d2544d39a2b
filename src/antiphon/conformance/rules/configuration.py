"""Rules about config options, modes and commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.conformance.recording import RecordedFrame, Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.values import at, objects
from antiphon.conformance.shapes import glimpse

rules = Rules()
Option = dict[str, Any]


@rules.add("CONF-02", versions=(1,))
@rules.add("CONF-V2-04", versions=(2,))
def current_values_are_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The current value of a choice is one of its values; in v2 these are different and at least one."""
    id = "CONF-02" if facts.version == 1 else "CONF-V2-04"
    chosen = {
        (glimpse(frame.get("params", "configId")), glimpse(frame.get("params", "value")))
        for frame in recording.of(Role.CLIENT)
        if frame.method == "session/set_config_option"
    }
    for frame, options in _lists(recording):
        for option in options:
            values = _values(option)
            if option.get("type") != "select" or values is None:
                continue
            name = glimpse(option.get(_id_key(facts.version)))
            current = option.get("currentValue")
            text = f"expected the option {name} to have one of its values, got {glimpse(current)}"
            if (name, glimpse(current)) not in chosen:  # CONF-V2-02 is about values that a client sets
                yield Finding(id, glimpse(current) in values, text, (frame,))
            if facts.version == 2:
                text = f"expected different values of the option {name}"
                yield Finding(id, len(set(values)) == len(values), text, (frame,))


@rules.add("CONF-V1-06", versions=(1,))
def booleans_were_asked_for(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Boolean options are for v1 clients that have the capability."""
    asked = at(facts.client_capabilities, "session", "configOptions", "boolean") is not None
    for frame, listed in _lists(recording):
        ok = asked or not any(option.get("type") == "boolean" for option in listed)
        text = "expected no boolean option: the client has no `session.configOptions.boolean`"
        yield Finding("CONF-V1-06", ok, text, (frame,))


@rules.add("CONF-01")
def answers_list_every_option(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The answer to a change lists all options: the changed one, and if nothing changed all of before."""
    before: dict[Any, list[Option]] = {}
    key = _id_key(facts.version)
    lists = {frame.index: options for frame, options in _lists(recording)}
    answers = {answer.index: request for request, answer in exchanges_of(recording, Role.CLIENT).answered()}
    for frame in recording.of(Role.AGENT):
        options = lists.get(frame.index)
        request = answers.get(frame.index)
        if options is None:
            continue
        session = frame.session_id if request is None else _session_of(request, frame)
        if request is not None and request.method == "session/set_config_option":
            now = {glimpse(option.get(key)) for option in options}
            missing = {glimpse(request.get("params", "configId"))} - now
            if _changes_nothing(request, before.get(session, []), key):
                missing |= {glimpse(option.get(key)) for option in before.get(session, [])} - now
            text = f"expected all options in the answer, without {', '.join(sorted(missing))} it has not"
            yield Finding("CONF-01", not missing, text, (request, frame))
        before[session] = options


@rules.add("CMD-V2-01", versions=(2,))
def commands_have_plain_names(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The name of a v2 command has no slash before it and no whitespace, and is unique."""
    for frame in recording.of(Role.AGENT):
        for holder in (frame.update, frame.result):
            commands = holder.get("availableCommands") if isinstance(holder, dict) else None
            if not isinstance(commands, list):
                continue
            names = [each["name"] for each in objects(commands) if isinstance(each.get("name"), str)]
            wrong = [name for name in names if name.startswith("/") or not name or len(name.split()) != 1]
            text = f"expected command names without `/` and whitespace, got {glimpse(wrong)}"
            yield Finding("CMD-V2-01", not wrong, text, (frame,))
            text = f"expected different command names, got {glimpse(names)}"
            yield Finding("CMD-V2-01", len(set(names)) == len(names), text, (frame,))


@rules.add("CONF-V1-02", versions=(1,), parties=(Role.CLIENT,))
def modes_are_listed(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client sets one of the modes that the agent listed."""
    listed: dict[Any, list[str]] = {}
    for request, answer in exchanges_of(recording, Role.CLIENT).answered():
        modes = answer.get("result", "modes", "availableModes")
        session = _session_of(request, answer)
        if isinstance(modes, list):
            listed[session] = [glimpse(mode.get("id")) for mode in objects(modes)]
        if request.method == "session/set_mode" and session in listed:
            id = glimpse(request.get("params", "modeId"))
            ok = id in listed[session]
            yield Finding("CONF-V1-02", ok, f"expected a listed mode, got {id}", (request,))


def _lists(recording: Recording) -> Iterator[tuple[RecordedFrame, list[Option]]]:
    """Yield every list of config options that the agent sent."""
    for frame in recording.of(Role.AGENT):
        for holder in (frame.update, frame.result):
            options = holder.get("configOptions") if isinstance(holder, dict) else None
            if isinstance(options, list):
                yield frame, objects(options)


def _values(option: Option) -> list[str] | None:
    """Return the values of a choice, of all its groups; `None` if they cannot be read."""
    options = option.get("options")
    if not isinstance(options, list) or not all(isinstance(each, dict) for each in options):
        return None
    values: list[str] = []
    for each in options:
        members = each["options"] if isinstance(each.get("options"), list) else [each]
        values += [glimpse(member.get("value")) for member in objects(members)]
    return values


def _changes_nothing(request: RecordedFrame, before: list[Option], key: str) -> bool:
    """Whether a request sets an option to the value that it has."""
    id, value = request.get("params", "configId"), request.get("params", "value")
    return any(option.get(key) == id and option.get("currentValue") == value for option in before)


def _session_of(request: RecordedFrame, answer: RecordedFrame) -> Any:
    session = request.session_id
    return session if isinstance(session, str) else glimpse(answer.get("result", "sessionId")).strip('`"')


def _id_key(version: int) -> str:
    return "id" if version == 1 else "configId"
