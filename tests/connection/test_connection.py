"""A connection survives its peer: errors, cancellation, garbage, the opening and the end."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from antiphon.connection import Connection, ConnectionOptions, Role, receiver
from antiphon.connection.receiver import MAX_ANSWERED_FAULTS
from antiphon.errors import (
    CallFailed,
    InvalidParams,
    InvalidResult,
    LinkLost,
    LocalError,
    RemoteError,
    RequestError,
)
from antiphon.jsonrpc.peer import Inbound
from antiphon.schema import v1
from antiphon.transports.memory import memory_pair
from tests.connection.scripted import (
    BOTH_SHAPES,
    DEADLINE,
    V1_ANSWER,
    V2_ANSWER,
    Scripted,
    accept_any,
    agent,
    client,
)
from tests.requirements.marks import requirement

NEW = {"cwd": "/", "mcpServers": []}


async def new_session(params: Any, inbound: Inbound) -> Any:
    return v1.NewSessionResponse(session_id="s1")


@requirement("RPC-18", "RPC-19", "RPC-20")
async def test_unknown_requests_are_refused_notifications_ignored_and_it_goes_on() -> None:
    async with agent(requests={"session/new": new_session}) as (_, other):
        for method in ("session/nonsense", "_mine/thing", "fs/read_text_file", "session/prompt"):
            answer = await other.request(method, method, {"sessionId": "s"})
            assert answer["error"]["code"] == -32601, method
        other.send(method="session/nonsense")
        other.send(method="_mine/thing")
        other.send(method="$/unknown", params={"x": 1})  # RPC-30
        assert (await other.request(1, "session/new", NEW))["result"] == {"sessionId": "s1"}


@requirement("RPC-10", "RPC-11", "RPC-14")
@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"garbage on stdout", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"s":"\xff"}}', -32700),
        (b"42", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/new"}]', -32600),
        (b"[]", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600),
    ],
)
async def test_garbage_is_answered_under_null_and_the_connection_lives(frame, code) -> None:
    async with agent(requests={"session/new": new_session}) as (_, other):
        other.raw(frame)
        answer = await other.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, code)
        assert (await other.request(1, "session/new", NEW))["result"] == {"sessionId": "s1"}


@requirement("RPC-10")
async def test_a_peer_that_prints_what_it_reads_is_not_answered_for_ever() -> None:
    async with agent(requests={"session/new": new_session}) as (_, other):
        for _ in range(MAX_ANSWERED_FAULTS + 50):
            other.raw(b"DEBUG read something")
        other.send(id=1, method="session/new", params=NEW)
        answers = [await other.receive() for _ in range(MAX_ANSWERED_FAULTS + 1)]
        assert [answer["id"] for answer in answers] == [None] * MAX_ANSWERED_FAULTS + [1]


@requirement("RPC-12")
async def test_stray_responses_and_a_lone_surrogate_are_survived() -> None:
    async with agent(requests={"session/new": new_session}) as (_, other):
        other.send(id=99, result={})
        other.send(id=None, error={"code": -32700, "message": "what?"})
        other.raw(
            rb'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/\ud83d","mcpServers":[]}}'
        )
        assert (await other.receive())["result"] == {"sessionId": "s1"}


async def test_a_peer_with_too_many_requests_without_an_answer_is_refused_more_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver, "MAX_UNANSWERED", 3)
    answered = asyncio.Event()

    async def later(params: Any, inbound: Inbound) -> Any:
        assert inbound.params is None, "what was read is not kept until the answer"
        await answered.wait()
        return v1.NewSessionResponse(session_id="s1")

    async with agent(requests={"session/new": later}) as (_, other):
        for id in range(4):
            other.send(id=id, method="session/new", params=NEW)
        refused = await other.receive()
        data = {"reason": "limit", "limit": "requests", "most": 3}
        assert (refused["id"], refused["error"]["code"], refused["error"]["data"]) == (3, -32004, data)
        answered.set()
        assert sorted([(await other.receive())["id"] for _ in range(3)]) == [0, 1, 2]
        assert "result" in await other.request(4, "session/new", NEW)


@requirement("RPC-06")
async def test_a_duplicate_id_is_refused_and_the_first_request_still_answered() -> None:
    gate = asyncio.Event()

    async def slow(params: Any, inbound: Inbound) -> Any:
        await gate.wait()
        return await new_session(params, inbound)

    async with agent(requests={"session/new": slow}) as (_, other):
        other.send(id=5, method="session/new", params=NEW)
        other.send(id=5, method="session/new", params=NEW)
        refused = await other.receive()
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        gate.set()
        assert (await other.receive())["id"] == 5


@requirement("RPC-38")
async def test_a_frame_over_the_bound_gives_one_clear_error_and_the_connection_lives() -> None:
    ours, theirs = memory_pair(bound=1000)
    other = Scripted(theirs)
    async with Connection(
        ours, role=Role.AGENT, on_initialize=accept_any, requests={"session/new": new_session}
    ):
        await other.request(1, "initialize", BOTH_SHAPES)
        other.send(id=2, method="session/new", params={**NEW, "_meta": {"x": "y" * 2000}})
        refused = await other.receive()
        assert (refused["id"], refused["error"]["code"]) == (2, -32004)
        assert "over the bound of 1000" in refused["error"]["message"]
        assert refused["error"]["data"] == {"reason": "limit", "limit": "frame", "most": 1000}
        assert "result" in await other.request(3, "session/new", NEW)


@requirement("RPC-21", "RPC-22")
@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ValueError("password=hunter2"), -32603, "Internal error"),
        (LocalError("/home/me/secret"), -32603, "Internal error"),
        (CallFailed("x", RequestError(1, "inner").to_wire()), -32603, "Internal error"),
        (InvalidParams("`cwd` is not absolute"), -32602, "Invalid params: `cwd` is not absolute"),
        (RequestError(-32000, "Log in\nfirst"), -32000, "Log in first"),
    ],
)
async def test_an_exception_becomes_a_wire_error_that_leaks_nothing(error, code, told, caplog) -> None:
    async def fail(params: Any, inbound: Inbound) -> Any:
        raise error

    with caplog.at_level(logging.CRITICAL):
        async with agent(requests={"session/new": fail}) as (_, other):
            answer = await other.request(1, "session/new", NEW)
            assert answer["error"] == {"code": code, "message": told}


@requirement("EXT-04")
async def test_meta_cannot_override_a_validated_field() -> None:
    seen: list[Any] = []

    async def note(params: v1.NewSessionRequest, inbound: Inbound) -> Any:
        seen.append(params)
        return await new_session(params, inbound)

    async with agent(requests={"session/new": note}) as (_, other):
        await other.request(
            1, "session/new", {**NEW, "_meta": {"cwd": "/etc", "mcp_servers": None, "session_id": "x"}}
        )
        assert seen[0].cwd == "/"
        assert seen[0].meta == {"cwd": "/etc", "mcp_servers": None, "session_id": "x"}
        bad = await other.request(2, "session/new", {"_meta": {"cwd": "/etc"}, "mcpServers": []})
        assert bad["error"]["code"] == -32602


@requirement("RPC-31")
async def test_a_cancelled_request_is_answered_with_32800_or_with_its_partial_result() -> None:
    async def obey(params: Any, inbound: Inbound) -> Any:
        await asyncio.Event().wait()

    async def finish(params: Any, inbound: Inbound) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"partial": True}

    async def stumble(params: Any, inbound: Inbound) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the model's library") from None

    async with agent(requests={"_obey": obey, "_finish": finish, "_stumble": stumble}) as (_, other):
        for n, method in enumerate(("_obey", "_finish", "_stumble")):
            other.send(id=n, method=method)
            other.send(method="$/cancel_request", params={"requestId": n})
        answers = {frame["id"]: frame for frame in [await other.receive() for _ in range(3)]}
        assert answers[0]["error"]["code"] == -32800
        assert answers[1].get("result", {"partial": True}) == {"partial": True}
        assert answers[2]["error"]["code"] == -32800


@requirement("RPC-31")
async def test_a_handler_at_work_may_still_give_a_partial_result() -> None:
    started = asyncio.Event()

    async def finish(params: Any, inbound: Inbound) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"partial": True}

    async with agent(requests={"_finish": finish}) as (_, other):
        other.send(id=1, method="_finish")
        await asyncio.wait_for(started.wait(), DEADLINE)
        other.send(method="$/cancel_request", params={"requestId": 1})
        assert (await other.receive())["result"] == {"partial": True}


@requirement("RPC-32")
async def test_cancelling_a_request_cancels_the_calls_it_made() -> None:
    async with agent(requests={"_outer": lambda params, inbound: connection.call("_inner")}) as (
        connection,
        other,
    ):
        other.send(id="outer", method="_outer")
        inner = await other.expect("_inner")
        other.send(method="$/cancel_request", params={"requestId": "outer"})
        frames = [await other.receive(), await other.receive()]
        [cancel] = [frame for frame in frames if frame.get("method") == "$/cancel_request"]
        [answer] = [frame for frame in frames if frame.get("id") == "outer"]
        assert cancel["params"] == {"requestId": inner["id"]}
        assert answer["error"]["code"] == -32800
        other.send(id=inner["id"], result={"late": True})  # RPC-35: matched and dropped
        assert (await other.request(2, "_nothing"))["error"]["code"] == -32601


async def test_an_abandoned_call_tells_the_peer_and_its_late_answer_harms_nothing() -> None:
    async with client() as (connection, other):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connection.call("_slow")
        request = await other.expect("_slow")
        assert (await other.expect("$/cancel_request"))["params"] == {"requestId": request["id"]}
        other.send(id=request["id"], result={})
        asking = asyncio.ensure_future(connection.call("_next"))
        following = await other.expect("_next")
        assert following["id"] != request["id"]
        other.send(id=following["id"], result={"ok": True})
        assert await asking == {"ok": True}


@requirement("RPC-36")
async def test_when_the_link_dies_every_call_fails_alike_and_handlers_are_aborted() -> None:
    aborted = asyncio.Event()

    async def ask(params: Any, inbound: Inbound) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            aborted.set()

    async with client(requests={"_ask": ask}) as (connection, other):
        calls = [asyncio.ensure_future(connection.call("_a")) for _ in range(3)]
        for _ in calls:
            await other.receive()
        other.send(id=1, method="_ask")
        other.send(id=2, method="_unknown")
        await other.receive()
        await other.transport.aclose()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, LinkLost) for result in results)
        assert len({str(result) for result in results}) == 1
        await asyncio.wait_for(aborted.wait(), DEADLINE)
        with pytest.raises(LinkLost):
            await connection.call("_b")
        with pytest.raises(LinkLost):
            await connection.notify("_b")
        assert (await connection.wait_closed()).reason == "closed by the other side"


async def test_errors_of_the_peer_are_raised_and_results_that_do_not_fit_too() -> None:
    async with client() as (connection, other):
        asking = asyncio.ensure_future(
            connection.call("session/new", v1.NewSessionRequest(cwd="/", mcp_servers=[]))
        )
        request = await other.receive()
        other.send(id=request["id"], error={"code": -32000, "message": "log in", "data": {"a": 1}})
        with pytest.raises(CallFailed) as caught:
            await asking
        assert (caught.value.error.code, caught.value.data) == (-32000, {"a": 1})
        asking = asyncio.ensure_future(
            connection.call("session/new", v1.NewSessionRequest(cwd="/", mcp_servers=[]))
        )
        request = await other.receive()
        other.send(id=request["id"], result={"sessionId": 7})
        with pytest.raises(InvalidResult):
            await asking


async def test_the_bodys_own_exception_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with client():
            raise ZeroDivisionError


@requirement("RPC-13")
async def test_a_tap_sees_every_frame_both_ways_and_none_we_send_is_an_array() -> None:
    seen: list[tuple[str, Any]] = []
    async with agent(
        options=ConnectionOptions(tap=lambda way, frame: seen.append((way, json.loads(frame))))
    ) as (_, other):
        await other.request(1, "_x")
        other.raw(b'[{"jsonrpc":"2.0","id":2,"method":"_x"}]')
        await other.receive()
    assert [way for way, _ in seen] == ["in", "out"] * 3
    assert [frame["id"] for way, frame in seen if way == "out"] == ["init", 1, None]


# --- the opening ------------------------------------------------------------------------------------


@requirement("INIT-24", "INIT-25")
async def test_before_initialize_requests_are_refused_and_notifications_ignored() -> None:
    heard: list[Any] = []
    async with agent(
        None, requests={"session/new": new_session}, notifications={"session/cancel": heard.append}
    ) as (
        _,
        other,
    ):
        other.send(method="session/cancel", params={"sessionId": "s"})
        assert (await other.request(1, "session/new", NEW))["error"]["code"] == -32600
        assert (await other.request(2, "initialize", BOTH_SHAPES))["result"]["protocolVersion"] == 2
        assert (await other.request(3, "session/new", NEW))["result"] == {"sessionId": "s1"}
        assert heard == []


@requirement("INIT-24")
async def test_a_request_that_arrives_while_initialize_is_in_flight_is_refused() -> None:
    gate = asyncio.Event()

    async def slowly(offer: Any, params: Any) -> Any:
        await gate.wait()
        return offer.agree(), V2_ANSWER

    ours, theirs = memory_pair()
    other = Scripted(theirs)
    async with Connection(ours, role=Role.AGENT, on_initialize=slowly, requests={"session/new": new_session}):
        other.send(id=1, method="initialize", params=BOTH_SHAPES)
        for id, method in ((2, "session/new"), (3, "initialize")):
            assert (await other.request(id, method, NEW))["error"]["code"] == -32600
        gate.set()
        assert (await other.receive())["id"] == 1
        assert "result" in await other.request(4, "session/new", NEW)


@requirement("INIT-26", "INIT-27")
async def test_initialize_may_be_repeated_only_before_anything_else_and_not_downwards() -> None:
    async with agent(2, requests={"session/new": new_session}) as (connection, other):
        down = await other.request(1, "initialize", {**BOTH_SHAPES, "protocolVersion": 1})
        assert down["error"]["code"] == -32600
        assert connection.agreement is not None
        assert connection.agreement.version == 2
        assert "result" in await other.request(2, "initialize", BOTH_SHAPES)
        assert "result" in await other.request(3, "session/new", NEW)
        assert (await other.request(4, "initialize", BOTH_SHAPES))["error"]["code"] == -32600


@requirement("INIT-26")
async def test_a_failed_first_initialize_can_be_tried_again() -> None:
    async with agent(None) as (_, other):
        assert (await other.request(1, "initialize", {"protocolVersion": "two"}))["error"]["code"] == -32602
        assert (await other.request(2, "initialize", {"protocolVersion": 2}))["error"][
            "code"
        ] == -32602  # no info
        assert (await other.request(3, "initialize", {"protocolVersion": 0}))["error"]["code"] == -32022
        assert (await other.request(4, "initialize", BOTH_SHAPES))["result"]["protocolVersion"] == 2


@requirement("INIT-09")
async def test_what_a_newer_client_says_and_we_cannot_read_is_dropped() -> None:
    seen: list[Any] = []

    async def note(offer: Any, params: Any) -> Any:
        seen.append(params)
        return offer.agree(), V2_ANSWER

    ours, theirs = memory_pair()
    other = Scripted(theirs)
    async with Connection(ours, role=Role.AGENT, on_initialize=note):
        answer = await other.request(
            1, "initialize", {"protocolVersion": 65535, "info": 7, "capabilities": []}
        )
        assert answer["result"]["protocolVersion"] == 2
        assert (seen[0].info.name, seen[0].info.version) == ("unknown", "unknown")


@requirement("RPC-03")
async def test_null_ids_are_refused_once_v2_is_agreed_and_served_in_v1() -> None:
    for version, served in ((1, True), (2, False)):
        async with agent(version, requests={"session/new": new_session}) as (_, other):
            answer = await other.request(None, "session/new", NEW)
            assert ("result" in answer) is served


@requirement("INIT-07", "INIT-29")
async def test_what_stands_right_behind_the_answer_is_read_in_its_version() -> None:
    seen: list[Any] = []
    ours, theirs = memory_pair()
    other = Scripted(theirs)
    async with Connection(
        ours, role=Role.CLIENT, notifications={"session/update": seen.append}
    ) as connection:
        opening = asyncio.ensure_future(connection.initialize(BOTH_SHAPES))
        request = await other.expect("initialize")
        other.send(id=request["id"], result=V2_ANSWER)
        other.update("s", "at once", messageId="m")  # INIT-29
        result = await opening
        assert result.info.name == "agent"
        other.send(id=1, method="_sync")
        await other.receive()
        assert seen[0].update.message_id == "m"


@requirement("INIT-06")
async def test_an_answer_in_no_version_of_ours_is_an_error() -> None:
    ours, theirs = memory_pair()
    other = Scripted(theirs)
    async with Connection(ours, role=Role.CLIENT) as connection:
        opening = asyncio.ensure_future(connection.initialize(BOTH_SHAPES))
        request = await other.expect("initialize")
        other.send(id=request["id"], result={"protocolVersion": 9})
        with pytest.raises(RemoteError, match="version 9"):
            await opening
        with pytest.raises(LocalError, match="not initialized"):
            await connection.call("session/new")


async def test_an_agent_that_echoes_2_in_v1_shape_is_spoken_to_in_v1() -> None:
    async with client({**V1_ANSWER, "protocolVersion": 2}) as (connection, _):
        assert connection.agreement is not None
        assert connection.agreement.version == 1
