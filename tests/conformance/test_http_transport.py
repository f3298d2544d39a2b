"""The judge's own client of streamable HTTP, against a real hub."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from antiphon.conformance.agent.conversation import Conversation, initialize_params, select_first_allow
from antiphon.conformance.agent.suite import check_agent
from antiphon.conformance.http_transport import HttpTransport, connect_http
from antiphon.conformance.link import Link
from antiphon.conformance.options import Options
from antiphon.conformance.recording import Role
from antiphon.conformance.targets import AddressTarget
from antiphon.conformance.verdicts import Outcome
from antiphon.errors import LinkLost, LinkRefused
from antiphon.hub import Hub

GOOD_AGENT = [sys.executable, str(Path(__file__).parent / "good" / "agent.py")]
TIMEOUT = 30.0


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub = Hub(GOOD_AGENT)
    async with hub.listening():
        yield hub


def url(hub: Hub) -> str:
    return f"http://127.0.0.1:{hub.port}/acp"


def headers(hub: Hub) -> dict[str, str]:
    return {"Authorization": f"Bearer {hub.token}"}


async def connected(hub: Hub, cwd: Path, version: int = 2) -> tuple[Conversation, HttpTransport]:
    transport = await connect_http(url(hub), headers=headers(hub))
    link = Link(transport, role=Role.CLIENT, timeout=TIMEOUT)
    result = await link.call("initialize", initialize_params(version, {}))
    return Conversation(link, result, cwd=str(cwd)), transport


@pytest.mark.parametrize("version", [1, 2])
async def test_a_turn_comes_over_the_stream_of_its_session(hub: Hub, tmp_path: Path, version: int) -> None:
    client, _ = await connected(hub, tmp_path, version)
    session = await client.new_session()
    _, end = await client.run_turn(session, "Reply with one short sentence.")
    texts = [frame for frame in client.updates(session) if frame.update_kind == "agent_message_chunk"]
    assert texts
    assert texts[-1].index < end.index
    await client.link.aclose()


async def test_an_answer_goes_to_the_session_that_asked(hub: Hub, tmp_path: Path) -> None:
    client, _ = await connected(hub, tmp_path)
    session = await client.new_session()
    client.link.on_request("session/request_permission", select_first_allow)
    await client.run_turn(session, "Ask for permission")
    statuses = [frame.update.get("status") for frame in client.updates(session)]
    assert "completed" in statuses
    await client.link.aclose()


async def test_a_session_is_loaded_over_another_connection(hub: Hub, tmp_path: Path) -> None:
    client, _ = await connected(hub, tmp_path)
    session = await client.new_session()
    await client.run_turn(session, "Reply with one short sentence.")
    other, _ = await connected(hub, tmp_path, 1)
    response = await other.link.response(other.load(session))
    assert response.error_code is None
    assert any(frame.update_kind == "agent_message_chunk" for frame in other.updates(session))
    for each in (client, other):
        await each.link.aclose()


async def test_closing_ends_the_connection_at_the_server(hub: Hub, tmp_path: Path) -> None:
    client, transport = await connected(hub, tmp_path)
    connection = transport.connection
    await client.link.aclose()
    async with httpx.AsyncClient(headers={**headers(hub), "Acp-Connection-Id": connection}) as http:
        answer = await http.post(url(hub), json={"jsonrpc": "2.0", "id": 1, "method": "_any"})
    assert answer.status_code == 404


async def test_malformed_frames_do_not_end_the_connection(hub: Hub, tmp_path: Path) -> None:
    client, _ = await connected(hub, tmp_path)
    client.link.send_raw(b"no JSON")
    client.link.send_raw(b"[]")
    await client.link.barrier()
    await client.link.aclose()


async def test_a_paused_transport_delivers_nothing_until_it_resumes(hub: Hub, tmp_path: Path) -> None:
    client, transport = await connected(hub, tmp_path)
    await client.new_session()
    transport.pause()
    request = client.link.request("session/list")
    await transport.posted()
    assert client.link.recording.response_to(request) is None
    transport.resume()
    await client.link.response(request)
    await client.link.aclose()


async def test_a_server_that_ends_ends_the_connection(tmp_path: Path) -> None:
    hub = Hub(GOOD_AGENT)
    async with hub.listening():
        client, _ = await connected(hub, tmp_path)
    await client.link.end()
    await client.link.aclose()


async def test_nothing_at_an_address_is_a_lost_link(unused_tcp_port: int) -> None:
    with pytest.raises(LinkLost, match="cannot reach"):
        await connect_http(f"http://127.0.0.1:{unused_tcp_port}/acp")


async def test_a_wrong_token_is_refused(hub: Hub) -> None:
    with pytest.raises(LinkRefused, match="401"):
        await connect_http(url(hub), headers={"Authorization": "Bearer wrong"})


async def test_the_judge_judges_over_http(hub: Hub) -> None:
    target = AddressTarget(url(hub), token=hub.token)
    report = await check_agent(target, Options(timeout=TIMEOUT, only=("turns", "v2-turns")))
    assert not report.faults
    assert [(each.requirement.id, each.evidence) for each in report.failures] == []
    assert report.of(Outcome.PASS)
