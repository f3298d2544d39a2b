"""A hub's fan-out, measured: `make bench-hub`, or `python -m bench.hub [--quick]`.

One agent streams chunks of forty characters to many WebSocket clients of one session. Ours go through
`antiphon serve`: protocol, engine, SQLite journal, each batch committed before it is sent. The other side is
a hand-written server with Node's `ws`, which sends every line of the same agent to every client and does
nothing else. The readers are the same program on both sides, counting bytes from raw sockets; nothing is
compressed. A delivery is one chunk at one client. At full speed a delay is mostly the length of the queue,
so delays are taken from a stream of their own, of so many chunks per second.

A paced stream of one chunk each 10 ms to 20 clients is measured beside a bare relay (`hub_relay`), which
runs on the same kind of event loop, parses nothing and commits nothing. Both are up in one run and take
turns; the delay of every chunk at every client counts. The CPU that a hub spends on a chunk of a v1 agent,
for one client, is measured beside our client library, which reads the same stream from the agent's pipe
(`hub_client`).

Others are not to feel two kinds of clients. One sends 6 MB of tiny frames as fast as it can: the round trips
of another client meanwhile (p99) are measured beside those at the same hub at rest. One asks for a message of
80 MB and does not read: forty of them show how much memory each costs the hub.

The last part has 500 sessions at one hub, each with one client, of which 100 are streamed to. Each session
has an agent process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from tests.peers import install

from bench.harness import Figure, Measurement, Ratio, Worst, run_group
from bench.hub_readers import Client
from bench.wire import had

BENCH = Path(__file__).parent
AGENT = [sys.executable, "-S", "-E", str(BENCH / "hub_agent.py")]
CHUNKS = 20_000
LONG = 60_000  # more than kernels take for a client that does not read
TURNS = 3
PACE = 500
PACED = 1000
DEADLINE = 60.0
BESIDE_RATE, BESIDE_CLIENTS = 100, 20  # one chunk each 10 ms
BESIDE_CHUNKS, BESIDE_TURNS = 150, 4  # the first chunk of a turn is less than one in a hundred
SESSIONS, STREAMING, EACH = 500, 100, 50
BURST, TINY = 6_000_000, b"\x81\x81\0\0\0\0x"  # a text frame of one character, masked with zeros
BURST_SECONDS, IDLE_TRIPS = 5.0, 500
UNREAD, LARGE_TURN = 40, "text 80 1000000"
LARGE_AGENT = [sys.executable, str(BENCH.parent / "tests" / "hub" / "large_agent.py")]
V1, V2 = "v1", "v2"


class Target(NamedTuple):
    """A server that clients can join."""

    process: psutil.Process
    port: int
    token: str | None = None


@contextlib.contextmanager
def hub(*, agent: str = V2, command: Sequence[str] = (), options: Sequence[str] = ()) -> Iterator[Target]:
    behind = command or [*AGENT, *(["--v1"] if agent == V1 else [])]
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder, "ready.json")
        serve = [sys.executable, "-m", "antiphon", "serve", "--port", "0", "--data", folder]
        process = subprocess.Popen(
            [*serve, "--ready-file", str(ready), *options, "--", *behind],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + DEADLINE
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit("the hub did not start")
                time.sleep(0.01)
            told = json.loads(ready.read_text())
            port = int(told["acp"].rpartition(":")[2].partition("/")[0])
            yield Target(psutil.Process(process.pid), port, told["token"])
        finally:
            process.terminate()
            process.wait(DEADLINE)


def node() -> AbstractContextManager[tuple[Target, subprocess.Popen[bytes]]]:
    env = {**os.environ, "WS": f"{had(install.ts_sdk)}/node_modules/ws"}
    return relaying([had(install.node), str(BENCH / "node_ws.mjs")], env)


def bare_relay() -> AbstractContextManager[tuple[Target, subprocess.Popen[bytes]]]:
    return relaying([sys.executable, "-m", "bench.hub_relay"])


@contextlib.contextmanager
def relaying(
    command: list[str], env: dict[str, str] | None = None
) -> Iterator[tuple[Target, subprocess.Popen[bytes]]]:
    """A server that starts the agent itself and prints its port; what it reads is for the agent."""
    process = subprocess.Popen(
        [*command, *AGENT, "--plain", "sess_" + "0" * 32],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield Target(psutil.Process(process.pid), int(process.stdout.readline())), process
    finally:
        process.communicate(timeout=DEADLINE)


@contextlib.contextmanager
def readers(target: Target, clients: Sequence[Mapping[str, Any]]) -> Iterator[subprocess.Popen[str]]:
    asked = {"port": target.port, "token": target.token, "clients": clients}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.hub_readers", json.dumps(asked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit("the readers could not join")
        yield process
    finally:
        process.communicate(timeout=DEADLINE)


def seen(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("the readers were not done in time")
    found: dict[str, Any] = json.loads(line)
    return found


def spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def new_session(opener: Client) -> str:
    opened = opener.call("session/new", {"cwd": "/", "mcpServers": []})
    return str(opened["sessionId"])


def prompt(opener: Client, session_id: str, text: str) -> None:
    opener.call("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})


def ours(
    count: int, chunks: int, *, rate: int | None = None, dialect: str = V2, agent: str = V2, deaf: int = 0
) -> dict[str, Any]:
    with hub(agent=agent) as target:
        opener = Client(target.port, token=target.token, dialect=V2)
        session_id = new_session(opener)
        clients = [{"dialect": dialect, "session": session_id} for _ in range(count)]
        clients += [{"dialect": dialect, "session": session_id, "deaf": True} for _ in range(deaf)]
        opener.socket.close()
        return hub_turn(target, session_id, clients, f"{chunks} {rate or ''}")


def hub_turn(target: Target, session_id: str, clients: Sequence[Mapping[str, Any]], text: str) -> Any:
    """One turn of a hub's session, as its readers saw it."""
    opener = Client(target.port, token=target.token, dialect=V2, session=session_id)
    with readers(target, clients) as reading:
        before, memory = spent(target.process), target.process.memory_info().rss
        prompt(opener, session_id, text)
        opener.socket.close()
        found = seen(reading)
        found["server"] = spent(target.process) - before
        found["grown"] = (target.process.memory_info().rss - memory) / 2**20
    return found


