"""Whatever does not get in, or takes too much: its status, over real sockets, and its line of audit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from antiphon.hub.access.admission import TICKET_SECONDS
from antiphon.hub.access.limits import HubLimits
from antiphon.hub.access.tokens import revoke_token
from antiphon.server.method import Role
from tests.agent.talk import Talk
from tests.hub.doors import DEADLINE, Doors, doors, refused
from tests.hub.test_tokens import ticket_of

LIMITS = HubLimits(frame=6000, head_seconds=0.3, body_seconds=0.3)
JSON = {"Content-Type": "application/json"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    b'{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":{}}}'
)


async def send(door: Doors, data: bytes) -> tuple[int, dict[str, str]]:
    """The status and the headers of what a socket is answered that sends this, and no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.hub.port)
    try:
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    first, *lines = head.decode().split("\r\n")[:-2]
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines)


class Case(NamedTuple):
    """A request; what has to happen before it can be made is done by `headers`."""

    status: int
    method: str = "GET"
    path: str = "/acp"
    headers: Callable[[Doors], dict[str, str] | Awaitable[dict[str, str]]] = lambda door: {}
    body: bytes = b""
    cut: int = 0
    """How many of its last bytes never come."""
    token: str | None = None
    """Whom the line names."""
    tickets: float = TICKET_SECONDS
    """Seconds that tickets are valid."""

    async def bytes(self, door: Doors) -> bytes:
        more = self.headers(door)
        headers = {"Host": f"127.0.0.1:{door.hub.port}", **(more if isinstance(more, dict) else await more)}
        if self.body:
            headers["Content-Length"] = str(len(self.body))
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {v}" for name, v in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body

    async def sent(self, door: Doors) -> bytes:
        whole = await self.bytes(door)
        return whole[: len(whole) - self.cut]


def bearer(name: str = "owner", **more: str) -> Callable[[Doors], dict[str, str]]:
    def headers(door: Doors) -> dict[str, str]:
        secret = door.hub.token if name == "owner" else door.token(name, name)
        return {"Authorization": f"Bearer {secret}", **more}

    return headers


def over(how: str) -> Callable[[Doors], dict[str, str]]:
    """A token that was good."""

    def headers(door: Doors) -> dict[str, str]:
        secret = door.token("gone", "owner", seconds=-1 if how == "expired" else None)
        if how == "revoked":
            revoke_token(door.tokens, "gone")
        return {"Authorization": f"Bearer {secret}"}

    return headers


def ticket(how: str) -> Callable[[Doors], Awaitable[dict[str, str]]]:
    async def headers(door: Doors) -> dict[str, str]:
        secret = "guess" if how == "guessed" else await ticket_of(door)
        offered = {**UPGRADE, "Sec-WebSocket-Protocol": f"acp.v2, acp-ticket.{secret}"}
        if how == "replayed":
            status, _ = await send(door, await Case(101, headers=lambda _: offered).bytes(door))
            assert status == 101
        return offered

    return headers


def page(**more: str) -> Callable[[Doors], dict[str, str]]:
    return lambda door: {"Origin": f"http://127.0.0.1:{door.hub.port}", **more}


