"""Each request gets its status, over real sockets and byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import connect
from tests.http.raw import NEW, Raw, read_head
from tests.http.serving import agent_at_hand, hub_at_hand
from tests.hub.doors import doors
from tests.requirements.marks import requirement

LONG = "x" * 1025
PROMPT = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 2}}


@requirement("HTTP-01")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    async with hub_at_hand() as (_, raw, _):
        async with raw.socket() as (reader, writer):
            writer.write(raw.request(method))
            status, headers = await read_head(reader)
        assert (status, headers["allow"]) == (405, "DELETE, GET, POST")


@requirement("HTTP-01", "HTTP-02")
async def test_one_endpoint_serves_http_and_websockets() -> None:
    async with hub_at_hand() as (hub, _, _):
        for scheme in ("http", "ws"):
            async with connect(f"{scheme}://127.0.0.1:{hub.port}/acp", token=hub.token) as client:
                session = await client.new_session("/")
                await (await session.prompt("hi")).drained()
                assert session.messages[-1].text == "heard hi"


REFUSED: list[tuple[str, int, str, Any, dict[str, Any]]] = [
    # HTTP-04, HTTP-17, HTTP-24
    ("http_04_initialize_again", 400, "POST", INITIALIZE, {}),
    (
        "http_04_initialize_without_an_id",
        400,
        "POST",
        {**INITIALIZE, "id": None},
        {"Acp-Connection-Id": None},
    ),
    (
        "http_24_initialize_with_a_long_id",
        400,
        "POST",
        {**INITIALIZE, "id": LONG},
        {"Acp-Connection-Id": None},
    ),
    ("http_17_no_json", 400, "POST", b"{", {}),
    ("http_17_nothing", 400, "POST", b"", {}),
    ("http_17_a_batch", 400, "POST", [LIST], {}),
    ("http_17_a_number", 400, "POST", 7, {}),
    # HTTP-06, HTTP-07
    ("http_06_no_type", 415, "POST", LIST, {"Content-Type": None}),
    ("http_06_another_type", 415, "POST", LIST, {"Content-Type": "text/json"}),
    ("http_07_no_accept", 406, "GET", None, {"Accept": None}),
    ("http_07_another_accept", 406, "GET", None, {"Accept": "application/json"}),
    # HTTP-08
    ("http_08_post_without_connection", 400, "POST", LIST, {"Acp-Connection-Id": None}),
    ("http_08_post_to_a_strange_one", 404, "POST", LIST, {"Acp-Connection-Id": "strange"}),
    ("http_08_get_without_connection", 400, "GET", None, {"Acp-Connection-Id": None}),
    ("http_08_get_of_a_strange_one", 404, "GET", None, {"Acp-Connection-Id": "strange"}),
    ("http_15_delete_without_connection", 400, "DELETE", None, {"Acp-Connection-Id": None}),
    ("http_15_delete_of_a_strange_one", 404, "DELETE", None, {"Acp-Connection-Id": "strange"}),
    # HTTP-09
    ("http_09_no_session", 400, "POST", PROMPT, {}),
    ("http_09_another_session", 400, "POST", PROMPT, {"Acp-Session-Id": "other"}),
    ("http_09_no_session_at_all", 400, "POST", {**PROMPT, "params": {}}, {}),
    ("http_24_long_session", 400, "GET", None, {"Acp-Session-Id": LONG}),
    ("http_24_long_request_id", 400, "POST", {**LIST, "id": LONG}, {}),
    ("http_20_no_id_of_ours", 400, "GET", None, {"Last-Event-ID": "abc"}),
    ("http_20_an_id_that_never_was", 409, "GET", None, {"Last-Event-ID": "99"}),
    # HTTP-22
    ("http_22_no_token", 401, "POST", LIST, {"Authorization": None}),
    ("http_22_no_token_for_a_stream", 401, "GET", None, {"Authorization": None}),
    ("http_22_no_token_to_end_it", 401, "DELETE", None, {"Authorization": None}),
    ("http_22_another_token", 401, "POST", LIST, {"Authorization": "Bearer no"}),
    ("http_22_a_page_from_elsewhere", 403, "POST", LIST, {"Origin": "http://evil.example"}),
    ("http_22_a_name_from_elsewhere", 403, "POST", LIST, {"Host": "evil.example"}),
]


@requirement(
    "HTTP-04", "HTTP-06", "HTTP-07", "HTTP-08", "HTTP-09", "HTTP-15", "HTTP-17", "HTTP-22", "HTTP-24"
)
@pytest.mark.parametrize(
    ("status", "method", "body", "headers"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_what_is_refused(status: int, method: str, body: Any, headers: dict[str, Any]) -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        answer = await raw.ask(method, body, headers=headers)
        assert answer.status == status, answer
        assert (await raw.ask("DELETE")).status == 202, "the connection is as it was"


@requirement("HTTP-17")
async def test_a_batch_is_answered_in_the_words_of_json_rpc() -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        answer = await raw.ask("POST", [LIST])
        assert (answer.json["id"], answer.json["error"]["code"]) == (None, -32600)


async def test_who_is_not_let_in_learns_nothing_else() -> None:
    async with hub_at_hand() as (_, raw, _):
        strange = Raw(raw.port)
        for method, path in (("PUT", "/acp"), ("GET", "/nowhere"), ("POST", "/acp"), ("GET", "/metrics")):
            assert (await strange.ask(method, path=path, headers={"Content-Type": "x"})).status == 401
        assert (await raw.ask("GET", path="/nowhere")).status == 404
        assert (await strange.ask("GET", path="/healthz")).body == b"ok\n"


@requirement("HTTP-04", "HTTP-05")
async def test_initialize_is_answered_at_once_and_the_rest_on_a_stream() -> None:
    async with hub_at_hand() as (_, raw, _):
        result = await raw.initialize()
        assert result["protocolVersion"] == 2
        posted = await raw.post({"id": 1, "method": "session/new", "params": NEW})
        assert (posted.status, posted.body) == (202, b"")
        async with raw.stream() as own:
            assert (own.status, own.headers["content-type"]) == (200, "text/event-stream")
            assert (await own.answer(1))["sessionId"]


@requirement("HTTP-06", "HTTP-07")
async def test_parameters_and_further_types_are_fine() -> None:
    async with hub_at_hand() as (_, raw, _):
        await raw.initialize()
        headers = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert (await raw.ask("POST", LIST, headers=headers)).status == 202
        async with raw.stream() as own:
            await own.answer(1)
        answer = raw.request("GET", headers={"Accept": "application/json, text/event-stream;q=0.9"})
        async with raw.socket() as (reader, writer):
            writer.write(answer)
            assert (await read_head(reader))[0] == 200


@requirement("HTTP-24")
async def test_an_agent_that_fails_at_initialize() -> None:
    from antiphon.remote.http_server import http_server

    async def serve(transport: Any) -> None:
        return

    async with http_server(serve) as server:
        answer = await Raw(server.port).ask("POST", INITIALIZE)
        assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (500, -32603, 1)


@requirement("HTTP-24")
async def test_a_websocket_that_cannot_be() -> None:
    async with hub_at_hand() as (_, raw, _), raw.socket() as (reader, writer):
        writer.write(raw.request("GET", headers={"Upgrade": "websocket", "Accept": None}))
        status, headers = await read_head(reader)
        assert (status, headers["upgrade"]) == (426, "websocket")


async def test_several_requests_over_one_socket_and_several_at_once() -> None:
    async with agent_at_hand() as (_, raw, _):
        await raw.initialize()
        async with raw.socket() as (reader, writer):
            for batch in (1, 3):
                writer.write(raw.request("POST", LIST) * batch)
                for _ in range(batch):
                    status, headers = await read_head(reader)
                    assert (status, headers["content-length"]) == (202, "0")
            writer.write(raw.request("DELETE"))
            assert (await read_head(reader))[0] == 202


async def test_a_body_that_somebody_announces_and_waits_for() -> None:
    async with agent_at_hand() as (_, raw, _), raw.socket() as (reader, writer):
        await raw.initialize()
        whole = raw.request("POST", LIST, headers={"Expect": "100-continue"})
        body = json.dumps(LIST).encode()
        writer.write(whole[: -len(body)])
        assert (await read_head(reader))[0] == 100
        writer.write(body)
        assert (await read_head(reader))[0] == 202


@requirement("HTTP-22")
async def test_the_id_of_a_connection_lets_nobody_in_but_who_opened_it(tmp_path: Path) -> None:
    async with doors(tmp_path) as door:
        port = door.hub.port
        assert port is not None
        one = Raw(port, door.token("one", "controller"))
        await one.initialize()
        async with one.stream() as own:
            session = await one.new_session(own)
            other = Raw(port, door.token("other", "owner"))
            other.connection = one.connection
            for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
                assert (await other.ask(method, body)).status == 404
            narrow = Raw(port, door.token("narrow", "controller", sessions=["another"]))
            await narrow.initialize(1)
            async with narrow.stream() as its_own:
                load = {"id": "l", "method": "session/load", "params": {"sessionId": session, **NEW}}
                assert (await narrow.post(load, session)).status == 202
                refused = await its_own.frame(lambda frame: frame.get("id") == "l")
                assert "error" in refused, "who has a session's id may not load it for that"
            assert (await one.post({"id": 1, "method": "session/list", "params": {}})).status == 202
            await own.answer(1)
