"""Rules fail each broken frame for exactly its requirement, and correct traffic that is unusual for none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.conformance.recording import Recording, Role
from antiphon.conformance.revisions import PINNED
from antiphon.conformance.rules.rule import facts_of
from antiphon.conformance.rules.suite import RULES

CLIENT, AGENT = Role.CLIENT, Role.AGENT
INFO = {"name": "a", "version": "1"}
Frame = tuple[Role, Any]
PROMPT = [{"type": "text", "text": "hi"}]


def recorded(*frames: Frame) -> Recording:
    """Return a recording of frames: objects get `jsonrpc`, bytes stay as they are."""
    recording = Recording(lambda: 0.0)
    for sender, frame in frames:
        whole = frame if isinstance(frame, bytes) else json.dumps({"jsonrpc": "2.0", **frame}).encode()
        recording.add(sender, whole)
    return recording


def initialized(version: int, client: Any = None, agent: Any = None, **result: Any) -> list[Frame]:
    """Return the frames of `initialize`, with the capabilities of both sides."""
    if version == 1:
        params = {"protocolVersion": 1, "clientInfo": INFO, "clientCapabilities": client or {}}
        answer = {"protocolVersion": 1, "agentInfo": INFO, "agentCapabilities": agent or {}}
    else:
        params = {"protocolVersion": 2, "info": INFO, "capabilities": client or {}}
        offered = {"session": {}} if agent is None else agent
        answer = {"protocolVersion": 2, "info": INFO, "capabilities": offered}
    return [
        (CLIENT, {"id": 0, "method": "initialize", "params": params}),
        (AGENT, {"id": 0, "result": answer | result}),
    ]


def asked(id: Any, method: str, params: Any = None) -> Frame:
    return CLIENT, {"id": id, "method": method, "params": {"sessionId": "s"} if params is None else params}


def update(**fields: Any) -> Frame:
    return AGENT, {"method": "session/update", "params": {"sessionId": "s", "update": fields}}


def answered(id: Any, result: Any) -> Frame:
    return AGENT, {"id": id, "result": result}


def made(version: int) -> list[Frame]:
    """Return the frames that make the session `s`."""
    setup = {"cwd": "/", "mcpServers": []} if version == 1 else {"cwd": "/"}
    return [asked(1, "session/new", setup), answered(1, {"sessionId": "s"})]


def broken(recording: Recording, side: Role, revision: str = PINNED) -> set[str]:
    """Return the requirements that a side breaks."""
    facts = facts_of(recording, side, revision=revision)
    assert facts is not None
    return {
        finding.requirement
        for rule in RULES
        if side in rule.parties and facts.version in rule.versions
        for finding in rule.find(recording, facts)
        if not finding.ok
    }


def chunk(kind: str, id: Any, text: str = "x") -> Frame:
    return update(sessionUpdate=kind, messageId=id, content={"type": "text", "text": text})


PERMISSION_V1: Frame = (
    AGENT,
    {
        "id": 1,
        "method": "session/request_permission",
        "params": {
            "sessionId": "s",
            "toolCall": {"toolCallId": "t"},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
        },
    },
)
PERMISSION_V2: Frame = (
    AGENT,
    {
        "id": 1,
        "method": "session/request_permission",
        "params": {
            "sessionId": "s",
            "title": "Run?",
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
        },
    },
)
MCP_HTTP = {"type": "http", "name": "m", "url": "https://x", "headers": []}


@pytest.mark.parametrize(
    ("requirement", "frames"),
    [
        ("INIT-01", [(CLIENT, {"method": "_early", "params": {}}), *initialized(1)]),
        ("INIT-12", [
            (CLIENT, {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}),
            initialized(1)[1],
        ]),
        ("INIT-13", [
            (CLIENT, {"id": 0, "method": "initialize", "params": {"protocolVersion": 2}}),
            initialized(2)[1],
        ]),
        ("INIT-16", initialized(2, client={"elicitation": {"form": True}})),
        ("INIT-18", initialized(1, client={"fs": {"readTextFile": {}}})),
        ("INIT-22", initialized(2, client={"colours": {}})),
        ("INIT-23", initialized(1, client={"colours": {}})),
        ("SESS-12", [
            *initialized(1), asked(1, "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []}),
        ]),
        ("SESS-14", [*initialized(1), asked(1, "session/resume", {"sessionId": "s", "cwd": "/"})]),
        ("SESS-29", [*initialized(1), asked(1, "session/list", {})]),
        ("SESS-29", [*initialized(1), asked(1, "session/close")]),
        ("SESS-29", [*initialized(1), asked(1, "session/delete")]),
        ("SESS-51", [*initialized(2), asked(1, "session/fork", {"sessionId": "s", "cwd": "/"})]),
        ("INIT-14", [*initialized(2), asked(1, "session/delete")]),
        ("INIT-14", [*initialized(2, agent={}), asked(1, "session/new", {"cwd": "/"})]),
        ("AUTH-11", [*initialized(1), asked(1, "logout", {})]),
        ("AUTH-10", [*initialized(2), asked(1, "auth/logout", {}), answered(1, {})]),
        ("AUTH-08", [
            *initialized(1, authMethods=[{"id": "key", "name": "Key"}]),
            asked(1, "authenticate", {"methodId": "other"}), answered(1, {}),
        ]),
        ("SESS-01", [*initialized(1), asked(1, "session/new", {"cwd": "/"})]),
        ("SESS-04", [*initialized(2), asked(1, "session/new", {"cwd": "site"})]),
        ("SESS-09", [
            *initialized(2), asked(1, "session/new", {"cwd": "/", "additionalDirectories": ["/a"]}),
        ]),
        ("MCPCFG-02", [*initialized(1), asked(1, "session/new", {"cwd": "/", "mcpServers": [MCP_HTTP]})]),
        ("MCPCFG-04", [*initialized(2), asked(1, "session/new", {"cwd": "/", "mcpServers": [MCP_HTTP]})]),
        ("MCPCFG-08", [
            *initialized(1),
            asked(1, "session/new", {
                "cwd": "/", "mcpServers": [{"name": "m", "command": "npx", "args": [], "env": []}],
            }),
        ]),
        ("MCPCFG-07", [
            *initialized(2, agent={"session": {"mcp": {"stdio": {}}}}),
            asked(1, "session/new", {"cwd": "/", "mcpServers": [{
                "type": "stdio", "name": "m", "command": "/m",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            }]}),
        ]),
        ("MCPACP-01", [
            *initialized(2),
            asked(1, "session/new", {
                "cwd": "/", "mcpServers": [{"type": "acp", "name": "m", "serverId": "x"}],
            }),
        ]),
        ("SESS-27", [
            *initialized(2), *made(2), asked(2, "session/resume", {"sessionId": "s", "cwd": "/other"}),
        ]),
        ("SESS-58", [
            *initialized(2),
            asked(1, "session/new", {"cwd": "/", "systemPrompt": {"mode": "append", "content": PROMPT}}),
        ]),
        ("CONT-02", [
            *initialized(2), *made(2),
            asked(2, "session/prompt", {
                "sessionId": "s", "prompt": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
            }),
        ]),
        ("PROMPT-V2-01", [
            *initialized(2), *made(2), asked(2, "session/prompt", {"sessionId": "s", "prompt": []}),
        ]),
        ("MSG-10", [
            *initialized(2), *made(2),
            asked(2, "session/prompt", {"sessionId": "s", "prompt": PROMPT, "messageId": "mine"}),
        ]),
        ("CONF-V2-01", [
            *initialized(2), *made(2),
            asked(2, "session/set_config_option", {"sessionId": "s", "type": "id", "value": "x"}),
        ]),
        ("CONF-V1-02", [
            *initialized(1), asked(1, "session/new", {"cwd": "/", "mcpServers": []}),
            answered(1, {"sessionId": "s", "modes": {
                "currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}],
            }}),
            asked(2, "session/set_mode", {"sessionId": "s", "modeId": "b"}), answered(2, {}),
        ]),
        ("EXT-12", [*initialized(1), (CLIENT, update()[1] | {"method": "session/update"})]),
        ("EXT-12", [*initialized(2), asked(1, "session/load")]),
        ("EXT-12", [*initialized(2), (CLIENT, {"id": 9, "method": "session/cancel", "params": {}})]),
        ("TOOL-V2-12", [
            *initialized(2), *made(2), asked(2, "tool_call/cancel", {"sessionId": "s", "toolCallId": "t"}),
        ]),
        ("TERMV2-10", [
            *initialized(2), *made(2),
            update(sessionUpdate="terminal_update", terminalId="t", capabilities={"cancel": {}}),
            update(sessionUpdate="terminal_update", terminalId="t", exitStatus={}, capabilities=None),
            asked(2, "terminal/cancel", {"sessionId": "s", "terminalId": "t"}),
        ]),
        ("PERM-V1-02", [*initialized(1), PERMISSION_V1, (CLIENT, {"id": 1, "result": {"optionId": "y"}})]),
        ("PERM-V1-03", [
            *initialized(1), PERMISSION_V1,
            (CLIENT, {"method": "session/cancel", "params": {"sessionId": "s"}}),
            (CLIENT, {"id": 1, "result": {"outcome": {"outcome": "selected", "optionId": "y"}}}),
        ]),
        ("PERM-V2-09", [
            *initialized(2), PERMISSION_V2,
            (AGENT, {"method": "$/cancel_request", "params": {"requestId": 1}}),
            (CLIENT, {"id": 1, "error": {"code": -32800, "message": "Request cancelled"}}),
        ]),
        ("FS-02", [
            *initialized(1, client={"fs": {"readTextFile": True}}),
            (AGENT, {"id": 1, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/a"}}),
            (CLIENT, {"id": 1, "result": {"text": "hi"}}),
        ]),
        ("RPC-03", [*initialized(2), asked(None, "_x", {})]),
        ("RPC-05", [*initialized(1), PERMISSION_V1, (CLIENT, {"id": "1", "result": {"outcome": {}}})]),
        ("RPC-06", [*initialized(2), asked(7, "_x", {}), asked(7, "_y", {})]),
        ("RPC-13", [*initialized(1), (CLIENT, b'[{"jsonrpc":"2.0","method":"_x"}]')]),
        ("RPC-44", [*initialized(2), asked(1, "session/new", {"cwd": "/", "mcp_servers": []})]),
        ("EXT-03", [*initialized(2), asked(1, "session/new", {"cwd": "/", "colour": "red"})]),
        ("EXT-04", [*initialized(2), asked(1, "session/new", {"cwd": "/", "_meta": 7})]),
        ("TRANS-04", [*initialized(2), (CLIENT, b"hello?")]),
        ("TRANS-01", [*initialized(2), (CLIENT, b'{"jsonrpc":"2.0","method":"_\xff"}')]),
    ],
)  # fmt: skip
def test_a_broken_client_is_failed_for_exactly_its_requirement(requirement: str, frames: list[Frame]) -> None:
    assert broken(recorded(*frames), CLIENT) == {requirement}


TURN_V1: list[Frame] = [
    *initialized(1, agent={"loadSession": True}),
    *made(1),
    asked("p", "session/prompt", {"sessionId": "s", "prompt": PROMPT}),
]
TURN_V2: list[Frame] = [
    *initialized(2),
    *made(2),
    asked("p", "session/prompt", {"sessionId": "s", "prompt": PROMPT}),
    answered("p", {"messageId": "m"}),
]
END_V1 = answered("p", {"stopReason": "end_turn"})
CALL = {"toolCallId": "t", "title": "T", "status": "completed"}
LOAD = asked(5, "session/load", {"sessionId": "s", "cwd": "/", "mcpServers": []})
RESUME = asked(5, "session/resume", {"sessionId": "s", "cwd": "/", "replayFrom": {"type": "start"}})
COMMAND = {"name": "go", "description": "Go"}
HALF_AN_EMOJI = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud83d"}}}}'
)
BOTH_SHAPES = {
    "protocolVersion": 2, "info": INFO, "capabilities": {},
    "clientInfo": INFO, "clientCapabilities": {"fs": {"readTextFile": True}},
}  # fmt: skip
LISTED = {"sessionId": "s", "cwd": "C:\\site", "createdAt": "2026-01-01T00:00:00Z", "title": None}


def refused(id: Any, code: int) -> Frame:
    return AGENT, {"id": id, "error": {"code": code, "message": "No"}}


def cost(amount: float, currency: str) -> Frame:
    price = {"amount": amount, "currency": currency}
    return update(sessionUpdate="usage_update", used=1, size=9, cost=price)


def state(name: str, **fields: Any) -> Frame:
    return update(sessionUpdate="state_update", state=name, **fields)


@pytest.mark.parametrize(
    "frames",
    {
        "a null message id in v1": [*TURN_V1, chunk("agent_message_chunk", None), END_V1],
        "half an emoji": [*TURN_V1, (AGENT, HALF_AN_EMOJI), END_V1],
        "null as the result of a load": [*TURN_V1, END_V1, LOAD, answered(5, None)],
        "interleaved v1 messages": [*TURN_V1, *(chunk("agent_message_chunk", id) for id in "aba"), END_V1],
        "a message across two v1 prompts that overlap": [
            *TURN_V1, asked(9, "session/prompt", {"sessionId": "s", "prompt": PROMPT}),
            chunk("agent_message_chunk", "a"), END_V1, chunk("agent_message_chunk", "a"),
            answered(9, {"stopReason": "end_turn"}),
        ],
        "one id for several types in v2": [
            *TURN_V2, chunk("agent_message_chunk", "m"), chunk("agent_thought_chunk", "m"),
        ],
        "one id in both directions": [
            *TURN_V1, PERMISSION_V1,
            (CLIENT, {"id": 1, "result": {"outcome": {"outcome": "cancelled"}}}), END_V1,
        ],
        "the mode as the documents spelled it": [
            *TURN_V1, update(sessionUpdate="current_mode_update", modeId="a"), END_V1,
        ],
        "custom values in v2": [
            *TURN_V2, update(sessionUpdate="_mood", mood="good"),
            update(sessionUpdate="tool_call_update", **CALL | {"kind": "_x", "status": "_waiting"}),
        ],
        "a replayed tool call": [
            *TURN_V1, update(sessionUpdate="tool_call", **CALL), END_V1,
            LOAD, update(sessionUpdate="tool_call", **CALL), answered(5, {}),
        ],
        "a replayed status": [
            *TURN_V2, update(sessionUpdate="tool_call_update", **CALL), RESUME,
            update(sessionUpdate="tool_call_update", **CALL | {"status": "pending"}),
        ],
        "two currencies": [*TURN_V2, cost(5, "USD"), cost(1, "credits")],
        "turn_complete where both sides agreed": [
            *initialized(
                1, client={"_meta": {"antiphon": {"turnComplete": True}}},
                agent={"sessionCapabilities": {"turnComplete": {}}},
            ),
            *TURN_V1[2:],
            update(sessionUpdate="turn_complete", promptRequestId="p", stopReason="end_turn"), END_V1,
        ],
        "drive letters, and fields of a published draft": [
            *initialized(2), asked(1, "session/list", {}), answered(1, {"sessions": [LISTED]}),
        ],
        "no background at all": [*TURN_V2, state("running"), state("idle", stopReason=None)],
        "a compaction that is replayed whole": [
            *TURN_V2,
            update(sessionUpdate="compaction_update", compactionId="c", status="completed", summary=[]),
        ],
        "a client that speaks both versions": [
            (CLIENT, {"id": 0, "method": "initialize", "params": BOTH_SHAPES}), initialized(1)[1],
        ],
        "an extension": [*TURN_V1, (AGENT, {"method": "_x/y", "params": {"any_key": 1}}), END_V1],
        "raw input in snake case": [
            *TURN_V1, update(sessionUpdate="tool_call", rawInput={"a_b": 1}, **CALL), END_V1,
        ],
        "a path of a server": [
            *TURN_V1,
            update(sessionUpdate="tool_call", locations=[{"path": r"\\server\share"}], **CALL), END_V1,
        ],
    }.items(),
    ids=lambda item: item[0],
)  # fmt: skip
def test_unusual_traffic_is_not_accused(frames: tuple[str, list[Frame]]) -> None:
    recording = recorded(*frames[1])
    assert {side: broken(recording, side) for side in Role} == {CLIENT: set(), AGENT: set()}


@pytest.mark.parametrize(
    "frames",
    [
        [*TURN_V1, (CLIENT, b"{"), refused(None, -32700), END_V1],
        [*TURN_V1, (CLIENT, b'{"jsonrpc":"1.0","id":8,"method":"x"}'), refused(8, -32600), END_V1],
        [*TURN_V1, (CLIENT, b'{"jsonrpc":"2.0","id":8,"method":7}'), refused(8, -32600), END_V1],
        [*TURN_V2, (CLIENT, {"id": 1.5, "method": "_x"}), refused(None, -32600)],
        [*TURN_V2, (CLIENT, b"[]"), refused(None, -32600)],
    ],
    ids=["garbage", "another version of JSON-RPC", "a number as method", "a fraction as id", "an array"],
)
def test_refusals_of_broken_frames_are_not_accused(frames: list[Frame]) -> None:
    assert broken(recorded(*frames), AGENT) == set()


def test_an_older_agent_is_not_failed_for_what_came_later() -> None:
    listed = update(sessionUpdate="available_commands_update", availableCommands=[COMMAND])
    recording = recorded(*initialized(2), *made(2), listed)
    assert broken(recording, AGENT) == {"CMD-V2-01"}
    form = (AGENT, {"id": 5, "method": "elicitation/create", "params": {
        "sessionId": "s", "mode": "form", "message": "Who?", "requestedSchema": {}}})  # fmt: skip
    recording = recorded(*initialized(2, client={"elicitation": {"form": {}}}), *made(2), form)
    assert broken(recording, AGENT) == {"ELIC-05"}
    assert broken(recording, AGENT, "alpha.5") == set()


def test_a_problem_names_its_field() -> None:
    recording = recorded(*TURN_V2, update(sessionUpdate="usage_update", used=1))
    facts = facts_of(recording, AGENT)
    assert facts is not None
    texts = [
        finding.expected
        for rule in RULES
        if AGENT in rule.parties and 2 in rule.versions
        for finding in rule.find(recording, facts)
        if not finding.ok
    ]
    assert texts == ["expected an object with `size` at `params.update` of `session/update`"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("value", [None, True, 7, "text", [], {}, [[]], {"a": {}}, [None, {"id": {}}]])
def test_rules_survive_any_value(version: int, value: Any) -> None:
    frames = [
        *initialized(version),
        (AGENT, {"id": value, "method": "session/request_permission", "params": value}),
        (CLIENT, {"id": value, "method": "session/new", "params": value}),
        (AGENT, {"id": value, "result": value}),
        (CLIENT, {"id": value, "error": value}),
        (AGENT, {"method": "session/update", "params": {"sessionId": "s", "update": value}}),
        (AGENT, {"method": "elicitation/create", "params": {"mode": value, "sessionId": value}}),
        *(
            update(sessionUpdate=kind, toolCallId=value, content=value, status=value, plan=value, cost=value,
                configOptions=value, availableCommands=value, background=value, capabilities=value)
            for kind in ("tool_call", "tool_call_update", "plan_update", "usage_update", "state_update",
                "config_option_update", "available_commands_update", "terminal_update", "compaction_update")
        ),
        (AGENT, json.dumps(value).encode()),
    ]  # fmt: skip
    recording = recorded(*frames)
    for side in Role:
        broken(recording, side)
