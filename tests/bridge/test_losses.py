"""The table of losses is complete: every row is reached, every lossy branch names one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tools.translation import PAGE, page

import antiphon.bridge
from antiphon.bridge import losses
from antiphon.bridge.authentication import methods_v1
from antiphon.bridge.dialects import V1Writer
from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import LOSSES, ORIGINAL, Announced, Loss
from antiphon.bridge.prompts import Answer
from antiphon.bridge.upgrade import requests
from antiphon.bridge.upgrade.configuration import Configuration
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.errors import ErrorObject, InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.v1.models import SetSessionModelResponse
from antiphon.schema.wire import Unknown
from tests.bridge.wire import (
    b64,
    capabilities,
    elicitation,
    originals,
    permission,
    plain,
    read,
    read_v1,
    shown,
    text,
)

SOURCES = sorted(Path(antiphon.bridge.__file__).parent.rglob("*.py"))
CONSTANTS = {name: value for name, value in vars(losses).items() if isinstance(value, Loss)}


def named_rows() -> list[str]:
    """The rows that the code names where it loses something. Fails on a loss without one."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
                "lose",
                "refused",
            ):
                given = node.args[0]
                for row in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
                    where = f"{path.name}:{node.lineno}"
                    assert isinstance(row, ast.Attribute), where
                    assert ast.unparse(row.value) == "losses", where
                    assert row.attr in CONSTANTS, where
                    found.append(row.attr)
    return found


def test_24_every_lossy_branch_names_a_row_and_every_row_is_named() -> None:
    assert set(named_rows()) == set(CONSTANTS)
    assert {constant.name for constant in CONSTANTS.values()} == set(LOSSES)
    assert all(name == constant.name.upper() for name, constant in CONSTANTS.items())


def test_24_the_original_is_written_in_one_place() -> None:
    for path in SOURCES:
        if path.name != "losses.py":
            assert ORIGINAL not in path.read_text(), path.name


