"""The event loops that the tests of sockets run on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.http.raw import DEADLINE
from tests.http.sockets import Run


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    factory = None if request.param == "asyncio" else pytest.importorskip("uvloop").new_event_loop

    def run(scenario: Coroutine[Any, Any, None]) -> None:
        async def within() -> None:
            async with asyncio.timeout(DEADLINE):
                await scenario

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(within())

    return run
