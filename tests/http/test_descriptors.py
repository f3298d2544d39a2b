"""Clients that open sockets without end do not take the last file descriptors of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from antiphon.transports.http import tls_handshakes
from antiphon.transports.http.socket import RESERVE
from tests.http.raw import DEADLINE, Raw, read_head
from tests.http.sockets import Run, handling, until
from tests.transports.certificates import certificates

STRANGERS = """
import socket, sys
opened = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
print(len(opened), flush=True)
sys.stdin.read()
"""


@contextmanager
def descriptors(free: int) -> Iterator[None]:
    """Let this process have so many more descriptors. Numbers that other tests left free are taken first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] <= highest:
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)


def are_free(count: int) -> bool:
    """Return whether this process can open so many descriptors."""
    held = []
    try:
        held += (os.open(os.devnull, os.O_RDONLY) for _ in range(count))
    except OSError:
        return False
    finally:
        for each in held:
            os.close(each)
    return True


@contextmanager
def strangers(port: int, count: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", STRANGERS, str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def test_sockets_of_strangers_leave_descriptors_for_the_process(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with handling() as (server, _), Raw(server.port).socket() as (reader, writer):
            with strangers(server.port, 400) as process, descriptors(RESERVE + 150):
                assert process.stdout is not None
                assert await asyncio.to_thread(process.stdout.readline) == b"400\n"
                await until(lambda: server.faults.total >= 200)
                await until(lambda: len(server.sockets) <= 160)  # by what the process has open
                await until(lambda: are_free(RESERVE // 2))  # the last strangers are accepted, then closed
                writer.write(Raw(server.port).request("GET", path="/"))
                assert (await read_head(reader))[0] == 200  # clients that were there are served
                process.communicate()
                await until(lambda: len(server.sockets) == 1)
                assert (await Raw(server.port).ask("GET", path="/")).status == 200

    with caplog.at_level(logging.INFO):
        run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, lines[:5]
    assert "Too many open files" in lines[0] or "file descriptors are left" in lines[0]
    assert lines[1].endswith("more since the last such line")


def test_a_server_without_descriptors_serves_again_when_there_are_some(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with handling() as (server, _):
            with strangers(server.port, 20) as process:
                assert process.stdout is not None
                with descriptors(100):
                    held: list[int] = []
                    with suppress(OSError):
                        while True:
                            held.append(os.open(os.devnull, os.O_RDONLY))
                    assert await asyncio.to_thread(process.stdout.readline) == b"20\n"
                    for each in held:
                        os.close(each)
                process.communicate()
                assert (await Raw(server.port).ask("GET", path="/")).status == 200

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert len(caplog.records) <= 2, caplog.text[:1000]


def test_sockets_that_never_finish_a_tls_handshake_leave_descriptors_for_the_process(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshakes, "TLS_SECONDS", 2 * DEADLINE)  # no deadline helps the server
    ours, theirs = certificates(tmp_path)

    async def scenario() -> None:
        async with handling(tls=theirs) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=ours)
            with strangers(server.port, 400) as process, descriptors(RESERVE + 150):
                assert process.stdout is not None
                assert await asyncio.to_thread(process.stdout.readline) == b"400\n"
                await until(lambda: server.faults.total >= 200)
                await until(lambda: are_free(RESERVE // 2))
                for _ in range(2):  # clients that were there are served, and stay
                    writer.write(Raw(server.port).request("GET", path="/"))
                    _, headers = await read_head(reader)
                    await reader.readexactly(int(headers["content-length"]))
                process.communicate()
                await until(lambda: are_free(RESERVE + 120))
            writer.transport.abort()
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=ours)
            writer.transport.abort()

    with caplog.at_level(logging.INFO):
        run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, lines[:5]
    assert "Too many open files" in lines[0] or "file descriptors are left" in lines[0]


def test_a_socket_whose_tls_handshake_is_late_is_closed_and_counted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshakes, "TLS_SECONDS", 0.05)
    _, theirs = certificates(tmp_path)

    async def scenario() -> None:
        async with handling(tls=theirs) as (server, _), Raw(server.port).socket() as (reader, _):
            assert await reader.read() == b""
            await until(lambda: server.faults.total == 1)
            assert not server.sockets

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert caplog.records == []


def test_sockets_that_do_not_speak_tls_are_closed_and_counted(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, theirs = certificates(tmp_path)

    async def scenario() -> None:
        async with handling(tls=theirs) as (server, _):
            for count, data in enumerate((b"GET / HTTP/1.1\r\n\r\n", b"\0" * 5000, b""), 1):
                async with Raw(server.port).socket() as (reader, writer):
                    writer.write(data)
                    writer.write_eof()
                    with suppress(ConnectionError):
                        await reader.read()
                await until(lambda count=count: server.faults.total == count)

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert caplog.records == []


def test_a_server_that_ends_closes_sockets_in_a_tls_handshake(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = certificates(tmp_path)

    async def scenario() -> None:
        async with AsyncExitStack() as clients:
            async with handling(tls=theirs) as (server, _):
                raw = Raw(server.port)
                silent, _ = await clients.enter_async_context(raw.socket())
                begun, writer = await clients.enter_async_context(raw.socket())
                writer.write(b"\x16\x03\x01")  # the beginning of a TLS record
                _, last = await asyncio.open_connection("127.0.0.1", server.port, ssl=ours)
                last.transport.abort()  # sockets are accepted in turn: the others are in a handshake
            for reader in (silent, begun):
                with suppress(ConnectionError):
                    assert await reader.read() == b""

    with caplog.at_level(logging.INFO):
        run(scenario())
    assert caplog.records == []
