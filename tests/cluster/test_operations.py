"""What clients ask of a session that another hub owns is done there, and once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from antiphon.live.stored_session import read_session
from tests.agent.talk import Talk
from tests.cluster.members import agree, becomes, members, rests, says
from tests.cluster.stand import DEADLINE, ClusterHub, Stand, until
from tests.faults.hub_checks import Kept, read_kept

ASKING = {"_meta": {"antiphon": {"seq": True, "queueUpdates": True}}}


@asynccontextmanager
async def _by_hand(*hubs: ClusterHub) -> AsyncIterator[tuple[str, list[Talk]]]:
    """v2 clients by hand of one session, which the first one makes."""
    async with AsyncExitStack() as stack:
        talks = [await stack.enter_async_context(hub.talk(2, capabilities=ASKING)) for hub in hubs]
        made = await talks[0].call("new", "session/new", cwd="/", mcpServers=[])
        for talk in talks[1:]:
            await _join(talk, made["sessionId"])
        yield made["sessionId"], talks


async def _join(talk: Talk, session_id: str) -> None:
    await talk.call(f"join {session_id}", "session/resume", sessionId=session_id, cwd="/", mcpServers=[])


async def _kept(stand: Stand, session_id: str) -> Kept:
    async with stand.store() as store:
        return await read_kept(store, session_id)


async def _done(stand: Stand, session_id: str, operation_id: str) -> None:
    """Wait until an operation is done that changes nothing."""
    async with stand.store() as store, asyncio.timeout(DEADLINE):
        while True:
            if operation_id in (await read_session(store, session_id)).operations:
                return
            await asyncio.sleep(0.05)


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


# --- lost replies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["replies", "requests"])
async def test_operations_whose_requests_or_replies_are_lost_are_done_once(stand: Stand, lost: str) -> None:
    """A prompt, an edit of the queue, a cancel and an answer, each in a session of its own."""
    a, b, _ = stand.hubs
    async with a.talk(2, capabilities=ASKING) as here, b.talk(2, capabilities=ASKING) as there:
        prompt, edit, cancel, answer = [await _shared(here, there) for _ in range(4)]
        for session_id in (edit, cancel):
            here.prompt(session_id, session_id, f"wait {lost}")
            await here.answer_to(session_id)
        params = {"sessionId": edit, "content": _text("say queued")}
        entry = await there.call("inject", "_antiphon/inject", **params)
        here.prompt("ask", answer, "ask")
        asked = await there.request("session/request_permission")

        (b.proxy.lose_replies if lost == "replies" else b.proxy.lose_requests)(4)
        there.prompt("prompt", prompt, f"say lost {lost}")
        edited = {**params, "messageId": entry["messageId"], "content": _text(f"say edited {lost}")}
        there.send(id="edit", method="_antiphon/replace_inject", params=edited)
        there.send(method="session/cancel", params={"sessionId": cancel})
        chosen = {"outcome": "selected", "optionId": _options(asked)[0]}
        there.send(id=asked["id"], result={"outcome": chosen})
        await until(lambda: b.proxy.lost == 4)
        await there.answer_to("prompt")
        await there.answer_to("edit")
        await _seen(here, lambda frame: '"cancelled"' in json.dumps(frame) and cancel in json.dumps(frame))
        await _said(here, "allowed: True")

        here.send(method="session/cancel", params={"sessionId": edit})
        here.prompt("last", edit, "say last")
        await _said(here, "heard say last")
        await _said(here, f"heard say lost {lost}")
        queued = [(await _kept(stand, session_id)).queued for session_id in (prompt, edit, cancel, answer)]
        assert [dict(each) for each in queued] == [
            {f"say lost {lost}": 1},
            {f"wait {lost}": 1, "say queued": 1, "say last": 1},
            {f"wait {lost}": 1},
            {"ask": 1},
        ]
        heard = stand.heard_by_agents()
        assert heard.count(f"say lost {lost}") == heard.count(f"say edited {lost}") == 1
        ends = [update.get("stopReason") for update in (await _kept(stand, cancel)).updates.values()]
        assert ends.count("cancelled") == 1


async def _shared(here: Talk, there: Talk) -> str:
    """A session that one client makes and another one, at another hub, joins."""
    made = await here.call(f"new {len(here.seen)}", "session/new", cwd="/", mcpServers=[])
    session_id: str = made["sessionId"]
    await _join(there, session_id)
    return session_id


# --- the same thing at two hubs --------------------------------------------------------------------------


async def test_one_prompt_that_is_sent_to_two_hubs_under_one_operation_id_is_taken_once(
    stand: Stand,
) -> None:
    a, b, c = stand.hubs
    async with _by_hand(a, b, c) as (session_id, talks):
        for talk in talks:
            talk.prompt("p", session_id, "say only once", operationId="the-one")
        answers = [await talk.answer_to("p") for talk in talks]
        assert len({answer["result"]["messageId"] for answer in answers}) == 1
        for talk in talks:
            await _said(talk, "heard say only once")
        kept = await _kept(stand, session_id)
        assert kept.queued["say only once"] == 1
        assert stand.heard_by_agents().count("say only once") == 1


async def test_a_question_that_is_answered_at_two_hubs_has_one_answer(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with _by_hand(a, b, c) as (session_id, talks):
        talks[0].prompt("p", session_id, "ask")
        asked = [await talk.request("session/request_permission") for talk in talks]
        allow, reject = _options(asked[1])
        for talk, request, option in zip(talks[1:], asked[1:], (allow, reject), strict=True):
            talk.send(id=request["id"], result={"outcome": {"outcome": "selected", "optionId": option}})
        await _seen(talks[0], lambda frame: frame.get("method") == "$/cancel_request")
        said = [await _said(talk, "allowed: ") for talk in talks]
        assert len(set(said)) == 1
        await _kept(stand, session_id)  # each question was closed once


def _options(asked: dict[str, Any]) -> tuple[str, str]:
    by_kind = {option["kind"]: option["optionId"] for option in asked["params"]["options"]}
    return by_kind["allow_once"], by_kind["reject_once"]


async def _said(talk: Talk, text: str) -> str:
    """Wait for a message of the agent that contains a text, unless it has come already, and return it all."""

    def fits(frame: dict[str, Any]) -> bool:
        update = frame.get("params", {}).get("update", {})
        return update.get("sessionUpdate") == "agent_message" and text in str(update)

    found = await _seen(talk, fits)
    said: str = found["params"]["update"]["content"][0]["text"]
    return said


async def _seen(talk: Talk, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return next(filter(fits, talk.seen), None) or await talk.until(fits)


# --- everything else -------------------------------------------------------------------------------------


async def test_a_session_of_another_hub_is_listed_renamed_configured_and_annotated(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with members((a, "v2"), (b, "v2")) as (session_id, there):
        here, elsewhere = (each.sessions[session_id] for each in there)
        listed = [info.session_id async for info in there[1].client.list_sessions()]
        assert session_id in listed
        await elsewhere.set_title("chosen at another hub")
        await becomes(here, lambda: here.title == "chosen at another hub")
        await elsewhere.set_config("model", "large")
        await becomes(here, lambda: "large" in str(here.config["model"]))
        there[1].prompt(session_id, "say annotate me", cancel_after=None)
        await there[1].finish()
        message = elsewhere.messages[-1]
        await elsewhere.react(message, "👍")
        await becomes(here, lambda: len(here.fold.annotations) == 1)
        assert await stand.owner(session_id) is a


async def test_a_session_of_another_hub_is_forked_archived_and_deleted(stand: Stand) -> None:
    a, b, c = stand.hubs
    async with members((a, "v2"), (b, "v2")) as (session_id, there), c.client() as third:
        there[0].prompt(session_id, "say remember me", cancel_after=None)
        await there[0].finish()
        elsewhere = there[1].sessions[session_id]
        await rests(elsewhere)
        forked = await elsewhere.fork()
        assert [message.text for message in forked.messages] == ["say remember me", "heard say remember me"]
        assert await stand.owner(forked.id) is b
        await third.archive(session_id)
        assert session_id not in [info.session_id async for info in third.list_sessions()]
        await third.unarchive(session_id)
        await third.delete_session(session_id)
        for each in there:
            listed = [info.session_id async for info in each.client.list_sessions()]
            assert session_id not in listed
            assert forked.id in listed
        async with stand.store() as store:
            assert await store.get(session_id) is None


async def test_a_cancel_at_another_hub_ends_the_turn(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with members((a, "v1"), (b, "v2")) as (session_id, there):
        there[0].prompt(session_id, "wait", cancel_after=None)
        await says(there[1].sessions[session_id], "waiting")
        await there[1].sessions[session_id].cancel()
        async with asyncio.timeout(30):
            await there[0].finish()
        assert there[0].outcomes["wait"] == "cancelled"
        await agree(stand, session_id, there)


async def test_a_cancel_that_comes_late_does_not_hit_the_next_turn(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with a.talk(2, capabilities=ASKING) as here, b.talk(2, capabilities=ASKING) as there:
        session_id = await _shared(here, there)
        here.prompt("first", session_id, "wait")
        await _said(there, "waiting")
        b.proxy.lose_requests(1)
        ours = {"antiphon": {"operationId": "late"}}
        there.send(method="session/cancel", params={"sessionId": session_id, "_meta": ours})
        await until(lambda: b.proxy.lost == 1)  # b waits for a reply now, and sends it again then
        here.send(method="session/cancel", params={"sessionId": session_id})
        assert (await here.update("state_update", state="idle"))["stopReason"] == "cancelled"
        here.prompt("next", session_id, "ask")
        asked = await here.request("session/request_permission")
        await _done(stand, session_id, "late")
        chosen = {"outcome": "selected", "optionId": _options(asked)[0]}
        here.send(id=asked["id"], result={"outcome": chosen})
        assert (await here.update("state_update", state="idle"))["stopReason"] == "end_turn"


# --- prompts that are abandoned --------------------------------------------------------------------------


async def test_a_prompt_that_is_abandoned_on_its_way_does_not_run_at_the_next_owner(stand: Stand) -> None:
    a, b, _ = stand.hubs
    async with a.talk(2) as here, b.talk(2) as there:
        session_id = await _shared(here, there)
        b.proxy.lose_requests(1)
        there.prompt("p", session_id, "say what was abandoned")
        await until(lambda: b.proxy.lost == 1)  # b waits for a reply now, and would send it again
        await a.process.end()
        assert await stand.owned(session_id, not_by=a) is b
        there.send(method="$/cancel_request", params={"requestId": "p"})
        assert (await there.answer_to("p"))["error"]["code"] == -32800
        there.prompt("next", session_id, "say what is wanted")
        await _said(there, "heard say what is wanted")
        kept = await _kept(stand, session_id)
        assert dict(kept.queued) == {"say what is wanted": 1}
        assert "say what was abandoned" not in stand.heard_by_agents()
