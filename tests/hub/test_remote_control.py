"""What clients ask of a session that another hub owns, while the session moves from hub to hub."""

from __future__ import annotations

import asyncio

from msgspec import Raw

from antiphon.hub.cluster.messages import NOT_OWNED, Asked, Reply
from antiphon.hub.cluster.remote_control import RemoteControl, Send, TakeOver
from antiphon.live.followed_session import FollowedSession
from antiphon.live.session import LiveSession
from antiphon.schema.antiphon.prompts import Delivery
from antiphon.server.control.operations import Submit
from antiphon.server.tasks import Tasks
from antiphon.stores import MemoryStore

DEADLINE = 10.0
PROMPT = Submit(message_id="msg_1", content=Raw(b"[]"), delivery=Delivery.QUEUE)


async def test_a_prompt_is_submitted_though_the_session_was_taken_over_and_lost_again_meanwhile() -> None:
    store, tasks, asked_for = MemoryStore(), Tasks("the test", grace=1.0), list[Asked]()
    await LiveSession.create(store, session_id="a", cwd="/", clock=lambda: 0)

    async def control(send: Send, take_over: TakeOver) -> RemoteControl:
        feed = await FollowedSession.open(store, "a", clock=lambda: 0)
        return RemoteControl(
            feed, send, take_over, tasks, patience=DEADLINE, label="here", home=None, introduction={}
        )

    async def owner(asked: Asked) -> Reply:
        asked_for.append(asked)
        return Reply(result=Raw(b'"msg_1"'))

    async def no_owner(_: Asked) -> Reply:
        return NOT_OWNED

    async def not_needed() -> None:
        raise AssertionError("the session has an owner")

    followed_again = await control(owner, not_needed)

    async def was_faster() -> RemoteControl:
        return followed_again

    followed_before = await control(no_owner, was_faster)
    async with asyncio.timeout(DEADLINE):
        assert await followed_before.perform(PROMPT) == "msg_1"
    assert [(asked.session_id, asked.operation.message_id) for asked in asked_for] == [("a", "msg_1")]
    await tasks.aclose()
