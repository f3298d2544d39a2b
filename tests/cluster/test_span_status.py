"""Metrics of a hub on a cluster, and the list of hubs for owners."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from antiphon.hub.access.tokens import create_token
from antiphon.server.method import Role
from tests.cluster.spanning import DEADLINE, attach, begin, talk_to, two_hubs, until
from tests.hub.running import Served
from tests.stores.nats_servers import SERVER, one_server

pytestmark = pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")


def metrics(hub: Served) -> dict[str, float]:
    """Return the numbers about the cluster."""
    url = f"http://127.0.0.1:{hub.port}/metrics"
    request = Request(url, headers={"Authorization": f"Bearer {hub.token}"})
    with urlopen(request, timeout=DEADLINE) as answer:
        lines = answer.read().decode().splitlines()
    told = [line.rpartition(" ") for line in lines if line.startswith("antiphon_cluster_")]
    return {name.removeprefix("antiphon_cluster_"): float(value) for name, _, value in told}


async def test_metrics_and_the_list_of_hubs_say_what_each_hub_does(tmp_path: Path) -> None:
    with one_server(tmp_path) as nats, two_hubs(tmp_path, nats) as (a, b):
        watcher = create_token(b.folder / "tokens.json", "some", Role.OWNER, sessions=["s"])
        async with asyncio.timeout(DEADLINE), talk_to(a, "alice") as alice, talk_to(b, "bob") as bob:
            id = await begin(alice)
            await attach(bob, id)
            bob.prompt("p", id, "say hello")
            await bob.answer_to("p")
            bob.send(id="no", method="_antiphon/revoke_inject", params={"sessionId": id, "messageId": "x"})
            assert "error" in await bob.answer_to("no")

            async def hubs() -> list[dict[str, object]] | None:
                found = (await bob.call(object_id(), "_antiphon/hubs"))["hubs"]
                others = [(hub.get("sessions"), hub.get("address")) for hub in found if not hub.get("you")]
                return found if others == [(1, a.acp)] else None

            numbers = iter(range(1000))

            def object_id() -> str:
                return f"hubs {next(numbers)}"

            found = await until(hubs)
            assert {hub["label"] for hub in found} == {"here"}
            assert {hub["address"] for hub in found} == {a.acp, b.acp}
            assert [hub["address"] for hub in found if hub.get("you")] == [b.acp]
            async with talk_to(b, "some", token=watcher) as some:
                some.send(id="hubs", method="_antiphon/hubs", params={})
                assert (await some.answer_to("hubs"))["error"]["code"] == -32003, "it may not know of others"

            async def both_hubs() -> list[dict[str, float]] | None:
                told = [await asyncio.to_thread(metrics, hub) for hub in (a, b)]
                return told if all(each["hubs"] == 2 for each in told) else None

            at_a, at_b = await until(both_hubs)  # a hub hears of another when that one next announces itself
            assert (at_a["sessions_owned"], at_a["sessions_followed"]) == (1, 0)
            assert (at_b["sessions_owned"], at_b["sessions_followed"]) == (0, 1)
            assert at_b['operations_forwarded_total{result="done"}'] == 1
            assert at_b['operations_forwarded_total{result="refused"}'] == 1
            a.kill()
            bob.prompt("again", id, "say again")
            await bob.answer_to("again")
            assert (await asyncio.to_thread(metrics, b))["takeovers_total"] == 1
