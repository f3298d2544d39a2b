"""The page of a hub: its files, and how browsers get in and stay."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from antiphon import web
from antiphon.hub.access import cookies
from antiphon.hub.access.cookies import Cookies, Invitation
from antiphon.hub.access.tokens import Tokens, create_token, read_tokens, revoke_token
from antiphon.hub.http.page import POLICY
from antiphon.server.method import RANKS, Role
from tests import warm
from tests.hub.doors import DEADLINE, Doors, doors, refused
from tests.hub.running import ANTIPHON, served
from tests.hub.test_starting import in_front
from tests.hub.test_tokens import holding

FILES = {
    "/": (b"<!doctype html>", "text/html; charset=utf-8"),
    "/js/main.js": (b"export {};", "text/javascript; charset=utf-8"),
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": 2, "info": {"name": "page", "version": "1"}, "capabilities": {}},
}


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A page of the hub itself."""
    own = url.rstrip("/")
    async with httpx.AsyncClient(base_url=own, headers={"Origin": own}) as http:
        yield http


def plain(door: Doors) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url_of(door))


def code_of(door: Doors) -> dict[str, str]:
    """What a page sends to log in as an owner."""
    return {"code": door.hub.login_link(url_of(door)).partition("#login=")[2]}


def url_of(door: Doors) -> str:
    return f"http://127.0.0.1:{door.hub.port}/"


async def role_of(page: httpx.AsyncClient, acp: str) -> str:
    """What a page may do that opens a WebSocket with its cookie."""
    ticket = (await page.post("/ticket")).json()["ticket"]
    offered: Any = ["acp.v2", f"acp-ticket.{ticket}"]
    async with connect(acp, subprotocols=offered, origin=page.headers["Origin"]) as ws:  # type: ignore[arg-type]
        await ws.send(json.dumps(INITIALIZE))
        return str(json.loads(await ws.recv())["result"]["_meta"]["antiphon"]["role"])


# --- files --------------------------------------------------------------------------------------------


async def test_the_page_is_for_everybody_who_asks_by_a_name_of_the_hub(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path, page=FILES) as door, plain(door) as http:
        for path, (content, kind) in FILES.items():
            shown = await http.get(path)
            assert (shown.status_code, shown.content) == (200, content)
            assert shown.headers["Content-Type"] == kind
            assert shown.headers["Content-Security-Policy"] == POLICY
            assert shown.headers["X-Content-Type-Options"] == "nosniff"
            assert shown.headers["Referrer-Policy"] == "no-referrer"
            assert shown.headers["Cache-Control"] == "no-cache"
            head = await http.head(path)
            assert (head.content, head.headers["Content-Length"]) == (b"", str(len(content)))
            tag = shown.headers["ETag"]
            for known in (tag, f'"other", {tag}', f"W/{tag}"):
                same = await http.get(path, headers={"If-None-Match": known})
                assert (same.status_code, same.content) == (304, b"")
                assert "Content-Length" not in same.headers  # which would be that of the file
                assert same.headers["Content-Security-Policy"] == POLICY
            other = await http.get(path, headers={"If-None-Match": '"other"'})
            assert other.status_code == 200
            assert (await http.post(path)).status_code == 405
            for strange in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
                assert (await http.get(path, headers=strange)).status_code == 403
        for path in ("/js/", "/js//main.js", "//", "/js/main.js/", "/JS/main.js", "/%2e%2e/x"):
            raw = httpx.URL(url_of(door)).copy_with(raw_path=path.encode())
            assert (await http.get(raw)).status_code == 401, path


def test_the_files_of_the_page_are_read_once_or_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "ROOT", tmp_path)
    (tmp_path / "js").mkdir()
    (tmp_path / "index.html").write_bytes(b"one")
    (tmp_path / "js" / "app.js").write_bytes(b"app")
    for odd in (".hidden.js", "notes.txt", "app.js~", "x.py"):
        (tmp_path / odd).write_bytes(b"")
    once = web.page()
    monkeypatch.setenv("ANTIPHON_WEB_RELOAD", "1")
    fresh = web.page()
    assert set(once) == set(fresh) == {"/", "/index.html", "/js/app.js"}
    (tmp_path / "index.html").write_bytes(b"two")
    (tmp_path / "new.css").write_bytes(b"")
    assert (once["/"][0], fresh["/"][0]) == (b"one", b"two")
    assert "/new.css" not in once
    assert fresh["/new.css"][1] == "text/css; charset=utf-8"
    (tmp_path / "secret").symlink_to("/etc/passwd")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.js").write_bytes(b"")
    for path in ("/../web/x.js", "/js/../js/app.js", "/js/./app.js", "//js/app.js", "/.git/x.js",
                 "/js/app.js/", "/js", "/secret", "", "index.html", "/a\0.js",
                 f"/{'x' * 300}.js"):  # fmt: skip
        assert path not in fresh
        with pytest.raises(KeyError):
            fresh[path]

    def no_search(*_: object) -> None:
        raise AssertionError("the whole tree was looked through")

    monkeypatch.setattr(Path, "rglob", no_search)
    assert fresh["/js/app.js"][0] == b"app"
    assert "/js/app.js" in fresh


