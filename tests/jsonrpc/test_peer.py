"""The peer: both id spaces, both roles, and nothing a peer sends can break it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.requirements.marks import requirement

from antiphon.errors import ErrorObject, LocalError
from antiphon.jsonrpc.frames import Notification
from antiphon.jsonrpc.oversized import OversizedFrame
from antiphon.jsonrpc.peer import Answered, CancelAsked, Fault, Inbound, Peer


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def only(events: list[Any]) -> Any:
    assert len(events) == 1, events
    return events[0]


def called(peer: Peer, frame: bytes) -> Any:
    event = only(peer.receive(frame))
    assert isinstance(event, Inbound), event
    return event


def refusal(events: list[Any]) -> dict[str, Any]:
    event = only(events)
    assert isinstance(event, Fault)
    assert event.reply is not None
    return json.loads(event.reply)


def test_a_call_goes_out_and_its_answer_comes_back() -> None:
    one, other = Peer(), Peer()
    call, frame = one.call("m", b'{"a":1}')
    inbound = called(other, frame)
    answer = other.answer(inbound, b'{"b":2}')
    assert answer is not None
    event = only(one.receive(answer))
    assert isinstance(event, Answered)
    assert event.call is call
    assert bytes(event.result or b"") == b'{"b":2}'
    assert event.error is None


@requirement("RPC-12")
@pytest.mark.parametrize(
    "members", [{"result": {}, "error": {"code": 1, "message": "x"}}, {}], ids=["both", "neither"]
)
def test_a_malformed_response_fails_the_call_it_names(members: dict[str, Any]) -> None:
    """No other answer will come: whoever waits for it is not left waiting."""
    peer = Peer()
    call, _ = peer.call("m", b"{}")
    event = only(peer.receive(line(id=call.id, **members)))
    assert isinstance(event, Answered)
    assert event.call is call
    assert event.error is not None
    assert "`result`" in event.error.message
    assert isinstance(only(peer.receive(line(id=call.id, **members))), Fault)  # it has been answered


@requirement("RPC-07")
def test_the_same_id_may_be_live_both_ways() -> None:
    one, other = Peer(), Peer()
    first, to_other = one.call("a", b"{}")
    second, to_one = other.call("b", b"{}")
    assert first.id == second.id
    at_other, at_one = called(other, to_other), called(one, to_one)
    answer_b = one.answer(at_one, b'"to b"')
    answer_a = other.answer(at_other, b'"to a"')
    assert only(one.receive(answer_a or b"")).call is first
    assert only(other.receive(answer_b or b"")).call is second


@requirement("RPC-05")
@pytest.mark.parametrize("id", [1, "1", None, 1.5])
def test_the_answer_repeats_the_id_exactly(id) -> None:
    peer = Peer()
    answer = peer.answer(called(peer, line(id=id, method="m")), b"{}")
    assert json.loads(answer or b"") == {"jsonrpc": "2.0", "id": id, "result": {}}


@requirement("RPC-05")
def test_a_number_and_its_string_are_two_requests() -> None:
    peer = Peer()
    number, text = called(peer, line(id=1, method="a")), called(peer, line(id="1", method="b"))
    assert json.loads(peer.answer(text, b"{}") or b"")["id"] == "1"
    assert json.loads(peer.answer(number, b"{}") or b"")["id"] == 1


@requirement("RPC-04")
@pytest.mark.parametrize("id", [None, 1.5])
def test_v2_refuses_an_unusable_id_under_null(id) -> None:
    peer = Peer()
    peer.strict_ids = True
    reply = refusal(peer.receive(line(id=id, method="m")))
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


@requirement("RPC-06")
def test_a_second_request_under_a_live_id_is_refused_and_the_first_unharmed() -> None:
    peer = Peer()
    first = called(peer, line(id=7, method="a"))
    reply = refusal(peer.receive(line(id=7, method="b")))
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)
    assert json.loads(peer.answer(first, b"1") or b"")["result"] == 1
    assert called(peer, line(id=7, method="c")).method == "c"


@requirement("RPC-09", "RPC-10", "RPC-11")
@pytest.mark.parametrize(
    ("frame", "code"),
    [(b"nonsense", -32700), (b"42", -32600), (b"[]", -32600), (OversizedFrame(9, 8), -32004)],
)
def test_what_cannot_be_read_is_answered_under_null(frame, code) -> None:
    reply = refusal(Peer().receive(frame))
    assert (reply["id"], reply["error"]["code"]) == (None, code)
    assert "\n" not in reply["error"]["message"]


@requirement("RPC-12")
def test_responses_are_never_answered() -> None:
    peer = Peer()
    for frame in (
        line(id=99, result={}),
        line(id=1),
        line(result=1),
        line(id=None, error={"code": 1, "message": ""}),
    ):
        event = only(peer.receive(frame))
        assert isinstance(event, Fault)
        assert event.reply is None


@requirement("RPC-08")
def test_a_notification_is_an_event_and_nothing_is_sent() -> None:
    event = only(Peer().receive(line(method="m", params={})))
    assert isinstance(event, Notification)


@requirement("RPC-14")
def test_an_array_gets_one_refusal_and_none_of_it_runs() -> None:
    peer = Peer()
    reply = refusal(peer.receive(json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "m"}] * 2).encode()))
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


@requirement("RPC-16")
def test_an_empty_array_gets_a_single_object() -> None:
    reply = refusal(Peer().receive(b"[]"))
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


@requirement("RPC-28", "RPC-31")
def test_a_cancel_reaches_the_request_and_the_request_is_still_answered() -> None:
    one, other = Peer(), Peer()
    call, frame = one.call("m", b"{}")
    inbound = called(other, frame)
    cancel = one.cancel(call)
    assert one.cancel(call) is None
    event = only(other.receive(cancel or b""))
    assert isinstance(event, CancelAsked)
    assert event.inbound is inbound
    assert inbound.cancelled
    failure = other.fail(inbound, ErrorObject(-32800, "Request cancelled"))
    answered = only(one.receive(failure or b""))
    assert answered.error.code == -32800


@requirement("RPC-29")
def test_a_cancel_only_matches_requests_of_its_sender() -> None:
    peer = Peer()
    call, _ = peer.call("m", b"{}")
    event = only(peer.receive(line(method="$/cancel_request", params={"requestId": call.id})))
    assert isinstance(event, Fault)
    assert event.reply is None
    assert not call.abandoned


@requirement("RPC-33")
def test_a_late_cancel_and_a_malformed_one_are_ignored() -> None:
    peer = Peer()
    peer.answer(called(peer, line(id=1, method="m")), b"{}")
    for params in ({"requestId": 1}, {"requestId": "1"}, {}, {"requestId": []}):
        event = only(peer.receive(line(method="$/cancel_request", params=params)))
        assert isinstance(event, Fault)
        assert event.reply is None


@requirement("RPC-35")
def test_an_abandoned_call_keeps_its_id_until_its_late_answer_is_dropped() -> None:
    peer = Peer()
    call, _ = peer.call("m", b"{}")
    assert peer.abandon(call) is not None
    event = only(peer.receive(line(id=call.id, result={})))
    assert isinstance(event, Fault)
    other, _ = peer.call("m", b"{}")
    assert other.id != call.id


@requirement("RPC-36")
def test_closing_names_every_call_to_fail_and_every_request_to_abort() -> None:
    peer = Peer()
    waiting, _ = peer.call("a", b"{}")
    given_up, _ = peer.call("b", b"{}")
    peer.abandon(given_up)
    inbounds = [called(peer, line(id=1, method="m")), called(peer, line(id=None, method="m"))]
    assert peer.close() == ([waiting], inbounds)
    assert peer.close() == ([], [])


def test_answering_twice_is_our_own_fault() -> None:
    peer = Peer()
    inbound = called(peer, line(id=1, method="m"))
    peer.answer(inbound, b"{}")
    with pytest.raises(LocalError):
        peer.fail(inbound, ErrorObject(1, "x"))


def test_blank_frames_are_nothing() -> None:
    assert Peer().receive(b"   ") == []


@requirement("RPC-38")
@pytest.mark.parametrize("id", [7, "7"])
def test_a_request_over_the_bound_is_answered_under_its_own_id(id) -> None:
    peer = Peer()
    fault = only(peer.receive(OversizedFrame(9, 8, id)))
    assert isinstance(fault, Fault)
    assert fault.due
    reply = json.loads(fault.reply)
    assert (reply["id"], reply["error"]["code"]) == (id, -32004)
    assert reply["error"]["data"] == {"reason": "limit", "limit": "frame", "most": 8}


@requirement("RPC-06")
def test_not_under_an_id_that_is_still_in_use() -> None:
    peer = Peer()
    peer.receive(line(id=7, method="m"))
    fault = only(peer.receive(OversizedFrame(9, 8, 7)))
    assert json.loads(fault.reply)["id"] is None


@requirement("RPC-38")
def test_an_answer_over_the_bound_fails_its_call() -> None:
    peer = Peer()
    call, _ = peer.call("m", b"{}")
    event = only(peer.receive(OversizedFrame(9, 8, call.id, answers=True)))
    assert isinstance(event, Answered)
    assert event.error is not None
    assert event.error.code == -32004
    again = only(peer.receive(OversizedFrame(9, 8, call.id, answers=True)))
    assert isinstance(again, Fault)
    assert again.reply is None


def deep(levels: int = 5000) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_a_request_that_is_nested_too_deep_is_answered_under_its_own_id() -> None:
    peer = Peer()
    first = b'{"jsonrpc":"2.0","id":"x","method":"m","params":%b}' % deep()
    last = b'{"params":%b,"jsonrpc":"2.0","method":"m","id":"x"}' % deep()
    for frame in (first, last):
        event = only(peer.receive(frame))
        assert event.due
        answer = json.loads(event.reply)
        assert (answer["id"], answer["error"]["code"]) == ("x", -32004)
        assert "128 levels" in answer["error"]["message"]
    assert not peer.close()[1], "nobody is to answer it again"


def test_a_notification_that_is_nested_too_deep_is_dropped_and_named() -> None:
    frame = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%b}}' % deep()
    event = only(Peer().receive(frame))
    assert isinstance(event, Fault)
    assert event.reply is None
    assert "'session/update' of session 's1'" in event.reason
    assert "128 levels" in event.reason


@pytest.mark.parametrize("member", [b"result", b"error"])
def test_a_response_that_is_nested_too_deep_fails_its_call(member: bytes) -> None:
    peer = Peer()
    call, _ = peer.call("m", b"{}")
    event = only(peer.receive(b'{"jsonrpc":"2.0","id":%d,"%b":%b}' % (call.id, member, deep())))
    assert isinstance(event, Answered)
    assert event.call is call
    assert event.error is not None
    assert "128 levels" in event.error.message


def test_what_cannot_be_told_is_refused_without_an_id() -> None:
    answer = refusal(Peer().receive(b"[" * 100_000))
    assert (answer["id"], answer["error"]["code"]) == (None, -32004)
