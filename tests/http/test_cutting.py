"""A client of ours whose sockets are cut goes on by `Last-Event-ID`, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from antiphon.client import ClientOptions, LinkState, connect
from antiphon.remote.stream_router import StreamBounds
from tests.client.cutting import Way, way_to
from tests.http.raw import DEADLINE
from tests.http.serving import Links, agent_at_hand, hub_at_hand
from tests.requirements.marks import requirement


def through(way: Way) -> str:
    return way.address.replace("ws://", "http://")


def said(count: int, size: int) -> str:
    return "".join(f"{number}{'x' * size} " for number in range(count))


@requirement("HTTP-20")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_stream_cut_amid_a_turn_goes_on_and_nothing_is_lost_or_doubled(version: int) -> None:
    async with hub_at_hand() as (hub, _, _), way_to(f"http://127.0.0.1:{hub.port}/acp") as way:
        states: list[LinkState] = []
        async with (
            asyncio.timeout(DEADLINE),
            connect(
                through(way),
                token=hub.token,
                version=version,
                reconnect=False,
                options=ClientOptions(on_link=lambda link: states.append(link.state)),
            ) as client,
        ):
            session = await client.new_session("/")
            cuts = 0

            def watch(seen: bytes) -> int | None:
                nonlocal cuts
                if b"text/event-stream" not in seen or len(seen) < 5_000 or cuts >= 5:
                    return None
                cuts += 1
                asyncio.get_running_loop().call_soon(again)  # each stream that follows is cut as well
                return 4_000 + 77 * cuts

            def again() -> None:
                way.watch = watch

            way.watch = watch
            await (await session.prompt("stream 400 100")).drained()
            assert session.messages[-1].text == said(400, 100)
            assert cuts == 5
            await (await session.prompt("hi")).drained()
            assert [message.text for message in session.messages][-2:] == ["hi", "heard hi"]
            assert states == []


@requirement("HTTP-20")
@pytest.mark.parametrize("version", [1, 2])
async def test_also_where_the_journal_has_to_help(version: int) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        agent_at_hand(bounds=StreamBounds(window=2000)) as (_, raw, _),
        way_to(f"http://127.0.0.1:{raw.port}/acp") as way,
        connect(
            through(way), reconnect=False, version=version, options=ClientOptions(numbered=True)
        ) as client,
    ):
        session = await client.new_session("/")
        count = itertools.count()

        def watch(seen: bytes) -> int | None:
            return 6_000 if len(seen) > 40_000 and next(count) == 0 else None

        way.watch = watch
        await (await session.prompt("stream 400 100")).drained()
        assert [message.text for message in session.messages] == ["stream 400 100", said(400, 100)]
        assert next(count) > 0, "it was cut"


async def test_a_server_that_forgot_the_connection_is_come_back_to() -> None:
    links = Links()
    async with (
        asyncio.timeout(DEADLINE),
        agent_at_hand(links) as (_, raw, go),
        connect(f"http://127.0.0.1:{raw.port}/acp") as client,
    ):
        session = await client.new_session("/")
        turn = await session.prompt("wait")
        await (await links.came.get()).aclose()  # as after a restart, or a long way without a net
        go.set()
        await turn.drained()
        assert session.messages[-1].text == "went on"