def theirs(count: int, chunks: int, *, rate: int | None = None) -> dict[str, Any]:
    with node() as (target, process):
        return relay_turn(target, process, [{}] * count, f"{chunks} {rate or ''}")


def relay_turn(
    target: Target, process: subprocess.Popen[bytes], clients: Sequence[Mapping[str, Any]], text: str
) -> Any:
    with readers(target, clients) as reading:
        before = spent(target.process)
        assert process.stdin is not None
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        found = seen(reading)
        found["server"] = spent(target.process) - before
        return found


def beside_relay(agent: str) -> dict[str, Any]:
    """A paced stream through the hub and through the bare relay, in turns; the median turn of each."""
    text = f"{BESIDE_CHUNKS} {BESIDE_RATE}"
    found: dict[str, list[float]] = {"hub p50": [], "hub p99": [], "relay p50": [], "relay p99": []}
    with hub(agent=agent) as target, bare_relay() as (relay, process):
        opener = Client(target.port, token=target.token, dialect=V2)
        session_id = new_session(opener)
        opener.socket.close()
        clients = [{"dialect": V2, "session": session_id, "timed": True}] * BESIDE_CLIENTS
        for _ in range(BESIDE_TURNS):
            through_hub = hub_turn(target, session_id, clients, text)
            through_relay = relay_turn(relay, process, [{"timed": True}] * BESIDE_CLIENTS, text)
            for side, run in (("hub", through_hub), ("relay", through_relay)):
                found[f"{side} p50"].append(run["p50"])
                found[f"{side} p99"].append(run["p99"])
    return {name: statistics.median(values) for name, values in found.items()}


def stdio_client(chunks: int) -> dict[str, Any]:
    """Our client library reads the stream of a v1 agent."""
    command = [sys.executable, "-m", "bench.hub_client", str(chunks), "--", *AGENT, "--v1"]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, timeout=DEADLINE))
    if found["chunks"] != chunks:
        raise SystemExit(f"our client read {found['chunks']} of {chunks} chunks")
    return found


def beside_deaf() -> dict[str, Any]:
    """One run is short, and the machine's moods are not: a round takes turns, and the best of each counts."""
    runs = [(ours(99, LONG), ours(99, LONG, deaf=1)) for _ in range(TURNS)]
    return {
        "without": min(without["seconds"] for without, _ in runs),
        "with": min(beside["seconds"] for _, beside in runs),
        "grown": max(beside["grown"] for _, beside in runs),
    }


