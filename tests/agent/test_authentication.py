"""Authentication, seen from the client: the ways in, the gate, logout and status."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from antiphon.agent import Agent, AgentOptions, AgentTurn
from antiphon.agent.logins import Login
from antiphon.client import connect
from antiphon.errors import AuthRequired, LocalError
from antiphon.schema import v2
from antiphon.transports.memory import memory_pair
from tests.agent.talk import INFO, Talk, client
from tests.requirements.marks import requirement

VERSIONS = [1, 2]
LOGIN = {1: "authenticate", 2: "auth/login"}
LOGOUT = {1: "logout", 2: "auth/logout"}
TERMINAL = {
    1: {"clientCapabilities": {"auth": {"terminal": True}}},
    2: {"capabilities": {"auth": {"terminal": {}}}},
}


class Gated:
    """An agent with a key, whose handlers keep what they saw."""

    def __init__(self, **options: Any) -> None:
        self.agent = Agent("gated", version="1", **options)
        self.logins: list[Login] = []
        self.logouts: list[Login | None] = []
        self.going_on = asyncio.Event()
        self.agent.on_prompt(self.work)
        self.agent.on_login("api-key", name="API key", description="From your account page")(self.log_in)
        self.agent.on_logout(self.log_out)

    async def work(self, turn: AgentTurn) -> None:
        await turn.say("begun")
        if turn.prompt.text == "wait":
            await self.going_on.wait()

    async def log_in(self, login: Login) -> None:
        self.logins.append(login)
        if login.meta.get("key") == "wrong":
            raise AuthRequired("this key is not known")
        if login.meta.get("key") == "broken":
            raise ValueError("secret details")
        if login.meta.get("key") == "slow":
            await self.going_on.wait()
        login.accounts = [v2.AuthAccount(label=str(login.meta.get("who", "me")))]

    async def log_out(self, login: Login | None) -> None:
        self.logouts.append(login)


async def failure(talk: Talk, id: Any, method: str, **params: Any) -> dict[str, Any]:
    talk.send(id=id, method=method, params=params)
    error: dict[str, Any] = (await talk.answer_to(id))["error"]
    return error


async def opening(agent: Agent, version: int, **initialize: Any) -> dict[str, Any]:
    async with client(agent, version, **initialize) as talk:
        result: dict[str, Any] = talk.seen[0]["result"]
        return result


# --- the ways in -----------------------------------------------------------------------------------


def console(agent: Agent) -> None:
    agent.terminal_login("console", name="In a terminal", args=["--login"], env={"MODE": "login"})


@requirement("AUTH-01", "AUTH-02", "AUTH-11", "AUTH-16")
async def test_a_v1_client_gets_the_methods_in_its_words() -> None:
    gated = Gated()
    console(gated.agent)
    result = await opening(gated.agent, 1, **TERMINAL[1])
    assert result["authMethods"] == [
        {"id": "api-key", "name": "API key", "description": "From your account page"},
        {
            "type": "terminal",
            "id": "console",
            "name": "In a terminal",
            "args": ["--login"],
            "env": {"MODE": "login"},
        },
    ]
    assert result["agentCapabilities"]["auth"] == {"logout": {}, "status": {}}


@requirement("AUTH-01", "AUTH-03", "AUTH-12")
async def test_a_v2_client_gets_them_in_its_own_and_no_marker_for_logout() -> None:
    gated = Gated()
    console(gated.agent)
    result = await opening(gated.agent, 2, **TERMINAL[2])
    assert result["authMethods"] == [
        {
            "type": "agent",
            "methodId": "api-key",
            "name": "API key",
            "description": "From your account page",
        },
        {
            "type": "terminal",
            "methodId": "console",
            "name": "In a terminal",
            "args": ["--login"],
            "env": [{"name": "MODE", "value": "login"}],
        },
    ]
    assert result["capabilities"]["auth"] == {"status": {}}


@requirement("AUTH-13")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_terminal_is_offered_only_to_who_has_one(version: int) -> None:
    gated = Gated()
    console(gated.agent)
    result = await opening(gated.agent, version)
    assert [method["name"] for method in result["authMethods"]] == ["API key"]


@requirement("AUTH-04")
async def test_a_type_of_ones_own_is_for_v2_and_begins_with_an_underscore() -> None:
    agent = Agent("custom")

    @agent.on_login("sso", name="Single sign-on", type="_sso")
    async def sign_on(login: Login) -> None: ...

    with pytest.raises(LocalError, match="begins with `_`"):
        agent.on_login("other", name="Other", type="sso")
    shown = {"type": "_sso", "methodId": "sso", "name": "Single sign-on"}
    async with client(agent) as talk:
        assert talk.seen[0]["result"]["authMethods"] == [shown]
        assert await talk.call(1, "auth/login", methodId="sso") == {}
        await talk.call(2, "session/new", cwd="/")
    assert "authMethods" not in await opening(agent, 1)


@requirement("AUTH-05")
def test_every_method_has_its_own_id() -> None:
    gated = Gated()
    with pytest.raises(LocalError, match="already"):
        gated.agent.on_login("api-key", name="Again")
    with pytest.raises(LocalError, match="already"):
        gated.agent.terminal_login("api-key", name="Again", args=["-l"])
    with pytest.raises(LocalError, match="needs an id"):
        gated.agent.on_login("", name="None")
    with pytest.raises(LocalError, match="one logout handler"):
        gated.agent.on_logout(gated.log_out)


# --- the gate --------------------------------------------------------------------------------------


@requirement("AUTH-18", "AUTH-20")
@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_is_done_before_the_login_nor_after_the_logout(version: int) -> None:
    gated = Gated()
    async with client(gated.agent, version) as talk:
        for number, method in enumerate(["new", "list", "resume", "fork", "status", "archive", "delete"]):
            error = await failure(
                talk, f"a{number}", f"session/{method}", cwd="/", sessionId="s", mcpServers=[]
            )
            assert error == {"code": -32000, "message": "Authentication required"}, method
        assert (await failure(talk, "q", "_antiphon/list_inject", sessionId="s"))["code"] == -32000
        assert await talk.call("close", "session/close", sessionId="nowhere") == {}

        assert await talk.call("in", LOGIN[version], methodId="api-key", _meta={"key": "right"}) == {}
        session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        assert gated.logins[0].meta == {"key": "right"}

        assert await talk.call("out", LOGOUT[version]) == {}
        assert gated.logouts == gated.logins
        talk.prompt("p", session, "hello")
        assert (await talk.answer_to("p"))["error"]["code"] == -32000
        assert (await failure(talk, "n2", "session/new", cwd="/", mcpServers=[]))["code"] == -32000

        await talk.call("in2", LOGIN[version], methodId="api-key")
        talk.prompt("p2", session, "hello")
        assert "result" in await talk.answer_to("p2")


@requirement("AUTH-21")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_turn_that_works_at_logout_goes_on_and_is_told(version: int) -> None:
    gated = Gated()
    async with client(gated.agent, version) as talk:
        await talk.call("in", LOGIN[version], methodId="api-key")
        session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        talk.prompt("p", session, "wait")
        await talk.update("agent_message" if version == 2 else "agent_message_chunk")
        await talk.call("out", LOGOUT[version])
        gated.going_on.set()
        if version == 1:
            assert (await talk.answer_to("p"))["result"] == {"stopReason": "end_turn"}
        else:
            await talk.update("state_update", state="idle", stopReason="end_turn")


@requirement("AUTH-19")
@pytest.mark.parametrize("version", VERSIONS)
async def test_without_a_way_in_nobody_is_told_to_log_in(version: int) -> None:
    plain = Agent("plain")
    async with client(plain, version) as talk:
        await talk.call(1, "session/new", cwd="/", mcpServers=[])
        for id, method in [(2, LOGIN[version]), (3, LOGOUT[version]), (4, "auth/status")]:
            assert (await failure(talk, id, method, methodId="any"))["code"] == -32601

    only_there = Agent("only there")
    console(only_there)
    async with client(only_there, version) as talk:  # it has no terminal, and is not let in all the same
        assert "authMethods" not in talk.seen[0]["result"]
        error = await failure(talk, 1, "session/new", cwd="/", mcpServers=[])
        assert (error["code"], "in a terminal" in error["message"]) == (-32603, True)


async def test_a_login_that_is_offered_and_not_required_keeps_nobody_out() -> None:
    gated = Gated(options=AgentOptions(login_required=False))
    async with client(gated.agent) as talk:
        await talk.call(1, "session/new", cwd="/")
        assert await talk.call(2, "auth/status") == {"state": "not_required"}


@requirement("AUTH-23")
async def test_who_has_logged_in_without_having_to_is_known() -> None:
    agent = Agent("open", options=AgentOptions(login_required=False))

    @agent.on_login("name", name="By name")
    async def log_in(login: Login) -> None:
        login.accounts = [v2.AuthAccount(label="Ann")]

    async with connect(agent) as known:
        await known.login("name")
        status = await known.auth_status()
        assert (status.state, [account.label for account in status.accounts]) == ("authenticated", ["Ann"])
        await known.logout()
        assert (await known.auth_status()).state == "not_required"


@requirement("AUTH-09", "AUTH-06", "AUTH-07")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_a_login_can_fail_with_and_that_it_lets_nobody_in(
    version: int,
) -> None:
    gated = Gated()
    console(gated.agent)
    async with client(gated.agent, version, **TERMINAL[version]) as talk:
        method = LOGIN[version]
        assert (await failure(talk, 1, method, methodId="nothing"))["code"] == -32602
        assert (await failure(talk, 2, method, methodId="console"))["code"] == -32602
        assert (await failure(talk, 3, method))["code"] == -32602
        assert await failure(talk, 4, method, methodId="api-key", _meta={"key": "wrong"}) == {
            "code": -32000,
            "message": "Authentication required: this key is not known",
        }
        broken = await failure(talk, 5, method, methodId="api-key", _meta={"key": "broken"})
        assert broken == {"code": -32603, "message": "Internal error"}
        assert (await failure(talk, 6, "session/new", cwd="/", mcpServers=[]))["code"] == -32000
        assert await talk.call(7, LOGOUT[version]) == {}  # nobody was in, which is no error
        assert gated.logouts == [None]


async def test_a_failed_login_does_not_end_the_one_before() -> None:
    gated = Gated()
    async with client(gated.agent) as talk:
        await talk.call(1, "auth/login", methodId="api-key")
        await failure(talk, 2, "auth/login", methodId="api-key", _meta={"key": "wrong"})
        await talk.call(3, "session/new", cwd="/")


async def test_a_login_that_is_cancelled_lets_nobody_in() -> None:
    gated = Gated()
    async with client(gated.agent) as talk:
        talk.send(id=1, method="auth/login", params={"methodId": "api-key", "_meta": {"key": "slow"}})
        talk.send(method="$/cancel_request", params={"requestId": 1})
        assert (await talk.answer_to(1))["error"]["code"] == -32800
        gated.going_on.set()
        assert (await failure(talk, 2, "session/new", cwd="/"))["code"] == -32000


@requirement("AUTH-20")
async def test_a_login_under_way_does_not_outlive_a_logout() -> None:
    gated = Gated()
    async with client(gated.agent) as talk:
        talk.send(id=1, method="auth/login", params={"methodId": "api-key", "_meta": {"key": "slow"}})
        await talk.call(2, "auth/logout")
        gated.going_on.set()
        assert (await talk.answer_to(1))["error"]["code"] == -32000
        assert (await failure(talk, 3, "session/new", cwd="/"))["code"] == -32000


async def test_every_connection_logs_in_for_itself() -> None:
    gated = Gated()
    async with client(gated.agent) as first, client(gated.agent) as second:
        await first.call(1, "auth/login", methodId="api-key")
        await first.call(2, "session/new", cwd="/")
        assert (await failure(second, 1, "session/new", cwd="/"))["code"] == -32000


async def test_logout_that_fails_leaves_the_connection_logged_in() -> None:
    agent = Agent("stuck")

    @agent.on_login("key", name="Key")
    async def log_in(login: Login) -> None: ...

    @agent.on_logout
    async def log_out(login: Login | None) -> None:
        raise RuntimeError("the keyring is locked")

    async with client(agent) as talk:
        await talk.call(1, "auth/login", methodId="key")
        assert (await failure(talk, 2, "auth/logout"))["code"] == -32603
        await talk.call(3, "session/new", cwd="/")


# --- the status ------------------------------------------------------------------------------------


@requirement("AUTH-23", "AUTH-25")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_status_is_told_when_asked_and_when_it_changes(version: int) -> None:
    gated = Gated()
    async with client(gated.agent, version) as talk:
        assert await talk.call(1, "auth/status") == {"state": "unauthenticated"}
        await talk.call(2, LOGIN[version], methodId="api-key", _meta={"who": "ann"})
        told = await talk.request("auth/status_update")
        assert told["params"] == {"state": "authenticated", "accounts": [{"label": "ann"}]}
        assert await talk.call(3, "auth/status") == told["params"]
        await talk.call(4, LOGIN[version], methodId="api-key", _meta={"who": "ann"})  # nothing new
        await talk.call(5, LOGIN[version], methodId="api-key", _meta={"who": "bob"})
        told = await talk.request("auth/status_update")
        assert told["params"]["accounts"] == [{"label": "bob"}]
        await talk.call(6, LOGOUT[version])
        told = await talk.request("auth/status_update")
        assert told["params"] == {"state": "unauthenticated"}
        assert talk.story().count("? auth/status_update") == 3


@requirement("AUTH-25")
async def test_who_never_asked_is_told_nothing() -> None:
    gated = Gated()
    async with client(gated.agent) as talk:
        await talk.call(1, "auth/login", methodId="api-key")
        await talk.call(2, "auth/logout")
        await talk.call(3, "session/close", sessionId="nowhere")
        assert "? auth/status_update" not in talk.story()


class Remembering:
    """An agent that finds the token which a terminal login left, as it was."""

    def __init__(self, token: str | None) -> None:
        self.agent = Agent("remembering")
        self.token = token
        self.asked = 0
        console(self.agent)
        self.agent.on_auth_status(self.status)
        self.agent.on_logout(self.forget)

    async def status(self, login: Login | None) -> v2.AuthStatusResponse | str:
        self.asked += 1
        if self.token == "broken":
            raise ValueError("secret details")
        if self.token == "expired":
            raise AuthRequired
        if self.token is None:
            return "unauthenticated"
        return v2.AuthStatusResponse(
            state=v2.AuthState.AUTHENTICATED, accounts=[v2.AuthAccount(label=self.token)]
        )

    async def forget(self, login: Login | None) -> None:
        """It does not: whatever a handler forgets to do, a logout counts."""


@requirement("AUTH-15", "AUTH-20")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_an_earlier_process_kept_lets_in_until_logout(version: int) -> None:
    remembering = Remembering("ann")
    async with client(remembering.agent, version, **TERMINAL[version]) as talk:
        await talk.call(1, "session/new", cwd="/", mcpServers=[])
        await talk.call(2, "session/new", cwd="/", mcpServers=[])
        assert remembering.asked == 1
        assert (await talk.call(3, "auth/status"))["accounts"] == [{"label": "ann"}]
        await talk.call(4, LOGOUT[version])
        assert (await talk.request("auth/status_update"))["params"] == {"state": "unauthenticated"}
        assert (await failure(talk, 5, "session/new", cwd="/", mcpServers=[]))["code"] == -32000
    async with client(remembering.agent, version) as talk:  # one without a terminal is let in, too
        await talk.call(1, "session/new", cwd="/", mcpServers=[])


@requirement("AUTH-23")
@pytest.mark.parametrize(
    ("token", "state"), [(None, "unauthenticated"), ("expired", "unauthenticated"), ("broken", "unknown")]
)
async def test_the_status_never_fails_and_changes_nothing(token: str | None, state: str) -> None:
    remembering = Remembering(token)
    async with client(remembering.agent, **TERMINAL[2]) as talk:
        assert await talk.call(1, "auth/status") == {"state": state}
        assert (await failure(talk, 2, "session/new", cwd="/"))["code"] == -32000
        remembering.token = "ann"
        assert (await talk.call(3, "auth/status"))["state"] == "authenticated"
        await talk.call(4, "session/new", cwd="/")


@requirement("AUTH-25")
async def test_what_changes_by_itself_is_told_and_closes_the_gate() -> None:
    remembering = Remembering("ann")
    async with client(remembering.agent, **TERMINAL[2]) as talk:
        await talk.call(1, "session/new", cwd="/")
        await talk.call(2, "auth/status")
        await remembering.agent.auth_changed()
        remembering.token = "expired"
        await remembering.agent.auth_changed()
        assert (await talk.request("auth/status_update"))["params"] == {"state": "unauthenticated"}
        assert talk.story().count("? auth/status_update") == 1
        assert (await failure(talk, 3, "session/new", cwd="/"))["code"] == -32000


# --- in a terminal ---------------------------------------------------------------------------------


@requirement("AUTH-17")
def test_the_agent_knows_the_login_it_was_started_for(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, runs = Agent("flows"), []

    @agent.terminal_login("console", name="Here", args=["--login", "now"])
    async def log_in() -> None:
        runs.append("login")

    monkeypatch.setattr(sys, "argv", ["agent", "--model", "x", "--login", "now"])
    with pytest.raises(SystemExit) as exited:
        agent.run()
    assert (exited.value.code, runs) == (0, ["login"])
    for arguments in (["--login"], []):
        monkeypatch.setattr(sys, "argv", ["agent", *arguments])
        with pytest.raises(LocalError, match="nowhere"):
            agent.run("nowhere")  # it serves, and does not log in
    assert runs == ["login"]
    with pytest.raises(LocalError, match="`args`"):
        agent.terminal_login("other", name="Other")(log_in)
    with pytest.raises(LocalError, match="list of strings"):
        agent.terminal_login("third", name="Third", args="--login")


async def test_a_second_initialize_does_not_log_out() -> None:
    gated = Gated()
    ours, theirs = memory_pair()
    talk = Talk(theirs)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(gated.agent.serve(ours))
        shape = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
        await talk.call(0, "initialize", **shape)
        await talk.call(1, "auth/login", methodId="api-key")
        talk.send(id=2, method="initialize", params=shape)
        await talk.answer_to(2)
        await talk.call(3, "session/new", cwd="/")
        await theirs.aclose()
        await serving


@requirement("AUTH-21")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_turn_may_find_that_the_login_has_expired(version: int) -> None:
    agent = Agent("expired")

    @agent.on_prompt
    async def work(turn: AgentTurn) -> None:
        raise AuthRequired("the token has expired")

    expected = {"code": -32000, "message": "Authentication required: the token has expired"}
    async with client(agent, version) as talk:
        session = (await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        talk.prompt("p", session, "hello")
        if version == 1:
            assert (await talk.answer_to("p"))["error"] == expected
        else:
            assert (await talk.update("state_update", state="idle", stopReason="error"))["error"] == expected