def tool(**fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": "t", **fields}


def plan(**entry: Any) -> dict[str, Any]:
    full = {"content": "a", "priority": "low", "status": "pending", **entry}
    return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": [full]}}


def message(**fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message", "messageId": "m", **fields}


def block(content: dict[str, Any]) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}


TERMINAL = {"type": "terminal", "terminalId": "x"}
ODD = {"type": "_odd"}
SAID = message(content=[text("a")])
NOTICE = {"sessionUpdate": "notice", "severity": "info", "title": "T"}
SUBAGENT = {
    "sessionUpdate": "subagent_update",
    "sessionId": "sub",
    "state": {"state": "idle", "background": []},
}

UPDATES: dict[str, list[dict[str, Any]]] = {
    "message_replaced": [SAID, message(content=[text("b")])],
    "message_cleared": [SAID, message(content=None)],
    "message_deleted": [SAID, message(content=[], _meta={"antiphon": {"deleted": True}})],
    "message_meta": [SAID, message(_meta={"k": 1})],
    "message_id": [SAID, {"sessionUpdate": "agent_thought", "messageId": "m", "content": [text("a")]}],
    "content_type": [block(ODD)],
    "content_audience": [block({**text("a"), "annotations": {"audience": ["_odd"]}})],
    "content_icons": [
        block({"type": "resource_link", "name": "x", "uri": "x:y", "icons": [{"src": "data:,"}]})
    ],
    "tool_status": [tool(status="paused")],
    "tool_kind": [tool(kind="_odd")],
    "tool_cleared": [tool(title="T"), tool(title=None)],
    "tool_capabilities": [tool(capabilities={"cancel": {}})],
    "tool_content_type": [tool(content=[ODD])],
    "tool_chunk_meta": [
        {
            "sessionUpdate": "tool_call_content_chunk",
            "toolCallId": "t",
            "content": shown("a"),
            "_meta": {"k": 1},
        }
    ],
    "terminal": [tool(content=[TERMINAL])],
    "terminal_alone": [{"sessionUpdate": "terminal_update", "terminalId": "x"}],
    "terminal_data": [
        tool(content=[TERMINAL]),
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": "%"},
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": b64("fine")},
    ],
    "diff": [tool(content=[{"type": "diff", "changes": [{"operation": "delete", "path": "/a"}]}])],
    "plan_entry_cancelled": [plan(status="cancelled")],
    "plan_entry_value": [plan(status="_odd")],
    "plan_type": [{"sessionUpdate": "plan_update", "plan": {"type": "_odd", "planId": "p"}}],
    "command_type": [
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"type": "_odd", "name": "a", "description": "A"}],
        }
    ],
    "command_input": [
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"type": "command", "name": "a", "description": "A", "input": ODD}],
        }
    ],
    "config_option": [
        {
            "sessionUpdate": "config_option_update",
            "configOptions": [{"type": "boolean", "configId": "b", "name": "B", "currentValue": True}],
        }
    ],
    "notice": [NOTICE],
    "compaction": [{"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}],
    "subagent": [SUBAGENT],
    "state": [{"sessionUpdate": "state_update", "state": "running"}],
    "unknown_update": [{"sessionUpdate": "_odd"}],
}
"""For each row updates that reach it, written to a client that asked for nothing."""


def asked(to: V1Writer, **fields: Any) -> list[Any]:
    option = {"optionId": "y", "name": "Y", "kind": "allow_once"}
    made = to.asked(permission(**{"title": "T", "options": [option], **fields}), question="1")
    assert made is not None
    return [plain(made.params)]


def prompted(report: Callable[[Loss, Any], None], **fields: Any) -> list[Any]:
    link = {"type": "resource_link", "uri": "x:y", "name": "x", **fields}
    raw = msgspec.json.encode({"sessionId": "s", "prompt": [link]})
    return [plain(requests.prompt(codec(1).params(Kind.REQUEST, "session/prompt", raw), report=report))]


def ended(to: V1Writer) -> list[Any]:
    idle = read({"sessionUpdate": "state_update", "state": "idle", "stopReason": "_odd"})
    return [plain(step.given) for step in to.ended(idle, [1]) if isinstance(step, Answer)]


LIFTED: dict[str, list[dict[str, Any]]] = {
    "client_terminal": [tool(content=[TERMINAL])],
    "location_line": [tool(locations=[{"path": "/f", "line": 0}])],
    "mode": [{"sessionUpdate": "current_mode_update", "currentModeId": "m"}],
    "config_values": [
        {
            "sessionUpdate": "config_option_update",
            "configOptions": [
                {"type": "select", "id": "x", "name": "X", "currentValue": "a", "options": []},
            ],
        }
    ],
    "updated_at": [{"sessionUpdate": "session_info_update", "updatedAt": "soon"}],
    "unreadable_update": [{"sessionUpdate": "agent_message"}],
}
"""For each row of what a v1 agent sends, updates that reach it."""


def lifted(name: str, report: Callable[[Loss, Any], None]) -> list[Any]:
    """What a v1 agent sends, or does to a prompt, that reaches a row."""
    up = Upgrade(report=report)
    if name in LIFTED:
        return [plain(sent) for raw in LIFTED[name] for sent in up.update(read_v1(raw))]
    up.prompted(1, [])
    match name:
        case "prompt_end":
            up.prompted(2, [])
            up.failed(2, ErrorObject(-32603, "Busy"))
        case "cancel_failed":
            up.cancelled()
        case "other_turn":
            return [*up.update(read_v1({"sessionUpdate": "turn_complete", "stopReason": "end_turn"}))]
        case "error_code":
            return [*map(plain, up.failed(1, ErrorObject(2**40, "Odd")))]
        case _:
            raise AssertionError(f"nothing reaches {name}")
    return [*map(plain, up.failed(1, ErrorObject(-32603, "Aborted")))]


MODELS = b'"sessionId":"s","models":{"currentModelId":"a","availableModels":[{"modelId":"b","name":"B"}]}'


def other_ways(name: str, to: V1Writer, report: Callable[[Loss, Any], None]) -> list[Any]:
    """What reaches a row that no update to a plain client reaches."""
    options = [
        {"optionId": id, "name": id, "kind": kind} for id, kind in (("y", "allow_once"), ("o", "_odd"))
    ]
    match name:
        case "stop_reason":
            return ended(to)
        case "permission_option":
            return asked(to, options=options)
        case "permission_subject":
            return asked(to, subject=ODD)
        case "elicitation_format":
            return [plain(to.elicited(elicitation({"a": {"type": "string", "format": "_station"}})))]
        case "annotation_priority":
            return prompted(report, annotations={"priority": 7.0})
        case "resource_size":
            return prompted(report, size=-1)
        case "auth_method":
            odd: Any = Unknown({"type": "_odd", "methodId": "m", "name": "M"})
            return [*methods_v1([odd], report=report)]
        case "model":
            up = Upgrade()
            given = up.configuration.new_session(codec(1).result("session/new", b"{%b}" % MODELS))
            to.opened(given)
            chosen = up.configuration.set_model("b", SetSessionModelResponse())
            told: Any = v2.ConfigOptionUpdate(config_options=chosen.config_options)
            return [plain(raw) for raw in to.write(told, msgspec.json.encode(told))]
        case "subagent_state":
            able = V1Writer(capabilities(subagents={}), report=report)
            given = read(SUBAGENT)
            return [plain(raw) for raw in able.write(given, msgspec.json.encode(given))]
    return lifted(name, report)


REFUSED = [name for name, loss in LOSSES.items() if loss.announced is Announced.REFUSED]


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in REFUSED])
def test_24_every_row_is_reached_and_announced_as_it_says(name: str) -> None:
    lost: list[str] = []

    def report(loss: Loss, original: Any) -> None:
        assert original is not None
        lost.append(loss.name)

    to = V1Writer(report=report)
    sent: list[Any] = []
    if name in UPDATES:
        for given in map(read, UPDATES[name]):
            sent += [plain(raw) for raw in to.write(given, msgspec.json.encode(given))]
    else:
        sent = other_ways(name, to, report)
    assert name in lost
    if LOSSES[name].announced is Announced.META:
        assert originals(sent)
    elif name != "terminal_data":  # beside it stands a terminal, whose original is told
        assert not originals(sent)


