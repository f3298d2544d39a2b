"""Random journals of what sessions are made of, and short words for the tests."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody, Cursor, Event, Updated, decode_event
from antiphon.engine.session import Session
from antiphon.engine.snapshot import SessionRestorer
from antiphon.errors import ErrorObject
from antiphon.schema.antiphon.clients import Who

AT = 1_700_000_000_000


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def update(tag: str, /, **fields: Any) -> Updated:
    """An update as an agent writes it, by its wire names; `meta` stands for `_meta`."""
    if "meta" in fields:
        fields["_meta"] = fields.pop("meta")
    return Updated(raw=raw({"sessionUpdate": tag, **fields}))


def state(name: str, **fields: Any) -> Updated:
    return update("state_update", state=name, **fields)


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def chunk(id: str, value: str, *, tag: str = "agent_message_chunk") -> Updated:
    return update(tag, messageId=id, content=text(value))


def queued(id: str, value: str = "do it", **fields: Any) -> e.PromptQueued:
    return e.PromptQueued(message_id=id, raw_content=raw([text(value)]), **fields)


def permission(*kinds: str, **fields: Any) -> Raw:
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds or ("allow_once",)]
    return raw({"sessionId": "s", "title": "May I?", "options": options, **fields})


def asked(id: str, params: Raw | None = None, **fields: Any) -> e.QuestionOpened:
    return e.QuestionOpened(
        question_id=id, method="session/request_permission", params=params or permission(), **fields
    )


def selected(option: str) -> Raw:
    return raw({"outcome": {"outcome": "selected", "optionId": option}})


def number(bodies: Iterable[AnyBody], *, after: int, at: int) -> list[Event]:
    """The bodies as the events that follow `after`."""
    return [Event(seq, at, body) for seq, body in enumerate(bodies, after + 1)]


def decoded(lines: bytes) -> list[Event]:
    """The events of a journal that was kept as lines."""
    return [decode_event(line) for line in lines.splitlines()]


def events(*bodies: AnyBody, after: int = 0) -> list[Event]:
    return number(bodies, after=after, at=AT)


def replay(session: Session) -> list[bytes]:
    """The updates that replay a session: each item whole, once, in order."""
    return [msgspec.json.encode(item.materialize()) for item in session.items]


def restore(parts: Mapping[str, bytes], cursor: int) -> Session:
    """The session of a snapshot."""
    restorer = SessionRestorer()
    restorer.add(parts)
    return restorer.finish(Cursor(cursor))


def folded(*bodies: AnyBody) -> Session:
    return Session().fold(events(*bodies))


def commit(session: Session, bodies: Iterable[AnyBody]) -> list[AnyBody]:
    """Appends what a command returned."""
    done = list(bodies)
    session.fold(number(done, after=session.last_seq, at=AT))
    return done


# Strategies

IDS = st.sampled_from(["a", "b", "c/d", "é"])
NAMED = st.none() | IDS | st.builds(Who, client_id=IDS, name=IDS)
"""Who did something: the first journals had a word alone."""
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
META_VALUES = st.none() | st.integers(0, 3) | st.dictionaries(IDS, st.integers(0, 3), max_size=2)
PATCHES = st.none() | st.dictionaries(IDS, META_VALUES, max_size=3)
NOTES = st.dictionaries(IDS, st.integers(0, 3), max_size=2)
BLOCKS = st.one_of(
    st.builds(text, TEXTS),
    st.builds(text, TEXTS),
    st.builds(lambda value, meta: text(value, _meta=meta), TEXTS, NOTES),
    st.just(text("noted", annotations={"priority": 0.5})),
    st.just({"type": "image", "data": "AA==", "mimeType": "image/png"}),
    st.just({"type": "resource_link", "name": "n", "uri": "file:///n"}),
    st.just({"type": "resource", "resource": {"uri": "file:///n", "text": "t"}}),
    st.just({"type": "_hologram", "depth": 3}),
)
CONTENT = st.none() | st.lists(BLOCKS, max_size=3)
ITEMS = st.one_of(
    st.builds(lambda block: {"type": "content", "content": block}, BLOCKS),
    st.just({"type": "diff", "changes": [{"operation": "add", "path": "/f"}]}),
    st.just({"type": "terminal", "terminalId": "a"}),
    st.just({"type": "_chart", "points": [1, 2]}),
)
BYTES = st.binary(max_size=4) | st.sampled_from(
    [b"\xf0\x9f", b"\x98\x80", b"\xc3", b"\xa9", b"\x1b[3", b"1m"]
)
BASE64 = BYTES.map(lambda data: base64.b64encode(data).decode()) | st.just("not base64!x")


def some(tag: str, always: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[AnyBody]:
    fields = st.fixed_dictionaries(
        always, optional={("_meta" if key == "meta" else key): value for key, value in optional.items()}
    )
    return fields.map(lambda found: Updated(raw=raw({"sessionUpdate": tag, **found})))


def messages() -> st.SearchStrategy[AnyBody]:
    kinds = ("user_message", "agent_message", "agent_thought")
    whole = [some(kind, {"messageId": IDS}, {"content": CONTENT, "meta": PATCHES}) for kind in kinds]
    pieces = [some(f"{kind}_chunk", {"messageId": IDS, "content": BLOCKS}, {"meta": NOTES}) for kind in kinds]
    ours = {"deleted": True, "revision": {"at": 1, "last": 2}, "about": {"messageId": "a"}}
    deleted = {"messageId": IDS, "content": st.just([]), "_meta": st.just({"antiphon": ours})}
    deletions = [some(kind, deleted, {}) for kind in kinds]
    return st.one_of(*whole, *pieces, *pieces, *deletions)


def annotations() -> st.SearchStrategy[AnyBody]:
    role = st.sampled_from(["user", "agent", "thought", "_odd"])
    about = {"annotationId": IDS, "messageId": IDS, "role": role}
    made = {
        **about,
        "kind": st.sampled_from(["reaction", "note", "_odd"]),
        "value": TEXTS,
        "by": st.builds(lambda id, name: {"clientId": id, "name": name}, IDS, TEXTS) | st.none(),
        "at": st.just("2026-01-01T00:00:00Z"),
    }
    return st.one_of(
        some("_antiphon_annotation", made, {}),
        some("_antiphon_annotation", made, {}),
        some("_antiphon_annotation", {}, {"value": st.integers(0, 3)}),
        some("_antiphon_annotation_removed", about, {}),
    )


def tools() -> st.SearchStrategy[AnyBody]:
    words = st.none() | TEXTS
    anything = st.none() | st.integers(0, 3) | st.dictionaries(IDS, st.none() | TEXTS, max_size=2)
    fields: dict[str, Any] = {
        "name": words,
        "title": words,
        "kind": st.sampled_from([None, "read", "execute", "_odd"]),
        "status": st.sampled_from([None, "in_progress", "completed", "_odd"]),
        "content": st.none() | st.lists(ITEMS, max_size=2),
        "locations": st.sampled_from([None, [], [{"path": "/f", "line": 3}]]),
        "rawInput": anything,
        "rawOutput": anything,
        "capabilities": st.sampled_from([None, {}, {"cancel": {}}]),
        "meta": PATCHES,
    }
    return st.one_of(
        some("tool_call_update", {"toolCallId": IDS}, fields),
        some("tool_call_content_chunk", {"toolCallId": IDS, "content": ITEMS}, {"meta": NOTES}),
    )


def terminals() -> st.SearchStrategy[AnyBody]:
    fields: dict[str, Any] = {
        "command": st.none() | TEXTS,
        "cwd": st.sampled_from([None, "/tmp"]),
        "output": st.none() | st.builds(lambda data: {"data": data}, BASE64),
        "exitStatus": st.sampled_from([None, {}, {"exitCode": -1}, {"signal": "SIGKILL"}]),
        "size": st.sampled_from([None, {"cols": 80, "rows": 24}]),
        "capabilities": st.sampled_from([None, {"cancel": {}}]),
        "meta": PATCHES,
    }
    return st.one_of(
        some("terminal_update", {"terminalId": IDS}, fields),
        some("terminal_output_chunk", {"terminalId": IDS, "data": BASE64}, {}),
        some("terminal_output_chunk", {"terminalId": IDS, "data": BASE64}, {"meta": NOTES}),
    )


def plans() -> st.SearchStrategy[AnyBody]:
    entry = st.fixed_dictionaries(
        {
            "content": TEXTS,
            "priority": st.sampled_from(["high", "_odd"]),
            "status": st.sampled_from(["pending", "cancelled"]),
        }
    )
    plan = st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("items"), "planId": IDS, "entries": st.lists(entry, max_size=2)}
        ),
        st.fixed_dictionaries({"type": st.just("_tree"), "planId": IDS, "root": TEXTS}),
        st.fixed_dictionaries({"type": st.just("markdown"), "planId": IDS, "content": TEXTS}),
    )
    return st.one_of(
        some("plan_update", {"plan": plan}, {"meta": NOTES}), some("plan_removed", {"planId": IDS}, {})
    )


ODD = {"type": "_x", "name": "n", "description": "d", "configId": "c", "depth": 3}
"""Fits every open union of commands and config options."""


def facts() -> st.SearchStrategy[AnyBody]:
    commands = st.sampled_from([[], [{"type": "command", "name": "n", "description": "d"}], [ODD]])
    options = st.sampled_from(
        [[], [{"type": "boolean", "currentValue": True, "configId": "c", "name": "n"}], [ODD]]
    )
    status = st.sampled_from(["in_progress", "completed", "failed", "_odd"])
    words = st.none() | TEXTS
    return st.one_of(
        some("available_commands_update", {"availableCommands": commands}, {"meta": NOTES}),
        some("config_option_update", {"configOptions": options}, {}),
        some("session_info_update", {}, {"title": words, "updatedAt": words, "meta": PATCHES}),
        some(
            "usage_update",
            {"used": st.integers(0, 9), "size": st.integers(0, 9)},
            {"cost": st.sampled_from([None, {"amount": 0.5, "currency": "EUR"}]), "meta": NOTES},
        ),
        some(
            "compaction_update",
            {"compactionId": IDS, "status": status},
            {"summary": CONTENT, "error": words, "meta": PATCHES},
        ),
        some("compaction_summary_chunk", {"compactionId": IDS, "content": BLOCKS}, {}),
        some("notice", {"severity": st.just("info"), "title": st.just("Hello")}, {}),
    )


def states() -> st.SearchStrategy[AnyBody]:
    background = st.sampled_from(
        [None, [], [{"type": "terminal", "terminalId": "a"}], [{"type": "_timer", "id": 1}]]
    )
    names = st.sampled_from(["running", "running", "idle", "idle", "requires_action", "unknown", "_dreaming"])
    return st.one_of(
        some("state_update", {"state": names}, {"background": background, "meta": NOTES}),
        some("state_update", {"state": names}, {}),
        some(
            "state_update",
            {"state": st.just("idle")},
            {
                "stopReason": st.sampled_from(["end_turn", "cancelled", "error", "_odd", 7]),
                "error": st.just({"code": -32603, "message": "m", "data": {"reason": "interrupted"}}),
                "usage": st.just({"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}),
                "background": background,
            },
        ),
        some("state_change", {"state": names}, {"stop_reason": st.just("end_turn")}),
    )


def prompts() -> st.SearchStrategy[AnyBody]:
    content = st.lists(BLOCKS, min_size=1, max_size=2).map(raw)
    maybe = st.none() | IDS
    return st.one_of(
        st.builds(
            e.PromptQueued,
            message_id=IDS,
            raw_content=content,
            delivery=st.sampled_from(e.Delivery),
            held=st.booleans(),
            operation_id=maybe,
            sender=NAMED,
            meta=st.none() | NOTES,
        ),
        st.builds(e.PromptEdited, message_id=IDS, raw_content=content),
        st.builds(e.PromptMoved, message_id=IDS, before=maybe),
        st.builds(e.PromptWithdrawn, message_id=IDS),
        st.builds(e.PromptSent, message_id=IDS),
        st.builds(e.PromptAccepted, message_id=IDS, became=maybe),
        st.builds(
            e.PromptRejected,
            message_id=IDS,
            error=st.just(ErrorObject(-32800, "Request cancelled", {"reason": "x"})),
        ),
        st.just(e.QueuePaused()),
        st.just(e.QueueResumed()),
        st.builds(e.OperationDone, operation_id=IDS),
    )


def questions() -> st.SearchStrategy[AnyBody]:
    about = st.sampled_from(
        [
            permission(),
            permission(
                "allow_always", subject={"type": "tool_call", "toolCall": {"toolCallId": "t", "title": "T"}}
            ),
            permission(subject={"type": "_weather"}),
            raw({"not": "a permission"}),
        ]
    )
    maybe = st.none() | IDS
    return st.one_of(
        st.builds(asked, IDS, about),
        st.builds(asked, IDS, about, tool_call_id=maybe, terminal_id=maybe),
        st.builds(
            e.QuestionClosed,
            question_id=IDS,
            end=st.sampled_from(e.QuestionEnd),
            result=st.sampled_from([e.NO_RESULT, selected("allow_once")]),
            by=NAMED,
            operation_id=maybe,
        ),
    )


def strangers() -> st.SearchStrategy[AnyBody]:
    """Unknown updates, known ones that are not folded, and a known tag with a bad payload."""
    return st.one_of(
        some("_antiphon_queue", {}, {"entries": st.just([])}),
        some("agent_message_chunk", {"messageId": st.just(3)}, {}),
    )


def subagents() -> st.SearchStrategy[AnyBody]:
    words = st.none() | TEXTS
    ended = {"state": "idle", "stopReason": "end_turn"}
    state = st.sampled_from([None, {"state": "running"}, ended, {"state": "_odd"}])
    able = st.sampled_from([None, {}, {"cancel": {}}])
    told = {"title": words, "description": words, "state": state, "capabilities": able, "meta": PATCHES}
    parties = dict.fromkeys(("senderSessionId", "recipientSessionId", "senderMessageId"), st.none() | IDS)
    return st.one_of(
        some("subagent_update", {"sessionId": IDS}, told),
        some("session_message", {"messageId": IDS}, {**parties, "content": CONTENT, "meta": PATCHES}),
        some("session_message_chunk", {"messageId": IDS, "content": BLOCKS}, {}),
    )


def lifecycle() -> st.SearchStrategy[AnyBody]:
    created = e.SessionCreated(session_id="s", cwd="/w", additional_directories=("/x",), meta={"k": 1})
    return st.sampled_from([created, e.SessionClosed(), e.SessionReopened()])


BODIES = st.one_of(
    messages(), messages(), tools(), terminals(), plans(), facts(), states(), prompts(), prompts(),
    questions(), strangers(), subagents(), lifecycle(), annotations(),
)  # fmt: skip
JOURNALS = st.lists(BODIES, max_size=40).map(lambda bodies: number(bodies, after=0, at=AT))
