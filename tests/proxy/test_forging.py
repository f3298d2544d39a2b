"""Who a client is, behind a proxy: nothing that it says about itself changes that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.proxies import NAME
from tests.proxy.stage import CLIENT, FORGERIES, INITIALIZE, Stage


def peers(stage: Stage, **wanted: Any) -> list[str]:
    return [line["peer"] for line in stage.audit if wanted.items() <= line.items()]


async def test_the_audit_log_has_the_clients_address(stage: Stage) -> None:
    link = stage.hub.login_link("")
    async with stage.client() as client:
        assert (await client.post("/acp", json=INITIALIZE)).status_code == 200
        assert (await client.get("/acp", headers={"Authorization": "Bearer wrong"})).status_code == 401
        assert (await client.delete("/healthz")).status_code == 405
        entered = await client.post(
            "/login", json={"code": link.partition("=")[2]}, headers={"Origin": stage.proxy.origin}
        )
        assert entered.status_code == 200
        assert "; Secure" in entered.headers["Set-Cookie"]
    assert await stage.upgrade({"Authorization": f"Bearer {stage.hub.token}"}) == 101
    assert {line["peer"] for line in stage.audit} == {CLIENT}
    assert len(peers(stage, act="connect", outcome="allowed")) == 2
    assert len(peers(stage, act="connect", outcome="refused")) == 2
    assert len(peers(stage, act="login")) == 1


async def test_an_address_that_a_client_makes_up_goes_no_further(stage: Stage) -> None:
    async with stage.client() as client:
        for forgery in FORGERIES:
            sent = [(name.encode(), value.encode()) for name, value in (forgery, forgery)]
            assert (await client.get("/acp", headers=[*sent])).status_code == 406
            wrong = [*sent, (b"Authorization", b"Bearer wrong")]
            assert (await client.get("/acp", headers=wrong)).status_code == 401
            assert await stage.upgrade({}, (forgery, forgery)) == 401
    assert {line["peer"] for line in stage.audit} == {CLIENT}
    assert len(stage.audit) == 3 * len(FORGERIES)


async def test_what_a_client_says_directly_to_the_hub_counts_for_nothing(stage: Stage) -> None:
    for forgery in FORGERIES:
        assert await stage.upgrade({}, (forgery,), direct=True) == 401
    assert {line["peer"] for line in stage.audit} == {CLIENT}


ORIGINS = (
    "https://evil.example",
    "http://evil.example",
    f"http://{NAME}:PORT",  # somebody on the way makes up a page over plain HTTP
    f"https://{NAME}",
    f"https://{NAME}:1",
    f"https://{NAME}:PORT.evil.example",
    f"https://evil.{NAME}:PORT",
    f"https://{NAME}:PORT@evil.example",
    "http://127.0.0.1",
    "null",
)
HOSTS = ("evil.example", f"{NAME}.evil.example", "127.0.0.1", "localhost", f"evil@{NAME}", f"{NAME}/evil")


async def test_a_page_of_another_origin_gets_nothing(stage: Stage) -> None:
    token = {"Authorization": f"Bearer {stage.hub.token}"}
    async with stage.client() as client:
        for origin in ORIGINS:
            headers = {"Origin": origin.replace("PORT", str(stage.proxy.port))}
            assert await stage.upgrade({**headers, **token}) == 403, origin
            assert (await client.post("/acp", json=INITIALIZE, headers=headers)).status_code == 403, origin
            for path in ("/login", "/ticket", "/logout"):
                assert (await client.post(path, json={}, headers=headers)).status_code == 403, origin
    assert await stage.upgrade({"Origin": stage.proxy.origin, **token}) == 101


async def test_another_name_leads_nowhere(stage: Stage) -> None:
    token = {"Authorization": f"Bearer {stage.hub.token}"}
    forged = ("X-Forwarded-Host", NAME), ("Forwarded", f"host={NAME}")
    for host in HOSTS:
        for more in ((), forged):
            assert await stage.upgrade({**token, "Host": host}, more) != 101, host
    assert not peers(stage, outcome="allowed")


@pytest.fixture
def few_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit log has room for five strangers in a minute."""
    monkeypatch.setattr("antiphon.hub.access.admission.STRANGERS_PER_MINUTE", 5)


@pytest.mark.usefixtures("few_strangers")  # before the stage is set
async def test_strangers_do_not_wear_out_the_log_by_changing_their_addresses(stage: Stage) -> None:
    async with stage.client() as client:
        for number in range(20):
            headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": f"203.0.113.{number}"}
            assert (await client.get("/acp", headers=headers)).status_code == 401
    assert 5 <= len(stage.audit) < 10
