"""Is everything handled when a turn ends? `python -m bench.draining [--chunks N] [--turns R]`

One script for all: an agent (this file, standard library only) streams N numbered chunks and ends the turn
at once, all of it in one write; the client looks at the chunks it has handled, on the line after the turn has
ended. The same for a session that is loaded, whose N chunks come before the answer. A handler returns at
once, or waits as one does that writes to a screen or a file: once for each chunk, or for every tenth. Ours is
driven through the public API in each of the four ways in which an end is told, the official Python SDK's
client in v1, which is what it speaks. See docs/draining.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__)
WAYS = ("v1", "v1 with turn_complete", "v2", "v2 as proposed")
AT_ONCE, EACH, TENTH = HANDLERS = ("returns at once", "waits for each", "waits for every tenth")
TURN, LOAD = "a turn", "a load"
DEADLINE = 300.0


# --- the agent -----------------------------------------------------------------------------------------


def agent(way: str) -> None:
    """Answers a prompt, whose text is a number, with so many numbered chunks and the end of the turn."""
    while line := sys.stdin.readline():
        frame = json.loads(line)
        frames: list[dict[str, Any]] = []
        match frame.get("method"):
            case "initialize":
                frames = [{"id": frame["id"], "result": _opening(way)}]
            case "session/new":
                frames = [{"id": frame["id"], "result": {"sessionId": "s"}}]
            case "session/prompt":
                frames = _turn(way, frame["id"], int(frame["params"]["prompt"][0]["text"]))
            case "session/load" | "session/resume":
                session = frame["params"]["sessionId"]
                frames = [*_chunks(session, frame["id"], int(session)), {"id": frame["id"], "result": {}}]
        lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in frames).encode()
        while lines:
            lines = lines[os.write(1, lines) :]


def _opening(way: str) -> dict[str, Any]:
    if way.startswith("v2"):
        meta = {"_meta": {"antiphon": {"dialect": "proposed"}}} if way.endswith("proposed") else {}
        info = {"name": "streams", "version": "1"}
        return {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}, **meta}
    able: dict[str, Any] = {"loadSession": True}
    if way.endswith("turn_complete"):
        able["sessionCapabilities"] = {"turnComplete": {}}
    return {"protocolVersion": 1, "agentCapabilities": able}


def _update(session: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "method": "session/update",
        "params": {"sessionId": session, "update": {"sessionUpdate": kind, **fields}},
    }


def _chunks(session: str, id: Any, count: int) -> list[dict[str, Any]]:
    texts = [{"type": "text", "text": f"{number} "} for number in range(count)]
    return [_update(session, "agent_message_chunk", messageId=f"m{id}", content=text) for text in texts]


def _turn(way: str, id: Any, count: int) -> list[dict[str, Any]]:
    def update(kind: str, **fields: Any) -> dict[str, Any]:
        return _update("s", kind, **fields)

    chunks = _chunks("s", id, count)
    if way.startswith("v1"):
        complete = update("turn_complete", promptRequestId=str(id), stopReason="end_turn")
        answer = {"id": id, "result": {"stopReason": "end_turn"}}
        return [*chunks, complete, answer] if way.endswith("turn_complete") else [*chunks, answer]
    proposed = way.endswith("proposed")
    kind, reason = ("state_change", "stop_reason") if proposed else ("state_update", "stopReason")
    user = update("user_message", messageId=f"u{id}", content=[{"type": "text", "text": str(count)}])
    idle = update(kind, state="idle", **{reason: "end_turn"})
    taken = {"id": id, "result": {} if proposed else {"messageId": f"u{id}"}}
    return [taken, user, update(kind, state="running"), *chunks, idle]


# --- the clients ---------------------------------------------------------------------------------------


async def ours(way: str, what: str, handler: str, chunks: int, turns: int) -> list[list[int]]:
    """The numbers of the chunks that were handled when the turn had ended, for each turn."""
    from antiphon.client import connect
    from antiphon.schema import v2

    version = "v2-proposed" if way.endswith("proposed") else None
    handled = []
    async with connect([sys.executable, str(HERE), "agent", way], version=version) as client:
        session = await client.new_session("/")
        for _ in range(turns):
            if what == LOAD:
                session = await client.load_session(str(chunks), "/")
                handled.append([int(number) for number in session.messages[-1].text.split()])
                continue
            turn = await session.prompt(str(chunks))
            if handler == AT_ONCE:
                await turn.drained()
                handled.append([int(number) for number in session.messages[-1].text.split()])
                continue
            seen = []
            async for update in turn.updates():
                if isinstance(update, v2.AgentMessageChunk) and isinstance(update.content, v2.TextContent):
                    number = int(update.content.text)
                    if handler == EACH or number % 10 == 0:
                        await asyncio.sleep(0)
                    seen.append(number)
            handled.append(seen)
    return handled


async def the_sdks(what: str, handler: str, chunks: int, turns: int) -> list[list[int]]:
    """The same with the official SDK; runs in the environment that holds it."""
    import acp
    from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES

    seen: list[int] = []
    all_seen = asyncio.Event()

    class Handles:
        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            number = int(update.content.text)
            if handler == EACH or (handler == TENTH and number % 10 == 0):
                await asyncio.sleep(0)
            seen.append(number)
            if len(seen) == chunks:
                all_seen.set()

    handled = []
    options = {"limit": DEFAULT_STDIO_BUFFER_LIMIT_BYTES, "stderr": None}
    command = [os.environ["ANTIPHON_PYTHON"], str(HERE), "agent", "v1"]
    handles: Any = Handles()
    async with acp.spawn_agent_process(handles, *command, transport_kwargs=options) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd="/")
        for _ in range(turns):
            if what == LOAD:
                await agent.load_session(cwd="/", session_id=str(chunks), mcp_servers=[])
            else:
                await agent.prompt(session.session_id, [acp.text_block(str(chunks))])
            handled.append(list(seen))
            await all_seen.wait()  # let the stragglers in before the next turn
            all_seen.clear()
            seen.clear()
    return handled


# --- the comparison ------------------------------------------------------------------------------------


def measure(client: str, way: str, what: str, handler: str, chunks: int, turns: int) -> list[list[int]]:
    """Each in a process of its own; raises `PeerUnavailable` where the SDK cannot be had."""
    python = sys.executable
    if client != "antiphon":
        from tests.peers import install

        python = str(install.python_sdk())
    command = [python, str(HERE), client, way, what, handler, str(chunks), str(turns)]
    env = {**os.environ, "ANTIPHON_PYTHON": sys.executable}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    handled: list[list[int]] = json.loads(done.stdout)
    return handled


def row(client: str, way: str, what: str, handler: str, chunks: int, turns: int) -> str:
    handled = measure(client, way, what, handler, chunks, turns)
    complete = sum(len(numbers) == chunks for numbers in handled)
    counts = sorted(map(len, handled))
    ordered = sum(numbers == sorted(numbers) for numbers in handled)
    cells = (
        what,
        handler,
        client,
        way,
        f"{complete} of {turns}",
        f"{statistics.median(counts):,.0f}",
        f"{counts[0]:,}",
        f"{ordered} of {turns}",
    )
    return f"| {' | '.join(cells)} |"


def compare(chunks: int, turns: int) -> None:
    from tests.peers.install import PeerUnavailable

    print(f"{turns} turns and loads of {chunks:,} chunks each\n")
    print("| what ends | handler | client | protocol | complete | handled, median | least | in order |")
    print("|---|---|---|---|---|---|---|---|")
    for what, handlers in ((TURN, HANDLERS), (LOAD, (AT_ONCE, EACH))):
        for handler in handlers:
            for way in WAYS if what == TURN else ("v1", "v2"):
                if what == TURN or handler == AT_ONCE:  # what was loaded is read, not handled
                    print(row("antiphon", way, what, handler, chunks, turns), flush=True)
            try:
                print(row("python-sdk", "v1", what, handler, chunks, turns), flush=True)
            except PeerUnavailable as reason:
                print(f"| {what} | {handler} | python-sdk | v1 | not available: {reason} | | | |")


def main() -> None:
    match sys.argv[1:]:
        case ["agent", way]:
            agent(way)
        case ["antiphon", way, what, handler, chunks, turns]:
            print(json.dumps(asyncio.run(ours(way, what, handler, int(chunks), int(turns)))))
        case ["python-sdk", _, what, handler, chunks, turns]:
            print(json.dumps(asyncio.run(the_sdks(what, handler, int(chunks), int(turns)))))
        case _:
            parser = argparse.ArgumentParser(prog="python -m bench.draining")
            parser.add_argument("--chunks", type=int, default=1000)
            parser.add_argument("--turns", type=int, default=50)
            options = parser.parse_args()
            compare(options.chunks, options.turns)


if __name__ == "__main__":
    main()
