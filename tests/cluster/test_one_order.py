"""One session served by three hubs: every client reads the same, in the same order."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from tests.agent.talk import Talk
from tests.cluster.members import agree, members
from tests.cluster.stand import SOON, Stand

NUMBERED = {"_meta": {"antiphon": {"seq": True}}}


async def test_five_clients_of_all_versions_over_three_hubs_see_one_order(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with members((a, "v2"), (a, "v1"), (b, "proposed"), (b, "v1"), (c, "v2")) as (session_id, there):
        for number, each in enumerate(there):
            each.prompt(session_id, f"stream {20 + number}", cancel_after=None)
        for each in there:
            await each.finish()
            assert set(each.outcomes.values()) == {"end_turn"}
        kept = await agree(stand, session_id, there)
        assert sum(kept.queued.values()) == 5
        assert await stand.owner(session_id) is a


async def test_clients_by_hand_at_two_hubs_get_the_same_frames(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with AsyncExitStack() as stack:
        first, *others = [
            await stack.enter_async_context(
                hub.talk(version, capabilities=NUMBERED, clientCapabilities=NUMBERED)
            )
            for version, hub in ((2, a), (2, b), (1, a), (1, c))
        ]
        made = await first.call("n", "session/new", cwd="/", mcpServers=[])
        session_id = made["sessionId"]
        for talk, method in zip(others, ("resume", "load", "load"), strict=True):
            await talk.call("l", f"session/{method}", sessionId=session_id, cwd="/", mcpServers=[])
        for number, talk in enumerate((others[0], first, others[0])):
            talk.prompt(f"p{number}", session_id, f"say {number}")
            await talk.answer_to(f"p{number}")
        same, plain, plain_elsewhere = others
        last = [await _told(talk, "say 0", "heard say 2") for talk in (first, same, plain, plain_elsewhere)]
        assert last[0] == last[1]
        assert last[2] == last[3]
        assert [seq for seq, _ in last[0]] == sorted(seq for seq, _ in last[0])


async def _told(talk: Talk, first: str, last: str) -> list[tuple[int, dict[str, Any]]]:
    """The numbered updates from one with a text to another one."""
    if not any(last in str(frame) for frame in talk.seen):
        await talk.until(lambda frame: last in str(frame))
    told: list[tuple[int, dict[str, Any]]] = []
    for frame in talk.seen:
        ours = (frame.get("params", {}).get("_meta") or {}).get("antiphon") or {}
        if "seq" in ours and "update" in frame["params"] and (told or first in str(frame)):
            told.append((ours["seq"], frame["params"]["update"]))
            if last in str(frame):
                break
    return told


async def test_a_client_that_moves_to_another_hub_goes_on_from_its_cursor(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with a.client(reconnect=SOON) as one, b.talk(2, capabilities=NUMBERED) as talk:
        here = await one.new_session("/")
        await (await here.prompt("say one")).drained()
        cursor = here.cursor
        await (await here.prompt("say two")).drained()
        replay = {"type": "_antiphon_after", "seq": cursor}
        params = {"sessionId": here.id, "cwd": "/", "mcpServers": [], "replayFrom": replay}
        await talk.call("r", "session/resume", **params)
        told = await _told(talk, "say two", "heard say two")
        assert cursor is not None
        assert told[0][0] > cursor
        assert "say one" not in str(talk.seen)