def test_losses_are_counted_by_name_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    counter = losses.LossCounter()
    ledger = losses.Ledger(counter)
    with caplog.at_level("DEBUG", "antiphon.bridge"):
        ledger.lose(losses.STATE, "private")
        ledger.lose(losses.STATE, "private")
        with ledger.muted():
            ledger.lose(losses.STATE, "private")
    assert counter.counts == {"state": 2}
    assert [record.message.split(": ")[:2] for record in caplog.records] == [["bridge loss", "state"]] * 2
    assert "private" not in caplog.text


def test_an_update_that_a_v1_client_gets_as_its_agent_wrote_it_loses_nothing() -> None:
    counter = losses.LossCounter()
    update = v2.SessionToolCallUpdate(tool_call_id=v2.ToolCallId("t"), kind=v2.ToolKind("_odd"))
    written = b'{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"_odd"}'
    assert [*V1Writer(report=counter).write_translated(update, b"", written)] == [written]
    assert not counter.counts
    V1Writer(report=counter).write(update, b"")
    assert counter.counts == {"tool_kind": 1}


def asks(version: int, method: str, **params: Any) -> Any:
    full = {"sessionId": "s", "cwd": "/", "mcpServers": [], **params}
    return codec(version).params(Kind.REQUEST, method, msgspec.json.encode(full))


def asked_otherwise(name: str) -> Any:
    """What reaches a row of requests that are refused."""
    able = v1.AgentCapabilities()
    http = {"type": "http", "name": "h", "url": "https://example.com", "headers": []}
    match name:
        case "mcp_sse":
            return requests.new_session(asks(1, "session/new", mcpServers=[{**http, "type": "sse"}]))
        case "mcp_type":
            return requests_v1.new_session(asks(2, "session/new", mcpServers=[http]), capabilities=able)
        case "directories":
            wanted = asks(2, "session/new", additionalDirectories=["/x"])
            return requests_v1.new_session(wanted, capabilities=able)
        case "replay_cursor":
            wanted = asks(2, "session/resume", replayFrom={"type": "_odd"})
            return requests_v1.resume_session(wanted, capabilities=able)
        case "load":
            return requests_v1.resume_session(asks(2, "session/resume"), capabilities=able)
        case "prompt_content":
            image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
            return requests_v1.prompt(asks(2, "session/prompt", prompt=[image]), capabilities=able)
        case "config_value":
            wanted = asks(2, "session/set_config_option", configId="c", type="_odd", value=1)
            return requests_v1.set_config_option(wanted, Configuration(losses.Ledger()))
    raise AssertionError(f"nothing reaches {name}")


@pytest.mark.parametrize("name", REFUSED)
def test_24_2_what_cannot_be_asked_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        asked_otherwise(name)
    assert refused.value.to_wire().code == -32602
    assert refused.value.to_wire().data == {"reason": name}


def test_24_the_page_is_made_of_the_table() -> None:
    """`python -m tools.translation` writes it anew."""
    assert PAGE.read_text() == page()
