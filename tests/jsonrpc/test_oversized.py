"""The id of a frame that was too large to be kept, out of its first and last bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from antiphon.jsonrpc.frames import Request, decode
from antiphon.jsonrpc.oversized import HEAD, TAIL, OversizedFrame, describe_oversized, failure_of
from antiphon.jsonrpc.peer import Fault, Peer

BIG = "x" * 10_000
HOSTILE = '","id":5}' * 2000 + "}]}" * 100
"""A text that looks like the end of a frame, again and again."""


def of(frame: bytes) -> OversizedFrame:
    return describe_oversized(frame[:HEAD], frame[-TAIL:], size=len(frame), bound=100)


def frame(*members: tuple[str, Any], compact: bool = True) -> bytes:
    return json.dumps(dict(members), separators=(",", ":") if compact else None).encode()


PARAMS = ("params", {"sessionId": "s", "prompt": [{"type": "text", "text": BIG}], "id": 5})
METHOD = ("method", "session/prompt")
RPC = ("jsonrpc", "2.0")


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("id", [7, "7", -1, 2.5, 'a"b\\', "é", "{"])
@pytest.mark.parametrize("order", ["head", "tail", "middle"])
def test_the_id_is_found_wherever_it_stands(id: Any, order: str, compact: bool) -> None:
    named = ("id", id)
    members = {
        "head": [RPC, named, METHOD, PARAMS],
        "tail": [RPC, METHOD, PARAMS, named],
        "middle": [PARAMS, named, RPC, METHOD],
    }[order]
    assert of(frame(*members, compact=compact)) == OversizedFrame(
        len(frame(*members, compact=compact)), 100, id, answers=False
    )


@pytest.mark.parametrize("kind", ["result", "error"])
@pytest.mark.parametrize("first", [True, False])
def test_a_response_is_told_from_a_request(kind: str, first: bool) -> None:
    value = (kind, {"data": BIG, "method": "no"})
    members = [RPC, ("id", 3), value] if first else [RPC, value, ("id", 3)]
    found = of(frame(*members))
    assert (found.id, found.answers) == (3, True)


@pytest.mark.parametrize(
    "members",
    [
        [RPC, METHOD, PARAMS],
        [RPC, METHOD, PARAMS, ("id", None)],
        [RPC, METHOD, PARAMS, ("id", True)],
        [RPC, METHOD, PARAMS, ("id", [1])],
        [RPC, METHOD, ("params", {"text": HOSTILE})],
        [RPC, METHOD, ("params", [HOSTILE, {"id": 5}])],
        [RPC, METHOD, ("params", HOSTILE)],
        [RPC, METHOD, ('a","id":5,"b', BIG)],
    ],
)
def test_what_is_no_id_of_the_frame_is_not_taken_for_one(members: Any) -> None:
    for compact in (True, False):
        assert of(frame(*members, compact=compact)).id is UNSET


@pytest.mark.parametrize(
    "data", [b"", b"[" * 9000, b"x" * 9000, b"{" * 9000, b'{"id":7' * 2000, b"\xff" * 9000]
)
def test_what_is_no_frame_has_none(data: bytes) -> None:
    assert of(data).id in (UNSET, 7)


@pytest.mark.parametrize("id", [r"\ud83d", r"a\udc00b"])
@pytest.mark.parametrize("order", ["head", "tail"])
def test_an_id_that_cannot_be_encoded_is_answered_as_it_is_read_elsewhere(id: str, order: str) -> None:
    def request(params: str) -> bytes:
        head, tail = (f'"id":"{id}",', "") if order == "head" else ("", f',"id":"{id}"')
        return f'{{"jsonrpc":"2.0",{head}"method":"m","params":{params}{tail}}}'.encode()

    small = decode(request("{}"))
    assert isinstance(small, Request)
    assert json.loads(failure_of(of(request(f'"{BIG}"'))))["id"] == small.id
    (fault,) = Peer().receive(request("[" * 300 + "]" * 300))
    assert isinstance(fault, Fault)
    assert fault.reply is not None
    assert json.loads(fault.reply)["id"] == small.id


TEXT = st.text(max_size=30)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v),
)


@given(
    st.permutations(["jsonrpc", "id", "method", "params"]),
    st.integers() | st.text(max_size=20),
    VALUE,
    st.booleans(),
    st.integers(1, 60),
    st.integers(0, 60),
)
def test_no_other_id_is_ever_found(
    order: Any, id: Any, value: Any, ascii: bool, head: int, tail: int
) -> None:
    """Whatever is cut off: the id that is found is the one of the frame, or none."""
    members = {"jsonrpc": "2.0", "id": id, "method": "m", "params": {"id": 12345678, "x": value}}
    data = json.dumps({name: members[name] for name in order}, ensure_ascii=ascii).encode()
    found = describe_oversized(data[:head], data[len(data) - tail :], size=len(data), bound=1).id
    assert found is UNSET or (found == id and type(found) is type(id))
