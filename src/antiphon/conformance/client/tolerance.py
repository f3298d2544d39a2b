"""Scenarios about what a client does not know: it must take it and go on with the turn."""

from __future__ import annotations

from typing import Any

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import say, state, text
from antiphon.conformance.client.printed import Words
from antiphon.conformance.client.trials import Trial, run_trials
from antiphon.conformance.scenario import Collection

scenarios = Collection("tolerance")

UNKNOWN = "_judge"
"""A value that nobody knows."""
ANYTHING: list[Any] = [None, 1.5, {"deep": [[]]}, "text"]


def _tool_call(id: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id, **fields}


def _terminal(id: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "terminal_update", "terminalId": id, **fields}


def _plan(plan: dict[str, Any]) -> dict[str, Any]:
    return {"sessionUpdate": "plan_update", "plan": plan}


def _unknown_update(word: Words) -> list[dict[str, Any]]:
    return [{"sessionUpdate": UNKNOWN, "payload": ANYTHING}]


def _unknown_properties(word: Words) -> list[dict[str, Any]]:
    chunk = say(f"{word()} ", "judge-extra")
    return [{**chunk, "antiphonJudge": ANYTHING, "content": {**chunk["content"], "antiphonJudge": ANYTHING}}]


def _meta(word: Words) -> list[dict[str, Any]]:
    meta = {"antiphon.judge": ANYTHING}
    chunk = say(f"{word()} ", "judge-meta")
    return [
        {**chunk, "_meta": meta, "content": {**chunk["content"], "_meta": meta}},
        {**chunk, "_meta": None},
    ]


def _raw_values_v1(word: Words) -> list[dict[str, Any]]:
    values = (ANYTHING, 7, "text", False, None)
    call = {"sessionUpdate": "tool_call", "toolCallId": "judge-raw", "title": "Raw", "rawInput": ANYTHING}
    return [call, *(_tool_call("judge-raw", rawInput=value, rawOutput=value) for value in values)]


def _raw_values_v2(word: Words) -> list[dict[str, Any]]:
    values = (ANYTHING, 7, "text", False, None)
    return [_tool_call("judge-raw", title="Raw", rawInput=value, rawOutput=value) for value in values]


def _lenient_v1(word: Words) -> list[dict[str, Any]]:
    return [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "judge-lenient",
            "title": "Lenient",
            "kind": 7,
            "status": [],
            "content": "none",
            "locations": [7, {"path": "/tmp/judge", "line": 1}],
        },
        {"sessionUpdate": "available_commands_update", "availableCommands": [7]},
        {**say(f"{word()} "), "messageId": 7},
    ]


def _lenient_v2(word: Words) -> list[dict[str, Any]]:
    return [
        _tool_call(
            "judge-lenient", title=7, kind=7, status=[], content="none",
            locations=[7, {"path": "/tmp/judge", "line": 1}], capabilities=7,
        ),
        {"sessionUpdate": "available_commands_update", "availableCommands": [7]},
        {"sessionUpdate": "session_info_update", "title": 7, "updatedAt": 7},
    ]  # fmt: skip


def _unseen_tool_call(word: Words) -> list[dict[str, Any]]:
    return [_tool_call("judge-unseen", title="Unseen", status="in_progress")]


def _config_options(version: int, **fields: Any) -> dict[str, Any]:
    option = {
        "id" if version == 1 else "configId": "judge-option",
        "name": "Option",
        "type": "select",
        "currentValue": "a",
        "options": [{"value": "a", "name": "A"}],
    }
    return {"sessionUpdate": "config_option_update", "configOptions": [{**option, **fields}]}


def _categories(version: int) -> list[dict[str, Any]]:
    return [_config_options(version, category=UNKNOWN), _config_options(version)]


def _unknown_option_type(word: Words) -> list[dict[str, Any]]:
    update = _config_options(2)
    unknown = {"configId": "judge-unknown", "name": "Unknown", "type": UNKNOWN, "currentValue": ANYTHING}
    return [{**update, "configOptions": [unknown, *update["configOptions"]]}]


def _unknown_block(word: Words) -> list[dict[str, Any]]:
    chunk = say("", "judge-block")
    block = {"type": UNKNOWN, "payload": ANYTHING}
    message = {"sessionUpdate": "agent_message", "messageId": "judge-blocks"}
    return [
        {**chunk, "content": block},
        say(f"{word()} ", "judge-block"),
        {**message, "content": [block, text(f"{word()} ")]},
    ]


def _unknown_tool_content(word: Words) -> list[dict[str, Any]]:
    item = {"type": UNKNOWN, "payload": ANYTHING}
    return [
        _tool_call("judge-content", title="Content", content=[item]),
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "judge-content", "content": item},
    ]


def _unknown_tool_values(word: Words) -> list[dict[str, Any]]:
    return [
        _tool_call("judge-values", title="Values", status=UNKNOWN, kind=UNKNOWN),
        *(_tool_call("judge-values", status=status) for status in ("paused", "cancelled")),
    ]


def _bare_tool_call(word: Words) -> list[dict[str, Any]]:
    return [_tool_call("judge-bare")]


def _tool_chunk_first(word: Words) -> list[dict[str, Any]]:
    content = {"type": "content", "content": text("output")}
    return [
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "judge-chunk-first", "content": content},
        _tool_call("judge-chunk-first", title="Late title", status="completed"),
    ]


