"""Hubs that share a store, measured: `make bench-cluster`, or `python -m bench.cluster [--quick]`.

Every server and hub is a real process on this machine: one NATS node with three hubs, and a NATS cluster of
three nodes that keep each stream three times. The agent is that of the hub benchmarks.

Events: the store, and live sessions on it, next to bare nats-py with the same bytes (`cluster_events`). The
bar is for the store, which does what bare nats-py does and also fences each write. A live session also
numbers, encodes and folds each event on the same core: `live_vs_bare_nats` has no bar.

Fan-out: one agent streams at full speed to 300 clients, once all at the hub that owns the session, once a
hundred at each of three hubs. The clients are three processes in both cases. On a machine with two cores the
hubs share them with the clients, the agent and NATS, so the ratio says what further hubs cost there, not what
further machines give.

Prompts: a client at the owner and a client at another hub prompt the same session in turns. The time until
the prompt is accepted and the time until the turn has ended are both measured where the prompt was sent. One
NATS node is the harder case: with three, the owner waits longer for its commits, and the way through the
other hub is the same.

Delays: a paced stream is read by a client at the owner and by a client at another hub, at the same time. A
delay is the time from the agent's write of a chunk until the client has read it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.stores.nats_servers import one_server, three_servers

from antiphon.transports.loop import run
from bench.cluster_events import Batches, Servers, bare_rate, live_rate, store_rate
from bench.harness import Ratio, Worst, run_group
from bench.hub import V2, Plan, Target, hub, new_session, prompt, readers, seen
from bench.hub_readers import Client

HUBS, CLIENTS = 3, 300
RATE = 200
SESSIONS = (1, 200)


# --- events ------------------------------------------------------------------------------------------


def plan_events(plan: Plan, nodes: Sequence[Servers]) -> None:
    live, append = list[Ratio](), list[Ratio]()
    events = 50_000 if plan.quick else 200_000
    for servers, sessions in itertools.product(nodes, SESSIONS):
        where = f"{sessions} session{'s' * (sessions > 1)}, R{servers.replicas}"
        names = [f"live {where}", f"store {where}", f"bare nats-py {where}"]
        written: list[Batches] = []
        plan.run(names[0], partial(live_events, servers, sessions, events, written), float, "events/s")
        for name, measure in zip(names[1:], (store_rate, bare_rate), strict=True):
            plan.run(name, partial(written_again, measure, servers, written), float, "events/s")
        key = f"{sessions}_r{servers.replicas}_vs_bare_nats"
        live.append(Ratio(f"live_{key}", names[0], names[2]))
        append.append(Ratio(f"events_{key}", names[1], names[2]))
    plan.ratios += [*append, Worst("events_vs_bare_nats", append, at_least=0.5)]
    plan.ratios += [*live, Worst("live_vs_bare_nats", live)]


def live_events(servers: Servers, sessions: int, events: int, written: list[Batches]) -> float:
    rate, batches = run(live_rate(servers, sessions=sessions, events=events))
    written[:] = [batches]
    return rate


def written_again(
    measure: Callable[[Servers, Batches], Coroutine[Any, Any, float]],
    servers: Servers,
    written: list[Batches],
) -> float:
    return run(measure(servers, written[0]))


# --- hubs --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def hubs(address: str) -> Iterator[list[Target]]:
    """Hubs on one store. The first one owns the sessions that are made below."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(hub(options=["--store", address])) for _ in range(HUBS)]


def streamed(targets: Sequence[Target], text: str, *, clients: int) -> list[dict[str, Any]]:
    """Stream one turn of a new session to so many clients at each of the hubs; the first one owns it. Return
    what the clients of each saw."""
    opener = Client(targets[0].port, token=targets[0].token, dialect=V2)
    session_id = new_session(opener)
    with contextlib.ExitStack() as stack:
        reading = [
            stack.enter_context(
                readers(target, [{"dialect": V2, "session": session_id, "timed": clients == 1}] * clients)
            )
            for target in targets
        ]
        prompt(opener, session_id, text)
        opener.socket.close()
        return [seen(process) for process in reading]


def plan_fan_out(plan: Plan, targets: Sequence[Target]) -> None:
    chunks = 20_000 if plan.quick else 60_000
    each = CLIENTS // HUBS
    one, three = f"fan-out to {CLIENTS}, one hub", f"fan-out to {CLIENTS}, three hubs"
    for name, used in ((one, [targets[0]] * HUBS), (three, targets)):
        measure = partial(streamed, used, str(chunks), clients=each)
        plan.run(name, measure, partial(deliveries, chunks), "deliveries/s")
    plan.ratios.append(Ratio("fanout_3_hubs_vs_1", three, one))


