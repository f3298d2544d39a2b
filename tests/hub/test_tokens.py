"""Tokens, links, cookies and tickets: what lets somebody in, once or for a time, and what does not."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from antiphon.errors import LocalError
from antiphon.hub.access.audit import Audit
from antiphon.hub.access.limits import HubLimits, Rate
from antiphon.hub.access.tickets import Tickets
from antiphon.hub.access.tokens import OWNER, Tokens, create_token, read_tokens, revoke_token
from antiphon.server.method import Role
from tests import warm
from tests.hub.doors import DEADLINE, Doors, doors, refused
from tests.hub.running import served

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    '{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":{}}}'
)

# --- the file -----------------------------------------------------------------------------------------


def test_a_token_is_kept_as_a_hash_and_ends_in_time(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.json", time.time()
    secret = create_token(path, "ann", Role.OBSERVER, sessions=["s1"], seconds=60)
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret not in path.read_text()
    clock = [now]
    tokens = Tokens("own", path, clock=lambda: clock[0])
    found = tokens.find(secret)
    assert found is not None
    assert (found.name, found.role, found.sessions) == ("ann", "observer", {"s1"})
    assert tokens.find("own") == OWNER
    assert tokens.find("") is tokens.find(secret[:-1]) is tokens.find(path.read_text()) is None
    clock[0] += 61
    assert tokens.find(secret) is None
    assert not tokens.is_valid(found)


def test_a_revoked_token_is_void_at_once_and_its_name_is_free(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    tokens = Tokens("own", path)
    first = create_token(path, "bob", Role.CONTROLLER)
    grant = tokens.find(first)
    assert grant is not None
    with pytest.raises(LocalError, match="already"):
        create_token(path, "bob", Role.OWNER)
    revoke_token(path, "bob")
    second = create_token(path, "bob", Role.CONTROLLER)
    assert tokens.find(first) is None
    assert not tokens.is_valid(grant)  # one of the same name, but another
    assert tokens.find(second) is not None
    with pytest.raises(LocalError, match="no token"):
        revoke_token(path, "eve")
    for name in ("", "owner", "a\nb", "x" * 65):
        with pytest.raises(LocalError, match="cannot name"):
            create_token(path, name, Role.OWNER)


@pytest.mark.parametrize("harm", ["readable", "torn", "strange", "folder"])
def test_a_file_that_cannot_be_trusted_lets_nobody_in(harm: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    tokens = Tokens("own", path)
    secret = create_token(path, "ann", Role.OWNER)
    grant = tokens.find(secret)
    assert grant is not None
    if harm == "readable":
        path.chmod(0o644)
    elif harm == "torn":
        path.write_bytes(path.read_bytes()[:-3])
    elif harm == "strange":
        path.write_text('[{"name":"ann","hash":"","role":"god","id":"","created":0}]')
    else:
        path.unlink()
        path.mkdir(mode=0o600)
    assert tokens.find(secret) is tokens.find("own") is None
    assert not tokens.is_valid(grant)
    with pytest.raises(LocalError):
        read_tokens(path)


def test_processes_that_make_tokens_at_once_lose_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon", "token", "create"]
    running = [
        subprocess.Popen(
            [*command, f"n{number}", "--data", str(tmp_path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    assert [process.wait(DEADLINE) for process in running] == [0] * 4
    assert {token.name for token in read_tokens(tmp_path / "tokens.json")} == {"n0", "n1", "n2", "n3"}


def test_tickets_are_good_once_and_not_for_long() -> None:
    clock = [0.0]
    tickets: Tickets[str] = Tickets(60, clock=lambda: clock[0])
    first, late = tickets.issue("a"), tickets.issue("b")
    assert (tickets.redeem(first), tickets.redeem(first), tickets.redeem("")) == ("a", None, None)
    clock[0] = 60
    assert tickets.redeem(late) is None
    many = [tickets.issue("c") for _ in range(1001)]
    assert tickets.redeem(many[0]) is None
    assert tickets.redeem(many[-1]) == "c"


def test_a_rate_is_for_each_by_itself_and_comes_back() -> None:
    clock = [0.0]
    rate = Rate(60, clock=lambda: clock[0])
    assert [rate.take("a") for _ in range(61)] == [True] * 60 + [False]
    assert rate.take("b")
    clock[0] = 1.0
    assert (rate.take("a"), rate.take("a")) == (True, False)


def test_the_audit_log_turns_over_and_is_private(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl", size=1000)
    for number in range(100):
        audit.note("prompt", "allowed", session=f"s{number}", long="x" * 1000)
    audit.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["audit.jsonl", *(f"audit.jsonl.{n}" for n in (1, 2, 3))]
    assert all(file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size <= 1000 for file in files)


# --- over sockets -------------------------------------------------------------------------------------


@asynccontextmanager
async def knock(door: Doors, token: str | None, **how: Any) -> AsyncIterator[ClientConnection]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with connect(door.address, additional_headers={**headers, **how.pop("headers", {})}, **how) as ws:
        yield ws


async def status(door: Doors, token: str | None, **how: Any) -> tuple[int, bytes]:
    try:
        async with knock(door, token, **how):
            return 101, b""
    except InvalidStatus as error:
        return error.response.status_code, bytes(error.response.body or b"")


async def test_whatever_is_wrong_with_a_token_reads_the_same(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        expired = door.token("late", "owner", seconds=-1)
        revoked = door.token("gone", "owner")
        revoke_token(door.tokens, "gone")
        answers = [
            await status(door, token) for token in (None, "wrong", expired, revoked, "", f"{door.hub.token}x")
        ]
        assert set(answers) == {(401, b"A token is needed: Authorization: Bearer TOKEN\n")}
        assert len(door.audit(act="connect", outcome="refused", status=401)) == 6
        assert (await status(door, door.hub.token))[0] == 101
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{door.hub.port}") as http:
            for method in ("GET", "POST", "DELETE", "PUT"):
                assert (await http.request(method, "/acp")).status_code == 401
            assert (await http.get("/nowhere")).status_code == 401
            query = await http.get(f"/acp?token={door.hub.token}&access_token={door.hub.token}")
            assert query.status_code == 401  # an address ends up in logs


@pytest.mark.parametrize("why", ["revoked", "expired", "file"])
async def test_who_is_in_with_a_token_that_ends_is_sent_away(why: str, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        token = door.token("ann", "controller", seconds=2 if why == "expired" else None)
        async with knock(door, token) as ws, door.talk() as owner:
            await ws.send(INITIALIZE)
            await ws.recv()
            if why == "revoked":
                revoke_token(door.tokens, "ann")
            elif why == "file":
                door.tokens.unlink()
            with pytest.raises(ConnectionClosed) as closed:
                await ws.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
            assert door.audit(act="disconnect", outcome="cut", token="ann")
            await owner.call("l", "session/list")  # the others go on
        assert (await status(door, token))[0] == 401


async def test_a_revoked_token_ends_its_connection_over_http(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        tokens = {name: door.token(name, "controller") for name in ("ann", "bob")}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{door.hub.port}") as http:
            ann, bob = ({"Authorization": f"Bearer {tokens[name]}"} for name in ("ann", "bob"))
            kind = {"Content-Type": "application/json"}
            begun = await http.post("/acp", content=INITIALIZE, headers={**ann, **kind})
            at = {"Acp-Connection-Id": begun.headers["Acp-Connection-Id"], "Accept": "text/event-stream"}
            # HTTP-22: the id of a connection is no key to it.
            assert (await http.get("/acp", headers={**bob, **at})).status_code == 404
            assert (await http.delete("/acp", headers={**bob, **at})).status_code == 404
            async with http.stream("GET", "/acp", headers={**ann, **at}, timeout=DEADLINE) as stream:
                assert stream.status_code == 200
                revoke_token(door.tokens, "ann")
                assert [line async for line in stream.aiter_lines() if line.startswith("data")] == []
            assert (await http.get("/acp", headers={**ann, **at})).status_code == 401


# --- pages --------------------------------------------------------------------------------------------


@asynccontextmanager
async def browser(door: Doors) -> AsyncIterator[httpx.AsyncClient]:
    """A page of the hub itself."""
    own = f"http://127.0.0.1:{door.hub.port}"
    async with httpx.AsyncClient(base_url=own, headers={"Origin": own}) as http:
        yield http


def code_of(door: Doors) -> dict[str, str]:
    return {"code": door.hub.login_link("http://127.0.0.1/").partition("#login=")[2]}


async def ticket_of(door: Doors) -> str:
    """The ticket of a browser of the owner."""
    async with browser(door) as page:
        assert (await page.post("/login", json=code_of(door))).status_code == 200
        return str((await page.post("/ticket")).json()["ticket"])


async def test_a_page_gets_in_by_link_cookie_and_ticket_each_as_it_should(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, browser(door) as page:
        shown = await page.get("/")
        assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
        code = code_of(door)
        answer = await page.post("/login", json=code)
        assert answer.status_code == 200
        cookie = answer.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert (await page.post("/login", json=code)).status_code == 401  # a link is good once
        ticket = (await page.post("/ticket")).json()["ticket"]
        offered: Any = ["acp.v2", f"acp-ticket.{ticket}"]
        async with knock(door, None, subprotocols=offered, origin=str(page.base_url).rstrip("/")) as ws:
            assert ws.subprotocol == "acp.v2"
            assert ws.response is not None
            assert ticket not in str(ws.response.headers)
            await ws.send(INITIALIZE)
            assert "protocolVersion" in str(await ws.recv())
        assert (await status(door, None, subprotocols=offered))[0] == 401  # and a ticket, too
        # The cookie alone opens nothing, so that no page can use it from elsewhere.
        name = cookie.partition(";")[0]
        assert (await status(door, None, headers={"Cookie": name}))[0] == 401
        assert (await page.get("/acp", headers={"Accept": "text/event-stream"})).status_code == 401
        await page.post("/logout")
        assert (await page.post("/ticket", headers={"Cookie": name})).status_code == 401


async def test_tickets_and_links_that_are_late_or_made_up_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.hub.access.admission.TICKET_SECONDS", -1.0)
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, browser(door) as page:
        assert (await page.post("/ticket")).status_code == 401
        for body in (
            b"",
            b"{",
            b"[]",
            b'{"code":1}',
            b'{"code":"guess"}',
        ):
            assert (await page.post("/login", content=body)).status_code == 401
        much = b'{"code":"' + b"x" * 5000 + b'"}'
        assert (await page.post("/login", content=much)).status_code == 413
        assert (await page.get("/login")).status_code == 405
        for ticket in (await ticket_of(door), "guess", ""):  # the first is late
            offered: Any = ["acp.v2", f"acp-ticket.{ticket or 'x'}"]
            assert (await status(door, None, subprotocols=offered))[0] == 401
        assert len(door.audit(act="connect", outcome="refused", status=401, path="/acp")) == 3


async def test_pages_from_elsewhere_and_rebound_names_get_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, browser(door) as page:
        code = code_of(door)
        token = {"Authorization": f"Bearer {door.hub.token}"}
        port = door.hub.port
        for strange in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://localhost.evil.example:{port}"},
            {"Origin": f"http://localhost:{port}"},  # a name of ours, but not of this page
            {"Host": "evil.example", "Origin": "http://evil.example"},  # rebound: it agrees with itself
            {"Host": f"evil.example:{port}"},
        ):
            for path in ("/login", "/ticket"):
                assert (await page.post(path, json=code, headers=strange)).status_code == 403
            assert (await page.get("/", headers=strange)).status_code == 403
            assert (await page.get("/acp", headers={**token, **strange})).status_code == 403
            refusal = (await page.get("/acp", headers=strange)).status_code
            assert refusal == 403  # before anything is said about tokens
        async with httpx.AsyncClient(base_url=str(page.base_url)) as script:  # no page at all
            assert (await script.post("/login", json=code)).status_code == 403
        ticket = await ticket_of(door)
        offered: Any = ["acp.v2", f"acp-ticket.{ticket}"]
        evil: Any = "https://evil.example"
        assert (await status(door, None, subprotocols=offered, origin=evil))[0] == 403
        assert (await page.post("/login", json=code)).status_code == 200  # nothing of it used the link up
        assert len(door.audit(act="connect", outcome="refused", status=403)) == 6 * 5 + 2
        assert door.audit(status=403, origin="https://evil.example")
        assert door.audit(status=403, host="evil.example")


# --- limits -------------------------------------------------------------------------------------------


async def test_what_is_too_large_is_refused_and_noted(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=HubLimits(frame=4096)) as door:
        token = door.token("big", "controller")
        async with knock(door, token) as ws:
            await ws.send(INITIALIZE)
            await ws.recv()
            await ws.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": "_x", "params": ["x" * 5000]}))
            refused = json.loads(await ws.recv())
            assert (refused["id"], refused["error"]["code"]) == (7, -32004)
            assert refused["error"]["data"] == {"reason": "limit", "limit": "frame", "most": 4096}
            await ws.send(json.dumps({"jsonrpc": "2.0", "id": 8, "method": "session/list", "params": {}}))
            assert "result" in json.loads(await ws.recv()), "the link lives"
        assert door.audit(act="call", outcome="limit: frame", token="big")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{door.hub.port}") as http:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            assert (await http.post("/acp", content=b"x" * 5000, headers=headers)).status_code == 413
        assert door.audit(act="connect", outcome="refused", status=413, token="big")


async def test_there_are_so_many_connections_and_no_more(tmp_path: Path) -> None:
    limits = HubLimits(connections=3, connections_per_token=2)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door:
        token = door.token("ann", "observer")
        async with door.talk(token), door.talk(token):
            assert (await status(door, token))[0] == 429
            async with door.talk():
                assert (await status(door, door.hub.token))[0] == 503
        assert [line["status"] for line in door.audit(outcome="refused")] == [429, 503]


async def test_there_are_so_many_sessions_and_prompts_and_no_more(tmp_path: Path) -> None:
    limits = HubLimits(sessions=1, prompts_per_minute=2)
    async with asyncio.timeout(DEADLINE), doors(tmp_path, limits=limits) as door, door.talk() as talk:
        session = (await talk.call("a", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        error = await refused(talk, "b", "session/new", cwd="/", mcpServers=[])
        assert error is not None
        assert (error["code"], error["data"]) == (-32004, {"reason": "limit", "limit": "sessions"})
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}
        assert await refused(talk, "p1", "session/prompt", **prompt) is None
        assert await refused(talk, "p2", "session/prompt", **prompt) is None
        error = await refused(talk, "p3", "session/prompt", **prompt)
        assert error is not None
        assert error["data"] == {"reason": "limit", "limit": "prompts_per_minute"}
        assert [line["act"] for line in door.audit(outcome="limit: prompts_per_minute")] == ["prompt"]


# --- the whole program --------------------------------------------------------------------------------


def holding(folder: Path, secret: str) -> set[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.name for file in files if secret.encode() in file.read_bytes()}


async def test_no_secret_is_in_any_file_or_log(tmp_path: Path) -> None:
    def antiphon(*words: str) -> str:
        done = warm.run([*words, "--data", str(tmp_path)], timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    with served(tmp_path, "--verbose") as hub:
        secret = antiphon("token", "create", "ann", "--role", "controller", "--expires", "8h")
        assert secret not in antiphon("token", "list")
        async with asyncio.timeout(DEADLINE), hub.client() as owner:
            session = await owner.new_session("/")
            await (await session.prompt("say nothing of violets")).drained()
        headers = {"Authorization": f"Bearer {secret}"}
        async with asyncio.timeout(DEADLINE), connect(hub.acp, additional_headers=headers) as ws:
            await ws.send(INITIALIZE)
            await ws.recv()
            antiphon("token", "revoke", "ann")
            with pytest.raises(ConnectionClosed):
                await ws.recv()
        for word in (secret, f"{hub.token}-wrong"):
            with pytest.raises(InvalidStatus):
                async with connect(hub.acp, additional_headers={"Authorization": f"Bearer {word}"}):
                    pass
        token, (code, errors) = hub.token, hub.end()
        assert code == 0
    assert token not in errors
    assert secret not in errors
    found = holding(tmp_path, secret) | holding(tmp_path, token)
    assert found <= {"token", "ready.json", "hub.json"}  # the owner's own, for its eyes alone
    audit = (tmp_path / "audit.jsonl").read_text()
    assert "violets" not in audit
    for act in ("token create", "token revoke", "connect", "create", "prompt", "disconnect"):
        assert f'"act":"{act}"' in audit
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "tokens.json").st_mode & 0o777 == 0o600


def test_a_piped_prompt_that_is_forbidden_ends_with_an_error(tmp_path: Path) -> None:
    with served(tmp_path) as hub:
        first = warm.run(["attach", "new", "--data", str(tmp_path)], text="plan\n", timeout=DEADLINE)
        assert first.returncode == 0, first.stderr
        secret = create_token(tmp_path / "tokens.json", "eye", Role.OBSERVER)
        eye = warm.run(
            ["attach", "--hub", hub.acp, "--data", str(tmp_path)],
            text="plan\n",
            timeout=DEADLINE,
            env={**os.environ, "ANTIPHON_TOKEN": secret},
        )
    assert eye.returncode == 1, eye.stderr
    assert "the prompt failed: Forbidden" in eye.stderr
