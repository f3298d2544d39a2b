"""The event loop of our processes: threads get their turn however busy the loop is."""

from __future__ import annotations

import subprocess
import sys

BUSY = """
import asyncio, time
from antiphon.transports.loop import run

TURN, MOST = 0.003, 500

async def main():
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, int)  # the thread is there
    turns, done = 0, loop.create_future()

    def work():
        nonlocal turns
        until = time.perf_counter() + TURN
        while time.perf_counter() < until:
            pass
        turns += 1
        if not done.done():
            done.set_result(None) if read.done() or turns == MOST else loop.call_soon(work)

    read = loop.run_in_executor(None, sum, range(1000))
    loop.call_soon(work)
    await done
    print(turns)

run(main())
"""


def test_a_thread_gets_its_turn_between_the_turns_of_a_busy_loop() -> None:
    ran = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60, check=True)
    assert int(ran.stdout) < 100
