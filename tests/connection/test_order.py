"""The ordering rule: nothing of a session overtakes anything else of it, whatever the handlers do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from antiphon.connection import ConnectionOptions
from antiphon.errors import LaneMisuse, LaneOverflow, LinkLost
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1
from tests.connection.scripted import DEADLINE, V2_ANSWER, agent, client
from tests.requirements.marks import requirement


def prompt(session: str = "s", text: str = "hi") -> v1.PromptRequest:
    return v1.PromptRequest(session_id=session, prompt=[v1.TextContent(text=text)])


def text_of(params: Any) -> str:
    return params.update.content.text


@requirement("PROMPT-V1-04", "RPC-37")
async def test_slow_handlers_have_handled_everything_when_prompt_and_load_return() -> None:
    """1,000 updates whose handler takes 10 ms each, on two sessions at once."""
    handled: dict[str, list[str]] = {"prompted": [], "loaded": []}

    async def on_update(params: Any) -> None:
        await asyncio.sleep(0.01)
        handled[params.session_id].append(text_of(params))

    async with client(notifications={"session/update": on_update}) as (connection, other):
        prompting = asyncio.ensure_future(connection.call("session/prompt", prompt("prompted")))
        loading = asyncio.ensure_future(
            connection.call(
                "session/load", v1.LoadSessionRequest(session_id="loaded", cwd="/", mcp_servers=[])
            )
        )
        first, second = await other.expect("session/prompt"), await other.expect("session/load")
        for n in range(1000):
            other.update("prompted", str(n))
            other.update("loaded", str(n))
        other.send(id=first["id"], result={"stopReason": "end_turn"})
        other.send(id=second["id"], result={})
        expected = [str(n) for n in range(1000)]

        async def check(answer: asyncio.Future[Any], session: str) -> None:
            await answer
            assert handled[session] == expected

        async with asyncio.timeout(60):
            await asyncio.gather(check(prompting, "prompted"), check(loading, "loaded"))


@requirement("RPC-37")
async def test_a_fast_handler_never_overtakes_a_slow_one() -> None:
    order: list[str] = []

    async def on_update(params: Any) -> None:
        text = text_of(params)
        for _ in range(5 if text.startswith("slow") else 0):
            await asyncio.sleep(0)
        order.append(text)

    async with client(notifications={"session/update": on_update}) as (connection, other):
        asking = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        request = await other.expect("session/prompt")
        sent = [f"{'slow' if n % 3 else 'fast'} {n}" for n in range(100)]
        for text in sent:
            other.update("s", text)
        other.send(id=request["id"], result={"stopReason": "end_turn"})
        await asking
    assert order == sent


async def test_an_update_that_needs_repair_keeps_its_place() -> None:
    order: list[str] = []

    async with client(notifications={"session/update": lambda params: order.append(text_of(params))}) as (
        connection,
        other,
    ):
        asking = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        request = await other.expect("session/prompt")
        other.update("s", "1")
        other.update("s", "2", messageId=7)  # a malformed lenient field: the slow path
        other.update("s", "3")
        other.send(id=request["id"], result={"stopReason": "end_turn"})
        await asking
    assert order == ["1", "2", "3"]


async def test_a_lane_does_not_wait_for_another() -> None:
    release = asyncio.Event()
    seen: list[str] = []

    async def on_update(params: Any) -> None:
        if params.session_id == "blocked":
            await release.wait()
        seen.append(params.session_id)

    async with client(notifications={"session/update": on_update}) as (connection, other):
        asking = asyncio.ensure_future(connection.call("session/prompt", prompt("free")))
        request = await other.expect("session/prompt")
        other.update("blocked", "x")
        other.update("free", "x")
        other.send(id=request["id"], result={"stopReason": "end_turn"})
        await asking
        assert seen == ["free"]
        release.set()


async def test_prompt_then_cancel_a_thousand_times_is_never_inverted_and_never_hangs() -> None:
    log: list[str] = []
    running: dict[str, asyncio.Event] = {}

    async def on_prompt(params: v1.PromptRequest, inbound: Inbound) -> v1.PromptResponse:
        log.append(f"prompt {params.session_id}")
        cancelled = running[params.session_id] = asyncio.Event()
        await cancelled.wait()
        return v1.PromptResponse(stop_reason=v1.StopReason.CANCELLED)

    def on_cancel(params: v1.CancelNotification) -> None:
        log.append(f"cancel {params.session_id}")
        running[params.session_id].set()

    async with agent(requests={"session/prompt": on_prompt}, notifications={"session/cancel": on_cancel}) as (
        _,
        other,
    ):
        for n in range(1000):
            session = f"s{n % 7}"
            log.clear()
            other.send(
                id=n,
                method="session/prompt",
                params={"sessionId": session, "prompt": [{"type": "text", "text": "x"}]},
            )
            other.send(method="session/cancel", params={"sessionId": session})
            answer = await other.receive()
            assert (answer["id"], answer["result"]) == (n, {"stopReason": "cancelled"})
            assert log == [f"prompt {session}", f"cancel {session}"]


async def test_a_prompt_and_its_cancel_keep_their_order_also_behind_a_busy_lane() -> None:
    log: list[str] = []
    cancelled = asyncio.Event()

    async def slow(params: Any) -> None:
        await asyncio.sleep(0.01)
        log.append("slow")

    async def on_prompt(params: v1.PromptRequest, inbound: Inbound) -> v1.PromptResponse:
        log.append("prompt")
        await cancelled.wait()
        return v1.PromptResponse(stop_reason=v1.StopReason.CANCELLED)

    def on_cancel(params: v1.CancelNotification) -> None:
        log.append("cancel")
        cancelled.set()

    handlers: dict[str, Any] = {"_slow": slow, "session/cancel": on_cancel}
    async with agent(requests={"session/prompt": on_prompt}, notifications=handlers) as (_, other):
        other.send(method="_slow", params={"sessionId": "s"})
        prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}
        other.send(id=1, method="session/prompt", params=prompt)
        other.send(method="session/cancel", params={"sessionId": "s"})
        assert (await other.receive())["result"] == {"stopReason": "cancelled"}
    assert log == ["slow", "prompt", "cancel"]


async def test_a_stream_that_never_has_to_wait_can_still_be_cancelled() -> None:
    stopped = False

    async def on_prompt(params: v1.PromptRequest, inbound: Inbound) -> v1.PromptResponse:
        chunk = v1.AgentMessageChunk(content=v1.TextContent(text="x" * 1000))
        update = v1.SessionNotification(session_id=params.session_id, update=chunk)
        while not stopped:
            await connection.notify("session/update", update)
        return v1.PromptResponse(stop_reason=v1.StopReason.CANCELLED)

    def on_cancel(params: v1.CancelNotification) -> None:
        nonlocal stopped
        stopped = True

    handlers = {"session/cancel": on_cancel}
    async with agent(requests={"session/prompt": on_prompt}, notifications=handlers) as (connection, other):
        prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}
        other.send(id=1, method="session/prompt", params=prompt)
        await other.expect("session/update")
        other.send(method="session/cancel", params={"sessionId": "s"})
        while (frame := await other.receive()).get("id") != 1:
            assert frame["method"] == "session/update"
        assert frame["result"] == {"stopReason": "cancelled"}


async def test_updates_before_the_answer_to_new_are_handled_before_its_caller_wakes() -> None:
    seen: list[str] = []

    async def on_update(params: Any) -> None:
        await asyncio.sleep(0)
        seen.append(text_of(params))

    async with client(notifications={"session/update": on_update}) as (connection, other):
        making = asyncio.ensure_future(
            connection.call("session/new", v1.NewSessionRequest(cwd="/", mcp_servers=[]))
        )
        request = await other.expect("session/new")
        other.update("new", "early")
        other.send(id=request["id"], result={"sessionId": "new"})
        assert (await making).session_id == "new"
        assert seen == ["early"]


@pytest.mark.parametrize("how", ["directly", "in a task of its own"])
async def test_awaiting_a_prompt_inside_its_own_lane_raises_instead_of_hanging(how: str) -> None:
    caught: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async with client(notifications={"session/update": lambda params: on_update()}) as (connection, other):

        async def on_update() -> None:
            try:
                if how == "directly":
                    await connection.call("session/prompt", prompt())
                else:
                    await asyncio.gather(connection.call("session/prompt", prompt()))
            except LaneMisuse as error:
                caught.set_result(str(error))

        other.update("s", "x")
        async with asyncio.timeout(DEADLINE):
            assert "inside a handler of that session" in await caught


async def test_a_prompt_started_from_a_handler_and_awaited_elsewhere_works() -> None:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async with client(notifications={"session/update": lambda params: on_update()}) as (connection, other):

        async def on_update() -> None:
            connection.start_soon(prompt_later())
            await asyncio.sleep(0)

        async def prompt_later() -> None:
            ended.set_result(await connection.call("session/prompt", prompt()))

        other.update("s", "x")
        request = await other.expect("session/prompt")
        other.send(id=request["id"], result={"stopReason": "end_turn"})
        async with asyncio.timeout(DEADLINE):
            assert (await ended).stop_reason == "end_turn"


async def test_a_handler_may_call_the_peer_from_inside_a_full_lane() -> None:
    """Reading goes on, else the answer could never be read; but not without end."""
    results: list[Any] = []
    done = asyncio.Event()

    async with client(
        notifications={"session/update": lambda params: on_update(params)},
        options=ConnectionOptions(lane_bound=2000),
    ) as (
        connection,
        other,
    ):

        async def on_update(params: Any) -> None:
            if text_of(params) == "ask":
                results.append(await connection.call("_ask", {"n": 1}))
                done.set()

        other.update("s", "ask")
        request = await other.expect("_ask")
        for n in range(100):
            other.update("s", f"behind {n}")
            await asyncio.sleep(0)  # each in a read of its own, and the answer behind a full lane
        other.send(id=request["id"], result={"yes": True})
        async with asyncio.timeout(DEADLINE):
            await done.wait()
        assert results == [{"yes": True}]


async def test_a_handler_that_waits_while_too_much_piles_up_behind_it_is_told() -> None:
    caught: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async with client(
        notifications={"session/update": lambda params: on_update(params)},
        options=ConnectionOptions(lane_bound=1000),
    ) as (
        connection,
        other,
    ):

        async def on_update(params: Any) -> None:
            if text_of(params) == "ask":
                try:
                    await connection.call("_ask")
                except LaneOverflow as error:
                    caught.set_result(error)

        other.update("s", "ask")
        request = await other.expect("_ask")
        for n in range(1000):
            other.update("s", f"behind {n}")
        async with asyncio.timeout(DEADLINE):
            await caught
        cancel = await other.expect("$/cancel_request")
        assert cancel["params"] == {"requestId": request["id"]}


async def test_the_end_of_the_link_travels_in_the_lane_too() -> None:
    seen: list[str] = []

    async def on_update(params: Any) -> None:
        await asyncio.sleep(0.001)
        seen.append(text_of(params))

    async with client(notifications={"session/update": on_update}) as (connection, other):
        asking = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        await other.expect("session/prompt")
        for n in range(50):
            other.update("s", str(n))
        await other.transport.aclose()
        with pytest.raises(LinkLost):
            await asking
        assert seen == [str(n) for n in range(50)]


async def test_closing_wakes_a_caller_whose_answer_stands_behind_a_blocked_handler() -> None:
    blocked = asyncio.Event()

    async def on_update(params: Any) -> None:
        blocked.set()
        await asyncio.Event().wait()

    async with client(notifications={"session/update": on_update}) as (connection, other):
        answered = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        request = await other.expect("session/prompt")
        unanswered = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        await other.expect("session/prompt")
        other.update("s", "x")
        other.send(id=request["id"], result={"stopReason": "end_turn"})
        await blocked.wait()
        await connection.aclose()
        async with asyncio.timeout(DEADLINE):
            assert (await answered).stop_reason == "end_turn"
            with pytest.raises(LinkLost):
                await unanswered


async def test_a_handler_that_fails_or_is_cancelled_from_within_does_not_stop_its_lane() -> None:
    seen: list[str] = []

    async def on_update(params: Any) -> None:
        text = text_of(params)
        seen.append(text)
        if text == "raise":
            raise ValueError("a private matter")
        if text == "cancelled":
            raise asyncio.CancelledError

    async with client(notifications={"session/update": on_update}) as (connection, other):
        asking = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        request = await other.expect("session/prompt")
        for text in ("raise", "cancelled", "after"):
            other.update("s", text)
        other.send(id=request["id"], result={"stopReason": "end_turn"})
        await asking
    assert seen == ["raise", "cancelled", "after"]


@requirement("PROMPT-V2-29")
async def test_updates_of_v2_arrive_typed_and_in_order_before_and_after_the_answer() -> None:
    seen: list[str] = []

    async with client(
        V2_ANSWER, notifications={"session/update": lambda params: seen.append(text_of(params))}
    ) as (
        connection,
        other,
    ):
        asking = asyncio.ensure_future(connection.call("session/prompt", prompt()))
        request = await other.expect("session/prompt")
        other.update("s", "before", messageId="m")
        other.send(id=request["id"], result={"messageId": "u"})
        other.update("s", "after", messageId="m")
        assert (await asking).message_id == "u"
        other.send(id=1, method="_sync")
        await other.receive()
    assert seen == ["before", "after"]
