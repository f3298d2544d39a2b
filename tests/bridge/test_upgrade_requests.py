"""What v1 clients ask, in v2's words (24.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.upgrade import requests
from antiphon.errors import InvalidParams
from antiphon.schema import v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind, find
from antiphon.schema.wire import choose
from tests.bridge.wire import plain, text
from tests.requirements.marks import requirement

ORIGINAL = "acp.bridge/original"
STDIO = {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "V"}]}
HTTP = {"type": "http", "name": "b", "url": "https://b", "headers": [{"name": "H", "value": "V"}]}
ACP = {"type": "acp", "name": "c", "serverId": "c1"}
SSE = {"type": "sse", "name": "d", "url": "https://d", "headers": []}
SERVERS = [{"type": "stdio", **STDIO}, HTTP, ACP]
SETUP: dict[str, Any] = {
    "cwd": "/w",
    "additionalDirectories": ["/x"],
    "mcpServers": [STDIO, HTTP, ACP],
    "systemPrompt": {"mode": "append", "content": [text("Be kind")]},
    "_meta": {"k": 1},
}


def v1_params(method: str, kind: Kind = Kind.REQUEST, **fields: Any) -> Any:
    return codec(1).params(kind, method, msgspec.json.encode(fields))


def strict_v2(method: str, params: Any, kind: Kind = Kind.REQUEST) -> Any:
    """The JSON of params that v2 reads strictly."""
    raw = msgspec.json.encode(params)
    found = find(kind, method, 2)
    assert found is not None
    msgspec.json.decode(raw, type=found.params, dec_hook=choose)
    return plain(raw)


def test_24_2_new_session_gives_stdio_servers_their_type() -> None:
    made = requests.new_session(v1_params("session/new", **SETUP))
    assert strict_v2("session/new", made) == {**SETUP, "mcpServers": SERVERS}


def test_24_2_load_is_resume_from_the_start() -> None:
    made = requests.load_session(v1_params("session/load", sessionId="s", **SETUP))
    expected = {**SETUP, "sessionId": "s", "mcpServers": SERVERS, "replayFrom": {"type": "start"}}
    assert strict_v2("session/resume", made) == expected


def test_24_2_resume_replays_nothing() -> None:
    made = requests.resume_session(v1_params("session/resume", sessionId="s", **SETUP))
    assert strict_v2("session/resume", made) == {**SETUP, "sessionId": "s", "mcpServers": SERVERS}


def test_24_2_fork() -> None:
    made = requests.fork_session(v1_params("session/fork", sessionId="s", cwd="/w"))
    assert strict_v2("session/fork", made) == {"sessionId": "s", "cwd": "/w"}


def test_24_2_sse_is_refused() -> None:
    with pytest.raises(InvalidParams, match="sse"):
        requests.new_session(v1_params("session/new", cwd="/w", mcpServers=[SSE]))


BLOCKS = [
    text("a"),
    {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///x"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/ogg"},
    {"type": "resource", "resource": {"uri": "file:///x", "text": "x"}},
    {"type": "resource", "resource": {"uri": "file:///x", "blob": "aGk="}},
    {
        "type": "resource_link",
        "uri": "file:///x",
        "name": "x",
        "size": 1,
        "annotations": {"audience": ["user"], "priority": 1.0},
    },
]


def test_24_3_prompt_content_is_the_same() -> None:
    made = requests.prompt(v1_params("session/prompt", sessionId="s", prompt=BLOCKS, _meta={"k": 1}))
    assert strict_v2("session/prompt", made) == {"sessionId": "s", "prompt": BLOCKS, "_meta": {"k": 1}}


@requirement("CONT-04")
def test_values_out_of_v2_s_range_are_dropped_and_announced() -> None:
    lost: list[str] = []
    link = {
        "type": "resource_link",
        "uri": "file:///x",
        "name": "x",
        "size": -1,
        "annotations": {"priority": 2.0},
    }
    made = requests.prompt(
        v1_params("session/prompt", sessionId="s", prompt=[link]),
        report=lambda loss, _: lost.append(loss.name),
    )
    assert strict_v2("session/prompt", made)["prompt"] == [
        {
            "type": "resource_link",
            "uri": "file:///x",
            "name": "x",
            "annotations": {"_meta": {ORIGINAL: {"priority": 2.0}}},
            "_meta": {ORIGINAL: {"size": -1}},
        }
    ]
    assert lost == ["annotation_priority", "resource_size"]


@requirement("PROMPT-V2-01")
def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(InvalidParams):
        requests.prompt(v1_params("session/prompt", sessionId="s", prompt=[]))


def test_24_2_set_mode_sets_the_mode_option() -> None:
    option = v2.SessionConfigSelect(
        config_id=v2.SessionConfigId("m"),
        name="M",
        category=v2.SessionConfigOptionCategory.MODE,
        current_value=v2.SessionConfigValueId("a"),
        options=[v2.SessionConfigSelectOption(value=v2.SessionConfigValueId("a"), name="A")],
    )
    params = v1_params("session/set_mode", sessionId="s", modeId="b")
    assert strict_v2("session/set_config_option", requests.set_mode(params, [option])) == {
        "sessionId": "s", "configId": "m", "type": "id", "value": "b",
    }  # fmt: skip
    with pytest.raises(InvalidParams):
        requests.set_mode(params, [])


@pytest.mark.parametrize(
    ("given", "type"), [({"value": "x"}, "id"), ({"value": True, "type": "boolean"}, "boolean")]
)
def test_24_2_set_config_option_gets_its_type(given: dict[str, Any], type: str) -> None:
    params = v1_params("session/set_config_option", sessionId="s", configId="c", **given)
    made = requests.set_config_option(params)
    assert strict_v2("session/set_config_option", made) == {
        "sessionId": "s", "configId": "c", "type": type, "value": given["value"],
    }  # fmt: skip
