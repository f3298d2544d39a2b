"""On the line after a turn has ended, all of it has been handled, in order: the script of the comparison in
docs/draining.md, through the public API."""

from __future__ import annotations

import asyncio

import pytest
from bench.draining import AT_ONCE, HANDLERS, LOAD, TURN, WAYS, ours

CHUNKS = 1000
TURNS = 3
DEADLINE = 60.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("handler", HANDLERS)
async def test_a_turn_that_has_ended_is_complete_and_in_order(way: str, handler: str) -> None:
    """RPC-37, PROMPT-V1-04."""
    async with asyncio.timeout(DEADLINE):
        handled = await ours(way, TURN, handler, CHUNKS, TURNS)
    assert handled == [list(range(CHUNKS))] * TURNS


@pytest.mark.parametrize("way", WAYS)
async def test_a_session_that_was_loaded_is_complete_and_in_order(way: str) -> None:
    async with asyncio.timeout(DEADLINE):
        handled = await ours(way, LOAD, AT_ONCE, CHUNKS, TURNS)
    assert handled == [list(range(CHUNKS))] * TURNS
