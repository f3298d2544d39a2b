"""The tables and plots of docs/scale.md, from the measured costs and a seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from tools.scale import growth
from tools.scale.costs import Costs
from tools.scale.fanout import followed, one_session
from tools.scale.placement import POLICIES, fullest
from tools.scale.plot import Axis, Line, plot
from tools.scale.takeover import Storm, storm_outcome

SEED = 17
HUBS = (2, 4, 8, 16, 32, 64)
CLIENTS = (10, 30, 100, 300, 1000, 3000, 10_000)
SESSIONS = (1_000, 10_000, 100_000, 1_000_000)
STORMS = (100, 200, 500, 1000, 2000, 5000)
RATE = 50.0
"""Chunks a second of a streaming agent."""
HEAVY = 2.0
"""Core seconds that a large agent needs to start. An assumption: measure yours."""
PLACE = re.compile(r"(<!-- scale: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Report(NamedTuple):
    tables: dict[str, str]
    plots: dict[str, str]


def report(costs: Costs, *, seed: int = SEED) -> Report:
    tables: dict[str, str] = {"costs": costs_table(costs), "growth": growth_table(costs)}
    plots: dict[str, str] = {}
    for part in (placement, takeover, storm_size, fan_out, consumers):
        name = part.__name__
        tables[name], plots[name] = part(costs, seed)
    return Report(tables, plots)


def renewed(page: str, tables: dict[str, str]) -> str:
    """Return a page with the tables in their places."""
    return PLACE.sub(lambda found: found[1] + tables[found[2]] + found[3], page)


# --- text ------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def amount(value: float, unit: str) -> str:
    """Return a value with three digits and a unit of fitting size."""
    steps = {
        "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")),
        "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
        "s/s": ((1e-3, "ms/s"), (1e-6, "µs/s")),
    }.get(unit, ((1.0, unit),))
    for step, name in steps:
        if abs(value) >= step:
            return f"{digits(value / step)} {name}".rstrip()
    return f"{digits(value / steps[-1][0])} {steps[-1][1]}".rstrip()


def digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


# --- what was measured, and what follows on paper --------------------------------------------------


def costs_table(costs: Costs) -> str:
    single = {name: cost for name, cost in costs.table.items() if not name.startswith("r3_")}
    rows = []
    for name, cost in single.items():
        replicated = costs.table.get(f"r3_{name}")
        three = "" if replicated is None else amount(replicated.value, replicated.unit)
        rows.append((f"`{name}`: {cost.about}", amount(cost.value, cost.unit), three))
    machine = costs.machine
    where = f"nats-server {machine['nats_server']}, Python {machine['python']}, {machine['cores']} cores"
    return f"Measured with {where}.\n\n" + table(("cost", "one server", "three, R3"), rows)


def growth_table(costs: Costs) -> str:
    sizes = [growth.size(sessions, costs) for sessions in SESSIONS]
    rows = (
        ("open at one time", [f"{each.open:,}" for each in sizes]),
        ("disk of each NATS server", [amount(each.disk, "B") for each in sizes]),
        ("heap of each NATS server", [amount(each.nats_heap, "B") for each in sizes]),
        ("subjects of the index stream", [f"{each.sessions:,}" for each in sizes]),
        ("consumers, in all", [f"{each.consumers:,}" for each in sizes]),
        ("a killed server is back after", [amount(each.restart, "s") for each in sizes]),
        ("hubs, for the memory of agents", [f"{each.hubs_by_memory:,}" for each in sizes]),
        ("hubs, for their own core", [f"{each.hubs_by_cpu:,}" for each in sizes]),
        ("index in the memory of each hub", [amount(each.index_memory, "B") for each in sizes]),
        ("first list of a hub", [amount(each.index_load, "s") for each in sizes]),
        ("renewals of leases, per second", [digits(each.renewals) for each in sizes]),
    )
    usage = growth.USUAL
    assumed = (
        f"Assumed: {usage.open_share:.0%} of the sessions are open at one time, that is, have an agent; "
        f"{usage.busy_share:.0%} of these stream {usage.rate:g} chunks a second; an open session has "
        f"{usage.clients_each:g} clients, and {usage.stray:.0%} of the clients are not at the owner; "
        f"a session has {usage.events_each:,} events, {usage.batch} in a message; an agent takes "
        f"{amount(usage.agent_memory, 'B')}, a host has {amount(usage.host_memory, 'B')}; a hub may be busy "
        f"{usage.hub_core:.0%} of the time. Three NATS servers, three replicas.\n\n"
    )
    head = ("sessions", *(f"{sessions:,}" for sessions in SESSIONS))
    return assumed + table(head, ([name, *cells] for name, cells in rows))


# --- what was simulated ----------------------------------------------------------------------------


def placement(costs: Costs, seed: int) -> tuple[str, str]:
    found = {
        name: [(hubs, fullest(policy, sessions=2000, hubs=hubs, random=Random(seed))[0]) for hubs in HUBS]
        for name, policy in POLICIES.items()
    }
    rows = ([name, *(f"{ratio:.2f}" for _, ratio in points)] for name, points in found.items())
    return (
        table(("a session goes to", *(f"{hubs} hubs" for hubs in HUBS)), rows),
        plot(
            "The fullest hub, of 2,000 open sessions",
            Axis("hubs"),
            Axis("sessions of the fullest hub / average"),
            [Line(name, points) for name, points in found.items()],
        ),
    )


def storms(costs: Costs) -> dict[str, Storm]:
    usual = Storm(agent_cpu=HEAVY)
    return {
        "all hubs at once, no bound": usual._replace(jitter=False, parallel=None),
        "all hubs at once, 8 at a time": usual._replace(jitter=False),
        "own moment and order, no bound": usual._replace(parallel=None),
        "own moment and order, 8 at a time": usual,
        "… sessions with clients not first": usual._replace(clients_first=False),
        "… agents only for clients": usual._replace(start_all=False),
        "… all agents, but small ones": usual._replace(agent_cpu=costs["built_in_agent_cpu"]),
        "only with clients, 8 at a time": usual._replace(only_clients=True),
        "only with clients, one at a time": usual._replace(only_clients=True, parallel=1),
    }


PLOTTED = (
    "all hubs at once, no bound",
    "own moment and order, no bound",
    "own moment and order, 8 at a time",
    "only with clients, 8 at a time",
    "only with clients, one at a time",
)


def takeover(costs: Costs, seed: int) -> tuple[str, str]:
    rows, lines = [], []
    for name, storm in storms(costs).items():
        outcome = storm_outcome(storm, costs, seed=seed)
        rows.append(
            (
                name,
                f"{outcome.clients_within(99):.0f} s",
                *(f"{outcome.within(percent):.0f} s" for percent in (50, 99, 100)),
                f"{outcome.refused:,}",
                f"{outcome.idle_looks:,}",
                f"{outcome.starting:,}",
                f"{outcome.slowdown:.1f}",
            )
        )
        if name in PLOTTED:
            lines.append(Line(name, [(outcome.within(percent), percent) for percent in range(0, 101, 2)]))
    head = ("sweep", "99 % of clients", "half", "99 %", "all", "refused", "looks", "starting", "slowdown")
    picture = plot(
        "1,000 sessions of a dead hub, taken over by four",
        Axis("seconds since its death"),
        Axis("of the sessions to take over (%)"),
        lines,
    )
    return table(head, rows), picture


def storm_size(costs: Costs, seed: int) -> tuple[str, str]:
    lines = []
    for survivors in (1, 2, 4, 9):
        base = Storm(survivors=survivors, agent_cpu=HEAVY)
        points = [
            (float(n), storm_outcome(base._replace(sessions=n), costs, seed=seed).within(100)) for n in STORMS
        ]
        lines.append(Line(f"{survivors} other hub{'s' * (survivors > 1)}", points))
    rows = ([line.name, *(f"{seconds:.0f} s" for _, seconds in line.points)] for line in lines)
    return (
        table(("until all are back", *(f"{n:,} sessions" for n in STORMS)), rows),
        plot(
            "Until the last session of a dead hub is back",
            Axis("sessions of the dead hub", log=True),
            Axis("seconds", log=True),
            lines,
        ),
    )


def fan_out(costs: Costs, seed: int) -> tuple[str, str]:
    lines, rows = [], []
    for hubs in (1, 3, 10, 30):
        loads = [
            one_session(costs, clients=clients, hubs=hubs, rate=RATE, random=Random(seed))
            for clients in CLIENTS
        ]
        name = f"{hubs} hub{'s' * (hubs > 1)}"
        lines.append(Line(name, [(float(n), load.hub_cores) for n, load in zip(CLIENTS, loads, strict=True)]))
        rows.append((f"{name}: cores of the fullest", *(f"{load.hub_cores:.2f}" for load in loads)))
        rows.append((f"{name}: to its clients", *(f"{amount(load.hub_bytes, 'B')}/s" for load in loads)))
        if hubs > 1:
            rows.append((f"{name}: from NATS", *(f"{amount(load.nats_bytes, 'B')}/s" for load in loads)))
    return (
        table(("one session", *(f"{clients:,} clients" for clients in CLIENTS)), rows),
        plot(
            f"One session that streams {RATE:g} chunks a second",
            Axis("clients", log=True),
            Axis("cores of the hub with the most clients", log=True),
            lines,
        ),
    )


def consumers(costs: Costs, seed: int) -> tuple[str, str]:
    lines, rows = [], []
    for stray, name in ((1.0, "any hub"), (0.5, "half to the owner"), (0.1, "nine of ten to the owner")):
        found = [
            followed(costs, sessions=10_000, clients_each=2.0, hubs=hubs, stray=stray, random=Random(seed))
            for hubs in HUBS
        ]
        lines.append(Line(name, [(hubs, each.consumers) for hubs, each in zip(HUBS, found, strict=True)]))
        rows.append((f"{name}: consumers", *(f"{each.consumers:,}" for each in found)))
        rows.append((f"{name}: cores of NATS, idle", *(f"{each.nats_cores:.2f}" for each in found)))
        rows.append((f"{name}: of each hub, idle", *(f"{each.hub_cores:.2f}" for each in found)))
    return (
        table(("clients come to", *(f"{hubs} hubs" for hubs in HUBS)), rows),
        plot(
            "10,000 open sessions of two clients each",
            Axis("hubs"),
            Axis("consumers"),
            lines,
        ),
    )
