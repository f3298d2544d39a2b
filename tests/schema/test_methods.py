"""The method table: what is in it is how it says, and what is not there does not exist."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

from antiphon.schema import methods, v1, v2
from antiphon.schema.methods import Kind, Method, Sender, find
from tests.requirements.marks import requirement

request, notification = partial(find, Kind.REQUEST), partial(find, Kind.NOTIFICATION)


def test_a_row_says_all_there_is_to_know():
    assert request("session/prompt", 2) == Method(
        name="session/prompt",
        version=2,
        kind=Kind.REQUEST,
        sender=Sender.CLIENT,
        stable=True,
        params=v2.PromptRequest,
        result=v2.PromptResponse,
        session_scoped=True,
    )


@requirement("CONF-V2-06", "RPC-18")
@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("session/load", 2), ("session/set_mode", 2), ("fs/read_text_file", 2), ("authenticate", 2),
        ("terminal/cancel", 1), ("auth/login", 1), ("session/prompt", 3), ("nope", 1), ("_x", 1),
    ],
)  # fmt: skip
def test_a_method_that_a_version_lacks_is_absent(name, version):
    assert request(name, version) is None


@requirement("RPC-28")
def test_either_side_cancels_requests():
    for version in (1, 2):
        row = notification("$/cancel_request", version)
        assert row is not None
        assert (row.sender, row.stable, row.session_scoped) == (Sender.EITHER, True, False)
        assert request("$/cancel_request", version) is None


@requirement("MCPACP-03", "MCPACP-06")
def test_mcp_messages_are_requests_one_way_and_notifications_the_other():
    for version in (1, 2):
        call, late = request("mcp/message", version), notification("mcp/message", version)
        assert call is not None
        assert late is not None
        assert (call.sender, late.sender) == (Sender.AGENT, Sender.CLIENT)
        assert not call.stable
        assert late.result is None


@requirement("PROXY-03")
def test_a_successor_is_reached_both_ways():
    for version in (1, 2):
        for row in (request("proxy/successor", version), notification("proxy/successor", version)):
            assert row is not None
            assert row.sender is Sender.EITHER


def test_updates_are_the_agents_and_belong_to_a_session():
    first, second = notification("session/update", 1), notification("session/update", 2)
    assert first is not None
    assert second is not None
    assert (first.params, second.params) == (v1.SessionNotification, v2.UpdateSessionNotification)
    assert first.sender is second.sender is Sender.AGENT
    assert first.session_scoped
    assert second.session_scoped


@requirement("ELIC-04")
def test_an_elicitation_may_belong_to_a_session():
    for version in (1, 2):
        row = request("elicitation/create", version)
        assert row is not None
        assert row.session_scoped
        assert row.sender is Sender.AGENT


def test_a_method_is_found_once_and_kept():
    assert request("session/new", 1) is request("session/new", 1)


def test_every_method_resolves():
    for version in methods.VERSIONS:
        rows = methods.methods(version)
        assert len({(row.name, row.kind) for row in rows}) == len(rows)
        assert all((row.result is None) == (row.kind is Kind.NOTIFICATION) for row in rows)


def loaded_after(code: str) -> set[str]:
    """The modules of the schema that a fresh interpreter has after `code`."""
    script = (
        f"{code}\nimport sys\nprint(*[name for name in sys.modules if name.startswith('antiphon.schema.v')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) - {"antiphon.schema.version"}


def test_no_version_is_loaded_until_it_is_asked_for():
    assert loaded_after("import antiphon.schema.codec, antiphon.schema.methods") == set()
    assert loaded_after("import antiphon.schema.v1") == {"antiphon.schema.v1"}
    found = loaded_after(
        "from antiphon.schema.methods import Kind, find; find(Kind.REQUEST, 'session/prompt', 2)"
    )
    assert "antiphon.schema.v2.prompt" in found
    assert not any(name.startswith("antiphon.schema.v1") for name in found)
    assert "antiphon.schema.v2.initialization" not in found


def test_a_package_knows_its_names_and_no_others():
    assert dir(v2) == v2.__all__
    with pytest.raises(AttributeError, match="Nonsense"):
        v2.Nonsense  # noqa: B018
