"""The shapes of `initialize`, as they stand on the wire in each version (section 2 of the catalogue)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from tests.requirements.marks import requirement

INFO = {"name": "x", "version": "1"}


def written(version: int, value: Any) -> Any:
    return json.loads(codec(version).encode(value))


def request(version: int, params: dict[str, Any]) -> Any:
    return codec(version).params(Kind.REQUEST, "initialize", json.dumps(params).encode())


@requirement("INIT-10")
def test_a_v1_request_needs_only_its_version():
    assert request(1, {"protocolVersion": 1}) == v1.InitializeRequest(protocol_version=v1.ProtocolVersion(1))
    full = request(1, {"protocolVersion": 1, "clientInfo": INFO, "clientCapabilities": {}, "_meta": {"a": 1}})
    assert (full.client_info.name, full.meta) == ("x", {"a": 1})
    with pytest.raises(InvalidParams):
        request(1, {})


@requirement("INIT-11")
def test_a_v1_result_reads_absent_auth_methods_as_none_and_writes_what_it_has():
    result = codec(1).result("initialize", b'{"protocolVersion":1}')
    assert list(result.auth_methods) == []
    assert written(1, v1.InitializeResponse(protocol_version=v1.ProtocolVersion(1)))["protocolVersion"] == 1


@requirement("INIT-13")
@pytest.mark.parametrize("info", [None, {}, {"name": "x"}, {"version": "1"}, 7])
def test_v2_refuses_an_initialize_without_info(info):
    with pytest.raises(InvalidParams):
        request(2, {"protocolVersion": 2, "info": info})


@requirement("INIT-13")
def test_v2_capabilities_default_to_none_at_all():
    assert request(2, {"protocolVersion": 2, "info": INFO}).capabilities == v2.ClientCapabilities()
    assert (
        request(2, {"protocolVersion": 2, "info": INFO, "capabilities": 7}).capabilities
        == v2.ClientCapabilities()
    )


@requirement("INIT-17")
def test_v1_agent_capabilities_are_booleans_and_markers_where_v1_has_them():
    capabilities = v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
        mcp_capabilities=v1.McpCapabilities(http=True, sse=True),
        session_capabilities=v1.SessionCapabilities(
            list=v1.SessionListCapabilities(), close=v1.SessionCloseCapabilities()
        ),
        auth=v1.AgentAuthCapabilities(logout=v1.LogoutCapabilities()),
    )
    assert written(1, capabilities) == {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"list": {}, "close": {}},
        "auth": {"logout": {}},
    }


@requirement("INIT-18")
def test_v1_client_capabilities_are_booleans_and_markers_where_v1_has_them():
    capabilities = v1.ClientCapabilities(
        fs=v1.FileSystemCapabilities(read_text_file=True, write_text_file=True),
        terminal=True,
        auth=v1.AuthCapabilities(terminal=True),
        elicitation=v1.ElicitationCapabilities(form=v1.ElicitationFormCapabilities()),
        session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities()),
    )
    assert written(1, capabilities) == {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "auth": {"terminal": True},
        "elicitation": {"form": {}},
        "session": {"notices": {}},
    }


@requirement("INIT-21")
def test_v2_agent_markers_are_objects_all_the_way_down():
    capabilities = v2.AgentCapabilities(
        session=v2.SessionCapabilities(
            prompt=v2.PromptCapabilities(image=v2.PromptImageCapabilities()),
            mcp=v2.McpCapabilities(stdio=v2.McpStdioCapabilities(), http=v2.McpHttpCapabilities()),
            delete=v2.SessionDeleteCapabilities(),
            additional_directories=v2.SessionAdditionalDirectoriesCapabilities(),
        )
    )
    assert written(2, capabilities) == {
        "session": {
            "prompt": {"image": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
            "additionalDirectories": {},
        }
    }


@requirement("INIT-22")
def test_v2_client_capabilities_are_terminal_login_and_elicitation():
    capabilities = v2.ClientCapabilities(
        auth=v2.ClientAuthCapabilities(terminal=v2.TerminalAuthCapabilities()),
        elicitation=v2.ElicitationCapabilities(form=v2.ElicitationFormCapabilities()),
    )
    assert written(2, capabilities) == {"auth": {"terminal": {}}, "elicitation": {"form": {}}}