def round_trip(client: Client) -> float:
    began = time.perf_counter()
    client.call("session/list", {})
    return (time.perf_counter() - began) * 1e3


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def burst() -> dict[str, Any]:
    """How long another client's round trip takes at rest, and while one client sends tiny frames."""
    with hub() as target:
        other = Client(target.port, token=target.token, dialect=V2)
        rude = Client(target.port, token=target.token, dialect=V2)
        idle = [round_trip(other) for _ in range(IDLE_TRIPS)]

        def send() -> None:
            with contextlib.suppress(OSError):  # the hub may end the link
                rude.socket.sendall(TINY * (BURST // len(TINY)))

        sending = threading.Thread(target=send)
        during: list[float] = []
        until = time.monotonic() + BURST_SECONDS
        sending.start()
        while not during or (sending.is_alive() and time.monotonic() < until):
            during.append(round_trip(other))
        rude.socket.shutdown(socket.SHUT_RDWR)
        sending.join()
        return {"idle": p99(idle), "during": p99(during)}


def unread() -> dict[str, Any]:
    """How much memory clients cost the hub that ask for a large message and do not read."""
    with hub(command=LARGE_AGENT) as target:
        opener = Client(target.port, token=target.token, dialect=V2)
        session_id = new_session(opener)
        prompt(opener, session_id, LARGE_TURN)
        opener.socket.close()
        before = at_rest(target.process)
        asked = {"sessionId": session_id, "cwd": "/", "mcpServers": [], "replayFrom": {"type": "start"}}
        clients = [Client(target.port, token=target.token, dialect=V2, deaf=True) for _ in range(UNREAD)]
        for client in clients:
            client.send({"jsonrpc": "2.0", "id": 1, "method": "session/resume", "params": asked})
        grown = at_rest(target.process) - before
        for client in clients:
            client.socket.close()
        return {"grown": grown / UNREAD / 2**20}


def at_rest(process: psutil.Process) -> int:
    """The memory of a process that works no more."""
    until, before = time.monotonic() + DEADLINE, -1.0
    while (now := spent(process)) != before and time.monotonic() < until:
        before = now
        time.sleep(0.5)
    return int(process.memory_info().rss)


def many() -> dict[str, Any]:
    """Sessions that rest, and others that are streamed to."""
    chunks = EACH * 10
    with hub() as target:
        opener = Client(target.port, token=target.token, dialect=V2)
        sessions = [new_session(opener) for _ in range(SESSIONS)]
        streaming = sessions[:STREAMING]
        clients = [
            {"dialect": V2, "session": session_id, "deaf": session_id not in streaming}
            for session_id in sessions
        ]
        with readers(target, clients) as reading:
            opener.socket.close()
            before, began = spent(target.process), time.monotonic()
            for session_id in streaming:
                opener = Client(target.port, token=target.token, dialect=V2, session=session_id)
                prompt(opener, session_id, f"{chunks} {EACH}")
                opener.socket.close()
            found = seen(reading)
            found["cores"] = (spent(target.process) - before) / (time.monotonic() - began)
            found["memory"] = target.process.memory_info().rss / 2**20
    return found


def enough(clients: int, *, slow: bool, quick: bool) -> int:
    """How many chunks show a rate: what takes a minute each time shows no more than what takes seconds."""
    chunks = CHUNKS // 4 if slow and clients >= 100 else CHUNKS
    if quick and clients >= 100:
        chunks //= 4 if clients > 100 or slow else 1
    return chunks


class Plan:
    """What one run measures, and what it says of that. Several figures may come of one measurement."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.measurements: list[Measurement] = []
        self.ratios: list[Ratio | Figure | Worst] = []
        self._kept: dict[str, dict[str, Any]] = {}

    def run(self, name: str, measure: Any, figure: Any, unit: str) -> None:
        def measured() -> float:
            self._kept[name] = measure()
            return float(figure(self._kept[name]))

        self.measurements.append(Measurement(name, unit, measured))

    def of(self, name: str, run: str, figure: Any, unit: str) -> None:
        """Another figure of a measurement that came before."""
        self.measurements.append(Measurement(name, unit, lambda: float(figure(self._kept[run]))))


def rate(clients: int) -> Any:
    return lambda found: found["chunks"] * clients / found["seconds"]


def cost(clients: int) -> Any:
    return lambda found: found["server"] / (found["chunks"] * clients) * 1e6


def plan_fan_out(plan: Plan) -> None:
    quick = plan.quick
    for clients in (1, 10, 100, 500):
        for side, measure in (("antiphon", ours), ("node ws", theirs)):
            chunks = enough(clients, slow=side == "node ws", quick=quick)
            name = f"fan-out to {clients}, {side}"
            plan.run(name, lambda m=measure, c=clients, n=chunks: m(c, n), rate(clients), "deliveries/s")
            plan.of(f"… CPU, {clients}, {side}", name, cost(clients), "µs/delivery")
            if not quick or clients in (1, 100):
                paced = f"delay p50 at {PACE}/s to {clients}, {side}"
                plan.run(paced, lambda m=measure, c=clients: m(c, PACED, rate=PACE), lambda f: f["p50"], "ms")
                plan.of(f"delay p99 at {PACE}/s to {clients}, {side}", paced, lambda f: f["p99"], "ms")
    for name, options in (("v1", {"dialect": V1}), ("of a v1 agent", {"agent": V1})):
        plan.run(
            f"fan-out to 100 {name}, antiphon",
            lambda o=options: ours(100, CHUNKS, **o),
            rate(100),
            "deliveries/s",
        )
    plan.ratios += [
        Ratio(
            f"fanout_{clients}_vs_node_ws",
            f"fan-out to {clients}, antiphon",
            f"fan-out to {clients}, node ws",
            at_least=bar,
        )
        for clients, bar in ((10, None), (100, 40), (500, None))
    ]
    plan.ratios += [
        Ratio("fanout_100_v1_vs_node_ws", "fan-out to 100 v1, antiphon", "fan-out to 100, node ws"),
        Ratio(
            "fanout_100_of_v1_agent_vs_node_ws",
            "fan-out to 100 of a v1 agent, antiphon",
            "fan-out to 100, node ws",
        ),
    ]


def plan_latency(plan: Plan) -> None:
    for of_v1 in ("", " of a v1 agent"):
        beside = f"paced p50{of_v1}, antiphon"
        agent = V1 if of_v1 else V2
        plan.run(beside, lambda a=agent: beside_relay(a), lambda found: found["hub p50"], "ms")
        plan.of(f"paced p50{of_v1}, bare relay", beside, lambda found: found["relay p50"], "ms")
        plan.of(f"paced p99{of_v1}, antiphon", beside, lambda found: found["hub p99"], "ms")
        plan.of(f"paced p99{of_v1}, bare relay", beside, lambda found: found["relay p99"], "ms")
        plan.ratios += [
            Ratio(
                f"paced_{part}{of_v1.replace(' ', '_')}_vs_bare_relay",
                f"paced {part}{of_v1}, antiphon",
                f"paced {part}{of_v1}, bare relay",
            )
            for part in ("p50", "p99")
        ]
    hub_cpu, client_cpu = "CPU of a v1 agent's chunk, hub", "CPU of a v1 agent's chunk, our client"
    plan.run(hub_cpu, lambda: ours(1, LONG, agent=V1), cost(1), "µs/chunk")
    plan.run(
        client_cpu,
        lambda: stdio_client(LONG),
        lambda found: found["cpu"] / found["chunks"] * 1e6,
        "µs/chunk",
    )
    plan.ratios.append(Ratio("hub_cpu_per_chunk_vs_stdio_client", hub_cpu, client_cpu))


def plan_isolation(plan: Plan) -> None:
    plan.run("99 readers", beside_deaf, lambda found: found["without"], "s")
    plan.of("99 readers and a deaf one", "99 readers", lambda found: found["with"], "s")
    plan.of("hub growth with a deaf one", "99 readers", lambda found: found["grown"], "MiB")
    plan.ratios += [
        Ratio("slow_client_cost", "99 readers and a deaf one", "99 readers", at_most=1.15),
        Figure("slow_client_mib", "hub growth with a deaf one", at_most=64),
    ]


def plan_burden(plan: Plan) -> None:
    plan.run("p99 round trip during a burst", burst, lambda found: found["during"], "ms")
    plan.of("p99 round trip at rest", "p99 round trip during a burst", lambda found: found["idle"], "ms")
    plan.run("hub growth per unread client", unread, lambda found: found["grown"], "MiB")
    plan.ratios += [
        Ratio("burst_neighbour_delay", "p99 round trip during a burst", "p99 round trip at rest"),
        Figure("unread_client_mib", "hub growth per unread client", at_most=16),
    ]


def plan_many(plan: Plan) -> None:
    once = functools.cache(many)  # it takes a while, and nothing is compared to it
    name = f"p99 delay, {STREAMING} of {SESSIONS} sessions"
    plan.run(name, once, lambda found: found["p99"], "ms")
    plan.of("… CPU", name, lambda found: found["cores"], "cores")
    plan.of("… memory of the hub", name, lambda found: found["memory"], "MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a run of about two minutes")
    parser.add_argument("--latency", action="store_true", help="only the paced streams and the CPU per chunk")
    parser.add_argument("--burden", action="store_true", help="only what one rude client costs the others")
    asked = parser.parse_args()
    plan = Plan(quick=asked.quick)
    whole = not (asked.latency or asked.burden)
    if whole:
        plan_fan_out(plan)
    if not asked.burden:
        plan_latency(plan)
    if whole:
        plan_isolation(plan)
    if not asked.latency:
        plan_burden(plan)
    if whole and not asked.quick:
        plan_many(plan)
    group = "hub" if whole else "hub-latency" if asked.latency else "hub-burden"
    run_group(group, plan.measurements, plan.ratios, rounds=3 if asked.quick else 5)


if __name__ == "__main__":
    main()
