"""Scenarios about login methods, as far as they can be seen without logging in or out."""

from __future__ import annotations

from typing import Any

from antiphon.conformance.agent.case import AgentCase
from antiphon.conformance.agent.conversation import AUTH_REQUIRED, Conversation
from antiphon.conformance.link import METHOD_NOT_FOUND
from antiphon.conformance.scenario import Collection

scenarios = Collection("login", shares=True)

NO_SUCH_METHOD = "antiphon-judge-no-such-method"
STATES = ("authenticated", "unauthenticated", "not_required", "unknown")


def login_methods(agent: Conversation) -> list[Any]:
    """Return the login methods that the agent lists."""
    found = agent.initialized.get("authMethods")
    return found if isinstance(found, list) else []


def is_terminal(method: Any) -> bool:
    return isinstance(method, dict) and method.get("type") == "terminal"


def well_formed(method: Any, version: int) -> bool:
    """Whether a login method has the fields of its type. An unknown v2 type has any fields of its own."""
    if not isinstance(method, dict) or not isinstance(method.get("name"), str):
        return False
    if not isinstance(method.get("id" if version == 1 else "methodId"), str):
        return False
    if version == 2 and not isinstance(method.get("type"), str):
        return False
    if not is_terminal(method):
        return True
    args, env = method.get("args") or [], method.get("env")
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        return False
    if version == 1:
        return env is None or (
            isinstance(env, dict) and all(isinstance(value, str) for value in env.values())
        )
    if env is None:
        return True
    if not isinstance(env, list) or not all(isinstance(each, dict) for each in env):
        return False
    names = [each.get("name") for each in env]
    return len(set(map(str, names))) == len(names) and all(
        isinstance(each.get(key), str) for each in env for key in ("name", "value")
    )


@scenarios.add("AUTH-02", "AUTH-03", "AUTH-04", "AUTH-05", "AUTH-13", "AUTH-16")
async def login_methods_have_their_shape(case: AgentCase) -> None:
    """Login methods have their fields and different ids, and a terminal one is offered only on demand."""
    plain = await case.open()
    able = await case.open(auth={"terminal": True if case.version == 1 else {}})
    shape = "AUTH-02" if case.version == 1 else "AUTH-03"
    offered = bool(login_methods(plain) or login_methods(able))
    case.decide.applies(offered, "the agent has no login methods")
    case.decide.check(
        "AUTH-13", not any(map(is_terminal, login_methods(plain))),
        "expected no terminal login for a client that cannot run one", *plain.introduction,
    )  # fmt: skip
    for agent in (plain, able):
        methods, frames = login_methods(agent), agent.introduction
        case.decide.check(
            shape, all(well_formed(method, case.version) for method in methods),
            f"expected every login method to have the fields of v{case.version}", *frames,
        )  # fmt: skip
        ids = [
            method.get("id" if case.version == 1 else "methodId")
            for method in methods
            if isinstance(method, dict)
        ]
        case.decide.check(
            "AUTH-05",
            len(set(map(str, ids))) == len(ids),
            "expected login methods with different ids",
            *frames,
        )
        case.decide.check(
            "AUTH-16", not any("command" in method for method in methods if is_terminal(method)),
            "expected no `command` in a terminal login", *frames,
        )  # fmt: skip
        if case.version == 2:
            types = [str(method.get("type")) for method in methods if isinstance(method, dict)]
            case.decide.check(
                "AUTH-04",
                all(each in ("agent", "terminal", "None") or each.startswith("_") for each in types),
                "expected `agent`, `terminal` or a type that begins with `_`", *frames,
            )  # fmt: skip


@scenarios.add("AUTH-09", "AUTH-12", versions=(2,))
async def the_login_method_exists(case: AgentCase) -> None:
    """A v2 agent with login methods has `auth/login`, and no marker for logging out."""
    agent = await case.open()
    auth = agent.capabilities.get("auth")
    case.decide.check(
        "AUTH-12", not isinstance(auth, dict) or auth.get("logout") is None,
        "expected no marker for logging out in v2", *agent.introduction,
    )  # fmt: skip
    case.decide.applies(bool(login_methods(agent)), "the agent has no login methods")
    request, response = await agent.link.exchange("auth/login", {"methodId": NO_SUCH_METHOD})
    case.decide.check(
        "AUTH-09", response.error_code != METHOD_NOT_FOUND,
        "expected `auth/login` to exist, because the agent has login methods",
        *agent.introduction, request, response,
    )  # fmt: skip


@scenarios.add("AUTH-23")
async def the_login_status_can_always_be_read(case: AgentCase) -> None:
    """`auth/status` needs no login and has one of four states."""
    agent = await case.open()
    case.decide.applies(agent.offers("auth", "status"), "the agent does not advertise `auth.status`")
    request, response = await agent.link.exchange("auth/status")
    case.decide.check(
        "AUTH-23", response.error_code != AUTH_REQUIRED,
        "expected `auth/status` to work without a login", request, response,
    )  # fmt: skip
    if isinstance(response.result, dict):
        state = response.result.get("state")
        case.decide.check(
            "AUTH-23", state in STATES or str(state).startswith("_"),
            f"expected one of {', '.join(STATES)} as `state`, got {state!r}", request, response,
        )  # fmt: skip
