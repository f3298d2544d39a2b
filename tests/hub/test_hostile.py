"""Every method and every path, tried by somebody who may not: with a revoked token, in a foreign session, and
over HTTP with the connection of another."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from antiphon.hub.access.tokens import revoke_token
from antiphon.server.methods.table import METHODS
from tests.hub.doors import DEADLINE, Doors, doors, is_open, refused
from tests.hub.test_roles import NAMES_NO_SESSION, NOT_SERVED, OURS, PARAMS, requests

SOURCE = Path(__file__).parents[2] / "src" / "antiphon"
TOLD = {"_antiphon/sessions"}
"""What the hub tells clients, and nobody asks of it."""
FORBIDDEN = {"code": -32003, "message": "Forbidden", "data": {"reason": "forbidden"}}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}, "capabilities": {}},
}
STREAM = {"Accept": "text/event-stream"}


def test_every_method_of_ours_is_in_the_tables() -> None:
    files = [file for layer in ("server", "agent", "hub") for file in (SOURCE / layer).rglob("*.py")]
    served = {name for file in files for name in re.findall(r'"(_antiphon/\w+)"', file.read_text())} - TOLD
    assert served == {method for method in OURS if method.startswith("_antiphon/")}
    assert served <= set(METHODS)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_revoked_token_does_nothing_while_its_link_is_still_open(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.hub.access.admission.SWEEP", 60.0)
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        session = (await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        async with door.talk(door.token("gone", "owner"), version) as talk:
            await talk.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
            revoke_token(door.tokens, "gone")
            for method in requests(version):
                if method not in NOT_SERVED:
                    params = {"sessionId": session, **PARAMS.get(method, {})}
                    wire = method.removesuffix(" for all")
                    assert await refused(talk, method, wire, **params) == FORBIDDEN, method
            talk.send(method="session/cancel", params={"sessionId": session})
            line = await door.audited(token="gone", method="session/cancel")
            assert line["outcome"] == "forbidden"
            assert await is_open(owner, session)


async def test_a_controller_of_one_session_gets_nothing_of_what_works_for_another(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door, door.talk() as owner:
        mine, other = [
            (await owner.call(id, "session/new", cwd="/", mcpServers=[]))["sessionId"] for id in ("a", "b")
        ]
        owner.prompt("p", other, "nest")
        child = (await owner.update("subagent_update"))["sessionId"]
        assert child not in (mine, other)
        async with door.talk(door.token("guest", "controller", sessions=[mine])) as talk:
            for state in ("open", "put away"):
                if state == "put away":
                    door.go.set()
                    await owner.update("state_update", state="idle")
                    await owner.call("c", "session/close", sessionId=other)
                assert await is_open(owner, child) is (state == "open")
                for method in requests(2):
                    if method in NOT_SERVED or method in NAMES_NO_SESSION:
                        continue
                    params = {"sessionId": child, **PARAMS.get(method, {})}
                    wire = method.removesuffix(" for all")
                    assert await refused(talk, f"{state} {method}", wire, **params) == FORBIDDEN, method


# --- over HTTP -----------------------------------------------------------------------------------------

WHO = ("nobody", "a wrong token", "a revoked one", "metrics", "observer", "controller of one", "owner")
PATHS: dict[str, tuple[str, str, dict[str, int]]] = {
    # Refused unless said otherwise, with these statuses.
    "initialize": (
        "POST",
        "/acp",
        {"metrics": 403, "observer": 200, "controller of one": 200, "owner": 200},
    ),
    "numbers": ("GET", "/metrics", {"metrics": 200, "observer": 403, "controller of one": 403, "owner": 200}),
    "nothing there": (
        "GET",
        "/nowhere",
        {"metrics": 403, "observer": 404, "controller of one": 404, "owner": 404},
    ),
    "log in": ("POST", "/login", dict.fromkeys(WHO, 403)),  # for the hub's own page alone
    "ticket": ("POST", "/ticket", dict.fromkeys(WHO, 403)),
    "log out": ("POST", "/logout", dict.fromkeys(WHO, 403)),
    "page": ("GET", "/", dict.fromkeys(WHO, 200)),  # it holds no secrets
    "health": ("GET", "/healthz", dict.fromkeys(WHO, 200)),
}


def secrets(door: Doors) -> dict[str, str | None]:
    gone = door.token("gone", "owner")
    revoke_token(door.tokens, "gone")
    return {
        "nobody": None,
        "a wrong token": "antiphon_wrong",
        "a revoked one": gone,
        "metrics": door.token("numbers", "metrics"),
        "observer": door.token("eye", "observer"),
        "controller of one": door.token("guest", "controller", sessions=["sess_none"]),
        "owner": door.hub.token,
    }


def headers(secret: str | None, **more: str) -> dict[str, str]:
    return {**({} if secret is None else {"Authorization": f"Bearer {secret}"}), **more}


async def test_each_path_is_for_whom_the_table_says(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        known = secrets(door)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{door.hub.port}") as http:
            found = {}
            for name, (method, path, _) in PATHS.items():
                for who in WHO:
                    body: Any = {"json": INITIALIZE} if method == "POST" else {}
                    answer = await http.request(method, path, headers=headers(known[who]), **body)
                    found[name, who] = answer.status_code
                    for secret in known.values():
                        assert secret is None or secret not in answer.text
            expected = {
                (name, who): said.get(who, 401) for name, (_, _, said) in PATHS.items() for who in WHO
            }
            assert found == expected


async def test_the_connection_of_another_token_is_not_there(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        known = secrets(door)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{door.hub.port}") as http:
            opened = await http.post("/acp", json=INITIALIZE, headers=headers(known["owner"]))
            at = {"Acp-Connection-Id": opened.headers["Acp-Connection-Id"]}
            listing = {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}
            for who in WHO[:-1]:
                status = {"observer": 404, "controller of one": 404, "metrics": 403}.get(who, 401)
                shown = headers(known[who], **at)
                for stream in ({}, {"Acp-Session-Id": "sess_any"}):
                    got = await http.get("/acp", headers={**shown, **STREAM, **stream})
                    assert got.status_code == status, (who, "GET")
                assert (await http.post("/acp", json=listing, headers=shown)).status_code == status
                assert (await http.delete("/acp", headers=shown)).status_code == status
            # Nothing of it has ended the connection.
            owner = headers(known["owner"], **at)
            assert (await http.post("/acp", json=listing, headers=owner)).status_code == 202
            assert (await http.delete("/acp", headers=owner)).status_code == 202
