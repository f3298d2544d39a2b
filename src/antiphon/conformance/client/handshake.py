"""Scenarios about how a client opens a connection: version, session, login."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import SESSION, PlayedAgent, constant, plain_initialize_result
from antiphon.conformance.link import Link, NotSeen
from antiphon.conformance.recording import RecordedFrame, Role
from antiphon.conformance.scenario import Collection

scenarios = Collection("opening")

AUTH_REQUIRED = -32000
NO_SUCH_VERSION = 9999
EVERYTHING = {
    "session": {
        "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
    },
    "_meta": {"antiphon.judge": {}},
}
"""The capabilities of a v2 agent that can do all of it."""
LOGINS = ("authenticate", "auth/login")


@scenarios.add("INIT-01", "SESS-04", "PROMPT-V1-01", "PROMPT-V2-01")
async def initialize_session_prompt(case: ClientCase) -> None:
    """A client begins with `initialize`, makes a session, and sends its prompt to that session."""
    agent = await case.open()
    first = next(agent.link.recording.of(Role.CLIENT))
    version = first.get("params", "protocolVersion")
    case.decide.check(
        "INIT-01", first.method == "initialize" and type(version) is int and 0 <= version <= 65535,
        "expected the first frame to be `initialize` with `protocolVersion`, a number from 0 to 65535", first,
    )  # fmt: skip
    new = await agent.asked("session/new")
    cwd = new.get("params", "cwd")
    case.decide.check(
        "SESS-04", isinstance(cwd, str) and is_absolute(cwd),
        f"expected `cwd` of `session/new` to be an absolute path, got {cwd!r}", new,
    )  # fmt: skip
    prompt = await agent.prompt()
    session, blocks = prompt.session_id, prompt.get("params", "prompt")
    case.decide.check(
        f"PROMPT-V{case.version}-01", session == SESSION and isinstance(blocks, list) and len(blocks) > 0,
        f"expected a prompt for the session {SESSION!r} with at least one content block, "
        f"got the session {session!r} and the prompt {blocks!r}", new, prompt,
    )  # fmt: skip
    agent.accept(prompt)
    await agent.complete(prompt)


@scenarios.add("INIT-06")
async def version_that_the_client_does_not_speak(case: ClientCase) -> None:
    """A client gives up the connection when the agent chooses a version that the client does not speak."""
    result = {**plain_initialize_result(case.version), "protocolVersion": NO_SUCH_VERSION}
    agent = await case.open({"initialize": constant(result)})
    answer = _answer_to_initialize(agent)
    went_on = await _next_request(agent, "session/new")
    expected = f"expected the client to close the connection after version {NO_SUCH_VERSION}"
    if went_on is not None:
        case.decide.check("INIT-06", False, f"{expected}; it sent `session/new`", answer, went_on)
    else:
        case.decide.check("INIT-06", agent.link.ended, f"{expected}; it kept it open", answer)


@scenarios.add("INIT-15")
async def unusual_capabilities(case: ClientCase) -> None:
    """A client works with a v1 agent that advertises nothing, and a v2 agent that advertises everything."""
    case.decide.need(case.manner.prompts, "the client sends no prompt by itself")
    result: dict[str, Any] = {"protocolVersion": 1}
    if case.version == 2:
        result = {**plain_initialize_result(2), "capabilities": EVERYTHING}
    agent = await case.open({"initialize": constant(result)})
    prompt = await _next_request(agent, "session/prompt")
    case.decide.check(
        "INIT-15", prompt is not None,
        "expected the client to make a session and to prompt an agent with these capabilities",
        _answer_to_initialize(agent),
    )  # fmt: skip
    if prompt is not None:
        await _finish_if_prompted(agent)


@scenarios.add("AUTH-06", "AUTH-07", "AUTH-08")
async def login_with_an_offered_method(case: ClientCase) -> None:
    """A client that logs in uses the method of its version, and an id that the agent offered."""
    id_key = "methodId" if case.version == 2 else "id"
    offered: dict[str, Any] = {id_key: "judge-login", "name": "Judge"}
    if case.version == 2:
        offered["type"] = "agent"
    result = {**plain_initialize_result(case.version), "authMethods": [offered]}
    logged_in = False

    def log_in(link: Link, request: RecordedFrame) -> None:
        nonlocal logged_in
        logged_in = True
        link.answer(request, {})

    def new_session(link: Link, request: RecordedFrame) -> None:
        if logged_in:
            link.answer(request, {"sessionId": SESSION})
        else:
            _require_login(link, request)

    agent = await case.open(
        {"initialize": constant(result), "session/new": new_session, **dict.fromkeys(LOGINS, log_in)}
    )
    login = await agent.link.wait(lambda frame: frame.method in LOGINS, "a login")
    method = "auth/login" if case.version == 2 else "authenticate"
    case.decide.check(
        "AUTH-07" if case.version == 2 else "AUTH-06",
        login.method == method and isinstance(login.get("params", "methodId"), str),
        f"expected a login with `{method}` and a `methodId`", login,
    )  # fmt: skip
    id = login.get("params", "methodId")
    case.decide.check(
        "AUTH-08", id == "judge-login",
        f"expected a login with the offered method 'judge-login', got {id!r}",
        _answer_to_initialize(agent), login,
    )  # fmt: skip
    await _finish_if_prompted(agent)


@scenarios.add("AUTH-10", versions=(2,))
async def no_login_is_offered(case: ClientCase) -> None:
    """A client does not log in if the agent offers no method, even if a session is refused."""
    agent = await case.open({"session/new": _require_login})
    new = await agent.asked("session/new")
    login = await _next_request(agent, *LOGINS)
    case.decide.need(
        login is not None or agent.link.ended, "the client keeps the connection without a session"
    )
    frames = (new,) if login is None else (new, login)
    case.decide.check(
        "AUTH-10", login is None, "expected no login, because the agent offers no method", *frames
    )


@scenarios.add("INIT-28", versions=(2,))
async def unreadable_auth_methods(case: ClientCase) -> None:
    """A client skips login methods that it cannot read, and goes on."""
    methods = [7, {"type": "_judge"}, {"type": "agent", "methodId": "judge-login", "name": "Judge"}]
    result = {**plain_initialize_result(2), "authMethods": methods}
    agent = await case.open({"initialize": constant(result), "auth/login": constant({})})
    case.decide.need(case.manner.prompts, "the client sends no prompt by itself")
    new = await _next_request(agent, "session/new")
    case.decide.check(
        "INIT-28", new is not None,
        "expected the client to skip the login methods that it cannot read, and to make a session",
        _answer_to_initialize(agent),
    )  # fmt: skip
    await _finish_if_prompted(agent)


async def _next_request(agent: PlayedAgent, *methods: str) -> RecordedFrame | None:
    """Wait for a request of the client; `None` if the connection ends or nothing comes within the timeout."""
    try:
        return await agent.link.wait(lambda frame: frame.method in methods, methods[0])
    except NotSeen:
        return None


async def _finish_if_prompted(agent: PlayedAgent) -> None:
    prompt = await agent.prompt()
    agent.accept(prompt)
    await agent.complete(prompt)


def _require_login(link: Link, request: RecordedFrame) -> None:
    link.refuse(request, AUTH_REQUIRED, "Authentication required")


def _answer_to_initialize(agent: PlayedAgent) -> RecordedFrame:
    return next(agent.link.recording.of(Role.AGENT))


def is_absolute(path: str) -> bool:
    """Whether a path is absolute on some system: the agent may run on another one than the judge."""
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
