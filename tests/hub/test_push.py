"""Web Push: a hub signs and encrypts, a push service and a browser of the test verify; and its buttons."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from antiphon.hub import AlertOptions
from antiphon.hub.access.tokens import revoke_token
from tests.agent.talk import Talk
from tests.hub.doors import Doors, doors, refused
from tests.hub.push_service import DEADLINE, PushService, Subscriber, push_service, until


@asynccontextmanager
async def pushing(folder: Path, **hub: Any) -> AsyncIterator[tuple[Doors, PushService]]:
    """A hub with a push service on this machine, which browsers may use."""
    async with asyncio.timeout(DEADLINE), push_service() as service:
        alerts = AlertOptions(push=folder, push_services=[service.origin])
        async with doors(folder, alerts=alerts, **hub) as door:
            yield door, service


async def subscribe(talk: Talk, service: PushService, name: str, **more: Any) -> Subscriber:
    service.key = (await talk.call(f"key {name}", "_antiphon/push_key"))["key"]
    subscriber = service.subscriber(name)
    await talk.call(f"subscribe {name}", "_antiphon/push_subscribe", **subscriber.params, **more)
    return subscriber


async def begun(talk: Talk) -> str:
    return str((await talk.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"])


async def press(door: Doors, code: str, *, origin: str | None = None) -> tuple[int, str]:
    """Press a button, as the service worker of the page does: status and words."""
    own = f"http://127.0.0.1:{door.hub.port}"
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{own}/answer", json={"code": code}, headers={"Origin": origin or own})
    return answer.status_code, answer.text.strip()


def modes(folder: Path) -> dict[str, int]:
    """The permissions of the files of Web Push."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob("push*")}


SPENT = (403, "This button does not work any more.")
OVER = (409, "The question is not open any more.")


async def test_a_question_is_pushed_to_a_phone_and_answered_there_once(tmp_path: Path) -> None:
    async with pushing(tmp_path) as (door, service), door.talk() as owner:
        await subscribe(owner, service, "phone")
        session = await begun(owner)
        owner.prompt("ask", session, "ask")
        name, message = await service.next()
        codes = message.pop("codes")
        assert sorted(codes) == ["allow", "deny"]
        asked = await owner.request("session/request_permission")
        question = asked["params"]["_meta"]["antiphon"]["questionId"]
        assert (name, message) == (
            "phone",
            {
                "type": "question.opened",
                "session": session,
                "title": "ask",
                "text": "Touch",
                "details": "",
                "tag": f"{session}/{question}",
            },
        )
        assert service.headers[0]["Urgency"] == "high"
        assert await press(door, codes["allow"], origin="https://elsewhere.example") == (
            403,
            "Pages of this origin are not let in.",
        )
        assert await press(door, codes["allow"]) == (204, "")
        assert await press(door, codes["allow"]) == SPENT  # it works once
        assert await press(door, codes["deny"]) == OVER  # and the question has ended
        _, ended = await service.next()
        assert (ended["type"], ended["text"], ended["codes"]) == ("turn.ended", "Finished", {})
        await owner.update("state_update", state="idle")
        assert "allowed: True" in str(owner.updates())
        line = await door.audited(act="answer", outcome="allowed", method="_antiphon/answer")
        assert (line["token"], line["session"]) == ("owner", session)
        failed = [line for line in door.audit(act="answer") if line["outcome"].startswith("failed")]
        assert [line["token"] for line in failed] == ["owner"]  # the second button
        assert door.audit(act="subscribe", outcome="allowed", token="owner")
        assert modes(tmp_path) == {"push.json": 0o600, "push-key.pem": 0o600}