def deliveries(chunks: int, found: Sequence[Mapping[str, Any]]) -> float:
    """Per second, until the last client had all. Each process counts from the write of the first chunk."""
    return chunks * CLIENTS / float(max(each["seconds"] for each in found))


def plan_delays(plan: Plan, targets: Sequence[Target]) -> None:
    chunks = 400 if plan.quick else 2_000
    first = "delay p50, client at the owner"
    plan.run(first, partial(streamed, targets[:2], f"{chunks} {RATE}", clients=1), part(0, "p50"), "ms")
    plan.of("delay p99, client at the owner", first, part(0, "p99"), "ms")
    for percentile in ("p50", "p99"):
        name = f"delay {percentile}, client elsewhere"
        plan.of(name, first, part(1, percentile), "ms")
        plan.ratios.append(
            Ratio(f"delay_{percentile}_elsewhere_vs_owner", name, f"delay {percentile}, client at the owner")
        )


def part(at: int, name: str) -> Callable[[Sequence[Mapping[str, Any]]], float]:
    return lambda found: float(found[at][name])


# --- prompts -----------------------------------------------------------------------------------------


def plan_prompts(plan: Plan, targets: Sequence[Target]) -> None:
    trips = 60 if plan.quick else 300
    first = "prompt accepted, at the owner"
    names = [first, "turn ended, at the owner", "prompt accepted, elsewhere", "turn ended, elsewhere"]
    plan.run(first, partial(prompted, targets[0], targets[1], trips), lambda found: found[0], "ms")
    for at, name in enumerate(names[1:], start=1):
        plan.of(name, first, lambda found, at=at: found[at], "ms")
    ratios = [
        Ratio("forwarded_accepted_vs_local", names[2], names[0]),
        Ratio("forwarded_turn_vs_local", names[3], names[1]),
    ]
    plan.ratios += [*ratios, Worst("forwarded_prompt_vs_local", ratios, at_most=3.0)]


def prompted(owner: Target, other: Target, trips: int) -> list[float]:
    """Prompt a new session in turns from both hubs. Return the median times in ms: accepted and ended, at the
    owner and at the other hub."""
    local = Client(owner.port, token=owner.token, dialect=V2)
    session_id = new_session(local)
    distant = Client(other.port, token=other.token, dialect=V2, session=session_id)
    found: list[list[float]] = [[], [], [], []]
    for _ in range(trips):
        for at, (asking, watching) in enumerate(((local, distant), (distant, local))):
            accepted, ended = trip(asking, session_id)
            until_idle(watching)
            found[2 * at].append(accepted)
            found[2 * at + 1].append(ended)
    for client in (local, distant):
        client.socket.close()
    return [statistics.median(times) * 1e3 for times in found]


def trip(client: Client, session_id: str) -> tuple[float, float]:
    """Prompt, and return the seconds until the prompt was accepted and until the turn had ended."""
    method = "session/prompt"
    params = {"sessionId": session_id, "prompt": [{"type": "text", "text": "1"}]}
    began = time.perf_counter()
    client.send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
    accepted = ended = 0.0
    while not (accepted and ended):
        frame = json.loads(client.frame())
        if frame.get("id") == method:
            if "result" not in frame:
                raise SystemExit(f"{method}: {frame}")
            accepted = time.perf_counter() - began
        elif is_idle(frame):
            ended = time.perf_counter() - began
    return accepted, ended


def until_idle(client: Client) -> None:
    while not is_idle(json.loads(client.frame())):
        pass


def is_idle(frame: Mapping[str, Any]) -> bool:
    update = frame.get("params", {}).get("update", {})
    return bool(update.get("sessionUpdate") == "state_update" and update.get("state") == "idle")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a run of under two minutes")
    plan = Plan(quick=parser.parse_args().quick)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        alone, three = Path(folder, "one"), Path(folder, "three")
        alone.mkdir()
        three.mkdir()
        address = stack.enter_context(one_server(alone))
        cluster = stack.enter_context(three_servers(three))
        plan_events(plan, [Servers(address, 1), Servers(cluster.address, 3)])
        targets = stack.enter_context(hubs(address))
        plan_fan_out(plan, targets)
        plan_prompts(plan, targets)
        plan_delays(plan, targets)
        run_group("cluster", plan.measurements, plan.ratios, rounds=3 if plan.quick else 5)


if __name__ == "__main__":
    main()
