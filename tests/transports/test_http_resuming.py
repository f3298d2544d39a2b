"""What a stream is given while its session's journal is gone through again."""

from __future__ import annotations

import json
from typing import Any

from tests.requirements.marks import requirement

from antiphon.remote.frames import outline
from antiphon.remote.stream_resume import StreamResume
from antiphon.transports.http.event_stream import Kind, Mark, Put

SINCE, NEWEST = Mark(10), Mark(20)


def frame(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def update(seq: int | None, part: int | None = None, *, kind: Kind = Kind.JOURNAL) -> Put:
    mark = None if seq is None else Mark(seq) if part is None else Mark(seq, part)
    return Put(frame(method="session/update", params={"at": [seq, part]}), kind, mark)


def answer(id: Any, seq: int | None = None) -> Put:
    return Put(frame(id=id, result={}), Kind.ANSWER, None if seq is None else Mark(seq))


def asked(id: Any) -> Put:
    return Put(frame(id=id, method="session/request_permission", params={}), Kind.ASKED)


def taken_back(id: Any) -> Put:
    return Put(frame(method="$/cancel_request", params={"requestId": id}), Kind.ASKED)


def given(resuming: StreamResume, *puts: Put) -> list[bytes]:
    return [each.frame for put in puts for each in resuming.take(put, outline(put.frame))]


def frames(*puts: Put) -> list[bytes]:
    return [put.frame for put in puts]


@requirement("HTTP-20")
def test_what_the_old_attachment_still_writes_comes_once() -> None:
    resuming = StreamResume(SINCE, NEWEST, [])
    assert given(resuming, update(21), update(22), update(None)) == []
    again = [update(seq) for seq in range(11, 24)]
    assert given(resuming, *again) == frames(*again)
    assert resuming.finish() == []


@requirement("HTTP-20")
def test_what_the_client_has_of_an_event_is_not_told_again() -> None:
    resuming = StreamResume(Mark(11, 0), NEWEST, [])
    assert json.loads(resuming.request("s"))["params"]["after"] == 10
    again = [update(11, 0), update(11, 1), update(11), update(12)]
    assert given(resuming, *again) == frames(*again[1:])
    assert given(resuming, update(12)) == [], "the state that closes a replay is that of its last event"


@requirement("HTTP-20")
def test_an_answer_stands_where_it_stood() -> None:
    early, late = answer("early", 12), answer("late", 20)
    resuming = StreamResume(SINCE, NEWEST, [early, late])
    again = [update(seq) for seq in (11, 12, 13, 20)]
    assert given(resuming, *again) == frames(*again[:2], early, *again[2:])
    assert frames(*resuming.finish()) == frames(late)


@requirement("HTTP-20")
def test_an_answer_of_the_old_attachment_waits_for_what_it_belongs_behind() -> None:
    resuming = StreamResume(SINCE, NEWEST, [])
    end = answer("p")
    assert given(resuming, update(21), end) == []
    again = [update(seq) for seq in (20, 21, 22)]
    assert given(resuming, *again) == frames(again[0], again[1], end, again[2])


@requirement("HTTP-20")
def test_the_end_of_a_turn_is_told_as_it_was() -> None:
    kept = update(15, kind=Kind.ANSWER)
    resuming = StreamResume(SINCE, NEWEST, [kept, answer("p", 15)])
    again = [update(14), Put(b"another", Kind.ANSWER, Mark(15)), update(16)]
    assert given(resuming, *again) == frames(again[0], kept, answer("p"), again[2])
    new = update(21, kind=Kind.ANSWER)
    assert given(resuming, new) == frames(new)


@requirement("HTTP-20")
def test_where_nothing_goes_back_nothing_is_lost() -> None:
    resuming = StreamResume(SINCE, SINCE, [answer("p", 10)])
    held = [update(11), update(12)]
    assert given(resuming, *held) == []
    assert frames(*resuming.finish()) == frames(answer("p", 10), *held)


@requirement("HTTP-20")
def test_a_question_that_was_never_read_is_not_taken_back() -> None:
    resuming = StreamResume(SINCE, NEWEST, [asked(1), asked(2), asked(3), taken_back(2)])
    assert given(resuming, taken_back(1), taken_back(7)) == frames(taken_back(7))
    assert given(resuming, update(11)) == frames(asked(3), update(11))
    assert given(resuming, taken_back(3)) == frames(taken_back(3)), "by now it may have been read"


@requirement("HTTP-20")
def test_what_begins_anew_takes_along_what_was_not_given() -> None:
    first = StreamResume(SINCE, NEWEST, [asked(1), answer("a", 12), answer("b", 19)])
    given(first, update(11), update(12), update(13))
    assert first.remaining() == [answer("b", 19)], "the stream itself has kept the rest"
