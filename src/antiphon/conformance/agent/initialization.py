"""Scenarios about `initialize`: the choice of the version, and what may come before and after it."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import UNSET

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import AUTH_REQUIRED, INFO, initialize_params
from antiphon.conformance.link import METHOD_NOT_FOUND, Link, NotSeen
from antiphon.conformance.recording import RecordedFrame
from antiphon.conformance.scenario import Collection

scenarios = Collection("initialization")

INVALID_REQUEST = -32600
UNSUPPORTED_VERSION = -32022
NO_SUCH_VERSION = 65535
NO_SUCH_SESSION = "antiphon-judge-no-such-session"
ALL_CAPABILITIES: dict[int, dict[str, Any]] = {
    1: {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "auth": {"terminal": True},
        "elicitation": {"form": {}, "url": {}},
        "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    },
    2: {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}},
}


async def initialize(link: Link, version: int, **changes: Any) -> tuple[RecordedFrame, RecordedFrame]:
    """Ask for a version, in its own shape or in both if it has none. Return the request and the response."""
    params = initialize_params(version, {})
    if version not in (1, 2):
        params |= initialize_params(2, {}) | {"protocolVersion": version}
    request = link.request("initialize", params | changes)
    return request, await link.response(request)


def number(response: RecordedFrame) -> Any:
    """Return the version number of a response; `UNSET` if it is an error or has none."""
    return response.get("result", "protocolVersion")


@scenarios.add("INIT-02", "INIT-03", "INIT-04", "INIT-08", "RPC-24")
async def the_version_is_negotiated(case: AgentCase) -> None:
    """The agent answers the versions 0, 1, 2 and 65535 with one that it supports."""
    decide = case.decide
    versions = (0, 1, 2, NO_SUCH_VERSION)
    links = [await case.link() for _ in versions]  # they start side by side
    pairs = zip(links, versions, strict=True)
    answers = await asyncio.gather(*(initialize(link, version) for link, version in pairs))
    asked = dict(zip(versions, answers, strict=True))
    for version in (0, NO_SUCH_VERSION):
        decide.check(
            "INIT-04", number(asked[version][1]) != version,
            f"expected another version than {version}, which does not exist", *asked[version],
        )  # fmt: skip
    required = "INIT-02" if case.version == 1 else "INIT-03"
    highest = number(asked[NO_SUCH_VERSION][1])
    decide.check(
        required, isinstance(highest, int),
        "expected the latest version of the agent for a higher one, not an error", *asked[NO_SUCH_VERSION],
    )  # fmt: skip
    if highest in (1, 2):
        decide.check(
            required, number(asked[highest][1]) == highest,
            f"expected {highest}, which the agent chose for a higher version, when it is asked for",
            *asked[NO_SUCH_VERSION], *asked[highest],
        )  # fmt: skip
    if case.version == 1:
        response = asked[1][1]
        v2_only = number(response) == 2 and response.get("result", "info") is not UNSET
        decide.check(
            "INIT-02", number(response) == 1 or v2_only or response.error_code == UNSUPPORTED_VERSION,
            "expected version 1 when it is asked for", *asked[1],
        )  # fmt: skip
        return
    decide.check(
        "INIT-08", number(asked[1][1]) == 1, "expected an agent that speaks v2 to serve v1 too", *asked[1]
    )
    for version in (0, 1):
        chosen, code = number(asked[version][1]), asked[version][1].error_code
        decide.check(
            "INIT-03", (isinstance(chosen, int) and chosen <= version) or code == UNSUPPORTED_VERSION,
            f"expected a version that is not above {version}, or the error {UNSUPPORTED_VERSION}",
            *asked[version], since="version-refusal",
        )  # fmt: skip
        if code == UNSUPPORTED_VERSION:
            data = asked[version][1].get("error", "data")
            supported = data.get("supported") if isinstance(data, dict) else None
            decide.check(
                "RPC-24",
                isinstance(supported, list)
                and all(type(each) is int for each in supported)
                and data.get("requested") == version,
                f"expected `data` with `requested: {version}` and the versions as `supported`",
                *asked[version], since="version-refusal",
            )  # fmt: skip


@scenarios.add("INIT-24", "INIT-25", versions=(2,))
async def nothing_works_before_initialize(case: AgentCase) -> None:
    """Before `initialize` a request is refused, a notification is ignored, and the connection stays."""
    link = await case.link()
    early = link.notify("session/cancel", {"sessionId": NO_SUCH_SESSION})
    request, response = await initialize(link, 2)
    seen = link.since(early)
    case.decide.check(
        "INIT-25", seen == [response] and response.error is UNSET,
        "expected a notification before `initialize` to be ignored", early, *seen,
    )  # fmt: skip
    link = await case.link()
    early, refusal = await link.exchange("session/new", {"cwd": case.cwd})
    case.decide.check(
        "INIT-24", refusal.error_code == INVALID_REQUEST,
        f"expected {INVALID_REQUEST} for a request before `initialize`", early, refusal,
    )  # fmt: skip
    request, response = await initialize(link, 2)
    case.decide.check(
        "INIT-24", response.error is UNSET,
        "expected `initialize` to succeed after an early request was refused",
        early, refusal, request, response,
    )  # fmt: skip


@scenarios.add("INIT-09", "INIT-28", versions=(2,))
async def what_cannot_be_read_is_left_out(case: AgentCase) -> None:
    """Capabilities of another shape are read as none, and a request for a later version may lack `info`."""
    frames = await initialize(await case.link(), 2, capabilities="all of them")
    case.decide.check(
        "INIT-28", frames[1].error is UNSET, "expected malformed `capabilities` to be read as none", *frames
    )
    link = await case.link()
    request = link.request("initialize", {"protocolVersion": NO_SUCH_VERSION, "capabilities": []})
    response = await link.response(request)
    case.decide.check(
        "INIT-09", response.error is UNSET,
        "expected an answer to a later version whose params the agent cannot read", request, response,
    )  # fmt: skip


@scenarios.add("INIT-15")
async def every_combination_of_capabilities_works(case: AgentCase) -> None:
    """A client without any capability and one with all of them can make a session."""
    outcomes: list[tuple[bool, list[RecordedFrame]]] = []
    for capabilities in ({}, ALL_CAPABILITIES[case.version]):
        link = await case.link()
        params = initialize_params(case.version, {}) | {
            "capabilities" if case.version == 2 else "clientCapabilities": capabilities
        }
        request = link.request("initialize", params)
        frames = [request, await link.response(request)]
        if frames[-1].error is UNSET:
            request = link.request("session/new", {"cwd": case.cwd, "mcpServers": []})
            frames += [request, await link.response(request)]
        outcomes.append((frames[-1].error is UNSET, frames))
    case.decide.need(any(ok for ok, _ in outcomes), "no client could make a session")
    for ok, frames in outcomes:
        case.decide.check(
            "INIT-15", ok, "expected the agent to work with these capabilities as with others", *frames
        )


@scenarios.add("INIT-19", "INIT-20", shares=True)
async def the_baseline_methods_exist(case: AgentCase) -> None:
    """The methods that every agent has are there."""
    agent = await case.open()
    unknown = {"sessionId": NO_SUCH_SESSION}
    calls: dict[str, dict[str, Any]] = {
        "session/new": agent.setup(),
        "session/prompt": {**unknown, "prompt": [{"type": "text", "text": case.prompts.plain}]},
    }
    required = "INIT-20"
    if agent.version == 2:
        required = "INIT-19"
        if not agent.offers("session"):
            request, refusal = await agent.link.exchange("session/new", calls["session/new"])
            expected = "expected no session methods from an agent that does not advertise `session`"
            case.decide.check(required, refusal.error is not UNSET, expected, request, refusal)
            return
        calls |= {
            "session/list": {},
            "session/resume": {**unknown, **agent.setup()},
            "session/close": unknown,
        }
    for method, params in calls.items():
        request, response = await agent.link.exchange(method, params)
        expected = f"expected `{method}` to exist, because every agent with sessions has it"
        case.decide.check(required, response.error_code != METHOD_NOT_FOUND, expected, request, response)


@scenarios.add("INIT-11", "INIT-12", versions=(1,), shares=True)
async def a_v1_agent_introduces_itself(case: AgentCase) -> None:
    """The result of a v1 `initialize` has its fields in their shape."""
    agent = await case.open()
    result, frames = agent.initialized, agent.introduction
    shapes: dict[str, type] = {"agentCapabilities": dict, "authMethods": list, "agentInfo": dict}
    wrong = [key for key, shape in shapes.items() if not isinstance(result.get(key, shape()), shape | None)]
    case.decide.check(
        "INIT-11", type(result.get("protocolVersion")) is int and not wrong,
        "expected `protocolVersion` as an integer, `agentCapabilities` and `agentInfo` as objects, and "
        "`authMethods` as an array", *frames,
    )  # fmt: skip
    case.decide.check(
        "INIT-12",
        bool(result.get("agentInfo")),
        "expected `agentInfo` in the result of `initialize`",
        *frames,
    )


@scenarios.add("INIT-13", versions=(2,))
async def a_v2_agent_introduces_itself(case: AgentCase) -> None:
    """The result of a v2 `initialize` has the name and the version of the agent."""
    request, response = await initialize(await case.link(), 2)
    result = response.result
    if number(response) != 2 or "agentCapabilities" in result or "agentInfo" in result:
        raise NotSeen("the agent did not agree on version 2")
    info = result.get("info")
    case.decide.check(
        "INIT-13",
        isinstance(info, dict) and all(isinstance(info.get(key), str) and info[key] for key in INFO),
        "expected `info` with a `name` and a `version` that are not empty", request, response,
    )  # fmt: skip


@scenarios.add("AUTH-19", shares=True)
async def no_login_is_asked_for_without_a_way_to_log_in(case: AgentCase) -> None:
    """An agent without login methods does not require a login."""
    agent = await case.open()
    case.decide.applies(not agent.initialized.get("authMethods"), "the agent has login methods")
    request, response = await agent.link.exchange("session/new", agent.setup())
    case.decide.check(
        "AUTH-19", response.error_code != AUTH_REQUIRED,
        f"expected no {AUTH_REQUIRED} from an agent that advertises no `authMethods`",
        *agent.introduction, request, response,
    )  # fmt: skip
