"""The parts of `bench.cluster_costs`: each measures some costs on real servers.

The heap of a server is its memory after a garbage collection, as its profiler reports it: the memory that
the system shows also has what the next collection frees.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import re
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import nats
import psutil
from nats.js import JetStreamContext
from tests.stores.nats_servers import NatsServer, free_ports

from antiphon.client import connect
from antiphon.engine.events import Event, Updated, encode_event
from antiphon.errors import SessionClaimed, StoreError
from antiphon.live.session import LiveSession
from antiphon.schema import v2
from antiphon.stores import Batch, JetStreamOptions, JetStreamStore, SessionRecord
from antiphon.stores.jetstream.engine import Engine
from bench import hub as hubs
from bench.hub_readers import Client

CONTEXT = multiprocessing.get_context("spawn")
AT_ONCE = 16
"""Calls that a store has under way where a rate is measured."""
DEADLINE = 120.0
CACHE_SECONDS = 15.0
"""Servers keep blocks in memory for ten seconds after they were used."""
NOW = 1_800_000_000_000
MOST_CONSUMERS = 1200
Costs = dict[str, float]


# --- servers ---------------------------------------------------------------------------------------


class Servers(NamedTuple):
    """Running servers, as every process can look at them."""

    address: str
    folder: str
    pids: tuple[int, ...]
    profilers: tuple[int, ...]

    def cpu(self) -> float:
        return sum(hubs.spent(psutil.Process(pid)) for pid in self.pids)

    async def heap(self) -> float:
        """Return the bytes of the heap once the caches of what was written have ended."""
        await asyncio.sleep(CACHE_SECONDS)
        return sum(map(live_heap, self.profilers))

    def memory(self) -> int:
        return sum(psutil.Process(pid).memory_info().rss for pid in self.pids)

    def files(self) -> int:
        return sum(psutil.Process(pid).num_fds() for pid in self.pids)

    def disk(self) -> int:
        """Return the bytes of the messages of all streams, without the logs that replicate them."""
        return sum(path.stat().st_size for path in Path(self.folder).rglob("streams/*/msgs/*.blk"))


def live_heap(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/debug/pprof/heap?gc=1&debug=1") as answer:
        found = re.search(rb"# HeapAlloc = (\d+)", answer.read())
    assert found is not None
    return int(found[1])


@contextmanager
def running(count: int) -> Iterator[tuple[Servers, list[NatsServer]]]:
    """Run one server alone, or a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        ports = free_ports(3 * count)
        clients, routes, profilers = ports[:count], ports[count : 2 * count], ports[2 * count :]
        nodes = ", ".join(f"nats://127.0.0.1:{port}" for port in routes)
        servers = []
        for n in range(count):
            settings = f'prof_port: {profilers[n]}\npid_file: "{folder}/{n}.pid"\n'
            if count > 1:
                settings += f'cluster {{ name: c, listen: "127.0.0.1:{routes[n]}", routes: [{nodes}] }}'
            servers.append(NatsServer(Path(folder), f"n{n}", clients[n], settings))
        try:
            for server in servers:
                server.start()
            for server in servers:
                server.wait()
            address = ",".join(f"nats://127.0.0.1:{port}" for port in clients)
            pids = tuple(int(Path(folder, f"{n}.pid").read_text()) for n in range(count))
            yield Servers(address, folder, pids, tuple(profilers)), servers
        finally:
            for server in servers:
                server.kill()


def alone(part: Callable[..., Coroutine[Any, Any, Costs]], *arguments: Any) -> Costs:
    """Run one part of the measurement in a separate process."""
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as pool:
        return pool.submit(_run, part, *arguments).result()


def _run(part: Callable[..., Coroutine[Any, Any, Costs]], *arguments: Any) -> Costs:
    return asyncio.run(part(*arguments))


# --- steps of several parts ------------------------------------------------------------------------


def session(n: int) -> str:
    return f"sess_{n:032}"


def chunk(number: int, message: int = 0) -> Updated:
    """Return a piece of an answer, of a size that agents stream: about forty characters."""
    content = v2.TextContent(text=f"{number:>10} words of an answer to a prompt")
    return Updated.of(v2.AgentMessageChunk(message_id=v2.MessageId(f"message-{message}"), content=content))