def test_the_page_that_is_shipped_loads_only_what_is_there() -> None:
    files = web.page()
    assert "/" in files
    wanted = re.findall(rb'(?:src|href)="(/[^"]*)"', files["/"][0])
    assert wanted
    assert {path.decode() for path in wanted} <= set(files)
    modules = {path: content for path, (content, _) in files.items() if path.endswith(".js")}
    for path, content in modules.items():
        for name in re.findall(rb'^(?:import|export)[^"]*? from "(\.[^"]+)";', content, re.MULTILINE):
            at = os.path.normpath(os.path.join(os.path.dirname(path), name.decode()))
            assert at in files, f"{path} imports {name.decode()}"


# --- links --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", RANKS)
async def test_a_link_gives_its_role_and_no_more(role: Role, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        made = await owner.call("link", "_antiphon/link", role=str(role), sessions=[session])
        assert made["seconds"] == 300
        async with browser(url_of(door)) as page:
            assert (await page.post("/login", json={"code": made["code"]})).status_code == 200
            assert await role_of(page, door.address) == role
        [kept] = read_tokens(door.tokens)
        assert (kept.role, kept.sessions, kept.cookie) == (role, [session], True)
        assert kept.name.startswith("browser-")
        assert made["code"] not in door.tokens.read_text()
        login = door.audit(act="login", outcome="allowed")[-1]
        assert (login["token"], login["role"]) == (kept.name, role)
        assert door.audit(act="connect", outcome="allowed", token=kept.name)


async def test_who_is_in_for_some_sessions_gets_no_link_to_others(tmp_path: Path) -> None:
    """Whatever session it names: a link may be for all of them."""
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        async with door.talk(door.token("ann", "owner", sessions=[session])) as ann:
            told = (await ann.answer_to("init"))["result"]["_meta"]["antiphon"]
            assert (told["role"], told["sessions"]) == ("owner", [session])
            for named in ({}, {"sessionId": session}, {"sessionId": session, "sessions": [session]}):
                error = await refused(ann, str(named), "_antiphon/link", **named)
                assert error is not None, named
                assert error["data"]["reason"] == "forbidden"


async def test_a_cookie_is_no_token_and_a_token_no_cookie(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, browser(url_of(door)) as page:
        await page.post("/login", json=code_of(door))
        [(name, secret)] = page.cookies.items()
        bearer = await page.get("/metrics", headers={"Authorization": f"Bearer {secret}"})
        assert bearer.status_code == 401
        for other in (door.hub.token, door.token("ann", "owner"), "", "x" * 5000):
            shown = httpx.AsyncClient(base_url=url_of(door), headers=page.headers, cookies={name: other})
            async with shown as http:
                assert (await http.post("/ticket")).status_code == 401


async def test_who_logs_out_or_is_revoked_is_sent_away(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        for way in ("logout", "revoke"):
            async with browser(url_of(door)) as page:
                link = await owner.call(way, "_antiphon/link", role=str(Role.CONTROLLER))
                await page.post("/login", json={"code": link["code"]})
                cookie = dict(page.cookies)
                ticket = (await page.post("/ticket")).json()["ticket"]
                late = (await page.post("/ticket")).json()["ticket"]
                offered: Any = ["acp.v2", f"acp-ticket.{ticket}"]
                async with connect(door.address, subprotocols=offered) as ws:
                    if way == "logout":
                        gone = await page.post("/logout")
                        assert "Max-Age=0" in gone.headers["Set-Cookie"]
                    else:
                        revoke_token(door.tokens, read_tokens(door.tokens)[-1].name)
                    with pytest.raises(ConnectionClosed) as closed:
                        await ws.recv()
                    assert closed.value.rcvd is not None
                    assert closed.value.rcvd.code == 1008
                page.cookies.update(cookie)
                assert (await page.post("/ticket")).status_code == 401
                unused: Any = ["acp.v2", f"acp-ticket.{late}"]
                with pytest.raises(Exception, match="401"):
                    await connect(door.address, subprotocols=unused)
        assert read_tokens(door.tokens) == []
        assert door.audit(act="logout", outcome="done")


# --- what is kept -------------------------------------------------------------------------------------


def test_a_cookie_outlives_the_process_and_ends_in_time(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens.json", [time.time()]

    def life() -> Cookies:
        return Cookies(Tokens("own", path, clock=lambda: clock[0]), clock=lambda: clock[0])

    secret, grant = life().issue(Invitation(role=Role.CONTROLLER))
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret not in path.read_text()
    create_token(path, "ann", Role.OBSERVER)
    assert life().find(secret) == grant
    clock[0] += cookies.SECONDS
    assert life().find(secret) is None
    life().issue(Invitation(role=Role.OWNER))
    assert grant.name not in {each.name for each in read_tokens(path)}  # it was cleaned up
    assert "ann" in {each.name for each in read_tokens(path)}


@pytest.mark.parametrize("harm", ["readable", "torn", "folder"])
async def test_with_a_file_that_cannot_be_trusted_no_browser_gets_in(harm: str, tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, browser(url_of(door)) as page:
        await page.post("/login", json=code_of(door))
        if harm == "readable":
            door.tokens.chmod(0o644)
        elif harm == "torn":
            door.tokens.write_bytes(door.tokens.read_bytes()[:-3])
        else:
            door.tokens.unlink()
            door.tokens.mkdir(mode=0o700)
        assert (await page.post("/ticket")).status_code == 401
        assert (await page.post("/login", json=code_of(door))).status_code == 503
        assert door.audit(act="connect", outcome="refused", status=503, path="/login")
        door.tokens.rename(tmp_path / "broken")
        assert (await page.post("/login", json=code_of(door))).status_code == 200


def test_only_so_many_browsers_are_in_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookies, "MANY", 3)
    path = tmp_path / "tokens.json"
    create_token(path, "ann", Role.OBSERVER)
    kept = Cookies(Tokens("own", path))
    issued = [kept.issue(Invitation(role=Role.OWNER))[0] for _ in range(5)]
    assert [kept.find(secret) is not None for secret in issued] == [False, False, True, True, True]
    assert read_tokens(path)[0].name == "ann"


# --- as people run it ---------------------------------------------------------------------------------


def antiphon(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return warm.run([*arguments, "--data", str(folder)], timeout=DEADLINE, env={**os.environ, **env})


async def test_a_page_comes_back_by_itself_after_the_hub_was_killed(tmp_path: Path) -> None:
    with served(tmp_path) as hub:
        async with asyncio.timeout(3 * DEADLINE):
            made = await asyncio.to_thread(antiphon, tmp_path, "link", "--role", "controller")
            assert made.returncode == 0, made.stderr
            url, _, code = made.stdout.strip().partition("#login=")
            assert made.stdout == f"http://127.0.0.1:{hub.port}/#login={code}\n"
            async with browser(url) as page:
                assert (await page.get("/")).text.startswith("<!doctype html>")
                assert (await page.post("/login", json={"code": code})).status_code == 200
                assert await role_of(page, hub.acp) == "controller"
                hub.kill()
                hub.restart(port=hub.port)
                assert await role_of(page, hub.acp) == "controller"
                # Its name is among the tokens, where it can be revoked.
                name, role, *_ = antiphon(tmp_path, "token", "list").stdout.split("\t")
                assert role == "controller"
                assert antiphon(tmp_path, "token", "revoke", name).returncode == 0
                assert (await page.post("/ticket")).status_code == 401
        _, errors = hub.end()
    assert code not in errors
    assert not any(holding(tmp_path, secret) for secret in (*page.cookies.values(), code))


async def test_a_hub_that_is_started_on_a_terminal_prints_a_link_that_lets_a_browser_in(
    tmp_path: Path,
) -> None:
    with in_front([*ANTIPHON, "serve", "--port", "0"], tmp_path) as hub:
        url, code = hub.wait_for(r"\n +(http://\S+)#login=(\S+)\r?\n").group(1, 2)
        async with asyncio.timeout(DEADLINE), browser(url) as page:
            assert (await page.post("/login", json={"code": code})).status_code == 200
            address = url.replace("http", "ws") + "acp"
            assert await role_of(page, address) == "owner"


@pytest.mark.parametrize("to", ["a pipe", "a file"])
def test_a_hub_whose_output_may_be_kept_prints_no_link_but_how_to_get_one(tmp_path: Path, to: str) -> None:
    log = tmp_path / "log"
    command = [*ANTIPHON, "serve", "--port", "0", "--data", str(tmp_path / "data")]
    with open(log, "wb") as file:
        output = file if to == "a file" else subprocess.PIPE
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=output)
    until = time.monotonic() + DEADLINE
    while not (tmp_path / "data" / "hub.json").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=DEADLINE)
    told = log.read_text() + (errors or b"").decode()
    assert "#login=" not in told
    assert f" link --data {tmp_path / 'data'}\n" in told


def test_a_link_is_made_by_owners_of_a_hub_that_runs(tmp_path: Path) -> None:
    down = antiphon(tmp_path, "link")
    assert (down.returncode, down.stdout) == (1, "")
    assert down.stderr.count("\n") == 1
    with served(tmp_path) as hub:
        secret = create_token(tmp_path / "tokens.json", "bob", Role.CONTROLLER)
        refused = antiphon(tmp_path, "link", "--hub", hub.acp, ANTIPHON_TOKEN=secret)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "does not permit that" in refused.stderr