def _unknown_plan(word: Words) -> list[dict[str, Any]]:
    entry = {"content": "Judge", "priority": "high", "status": "pending"}
    return [
        _plan({"type": "items", "planId": "judge-plan", "entries": [entry]}),
        _plan({"type": UNKNOWN, "planId": "judge-plan", "payload": ANYTHING}),
    ]


def _unknown_command(word: Words) -> list[dict[str, Any]]:
    known = {"type": "command", "name": "known", "description": "Known"}
    commands = [
        {"type": UNKNOWN, "name": "unknown", "description": "Unknown"},
        {**known, "input": {"type": UNKNOWN, "payload": ANYTHING}},
    ]
    return [{"sessionUpdate": "available_commands_update", "availableCommands": commands}]


def _background(word: Words) -> list[dict[str, Any]]:
    return [state("running", background=[{"type": UNKNOWN, "id": "judge"}]), state("running")]


def _unknown_state(word: Words) -> list[dict[str, Any]]:
    return [state(UNKNOWN), say(f"{word()} ", "judge-unknown-state"), state("running")]


def _diff(word: Words) -> list[dict[str, Any]]:
    change = {"operation": "modify", "path": "/tmp/judge.txt"}
    return [_tool_call("judge-diff", title="Diff", content=[{"type": "diff", "changes": [change]}])]


def _terminals(word: Words) -> list[dict[str, Any]]:
    def shown(id: str) -> dict[str, Any]:
        return _tool_call(f"call-{id}", title="Terminal", content=[{"type": "terminal", "terminalId": id}])

    return [
        shown("judge-referred-first"),
        _terminal("judge-referred-first", command="echo"),
        _terminal("judge-updated-first", command="echo"),
        shown("judge-updated-first"),
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "judge-chunk-only", "data": "anVkZ2U="},
    ]


def _exit_status(word: Words) -> list[dict[str, Any]]:
    return [
        _terminal(f"judge-exit-{n}", exitStatus=status) for n, status in enumerate(({}, {"exitCode": -1}))
    ]


def _compaction(word: Words) -> list[dict[str, Any]]:
    chunk = {"sessionUpdate": "compaction_summary_chunk", "compactionId": "judge-compaction"}
    return [
        {**chunk, "content": text("summary")},
        {"sessionUpdate": "compaction_update", "compactionId": "judge-compaction", "status": "completed"},
    ]


def _nulls(word: Words) -> list[dict[str, Any]]:
    info: dict[str, Any] = {"sessionUpdate": "session_info_update"}
    return [{**info, "title": "Judged"}, {**info, "title": None, "updatedAt": None}, info]


_PROPERTIES = Trial("RPC-39", "ignore properties that it does not know", _unknown_properties)
_META = Trial("EXT-04", "give no meaning to unknown keys of `_meta`, and take `null`", _meta)
_INFO = Trial("INFO-01", "take a title, `null` and no title", _nulls)

V1 = (
    Trial("EXT-10", "take an unknown kind of update without failing the session", _unknown_update),
    _PROPERTIES,
    _META,
    _INFO,
    Trial("RPC-42", "take any JSON as `rawInput` and `rawOutput`", _raw_values_v1),
    Trial("RPC-40", "read malformed values of lenient fields as absent", _lenient_v1),
    Trial("TOOL-V1-04", "take an update of an unseen tool call as its creation", _unseen_tool_call),
    Trial("CONF-03", "take any category of a config option, and none", lambda word: _categories(1)),
)
V2 = (
    Trial("EXT-07", "take an unknown kind of update", _unknown_update),
    _PROPERTIES,
    _META,
    _INFO,
    Trial("RPC-42", "take any JSON as `rawInput` and `rawOutput`", _raw_values_v2),
    Trial("RPC-40", "read malformed values of lenient fields as absent", _lenient_v2),
    Trial("CONF-03", "take any category of a config option, and none", lambda word: _categories(2)),
    Trial("CONF-V2-05", "ignore an unknown type of config option", _unknown_option_type),
    Trial("CONT-08", "ignore an unknown type of content, or show it generically", _unknown_block),
    Trial(
        "TOOL-V2-16", "ignore an unknown type of tool content, or show it generically", _unknown_tool_content
    ),
    Trial("TOOL-V2-07", "take `paused`, `cancelled` and unknown statuses and kinds", _unknown_tool_values),
    Trial("TOOL-V2-03", "take a tool call with nothing but its id", _bare_tool_call),
    Trial("TOOL-V2-06", "take a chunk of an unseen tool call as its creation", _tool_chunk_first),
    Trial("PLAN-V2-03", "take an unknown type of plan", _unknown_plan),
    Trial("CMD-V2-03", "take unknown types of commands and of their input", _unknown_command),
    Trial("PROMPT-V2-47", "take an unknown type of background work as running", _background),
    Trial("PROMPT-V2-48", "not take an unknown state as idle", _unknown_state),
    Trial("DIFF-04", "take a diff without `patch`", _diff),
    Trial("TERMV2-02", "take a terminal and the reference to it in either order", _terminals),
    Trial("TERMV2-06", "take an exit status without a code, and a negative code", _exit_status),
    Trial("COMP-04", "take a chunk of an unseen compaction as its creation", _compaction),
)


@scenarios.add(*(trial.requirement for trial in V1), versions=(1,))
async def unknown_in_v1(case: ClientCase) -> None:
    """A v1 client goes on after updates that it does not know."""
    await run_trials(case, V1)


@scenarios.add(*(trial.requirement for trial in V2), versions=(2,))
async def unknown_in_v2(case: ClientCase) -> None:
    """A v2 client goes on after values that it does not know."""
    await run_trials(case, V2)
