"""Laws of the downgrade, by random streams: what is not reported as lost is there, and v1 always reads it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.bridge import diffs
from antiphon.bridge.dialects import V1Writer
from antiphon.bridge.downgrade import tools as downgrade_tools
from antiphon.bridge.losses import Loss
from antiphon.errors import InvalidParams
from antiphon.schema import v1
from antiphon.schema.version import OptIns
from antiphon.schema.wire import choose
from tests.bridge.v1_client import V1Client, joined
from tests.bridge.v2_client import V2Client
from tests.bridge.wire import b64, capabilities, check_v1, permission, plain, read, shown, text
from tests.requirements.marks import requirement
from tests.schema.strategies import Instances

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=6)
OUTPUT = st.text(st.sampled_from("aé€😀 \n"), max_size=30)
ROLES = st.sampled_from(["user", "agent", "thought"])
TAGS = {"user": "user_message", "agent": "agent_message", "thought": "agent_thought"}
CHUNKS = {"user": "user_message_chunk", "agent": "agent_message_chunk", "thought": "agent_thought_chunk"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

BLOCK = WORDS.map(text) | st.just(IMAGE)
CALLS = st.sampled_from(["t1", "t2"])
TERMINALS = st.sampled_from(["x1", "x2"])
SHOWN = (
    WORDS.map(shown)
    | st.just({"type": "content", "content": IMAGE})
    | st.builds(lambda old, new: plain(diffs.whole_diff("/f", old, new)), st.none() | WORDS, WORDS)
    | TERMINALS.map(lambda id: {"type": "terminal", "terminalId": id})
)
ENTRY = st.fixed_dictionaries(
    {
        "content": WORDS,
        "priority": st.sampled_from(["high", "medium", "low"]),
        "status": st.sampled_from(["pending", "in_progress", "completed"]),
    }
)


def tagged(tag: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"sessionUpdate": st.just(tag), **fields})


TOOL = st.fixed_dictionaries(
    {"sessionUpdate": st.just("tool_call_update"), "toolCallId": CALLS},
    optional={
        "title": WORDS,
        "name": WORDS,
        "kind": st.sampled_from(["read", "edit", "other", None]),
        "status": st.sampled_from(["pending", "in_progress", "completed", "failed", None]),
        "content": st.none() | st.lists(SHOWN, max_size=3),
        "locations": st.none() | st.lists(st.just({"path": "/f", "line": 1}), max_size=2),
        "rawInput": st.integers(0, 3),
        "_meta": st.none() | st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 2)),
    },
)
TOOL_CHUNK = tagged("tool_call_content_chunk", toolCallId=CALLS, content=SHOWN)
OUTPUT_CHUNKS = st.builds(
    lambda id, data, cut: [
        {"sessionUpdate": "terminal_output_chunk", "terminalId": id, "data": b64(part)}
        for part in (data.encode()[:cut], data.encode()[cut:])
    ],
    TERMINALS,
    OUTPUT,
    st.integers(0, 40),
)
OUTPUT_WHOLE = st.builds(
    lambda id, data: {"sessionUpdate": "terminal_update", "terminalId": id, "output": {"data": b64(data)}},
    TERMINALS,
    OUTPUT,
)
PLAN = st.builds(
    lambda id, entries: {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": id, "entries": entries},
    },
    st.sampled_from("pq"),
    st.lists(ENTRY, max_size=3),
)
PLAN_REMOVED = tagged("plan_removed", planId=st.sampled_from("pq"))
CHUNK = st.tuples(st.just("chunk"), ROLES, st.sampled_from("12"), BLOCK)
EXTEND = st.tuples(st.just("extend"), ROLES, st.sampled_from("12"), st.lists(BLOCK, max_size=2))
REPLACE = st.tuples(st.just("replace"), ROLES, st.sampled_from("12"), st.lists(BLOCK, max_size=2))

LOSSLESS: list[st.SearchStrategy[Any]] = [
    CHUNK, EXTEND, TOOL, TOOL_CHUNK, OUTPUT_CHUNKS, OUTPUT_WHOLE, PLAN, PLAN_REMOVED,
]  # fmt: skip
STATE = st.just({"sessionUpdate": "state_update", "state": "running"})
HARMLESS = {"terminal", "terminal_alone", "state"}
"""Losses that the models below do not look at: facts of a terminal besides its output, and the state."""


class Stream:
    """Makes v2 updates out of steps, some of which depend on what the session holds already."""

    def __init__(self, opt_ins: OptIns | None = None) -> None:
        self.v2 = V2Client()
        self.v1 = V1Client()
        self.lost: set[str] = set()
        self.writer = V1Writer(None, opt_ins, report=self._report)

    def _report(self, loss: Loss, original: Any) -> None:
        self.lost.add(loss.name)

    def step(self, step: Any) -> None:
        for update in self._updates(step):
            self.v2.apply(update)
            typed = read(update)
            self._received(self.writer.write(typed, msgspec.json.encode(typed)))

    def end(self) -> None:
        self._received(self.writer.flush())

    def _received(self, sent: Any) -> None:
        for raw in sent:
            self.v1.apply(check_v1(raw))

    def _updates(self, step: Any) -> list[dict[str, Any]]:
        if isinstance(step, dict):
            return [step]
        if isinstance(step, list):
            return step
        manner, role, number, given = step
        id = f"{role}-{number}"
        if manner == "chunk":
            return [{"sessionUpdate": CHUNKS[role], "messageId": id, "content": given}]
        content = given
        if manner == "extend":
            held = joined(self.v2.messages.get((role, id), []))
            content = [text(part) if isinstance(part, str) else part for part in held] + given
        return [{"sessionUpdate": TAGS[role], "messageId": id, "content": content}]

    def check(self) -> None:
        self.check_messages()
        self.check_tools()
        entries = [entry for plan in self.v2.plans.values() for entry in plan]
        assert self.v1.plan == entries

    def check_messages(self) -> None:
        seen = {(role, id): joined(content) for id, (role, content) in self.v1.messages.items()}
        held = {key: joined(content) for key, content in self.v2.messages.items()}
        assert {key: value for key, value in seen.items() if value} == {
            key: value for key, value in held.items() if value
        }

    def check_tools(self) -> None:
        assert self.v1.tools.keys() == self.v2.tools.keys()
        for id, held in self.v2.tools.items():
            seen = dict(self.v1.tools[id])
            meta = seen.pop("_meta", {})
            assert "acp.bridge/original" not in meta
            if "title" not in held:
                seen.pop("title")
            content = seen.pop("content")
            assert seen == {key: value for key, value in held.items() if key != "content"}
            assert [_bare(item) for item in content] == [self._expected(item) for item in held["content"]]

    def _expected(self, item: dict[str, Any]) -> Any:
        if item["type"] == "terminal":
            return shown(self.v2.terminals.get(item["terminalId"], b"").decode())
        if item["type"] == "diff":
            return ("diff", *_applied(item["patch"]["text"], new=item["changes"][0]["operation"] == "add"))
        return item


def _bare(item: dict[str, Any]) -> Any:
    if item["type"] == "diff":
        return ("diff", item.get("oldText"), item["newText"])
    return {key: value for key, value in item.items() if key != "_meta"}


def _applied(patch: str, *, new: bool) -> tuple[str | None, str]:
    """The two sides of a patch of words without line ends."""
    lines = [line for line in patch.split("\n") if line[:1] in "-+ " and line[:4] not in ("--- ", "+++ ")]
    sides = [[line[1:] for line in lines if line and line[0] in signs] for signs in ("- ", "+ ")]
    return (None if new else "".join(sides[0])), "".join(sides[1])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(*LOSSLESS, STATE), max_size=25), st.booleans())
def test_24_4_a_v1_client_sees_what_a_v2_client_sees(steps: list[Any], held_back: bool) -> None:
    stream = Stream()
    eager, growth = (0, 0) if held_back else (downgrade_tools.EAGER, downgrade_tools.GROWTH)
    with patch.multiple(downgrade_tools, EAGER=eager, GROWTH=growth):
        for step in steps:
            stream.step(step)
        stream.end()
    assert stream.lost <= HARMLESS
    stream.check()


@given(st.lists(st.one_of(CHUNK, EXTEND, REPLACE), max_size=12))
def test_24_4_what_is_not_reported_is_not_lost(steps: list[Any]) -> None:
    stream = Stream()
    for step in steps:
        stream.step(step)
    if not stream.lost:
        stream.check_messages()


@requirement("SD-27")
@given(st.lists(st.one_of(CHUNK, EXTEND, REPLACE), max_size=12))
def test_with_message_update_no_message_is_ever_lost(steps: list[Any]) -> None:
    stream = Stream(OptIns(message_update=True))
    for step in steps:
        stream.step(step)
    assert not stream.lost
    stream.check_messages()


IDS = {"messageId", "toolCallId", "terminalId", "planId", "compactionId"}
TOOL_UPDATE = (
    Instances(2).of("ToolCallUpdate").map(lambda call: {"sessionUpdate": "tool_call_update", **call})
)
ANY_UPDATE = Instances(2).of("SessionUpdate") | TOOL_UPDATE
ODD_UPDATE = st.builds(
    lambda tag, extra: {"sessionUpdate": tag, **extra},
    st.sampled_from(["_odd", "plan", "tool_call", "state_change"]),
    st.dictionaries(st.sampled_from(["state", "stop_reason", "x"]), st.none() | st.text(max_size=3)),
)
CLIENTS = st.builds(
    lambda able, *flags: V1Writer(able, OptIns(*flags), extensions=()),
    st.sampled_from(
        [
            capabilities(),
            capabilities(
                plan={}, subagents={},
                session={"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            ),
        ]
    ),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


def _few_ids(value: Any, number: int) -> Any:
    """The same update about one of few things, so that updates meet."""
    if isinstance(value, dict):
        return {
            key: f"{number % 2}" if key in IDS and isinstance(item, str) else _few_ids(item, number)
            for key, item in value.items()
        }
    return [_few_ids(item, number) for item in value] if isinstance(value, list) else value


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(CLIENTS, st.lists(ANY_UPDATE | ODD_UPDATE, max_size=12), st.randoms(use_true_random=False))
def test_24_4_any_v2_stream_becomes_strict_v1(writer: V1Writer, stream: list[Any], chance: Any) -> None:
    for raw in stream:
        few = _few_ids(raw, chance.randrange(4))
        try:
            update = read(few)
        except InvalidParams:
            continue
        for sent in writer.write(update, msgspec.json.encode(update)):
            check_v1(sent)
    for sent in writer.flush():
        check_v1(sent)


PERMISSION = Instances(2).of("RequestPermissionRequest")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PERMISSION, max_size=3))
def test_24_5_any_question_becomes_strict_v1(questions: list[Any]) -> None:
    writer = V1Writer()
    for raw in questions:
        fields = dict(_few_ids(raw, 0))
        try:
            asked = writer.asked(permission(**fields), question="q")
        except InvalidParams:
            continue
        if asked is not None:
            encoded = msgspec.json.encode(asked.params)
            decoded = msgspec.json.decode(encoded, type=v1.RequestPermissionRequest, dec_hook=choose)
            assert plain(decoded) == plain(encoded)
            for sent in asked.updates:
                check_v1(sent)


def test_the_models_can_tell_a_difference() -> None:
    stream = Stream()
    stream.step(("chunk", "agent", "1", text("a")))
    stream.step(("replace", "agent", "1", [text("b")]))
    assert stream.lost == {"message_replaced"}
    with pytest.raises(AssertionError):
        stream.check_messages()
