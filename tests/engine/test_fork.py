"""A fork is the source's items up to a point, and the source is untouched."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.events import AnyBody, Event, PromptAccepted, PromptQueued, SessionCreated, Updated
from antiphon.engine.json_values import encode
from antiphon.engine.session import USAGE, Session, forked
from antiphon.engine.snapshot import parts
from antiphon.schema import v2
from tests.requirements.marks import requirement


def text(words: str) -> v2.TextContent:
    return v2.TextContent(text=words)


def chunk(id: str, words: str = "…") -> v2.AgentMessageChunk:
    return v2.AgentMessageChunk(message_id=v2.MessageId(id), content=text(words))


def user(id: str) -> v2.UserMessage:
    return v2.UserMessage(message_id=v2.MessageId(id), content=[text(id)])


def state(name: v2.State) -> v2.SessionStateUpdate:
    return v2.SessionStateUpdate(state=name)


def call(id: str, status: v2.ToolCallStatus | None = None) -> v2.SessionToolCallUpdate:
    return v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId(id), status=status)


RUNNING, IDLE = state(v2.State.RUNNING), state(v2.State.IDLE)


def folded(*updates: Any) -> Session:
    """A session that was told these; a string is a prompt of that id, taken as an agent takes it."""
    bodies: list[AnyBody] = [SessionCreated(session_id="s", cwd="/")]
    for update in updates:
        if isinstance(update, str):
            content = encode([text(update)])
            bodies.append(PromptQueued(message_id=update, raw_content=content))  # type: ignore[arg-type]
            bodies.append(PromptAccepted(message_id=update))
            bodies.append(Updated.of(user(update)))
        else:
            bodies.append(Updated.of(update))
    return Session().fold(Event(seq, 0, body) for seq, body in enumerate(bodies, start=1))


def keys(updates: list[Any] | None) -> list[str]:
    """What a new session made of these holds."""
    assert updates is not None
    return [item.key for item in folded(*updates).items]


HELLO = ("one", RUNNING, chunk("a", "he"), chunk("a", "llo"), call("t", v2.ToolCallStatus.COMPLETED), IDLE)


@requirement("SESS-52")
def test_a_fork_of_an_idle_session_is_all_of_it_and_changes_nothing() -> None:
    source = folded(*HELLO, v2.UsageUpdate(used=1, size=2))
    before = parts(source)
    made = forked(source)
    assert made == [item.materialize() for item in source.items]
    assert parts(source) == before


def test_the_open_turn_is_left_behind_with_the_prompt_that_opened_it() -> None:
    source = folded(*HELLO, "two", RUNNING, chunk("b"), call("u"))
    assert keys(forked(source)) == keys(forked(folded(*HELLO)))


def test_what_steers_the_open_turn_is_left_behind_too_and_a_turn_of_the_agents_own() -> None:
    source = folded(*HELLO, "two", RUNNING, chunk("b"), "three")
    assert keys(forked(source)) == keys(forked(folded(*HELLO)))
    assert keys(forked(folded(*HELLO, RUNNING, chunk("b")))) == keys(forked(folded(*HELLO)))


def test_a_fork_at_a_message_ends_with_it_also_in_the_open_turn() -> None:
    source = folded(*HELLO, "two", RUNNING, chunk("b"), chunk("c"))
    assert keys(forked(source, at="one")) == ["message/user/one"]
    assert keys(forked(source, at="a")) == ["message/user/one", "message/agent/a"]
    assert keys(forked(source, at="b"))[-2:] == ["message/user/two", "message/agent/b"]
    assert forked(source, at="nowhere") is None


def test_ids_that_two_types_share_mean_the_last_of_them() -> None:
    source = folded(user("m"), chunk("x"), chunk("m"), chunk("y"))
    assert keys(forked(source, at="m")) == ["message/user/m", "message/agent/x", "message/agent/m"]


def test_a_cut_keeps_what_the_session_is_set_to_and_not_what_it_has_used() -> None:
    title = v2.SessionInfoUpdate(title="T")
    usage = v2.UsageUpdate(used=9, size=10)
    source = folded("one", RUNNING, usage, chunk("a"), chunk("b"), IDLE, title)
    assert keys(forked(source, at="a")) == ["message/user/one", "message/agent/a", "facts/info"]
    assert USAGE in keys(forked(source))


UPDATES = st.lists(
    st.one_of(
        st.sampled_from("abc").map(chunk),
        st.sampled_from("tu").map(call),
        st.sampled_from("xyz"),
        st.sampled_from([RUNNING, IDLE, v2.UsageUpdate(used=1, size=2), v2.SessionInfoUpdate(title="T")]),
    ),
    max_size=20,
).map(lambda drawn: [one for at, one in enumerate(drawn) if type(one) is not str or one not in drawn[:at]])


@given(UPDATES, st.sampled_from([None, "a", "b", "x", "y"]))
def test_a_fork_of_anything_folds_to_the_source_cut_there(updates: list[Any], at: str | None) -> None:
    source = folded(*updates)
    made = forked(source, at=at)
    if made is None:
        assert all(message.id != at for message in source.messages)
        return
    new = folded(*made)
    shown = {item.key: item.materialize() for item in source.items}
    assert all(item.materialize() == shown[item.key] for item in new.items)
    order = [item.key for item in new.items]
    assert order == [key for key in shown if key in order]
    assert new.turn is None
    if at is not None:
        assert new.messages[-1].id == at
