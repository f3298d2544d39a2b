"""`_meta` crosses between the versions unchanged, in both directions (24.6, OBS-02)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge import questions as elicitations
from antiphon.bridge.dialects import V1Writer
from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import Ledger
from antiphon.bridge.upgrade import requests
from antiphon.bridge.upgrade.configuration import Configuration
from antiphon.bridge.upgrade.questions import elicitation, elicitation_answer
from antiphon.bridge.upgrade.questions import permission as upgraded
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from tests.bridge.wire import Up, capabilities, permission, text, update, v1_update
from tests.requirements.marks import requirement

META = {
    "traceparent": "00-a-b-01",
    "tracestate": "k=v",
    "baggage": "x=y",
    "vendor/x": {"deep": [1, {"n": None}]},
}
ABLE = (
    codec(1)
    .result(
        "initialize",
        msgspec.Raw(
            msgspec.json.encode(
                {
                    "protocolVersion": 1,
                    "agentCapabilities": {
                        "loadSession": True,
                        "mcpCapabilities": {"http": True, "acp": True},
                        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                        "sessionCapabilities": {"resume": {}, "additionalDirectories": {}},
                    },
                }
            )
        ),
    )
    .agent_capabilities
)
SETUP = {
    "cwd": "/",
    "mcpServers": [
        {
            "name": "h",
            "type": "http",
            "url": "https://x",
            "headers": [{"name": "a", "value": "b", "_meta": META}],
            "_meta": META,
        },
        {"name": "a", "type": "acp", "serverId": "i", "_meta": META},
    ],
}
STDIO = {
    "name": "s",
    "command": "/c",
    "args": [],
    "env": [{"name": "A", "value": "1", "_meta": META}],
    "_meta": META,
}
BLOCKS = [
    {**text("t"), "_meta": META, "annotations": {"priority": 1, "_meta": META}},
    {"type": "image", "data": "AA==", "mimeType": "image/png", "_meta": META},
    {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": META},
    {"type": "resource_link", "uri": "file:///x", "name": "x", "_meta": META},
    {"type": "resource", "resource": {"uri": "file:///x", "text": "x", "_meta": META}, "_meta": META},
    {"type": "resource", "resource": {"uri": "file:///x", "blob": "AA==", "_meta": META}, "_meta": META},
]
ASKED: dict[str, dict[str, Any]] = {
    "session/new": SETUP,
    "session/fork": {"sessionId": "s", **SETUP},
    "session/resume": {"sessionId": "s", **SETUP},
    "session/list": {"cwd": "/"},
    "session/prompt": {"sessionId": "s", "prompt": BLOCKS},
}
UP = {
    "session/new": requests.new_session,
    "session/fork": requests.fork_session,
    "session/resume": requests.resume_session,
    "session/load": requests.load_session,
    "session/prompt": requests.prompt,
}
NEEDS_ABLE = {"session/new", "session/fork", "session/resume", "session/prompt"}
DOWN: dict[str, Any] = {
    "session/new": requests_v1.new_session,
    "session/fork": requests_v1.fork_session,
    "session/resume": requests_v1.resume_session,
    "session/list": requests_v1.list_sessions,
    "session/prompt": requests_v1.prompt,
}


def metas(value: Any) -> int:
    """How many times `META` stands in something that is JSON."""
    if isinstance(value, dict):
        return (value == META) + sum(map(metas, value.values()))
    return sum(map(metas, value)) if isinstance(value, list) else 0


def params(version: int, method: str, raw: dict[str, Any]) -> Any:
    return codec(version).params(Kind.REQUEST, method, codec(version).encode(raw))


def wired(value: Any) -> Any:
    return msgspec.json.decode(codec(2).encode(value))


@requirement("OBS-02")
@pytest.mark.parametrize("method", sorted(UP))
def test_requests_of_a_v1_client_keep_their_meta(method: str) -> None:
    raw = {**ASKED.get(method, ASKED["session/resume"]), "_meta": META}
    if "mcpServers" in raw:
        raw["mcpServers"] = [*raw["mcpServers"], STDIO]
    lifted = wired(UP[method](params(1, method, raw)))  # type: ignore[operator]
    assert lifted["_meta"] == META
    read = params(1, method, raw)
    assert metas(lifted) == metas(wired(read))


@requirement("OBS-02")
@pytest.mark.parametrize("method", sorted(DOWN))
def test_requests_to_a_v1_agent_keep_their_meta(method: str) -> None:
    raw = {**ASKED.get(method, ASKED["session/resume"]), "_meta": META}
    if "mcpServers" in raw:
        raw["mcpServers"] = [*raw["mcpServers"], {**STDIO, "type": "stdio"}]
    able = {"capabilities": ABLE} if method in NEEDS_ABLE else {}
    read = params(2, method, raw)
    lowered = wired(DOWN[method](read, **able))
    assert lowered["_meta"] == META
    assert metas(lowered) == metas(wired(read))


@requirement("OBS-02")
def test_config_requests_and_lists_keep_their_meta() -> None:
    option = v2.SessionConfigSelect(
        config_id=v2.SessionConfigId("mode"),
        name="Mode",
        category=v2.SessionConfigOptionCategory("mode"),
        current_value=v2.SessionConfigValueId("a"),
        options=[v2.SessionConfigSelectOption(value=v2.SessionConfigValueId("a"), name="A")],
    )
    mode = v1.SetSessionModeRequest(session_id=v1.SessionId("s"), mode_id=v1.SessionModeId("a"), meta=META)
    assert requests.set_mode(mode, [option]).meta == META
    for value in ("a", True):
        kind = {"type": "boolean"} if value is True else {}
        raw = {"sessionId": "s", "configId": "c", "value": value, "_meta": META, **kind}
        assert requests.set_config_option(params(1, "session/set_config_option", raw)).meta == META
        asked = params(2, "session/set_config_option", {"type": "id", **raw})
        assert requests_v1.set_config_option(asked, Configuration(Ledger())).meta == META
    info = {"sessionId": "s", "cwd": "/", "_meta": META}
    raw_page = msgspec.Raw(msgspec.json.encode({"sessions": [info], "_meta": META}))
    page = codec(1).result("session/list", raw_page)
    assert metas(wired(requests_v1.listed_sessions(page))) == 2


OPTIONS = [{"optionId": "y", "name": "Yes", "kind": "allow_once", "_meta": META}]


@requirement("OBS-02")
def test_a_permission_keeps_its_meta_both_ways() -> None:
    asked = permission(title="T", options=OPTIONS, _meta=META)
    down = V1Writer().asked(asked, question="q")
    assert down is not None
    lowered = wired(down.params)
    assert META.items() <= lowered["_meta"].items()
    assert lowered["options"] == OPTIONS
    call = {"toolCallId": "t", "title": "T", "_meta": META}
    raw = {"sessionId": "s", "toolCall": call, "options": OPTIONS, "_meta": META}
    up = upgraded(params(1, "session/request_permission", raw), Upgrade())
    assert metas(wired(up.params)) == 3


@requirement("OBS-02")
@pytest.mark.parametrize("mode", ["form", "url"])
def test_an_elicitation_keeps_its_meta_both_ways(mode: str) -> None:
    fields: dict[str, Any] = {"requestedSchema": {"type": "object", "properties": {}}}
    if mode == "url":
        fields = {"url": "https://x", "elicitationId": "e"}
    raw = {"sessionId": "s", "mode": mode, "message": "?", "_meta": META, **fields}
    assert wired(elicitations.elicit_v1(params(2, "elicitation/create", raw), Ledger()))["_meta"] == META
    assert wired(elicitation(params(1, "elicitation/create", raw)))["_meta"] == META
    said = codec(2).result(
        "elicitation/create", msgspec.Raw(msgspec.json.encode({"action": "decline", "_meta": META}))
    )
    assert wired(elicitation_answer(said))["_meta"] == META


TOLD: list[tuple[str, dict[str, Any]]] = [
    *[(f"{who}_chunk", {"messageId": "m", "content": block})
      for who in ("user_message", "agent_message", "agent_thought") for block in BLOCKS],
    ("session_info_update", {"title": "T"}),
    ("usage_update", {"used": 1, "size": 2}),
    ("notice", {"severity": "info", "title": "T"}),
    ("compaction_update", {"compactionId": "c", "status": "in_progress"}),
    ("compaction_summary_chunk", {"compactionId": "c", "content": BLOCKS[0]}),
    ("subagent_update", {"sessionId": "c", "capabilities": {"cancel": {"_meta": META}, "_meta": META}}),
    ("session_message", {"messageId": "m", "content": BLOCKS}),
    ("session_message_chunk", {"messageId": "m", "content": BLOCKS[0]}),
    ("tool_call_update",
     {"toolCallId": "t", "title": "T", "content": [{"type": "content", "content": BLOCKS[0]}]}),
]  # fmt: skip


@requirement("OBS-02")
@pytest.mark.parametrize(("tag", "fields"), TOLD)
def test_updates_of_a_v1_agent_keep_their_meta(tag: str, fields: dict[str, Any]) -> None:
    raw = {**fields, "_meta": META}
    lifted = Up().feed(v1_update(tag, **fields, meta=META))
    assert metas(lifted) == metas(raw)


@requirement("OBS-02")
@pytest.mark.parametrize(("tag", "fields"), TOLD)
def test_updates_to_a_v1_client_keep_their_meta(tag: str, fields: dict[str, Any]) -> None:
    able = capabilities(subagents={}, session={"notices": {}, "compaction": {}})
    writer = V1Writer(able)
    made = update(tag, **fields, meta=META)
    sent = [msgspec.json.decode(raw) for raw in writer.write(made, codec(2).encode(made))]
    assert metas(sent) == metas({**fields, "_meta": META})
