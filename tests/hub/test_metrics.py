"""How a hub is doing can be read by who looks after it, in the format of Prometheus."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

import antiphon
from antiphon.client import connect
from antiphon.errors import LinkLost
from antiphon.transports.websocket import connect_websocket
from tests.http.raw import Raw
from tests.http.serving import hub_at_hand
from tests.hub.doors import DEADLINE, doors

LABEL = r'\w+="[^"\n]*"'
LINE = re.compile(rf"(# (HELP|TYPE) \w+ .+|\w+(\{{{LABEL}(,{LABEL})*\}})? [-+.e\d]+)")


async def told(raw: Raw) -> dict[str, float]:
    answer = await raw.ask("GET", path="/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    assert all(LINE.fullmatch(line) for line in lines), lines
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


async def test_what_goes_on_can_be_counted() -> None:
    async with hub_at_hand() as (hub, raw, go):
        before = await told(raw)
        assert before["antiphon_clients"] == before['antiphon_sessions{state="running"}'] == 0
        assert before[f'antiphon_hub_info{{version="{antiphon.__version__}"}}'] == 1
        await raw.initialize()
        async with (
            connect(f"ws://127.0.0.1:{hub.port}/acp", token=hub.token) as client,
            raw.stream() as own,
        ):
            session = await client.new_session("/")
            turn = await session.prompt("wait")
            now = await told(raw)
            assert now["antiphon_clients"] == 2
            assert (now["antiphon_http_connections"], now["antiphon_http_streams"]) == (1, 1)
            assert now['antiphon_sessions{state="running"}'] == 1
            assert now['antiphon_agents{agent="echo"}'] == 1
            assert now["process_cpu_seconds_total"] > 0
            go.set()
            await turn.drained()
            assert own.status == 200


async def test_what_v1_cannot_express_is_counted_by_name() -> None:
    state = 'antiphon_bridge_losses_total{loss="state"}'
    async with asyncio.timeout(DEADLINE), hub_at_hand() as (hub, raw, _):
        address = f"ws://127.0.0.1:{hub.port}/acp"
        async with connect(address, token=hub.token, version=2) as client:
            await (await (await client.new_session("/")).prompt("hello")).drained()
        assert (await told(raw))[state] == 0
        async with connect(address, token=hub.token, version=1) as client:
            await (await (await client.new_session("/")).prompt("hello")).drained()
        assert (await told(raw))[state] == 2  # running and idle


async def test_the_numbers_are_for_owners_and_for_who_reads_nothing_else(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), doors(tmp_path) as door:
        roles = ("observer", "controller", "owner", "metrics")
        tokens = {role: door.token(f"a {role}", role) for role in roles}
        tokens["some"] = door.token("some", "owner", sessions=["sess_1"])
        own = f"http://127.0.0.1:{door.hub.port}"
        async with httpx.AsyncClient(base_url=own, headers={"Accept": "text/event-stream"}) as http:
            for name, token in tokens.items():
                bearer = bearer_of(token)
                allowed = name in ("owner", "metrics")
                assert (await http.get("/metrics", headers=bearer)).status_code == (200 if allowed else 403)
                named = "some" if name == "some" else f"a {name}"
                assert bool(door.audit(act="connect", outcome="refused", status=403, token=named)) != allowed
            for path in ("/acp", "/", "/nowhere", "/login"):
                for method in ("GET", "POST", "DELETE"):
                    answer = await http.request(method, path, headers=bearer_of(tokens["metrics"]))
                    assert answer.status_code in (403, 405) or (path, method) == ("/", "GET")
            assert door.audit(status=403, token="a metrics", path="/acp")
        with pytest.raises(LinkLost, match="403"):
            await connect_websocket(door.address, headers=bearer_of(tokens["metrics"]))


def bearer_of(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_numbers_are_not_for_everybody() -> None:
    async with hub_at_hand() as (_, raw, _):
        strange = Raw(raw.port)
        assert (await strange.ask("GET", path="/metrics")).status == 401
        assert (await strange.ask("GET", path="/healthz")).status == 200
        assert (await raw.ask("POST", path="/metrics")).status == 405


async def test_requests_are_counted_by_method_and_status_and_who_is_refused() -> None:
    async with hub_at_hand() as (hub, raw, _):
        await raw.initialize()
        assert (await raw.ask("DELETE", headers={"Acp-Connection-Id": "strange"})).status == 404
        assert (await raw.ask("PUT")).status == 405
        for _ in range(2):
            assert (await Raw(raw.port).ask("POST", b"{}")).status == 401
        async with connect(f"ws://127.0.0.1:{hub.port}/acp", token=hub.token), raw.stream():
            now = await told(raw)

    def requests(method: str, status: str) -> float:
        return now[f'antiphon_http_requests_total{{method="{method}",status="{status}"}}']

    assert requests("POST", "2xx") == 1
    assert requests("POST", "4xx") == 2
    assert requests("DELETE", "4xx") == 1
    assert requests("other", "4xx") == 1, "whoever comes cannot make up names"
    assert requests("GET", "1xx") == 1, "a WebSocket"
    assert requests("GET", "2xx") == 1, "a stream"
    assert now['antiphon_http_refused_total{status="401"}'] == 2
    assert now['antiphon_http_refused_total{status="408"}'] == 0
    assert now["antiphon_socket_failures_total"] == 0
    assert now["antiphon_http_streams"] == 1