def batch(first: int, count: int) -> Batch:
    return Batch(
        first, tuple(encode_event(Event(seq, NOW, chunk(seq))) for seq in range(first, first + count))
    )


def own_memory() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


async def each(numbers: range, act: Callable[[int], Awaitable[object]]) -> None:
    """Act on every number, a few at once."""
    left = iter(numbers)

    async def work() -> None:
        for number in left:
            await act(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def timed(numbers: range, act: Callable[[int], Awaitable[object]]) -> float:
    """Act on every number, one after the other. Returns the median in seconds."""
    times = []
    for number in numbers:
        began = time.perf_counter()
        await act(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def create(store: JetStreamStore, numbers: range) -> None:
    async def make(n: int) -> None:
        cwd = f"/projects/{n % 97}"
        record = SessionRecord(session_id=session(n), cwd=cwd, created_at=n, updated_at=n)
        await store.create(record, batch=batch(1, 1))

    await each(numbers, make)


# --- the store -------------------------------------------------------------------------------------


async def sessions_part(servers: Servers, count: int) -> Costs:
    """Sessions that nobody has open."""
    async with JetStreamStore(servers.address) as store:
        found: Costs = {"server_heap": await servers.heap(), "server_memory": servers.memory()}
        await create(store, range(100))
        heap, memory = await servers.heap(), servers.memory()
        disk, files = servers.disk(), servers.files()
        began, spent = time.perf_counter(), servers.cpu()
        await create(store, range(100, count))
        more = count - 100
        return found | {
            "create_rate": more / (time.perf_counter() - began),
            "create_server_cpu": (servers.cpu() - spent) / more,
            "session_memory": (servers.memory() - memory) / more,
            "session_heap": (await servers.heap() - heap) / more,
            "session_disk": (servers.disk() - disk) / more,
            "session_files": (servers.files() - files) / more,
            "server_files": files,
        }


async def claims_part(servers: Servers, count: int) -> Costs:
    """Sessions that a store claims, as a hub does that opens them."""
    async with JetStreamStore(servers.address) as store:

        async def claim(n: int) -> None:
            await store.claim(session(n), "bench")

        took = await timed(range(300), claim)
        heap, memory = await servers.heap(), own_memory()
        began, cpu, spent = time.perf_counter(), time.process_time(), servers.cpu()
        await each(range(300, count), claim)
        more = count - 300
        return {
            "claim": took,
            "claim_rate": more / (time.perf_counter() - began),
            "claim_store_cpu": (time.process_time() - cpu) / more,
            "claim_server_cpu": (servers.cpu() - spent) / more,
            "claimed_memory": (own_memory() - memory) / more,
            "claim_heap": (await servers.heap() - heap) / more,
        }


def hold(address: str, options: JetStreamOptions, count: int, pipe: Connection) -> None:
    """Claim sessions, and never release them."""

    async def run() -> None:
        async with JetStreamStore(address, options) as store:
            await each(range(count), lambda n: store.claim(session(n), "first"))
            pipe.send("held")
            await asyncio.Event().wait()

    asyncio.run(run())


async def takeover_part(servers: Servers, count: int, replicas: int) -> Costs:
    """Claims of sessions whose owner was killed."""
    options = JetStreamOptions(replicas=replicas, lease=1.0)
    async with JetStreamStore(servers.address, options) as store:
        await create(store, range(count))
        ours, theirs = CONTEXT.Pipe()
        owner = CONTEXT.Process(target=hold, args=(servers.address, options, count, theirs))
        owner.start()
        held = await asyncio.to_thread(ours.recv)
        assert held == "held"
        owner.kill()
        owner.join()
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    await store.claim(session(0), "next")
                    break
                except SessionClaimed:
                    await asyncio.sleep(0.05)  # until the lease of a second has ended
        spent = servers.cpu()
        took = await timed(range(1, count), lambda n: store.claim(session(n), "next"))
        return {"takeover": took, "takeover_server_cpu": (servers.cpu() - spent) / (count - 1)}


async def lease_part(servers: Servers, count: int) -> Costs:
    engine = Engine(servers.address, JetStreamOptions())
    await engine.open()
    spent = servers.cpu()
    took = await timed(range(count), lambda n: engine.put(engine.layout.lease("bench"), b"", ttl=10.0))
    spent = servers.cpu() - spent
    await engine.close()
    return {"renewal": took, "renewal_server_cpu": spent / count}


async def list_part(servers: Servers, count: int) -> Costs:
    """A store that lists all sessions for the first time, and again."""
    async with JetStreamStore(servers.address) as store:
        await store.get(session(0))
        memory, began = own_memory(), time.perf_counter()
        await store.list()
        found = {
            "index_load": (time.perf_counter() - began) / count,
            "index_memory": (own_memory() - memory) / count,
            "list_page": await timed(range(50), lambda n: store.list()),
        }
        began = time.perf_counter()
        page = await store.list(limit=500)
        while page.next is not None:
            page = await store.list(after=page.next, limit=500)
        return found | {"list_10000": (time.perf_counter() - began) / count * 10_000}


def restart(servers: Servers, node: NatsServer, count: int) -> Costs:
    """Kill the server and start it again, until a session can be read."""

    async def read() -> None:
        async with JetStreamStore(servers.address) as store:
            assert await store.get(session(0)) is not None

    node.kill()
    began = time.perf_counter()
    node.start()
    node.wait()
    asyncio.run(read())
    return {"restart": (time.perf_counter() - began) / count * 10_000}


async def events_part(servers: Servers, count: int, replicas: int) -> Costs:
    """Events alone and in batches, in one session each."""
    found: Costs = {"event_bytes": len(batch(1000, 1).events[0])}
    async with JetStreamStore(servers.address, JetStreamOptions(replicas=replicas)) as store:
        await create(store, range(2))

        async def append(n: int, size: int, name: str) -> None:
            await store.claim(session(n), "bench")
            batches = [batch(2 + k * size, size) for k in range(count)]
            disk, cpu, spent = servers.disk(), time.process_time(), servers.cpu()
            found[f"append_{name}"] = await timed(
                range(count), lambda k: store.append(session(n), batches[k])
            )
            found[f"append_{name}_store_cpu"] = (time.process_time() - cpu) / count
            found[f"append_{name}_server_cpu"] = (servers.cpu() - spent) / count
            found[f"event_disk_{name}"] = (servers.disk() - disk) / count / size

        await append(0, 1, "alone")
        await append(1, 64, "batched")
    return found


async def follow_part(servers: Servers, count: int) -> Costs:
    """Sessions that a hub follows because another one owns them."""

    async def consumers(streams: JetStreamContext) -> int:
        return sum(stream.state.consumer_count for stream in await streams.streams_info())

    client = await nats.connect(servers.address)
    streams = client.jetstream()
    async with JetStreamStore(servers.address) as writer, JetStreamStore(servers.address) as reader:
        await create(writer, range(count))
        await each(range(count), lambda n: writer.claim(session(n), "owner"))
        cpu, spent = time.process_time(), servers.cpu()
        await each(range(count), lambda n: writer.append(session(n), batch(2, 1)))
        append_cpu, append_spent = time.process_time() - cpu, servers.cpu() - spent
        await each(range(count), lambda n: reader.get(session(n)))

        heap, memory, before = await servers.heap(), own_memory(), await consumers(streams)
        began = time.perf_counter()
        waiting = [asyncio.create_task(reader.grown(session(n), 2)) for n in range(count)]
        async with asyncio.timeout(DEADLINE):
            while await consumers(streams) < before + count:  # noqa: ASYNC110 (no event tells it)
                await asyncio.sleep(0.05)
        found = {
            "follow_rate": count / (time.perf_counter() - began),
            "followed_memory": (own_memory() - memory) / count,
            "consumer_heap": (await servers.heap() - heap) / count,
        }

        seconds, cpu, spent = 10.0, time.process_time(), servers.cpu()
        await asyncio.sleep(seconds)  # nothing is to happen
        idle_cpu = found["consumer_idle_store_cpu"] = (time.process_time() - cpu) / seconds / count
        idle_spent = found["consumer_idle_server_cpu"] = (servers.cpu() - spent) / seconds / count

        async def write(n: int) -> None:
            await writer.append(session(n), batch(3, 1))
            await waiting[n]

        half = count // 2
        began, cpu, spent = time.perf_counter(), time.process_time(), servers.cpu()
        await each(range(half), write)
        took, cpu, spent = time.perf_counter() - began, time.process_time() - cpu, servers.cpu() - spent
        found["followed_cpu"] = (cpu - idle_cpu * count * took - append_cpu / 2) / half
        found["followed_server_cpu"] = (spent - idle_spent * count * took - append_spent / 2) / half
        found["followed_delay"] = await timed(range(half, min(count, half + 200)), write)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    await client.close()
    return found


async def consumer_limit_part(servers: Servers) -> Costs:
    """How many consumers a server lets a stream of the store have: it would take 1,000 of another one."""
    engine = Engine(servers.address, JetStreamOptions(name="limit", shards=1))
    await engine.open()
    stream, subject = engine.layout.place("journal", "key")
    count = 0
    async with AsyncExitStack() as stack:
        try:
            while count < MOST_CONSUMERS:
                await stack.enter_async_context(engine.consumer(stream, subject, start=1, silence=3.0))
                count += 1
        except StoreError as error:
            print(f"consumer {count + 1} of a stream: {error}")
    await engine.close()
    return {"consumers_per_stream": count}


async def open_part(servers: Servers, events: int) -> Costs:
    """Open a session as a hub does: claim it, read its snapshot and what came since."""
    name = f"open_{events}"
    async with (
        JetStreamStore(servers.address) as store,
        await LiveSession.create(store, session_id=name, cwd="/", clock=lambda: NOW) as live,
    ):
        for first in range(0, events, 500):
            live.emit(chunk(n, n // 50) for n in range(first, min(events, first + 500)))
            await live.durable()
    times, cpu = [], 0.0
    for _ in range(5):
        async with JetStreamStore(servers.address) as store:
            await store.get(name)
            spent, began = time.process_time(), time.perf_counter()
            async with await LiveSession.open(store, name, clock=lambda: NOW):
                times.append(time.perf_counter() - began)
            cpu += (time.process_time() - spent) / 5
    return {name: statistics.median(times), f"{name}_cpu": cpu}


# --- agents and clients ----------------------------------------------------------------------------


async def agent_part(command: list[str], name: str) -> Costs:
    """An agent process, until it has a session."""
    times, cpu, memory = [], [], []
    for _ in range(5):
        before, began = ended_cpu(), time.perf_counter()
        async with connect(command) as agent:
            await agent.new_session(cwd="/")
            times.append(time.perf_counter() - began)
            memory.append(sum(child.memory_info().rss for child in psutil.Process().children()))
        cpu.append(ended_cpu() - before)
    return {
        f"{name}_start": statistics.median(times),
        f"{name}_cpu": statistics.median(cpu),
        f"{name}_memory": statistics.median(memory),
    }


def ended_cpu() -> float:
    """Return the CPU seconds of the children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


async def hub_part(sessions: int, chunks: int) -> Costs:
    """A hub at rest; a session; a chunk, and each client that gets it."""
    found: Costs = {}
    with hubs.hub() as target:
        found["hub_memory"] = empty = hubs.at_rest(target.process)
        found["hub_files"] = files = target.process.num_fds()
        opener = Client(target.port, token=target.token, dialect=hubs.V2)
        opened = [hubs.new_session(opener) for _ in range(sessions)]
        opener.socket.close()
        found["hub_session_memory"] = (hubs.at_rest(target.process) - empty) / sessions
        found["hub_session_files"] = (target.process.num_fds() - files) / sessions
        clients = [{"dialect": hubs.V2, "session": opened[0]}] * 101
        one = hubs.hub_turn(target, opened[0], clients[:1], f"{chunks} 100")
        many = hubs.hub_turn(target, opened[0], clients, f"{chunks} 100")
        found["delivery_cpu"] = (many["server"] - one["server"]) / chunks / 100
        found["chunk_cpu"] = one["server"] / chunks - found["delivery_cpu"]
        found["delivery_bytes"] = one["bytes"] / chunks
        before = hubs.at_rest(target.process)
        more = [
            Client(target.port, token=target.token, dialect=hubs.V2, session=opened[0]) for _ in range(100)
        ]
        found["client_memory"] = (hubs.at_rest(target.process) - before) / len(more)
        for client in more:
            client.socket.close()
    found["burst_delivery_cpu"] = hubs.cost(100)(hubs.ours(100, 20 * chunks)) / 1e6
    return found
