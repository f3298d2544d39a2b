"""What a notify command and a webhook get, and how often."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from antiphon.errors import LocalError
from antiphon.hub import HubFolder
from antiphon.hub.alerts.alert import Alert, AlertKind, AlertSession, AlertTurn, News
from antiphon.hub.alerts.channel import DeliveryFailed
from antiphon.hub.alerts.command import NotifyCommand
from antiphon.hub.alerts.webhook import Webhook, new_secret, read_secret
from tests.hub.push_service import DEADLINE, hung, receiving, until
from tests.hub.running import served

ALERT = Alert(
    id="alert_1",
    news=News(kind=AlertKind.TURN_ENDED, at=0, turn=AlertTurn(reason="end_turn")),
    session=AlertSession.of("sess_1", title="$(touch x); `id`", cwd="/", agent="worker"),
)
SAVES = """import json, os, sys
mine = {name: value for name, value in os.environ.items() if name.startswith("ANTIPHON_")}
json.dump([json.load(sys.stdin), mine], open(sys.argv[1], "w"))"""


async def test_a_command_gets_the_alert_and_none_of_the_hubs_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_TOKEN", "secret")
    monkeypatch.setenv("ANTIPHON_WEBHOOK_SECRET", "secret")
    saved = tmp_path / "saved"
    await NotifyCommand([sys.executable, "-c", SAVES, str(saved)], seconds=DEADLINE).deliver(ALERT)
    told, environment = json.loads(saved.read_text())
    assert told == json.loads(ALERT.to_json())
    environment.pop("ANTIPHON_REHEARSAL_PACE", None)  # of the tests
    assert environment == {
        "ANTIPHON_ALERT": "turn.ended",
        "ANTIPHON_TITLE": "$(touch x); `id`",
        "ANTIPHON_TEXT": "Finished",
        "ANTIPHON_SESSION": "sess_1",
    }


async def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    saved = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {saved}.new; mv {saved}.new {saved}; wait"
    delivering = asyncio.create_task(NotifyCommand(["sh", "-c", script], seconds=1.0).deliver(ALERT))
    with pytest.raises(DeliveryFailed, match="killed after 1 seconds"):
        await delivering
    if saved.exists():  # the shell had time to start it
        started = Path(f"/proc/{int(saved.read_text())}/cmdline")
        await until(lambda: not started.exists() or not started.read_bytes())  # a zombie has no command


async def test_a_command_that_reads_nothing_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe may hold less than an alert: the event loop must not wait for it."""
    monkeypatch.setattr(Alert, "to_json", lambda alert: b"x" * (1 << 20))
    reads_nothing = [sys.executable, "-c", "import select; select.select([], [], [], 20)"]
    with pytest.raises(DeliveryFailed, match="killed after"):
        await NotifyCommand(reads_nothing, seconds=0.1).deliver(ALERT)
    counts = "import sys; sys.exit(len(sys.stdin.read()) != 1 << 20)"
    await NotifyCommand([sys.executable, "-c", counts], seconds=DEADLINE).deliver(ALERT)


@pytest.mark.parametrize("command", [["false"], ["/there/is/none"]])
async def test_a_command_that_fails_is_reported(command: list[str]) -> None:
    with pytest.raises(DeliveryFailed):
        await NotifyCommand(command).deliver(ALERT)


class Receiver:
    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.got: list[tuple[dict[str, str], bytes]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        status = self.statuses.pop(0)
        headers = {"Location": "/elsewhere"} if status == 307 else {}
        return web.Response(status=status, headers=headers)


async def sent(*statuses: int, secret: str | None = None) -> tuple[Receiver, str]:
    """Deliver an alert to a receiver with these answers; how it failed, if it did."""
    receiver, problem = Receiver(*statuses), ""
    async with asyncio.timeout(DEADLINE), receiving(receiver.take) as origin:
        webhook = Webhook(f"{origin}/hook", secret or new_secret(), seconds=DEADLINE, pauses=(0.0, 0.0))
        try:
            await webhook.deliver(ALERT)
        except DeliveryFailed as failed:
            problem = str(failed)
    return receiver, problem


def signature(secret: str, headers: dict[str, str], body: bytes) -> str:
    """What Standard Webhooks has for a request."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


async def test_a_hub_tells_the_command_and_the_webhook_of_its_options(tmp_path: Path) -> None:
    receiver, saved, folder = Receiver(200), tmp_path / "saved", tmp_path / "hub"
    command = shlex.join([sys.executable, "-c", SAVES, str(saved)])
    folder.mkdir(mode=0o700)
    async with asyncio.timeout(DEADLINE), receiving(receiver.take) as origin:
        with served(folder, "--notify", command, "--webhook", f"{origin}/hook") as hub:
            async with hub.client() as client:
                session = await client.new_session(str(tmp_path))
                await (await session.prompt("plan")).drained()
            await until(lambda: bool(receiver.got) and saved.exists() and saved.read_text().endswith("]"))
    [(headers, body)] = receiver.got
    secret = HubFolder(folder).webhook_secret
    assert headers["webhook-signature"] == signature(secret, headers, body)
    assert (folder / "webhook-secret").stat().st_mode & 0o077 == 0
    told = json.loads(body)
    assert (told["type"], told["data"]["session"]["id"]) == ("turn.ended", session.id)
    assert json.loads(saved.read_text())[0] == told


async def test_a_webhook_is_signed_and_repeated_with_the_same_id_until_it_is_taken() -> None:
    secret = new_secret()
    receiver, problem = await sent(500, 429, 204, secret=secret)
    assert problem == ""
    assert len(receiver.got) == 3
    for headers, body in receiver.got:
        assert (headers["webhook-id"], body) == ("alert_1", ALERT.to_json())
        assert abs(time.time() - int(headers["webhook-timestamp"])) < 300  # within what receivers allow
        assert headers["webhook-signature"] == signature(secret, headers, body)


@pytest.mark.parametrize(
    ("statuses", "problem"),
    [
        ((500, 502, 503), "127.0.0.1: status 503"),
        ((400,), "127.0.0.1: status 400"),
        ((307,), "127.0.0.1: status 307"),  # not followed: the next address is not the operator's
    ],
)
async def test_a_webhook_gives_up_after_a_few_attempts_or_a_plain_refusal(
    statuses: Any, problem: str
) -> None:
    receiver, found = await sent(*statuses)
    assert (found, receiver.statuses) == (problem, [])


async def test_a_webhook_that_does_not_answer_is_given_up() -> None:
    async with asyncio.timeout(DEADLINE), hung() as (origin, _):
        webhook = Webhook(origin, new_secret(), seconds=0.5, pauses=())
        with pytest.raises(DeliveryFailed, match="no answer within"):
            await webhook.deliver(ALERT)


@pytest.mark.parametrize("url", ["http://example.com/x", "ftp://example.com", "https://", "http://[x"])
def test_a_webhook_needs_https_beyond_this_machine(url: str) -> None:
    with pytest.raises(LocalError):
        Webhook(url, new_secret())


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_***"])
def test_a_webhook_needs_a_secret_of_some_length(secret: str) -> None:
    with pytest.raises(LocalError, match="24 bytes"):
        read_secret(secret)
