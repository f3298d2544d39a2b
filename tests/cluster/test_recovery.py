"""A hub that was cut off from the store serves its sessions again, and does what its clients still want."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from antiphon.hub import Hub
from antiphon.stores import JetStreamOptions, JetStreamStore
from tests.agent.talk import Talk
from tests.cluster.nats_proxy import Link, NatsProxy
from tests.cluster.spanning import DEADLINE
from tests.cluster.stand import until
from tests.hub.parrots import talking
from tests.hub.running import AGENT
from tests.options import hub_options
from tests.stores.nats_servers import SERVER, one_server

pytestmark = pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")


@asynccontextmanager
async def hub_at(address: str, folder: Path) -> AsyncIterator[Hub]:
    """A hub in this process that soon gives up on a store that it cannot reach."""
    store = JetStreamStore(address, JetStreamOptions(lease=2, patience=1))
    agent = [*AGENT, "--store", str(folder / "agent.db")]
    async with store, Hub({"agent": agent}, store=store, **hub_options(label="here")).serving() as hub:
        yield hub


@asynccontextmanager
async def cut_off_soon(folder: Path) -> AsyncIterator[tuple[NatsProxy, Talk, Talk]]:
    """A client of a hub behind a proxy, which can cut it off from the store, and a client of another hub."""
    with one_server(folder) as nats, closing(NatsProxy([int(nats.rpartition(":")[2])])) as proxy:
        async with (
            asyncio.timeout(DEADLINE),
            hub_at(proxy.address, folder) as a,
            hub_at(nats, folder) as b,
            talking(a, 2) as here,
            talking(b, 2) as there,
        ):
            yield proxy, here, there


async def test_prompts_that_are_abandoned_while_their_session_recovers_do_not_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cut_off_soon(tmp_path) as (proxy, here, there):
        made = await here.call("new", "session/new", cwd="/", mcpServers=[])
        setup = {"sessionId": made["sessionId"], "cwd": "/", "mcpServers": []}
        await there.call("join", "session/resume", **setup)
        proxy.set(Link.STALLED)
        for number in range(5):
            here.prompt(number, made["sessionId"], f"say {number}")
        there.prompt("other", made["sessionId"], "say other")
        assert "result" in await there.answer_to("other"), "the other hub has taken the session over"
        await until(lambda: "cannot be opened again yet" in caplog.text)
        for number in range(1, 5):
            here.send(method="$/cancel_request", params={"requestId": number})
        proxy.heal()
        answers = [await here.answer_to(number) for number in range(5)]
        assert ["error" in answer for answer in answers] == [False, True, True, True, True]
        there.prompt("last", made["sessionId"], "say last")
        await there.answer_to("last")
        heard = (tmp_path / "agent.log").read_text().splitlines()
        assert not {"say 1", "say 2", "say 3", "say 4"} & set(heard)


async def test_a_repeated_prompt_gets_the_end_that_the_store_has(tmp_path: Path) -> None:
    """Not the one that its hub could not commit any more."""
    async with cut_off_soon(tmp_path) as (proxy, here, there):
        session = (await here.call("new", "session/new", cwd="/", mcpServers=[]))["sessionId"]
        await there.call("join", "session/resume", sessionId=session, cwd="/", mcpServers=[])
        here.prompt("first", session, "wait", operationId="op")
        await here.until(lambda frame: "waiting" in str(frame))
        proxy.set(Link.STALLED)
        here.send(method="session/cancel", params={"sessionId": session})
        again = await repeated_in_vain(here, session)
        there.prompt("other", session, "say other")
        assert "result" in await there.answer_to("other"), "the other hub has taken the session over"
        proxy.heal()
        told = (await here.answer_to(again))["result"]["_meta"]["antiphon"]
        assert (told["stopReason"], told["error"]["data"]) == (
            "error",
            {"reason": "interrupted", "cause": "hub_lost"},
        )


async def repeated_in_vain(talk: Talk, session: str) -> str:
    """Repeat a prompt until its turn has ended at a hub that cannot commit that. Returns the last request,
    which has no answer yet."""
    for number in itertools.count():
        talk.prompt(f"again {number}", session, "wait", operationId="op")
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await talk.answer_to(f"again {number}")
                continue
        return f"again {number}"
    raise AssertionError
