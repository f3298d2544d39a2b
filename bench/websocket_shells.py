"""What a broadcast costs with each WebSocket library: `python -m bench.websocket_shells [CLIENTS]`.

The same frames, in batches, to the same readers: frame by frame through what the library offers for it, and
as bytes that were framed once for all clients, one write per client and batch. It is how the hub's was chosen
(docs/decisions.md); picows and aiohttp are no dependencies and are measured where they are installed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psutil

from antiphon.transports.loop import run
from antiphon.transports.websocket import text_frames
from bench.hub import Target, readers, seen, spent
from bench.hub_agent import END, MORE

CHUNKS, BATCH = 6400, 64
START = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"session-1","update":'
Send = Callable[[list[bytes]], Awaitable[None]]


def batch(*, last: bool) -> list[bytes]:
    update = START + b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%020d%b"}}}}'
    return [
        update % (time.monotonic_ns(), (END if last and number == BATCH - 1 else MORE).encode())
        for number in range(BATCH)
    ]


async def broadcast(port: int, send: Send) -> None:
    print(port, flush=True)
    loop = asyncio.get_running_loop()
    if not await loop.run_in_executor(None, sys.stdin.readline):
        return
    for number in range(CHUNKS // BATCH):
        await send(batch(last=number == CHUNKS // BATCH - 1))
        await asyncio.sleep(0)
    await loop.run_in_executor(None, sys.stdin.read)


async def antiphon(*, prepared: bool) -> None:
    from antiphon.remote.websocket_server import ServerOptions, websocket_server

    clients: list[Any] = []

    async def serve(transport: Any) -> None:
        clients.append(transport)
        await asyncio.Event().wait()

    async def send(frames: list[bytes]) -> None:
        data = text_frames(frames)
        for client in clients:
            if prepared:
                client.send_framed(data)
            else:
                for frame in frames:
                    client.send(frame)

    async with websocket_server(
        serve, options=ServerOptions(ping_interval=None, initialize_first=False)
    ) as server:
        await broadcast(server.port, send)


async def websockets(*, prepared: bool) -> None:
    from websockets.asyncio.server import broadcast as to_all
    from websockets.asyncio.server import serve

    async def handle(connection: Any) -> None:
        await connection.wait_closed()

    async def send(frames: list[bytes]) -> None:
        data = text_frames(frames)
        if prepared:
            for connection in server.connections:
                connection.transport.write(data)
        else:
            for frame in frames:
                to_all(server.connections, frame.decode())

    async with serve(handle, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        await broadcast(next(iter(server.sockets)).getsockname()[1], send)


async def picows(*, prepared: bool) -> None:
    from picows import WSListener, WSMsgType, ws_create_server

    clients: list[Any] = []

    class Listener(WSListener):  # type: ignore[misc,no-any-unimported]
        def on_ws_connected(self, transport: Any) -> None:
            clients.append(transport)

    async def send(frames: list[bytes]) -> None:
        data = text_frames(frames)
        for client in clients:
            if prepared:
                client.underlying_transport.write(data)
            else:
                for frame in frames:
                    client.send(WSMsgType.TEXT, frame)

    server = await ws_create_server(lambda _: Listener(), "127.0.0.1", 0)
    await broadcast(server.sockets[0].getsockname()[1], send)


async def aiohttp(*, prepared: bool) -> None:
    from aiohttp import web

    clients: list[Any] = []

    async def handle(request: Any) -> Any:
        client = web.WebSocketResponse(compress=False)
        await client.prepare(request)
        clients.append((client, request.transport))
        async for _ in client:
            pass
        return client

    async def send(frames: list[bytes]) -> None:
        data = text_frames(frames)
        for client, transport in clients:
            if prepared:
                transport.write(data)
            else:
                for frame in frames:
                    await client.send_str(frame.decode())

    app = web.Application()
    app.router.add_get("/acp", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await broadcast(runner.addresses[0][1], send)


SHELLS = {"antiphon": antiphon, "websockets": websockets, "picows": picows, "aiohttp": aiohttp}


def measured(shell: str, way: str, clients: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.websocket_shells", "--serve", shell, way]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    target = Target(psutil.Process(process.pid), int(process.stdout.readline()))
    with readers(target, [{}] * clients) as reading:
        before = spent(target.process)
        process.stdin.write("go\n")
        process.stdin.flush()
        found = seen(reading)
        found["server"] = spent(target.process) - before
    process.kill()
    process.communicate()
    return found


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--serve"]:
        run(SHELLS[arguments[1]](prepared=arguments[2] == "prepared"))
        return
    clients = int(arguments[0]) if arguments else 100
    for shell in SHELLS:
        for way in ("each", "prepared"):
            try:
                if shell != "antiphon":
                    __import__(shell)
                rounds = [measured(shell, way, clients) for _ in range(3)]
            except ImportError:
                print(f"{shell}: not installed")
                break
            rate = sorted(found["chunks"] * clients / found["seconds"] for found in rounds)[1]
            cost = sorted(found["server"] / (found["chunks"] * clients) * 1e6 for found in rounds)[1]
            told = {"deliveries/s": round(rate), "µs CPU": round(cost, 3)}
            print(f"{shell:12} {way:10} {json.dumps(told, ensure_ascii=False)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
