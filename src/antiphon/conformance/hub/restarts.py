"""Scenarios about a hub that is killed and started again. The judge must have started it."""

from __future__ import annotations

from antiphon.conformance.hub.case import HubCase
from antiphon.conformance.hub.late_joiners import judge_replayed_ids
from antiphon.conformance.hub.shared_sessions import CHUNKS
from antiphon.conformance.hub.story import as_text, spoken
from antiphon.conformance.scenario import Collection

scenarios = Collection("restarts")


@scenarios.add("SESS-13", "SESS-22", "MSG-12")
async def killed_between_turns(case: HubCase) -> None:
    """After a kill and a restart, a client gets the session as it was, under the same ids."""
    hub = await case.another_hub()
    client = await case.client(place=hub)
    session = await client.new_session()
    turn = await case.begin_played(client, session, hub)
    for _ in range(CHUNKS):
        await turn.say()
    await turn.end()
    live = client.updates(session)
    accepted = client.link.recording.response_to(turn.prompt)
    assert accepted is not None
    await hub.kill()
    await hub.run()
    again = await case.client(place=hub)
    response = await case.attach(again, session)
    replay = [frame for frame in again.updates(session) if frame.index < response.index]
    if case.version == 2:
        judge_replayed_ids(case, [accepted, *live], replay)
        return
    expected, got = spoken(live), spoken(replay)
    case.decide.check(
        "SESS-13", expected == got,
        f"expected the whole conversation after a restart, {as_text(expected)}, got {as_text(got)}", *replay,
    )  # fmt: skip
