"""Odd requests of strangers and of owners get a plain 4xx and an audit line, and no traceback is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from antiphon.hub import Access, Hub
from tests.http.raw import DEADLINE, Raw, read_head
from tests.http.serving import make_agent
from tests.requirements.marks import requirement
from tests.transports.certificates import certificates

DEEP = 100_000


def request(host: str = "", **headers: str) -> Any:
    def made(raw: Raw) -> bytes:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Host": host} if host else {}
        return raw.request("GET", headers={**given, **named})

    return made


def with_header(line: bytes) -> Any:
    def made(raw: Raw) -> bytes:
        return raw.request("POST", b"{}").replace(b"\r\n", b"\r\n" + line + b"\r\n", 1)

    return made


def target(line: bytes) -> Any:
    def made(raw: Raw) -> bytes:
        return raw.request("GET").replace(b"GET /acp", line, 1)

    return made


ODD: dict[str, tuple[tuple[int, ...], Any]] = {
    "origin_half_an_address": ((403,), request(Origin="http://[x")),
    "origin_no_address": ((403,), request(Origin="http://[::1]:x:y")),
    "origin_null": ((403,), request(Origin="null")),
    "origin_of_another_port": ((403,), request(Origin="http://127.0.0.1:1")),
    "header_not_utf8": ((400,), with_header(b"X-Odd: \xff\xfe")),
    "origin_not_utf8": ((400,), with_header(b"Origin: http://\xff")),
    "host_not_utf8": ((400,), lambda raw: raw.request("GET").replace(b"Host: ", b"Host: \xff")),
    "token_not_utf8": ((400,), lambda raw: raw.request("GET").replace(b"Accept: ", b"Authorization: \xff")),
    "header_with_nul": ((400,), with_header(b"X-Odd: a\x00b")),
    "header_without_name": ((400,), with_header(b": x")),
    "header_folded": ((400,), with_header(b"X-Odd: a\r\n b")),
    "path_not_utf8": ((400,), target(b"GET /\xff\xfe")),
    "target_elsewhere": ((400,), target(b"GET http://evil.example/acp")),
    "version_missing": ((400,), lambda raw: raw.request("GET").replace(b" HTTP/1.1", b"!HTTP/1.1", 1)),
    "target_nothing": ((400,), target(b"OPTIONS *")),
    "target_authority": ((400,), target(b"CONNECT evil.example:80")),
    "method_unknown": ((400,), target(b"BREW /acp")),
    "length_and_chunks": ((400,), with_header(b"Transfer-Encoding: chunked")),
    "two_lengths": ((400,), with_header(b"Content-Length: 5")),
    "length_negative": ((400,), lambda raw: raw.request("POST", headers={"Content-Length": "-1"})),
    "length_no_number": ((400,), lambda raw: raw.request("POST", headers={"Content-Length": "1_0"})),
    "chunks_of_chunks": (
        (400,),
        lambda raw: raw.request(
            "POST", headers={"Content-Length": None, "Transfer-Encoding": "chunked, chunked"}
        ),
    ),
    "host_with_user": ((403,), request("evil@127.0.0.1")),
    "host_with_path": ((403,), request("localhost/evil")),
    "host_with_query": ((403,), request("localhost?evil")),
    "host_with_fragment": ((403,), request("localhost#evil")),
    "host_with_password": ((403,), request("localhost:1@evil.example")),
    "host_with_backslash": ((403,), request("localhost\\evil")),
    "host_half_an_address": ((403,), request("[::1")),
    "host_port_of_letters": ((403,), request("localhost:evil")),
    "host_list": ((403,), request("localhost, evil.example")),
    "two_hosts": ((400,), with_header(b"Host: evil.example")),
    "no_host": ((400,), lambda raw: raw.request("GET", headers={"Host": None})),
    "old_version_without_host": (
        (403,),
        lambda raw: raw.request("GET", headers={"Host": None}).replace(b"HTTP/1.1", b"HTTP/1.0"),
    ),
    "version_unknown": ((400,), lambda raw: raw.request("GET").replace(b"HTTP/1.1", b"HTTP/9.9")),
    "head_of_70_kb": ((431,), with_header(b"\r\n".join(b"X-%d: %b" % (n, b"x" * 7000) for n in range(10)))),
    "header_of_70_kb": ((431,), with_header(b"X-Odd: " + b"x" * 70_000)),
    "target_of_70_kb": ((431, 400), target(b"GET /" + b"x" * 70_000)),
    "too_many_headers": ((400, 431), with_header(b"\r\n".join([b"X: y"] * 2000))),
    "not_http": ((400,), lambda raw: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100),
    "the_second_version": ((400,), lambda raw: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 50),
    "an_old_websocket": ((400,), with_header(b"Sec-WebSocket-Key1: x")),
}
OWNED: dict[str, bytes] = {
    "arrays": b"[" * DEEP + b"]" * DEEP,
    "objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "in_params": b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    + b"[" * DEEP
    + b"]" * DEEP
    + b"}",
    "in_id": b'{"jsonrpc":"2.0","method":"x","id":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "unfinished": b'{"a":' * DEEP,
    "not_utf8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
}


async def answered(raw: Raw, data: bytes) -> int:
    async with asyncio.timeout(DEADLINE), raw.socket() as (reader, writer):
        writer.write(data)
        status, headers = await read_head(reader)
        await reader.readexactly(int(headers["content-length"]))
        return status


def audited(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@requirement("HTTP-22")
async def test_each_odd_head_is_refused_with_an_audit_line_and_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = make_agent()
    path = tmp_path / "audit.jsonl"
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    async with Hub({"echo": agent}, access=Access(audit=path)).listening() as hub:
        assert hub.port is not None
        lines = 0
        for name, (expected, make) in ODD.items():
            for raw in (Raw(hub.port), Raw(hub.port, hub.token)):
                assert await answered(raw, make(raw)) in expected, name
                *_, last = audited(path)
                lines += 1
                assert len(audited(path)) == lines, f"{name}: one line each"
                assert (last["outcome"], last["peer"]) == ("refused", "127.0.0.1"), name
                assert last["status"] in expected, name
        assert (await Raw(hub.port).ask("GET", path="/healthz")).status == 200
        numbers = (await Raw(hub.port, hub.token).ask("GET", path="/metrics")).body.decode()
        assert "antiphon_socket_failures_total 0\n" in numbers
    assert caplog.records == []
    assert unhandled == []


@requirement("HTTP-17")
async def test_a_body_that_nobody_can_read_is_refused_with_an_audit_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = make_agent()
    path = tmp_path / "audit.jsonl"
    async with Hub({"echo": agent}, access=Access(audit=path)).listening() as hub:
        assert hub.port is not None
        raw = Raw(hub.port, hub.token)
        for name, body in OWNED.items():
            answer = await raw.ask("POST", body)
            assert answer.status == 400, name
            last = audited(path)[-1]
            assert (last["outcome"], last["status"], last["token"]) == ("refused", 400, "owner"), name
        login = await Raw(hub.port).ask(
            "POST",
            OWNED["arrays"][:4000],
            path="/login",
            headers={"Origin": f"http://127.0.0.1:{hub.port}"},
        )
        assert login.status == 401
    assert caplog.records == []


async def test_strangers_at_a_port_with_tls_leave_no_trace_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = certificates(tmp_path)
    agent, _ = make_agent()
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    with caplog.at_level(logging.INFO):
        async with asyncio.timeout(DEADLINE), Hub({"echo": agent}).listening(tls=theirs) as hub:
            assert hub.port is not None
            for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 100, b"", b"\0" * 5000):
                async with Raw(hub.port).socket() as (reader, writer):
                    writer.write(data)
                    writer.write_eof()
                    await reader.read()
            with pytest.raises(ssl.SSLError):
                await asyncio.open_connection("127.0.0.1", hub.port, ssl=ssl.create_default_context())
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port, ssl=ours)
            writer.write(Raw(hub.port).request("GET", path="/healthz"))
            assert (await read_head(reader))[0] == 200
            writer.transport.abort()  # without the goodbye of TLS
    assert caplog.records == []
    assert unhandled == []
