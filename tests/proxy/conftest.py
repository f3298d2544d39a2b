"""A proxy and a hub behind it, and a public name that leads to the proxy."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.proxies import NAME, PROGRAMS, find_program
from tests.proxy.stage import Stage, staged


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public name leads to this machine."""
    known = socket.getaddrinfo

    def find(host: Any, *rest: Any, **options: Any) -> Any:
        return known("127.0.0.1" if host in (NAME, NAME.encode()) else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if find_program(name) is None:
        pytest.skip(f"needs {name}")
    return name


@pytest.fixture
async def stage(program: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(program, tmp_path) as made:
        yield made
