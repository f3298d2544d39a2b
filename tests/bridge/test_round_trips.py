"""Laws of whole conversations: what a v1 agent writes reaches a v1 client as it was written, and requests
come back as what they were, both ways round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.bridge.dialects import V1Writer
from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import Loss
from antiphon.bridge.upgrade import requests
from antiphon.bridge.upgrade.originals import NOT_UPGRADED, Originals, is_plain
from antiphon.bridge.upgrade.questions import permission
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.updates import unread, written
from tests.bridge.test_laws import _few_ids
from tests.bridge.test_upgrade_laws import ALL, ANY_V1, V1_TOOL
from tests.bridge.wire import plain
from tests.requirements.marks import requirement
from tests.schema.strategies import Instances

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
OTHERWISE = {
    "turn_complete", "message_update", "user_message", "state_update",
    "subagent_update", "session_message", "session_message_chunk",
}  # fmt: skip
"""What each client opts in to, and what names sessions: lowered for each client by itself."""


class Behind:
    """A v1 client behind a hub with a v1 agent, without the hub."""

    def __init__(self, able: v1.ClientCapabilities | None = ALL) -> None:
        self.up = Upgrade()
        self.originals = Originals()
        self.client = V1Writer(able)
        self.kept = 0

    def told(self, raw: dict[str, Any]) -> list[dict[str, Any]]:
        """What the client gets of an update that the agent writes so."""
        params = msgspec.json.encode({"sessionId": "s", "update": raw})
        line = b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % params
        try:
            update = codec(1).params(Kind.NOTIFICATION, "session/update", params).update
        except InvalidParams:
            odd = unread(msgspec.Raw(params))
            assert odd is not None
            update = odd.update
        lifted: list[Any] = [*self.up.update(update)]
        plain_one = is_plain(update, line)
        origin = None if plain_one else self.originals.of(update, written(msgspec.Raw(params)), lifted)
        if origin is not None and all(isinstance(each, v2.StateUpdate) for each in lifted):
            lifted = [NOT_UPGRADED, *lifted]
        sent: list[bytes] = []
        for each in lifted:
            raw_v2 = msgspec.json.encode(each)
            if origin is None or isinstance(each, v2.StateUpdate):
                sent += self.client.write(each, raw_v2)
            else:
                self.kept += 1
                sent += self.client.write_translated(each, raw_v2, origin)
        return [plain(each) for each in sent]


ODD_BLOCK = st.just({"type": "hologram", "x": [None]})
ODD = st.one_of(
    st.fixed_dictionaries(
        {"sessionUpdate": st.sampled_from(["_odd", "from_the_future"])},
        optional={"x": st.none() | st.integers(0, 3), "_meta": st.just({"k": None})},
    ),
    st.fixed_dictionaries(
        {
            "sessionUpdate": st.sampled_from(
                ["agent_message_chunk", "user_message_chunk", "agent_thought_chunk"]
            ),
            "content": ODD_BLOCK,
        },
        optional={"messageId": st.sampled_from(["1", "2"]), "vendor": st.just(1)},
    ),
    st.fixed_dictionaries(
        {"sessionUpdate": st.just("tool_call_update"), "toolCallId": st.sampled_from("01")},
        optional={
            "status": st.sampled_from([None, "someday", "completed"]),
            "kind": st.sampled_from([None, "odd"]),
            "content": st.lists(ODD_BLOCK, max_size=2),
            "vendor": st.just({"x": None}),
        },
    ),
)


@settings(deadline=None, suppress_health_check=SLOW)
@given(st.lists(ANY_V1 | V1_TOOL | ODD, max_size=10), st.randoms(use_true_random=False))
def test_invariant_8_a_v1_client_gets_whatever_a_v1_agent_writes(stream: list[Any], chance: Any) -> None:
    behind = Behind()
    for each in stream:
        raw = _few_ids(each, chance.randrange(4))
        sent = behind.told(raw)
        if raw["sessionUpdate"] in OTHERWISE or _is_plain_chunk(raw):
            continue
        if raw["sessionUpdate"].endswith("_message_chunk") or raw["sessionUpdate"] == "agent_thought_chunk":
            assert len(sent) == 1
            assert sent[0].get("messageId")
            raw = {**raw, "messageId": raw.get("messageId") or sent[0]["messageId"]}
        assert sent == [raw]


def _is_plain_chunk(raw: dict[str, Any]) -> bool:
    """Of those only what v1 knows crosses: they are not compared, chunk by chunk (see the law below)."""
    return "chunk" in raw["sessionUpdate"] and raw.get("content", {}).get("type") == "text"


CHUNKS = st.fixed_dictionaries(
    {
        "sessionUpdate": st.sampled_from(
            ["agent_message_chunk", "user_message_chunk", "agent_thought_chunk"]
        ),
        "content": st.fixed_dictionaries(
            {"type": st.just("text"), "text": st.text(max_size=5)},
            optional={
                "_meta": st.just({"k": [None]}),
                "annotations": st.just({"audience": ["user"], "priority": 0.5, "_meta": {"k": 1}}),
            },
        ),
    },
    optional={"_meta": st.just({"vendor": {"x": None}})},
)


@requirement("MSG-07")
@given(st.lists(st.tuples(CHUNKS, st.sampled_from([None, "1", "2"])), max_size=10))
def test_plain_chunks_cross_by_their_making(stream: list[Any]) -> None:
    behind = Behind()
    for raw, id in stream:
        named = raw if id is None else {**raw, "messageId": f"{raw['sessionUpdate']}-{id}"}
        (sent,) = behind.told(named)
        assert sent == {**named, "messageId": sent["messageId"]}
    assert behind.kept == 0


@settings(deadline=None, suppress_health_check=SLOW)
@given(st.lists(ANY_V1, max_size=8))
def test_inv_10_a_plain_v1_client_gets_only_what_every_v1_client_takes(stream: list[Any]) -> None:
    behind = Behind(None)
    gated = {
        "notice",
        "compaction_update",
        "compaction_summary_chunk",
        "plan_update",
        "plan_removed",
        *OTHERWISE,
    }
    for raw in stream:
        assert not gated & {sent["sessionUpdate"] for sent in behind.told(raw)}


# Questions


@settings(deadline=None, suppress_health_check=SLOW)
@given(Instances(1).of("RequestPermissionRequest"), st.data())
def test_24_5_a_question_of_v1_reaches_v1_as_it_was_and_so_does_its_answer(raw: Any, data: Any) -> None:
    encoded = msgspec.json.encode({**raw, "sessionId": "s"})
    try:
        request = codec(1).params(Kind.REQUEST, "session/request_permission", encoded)
    except InvalidParams:
        return
    lifted = permission(request, Upgrade())
    if lifted.params is None:
        return
    asked = V1Writer(ALL).asked(lifted.params, question="q", origin=encoded)
    assert asked is not None
    if not any(isinstance(item, v1.Terminal) for item in request.tool_call.content or ()):
        assert asked.params == request
        told = [(update["sessionUpdate"], update["toolCallId"]) for update in map(plain, asked.updates)]
        assert told == [("tool_call", request.tool_call.tool_call_id)]
    chosen = data.draw(st.sampled_from(request.options))
    outcome = v1.SelectedPermissionOutcome(option_id=chosen.option_id, meta={"k": None})
    answer = asked.outcome(v1.RequestPermissionResponse(outcome=outcome))
    assert lifted.answer(v2.RequestPermissionResponse(outcome=answer)).outcome == outcome


# Requests

ABLE = v1.AgentCapabilities(
    load_session=True,
    prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
    mcp_capabilities=v1.McpCapabilities(http=True, acp=True),
    session_capabilities=v1.SessionCapabilities(
        resume=v1.SessionResumeCapabilities(),
        additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
    ),
)
Crossing = Callable[..., Any]
SETUPS: dict[str, tuple[str, Crossing, Crossing]] = {
    "session/prompt": ("PromptRequest", requests.prompt, requests_v1.prompt),
    "session/new": ("NewSessionRequest", requests.new_session, requests_v1.new_session),
    "session/load": ("LoadSessionRequest", requests.load_session, requests_v1.resume_session),
    "session/resume": ("ResumeSessionRequest", requests.resume_session, requests_v1.resume_session),
    "session/fork": ("ForkSessionRequest", requests.fork_session, requests_v1.fork_session),
}


def crossed(version: int, method: str, raw: Any, there: Crossing, back: Crossing) -> None:
    """There and back: the same, or refused, or reported."""
    try:
        params = codec(version).params(Kind.REQUEST, method, msgspec.json.encode(raw))
    except InvalidParams:
        return
    lost: list[str] = []

    def report(loss: Loss, original: Any) -> None:
        lost.append(loss.name)

    with_report: dict[str, Any] = {"report": report}
    able: dict[str, Any] = {"capabilities": ABLE}
    try:
        if version == 1:
            again = back(there(params, **with_report), **able, **with_report)
        else:
            again = there(back(params, **able, **with_report), **with_report)
    except InvalidParams:
        return
    assert lost or again == params


@pytest.mark.parametrize("method", [*SETUPS])
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_24_2_a_request_of_v1_crosses_v2_and_comes_back(method: str, data: Any) -> None:
    name, there, back = SETUPS[method]
    crossed(1, method, data.draw(Instances(1).of(name)), there, back)


@pytest.mark.parametrize("method", [*SETUPS])
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_24_2_a_request_of_v2_crosses_v1_and_comes_back(method: str, data: Any) -> None:
    name, there, back = SETUPS[method]
    if method == "session/load":
        name, method = "ResumeSessionRequest", "session/resume"
        raw = {**data.draw(Instances(2).of(name)), "replayFrom": {"type": "start"}}
    else:
        raw = data.draw(Instances(2).of(name))
        raw.pop("replayFrom", None)
    crossed(2, method, raw, there, back)
