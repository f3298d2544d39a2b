"""An agent that is busy, to be killed: `python -m tests.faults.busy_agent STORE [websocket]`.

Everything it says is numbered, and what it does is decided by the prompt's text alone: so whoever reads it
knows what has to be there, and what may not be there twice. Over WebSocket it first prints its port.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import signal
import sys

from antiphon.agent import Agent, AgentTurn, MessageWriter, ToolCallWriter
from antiphon.live import snapshot_saver
from antiphon.remote.websocket_server import websocket_server
from antiphon.stores import SQLiteStore
from antiphon.transports.loop import run


async def count(writer: MessageWriter | ToolCallWriter, chance: random.Random, upto: int) -> None:
    for number in range(chance.randint(1, upto)):
        await writer.write(f"{number} ")
        if chance.random() < 0.2:
            await asyncio.sleep(0)  # commits come between, of few events and of many


async def work(turn: AgentTurn) -> None:
    chance = random.Random(turn.prompt.text)

    async def behind(call: ToolCallWriter) -> None:
        for number in range(150):
            await call.write(f"{number} ")
            await asyncio.sleep(0)

    for step in range(chance.randint(1, 4)):
        await turn.plan([f"step {number}" for number in range(step + 1)])
        async with turn.thought() as thought:
            await count(thought, chance, 60)
        if chance.random() < 0.25:
            await turn.session.background(f"behind step {step}", behind)
        async with turn.message() as message:
            await count(message, chance, 200)
            async with turn.tool_call(f"step {step}", kind="execute") as call:
                if chance.random() < 0.6:
                    await call.request_permission()
                await count(call, chance, 100)
            await count(message, chance, 10)
        turn.steered()


def make_agent(path: str) -> Agent:
    agent = Agent("busy", version="1.0", store=SQLiteStore(path))
    agent.on_prompt(work)
    return agent


async def serve_websockets(agent: Agent) -> None:
    async with agent.serving(), websocket_server(agent.serve) as server:
        print(server.port, flush=True)
        await asyncio.Event().wait()


def say_where(*_: object) -> None:
    """For whoever finds it silent."""
    for task in asyncio.all_tasks():
        task.print_stack()
    faulthandler.dump_traceback()
    os._exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, say_where)
    # A short session has a snapshot too, in the middle of turns and at their ends.
    snapshot_saver.SNAPSHOT_EVERY, snapshot_saver.SAVE_FLOOR = 100, 10_000
    busy = make_agent(sys.argv[1])
    if "websocket" in sys.argv[2:]:
        run(serve_websockets(busy))
    else:
        busy.run()
