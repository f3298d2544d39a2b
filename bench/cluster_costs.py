"""What sessions, claims, followers and clients cost on a cluster: `python -m bench.cluster_costs [--quick]`.

Real servers (`nats-server`), the store as hubs use it, one machine. Each part runs in a separate process,
so that the memory and the CPU time of a process are those of that part. The costs are printed, and written
as JSON for `make sim-scale`: `--write FILE`, by default `tools/scale/costs.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.stores.nats_servers import SERVER

from bench import cluster_parts as parts
from bench import hub as hubs
from bench.cluster_parts import AT_ONCE, MOST_CONSUMERS

COSTS = Path(__file__).parents[1] / "tools" / "scale" / "costs.json"
BUILT_IN = [sys.executable, "-m", "antiphon", "rehearse"]
R3 = "r3_"
"""The prefix of costs with three servers and three replicas; CPU and disk are those of all servers."""
ABOUT = {
    "server_heap": ("B", "heap of a server without sessions"),
    "server_memory": ("B", "resident memory of a server without sessions"),
    "server_files": ("", "open files of a server with one store and 100 sessions"),
    "create_rate": ("1/s", f"sessions that one store creates, {AT_ONCE} at once"),
    "create_server_cpu": ("s", "CPU of a server to create a session"),
    "session_heap": ("B", "heap of a server for a session (two subjects)"),
    "session_memory": ("B", "resident memory of a server for a session, with garbage"),
    "session_disk": ("B", "disk for a session of one event"),
    "session_files": ("", "open files of a server per session"),
    "claim": ("s", "one claim, alone"),
    "claim_rate": ("1/s", f"claims of one store, {AT_ONCE} at once"),
    "claim_store_cpu": ("s", "CPU of a store for a claim"),
    "claim_server_cpu": ("s", "CPU of a server for a claim"),
    "claim_heap": ("B", "heap of a server for a claim (one subject)"),
    "claimed_memory": ("B", "memory of a store for a claimed session"),
    "takeover": ("s", "one claim of a session whose owner is dead, alone"),
    "takeover_server_cpu": ("s", "CPU of the servers for it"),
    "renewal": ("s", "one renewal of a lease"),
    "renewal_server_cpu": ("s", "CPU of a server for it"),
    "index_load": ("s", "first list of a store, per session that exists"),
    "index_memory": ("B", "memory of a store per session that exists, once it has listed"),
    "list_page": ("s", "a page of 50 sessions"),
    "list_10000": ("s", "10,000 sessions, in pages of 500"),
    "restart": ("s", "killed server, until a session is read, per 10,000 sessions"),
    "append_alone": ("s", "an append of one event"),
    "append_alone_store_cpu": ("s", "CPU of the store for it"),
    "append_alone_server_cpu": ("s", "CPU of the servers for it"),
    "append_batched": ("s", "an append of 64 events"),
    "append_batched_store_cpu": ("s", "CPU of the store for it"),
    "append_batched_server_cpu": ("s", "CPU of the servers for it"),
    "event_bytes": ("B", "an event: a chunk of forty characters"),
    "event_disk_alone": ("B", "disk for an event that is appended alone"),
    "event_disk_batched": ("B", "disk for an event of a batch of 64"),
    "follow_rate": ("1/s", "sessions that a store begins to follow"),
    "consumer_heap": ("B", "heap of a server for a consumer"),
    "consumer_idle_server_cpu": ("s/s", "CPU of a server for a consumer without messages"),
    "consumer_idle_store_cpu": ("s/s", "CPU of a store for a followed session without events"),
    "followed_memory": ("B", "memory of a store for a followed session"),
    "followed_cpu": ("s", "CPU of a store for a message of a followed session"),
    "followed_server_cpu": ("s", "CPU of a server to deliver it"),
    "followed_delay": ("s", "from the start of an append until another store has it"),
    "consumers_per_stream": ("", f"consumers that a stream takes, of {MOST_CONSUMERS:,} that are asked for"),
    "open_200": ("s", "open a session of 200 events"),
    "open_200_cpu": ("s", "CPU of a store to open and close it"),
    "open_20000": ("s", "open a session of 20,000 events"),
    "open_20000_cpu": ("s", "CPU of a store to open and close it"),
    "built_in_agent_start": ("s", "start of the built-in agent, until it has a session"),
    "built_in_agent_cpu": ("s", "CPU of the built-in agent to start, make a session and end"),
    "built_in_agent_memory": ("B", "memory of the built-in agent"),
    "smallest_agent_start": ("s", "start of an agent without a library, until it has a session"),
    "smallest_agent_cpu": ("s", "CPU of an agent without a library to start, make a session and end"),
    "smallest_agent_memory": ("B", "memory of an agent without a library"),
    "hub_memory": ("B", "memory of a hub without sessions"),
    "hub_session_memory": ("B", "memory of a hub for an open session, without its agent"),
    "hub_files": ("", "open files of a hub without sessions"),
    "hub_session_files": ("", "open files of a hub for an open session and its agent; a client has one more"),
    "client_memory": ("B", "memory of a hub for a client"),
    "chunk_cpu": ("s", "CPU of a hub for a chunk, without its clients, at 100 chunks a second"),
    "delivery_cpu": ("s", "CPU of a hub to write a chunk to one client, at 100 chunks a second"),
    "burst_delivery_cpu": ("s", "CPU of a hub per chunk and client at full speed, 100 clients"),
    "delivery_bytes": ("B", "bytes to a client for a chunk"),
}
"""The unit of each cost, and what it is."""


def measured(*, quick: bool) -> parts.Costs:
    few = 10 if quick else 1
    sessions = 20_000 // few
    found: parts.Costs = {}

    def run(part: Callable[..., Coroutine[Any, Any, parts.Costs]], *arguments: Any, prefix: str = "") -> None:
        add(parts.alone(part, *arguments), prefix)

    def add(costs: parts.Costs, prefix: str = "") -> None:
        for name, value in costs.items():
            found[prefix + name] = value
            print(f"{prefix + name:28} {value:>14,.6g} {ABOUT[name][0]:4} {ABOUT[name][1]}", flush=True)

    with parts.running(1) as (servers, nodes):
        run(parts.sessions_part, servers, sessions)
        run(parts.claims_part, servers, sessions // 4)
        run(parts.lease_part, servers, 4000 // few)
        run(parts.list_part, servers, sessions)
        add(parts.restart(servers, nodes[0], sessions))
    with parts.running(1) as (servers, _):
        run(parts.follow_part, servers, 2000 // few)
    for replicas, prefix in ((1, ""), (3, R3)):
        with parts.running(replicas) as (servers, _):
            run(parts.takeover_part, servers, 500 // few, replicas, prefix=prefix)
        with parts.running(replicas) as (servers, _):
            run(parts.events_part, servers, 4000 // few, replicas, prefix=prefix)
    with parts.running(1) as (servers, _):
        run(parts.consumer_limit_part, servers)
        run(parts.open_part, servers, 200)
        run(parts.open_part, servers, 20_000)
    run(parts.agent_part, BUILT_IN, "built_in_agent")
    run(parts.agent_part, hubs.AGENT, "smallest_agent")
    run(parts.hub_part, 100 // few, 1000 // few)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_costs")
    parser.add_argument("--quick", action="store_true", help="measure a tenth, less exactly")
    parser.add_argument("--write", type=Path, default=COSTS, metavar="FILE")
    asked = parser.parse_args()
    if SERVER is None:
        raise SystemExit("nats-server is not installed: make setup")
    version = subprocess.check_output([SERVER, "--version"], text=True).split()[-1]
    machine = {"nats_server": version, "python": platform.python_version(), "cores": os.cpu_count()}
    rows = {}
    for name, value in measured(quick=asked.quick).items():
        unit, about = ABOUT[name.removeprefix(R3)]
        rows[name] = {"value": float(f"{value:.3g}"), "unit": unit, "about": about}
    asked.write.write_text(json.dumps({"machine": machine, "costs": rows}, indent=1) + "\n")
    print(f"\nwritten to {asked.write}")


if __name__ == "__main__":
    main()