CASES = {
    "no token": Case(401),
    "no token, for what is not there": Case(401, path="/nowhere"),
    "a token of another kind": Case(401, headers=lambda door: {"Authorization": f"Basic {door.hub.token}"}),
    "a token in the address": Case(401, path="/acp?token=TOKEN"),
    "an expired token": Case(401, headers=over("expired")),
    "a revoked token": Case(401, headers=over("revoked")),
    "a token in a cookie": Case(401, headers=lambda d: {"Cookie": f"antiphon-{d.hub.port}={d.hub.token}"}),
    "a ticket that was used": Case(401, headers=ticket("replayed")),
    "a ticket that is late": Case(401, headers=ticket("late"), tickets=-1.0),
    "a ticket that was guessed": Case(401, headers=ticket("guessed")),
    "a name of somebody else": Case(403, headers=bearer(Host="evil.example")),
    "a page of somebody else": Case(403, headers=bearer(Origin="https://evil.example")),
    "a WebSocket of a strange page": Case(403, headers=bearer(**UPGRADE, Origin="null")),
    "the page by a strange name": Case(403, path="/", headers=lambda door: {"Host": "evil.example"}),
    "a link that was guessed": Case(401, "POST", "/login", page(), b'{"code":"guess"}'),
    "a login from elsewhere": Case(403, "POST", "/login", page(Origin="https://evil.example"), b"{}"),
    "a ticket for no cookie": Case(401, "POST", "/ticket", page()),
    "numbers for an observer": Case(403, path="/metrics", headers=bearer("observer"), token="observer"),
    "sessions for who counts": Case(403, headers=bearer("metrics", **UPGRADE), token="metrics"),
    "nothing there": Case(404, path="/nowhere", headers=bearer(), token="owner"),
    "a WebSocket at the page": Case(404, path="/", headers=lambda door: dict(UPGRADE)),
    "a WebSocket at the health": Case(404, path="/healthz", headers=lambda door: dict(UPGRADE)),
    "a WebSocket at the login": Case(403, path="/login", headers=lambda door: dict(UPGRADE)),
    "another method": Case(405, "PUT", headers=bearer(), token="owner"),
    "the page, written": Case(405, "POST", "/", page()),
    "another kind of body": Case(415, "POST", headers=bearer(), body=b"x", token="owner"),
    "another kind of answer": Case(406, headers=bearer(), token="owner"),
    "a large body": Case(413, "POST", headers=bearer(**JSON), body=b" " * 6001, token="owner"),
    "a large login": Case(413, "POST", "/login", page(), b" " * 4097),
    "a page with a large body": Case(413, path="/", body=b" " * 4097),
    "a large head": Case(431, headers=bearer(Long="x" * 70_000), cut=2),
    "a slow head": Case(408, headers=bearer(), cut=2),
    "a slow body": Case(408, "POST", headers=bearer(**JSON), body=b" " * 100, cut=50, token="owner"),
    "a slow login": Case(408, "POST", "/login", page(), b" " * 100, 50),
}


