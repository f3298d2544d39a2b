"""Where a session may be worked on: at hubs with the label of its home, or anywhere if it can move."""

from __future__ import annotations

import time

from tests.cluster.members import members, rests, says
from tests.cluster.stand import Stand, note


async def test_a_session_that_cannot_move_is_read_elsewhere_and_its_prompts_are_refused(stand: Stand) -> None:
    a = stand.hubs[0]
    async with (
        stand.another("far", "--label", "far") as far,
        members((far, "v2"), (a, "v2")) as (session_id, there),
    ):
        reading = there[1].sessions[session_id]
        there[1].prompt(session_id, "say from near", cancel_after=None)
        await there[1].finish()
        await there[0].leave()
        far.process.kill()
        began = time.monotonic()
        there[1].prompt(session_id, "say when it is gone", cancel_after=None)
        async with a.client() as late:
            loaded = await late.load_session(session_id, "/")
            assert [message.text for message in loaded.messages][-1] == "heard say from near"
        await there[1].finish()
        note(f"prompt without an owner refused after {time.monotonic() - began:.1f} s")
        assert there[1].outcomes["say when it is gone"] == "failed: owner_unreachable"
        await rests(reading)
        assert await stand.owner(session_id) is None


async def test_a_session_that_can_move_is_taken_over_by_a_hub_with_another_label(stand: Stand) -> None:
    a = stand.hubs[0]
    async with (
        stand.another("moving", "--label", "far", "--movable") as far,
        members((far, "v2"), (a, "v2")) as (session_id, there),
    ):
        there[1].prompt(session_id, "wait", cancel_after=None)
        await says(there[1].sessions[session_id], "waiting")
        await there[0].leave()
        far.process.kill()
        await there[1].finish()
        assert there[1].outcomes["wait"] == "failed: interrupted"
        there[1].prompt(session_id, "say somewhere else", cancel_after=None)
        await there[1].finish()
        assert there[1].outcomes["say somewhere else"] == "end_turn"
        assert await stand.owner(session_id) is a
