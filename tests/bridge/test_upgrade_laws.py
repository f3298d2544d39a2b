"""Laws of the upgrade, by random streams: what can cross both ways comes back, and v2 always reads it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.bridge import diffs
from antiphon.bridge.dialects import V1Writer
from antiphon.bridge.losses import Loss
from antiphon.bridge.upgrade.questions import permission
from antiphon.engine.turn import Effect, Turns, TurnState
from antiphon.errors import ErrorObject, InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.version import OptIns
from tests.bridge.test_laws import (
    CHUNK,
    CHUNKS,
    ENTRY,
    EXTEND,
    HARMLESS,
    IMAGE,
    PLAN,
    PLAN_REMOVED,
    REPLACE,
    ROLES,
    STATE,
    TAGS,
    WORDS,
    _few_ids,
    tagged,
)  # fmt: skip
from tests.bridge.v1_client import joined
from tests.bridge.v2_client import V2Client
from tests.bridge.wire import Up, capabilities, check_v1, check_v2, plain, read, read_v1, shown, text
from tests.schema.strategies import Instances

BLOCKS = WORDS.map(text) | st.just(IMAGE)
CALLS = st.sampled_from(["t1", "t2"])
ALL = capabilities(
    plan={}, subagents={}, session={"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}
)


def written(raw: dict[str, Any], writer: V1Writer) -> list[dict[str, Any]]:
    """A v2 update as a v1 peer writes it."""
    update = read(raw)
    return [check_v1(sent) for sent in writer.write(update, msgspec.json.encode(update))]


# v1, up, down: the same updates


V1_SHOWN = (
    WORDS.map(shown)
    | st.just({"type": "content", "content": IMAGE, "_meta": {"k": 1}})
    | st.fixed_dictionaries(
        {"type": st.just("diff"), "path": st.sampled_from(["/f", "/é\n"]), "newText": WORDS},
        optional={"oldText": WORDS | st.just("a\nb"), "_meta": st.just({"k": 1})},
    )
)
V1_CALL = {
    "name": WORDS,
    "kind": st.sampled_from([*map(str, v1.ToolKind)]),
    "status": st.sampled_from([*map(str, v1.ToolCallStatus)]),
    "content": st.lists(V1_SHOWN, min_size=1, max_size=3),
    "locations": st.just([{"path": "/f", "line": 1, "_meta": {"k": 1}}]),
    "rawInput": st.integers(0, 3) | st.just({"k": None}),
    "rawOutput": st.integers(0, 3),
}
CREATED = st.fixed_dictionaries(
    {"sessionUpdate": st.just("tool_call"), "toolCallId": CALLS, "title": WORDS}, optional=V1_CALL
)
CHANGED = st.fixed_dictionaries(
    {"sessionUpdate": st.just("tool_call_update"), "toolCallId": CALLS}, optional={"title": WORDS, **V1_CALL}
)
V1_CHUNK = st.builds(
    lambda role, number, block: {
        "sessionUpdate": CHUNKS[role],
        "content": block,
        **({} if number is None else {"messageId": f"{role}-{number}"}),
    },
    ROLES,
    st.sampled_from([None, "1", "2"]),
    BLOCKS,
)
V1_OTHERS = st.one_of(
    tagged("plan_update", plan=st.just({"type": "markdown", "planId": "p", "content": "P"})),
    st.builds(
        lambda entries: {
            "sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "q", "entries": entries},
        },
        st.lists(ENTRY, max_size=2),
    ),
    tagged("usage_update", used=st.just(1), size=st.just(2), cost=st.just({"amount": 1.5, "currency": "U"})),
    tagged("session_info_update", title=st.none() | WORDS, updatedAt=st.just("2026-01-01T00:00:00Z")),
    tagged("notice", severity=st.sampled_from(["info", "_odd"]), title=st.just("N")),
    tagged("compaction_update", compactionId=st.just("c"), status=st.just("_odd"), summary=st.just(None)),
    tagged(
        "available_commands_update",
        availableCommands=st.just([{"name": "a", "description": "A", "input": {"hint": "h"}}]),
    ),
    tagged(
        "config_option_update",
        configOptions=st.just(
            [
                {"type": "boolean", "id": "b", "name": "B", "currentValue": True},
                {
                    "type": "select", "id": "s", "name": "S", "currentValue": "v", "category": "model",
                    "options": [{"group": "g", "name": "G", "options": [{"value": "v", "name": "V"}]}],
                },
            ]
        ),
    ),
    tagged("session_message", messageId=st.just("x"), content=st.just([text("a")])),
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(V1_CHUNK, CREATED, CHANGED, V1_OTHERS), max_size=20))
def test_24_4_what_a_v1_agent_sends_reaches_a_v1_client_as_it_was(stream: list[dict[str, Any]]) -> None:
    up, lost = Up(), []

    def report(loss: Loss, original: Any) -> None:
        lost.append(loss.name)

    down = V1Writer(ALL, report=report)
    known: set[str] = set()
    for raw in stream:
        id = raw.get("toolCallId")
        if id is not None and (id in known) is (raw["sessionUpdate"] == "tool_call"):
            continue  # what creates a call comes first, and once
        received = [each for lifted in up.feed(read_v1(raw)) for each in written(lifted, down)]
        expected = dict(raw)
        if raw["sessionUpdate"] == "tool_call":
            known.add(str(id))
            expected = {"kind": "other", "status": "pending", **raw}
        if raw["sessionUpdate"] in CHUNKS.values():
            expected.setdefault("messageId", received[0]["messageId"])
        assert received == ([expected] if expected.keys() != {"sessionUpdate", "toolCallId"} else [])
    assert up.lost == lost == []


# v2, down, up: the same session


SHOWN = (
    WORDS.map(shown)
    | st.just({"type": "content", "content": IMAGE})
    | st.builds(lambda old, new: plain(diffs.whole_diff("/f", old, new)), st.none() | WORDS, WORDS)
)
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
    },
)
TOOL_CHUNK = tagged("tool_call_content_chunk", toolCallId=CALLS, content=SHOWN)


class Round:
    """A v2 session, written to a v1 client and lifted again from there."""

    def __init__(self, opt_ins: OptIns) -> None:
        self.before, self.after = V2Client(), V2Client()
        self.states: list[Any] = []
        self.seen_states: list[Any] = []
        self.lost: set[str] = set()
        self.down = V1Writer(ALL, opt_ins, report=self._report)
        self.up = Up(opt_ins)

    def _report(self, loss: Loss, original: Any) -> None:
        self.lost.add(loss.name)

    def step(self, step: Any) -> None:
        update = step if isinstance(step, dict) else self._message(*step)
        if update["sessionUpdate"] == "state_update":
            self.states.append(update)
        self.before.apply(update)
        self._received(written(update, self.down))

    def end(self) -> None:
        self._received([check_v1(sent) for sent in self.down.flush()])

    def _received(self, sent: list[dict[str, Any]]) -> None:
        for raw in sent:
            for lifted in self.up.feed(read_v1(raw)):
                self.after.apply(lifted)
                if lifted["sessionUpdate"] == "state_update":
                    self.seen_states.append(lifted)

    def _message(self, manner: str, role: str, number: str, given: Any) -> dict[str, Any]:
        id = f"{role}-{number}"
        if manner == "chunk":
            return {"sessionUpdate": CHUNKS[role], "messageId": id, "content": given}
        if manner == "extend":
            held = joined(self.before.messages.get((role, id), []))
            given = [text(part) if isinstance(part, str) else part for part in held] + given
        marked = {"_meta": {"antiphon": {"deleted": True}}} if manner == "delete" else {}
        return {"sessionUpdate": TAGS[role], "messageId": id, "content": given, **marked}

    def check(self) -> None:
        assert _messages(self.after) == _messages(self.before)
        assert self.after.plans == self.before.plans
        assert self.after.tools.keys() == self.before.tools.keys()
        for id, held in self.before.tools.items():
            seen = dict(self.after.tools[id])
            if "title" not in held:
                seen.pop("title")  # v1 has no call without one
            assert seen == held


def _messages(client: V2Client) -> dict[Any, Any]:
    """What there is to see: a message without content does not exist for v1."""
    folded = {key: joined(content) for key, content in client.messages.items()}
    return {key: content for key, content in folded.items() if content}


IDLE = st.builds(
    lambda reason, usage: {
        "sessionUpdate": "state_update", "state": "idle", "stopReason": reason,
        **({"usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}} if usage else {}),
    },
    st.sampled_from(["end_turn", "cancelled", "_odd"]),
    st.booleans(),
)  # fmt: skip
DELETE = st.tuples(st.just("delete"), ROLES, st.sampled_from(["1", "2"]), st.just([]))
STEPS = st.one_of(CHUNK, EXTEND, REPLACE, DELETE, TOOL, TOOL_CHUNK, PLAN, PLAN_REMOVED, STATE, IDLE)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=25), st.booleans())
def test_24_4_a_v2_session_crosses_v1_and_comes_back(steps: list[Any], lifecycle: bool) -> None:
    crossing = Round(OptIns(message_update=True, prompt_lifecycle=lifecycle))
    for step in steps:
        crossing.step(step)
    crossing.end()
    assert crossing.lost <= (HARMLESS - {"state"} if lifecycle else HARMLESS)
    assert crossing.up.lost == []
    crossing.check()
    assert crossing.seen_states == (crossing.states if lifecycle else [])


# A replay names what was live


WORK = st.lists(
    st.sampled_from(
        [
            *({"sessionUpdate": CHUNKS[role], "content": text(role)} for role in ("agent", "thought")),
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T"},
            {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
            {"sessionUpdate": "plan", "entries": []},
        ]
    ),
    min_size=1,
    max_size=5,
)


@given(st.lists(WORK, max_size=4), st.booleans())
def test_inv_7_what_is_loaded_again_is_what_was_live(turns: list[list[Any]], again: bool) -> None:
    up = Up()
    live, loaded = V2Client(), V2Client()
    for number, work in enumerate(turns):
        for sent in [*up.prompted(number), *up.feed(*map(read_v1, work)), *up.responded(number)]:
            live.apply(sent)
    # Another machine, or the same one; a client that has nothing, or one that was there (SESS-23).
    other, client = (up, live) if again else (Up(), loaded)
    before = {key: list(content) for key, content in live.messages.items()}
    other.machine.reopening()
    for work in turns:
        prompt = {"sessionUpdate": "user_message_chunk", "content": text("go")}
        for sent in other.feed(*map(read_v1, [prompt, *work])):
            client.apply(sent)
    assert client.messages == before
    assert client.tools == live.tools


# The turn ends once


TURN_STEPS = st.tuples(
    st.sampled_from(["prompt", "respond", "fail", "cancel", "ask", "answer", "run", "done", "gone"]),
    st.integers(1, 3),
)


@given(st.lists(TURN_STEPS, max_size=30))
def test_inv_4_a_session_is_idle_exactly_while_no_prompt_is_open(steps: list[tuple[str, int]]) -> None:
    up, turns, seq = Up(), Turns(), 0
    open: list[Any] = []
    opened = ended = 0
    for name, number in steps:
        sent: Any = []
        match name:
            case "prompt" if number not in open:
                open.append(number)
                sent = up.machine.prompted(number, [])
            case "respond" | "fail":
                if name == "respond":
                    sent = up.machine.responded(number, v1.PromptResponse(stop_reason=v1.StopReason.REFUSAL))
                else:
                    sent = up.machine.failed(number, ErrorObject(-32603, "x"))
                open = [other for other in open if other != number]
            case "cancel":
                up.machine.cancelled()
            case "ask":
                sent = up.machine.asked(f"q{number}", f"t{number}")
            case "answer":
                sent = up.machine.answered(f"q{number}")
            case "run" | "done":
                status = "in_progress" if name == "run" else "completed"
                update = {"sessionUpdate": "tool_call_update", "toolCallId": f"t{number}", "status": status}
                sent = up.machine.update(read_v1(update))
            case "gone":
                sent = up.machine.interrupted()
                open = []
        for lifted in sent:
            check_v2(lifted)
            if isinstance(lifted, v2.SessionStateUpdate):
                seq += 1
                effect = turns.apply(lifted, seq=seq, at=0)
                assert effect is not Effect.REPEATED
                opened += effect is Effect.OPENED
                ended += effect is Effect.ENDED
        assert (turns.state is TurnState.IDLE) is (not open)
        assert opened == ended + bool(open)


# Whatever v1 says


ODD = st.builds(
    lambda tag, extra: {"sessionUpdate": tag, **extra},
    st.sampled_from(["_odd", "agent_message", "terminal_update", "state_change", "tool_call_content_chunk"]),
    st.dictionaries(
        st.sampled_from(["state", "stop_reason", "messageId", "content", "terminalId", "x"]),
        st.none() | st.sampled_from(["idle", "_odd"]),
    ),
)
ANY_V1 = Instances(1).of("SessionUpdate")
V1_TOOL = Instances(1).of("ToolCallUpdate").map(lambda call: {"sessionUpdate": "tool_call_update", **call})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(Instances(1).of("SessionUpdate") | V1_TOOL | ODD, max_size=12), st.randoms(use_true_random=False)
)
def test_24_4_any_v1_stream_becomes_v2_and_v1_again(stream: list[Any], chance: Any) -> None:
    up, down = Up(), V1Writer(ALL)
    for raw in stream:
        try:
            update = read_v1(_few_ids(raw, chance.randrange(4)))
        except InvalidParams:
            continue
        for lifted in up.feed(update):
            written(lifted, down)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(Instances(1).of("RequestPermissionRequest"), max_size=3))
def test_24_5_any_question_of_v1_is_one_of_v2(questions: list[Any]) -> None:
    up = Up()
    for raw in questions:
        try:
            asked = codec(1).params(
                Kind.REQUEST, "session/request_permission", msgspec.json.encode(_few_ids(raw, 0))
            )
        except InvalidParams:
            continue
        made = permission(asked, up.machine)
        if made.params is None:
            assert not asked.options
            continue
        encoded = msgspec.json.encode(made.params)
        assert codec(2).params(Kind.REQUEST, "session/request_permission", encoded) == made.params
        assert [option.option_id for option in made.params.options] == [
            option.option_id for option in asked.options
        ]
