"""Clients that open sockets without end do not take the last file descriptors of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from antiphon.transports.http.socket import RESERVE
from tests.http.raw import Raw, read_head
from tests.http.sockets import Run, handling, until

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
