"""Scenarios about the modes and options of a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import Conversation
from antiphon.conformance.agent.sessions import offers
from antiphon.conformance.link import METHOD_NOT_FOUND
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("configuration", shares=True)

INVALID_PARAMS = -32602
UNKNOWN = "antiphon-judge-unknown"


class Options:
    """The options of a session, as an answer or an update lists them."""

    def __init__(self, listed: Any, version: int) -> None:
        self.key = "id" if version == 1 else "configId"
        entries = listed if isinstance(listed, list) else []
        self.all: list[dict[str, Any]] = [entry for entry in entries if isinstance(entry, dict)]

    @property
    def ids(self) -> list[Any]:
        return [option.get(self.key) for option in self.all]

    def get(self, id: Any) -> dict[str, Any]:
        """Return an option; empty if there is none."""
        return next((option for option in self.all if option.get(self.key) == id), {})

    @property
    def select(self) -> dict[str, Any] | None:
        """The first option that is a choice between values."""
        return next(
            (option for option in self.all if option.get("type") == "select" and values(option)), None
        )

    @property
    def mode(self) -> dict[str, Any] | None:
        """The option that has the modes."""
        return next((option for option in self.all if option.get("category") == "mode"), None)


def values(option: dict[str, Any]) -> list[Any]:
    """Return the values of a select, in groups or not."""
    found: list[Any] = []
    for entry in option.get("options") or []:
        if isinstance(entry, dict):
            nested = entry.get("options")
            found += [each.get("value") for each in nested or [] if isinstance(each, dict)]
            found += [entry["value"]] if "value" in entry else []
    return found


def select_fault(option: dict[str, Any]) -> str:
    """Return what is wrong with a v2 select; empty if nothing is."""
    entries = option.get("options")
    if not isinstance(entries, list) or not entries:
        return "it has no options"
    grouped = [isinstance(entry, dict) and "options" in entry for entry in entries]
    if any(grouped) and not all(grouped):
        return "it has groups and single options"
    if any(grouped) and not all(isinstance(entry["options"], list) and entry["options"] for entry in entries):
        return "a group has no options"
    offered = values(option)
    if len(set(map(str, offered))) != len(offered):
        return "two options have the same value"
    return "" if option.get("currentValue") in offered else "the current value is not among the options"


def set_option(agent: Conversation, session: str, option: Any, value: Any, **params: Any) -> RecordedFrame:
    """Ask for another value of an option. v2 requires its type."""
    kind: dict[str, Any] = {}
    if agent.version == 2 or isinstance(value, bool):
        kind = {"type": "boolean" if isinstance(value, bool) else "id"}
    return agent.link.request(
        "session/set_config_option",
        {"sessionId": session, "configId": option, "value": value, **kind, **params},
    )


@scenarios.add("CONF-02", "CONF-V1-04", "CONF-V1-06", "CONF-V2-01", "CONF-V2-04", "CONF-V2-06")
async def options_have_their_shape(case: AgentCase) -> None:
    """Every option of a new session has a value that works, and modes and options agree."""
    agent = await case.open()
    created = await agent.created_session()
    check = case.decide.check
    if agent.version == 2:
        check("CONF-V2-06", "modes" not in created.result, "expected no `modes` in v2", created)
    listed = created.result.get("configOptions")
    options = Options(listed, agent.version)
    case.decide.applies(bool(listed), "the session has no options")
    working = all(
        option.get("currentValue") is not None
        and (agent.version == 2 or option.get("type") != "select" or option["currentValue"] in values(option))
        for option in options.all
    )
    check("CONF-02", working, "expected every option to have a current value that it offers", created)
    selects = [option for option in options.all if option.get("type") == "select"]
    if agent.version == 2:
        named = all(isinstance(id, str) and id for id in options.ids)
        check("CONF-V2-01", named, "expected every option to have a `configId`", created)
        faults = [fault for option in selects if (fault := select_fault(option))]
        expected = "expected every select to have different values and the current one among them"
        check("CONF-V2-04", not faults, expected + (f"; {faults[0]}" if faults else ""), created)
        return
    check(
        "CONF-V1-06", not any(option.get("type") == "boolean" for option in options.all),
        "expected no boolean option for a client that does not advertise them", created,
    )  # fmt: skip
    mode = created.get("result", "modes", "currentModeId")
    if options.mode is None or mode is UNSET:
        case.decide.not_applicable("CONF-V1-04", "the session has either modes or a mode option, not both")
        return
    check(
        "CONF-V1-04", options.mode.get("currentValue") == mode,
        "expected the mode option to have the current mode as its value", created,
    )  # fmt: skip


@scenarios.add("CONF-01", "CONF-V2-03")
async def setting_an_option_returns_all_of_them(case: AgentCase) -> None:
    """The answer to `session/set_config_option` has the complete list."""
    agent = await case.open()
    created = await agent.created_session()
    session = created.result["sessionId"]
    options = Options(created.result.get("configOptions"), agent.version)
    option = options.select or {}
    case.decide.applies(bool(option), "the session has no option to choose")
    id, current = option.get(options.key), option.get("currentValue")
    request = set_option(agent, session, id, current)  # another value may add or remove options
    response = await agent.link.response(request)
    if agent.version == 2:
        case.decide.check(
            "CONF-V2-03", response.error_code != METHOD_NOT_FOUND,
            "expected `session/set_config_option` to exist, because the session has options",
            created, request, response,
        )  # fmt: skip
    case.decide.need(response.error is UNSET, "the option could not be set to the value that it has")
    answered = Options(response.get("result", "configOptions"), agent.version)
    case.decide.check(
        "CONF-01", set(map(str, options.ids)) <= set(map(str, answered.ids)),
        "expected the complete list of options in the answer", created, request, response,
    )  # fmt: skip
    other = next((value for value in values(option) if value != current), None)
    if other is not None:
        request = set_option(agent, session, id, other)
        response = await agent.link.response(request)
        case.decide.need(response.error is UNSET, "the option could not be set to another value")
        answered = Options(response.get("result", "configOptions"), agent.version)
        case.decide.check(
            "CONF-01", answered.get(id).get("currentValue") != current,
            "expected the list in the answer to have the new value", request, response,
        )  # fmt: skip
        await agent.link.response(set_option(agent, session, id, current))


@scenarios.add("CONF-V2-02", versions=(2,))
async def wrong_values_are_rejected(case: AgentCase) -> None:
    """A v2 agent rejects unknown options and values, and changes nothing."""
    agent = await case.open()
    created = await agent.created_session()
    session, options = created.result["sessionId"], Options(created.result.get("configOptions"), 2)
    option = options.select or {}
    case.decide.applies(bool(option), "the session has no option to choose")
    id, current = option["configId"], option.get("currentValue")
    wrong = {
        "an unknown option": set_option(agent, session, UNKNOWN, current),
        "a value that is not offered": set_option(agent, session, id, UNKNOWN),
        "a boolean for a choice": set_option(agent, session, id, True),
    }
    for name, request in wrong.items():
        response = await agent.link.response(request)
        case.decide.need(response.error_code != METHOD_NOT_FOUND, f"`{request.method}` does not exist")
        case.decide.check(
            "CONF-V2-02", response.error_code == INVALID_PARAMS,
            f"expected {INVALID_PARAMS} for {name}", request, response,
        )  # fmt: skip
    for other in options.all:
        if other.get("type") == "select" and other is not option:
            request = set_option(agent, session, other["configId"], other.get("currentValue"))
            response = await agent.link.response(request)
            answered = Options(response.get("result", "configOptions"), 2)
            if answered.get(id):
                case.decide.check(
                    "CONF-V2-02", answered.get(id).get("currentValue") == current,
                    "expected a rejected value to change nothing", *wrong.values(), request, response,
                )  # fmt: skip
            return


@scenarios.add("CONF-V1-04", versions=(1,))
async def modes_and_options_stay_equal(case: AgentCase) -> None:
    """A v1 mode that is set shows in the mode option, and the other way round."""
    agent = await case.open()
    created = await agent.created_session()
    session, options = created.result["sessionId"], Options(created.result.get("configOptions"), 1)
    offered = created.get("result", "modes", "availableModes")
    modes = (
        [mode.get("id") for mode in offered if isinstance(mode, dict)] if isinstance(offered, list) else []
    )
    if options.mode is None or not modes:
        case.decide.not_applicable("CONF-V1-04", "the session has either modes or a mode option, not both")
        return
    current = created.get("result", "modes", "currentModeId")
    other = next((mode for mode in modes if mode != current and mode in values(options.mode)), None)
    case.decide.need(other is not None, "the session has no second mode that the mode option has too")
    changes = (
        (agent.link.request, ("session/set_mode", {"sessionId": session, "modeId": other}), other),
        (set_option, (agent, session, options.mode.get("id"), current), current),
    )
    for send, arguments, mode in changes:
        request = send(*arguments)
        response = await agent.link.response(request)
        case.decide.need(response.error is UNSET, f"`{request.method}` was refused")
        await agent.link.barrier()
        for frame, shown in shown_modes(agent.updates(session, after=request), options.mode.get("id")):
            case.decide.check(
                "CONF-V1-04", shown == mode, "expected the mode and the mode option to change together",
                request, response, frame,
            )  # fmt: skip
        if offers(agent, "resume"):
            resume = agent.resume(session)
            answer = await agent.link.response(resume)
            both = Options(answer.get("result", "configOptions"), 1).get(options.mode.get("id"))
            if both and answer.get("result", "modes", "currentModeId") is not UNSET:
                case.decide.check(
                    "CONF-V1-04",
                    both.get("currentValue") == mode == answer.get("result", "modes", "currentModeId"),
                    "expected the mode and the mode option to be equal after one was set",
                    request, response, resume, answer,
                )  # fmt: skip


def shown_modes(updates: list[RecordedFrame], option: Any) -> Iterator[tuple[RecordedFrame, Any]]:
    """Yield the updates that show the mode, in either way, with the mode."""
    for frame in updates:
        if frame.update_kind == "current_mode_update":
            yield frame, frame.update.get("currentModeId", frame.update.get("modeId"))
        elif frame.update_kind == "config_option_update":
            yield frame, Options(frame.update.get("configOptions"), 1).get(option).get("currentValue")


@scenarios.add("CONF-V2-06", versions=(2,))
async def v2_has_no_modes(case: AgentCase) -> None:
    """The method `session/set_mode` does not exist in v2."""
    agent, session = await case.open_session()
    request = agent.link.request("session/set_mode", {"sessionId": session, "modeId": UNKNOWN})
    response = await agent.link.response(request)
    case.decide.check(
        "CONF-V2-06",
        response.error is not UNSET,
        "expected `session/set_mode` not to exist",
        request,
        response,
    )