async def test_a_button_does_what_its_token_may_do_when_it_is_pressed(tmp_path: Path) -> None:
    async with pushing(tmp_path) as (door, service), door.talk() as owner:
        session = await begun(owner)
        bob = door.token("bob", "controller", sessions=[session])
        eve = door.token("eve", "controller", sessions=["sess_other"])
        async with door.talk(bob) as his, door.talk(eve) as hers:
            await subscribe(his, service, "bob")
            await subscribe(hers, service, "eve")
        owner.prompt("ask", session, "ask")
        name, message = await service.next()  # of eve's sessions, nothing has happened
        assert name == "bob"
        revoke_token(door.tokens, "bob")
        assert await press(door, message["codes"]["allow"]) == SPENT
        asked = await owner.request("session/request_permission")
        owner.send(id=asked["id"], result={"outcome": {"outcome": "cancelled"}})
        await owner.update("state_update", state="idle")
        await subscribe(owner, service, "owner")
        owner.prompt("again", session, "ask")
        assert (await service.next())[0] == "owner"  # bob's subscription ended with his token
        assert service.waiting == 0


async def test_only_those_who_may_answer_get_buttons_and_observers_get_no_push(tmp_path: Path) -> None:
    async with pushing(tmp_path, asked="owner") as (door, service), door.talk() as owner:
        session = await begun(owner)
        ann, max_ = door.token("ann", "controller"), door.token("max", "observer")
        async with door.talk(ann) as hers, door.talk(max_) as his:
            await subscribe(hers, service, "ann")
            params = service.subscriber("max").params
            for method in ("_antiphon/push_subscribe", "_antiphon/push_unsubscribe", "_antiphon/push_key"):
                error = await refused(his, method, method, **params)
                assert error is not None
                assert error["code"] == -32003
        owner.prompt("ask", session, "ask")
        name, message = await service.next()
        assert (name, message["codes"]) == ("ann", {})


async def test_a_subscription_lasts_until_the_browser_or_its_push_service_ends_it(tmp_path: Path) -> None:
    async with pushing(tmp_path) as (door, service), door.talk() as owner:
        await subscribe(owner, service, "one", turns=False)
        await subscribe(owner, service, "two")
        await owner.call("off", "_antiphon/push_unsubscribe", endpoint=f"{service.origin}/push/two")
        session = await begun(owner)
        service.answers = [410]
        owner.prompt("ask", session, "ask")
        kept = tmp_path / "push.json"
        await until(lambda: kept.read_text() == "[]")


async def test_subscriptions_survive_a_restart_of_the_hub_with_its_key(tmp_path: Path) -> None:
    async with push_service() as service:
        alerts = AlertOptions(push=tmp_path, push_services=[service.origin])
        async with doors(tmp_path, alerts=alerts, token="t" * 40) as door, door.talk() as owner:
            await subscribe(owner, service, "phone")
        async with doors(tmp_path, alerts=alerts, token="t" * 40) as door, door.talk() as owner:
            session = await begun(owner)
            owner.prompt("ask", session, "ask")
            assert (await service.next())[0] == "phone"
        async with doors(tmp_path, alerts=alerts, token="other") as door, door.talk() as owner:
            session = await begun(owner)
            owner.prompt("ask", session, "ask")
            await subscribe(owner, service, "other")
            made = await owner.call("second", "session/new", cwd="/", mcpServers=[])
            owner.prompt("again", made["sessionId"], "ask")
            assert (await service.next())[0] == "other"  # the subscription of the old token is not used


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example/x",
        "https://127.0.0.1/x",
        "https://10.1.2.3/x",
        "https://[::1]:8443/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://169.254.169.254/latest",
        "https://user:secret@push.example/x",
        "file:///etc/passwd",
        "https://",
    ],
)
async def test_a_subscription_cannot_lead_the_hub_into_its_own_network(endpoint: str, tmp_path: Path) -> None:
    alerts, params = AlertOptions(push=tmp_path), Subscriber(endpoint).params
    async with asyncio.timeout(DEADLINE), doors(tmp_path, alerts=alerts) as door, door.talk() as owner:
        error = await refused(owner, 1, "_antiphon/push_subscribe", **params)
    assert error is not None
    assert error["code"] == -32602
