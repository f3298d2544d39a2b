"""Logging in from a client: by the agent's means and in a terminal, and what is refused before it is sent."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, AgentTurn
from antiphon.agent.logins import Login
from antiphon.client import ProcessOptions, connect
from antiphon.errors import AuthRequired, CallFailed, LocalError, LoginFailed
from antiphon.schema import v2
from antiphon.schema.wire import Unknown
from tests.requirements.agent_by_hand import ALL_V1, ALL_V2, DEADLINE, opened, opening, session, unopened
from tests.requirements.marks import requirement

VERSIONS = [1, 2]
SCRIPT = str(Path(__file__).with_name("terminal_login_agent.py"))


def gated() -> Agent:
    agent = Agent("gated")

    @agent.on_login("api-key", name="API key", description="A key")
    async def log_in(login: Login) -> None:
        if login.meta.get("key") == "wrong":
            raise AuthRequired("this key is not known")
        login.accounts = [v2.AuthAccount(label="ann", email="ann@example.org")]

    @agent.on_prompt
    async def answer(turn: AgentTurn) -> None:
        await turn.say("in")

    return agent


@requirement("AUTH-06", "AUTH-07", "AUTH-22")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_logs_in_when_it_has_to(version: int) -> None:
    async with asyncio.timeout(DEADLINE), connect(gated(), version=version) as client:
        method = v2.AuthMethodId("api-key")
        assert client.auth_methods == [
            v2.AuthMethodAgent(method_id=method, name="API key", description="A key")
        ]
        with pytest.raises(CallFailed) as failed:
            await client.new_session("/")
        assert failed.value.needs_login
        with pytest.raises(CallFailed) as failed:
            await client.login("api-key", meta={"key": "wrong"})
        assert failed.value.needs_login
        await client.login("api-key")
        opened = await client.new_session("/")
        await (await opened.prompt("hello")).drained()
        assert [message.text for message in opened.messages] == ["hello", "in"]


@requirement("AUTH-22")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_that_is_open_at_logout_goes_on_after_the_next_login(version: int) -> None:
    async with asyncio.timeout(DEADLINE), connect(gated(), version=version) as client:
        await client.login("api-key")
        opened = await client.new_session("/")
        await client.logout()
        if version == 2:
            with pytest.raises(CallFailed) as failed:
                await opened.prompt("too late")
            assert failed.value.needs_login
        else:  # v1 answers a prompt at the end of its turn
            end = await (await opened.prompt("too late")).drained()
            assert end.error is not None
            assert end.error.code == v2.ErrorCode.AUTH_REQUIRED
        await client.login("api-key")
        end = await (await opened.prompt("now")).drained()
        assert end.stop_reason == "end_turn"


@requirement("AUTH-23", "AUTH-24")
@pytest.mark.parametrize("version", VERSIONS)
async def test_who_one_is_is_asked_and_told(version: int) -> None:
    told: list[v2.AuthStatusResponse] = []
    heard = asyncio.Event()
    async with asyncio.timeout(DEADLINE), connect(gated(), version=version) as client:

        def on_status(status: v2.AuthStatusResponse) -> None:
            told.append(status)
            heard.set()

        client.on_auth_status = on_status
        assert (await client.auth_status()).state == "unauthenticated"
        await client.login("api-key")
        await heard.wait()
        assert told == [await client.auth_status()]
        assert told[0].state == "authenticated"
        assert told[0].accounts[0].email == "ann@example.org"


# --- what an agent answers -------------------------------------------------------------------------


METHODS: dict[int, list[dict[str, Any]]] = {
    1: [
        {"id": "key", "name": "Key"},
        {"id": "console", "name": "Console", "type": "terminal", "args": ["-l"], "env": {"A": "b"}},
    ],
    2: [
        {"methodId": "key", "name": "Key", "type": "agent"},
        {
            "methodId": "console",
            "name": "Console",
            "type": "terminal",
            "args": ["-l"],
            "env": [{"name": "A", "value": "b"}],
        },
        {"methodId": "odd", "name": "Odd", "type": "_odd", "extra": [1]},
    ],
}


@requirement("AUTH-04")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_methods_read_alike_in_both_versions_and_unknown_ones_are_kept(
    version: int,
) -> None:
    async with opened(answer=opening(version, authMethods=METHODS[version])) as (client, _):
        terminal = v2.AuthMethodTerminal(
            method_id=v2.AuthMethodId("console"),
            name="Console",
            args=["-l"],
            env=[v2.EnvVariable(name="A", value="b")],
        )
        key = v2.AuthMethodAgent(method_id=v2.AuthMethodId("key"), name="Key")
        assert client.auth_methods[:2] == [key, terminal]
        if version == 2:
            assert client.auth_methods[2] == Unknown(METHODS[2][2])


@requirement("AUTH-06", "AUTH-07", "AUTH-08")
@pytest.mark.parametrize("version", VERSIONS)
async def test_login_is_asked_for_in_the_words_of_the_version(version: int) -> None:
    async with opened(answer=opening(version, authMethods=METHODS[version])) as (client, agent):
        for method_id in ("console", "nothing"):
            with pytest.raises(LocalError):
                await client.login(method_id)
        logging_in = agent.meanwhile(client.login("key"))
        request = await agent.request("authenticate" if version == 1 else "auth/login")
        assert request["params"] == {"methodId": "key"}
        agent.answer(request, {})
        await logging_in
        if version == 2:
            logging_in = agent.meanwhile(client.login("odd"))
            agent.answer(await agent.request("auth/login"), {})
            await logging_in
        assert set(agent.methods()) == {request["method"]}


@requirement("AUTH-10", "AUTH-11")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_not_offered_is_not_asked_for(version: int) -> None:
    async with opened(version) as (client, agent):
        for work in (client.login("key"), client.logout(), client.auth_status()):
            with pytest.raises(LocalError):
                await work
        with pytest.raises(LocalError):
            await client.login_in_terminal("key")
        assert agent.methods() == []
    if version == 1:  # AUTH-11: a v1 agent with methods may have no logout
        async with opened(answer=opening(1, authMethods=METHODS[1])) as (client, agent):
            with pytest.raises(LocalError):
                await client.logout()


@requirement("AUTH-09", "AUTH-11")
@pytest.mark.parametrize("version", VERSIONS)
async def test_logout_is_asked_for_where_it_is_offered(version: int) -> None:
    able = {**ALL_V1, "auth": {"logout": {}}} if version == 1 else ALL_V2
    async with opened(answer=opening(version, able, authMethods=METHODS[version])) as (client, agent):
        logging_out = agent.meanwhile(client.logout())
        request = await agent.request("logout" if version == 1 else "auth/logout")
        assert request["params"] == {}
        agent.answer(request, {})
        await logging_out


@requirement("AUTH-24")
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_state_is_unknown_and_accounts_are_never_logged(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    able = {**(ALL_V1 if version == 1 else ALL_V2), "auth": {"status": {}}}
    async with session(version, able) as (opened_session, agent):
        client = opened_session.client
        told: list[Any] = []
        client.on_auth_status = told.append
        asking = agent.meanwhile(client.auth_status())
        accounts = [{"label": "hidden@example.org", "active": "yes"}, {"name": "no label"}]
        agent.answer(await agent.request("auth/status"), {"state": "_half", "accounts": accounts})
        status = await asking
        assert status.state is v2.AuthState.UNKNOWN
        assert [account.label for account in status.accounts] == ["hidden@example.org"]
        agent.send(method="auth/status_update", params={"state": "new", "accounts": accounts})
        agent.send(method="auth/status_update", params={"accounts": accounts})
        await agent.settled(opened_session)
        assert [one.state for one in told] == [v2.AuthState.UNKNOWN]
        assert "hidden@example.org" not in caplog.text


# --- in a terminal ---------------------------------------------------------------------------------


@requirement("AUTH-13", "AUTH-14")
@pytest.mark.parametrize("version", [None, 1, 2])
async def test_a_terminal_is_advertised_only_where_it_was_said(version: int | None) -> None:
    for said in (False, True):
        async with unopened(version=version, terminal_login=said) as (client, agent):
            agent.initializing(client)
            params = (await agent.request("initialize"))["params"]
            assert params["clientCapabilities"].get("auth") == ({"terminal": True} if said else None)
            if version != 1:
                assert params["capabilities"].get("auth") == ({"terminal": {}} if said else None)


@requirement("AUTH-14")
async def test_only_a_command_can_be_started_again() -> None:
    for target in (gated(), "ws://127.0.0.1:1/acp"):
        with pytest.raises(LocalError, match="needs a command"):
            async with connect(target, process=ProcessOptions(terminal_login=True)):
                pass
    answer = opening(2, authMethods=METHODS[2])
    async with opened(answer=answer) as (client, _):  # offered without being asked for
        with pytest.raises(LocalError, match="needs an agent"):
            await client.login_in_terminal("console")
        with pytest.raises(LocalError, match="needs no terminal"):
            await client.login_in_terminal("key")


@requirement("AUTH-15", "AUTH-17")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_same_program_logs_in_and_the_client_begins_anew(version: int, tmp_path: Path) -> None:
    token = tmp_path / "token"
    env = {"TOKEN_FILE": str(token), "BASE": "kept", "HOW": "badly"}
    command = [sys.executable, SCRIPT, "--verbose"]
    async with (
        asyncio.timeout(2 * DEADLINE),
        connect(
            command, version=version, process=ProcessOptions(env=env, cwd=tmp_path, terminal_login=True)
        ) as client,
    ):
        with pytest.raises(CallFailed) as failed:
            await client.new_session("/")
        assert failed.value.needs_login
        token.with_suffix(".refuse").touch()
        with pytest.raises(LoginFailed):
            await client.login_in_terminal("console")
        assert client.lost is None  # it goes on as it was
        token.with_suffix(".refuse").unlink()
        new = await client.login_in_terminal("console")
        assert token.read_text() == f"--verbose --login now {tmp_path}"
        assert client.lost is not None
        assert new.agreement == client.agreement
        opened_session = await new.new_session("/")
        end = await (await opened_session.prompt("hello")).drained()
        assert end.stop_reason == "end_turn"
        again = await new.login_in_terminal("console")  # as often as it takes
        await again.new_session("/")


@requirement("AUTH-15")
async def test_a_login_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    token = tmp_path / "token"
    pipe = token.with_suffix(".pid")
    os.mkfifo(pipe)
    env = {"TOKEN_FILE": str(token), "BASE": "kept"}
    async with (
        asyncio.timeout(DEADLINE),
        connect([sys.executable, SCRIPT], process=ProcessOptions(env=env, terminal_login=True)) as client,
    ):
        login = asyncio.ensure_future(client.login_in_terminal("console"))
        pid = int(await asyncio.to_thread(pipe.read_text))
        login.cancel()
        with pytest.raises(asyncio.CancelledError):
            await login
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert client.lost is None
