"""What is asked of v1 agents, in v1's words (24.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.losses import Loss
from antiphon.bridge.upgrade import requests
from antiphon.bridge.upgrade.session import Upgrade
from antiphon.errors import InvalidParams
from antiphon.schema import v1
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind, find
from antiphon.schema.wire import choose
from tests.bridge.wire import plain, text
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
STDIO = {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "V"}]}
HTTP = {"type": "http", "name": "b", "url": "https://b", "headers": [{"name": "H", "value": "V"}]}
ACP = {"type": "acp", "name": "c", "serverId": "c1"}
SETUP: dict[str, Any] = {
    "cwd": "/w",
    "additionalDirectories": ["/x"],
    "mcpServers": [{"type": "stdio", **STDIO}, HTTP, ACP],
    "systemPrompt": {"mode": "append", "content": [text("Be kind")]},
    "_meta": {"k": 1},
}
IN_V1 = {**SETUP, "mcpServers": [STDIO, HTTP, ACP]}
PLAIN = v1.AgentCapabilities()


def able(**fields: Any) -> v1.AgentCapabilities:
    return msgspec.convert(fields, v1.AgentCapabilities)


ABLE: dict[str, Any] = {
    "mcpCapabilities": {"http": True, "acp": True},
    "sessionCapabilities": {"additionalDirectories": {}, "resume": {}},
    "loadSession": True,
}


def v2_params(method: str, kind: Kind = Kind.REQUEST, **fields: Any) -> Any:
    return codec(2).params(kind, method, msgspec.json.encode(fields))


def strict_v1(method: str, params: Any, kind: Kind = Kind.REQUEST) -> Any:
    """The JSON of params that v1 reads strictly."""
    raw = msgspec.json.encode(params)
    found = find(kind, method, 1)
    assert found is not None
    msgspec.json.decode(raw, type=found.params, dec_hook=choose)
    return plain(raw)


def test_24_2_new_session_takes_the_type_from_stdio_servers() -> None:
    made = requests_v1.new_session(v2_params("session/new", **SETUP), capabilities=able(**ABLE))
    assert strict_v1("session/new", made) == IN_V1


def test_24_2_what_v2_may_leave_out_v1_may_not() -> None:
    server = {"type": "stdio", "name": "a", "command": "/bin/a"}
    made = requests_v1.new_session(
        v2_params("session/new", cwd="/w", mcpServers=[server]), capabilities=PLAIN
    )
    assert strict_v1("session/new", made) == {
        "cwd": "/w", "mcpServers": [{"name": "a", "command": "/bin/a", "args": [], "env": []}],
    }  # fmt: skip
    made = requests_v1.new_session(v2_params("session/new", cwd="/w"), capabilities=PLAIN)
    assert strict_v1("session/new", made) == {"cwd": "/w", "mcpServers": []}


@requirement("MCPCFG-05")
@pytest.mark.parametrize("server", [HTTP, ACP, {"type": "_odd", "name": "o"}])
def test_a_transport_that_the_agent_has_not_is_refused(server: dict[str, Any]) -> None:
    params = v2_params("session/new", cwd="/w", mcpServers=[server])
    with pytest.raises(InvalidParams, match=server["type"]):
        requests_v1.new_session(params, capabilities=PLAIN)


@requirement("SESS-09")
def test_additional_directories_only_where_advertised() -> None:
    params = v2_params("session/new", cwd="/w", additionalDirectories=["/x"])
    with pytest.raises(InvalidParams):
        requests_v1.new_session(params, capabilities=PLAIN)


START = {"type": "start"}


@pytest.mark.parametrize(
    ("replay", "capabilities", "method"),
    [
        (START, ABLE, "session/load"),
        (None, ABLE, "session/resume"),
        (None, {**ABLE, "sessionCapabilities": {"additionalDirectories": {}}}, "session/load"),
    ],
)
def test_24_2_resume_is_load_or_resume(replay: Any, capabilities: dict[str, Any], method: str) -> None:
    params = v2_params("session/resume", sessionId="s", replayFrom=replay, **SETUP)
    made = requests_v1.resume_session(params, capabilities=able(**capabilities))
    assert isinstance(made, v1.LoadSessionRequest) is (method == "session/load")
    assert strict_v1(method, made) == {"sessionId": "s", **IN_V1}


@requirement("SESS-19")
@pytest.mark.parametrize(
    ("replay", "capabilities"),
    [
        ({"type": "_odd"}, {"loadSession": True}),  # SESS-19
        (START, {"sessionCapabilities": {"resume": {}}}),
        (None, {}),
    ],
)
def test_a_replay_that_cannot_be_had_is_refused(replay: Any, capabilities: dict[str, Any]) -> None:
    params = v2_params("session/resume", sessionId="s", cwd="/w", replayFrom=replay)
    with pytest.raises(InvalidParams):
        requests_v1.resume_session(params, capabilities=able(**capabilities))


def test_24_2_fork() -> None:
    params = v2_params("session/fork", sessionId="s", **SETUP)
    made = requests_v1.fork_session(params, capabilities=able(**ABLE))
    assert strict_v1("session/fork", made) == {"sessionId": "s", **IN_V1}


BLOCKS = [
    text("a"),
    {"type": "resource_link", "uri": "x:y", "name": "x", "size": 3},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/ogg"},
    {"type": "resource", "resource": {"uri": "file:///x", "text": "x"}},
]
ALL = {"promptCapabilities": {"image": True, "audio": True, "embeddedContext": True}}


def test_24_3_a_prompt_of_what_the_agent_takes_is_the_same() -> None:
    params = v2_params("session/prompt", sessionId="s", prompt=BLOCKS, _meta={"k": 1})
    made = requests_v1.prompt(params, capabilities=able(**ALL))
    assert strict_v1("session/prompt", made) == {"sessionId": "s", "prompt": BLOCKS, "_meta": {"k": 1}}


@requirement("CONT-02")
@pytest.mark.parametrize("block", [*BLOCKS[2:], {"type": "_odd"}])
def test_a_prompt_of_what_the_agent_does_not_take_is_refused(block: dict[str, Any]) -> None:
    params = v2_params("session/prompt", sessionId="s", prompt=[text("a"), block])
    with pytest.raises(InvalidParams, match=block["type"]):
        requests_v1.prompt(params, capabilities=PLAIN)


@requirement("CONT-08")
def test_an_unknown_block_is_refused_by_an_agent_that_takes_all() -> None:
    params = v2_params("session/prompt", sessionId="s", prompt=[{"type": "_odd"}])
    with pytest.raises(InvalidParams):
        requests_v1.prompt(params, capabilities=able(**ALL))


@requirement("PROMPT-V2-01")
def test_an_empty_prompt_is_refused() -> None:
    params = msgspec.structs.replace(
        v2_params("session/prompt", sessionId="s", prompt=[text("a")]), prompt=[]
    )
    with pytest.raises(InvalidParams):
        requests_v1.prompt(params, capabilities=PLAIN)


def test_24_icons_of_a_prompt_are_lost_and_named() -> None:
    lost: list[str] = []

    def report(loss: Loss, original: Any) -> None:
        lost.append(loss.name)

    link = {"type": "resource_link", "uri": "x:y", "name": "x", "icons": [{"src": "data:,"}]}
    params = v2_params("session/prompt", sessionId="s", prompt=[link])
    made = requests_v1.prompt(params, capabilities=PLAIN, report=report)
    assert ORIGINAL in strict_v1("session/prompt", made)["prompt"][0]["_meta"]
    assert lost == ["content_icons"]


def test_24_2_list_and_its_answer() -> None:
    made = requests_v1.list_sessions(v2_params("session/list", cwd="/w", cursor="", archived="only"))
    assert strict_v1("session/list", made) == {"cwd": "/w", "cursor": "", "archived": "only"}
    sessions = [
        {"sessionId": "s", "cwd": "/w", "title": "T", "updatedAt": "2026-01-02T03:04:05+01:00"},
        {"sessionId": "t", "cwd": "/w", "updatedAt": "yesterday"},
    ]
    raw = msgspec.json.encode({"sessions": sessions, "nextCursor": "", "_meta": {"k": 1}})
    assert plain(requests_v1.listed_sessions(codec(1).result("session/list", raw))) == {
        "sessions": [
            sessions[0],
            {"sessionId": "t", "cwd": "/w", "_meta": {ORIGINAL: {"updatedAt": "yesterday"}}},
        ],
        "nextCursor": "",
        "_meta": {"k": 1},
    }


def with_modes() -> Upgrade:
    up = Upgrade()
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    raw = msgspec.json.encode({"sessionId": "s", "modes": modes})
    up.configuration.new_session(codec(1).result("session/new", raw))
    return up


def setting(**fields: Any) -> Any:
    return v2_params("session/set_config_option", sessionId="s", _meta={"k": 1}, **fields)


def test_24_2_the_option_made_of_modes_is_set_as_a_mode() -> None:
    made = requests_v1.set_config_option(
        setting(configId="mode", type="id", value="ask"), with_modes().configuration
    )
    assert isinstance(made, v1.SetSessionModeRequest)
    assert strict_v1("session/set_mode", made) == {"sessionId": "s", "modeId": "ask", "_meta": {"k": 1}}


@requirement("CONF-V1-02")
@pytest.mark.parametrize("given", [{"type": "id", "value": "x"}, {"type": "boolean", "value": True}])
def test_only_a_listed_mode_is_set(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        requests_v1.set_config_option(setting(configId="mode", **given), with_modes().configuration)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "id", "value": "a"}, {"value": "a"}),
        ({"type": "boolean", "value": True}, {"type": "boolean", "value": True}),
    ],
)
def test_24_2_other_options_are_set_as_they_are(given: dict[str, Any], expected: dict[str, Any]) -> None:
    made = requests_v1.set_config_option(setting(configId="x", **given), with_modes().configuration)
    assert strict_v1("session/set_config_option", made) == {
        "sessionId": "s", "configId": "x", **expected, "_meta": {"k": 1},
    }  # fmt: skip


def test_24_2_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidParams):
        requests_v1.set_config_option(setting(configId="x", type="_odd", value=1), with_modes().configuration)


def test_24_2_what_a_v1_client_asks_comes_to_a_v1_agent_as_it_was() -> None:
    given = codec(1).params(Kind.REQUEST, "session/new", msgspec.json.encode(IN_V1))
    assert requests_v1.new_session(requests.new_session(given), capabilities=able(**ABLE)) == given
    raw = msgspec.json.encode({"sessionId": "s", "prompt": BLOCKS})
    asked = codec(1).params(Kind.REQUEST, "session/prompt", raw)
    assert requests_v1.prompt(requests.prompt(asked), capabilities=able(**ALL)) == asked
