"""How a hub is doing can be read by who looks after it, in the format of Prometheus."""

from __future__ import annotations

import re

from antiphon.client import connect
from tests.http.raw import Raw
from tests.http.serving import hub_at_hand

LINE = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"\n]*"\})? [-+.e\d]+)')


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
        assert before['antiphon_hub_info{version="0.1.0"}'] == 1
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


async def test_the_numbers_are_not_for_everybody() -> None:
    async with hub_at_hand() as (_, raw, _):
        strange = Raw(raw.port)
        assert (await strange.ask("GET", path="/metrics")).status == 401
        assert (await strange.ask("GET", path="/healthz")).status == 200
        assert (await raw.ask("POST", path="/metrics")).status == 405
