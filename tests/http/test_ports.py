"""A listener takes the port it is given or, if it may, any free one. The attempt to listen decides."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.raw import Raw
from tests.http.sockets import Run, handling


@pytest.fixture
def other() -> Iterator[socket.socket]:
    """A socket of another program. It is bound to a port, and does not listen yet."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        yield other


def test_a_port_in_use_is_refused_unless_any_port_will_do(run: Run, other: socket.socket) -> None:
    async def main() -> None:
        port = other.getsockname()[1]
        other.listen()
        with pytest.raises(OSError) as refused:
            async with handling(port=port):
                pass
        assert refused.value.errno == errno.EADDRINUSE
        await check_falls_back(port)

    run(main())


def test_a_port_that_is_taken_between_bind_and_listen_is_in_use(
    run: Run, other: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hubs that start at once both bind the usual port; one of them listens first."""

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        create = type(loop).create_server

        async def create_server(loop: Any, *arguments: Any, **options: Any) -> Any:
            server = await create(loop, *arguments, **options)
            other.listen()
            return server

        monkeypatch.setattr(type(loop), "create_server", create_server)
        await check_falls_back(other.getsockname()[1])

    run(main())


async def check_falls_back(port: int) -> None:
    async with handling(port=port, or_any_port=True) as (server, _):
        assert server.port != port
        assert (await Raw(server.port).ask("GET", path="/")).status == 200