@asynccontextmanager
async def hub(folder: Path) -> AsyncIterator[Doors]:
    async with asyncio.timeout(DEADLINE), doors(folder, limits=LIMITS) as door:
        yield door


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_each_refusal_has_its_status_and_is_in_the_audit_log(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.hub.access.admission.TICKET_SECONDS", case.tickets)
    async with hub(tmp_path) as door:
        status, headers = await send(door, await case.sent(door))
        assert status == case.status
        assert ("Www-Authenticate" in headers) is (status == 401)
        [line] = door.audit(act="connect", outcome="refused")
        assert (line["status"], line["peer"], line.get("token")) == (status, "127.0.0.1", case.token)
        assert line.get("path") in (case.path.partition("?")[0], None)
        assert door.hub.token not in (tmp_path / "audit.jsonl").read_text()


async def test_somebody_else_s_connection_is_a_refusal(tmp_path: Path) -> None:
    async with hub(tmp_path) as door:
        begun = Case(200, "POST", headers=bearer(**JSON), body=INITIALIZE)
        status, headers = await send(door, await begun.bytes(door))
        assert status == 200
        at = {"Acp-Connection-Id": headers["Acp-Connection-Id"], "Accept": "text/event-stream"}
        other = Case(404, headers=bearer("controller", **at))
        assert (await send(door, await other.bytes(door)))[0] == 404
        [line] = door.audit(outcome="refused", status=404)
        assert line["token"] == "controller"


async def test_what_is_no_http_is_refused_and_noted(tmp_path: Path) -> None:
    async with hub(tmp_path) as door:
        assert (await send(door, b"hello there\r\n\r\n"))[0] == 400
        assert door.audit(act="connect", outcome="refused", status=400, peer="127.0.0.1")


async def test_strangers_do_not_wear_the_audit_log_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.hub.access.admission.STRANGERS_PER_MINUTE", 3)
    async with hub(tmp_path) as door:
        for _ in range(6):
            assert (await send(door, await Case(401).bytes(door)))[0] == 401
        named = Case(404, path="/nowhere", headers=bearer())
        assert (await send(door, await named.bytes(door)))[0] == 404
        lines = door.audit(act="connect", outcome="refused")
        assert [line["status"] for line in lines] == [401, 401, 401, 404]
        assert lines[-1]["unlisted"] == 3


# --- who is to leave ----------------------------------------------------------------------------------


@pytest.fixture
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revoked client stays connected, as it does for a moment otherwise."""
    monkeypatch.setattr("antiphon.hub.access.admission.SWEEP", 3600.0)


async def joined(door: Doors, talk: Talk, owner: Talk) -> str:
    session = str((await owner.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"])
    await talk.call("r", "session/resume", sessionId=session, cwd="/", mcpServers=[])
    return session


@pytest.mark.usefixtures("nobody_looks")
async def test_an_answer_of_who_was_just_revoked_does_not_count(tmp_path: Path) -> None:
    async with hub(tmp_path) as door, door.talk() as owner, door.talk(door.token("bob", "owner")) as bob:
        session = await joined(door, bob, owner)
        owner.prompt("p", session, "ask")
        asked = await bob.request("session/request_permission")
        mine = await owner.request("session/request_permission")
        revoke_token(door.tokens, "bob")
        option = asked["params"]["options"][0]["optionId"]
        selected: Any = {"outcome": {"outcome": "selected", "optionId": option}}
        bob.send(id=asked["id"], result=selected)
        question = {"questionId": asked["params"]["_meta"]["antiphon"]["questionId"], **selected}
        error = await refused(bob, "a", "_antiphon/answer", sessionId=session, **question)
        assert error is not None
        assert error["data"] == {"reason": "forbidden"}
        owner.send(id=mine["id"], result={"outcome": {"outcome": "cancelled"}})
        await owner.update("state_update", state="idle")
        assert "allowed: False" in str(owner.updates())
        answered = door.audit(act="answer", outcome="allowed")
        assert [line["token"] for line in answered] == ["owner"]


@pytest.mark.usefixtures("nobody_looks")
async def test_what_an_agent_asks_is_not_answered_by_who_was_just_revoked(tmp_path: Path) -> None:
    async with hub(tmp_path) as door, door.talk() as owner, door.talk(door.token("bob", "owner")) as bob:
        session = await joined(door, bob, owner)
        owner.prompt("p", session, "consult")
        asked, mine = await bob.request("_example.com/who"), await owner.request("_example.com/who")
        revoke_token(door.tokens, "bob")
        bob.send(id=asked["id"], result="bob")
        await refused(bob, "later", "session/list")  # what stood before it is heard
        owner.send(id=mine["id"], result="owner")
        await owner.update("state_update", state="idle")
        assert "told owner" in str(owner.updates())


@pytest.mark.parametrize("role", [Role.OBSERVER, Role.CONTROLLER, Role.OWNER])
@pytest.mark.usefixtures("nobody_looks")
async def test_nothing_is_done_for_who_was_just_revoked(role: Role, tmp_path: Path) -> None:
    async with hub(tmp_path) as door, door.talk() as owner, door.talk(door.token("bob", role)) as bob:
        session = await joined(door, bob, owner)
        revoke_token(door.tokens, "bob")
        for method in ("session/list", "session/prompt", "session/delete", "_antiphon/transcript"):
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}
            error = await refused(bob, method, method, **params)
            assert error == {"code": -32003, "message": "Forbidden", "data": {"reason": "forbidden"}}
            assert door.audit(token="bob", method=method, outcome="forbidden", peer="127.0.0.1")
