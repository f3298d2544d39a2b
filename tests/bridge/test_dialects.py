"""One session in every dialect: what is written, how prompts are answered, how a turn's end is told."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from antiphon.bridge.dialects import ProposedWriter, V1Writer, Writer, writer
from antiphon.bridge.prompts import INTERRUPTED, Answer
from antiphon.bridge.proposed import Insertions
from antiphon.errors import ErrorObject
from antiphon.schema import v2
from antiphon.schema.codec import codec
from antiphon.schema.v2.proposed import PromptTaken
from antiphon.schema.version import Agreement, Dialect, OptIns
from tests.bridge.wire import capabilities, permission, plain, read, text, update
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
TURN_COMPLETE = OptIns(turn_complete=True)
LIFECYCLE = OptIns(prompt_lifecycle=True, turn_complete=True)


def idle(**fields: Any) -> v2.SessionStateUpdate:
    made: v2.SessionStateUpdate = update("state_update", state="idle", **fields)
    return made


def write(to: Writer, given: Any) -> list[Any]:
    return [plain(sent) for sent in to.write(given, msgspec.json.encode(given))]


def sent(steps: list[Any]) -> list[Any]:
    """Steps as JSON: an update, or (request, result or error)."""
    return [(step.request, plain(step.given)) if isinstance(step, Answer) else plain(step) for step in steps]


@pytest.mark.parametrize(
    ("agreement", "kind"),
    [
        (Agreement(1, Dialect.V1, TURN_COMPLETE), V1Writer),
        (Agreement(2, Dialect.V2), Writer),
        (Agreement(2, Dialect.V2_PROPOSED), ProposedWriter),
    ],
)
def test_the_writer_is_the_one_agreed_on(agreement: Agreement, kind: type[Writer]) -> None:
    made = writer(agreement, capabilities=capabilities(), extensions=["_antiphon_queue"])
    assert type(made) is kind
    assert made.dialect == agreement.dialect


class TestWriting:
    def test_v2_passes_the_bytes_it_is_given(self) -> None:
        raw = b'{"sessionUpdate":"_odd", "kept" : "as it is"}'
        assert Writer().write(read(plain(raw)), raw) == (raw,)

    def test_v1_passes_the_bytes_of_a_plain_chunk(self) -> None:
        given = update("agent_message_chunk", messageId="m", content=text("a"))
        raw = msgspec.json.encode(given)
        assert V1Writer().write(given, raw)[0] is raw

    def test_v1_writes_what_the_downgrade_says(self) -> None:
        assert write(V1Writer(), update("agent_message", messageId="m", content=[text("a")])) == [
            {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("a")}
        ]
        assert write(V1Writer(), idle(stopReason="end_turn")) == []

    @requirement("SD-01")
    def test_proposed_spells_the_state_differently_and_nothing_else(self) -> None:
        usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
        proposed = ProposedWriter()
        assert write(proposed, idle(stopReason="end_turn", usage=usage)) == [
            {"sessionUpdate": "state_change", "state": "idle", "stop_reason": "end_turn", "usage": usage}
        ]
        assert write(proposed, update("state_update", state="_odd", stopReason="x")) == [
            {"sessionUpdate": "state_change", "state": "_odd", "stop_reason": "x"}
        ]
        chunk = update("agent_message_chunk", messageId="m", content=text("a"))
        raw = msgspec.json.encode(chunk)
        assert proposed.write(chunk, raw) == (raw,)

    @pytest.mark.parametrize("kind", [V1Writer, Writer, ProposedWriter])
    def test_our_own_updates_go_only_to_those_who_asked(self, kind: type[Writer]) -> None:
        queue = update("_antiphon_queue", entries=[])
        assert write(kind(), queue) == []
        assert write(kind(extensions=["_antiphon_queue"]), queue) == [dict(queue)]

    def test_v1_flushes_what_it_held_back(self) -> None:
        to = V1Writer()
        big = {"type": "content", "content": text("x" * 50_000)}
        write(to, update("tool_call_update", toolCallId="t", title="T", content=[big]))
        small = {"type": "content", "content": text("y")}
        assert write(to, update("tool_call_content_chunk", toolCallId="t", content=small)) == []
        assert len(to.flush()) == 1
        assert Writer().flush() == ()


class TestInsertion:
    @requirement("PROMPT-V2-02")
    @pytest.mark.parametrize(
        ("to", "answer"),
        [
            (Writer(), {"messageId": "u"}),  # PROMPT-V2-03
            (ProposedWriter(), {}),  # SD-05
            (ProposedWriter(names_prompts=True), {"_meta": {"antiphon": {"messageId": "u"}}}),
            (V1Writer(None, LIFECYCLE), {"messageId": "u"}),
            (V1Writer(), None),  # PROMPT-V1-02
        ],
    )
    def test_a_prompt_is_answered_at_insertion_except_in_v1(self, to: Writer, answer: Any) -> None:
        given = to.inserted("u")
        assert (None if given is None else plain(given)) == answer

    @requirement("PROMPT-V1-22")
    def test_what_was_inserted_is_not_echoed(self) -> None:
        to = V1Writer()
        to.inserted("u")
        assert write(to, update("user_message", messageId="u", content=[text("Hi")])) == []


USAGE = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
ENDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"stopReason": reason}, {"stopReason": reason}) for reason in (
        "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled",
    )),
    ({"stopReason": "end_turn", "usage": USAGE, "_meta": {"k": 1}},
     {"stopReason": "end_turn", "usage": USAGE, "_meta": {"k": 1}}),
    ({}, {"stopReason": "end_turn", "_meta": {ORIGINAL: {"stopReason": None}}}),
    ({"stopReason": "_odd"}, {"stopReason": "end_turn", "_meta": {ORIGINAL: {"stopReason": "_odd"}}}),
    ({"stopReason": "new"}, {"stopReason": "end_turn", "_meta": {ORIGINAL: {"stopReason": "new"}}}),
    ({"stopReason": "error"}, {"code": -32603, "message": "Internal error", "data": {"reason": "error"}}),
    ({"stopReason": "error", "error": {"code": -32000, "message": "log\nin", "data": [1]}},
     {"code": -32000, "message": "log in", "data": [1]}),
    ({"stopReason": "error", "error": {"code": -32603, "message": "no"}}, {"code": -32603, "message": "no"}),
]  # fmt: skip


class TestTheEndOfATurn:
    @pytest.mark.parametrize(("fields", "answer"), ENDS)
    def test_24_3_v1_prompts_are_answered_with_the_reason(self, fields: Any, answer: Any) -> None:
        assert sent(V1Writer().ended(idle(**fields), [4])) == [(4, answer)]

    @requirement("TC-01")
    @pytest.mark.parametrize(("fields", "answer"), ENDS)
    def test_turn_complete_comes_before_the_answer_and_agrees_with_it(self, fields: Any, answer: Any) -> None:
        steps = sent(V1Writer(None, TURN_COMPLETE).ended(idle(**fields), [4]))
        said = {"error": answer} if "code" in answer else {"stopReason": answer["stopReason"]}  # TC-09
        complete = {"sessionUpdate": "turn_complete", "promptRequestId": "4", **said}
        assert steps == [complete, (4, answer)]

    @requirement("TC-04")
    @pytest.mark.parametrize(("id", "named"), [(2, "2"), ("2", "2"), ("abc", "abc"), (None, "null")])
    def test_the_request_is_named_by_a_string(self, id: Any, named: str) -> None:
        steps = sent(V1Writer(None, TURN_COMPLETE).ended(idle(stopReason="end_turn"), [id]))
        assert steps[0]["promptRequestId"] == named

    @requirement("TC-02")
    def test_every_prompt_of_a_turn_is_answered_oldest_first(self) -> None:
        steps = sent(V1Writer(None, TURN_COMPLETE).ended(idle(stopReason="end_turn"), [4, 5]))
        assert [step[0] if isinstance(step, tuple) else step["promptRequestId"] for step in steps] == [
            "4", 4, "5", 5,
        ]  # fmt: skip

    @requirement("TC-01")
    def test_other_clients_that_opted_in_are_told_without_a_request(self) -> None:
        to = V1Writer(None, TURN_COMPLETE)
        assert sent(to.ended(idle(stopReason="cancelled"))) == [
            {"sessionUpdate": "turn_complete", "stopReason": "cancelled"}
        ]
        failed = {"code": -32603, "message": "no"}
        assert sent(to.ended(idle(stopReason="error", error=failed))) == [
            {"sessionUpdate": "turn_complete", "error": failed}
        ]

    @requirement("TC-10")
    def test_nobody_else_is_told(self) -> None:
        assert V1Writer().ended(idle(stopReason="end_turn")) == []

    @requirement("TC-11")
    @pytest.mark.parametrize("to", [Writer(), ProposedWriter(), V1Writer(None, LIFECYCLE)])
    def test_not_where_the_state_tells_it(self, to: Writer) -> None:
        assert to.ended(idle(stopReason="end_turn"), [4]) == []

    @requirement("TC-03")
    def test_held_back_updates_come_first(self) -> None:
        to = V1Writer(None, TURN_COMPLETE)
        big = {"type": "content", "content": text("x" * 50_000)}
        write(to, update("tool_call_update", toolCallId="t", title="T", content=[big]))
        small = {"type": "content", "content": text("y")}
        write(to, update("tool_call_content_chunk", toolCallId="t", content=small))
        steps = sent(to.ended(idle(stopReason="end_turn"), [4]))
        assert [step[0] if isinstance(step, tuple) else step["sessionUpdate"] for step in steps] == [
            "tool_call_update", "turn_complete", 4,
        ]  # fmt: skip

    def test_an_interrupted_turn_is_an_error_everywhere(self) -> None:
        error = {"code": -32603, "message": "The turn was interrupted", "data": {"reason": "interrupted"}}
        complete = {"sessionUpdate": "turn_complete", "promptRequestId": "4", "error": error}
        assert sent(V1Writer(None, TURN_COMPLETE).ended(INTERRUPTED, [4])) == [complete, (4, error)]
        state = {"state": "idle", "error": error}
        assert write(Writer(), INTERRUPTED) == [
            {"sessionUpdate": "state_update", "stopReason": "error", **state}
        ]
        assert write(ProposedWriter(), INTERRUPTED) == [
            {"sessionUpdate": "state_change", "stop_reason": "error", **state}
        ]


CANCELLED = ErrorObject(-32800, "Request cancelled")


class TestRefusal:
    def test_24_3_a_prompt_the_v1_client_cancelled_is_a_result(self) -> None:
        result = {"stopReason": "cancelled"}
        assert sent(V1Writer().refused(4, CANCELLED, cancelled=True)) == [(4, result)]
        assert sent(V1Writer(None, TURN_COMPLETE).refused(4, CANCELLED, cancelled=True)) == [
            {"sessionUpdate": "turn_complete", "promptRequestId": "4", "stopReason": "cancelled"},
            (4, result),
        ]

    @pytest.mark.parametrize(
        ("to", "error", "cancelled"),
        [
            (V1Writer(), CANCELLED, False),
            (V1Writer(), ErrorObject(-32602, "no"), True),
            (V1Writer(None, LIFECYCLE), CANCELLED, True),
            (Writer(), CANCELLED, True),
            (ProposedWriter(), CANCELLED, True),
        ],
    )
    def test_24_3_otherwise_the_error_stays(self, to: Writer, error: ErrorObject, cancelled: bool) -> None:
        assert to.refused(4, error, cancelled=cancelled) == [Answer(4, error)]


class TestSetup:
    RESULT: ClassVar = {
        "sessionId": "s",
        "configOptions": [
            {"type": "select", "configId": "m", "name": "M", "category": "mode", "currentValue": "a",
             "options": [{"value": "a", "name": "A"}]},
        ],
        "availableCommands": [{"type": "command", "name": "go", "description": "Go"}],
    }  # fmt: skip

    @pytest.mark.parametrize(
        ("method", "loaded", "kind"),
        [
            ("session/new", False, "NewSessionResponse"),
            ("session/fork", False, "ForkSessionResponse"),
            ("session/resume", True, "LoadSessionResponse"),
            ("session/resume", False, "ResumeSessionResponse"),
        ],
    )
    def test_24_2_v1_results_have_modes_and_commands_follow(
        self, method: str, loaded: bool, kind: str
    ) -> None:
        given = codec(2).result(method, msgspec.json.encode(self.RESULT))
        result, later = V1Writer().opened(given, loaded=loaded)
        assert type(result).__name__ == kind
        assert plain(result)["modes"]["currentModeId"] == "a"
        assert [plain(one)["sessionUpdate"] for one in later] == ["available_commands_update"]

    def test_24_2_v2_results_stay(self) -> None:
        given = codec(2).result("session/new", msgspec.json.encode(self.RESULT))
        assert Writer().opened(given) == (given, ())
        options: Any = codec(2).result("session/set_config_option", msgspec.json.encode(self.RESULT))
        assert plain(V1Writer().configured(options))["configOptions"][0]["id"] == "m"
        assert Writer().configured(options) is options


@requirement("PERM-01")
@pytest.mark.parametrize("to", [V1Writer(), Writer()])
def test_questions_are_asked_in_the_dialect(to: Writer) -> None:
    request = permission(title="T", options=[{"optionId": "y", "name": "Y", "kind": "allow_once"}])
    asked = to.asked(request, question="1")
    assert asked is not None
    assert ("toolCall" in plain(asked.params)) is (to.dialect is Dialect.V1)


def test_what_is_remembered_of_messages_that_were_told_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.bridge.proposed.SEEN", 10)
    insertions = Insertions()
    for number in range(100):
        told = v2.UserMessage(message_id=v2.MessageId(f"m{number}"), content=[])
        insertions.sent(number)
        insertions.update_received(told)
        [(request, answer)] = insertions.answered(number, PromptTaken())
        assert (request, answer.message_id) == (number, f"m{number}")
    assert len(insertions._seen) == 10
